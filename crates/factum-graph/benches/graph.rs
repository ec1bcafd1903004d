//! Planning, keys, and one edit of a kept tree.

use divan::{Bencher, black_box};
use factum_base::{DocumentId, PrincipalId, Span, TextDigest, sha256};
use factum_casefile::profile::Tree;
use factum_casefile::{Slot, SlotState};
use factum_graph::spec::key_of;
use factum_graph::{
    Change, DocumentInput, PageCache, Planner, Segment, SpecContext, SpecPart, advance,
};

fn main() {
    divan::main();
}

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

fn context() -> SpecContext {
    // About as long as the built-in profiles' transformation.
    let part = SpecPart::from_canonical(format!("{{\"profile\":\"{}\"}}", "x".repeat(900)));
    SpecContext {
        principal: PrincipalId::new("local").expect("an id"),
        leaf: part.clone(),
        reduction: part,
    }
}

fn documents(count: usize) -> Vec<DocumentInput> {
    Slot::between(None, None, count)
        .into_iter()
        .enumerate()
        .map(|(n, slot)| DocumentInput {
            state: SlotState {
                slot,
                doc_id: DocumentId::new(format!("folder/document-{n:07}.txt")).expect("an id"),
                version: 1,
                text_sha256: TextDigest::of(&n.to_be_bytes()),
                active: true,
                eligible: true,
                access_revision: 0,
            },
            segments: vec![Segment {
                span: Span::new(0, 4_000),
                anchor: 0,
            }],
        })
        .collect()
}

#[divan::bench(args = SIZES, sample_count = 5)]
fn plan_from_scratch(bencher: Bencher<'_, '_>, count: usize) {
    let (context, tree, documents) = (context(), Tree::default(), documents(count));
    let planner = Planner {
        context: &context,
        tree: &tree,
    };
    bencher.bench(|| planner.plan(black_box(&documents)));
}

#[divan::bench(args = SIZES)]
fn one_edit_of_a_kept_tree(bencher: Bencher<'_, '_>, count: usize) {
    let (context, tree, documents) = (context(), Tree::default(), documents(count));
    let planner = Planner {
        context: &context,
        tree: &tree,
    };
    let plan = planner.plan(&documents);
    let mut cache = PageCache::default();
    for (key, page) in &plan.pages {
        cache.insert(*key, page.clone());
    }
    let mut edited = documents[count / 2].clone();
    edited.state.version = 2;
    let change = Change::Put(edited);
    bencher.bench(|| advance(planner, &cache, plan.root, black_box(&change)));
}

#[divan::bench]
fn leaf_key(bencher: Bencher<'_, '_>) {
    let (context, document) = (context(), documents(1).remove(0));
    bencher.bench(|| {
        key_of(&context.leaf_spec(black_box(&document.state), Some(Span::new(0, 4_000))))
    });
}

#[divan::bench]
fn plain_sha256_over_the_same_bytes(bencher: Bencher<'_, '_>) {
    let (context, document) = (context(), documents(1).remove(0));
    let spec = context.leaf_spec(&document.state, Some(Span::new(0, 4_000)));
    bencher.bench(|| sha256(black_box(spec.as_bytes())));
}
