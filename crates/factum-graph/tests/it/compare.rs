use factum_base::NodeKey;
use factum_casefile::{NodeStatus, Verdict};
use factum_graph::compare::{What, compare_runs};
use factum_graph::run_file::RunFile;
use serde_json::json;

use crate::fixture::fixture;

#[test]
fn a_run_equals_itself_in_whatever_order_its_nodes_come() {
    let run = fixture().run.clone();
    let mut turned = run.clone();
    turned.nodes.reverse();
    turned.run_id = "r-2".to_owned();
    turned.nodes[0].reused = true;
    let comparison = compare_runs(&run, &turned);
    assert!(comparison.equal, "{comparison:?}");
    assert_eq!(comparison.nodes_compared, run.nodes.len() as u64);
}

fn generation(run: &RunFile) -> String {
    run.generations.keys().next().unwrap().clone()
}

type Change = (What, fn(&mut RunFile));

fn changes() -> Vec<Change> {
    vec![
        (What::OnlyInFirst, |r| drop(r.nodes.remove(0))),
        (What::OnlyInSecond, |r| {
            let mut node = r.nodes[0].clone();
            node.name.push_str(" new");
            r.nodes.push(node);
        }),
        (What::OnlyInSecond, |r| r.nodes.extend_from_within(..1)),
        (What::Key, |r| r.nodes[0].key = NodeKey::of(b"other")),
        (What::Status, |r| {
            r.nodes[0].result.status = NodeStatus::Partial;
        }),
        (What::Claims, |r| {
            for value in r.nodes[0].result.claims[0].fields.values_mut() {
                value.push('x');
            }
        }),
        (What::Claims, |r| {
            r.nodes[0].result.claims[0].evidence.clear();
        }),
        (What::Claims, |r| {
            r.nodes[0].result.claims[0].support.verdict = Verdict::Unchecked;
        }),
        (What::Withheld, |r| r.nodes[0].result.withheld.clear()),
        (What::Evidence, |r| {
            for evidence in r.nodes[0].result.evidence.values_mut() {
                evidence.quote.push('x');
            }
        }),
        (What::Generation, |r| {
            r.nodes[0].result.generation = Some("x".to_owned());
        }),
        (What::Generation, |r| {
            r.generations
                .insert(generation(r), json!({"text": "other"}));
        }),
        (What::Diagnostic, |r| {
            r.nodes[0].result.diagnostic = Some("x".to_owned());
        }),
    ]
}

#[test]
fn each_kind_of_difference_is_found_by_itself() {
    let run = fixture().run.clone();
    for (what, change) in changes() {
        let mut other = run.clone();
        change(&mut other);
        let comparison = compare_runs(&run, &other);
        assert!(!comparison.equal);
        let found: Vec<What> = comparison.differences.iter().map(|d| d.what).collect();
        assert_eq!(found, [what]);
    }
}

#[test]
fn how_long_a_generation_took_is_no_difference() {
    let run = fixture().run.clone();
    let mut other = run.clone();
    other
        .generations
        .insert(generation(&run), json!({"text": "{}", "seconds": 9}));
    assert!(compare_runs(&run, &other).equal);
}

#[test]
fn a_comparison_holds_no_word_of_any_document() {
    let run = fixture().run.clone();
    let mut other = run.clone();
    for node in &mut other.nodes {
        node.key = NodeKey::of(b"other");
        node.result.claims.clear();
        node.result.withheld.clear();
        node.result.evidence.clear();
        node.result.diagnostic = Some("Product".to_owned());
    }
    let text = serde_json::to_string(&compare_runs(&run, &other)).unwrap();
    for word in ["Product", "Oktober", "delivery", ".txt", "made up", "Kopf"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn two_empty_runs_are_not_equal() {
    let mut run = fixture().run.clone();
    run.nodes.clear();
    assert!(!compare_runs(&run, &run).equal);
}
