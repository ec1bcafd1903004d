//! What a build has to make: the nodes of a tree that have no result, children before parents.

use std::collections::HashMap;

use factum_base::NodeKey;
use factum_graph::difference::{Difference, NodeInOne};
use factum_graph::{Entry, LeafEntry};
use factum_store::Tx;

use crate::build::cached;
use crate::error::EngineError;
use crate::planning::{CurrentTree, fetch};

/// The nodes without a result among those that the tree built last does not have: all of that one's have
/// theirs, so no other needs to be asked for.
pub(crate) async fn missing_of(
    tx: &mut Tx,
    case_no: i64,
    tree: &CurrentTree,
    found: &Difference,
) -> Result<Vec<Todo>, EngineError> {
    let keys: Vec<NodeKey> = found.new.iter().map(|node| node.key).collect();
    let known = tx.results_known(case_no, &keys, None).await?;
    let new: HashMap<NodeKey, &NodeInOne> = found
        .new
        .iter()
        .filter(|node| !known.contains_key(&node.key))
        .map(|node| (node.key, node))
        .collect();
    let mut todo = Vec::with_capacity(new.len());
    let mut open = vec![(tree.root, false)];
    while let Some((key, below_done)) = open.pop() {
        let Some(node) = new.get(&key) else { continue };
        if let Some(leaf) = &node.leaf {
            todo.push(Todo::Leaf(leaf.clone()));
        } else if below_done {
            todo.push(Todo::Reduction(key));
        } else {
            open.push((key, true));
            let page = cached(&tree.cache, key)?;
            open.extend(page.entries.iter().rev().map(|entry| (entry.key(), false)));
        }
    }
    Ok(todo)
}

/// The nodes without a result, children before parents and neighbours together. A full build has its
/// own scope, so none of its nodes has one.
pub(crate) async fn missing(
    tx: &mut Tx,
    case_no: i64,
    tree: &mut CurrentTree,
    full: bool,
) -> Result<Vec<Todo>, EngineError> {
    let fresh = full || !tx.has_results(case_no).await?;
    let mut todo = Vec::new();
    if !fresh
        && !tx
            .results_known(case_no, &[tree.root], None)
            .await?
            .is_empty()
    {
        return Ok(todo);
    }
    // Depth first; a node is pushed to `todo` when all below it are.
    let mut open = vec![(tree.root, false)];
    while let Some((key, below_done)) = open.pop() {
        if below_done {
            todo.push(Todo::Reduction(key));
            continue;
        }
        open.push((key, true));
        fetch(tx, case_no, &mut tree.cache, key).await?;
        let page = cached(&tree.cache, key)?;
        let keys: Vec<NodeKey> = page.entries.iter().map(Entry::key).collect();
        let known = if fresh {
            HashMap::new()
        } else {
            tx.results_known(case_no, &keys, None).await?
        };
        for entry in page
            .entries
            .iter()
            .rev()
            .filter(|entry| !known.contains_key(&entry.key()))
        {
            match entry {
                Entry::Node(node) => open.push((node.key, false)),
                Entry::Leaf(leaf) => todo.push(Todo::Leaf((**leaf).clone())),
            }
        }
    }
    Ok(todo)
}

/// A node to make.
pub(crate) enum Todo {
    Leaf(LeafEntry),
    Reduction(NodeKey),
}

impl Todo {
    pub(crate) fn key(&self) -> NodeKey {
        match self {
            Self::Leaf(leaf) => leaf.key,
            Self::Reduction(key) => *key,
        }
    }

    pub(crate) fn leaf(&self) -> Option<&LeafEntry> {
        match self {
            Self::Leaf(leaf) => Some(leaf),
            Self::Reduction(_) => None,
        }
    }
}

/// The leaves of a group.
pub(crate) fn leaves_of(group: &[Todo]) -> impl Iterator<Item = &LeafEntry> {
    group.iter().filter_map(Todo::leaf)
}
