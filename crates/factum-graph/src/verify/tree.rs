//! Keys, names, the tree's form, and access fingerprints.

use std::collections::HashMap;

use super::FindingClass::{AccessFingerprint, Children, Key, Name, Root, Transformation};
use super::shape::{Node, Run, Spec, canonical_digest};
use super::{Report, hex, tagged};

/// What the checks of other modules need of the tree.
pub(super) struct Index<'j> {
    /// Node numbers by name.
    pub(super) by_name: HashMap<&'j str, usize>,
    /// For each node the numbers of its children that stand before it.
    pub(super) children: Vec<Vec<usize>>,
}

/// What a node passes up to its parent.
#[derive(Clone)]
struct Below<'j> {
    access: [u8; 32],
    first: &'j str,
    last: &'j str,
    start: u64,
    level: u64,
    role: &'j str,
}

pub(super) fn check<'j>(run: &Run<'j>, report: &mut Report) -> Index<'j> {
    let index = index(run, report);
    check_root(run, &index, report);
    let mut below: Vec<Below<'j>> = Vec::with_capacity(run.nodes.len());
    for (node, children) in run.nodes.iter().zip(&index.children) {
        check_key(node, run.principal, report);
        let passed: Vec<Below<'j>> = children.iter().map(|&n| below[n].clone()).collect();
        below.push(match &node.spec {
            Spec::Leaf { .. } => check_leaf(node, report),
            Spec::Reduction { .. } => {
                check_children_keys(run, node, children, report);
                check_reduction(node, &passed, report)
            }
        });
    }
    check_transformations(run, report);
    index
}

fn index<'j>(run: &Run<'j>, report: &mut Report) -> Index<'j> {
    let mut by_name = HashMap::new();
    for (n, node) in run.nodes.iter().enumerate() {
        if by_name.insert(node.name, n).is_some() {
            report.add(
                Children,
                &node.place,
                "has the same name as an earlier node",
            );
        }
    }
    let mut parents = vec![0usize; run.nodes.len()];
    let mut children = Vec::with_capacity(run.nodes.len());
    for (n, node) in run.nodes.iter().enumerate() {
        let mut found = Vec::with_capacity(node.children.len());
        for (c, name) in node.children.iter().enumerate() {
            let place = format!("{}.children[{c}]", node.place);
            match by_name.get(name) {
                None => report.add(Children, &place, "names no node of this run"),
                Some(&child) if child >= n => {
                    report.add(
                        Children,
                        &place,
                        "names a node that does not stand before it",
                    );
                }
                Some(&child) => {
                    parents[child] += 1;
                    found.push(child);
                }
            }
        }
        children.push(found);
    }
    for (node, &count) in run.nodes.iter().zip(&parents).rev().skip(1) {
        if count != 1 {
            report.add(
                Children,
                &node.place,
                format!("has {count} parents instead of one"),
            );
        }
    }
    Index { by_name, children }
}

fn check_root(run: &Run<'_>, index: &Index<'_>, report: &mut Report) {
    let Some(last) = run.nodes.last() else {
        return report.add(Root, "run.nodes", "has no node, so there is no root");
    };
    report.require(
        last.key == run.root,
        Root,
        "run.root",
        "is not the key of the last node",
    );
    let is_root = matches!(&last.spec, Spec::Reduction { role: "root", .. });
    report.require(
        is_root,
        Root,
        &last.place,
        "is the last node, but not of role root",
    );
    for node in run.nodes.iter().rev().skip(1) {
        if matches!(&node.spec, Spec::Reduction { role: "root", .. }) {
            report.add(Root, &node.place, "is of role root, but not the last node");
        }
    }
    let named = index
        .by_name
        .get("root")
        .is_some_and(|&n| n + 1 == run.nodes.len());
    report.require(
        named,
        Root,
        &last.place,
        "is the last node, but not named root",
    );
}

fn check_key(node: &Node<'_>, principal: &str, report: &mut Report) {
    let right = canonical_digest(node.spec_value).is_some_and(|digest| digest == node.key);
    let place = format!("{}.key", node.place);
    report.require(
        right,
        Key,
        &place,
        "is not the SHA-256 of the spec's RFC 8785 text",
    );
    let own = node
        .spec_value
        .get("principal")
        .and_then(serde_json::Value::as_str);
    let place = format!("{}.spec.principal", node.place);
    report.require(
        own == Some(principal),
        Transformation,
        &place,
        "is not the run's principal",
    );
}

fn check_children_keys(run: &Run<'_>, node: &Node<'_>, children: &[usize], report: &mut Report) {
    let Spec::Reduction { children_keys, .. } = &node.spec else {
        return;
    };
    let mut keys: Vec<&str> = children.iter().map(|&n| run.nodes[n].key).collect();
    keys.sort_unstable();
    let place = format!("{}.spec.children_keys", node.place);
    report.require(
        keys == *children_keys,
        Children,
        &place,
        "are not its children's sorted keys",
    );
}

fn check_leaf<'j>(node: &Node<'j>, report: &mut Report) -> Below<'j> {
    report.require(
        node.children.is_empty(),
        Children,
        &node.place,
        "is a leaf with children",
    );
    let Spec::Leaf { slot, segment } = &node.spec else {
        return Below {
            access: [0; 32],
            first: "",
            last: "",
            start: 0,
            level: 0,
            role: "",
        };
    };
    let start = segment.map_or(0, |(start, _)| start);
    check_name(node, &format!("leaf {} {start}", slot.slot), report);
    // The document's id, one byte each for active and eligible, the revision as eight bytes.
    let access = tagged(
        "factum/access/document/1",
        &[
            slot.doc_id.as_bytes(),
            &[u8::from(slot.active), u8::from(slot.eligible)],
            &slot.access_revision.to_be_bytes(),
        ],
    );
    Below {
        access,
        first: slot.slot,
        last: slot.slot,
        start,
        level: 0,
        role: "leaf",
    }
}

fn check_reduction<'j>(node: &Node<'j>, below: &[Below<'j>], report: &mut Report) -> Below<'j> {
    let Spec::Reduction {
        role,
        access_fingerprint,
        ..
    } = node.spec
    else {
        return Below {
            access: [0; 32],
            first: "",
            last: "",
            start: 0,
            level: 0,
            role: "",
        };
    };
    // The children's fingerprints in document order.
    let parts: Vec<&[u8]> = below.iter().map(|child| &child.access[..]).collect();
    let access = tagged("factum/access/node/1", &parts);
    let place = format!("{}.spec.access_fingerprint", node.place);
    let right = hex(&access) == access_fingerprint;
    report.require(
        right,
        AccessFingerprint,
        &place,
        "is not that of the documents below",
    );
    check_order(node, below, report);
    check_roles(node, role, below, report);
    let same = below
        .iter()
        .filter(|child| child.role == role)
        .map(|child| child.level)
        .max();
    let level = same.unwrap_or(0) + 1;
    let first = below.first().map_or("", |child| child.first);
    let start = below.first().map_or(0, |child| child.start);
    let last = below.last().map_or("", |child| child.last);
    let expected = match role {
        "root" => "root".to_owned(),
        "group" => format!("group {level} {first}"),
        "document" => format!("document {first}"),
        _ => format!("part {level} {first} {start}"),
    };
    check_name(node, &expected, report);
    Below {
        access,
        first,
        last,
        start,
        level,
        role,
    }
}

fn check_name(node: &Node<'_>, expected: &str, report: &mut Report) {
    let place = format!("{}.name", node.place);
    report.require(
        node.name == expected,
        Name,
        &place,
        "is not what the spec and the tree make it",
    );
}

fn check_order(node: &Node<'_>, below: &[Below<'_>], report: &mut Report) {
    let within = node_is_within_document(node);
    let ordered = below.windows(2).all(|pair| {
        if within {
            pair[0].start < pair[1].start
        } else {
            pair[0].last < pair[1].first
        }
    });
    let place = format!("{}.children", node.place);
    report.require(
        ordered,
        Children,
        &place,
        "are not in document order, or share a document",
    );
}

fn node_is_within_document(node: &Node<'_>) -> bool {
    matches!(
        &node.spec,
        Spec::Reduction {
            role: "part" | "document",
            ..
        }
    )
}

fn check_roles(node: &Node<'_>, role: &str, below: &[Below<'_>], report: &mut Report) {
    let fitting = match role {
        "part" | "document" => {
            let one = below.windows(2).all(|pair| pair[0].first == pair[1].first);
            one && below
                .iter()
                .all(|child| matches!(child.role, "leaf" | "part"))
        }
        "group" | "root" => below
            .iter()
            .all(|child| matches!(child.role, "leaf" | "document" | "group")),
        _ => false,
    };
    report.require(
        fitting,
        Children,
        &node.place,
        "has a role that does not fit its children",
    );
    // Only the root of an empty case file has no children.
    let any = role == "root" || !below.is_empty();
    report.require(
        any,
        Children,
        &node.place,
        "is a reduction without children",
    );
}

fn check_transformations(run: &Run<'_>, report: &mut Report) {
    let is_leaf = |node: &Node<'_>| matches!(node.spec, Spec::Leaf { .. });
    for leaves in [true, false] {
        let mut same_kind = run.nodes.iter().filter(|node| is_leaf(node) == leaves);
        let Some(first) = same_kind.next() else {
            continue;
        };
        for node in same_kind.filter(|node| node.transformation != first.transformation) {
            let place = format!("{}.spec.transformation", node.place);
            report.add(
                Transformation,
                &place,
                format!("is another than that of {}", first.place),
            );
        }
    }
}
