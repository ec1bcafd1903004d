//! Brings the kept tree up to date after one document changed, along the changed path only.
//!
//! At each level a run of old items is replaced by new ones. Only groups near that run can change: the
//! boundary rule looks `min - 1` places to either side, and no group is smaller than `min`, so one
//! unchanged group on the left and one on the right are enough, extended until both ends are boundaries
//! by the local rule and not by splitting an over-long stretch (whose cuts depend on the whole stretch).
//! The cost is a few pages a level. Tests hold the result against [`crate::plan`].

use std::sync::Arc;

use factum_base::NodeKey;
use factum_casefile::Slot;

use crate::boundaries::{anchor_at_level, is_local_minimum};
use crate::pages::{Entry, Missing, Page, PageCache, Role};
use crate::plan::{DocumentInput, Plan, Planner};

/// What happened to one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The document at this slot is new or has another state.
    Put(DocumentInput),
    /// No document has this slot any more.
    Remove(Slot),
}

impl Change {
    /// The slot concerned.
    pub fn slot(&self) -> &Slot {
        match self {
            Self::Put(document) => &document.state.slot,
            Self::Remove(slot) => slot,
        }
    }
}

/// Applies one change to the tree under `root`. The plan holds only pages that were made anew.
///
/// # Errors
/// A page is needed that `cache` lacks: add it and call again.
pub fn advance(
    planner: Planner<'_>,
    cache: &PageCache,
    root: NodeKey,
    change: &Change,
) -> Result<Plan, Missing> {
    let old_root = cache.get(&root)?;
    let mut pages = Vec::new();
    let new = match change {
        Change::Put(document) => vec![planner.document_entry(document, &mut pages)],
        Change::Remove(_) => Vec::new(),
    };
    let tree = OldTree {
        cache,
        root: old_root,
    };
    let replacement = tree.replacement(change.slot(), new)?;
    let Some(replacement) = replacement else {
        return Ok(Plan {
            root,
            nodes: tree.root.nodes(),
            pages: Vec::new(),
        });
    };
    let entry = climb(planner, &tree, replacement, &mut pages)?;
    Ok(Plan {
        root: entry.key,
        nodes: entry.nodes,
        pages,
    })
}

/// At one level: the old items with `first <= slot <= last` become `new`.
struct Replacement {
    first: Slot,
    last: Slot,
    removed: usize,
    new: Vec<Entry>,
}

struct OldTree<'c> {
    cache: &'c PageCache,
    root: Arc<Page>,
}

impl OldTree<'_> {
    fn count(&self, level: usize) -> usize {
        self.root.counts.get(level).map_or(0, |&n| n as usize)
    }

    /// The page of level `level` (groups of documents are level 1) that `slot` belongs under, and its
    /// neighbours' first slots. Pages at the root's level are the root itself.
    fn page_at(&self, level: u32, slot: &Slot) -> Result<Neighbourhood, Missing> {
        let mut page = Arc::clone(&self.root);
        let (mut before, mut after) = (None, None);
        while page.level > level {
            let n = page.child_for(slot);
            if let Some(left) = n.checked_sub(1).and_then(|n| page.entries.get(n)) {
                before = Some(left.first().clone());
            }
            if let Some(right) = page.entries.get(n + 1) {
                after = Some(right.first().clone());
            }
            // The left neighbour may lie under another parent: its first slot here is that of an
            // ancestor, and looking up the greatest slot below ours finds the page itself.
            page = self.cache.get(&page.entries[n].key())?;
        }
        Ok(Neighbourhood {
            page,
            before,
            after,
        })
    }

    fn before(&self, level: u32, page: &Page) -> Result<Option<Arc<Page>>, Missing> {
        let Some(first) = page.entries.first().map(Entry::first) else {
            return Ok(None);
        };
        if self.page_at(level, first)?.before.is_none() {
            return Ok(None);
        }
        let mut at = Arc::clone(&self.root);
        while at.level > level {
            let n = at
                .entries
                .partition_point(|entry| entry.first() < first)
                .saturating_sub(1);
            at = self.cache.get(&at.entries[n].key())?;
        }
        Ok(Some(at))
    }

    fn after(&self, level: u32, page: &Page) -> Result<Option<Arc<Page>>, Missing> {
        let Some(first) = page.entries.first().map(Entry::first) else {
            return Ok(None);
        };
        match self.page_at(level, first)?.after {
            Some(next) => Ok(Some(self.page_at(level, &next)?.page)),
            None => Ok(None),
        }
    }

    /// What a document's change replaces among the documents; `None` where nothing differs.
    fn replacement(&self, slot: &Slot, new: Vec<Entry>) -> Result<Option<Replacement>, Missing> {
        let old = if self.root.entries.is_empty() {
            None
        } else {
            let page = self.page_at(1, slot)?.page;
            page.entries
                .iter()
                .find(|entry| entry.first() == slot)
                .cloned()
        };
        let unchanged = match (&old, new.first()) {
            (None, None) => true,
            (Some(old), Some(new)) => old.key() == new.key(),
            _ => false,
        };
        Ok((!unchanged).then(|| Replacement {
            first: slot.clone(),
            last: slot.clone(),
            removed: usize::from(old.is_some()),
            new,
        }))
    }
}

struct Neighbourhood {
    page: Arc<Page>,
    before: Option<Slot>,
    after: Option<Slot>,
}

fn climb(
    planner: Planner<'_>,
    tree: &OldTree<'_>,
    mut replacement: Replacement,
    pages: &mut Vec<(NodeKey, Page)>,
) -> Result<crate::pages::NodeEntry, Missing> {
    let max = planner.fan_out().max;
    let mut counts: Vec<u32> = Vec::new();
    loop {
        let below = counts.len();
        let level = u32::try_from(below + 1).unwrap_or(u32::MAX);
        let old_count = tree.count(below);
        let new_count = old_count - replacement.removed + replacement.new.len();
        if new_count <= max || level >= tree.root.level {
            // The whole level fits under one root now, or did so before.
            let items = whole_level(tree, level, replacement)?;
            return Ok(planner.levels_above(items, counts, pages));
        }
        replacement = regroup(planner, tree, level, replacement, pages)?;
        counts.push(u32::try_from(new_count).unwrap_or(u32::MAX));
    }
}

/// All items below `level`, with the replacement made.
fn whole_level(
    tree: &OldTree<'_>,
    level: u32,
    replacement: Replacement,
) -> Result<Vec<Entry>, Missing> {
    let mut items = Vec::new();
    collect(tree, &tree.root, level, &mut items)?;
    Ok(spliced(items, replacement))
}

fn collect(
    tree: &OldTree<'_>,
    page: &Page,
    level: u32,
    out: &mut Vec<Entry>,
) -> Result<(), Missing> {
    if page.level <= level {
        out.extend(page.entries.iter().cloned());
        return Ok(());
    }
    for entry in &page.entries {
        collect(tree, &*tree.cache.get(&entry.key())?, level, out)?;
    }
    Ok(())
}

fn spliced(mut items: Vec<Entry>, replacement: Replacement) -> Vec<Entry> {
    let from = items.partition_point(|entry| *entry.first() < replacement.first);
    let to = items.partition_point(|entry| *entry.first() <= replacement.last);
    items.splice(from..to, replacement.new);
    items
}

/// Regroups the items around a replacement and says what that replaces one level up.
fn regroup(
    planner: Planner<'_>,
    tree: &OldTree<'_>,
    level: u32,
    replacement: Replacement,
    pages: &mut Vec<(NodeKey, Page)>,
) -> Result<Replacement, Missing> {
    let stretch = stretch_around(planner, tree, level, &replacement)?;
    let items: Vec<Entry> = stretch
        .iter()
        .flat_map(|page| page.entries.iter().cloned())
        .collect();
    let items = spliced(items, replacement);
    let mut made = Vec::new();
    let mut new = planner.group(items, Role::Group, level, &mut made);
    let mut old: Vec<(Slot, NodeKey)> = Vec::with_capacity(stretch.len());
    for page in &stretch {
        // The key of an old page is in its parent; recomputing it is cheaper than finding it there.
        let key = crate::spec::key_of(&page.spec(planner.context));
        if let Some(entry) = page.entries.first() {
            old.push((entry.first().clone(), key));
        }
    }
    let first = old.first().map(|(slot, _)| slot.clone());
    let same_front = old
        .iter()
        .zip(&new)
        .take_while(|((_, key), entry)| *key == entry.key())
        .count();
    let room = old.len().min(new.len()) - same_front;
    let same_back = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(room)
        .take_while(|((_, key), entry)| *key == entry.key())
        .count();
    let kept_keys: Vec<NodeKey> = old.iter().map(|(_, key)| *key).collect();
    pages.extend(made.into_iter().filter(|(key, _)| !kept_keys.contains(key)));
    new.truncate(new.len() - same_back);
    new.drain(..same_front);
    let removed = &old[same_front..old.len() - same_back];
    let anchor_slot = |n: usize| removed.get(n).map(|(slot, _)| slot.clone());
    let fallback = new.first().map(|entry| entry.first().clone()).or(first);
    let place = || {
        fallback
            .clone()
            .unwrap_or_else(|| Slot::between(None, None, 1).remove(0))
    };
    Ok(Replacement {
        first: anchor_slot(0).unwrap_or_else(place),
        last: anchor_slot(removed.len().wrapping_sub(1)).unwrap_or_else(place),
        removed: removed.len(),
        new,
    })
}

/// The old pages whose items have to be regrouped, from a certain boundary to a certain boundary.
fn stretch_around(
    planner: Planner<'_>,
    tree: &OldTree<'_>,
    level: u32,
    replacement: &Replacement,
) -> Result<Vec<Arc<Page>>, Missing> {
    let min = planner.fan_out().min;
    let mut stretch = std::collections::VecDeque::new();
    let mut touched = Some(tree.page_at(level, &replacement.first)?.page);
    while let Some(page) = touched {
        let next = tree.after(level, &page)?;
        touched = next.filter(|next| {
            next.entries
                .first()
                .is_some_and(|entry| *entry.first() <= replacement.last)
        });
        stretch.push_back(page);
    }
    let certain = |left: &Page, right: &Page| {
        let anchors: Vec<u64> = left
            .entries
            .iter()
            .chain(&right.entries)
            .map(|entry| anchor_at_level(entry.anchor(), level))
            .collect();
        is_local_minimum(&anchors, left.entries.len(), min)
    };
    // To the left: unchanged pages until one starts at a certain boundary.
    let mut unchanged = false;
    while let Some(page) = stretch.front().cloned() {
        let Some(left) = tree.before(level, &page)? else {
            break;
        };
        if unchanged && certain(&left, &page) {
            break;
        }
        stretch.push_front(left);
        unchanged = true;
    }
    // To the right: unchanged pages until the one behind starts at a certain boundary.
    let mut unchanged = false;
    while let Some(page) = stretch.back().cloned() {
        let Some(right) = tree.after(level, &page)? else {
            break;
        };
        if unchanged && certain(&page, &right) {
            break;
        }
        stretch.push_back(right);
        unchanged = true;
    }
    Ok(stretch.into())
}
