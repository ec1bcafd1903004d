//! Keeps a principal's tree up to date with the events, along changed paths only.

use std::collections::{BTreeMap, BTreeSet};

use factum_base::{DocumentId, NodeKey, PrincipalId};
use factum_casefile::profile::TreeKind;
use factum_casefile::{Event, EventKind, Profile, Slot};
use factum_graph::{
    Change, DocumentInput, Entry, Page, PageCache, Planner, Segment, SpecContext, advance,
    cut_segments,
};
use factum_store::{Head, PrincipalDocument, StoreError, Tx};

use crate::error::EngineError;
use crate::permission::Permitted;

/// Above this many changed documents a plan from scratch is quicker than as many walks.
const MOST_STEPS: usize = 2_000;
/// Pages read ahead at once.
const MOST_PREFETCHED: usize = 64;

/// A tree that is up to date with a case file's latest event.
#[derive(Debug, Clone)]
pub(crate) struct CurrentTree {
    pub(crate) root: NodeKey,
    /// Pages that the store does not have yet.
    pub(crate) new_pages: Vec<(NodeKey, Page)>,
    /// Pages at hand, the new ones among them.
    pub(crate) cache: PageCache,
    /// Segments that were cut now, to be kept.
    pub(crate) new_segments: Vec<(factum_base::TextDigest, Vec<Segment>)>,
}

impl CurrentTree {
    /// Nodes of the whole tree. Serving does not ask, and so reads no page.
    pub(crate) async fn nodes(&mut self, tx: &mut Tx, case_no: i64) -> Result<u64, EngineError> {
        fetch(tx, case_no, &mut self.cache, self.root).await?;
        Ok(self
            .cache
            .get(&self.root)
            .map_or(0, |page| page.nodes())
            .into())
    }
}

/// What planning needs to know.
#[derive(Clone, Copy)]
pub(crate) struct PlanFor<'a> {
    pub(crate) permitted: &'a Permitted,
    pub(crate) principal: &'a PrincipalId,
    pub(crate) profile: &'a Profile,
    pub(crate) context: &'a SpecContext,
}

impl PlanFor<'_> {
    fn planner(&self) -> Planner<'_> {
        Planner {
            context: self.context,
            tree: &self.profile.tree,
        }
    }

    /// The tree the snapshot demands now: the kept one of `head`, with all later events applied, or
    /// one from scratch where there is none to go on from.
    pub(crate) async fn current_tree(
        &self,
        tx: &mut Tx,
        head: Option<&Head>,
    ) -> Result<CurrentTree, EngineError> {
        let case = &self.permitted.case;
        let kept = head.filter(|head| head.context == self.context.digest());
        if head.is_some_and(|head| head.planned_event > case.last_event) {
            return Err(StoreError::Damaged(
                "a head is ahead of its case file's events".to_owned(),
            )
            .into());
        }
        let Some(head) = kept else {
            return self.plan_from_scratch(tx).await;
        };
        let changes = if head.planned_event == case.last_event {
            Some(Vec::new())
        } else {
            let events = tx.events_after(case.case_no, head.planned_event).await?;
            self.changes(tx, events.iter().map(|(event, _)| event))
                .await?
        };
        match changes {
            Some(changes) if changes.is_empty() || self.profile.tree.kind == TreeKind::Stable => {
                self.step_by_step(tx, head.planned_root, changes).await
            }
            _ => self.plan_from_scratch(tx).await,
        }
    }

    async fn plan_from_scratch(&self, tx: &mut Tx) -> Result<CurrentTree, EngineError> {
        let documents = self.permitted.documents(tx, self.principal).await?;
        let mut new_segments = Vec::new();
        let mut inputs = Vec::with_capacity(documents.len());
        for document in documents {
            inputs.push(self.input(tx, document, &mut new_segments).await?);
        }
        let plan = self.planner().plan(&inputs);
        let mut cache = PageCache::default();
        for (key, page) in &plan.pages {
            cache.insert(*key, page.clone());
        }
        Ok(CurrentTree {
            root: plan.root,
            new_pages: plan.pages,
            cache,
            new_segments,
        })
    }

    /// What the events mean for this tree; `None` where they concern all of it.
    async fn changes<'e>(
        &self,
        tx: &mut Tx,
        events: impl Iterator<Item = &'e Event>,
    ) -> Result<Option<Vec<Concerned>>, EngineError> {
        let case_no = self.permitted.case.case_no;
        let mut documents: BTreeSet<&DocumentId> = BTreeSet::new();
        let mut left: BTreeMap<&DocumentId, Vec<&Slot>> = BTreeMap::new();
        for event in events {
            if event
                .kind
                .principal()
                .is_some_and(|principal| principal != self.principal)
            {
                continue;
            }
            let Some(doc_id) = event.kind.doc_id() else {
                return Ok(None);
            };
            documents.insert(doc_id);
            if let EventKind::Moved { from, .. } = &event.kind {
                left.entry(doc_id).or_default().push(from);
            }
        }
        if documents.len() > MOST_STEPS {
            return Ok(None);
        }
        let mut concerned = Vec::with_capacity(documents.len());
        for doc_id in documents {
            let document = tx
                .principal_document(
                    case_no,
                    self.principal.as_str(),
                    self.permitted.access.case,
                    doc_id,
                )
                .await?;
            // A document without a slot never had one.
            let Some(document) = document else { continue };
            let mut leaves = left.remove(doc_id).unwrap_or_default();
            leaves.retain(|slot| **slot != document.state.slot);
            concerned.push(Concerned {
                document,
                left: leaves.into_iter().cloned().collect(),
            });
        }
        Ok(Some(concerned))
    }

    async fn step_by_step(
        &self,
        tx: &mut Tx,
        root: NodeKey,
        concerned: Vec<Concerned>,
    ) -> Result<CurrentTree, EngineError> {
        let case_no = self.permitted.case.case_no;
        let mut cache = PageCache::default();
        let mut new_segments = Vec::new();
        let mut steps = Vec::new();
        // Old places first: a document may have moved to where another stood.
        for one in &concerned {
            steps.extend(one.left.iter().cloned().map(Change::Remove));
        }
        for one in concerned {
            steps.push(Change::Put(
                self.input(tx, one.document, &mut new_segments).await?,
            ));
        }
        let mut made: BTreeMap<NodeKey, Page> = BTreeMap::new();
        let mut root = root;
        for step in &steps {
            let plan = loop {
                match advance(self.planner(), &cache, root, step) {
                    Ok(plan) => break plan,
                    Err(missing) => fetch(tx, case_no, &mut cache, missing.0).await?,
                }
            };
            for (key, page) in plan.pages {
                cache.insert(key, page.clone());
                made.insert(key, page);
            }
            root = plan.root;
        }
        let new_pages = reachable(root, made);
        Ok(CurrentTree {
            root,
            new_pages,
            cache,
            new_segments,
        })
    }

    async fn input(
        &self,
        tx: &mut Tx,
        document: PrincipalDocument,
        new_segments: &mut Vec<(factum_base::TextDigest, Vec<Segment>)>,
    ) -> Result<DocumentInput, EngineError> {
        let rule = &self.profile.segments;
        let state = document.state;
        let segments = if !state.eligible {
            Vec::new()
        } else if rule.whole || document.chars <= rule.max_chars {
            vec![Segment {
                span: factum_base::Span::new(0, document.chars),
                anchor: 0,
            }]
        } else {
            let name = segment_rule(rule)?;
            if let Some(segments) = tx.segments(&state.text_sha256, &name).await? {
                segments
            } else {
                let segments = cut_segments(&tx.text(&state.text_sha256).await?, rule);
                new_segments.push((state.text_sha256, segments.clone()));
                segments
            }
        };
        Ok(DocumentInput { state, segments })
    }
}

struct Concerned {
    document: PrincipalDocument,
    /// Slots it moved away from.
    left: Vec<Slot>,
}

/// The name under which cut segments are kept.
pub(crate) fn segment_rule(
    rule: &factum_casefile::profile::Segments,
) -> Result<String, EngineError> {
    Ok(format!(
        "{} {}",
        factum_graph::segments::SEGMENTATION,
        factum_base::canonical_json(rule)?
    ))
}

/// Adds a page of the store to a cache, and the pages right below it: a walk goes down and to the
/// neighbours, so these are what it asks for next.
pub(crate) async fn fetch(
    tx: &mut Tx,
    case_no: i64,
    cache: &mut PageCache,
    key: NodeKey,
) -> Result<(), EngineError> {
    if cache.contains(&key) {
        return Ok(());
    }
    let page = tx.page(case_no, &key).await?;
    let below: Vec<NodeKey> = page
        .entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Node(node) if !cache.contains(&node.key) => Some(node.key),
            _ => None,
        })
        .collect();
    cache.insert(key, page);
    // A root of the fixed tree can have any number of groups.
    if below.len() <= MOST_PREFETCHED {
        for (key, page) in tx.pages(case_no, &below).await? {
            cache.insert(key, page);
        }
    }
    Ok(())
}

/// The pages of `made` that the tree under `root` still has, children first: a later step may have
/// replaced what an earlier one made.
fn reachable(root: NodeKey, made: BTreeMap<NodeKey, Page>) -> Vec<(NodeKey, Page)> {
    let mut out = Vec::new();
    let mut open = vec![root];
    let mut made = made;
    while let Some(key) = open.pop() {
        let Some(page) = made.remove(&key) else {
            continue;
        };
        open.extend(page.entries.iter().map(factum_graph::Entry::key));
        out.push((key, page));
    }
    out.reverse();
    out
}
