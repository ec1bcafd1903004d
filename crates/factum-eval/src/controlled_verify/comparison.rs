//! Two builds of one step, node by node: worked out again, in the form in which comparisons are recorded.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::json::{digest, field, list, sha256_hex, text};
use super::tree::{Node, Tree};

const ASPECTS: [&str; 7] = [
    "key",
    "status",
    "claims",
    "withheld",
    "evidence",
    "generation",
    "diagnostic",
];

/// The comparison of two runs.
pub(super) fn compare(first: &Tree<'_>, second: &Tree<'_>) -> Value {
    let mut differences: Vec<Value> = Vec::new();
    let mut open: BTreeMap<&str, &Node<'_>> = BTreeMap::new();
    for node in &first.nodes {
        if let Some(earlier) = open.insert(node.name, node) {
            differences.push(alone(earlier, true));
        }
    }
    let mut compared = 0_u64;
    for node in &second.nodes {
        let Some(other) = open.remove(node.name) else {
            differences.push(alone(node, false));
            continue;
        };
        compared += 1;
        let sides = aspects(other, first).into_iter().zip(aspects(node, second));
        for (what, (one, two)) in ASPECTS.into_iter().zip(sides) {
            if one != two {
                differences.push(json!({
                    "first": one, "name": node.name, "second": two, "what": what,
                }));
            }
        }
    }
    differences.extend(open.into_values().map(|node| alone(node, true)));
    json!({
        "differences": differences,
        "equal": compared > 0 && differences.is_empty(),
        "nodes_compared": compared,
    })
}

fn alone(node: &Node<'_>, in_first: bool) -> Value {
    let (first, second, what) = if in_first {
        (Some(node.key), None, "only_in_first")
    } else {
        (None, Some(node.key), "only_in_second")
    };
    json!({"first": first, "name": node.name, "second": second, "what": what})
}

/// What is compared of a node: a key, a word, or a digest.
fn aspects(node: &Node<'_>, tree: &Tree<'_>) -> [Option<String>; 7] {
    let result = node.result;
    let claims = |name: &str| {
        let claims = list(result, name).iter().map(|claim| {
            json!({
                "evidence": field(claim, "evidence"),
                "fields": field(claim, "fields"),
                "verdict": field(field(claim, "support"), "verdict"),
            })
        });
        Some(digest(&Value::Array(claims.collect())))
    };
    let generation = field(result, "generation").as_str().map(|input| {
        match field(tree.run, "generations").get(input) {
            Some(record) => {
                let parts = ["text", "token_ids", "stop"].map(|part| field(record, part).clone());
                format!("{input}/{}", digest(&Value::Array(parts.to_vec())))
            }
            None => input.to_owned(),
        }
    });
    [
        Some(node.key.to_owned()),
        Some(text(result, "status").to_owned()),
        claims("claims"),
        claims("withheld"),
        Some(digest(field(result, "evidence"))),
        generation,
        field(result, "diagnostic")
            .as_str()
            .map(|said| sha256_hex(said.as_bytes())),
    ]
}

/// Whether both roots have the same status and say the same.
pub(super) fn roots_equal(first: &Tree<'_>, second: &Tree<'_>) -> bool {
    let said = |tree: &Tree<'_>| {
        let root = tree.root()?;
        let claims = list(root.result, "claims").iter();
        let claims = claims.map(|claim| {
            [
                field(claim, "fields").clone(),
                field(claim, "evidence").clone(),
            ]
        });
        Some((
            text(root.result, "status").to_owned(),
            claims.collect::<Vec<_>>(),
        ))
    };
    let first = said(first);
    first.is_some() && first == said(second)
}
