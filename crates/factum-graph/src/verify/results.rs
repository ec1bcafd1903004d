//! Statuses, claims, and what nodes hand on.

use std::collections::HashSet;

use super::FindingClass::{Claim as ClaimClass, Evidence, Generation, Status};
use super::shape::{Claim, Node, NodeOutput, Run, SlotRow, Spec, short};
use super::tree::Index;
use super::{Report, is_hex_digest};

pub(super) fn check(run: &Run<'_>, index: &Index<'_>, report: &mut Report) {
    let generations = run.top.value("generations").as_object();
    let by_model = generations.is_some_and(|all| !all.is_empty());
    for (node, children) in run.nodes.iter().zip(&index.children) {
        check_status_rules(&node.result, report);
        match &node.spec {
            Spec::Leaf { slot, .. } => check_leaf_status(node, slot, report),
            Spec::Reduction { .. } => {
                let children: Vec<&NodeOutput<'_>> =
                    children.iter().map(|&n| &run.nodes[n].result).collect();
                check_reduction_status(node, &children, report);
                check_handed_on(node, &children, report);
            }
        }
        check_claims(node, by_model, report);
        check_generation(run, node, report);
    }
}

// What holds for a status whatever the node is.
fn check_status_rules(result: &NodeOutput<'_>, report: &mut Report) {
    let place = &result.place;
    let diagnosed = result.diagnostic.is_some();
    match result.status {
        "INVALID" => {
            report.require(diagnosed, Status, place, "is INVALID without a diagnosis");
            let none = result.claims.is_empty();
            report.require(none, Status, place, "is INVALID, but hands on claims");
        }
        "VALID" | "PARTIAL" => {
            report.require(
                !diagnosed,
                Status,
                place,
                "has a diagnosis, but is not INVALID",
            );
        }
        "INELIGIBLE" => {
            let empty = result.claims.is_empty()
                && result.withheld.is_empty()
                && result.evidence.is_empty()
                && result.generation.is_none()
                && !diagnosed;
            report.require(empty, Status, place, "is INELIGIBLE, but not empty");
        }
        other => report.add(
            Status,
            place,
            format!("has the unknown status {}", short(other)),
        ),
    }
}

fn check_leaf_status(node: &Node<'_>, slot: &SlotRow<'_>, report: &mut Report) {
    let status = node.result.status;
    let place = &node.result.place;
    if slot.eligible {
        let fitting = matches!(status, "VALID" | "INVALID");
        report.require(
            fitting,
            Status,
            place,
            "is an eligible leaf, so VALID or INVALID",
        );
    } else {
        let fitting = status == "INELIGIBLE";
        report.require(
            fitting,
            Status,
            place,
            "is a leaf that is not eligible, so INELIGIBLE",
        );
    }
}

fn check_reduction_status(node: &Node<'_>, children: &[&NodeOutput<'_>], report: &mut Report) {
    let incomplete = children
        .iter()
        .any(|child| matches!(child.status, "INVALID" | "PARTIAL"));
    let expected = if incomplete { "PARTIAL" } else { "VALID" };
    if node.result.status != expected && node.result.status != "INVALID" {
        let message = format!("has children that make it {expected} or INVALID");
        report.add(Status, &node.result.place, message);
    }
}

fn check_handed_on(node: &Node<'_>, children: &[&NodeOutput<'_>], report: &mut Report) {
    let given: HashSet<&str> = children
        .iter()
        .filter(|child| matches!(child.status, "VALID" | "PARTIAL"))
        .flat_map(|child| &child.claims)
        .flat_map(|claim| &claim.evidence)
        .copied()
        .collect();
    for piece in &node.result.evidence {
        let known = given.contains(piece.id);
        report.require(
            known,
            Evidence,
            &piece.place,
            "was handed on by none of its children",
        );
    }
}

fn check_claims(node: &Node<'_>, by_model: bool, report: &mut Report) {
    for claim in node.result.claims.iter().chain(&node.result.withheld) {
        check_citations(claim, &node.result, report);
        check_support(claim, node, by_model, report);
    }
    for claim in &node.result.withheld {
        let message = "is withheld, although supported";
        report.require(
            claim.verdict != "supported",
            ClaimClass,
            &claim.place,
            message,
        );
    }
}

fn check_citations(claim: &Claim<'_>, result: &NodeOutput<'_>, report: &mut Report) {
    let place = &claim.place;
    report.require(
        !claim.evidence.is_empty(),
        ClaimClass,
        place,
        "cites nothing",
    );
    let mut seen = HashSet::new();
    for id in &claim.evidence {
        report.require(
            seen.insert(id),
            ClaimClass,
            place,
            "cites the same evidence twice",
        );
        let known = result.evidence.iter().any(|piece| piece.id == *id);
        report.require(
            known,
            ClaimClass,
            place,
            "cites evidence that the node does not hold",
        );
    }
}

fn check_support(claim: &Claim<'_>, node: &Node<'_>, by_model: bool, report: &mut Report) {
    let place = &claim.place;
    let quotes: Vec<&str> = node
        .result
        .evidence
        .iter()
        .filter(|piece| claim.evidence.contains(&piece.id))
        .map(|piece| piece.quote)
        .collect();
    match (claim.verdict, claim.method) {
        ("supported", "verbatim") => {
            let exact = claim.values.iter().any(|value| quotes.contains(value));
            report.require(
                exact,
                ClaimClass,
                place,
                "is verbatim, but no field is a cited quote",
            );
        }
        ("supported", "fact-line") => {
            let states = |quote: &&str| {
                let stands =
                    |value: &&str| quote.contains(value) || holds_text(node.transformation, value);
                claim.values.iter().all(stands)
            };
            let message = "is a fact line, but no cited quote holds all its values";
            report.require(quotes.iter().any(states), ClaimClass, place, message);
        }
        // Where rules alone support claims, what no rule states is unsupported by them. Extraction makes no such claim.
        ("unsupported", "fact-line") if by_model => {}
        ("supported" | "unsupported", "quoted" | "judge")
        | ("unsupported" | "unchecked", "none") => {}
        _ => report.add(
            ClaimClass,
            place,
            "has a verdict that its method can't give",
        ),
    }
}

// A rule may set a field to a constant, and rules are part of the transformation.
fn holds_text(value: &serde_json::Value, wanted: &str) -> bool {
    match value {
        serde_json::Value::String(text) => text == wanted,
        serde_json::Value::Array(items) => items.iter().any(|item| holds_text(item, wanted)),
        serde_json::Value::Object(map) => map.values().any(|item| holds_text(item, wanted)),
        _ => false,
    }
}

fn check_generation(run: &Run<'_>, node: &Node<'_>, report: &mut Report) {
    let Some(id) = node.result.generation else {
        return;
    };
    let place = format!("{}.generation", node.result.place);
    report.require(
        is_hex_digest(id),
        Generation,
        &place,
        "is not a SHA-256 digest",
    );
    let held = run.top.value("generations").get(id).is_some();
    report.require(
        held,
        Generation,
        &place,
        "is not among the run's generations",
    );
}
