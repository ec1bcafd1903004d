//! A run's nodes as the checks of the experiment look at them, and the form that the protocol gives the tree.

use std::collections::BTreeMap;

use serde_json::Value;

use super::corpus::CaseTexts;
use super::json::{field, list, text, texts};
use super::protocol::DOCUMENTS;
use super::report::{Class, Report};

const GROUP: usize = 4;

/// One node.
pub(super) struct Node<'r> {
    pub(super) place: String,
    pub(super) name: &'r str,
    pub(super) key: &'r str,
    pub(super) is_leaf: bool,
    pub(super) reused: bool,
    pub(super) spec: &'r Value,
    pub(super) result: &'r Value,
    /// Places of its children among the nodes.
    pub(super) children: Vec<usize>,
}

/// A run's nodes.
pub(super) struct Tree<'r> {
    pub(super) run: &'r Value,
    pub(super) nodes: Vec<Node<'r>>,
}

impl<'r> Tree<'r> {
    pub(super) fn read(run: &'r Value, file: &str) -> Self {
        let mut nodes: Vec<Node<'r>> = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (n, node) in list(run, "nodes").iter().enumerate() {
            let name = text(node, "name");
            // Children stand before their parents; the verifier of runs reports others.
            let children = texts(node, "children");
            let children = children
                .into_iter()
                .filter_map(|name| places.get(name).copied());
            nodes.push(Node {
                place: format!("{file} nodes[{n}]"),
                name,
                key: text(node, "key"),
                is_leaf: text(node, "kind") == "leaf",
                reused: field(node, "reused") == &Value::Bool(true),
                spec: field(node, "spec"),
                result: field(node, "result"),
                children: children.collect(),
            });
            places.insert(name, n);
        }
        Self { run, nodes }
    }

    /// Lists that may be empty are lists all the same: a record has one form.
    pub(super) fn check_lists(&self, report: &mut Report) {
        for node in &self.nodes {
            for name in ["claims", "withheld", "repairs"] {
                let is_list = field(node.result, name).is_array();
                let place = format!("{} result.{name}", node.place);
                report.require(is_list, Class::Format, &place, "is no list");
            }
        }
    }

    /// The root: the last node.
    pub(super) fn root(&self) -> Option<&Node<'r>> {
        let last = self.nodes.last()?;
        (!last.is_leaf && last.key == text(self.run, "root")).then_some(last)
    }

    /// Twelve leaves in the documents' order, reductions over four each, and the root over those.
    pub(super) fn check_form(&self, corpus: &CaseTexts, place: &str, report: &mut Report) {
        let below = |node: &Node<'_>| -> Vec<&str> {
            let leaves = node.children.iter().filter_map(|&n| self.nodes.get(n));
            leaves
                .filter(|leaf| leaf.is_leaf)
                .map(|leaf| text(leaf.spec, "doc_id"))
                .collect()
        };
        let groups: Vec<&Node<'_>> = self.root().map_or_else(Vec::new, |root| {
            root.children
                .iter()
                .filter_map(|&n| self.nodes.get(n))
                .collect()
        });
        let documents: Vec<&str> = corpus
            .documents
            .iter()
            .map(|known| known.id.as_str())
            .collect();
        let wanted: Vec<Vec<&str>> = documents.chunks(GROUP).map(<[&str]>::to_vec).collect();
        let found: Vec<Vec<&str>> = groups.iter().map(|group| below(group)).collect();
        let right = found == wanted
            && self.nodes.len() == DOCUMENTS + DOCUMENTS / GROUP + 1
            && groups.iter().all(|group| !group.is_leaf);
        let message = "is not twelve leaves, three reductions over four each, and a root";
        report.require(right, Class::Protocol, place, message);
    }
}
