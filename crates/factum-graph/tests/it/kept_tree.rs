use std::collections::{BTreeMap, BTreeSet};

use factum_base::{DocumentId, NodeKey, PrincipalId, Span, TextDigest};
use factum_casefile::profile::Tree;
use factum_casefile::{Slot, SlotState};
use factum_graph::{
    Change, DocumentInput, Entry, PageCache, Planner, Segment, SpecContext, SpecPart, advance,
    difference,
};
use proptest::prelude::*;

fn context() -> SpecContext {
    let part = SpecPart::from_canonical("{}".to_owned());
    SpecContext {
        principal: PrincipalId::new("local").unwrap(),
        leaf: part.clone(),
        reduction: part,
    }
}

fn document(slot: &Slot, id: u32, version: u32, segments: u32, eligible: bool) -> DocumentInput {
    DocumentInput {
        state: SlotState {
            slot: slot.clone(),
            doc_id: DocumentId::new(format!("doc-{id}")).unwrap(),
            version,
            text_sha256: TextDigest::of(&version.to_be_bytes()),
            active: eligible,
            eligible,
            access_revision: 0,
        },
        segments: (0..segments)
            .map(|n| Segment {
                span: Span::new(n * 10, n * 10 + 10),
                anchor: u64::from(n * 7919 + id),
            })
            .collect(),
    }
}

/// Every node under a root, by walking: name to key.
fn walk(cache: &PageCache, root: NodeKey) -> BTreeMap<String, NodeKey> {
    let mut found = BTreeMap::new();
    let mut open = vec![root];
    while let Some(key) = open.pop() {
        let page = cache.get(&key).expect("every page of a kept tree is there");
        assert!(found.insert(page.name(), key).is_none(), "names are unique");
        for entry in &page.entries {
            match entry {
                Entry::Leaf(leaf) => {
                    assert!(
                        found.insert(leaf.name(), leaf.key).is_none(),
                        "names are unique"
                    );
                }
                Entry::Node(node) => open.push(node.key),
            }
        }
    }
    found
}

#[derive(Debug, Clone)]
enum Op {
    Insert {
        at: prop::sample::Index,
        segments: u32,
    },
    Edit {
        at: prop::sample::Index,
        segments: u32,
    },
    Withdraw {
        at: prop::sample::Index,
    },
    Remove {
        at: prop::sample::Index,
    },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let at = any::<prop::sample::Index>;
    prop::collection::vec(
        prop_oneof![
            4 => (at(), 1u32..4).prop_map(|(at, segments)| Op::Insert { at, segments }),
            3 => (at(), 1u32..30).prop_map(|(at, segments)| Op::Edit { at, segments }),
            1 => at().prop_map(|at| Op::Withdraw { at }),
            2 => at().prop_map(|at| Op::Remove { at }),
        ],
        1..40,
    )
}

struct Case {
    documents: BTreeMap<Slot, DocumentInput>,
    next: u32,
}

impl Case {
    fn new(count: u32) -> Self {
        let slots = Slot::between(None, None, count as usize);
        let documents = slots
            .iter()
            .zip(0..)
            .map(|(slot, id)| (slot.clone(), document(slot, id, 1, 1, true)))
            .collect();
        Self {
            documents,
            next: count,
        }
    }

    fn slot(&self, at: prop::sample::Index) -> Option<Slot> {
        (!self.documents.is_empty())
            .then(|| {
                self.documents
                    .keys()
                    .nth(at.index(self.documents.len()))
                    .cloned()
            })
            .flatten()
    }

    fn apply(&mut self, op: &Op) -> Option<Change> {
        self.next += 1;
        let change = match op {
            Op::Insert { at, segments } => {
                let n = at.index(self.documents.len() + 1);
                let keys: Vec<&Slot> = self.documents.keys().collect();
                let low = n.checked_sub(1).map(|n| keys[n]);
                let slot = Slot::between(low, keys.get(n).copied(), 1).remove(0);
                Change::Put(document(&slot, self.next, 1, *segments, true))
            }
            Op::Edit { at, segments } => {
                let mut changed = self.documents[&self.slot(*at)?].clone();
                changed = DocumentInput {
                    state: SlotState {
                        version: self.next,
                        text_sha256: TextDigest::of(&self.next.to_be_bytes()),
                        ..changed.state
                    },
                    segments: document(
                        &Slot::between(None, None, 1)[0],
                        self.next,
                        1,
                        *segments,
                        true,
                    )
                    .segments,
                };
                Change::Put(changed)
            }
            Op::Withdraw { at } => {
                let mut changed = self.documents[&self.slot(*at)?].clone();
                changed.state.active = !changed.state.active;
                changed.state.eligible = changed.state.active;
                Change::Put(changed)
            }
            Op::Remove { at } => Change::Remove(self.slot(*at)?),
        };
        match &change {
            Change::Put(document) => {
                self.documents
                    .insert(document.state.slot.clone(), document.clone());
            }
            Change::Remove(slot) => {
                self.documents.remove(slot);
            }
        }
        Some(change)
    }

    fn list(&self) -> Vec<DocumentInput> {
        self.documents.values().cloned().collect()
    }
}

fn check(case: &mut Case, tree: &Tree, ops: &[Op]) {
    let context = context();
    let planner = Planner {
        context: &context,
        tree,
    };
    let mut cache = PageCache::default();
    let first = planner.plan(&case.list());
    first
        .pages
        .iter()
        .for_each(|(key, page)| cache.insert(*key, page.clone()));
    let mut root = first.root;
    for op in ops {
        let Some(change) = case.apply(op) else {
            continue;
        };
        let before = root;
        let step = advance(planner, &cache, root, &change).expect("nothing is missing");
        step.pages
            .iter()
            .for_each(|(key, page)| cache.insert(*key, page.clone()));
        root = step.root;
        let oracle = planner.plan(&case.list());
        assert_eq!(root, oracle.root, "after {op:?}");
        assert_eq!(step.nodes, oracle.nodes);
        let mut naive = PageCache::default();
        oracle
            .pages
            .iter()
            .for_each(|(key, page)| naive.insert(*key, page.clone()));
        let (old, new) = (walk(&cache, before), walk(&cache, root));
        assert_eq!(new, walk(&naive, oracle.root));
        assert_eq!(cache.get(&root), naive.get(&root), "the root's counts too");
        check_difference(&cache, before, root, &old, &new);
    }
}

fn check_difference(
    cache: &PageCache,
    before: NodeKey,
    root: NodeKey,
    old: &BTreeMap<String, NodeKey>,
    new: &BTreeMap<String, NodeKey>,
) {
    let found = difference(cache, Some(before), root).expect("nothing is missing");
    let keys = |names: &BTreeMap<String, NodeKey>| names.values().copied().collect::<BTreeSet<_>>();
    let (old, new) = (keys(old), keys(new));
    assert_eq!(
        found.new.iter().map(|n| n.key).collect::<BTreeSet<_>>(),
        new.difference(&old).copied().collect()
    );
    assert_eq!(
        found.old.iter().map(|n| n.key).collect::<BTreeSet<_>>(),
        old.difference(&new).copied().collect()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_kept_tree_equals_a_plan_from_scratch(start in 0u32..150, ops in ops(), min in 2u32..5, extra in 0u32..5) {
        let tree = Tree { min, max: 2 * min + extra, ..Tree::default() };
        check(&mut Case::new(start), &tree, &ops);
    }
}

#[test]
fn pages_read_and_made_grow_with_the_logarithm() {
    let context = context();
    let tree = Tree::default();
    let planner = Planner {
        context: &context,
        tree: &tree,
    };
    let mut made = Vec::new();
    for count in [1_000u32, 10_000, 100_000] {
        let case = Case::new(count);
        let plan = planner.plan(&case.list());
        let stored: BTreeMap<NodeKey, factum_graph::Page> = plan.pages.iter().cloned().collect();
        let slot = case.documents.keys().nth(count as usize / 2).unwrap();
        let mut changed = case.documents[slot].clone();
        changed.state.version = 2;
        let mut cache = PageCache::default();
        let step = loop {
            match advance(planner, &cache, plan.root, &Change::Put(changed.clone())) {
                Ok(step) => break step,
                Err(missing) => cache.insert(missing.0, stored[&missing.0].clone()),
            }
        };
        // One leaf and one reduction a level.
        let height = stored[&plan.root].level as usize;
        assert_eq!(step.pages.len(), height, "{count} documents");
        assert!(
            cache.len() <= 7 * height,
            "{} pages read for {count} documents",
            cache.len()
        );
        made.push(step.pages.len());
    }
    assert!(made[2] <= made[0] + 4, "{made:?}");
}

#[test]
fn an_inserted_document_touches_few_groups() {
    let context = context();
    let tree = Tree::default();
    let planner = Planner {
        context: &context,
        tree: &tree,
    };
    let mut case = Case::new(10_000);
    let plan = planner.plan(&case.list());
    let mut cache = PageCache::default();
    plan.pages
        .iter()
        .for_each(|(key, page)| cache.insert(*key, page.clone()));
    let height = cache.get(&plan.root).unwrap().level as usize;
    for at in [0, 17, 5_000, 9_999] {
        let change = case
            .apply(&Op::Insert {
                at: index_of(at),
                segments: 1,
            })
            .unwrap();
        let step = advance(planner, &cache, plan.root, &change).unwrap();
        assert!(
            step.pages.len() <= 4 * height,
            "{} pages for one insertion",
            step.pages.len()
        );
        match change {
            Change::Put(document) => case.documents.remove(&document.state.slot),
            Change::Remove(_) => None,
        };
    }
}

// `Index` has no public constructor from a number; a strategy that yields just one value has.
fn index_of(at: usize) -> prop::sample::Index {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    loop {
        let index = any::<prop::sample::Index>()
            .new_tree(&mut runner)
            .unwrap()
            .current();
        if index.index(10_001).abs_diff(at) < 400 {
            return index;
        }
    }
}
