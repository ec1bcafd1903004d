//! What differs between two kept trees, without reading what they share.
//!
//! Both trees are opened level by level from their roots. A node that is in both has its whole subtree
//! in both, so it is never opened.

use std::collections::BTreeMap;

use factum_base::NodeKey;

use crate::pages::{Entry, LeafEntry, Missing, PageCache};

/// A node that is in one tree only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInOne {
    /// Its key.
    pub key: NodeKey,
    /// Its name.
    pub name: String,
    /// The leaf, where it is one.
    pub leaf: Option<LeafEntry>,
}

/// Nodes in one tree only, parents before children.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// In the new tree only.
    pub new: Vec<NodeInOne>,
    /// In the old tree only.
    pub old: Vec<NodeInOne>,
}

#[derive(Default)]
struct Frontier {
    // By height, so that equal subtrees meet at the same step even when one tree is taller. The height of
    // one just found is not known yet: finding it opens its page, and most are in both trees.
    nodes: BTreeMap<NodeKey, Option<Height>>,
    leaves: BTreeMap<NodeKey, LeafEntry>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Height {
    above_documents: bool,
    level: u32,
}

/// Compares the trees under two roots; `old` absent means that all is new.
///
/// # Errors
/// A page is needed that `cache` lacks.
pub fn difference(
    cache: &PageCache,
    old: Option<NodeKey>,
    new: NodeKey,
) -> Result<Difference, Missing> {
    let mut out = Difference::default();
    let (mut a, mut b) = (Frontier::default(), Frontier::default());
    a.nodes.insert(new, None);
    b.nodes.extend(old.map(|old| (old, None)));
    loop {
        let common: Vec<NodeKey> = a
            .nodes
            .keys()
            .filter(|key| b.nodes.contains_key(key))
            .copied()
            .collect();
        for key in common {
            a.nodes.remove(&key);
            b.nodes.remove(&key);
        }
        a.measure(cache)?;
        b.measure(cache)?;
        let Some(highest) = a.nodes.values().chain(b.nodes.values()).copied().max() else {
            break;
        };
        a.open(cache, highest, &mut out.new)?;
        b.open(cache, highest, &mut out.old)?;
    }
    let one_sided = |from: &Frontier, other: &Frontier| -> Vec<NodeInOne> {
        let mut leaves: Vec<&LeafEntry> = from
            .leaves
            .values()
            .filter(|leaf| !other.leaves.contains_key(&leaf.key))
            .collect();
        leaves.sort_by(|x, y| (&x.state.slot, x.segment).cmp(&(&y.state.slot, y.segment)));
        leaves
            .into_iter()
            .map(|leaf| NodeInOne {
                key: leaf.key,
                name: leaf.name(),
                leaf: Some(leaf.clone()),
            })
            .collect()
    };
    out.new.extend(one_sided(&a, &b));
    out.old.extend(one_sided(&b, &a));
    Ok(out)
}

impl Frontier {
    /// Finds the heights that are not known yet.
    fn measure(&mut self, cache: &PageCache) -> Result<(), Missing> {
        for (key, height) in self.nodes.iter_mut().filter(|(_, h)| h.is_none()) {
            let page = cache.get(key)?;
            let above_documents = matches!(page.role, crate::Role::Group | crate::Role::Root);
            *height = Some(Height {
                above_documents,
                level: page.level,
            });
        }
        Ok(())
    }

    fn open(
        &mut self,
        cache: &PageCache,
        height: Option<Height>,
        one_sided: &mut Vec<NodeInOne>,
    ) -> Result<(), Missing> {
        let keys: Vec<NodeKey> = self
            .nodes
            .iter()
            .filter(|(_, h)| **h == height)
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            self.nodes.remove(&key);
            let page = cache.get(&key)?;
            one_sided.push(NodeInOne {
                key,
                name: page.name(),
                leaf: None,
            });
            for entry in &page.entries {
                match entry {
                    Entry::Leaf(leaf) => {
                        self.leaves.insert(leaf.key, (**leaf).clone());
                    }
                    Entry::Node(node) => {
                        self.nodes.insert(node.key, None);
                    }
                }
            }
        }
        Ok(())
    }
}
