//! Early cutoff: a reduction whose children hand on what they handed on before has the result that it
//! had before, under its new key.
//!
//! A key covers all below it, so an edit gives every ancestor a new key. But what a reduction makes
//! depends on its children's results alone, and far up the tree the edited document's claims are
//! seldom among those chosen. There the old result is taken over and nothing is read or folded again.
//! (The name is that of build systems: A. Mokhov, N. Mitchell, S. Peyton Jones, "Build systems à la
//! carte", 2018.) A full build does not do this, and tests hold the two against each other.

use std::collections::{HashMap, HashSet};

use factum_base::NodeKey;
use factum_casefile::NodeResult;
use factum_graph::{Entry, Page, PageCache};
use factum_store::Tx;

use crate::error::EngineError;

/// What is known of the tree built last.
#[derive(Default)]
pub(crate) struct EarlyCutoff {
    /// Nodes that only the old tree has, by name.
    old: HashMap<String, NodeKey>,
    /// Nodes of the new tree whose result is that of their namesake in the old one.
    same: HashSet<NodeKey>,
}

impl EarlyCutoff {
    /// `old` must be nodes of a tree with the same context.
    pub(crate) fn new(old: impl Iterator<Item = (String, NodeKey)>) -> Self {
        Self {
            old: old.collect(),
            same: HashSet::new(),
        }
    }

    /// The result a reduction had before, if its children hand on the same.
    pub(crate) async fn result(
        &mut self,
        tx: &mut Tx,
        case_no: i64,
        cache: &PageCache,
        key: NodeKey,
        page: &Page,
    ) -> Result<Option<NodeResult>, EngineError> {
        let Some(old_key) = self.old.get(&page.name()) else {
            return Ok(None);
        };
        let Ok(old_page) = cache.get(old_key) else {
            return Ok(None);
        };
        let same =
            |new: &Entry, old: &Entry| new.key() == old.key() || self.same.contains(&new.key());
        let all = page.entries.len() == old_page.entries.len()
            && page
                .entries
                .iter()
                .zip(&old_page.entries)
                .all(|(new, old)| same(new, old));
        if !all {
            return Ok(None);
        }
        let found = tx.result(case_no, old_key, None).await?;
        if found.is_some() {
            self.same.insert(key);
        }
        Ok(found.map(|stored| stored.result))
    }

    /// Notes a reduction that was made, to know whether it hands on what it did before.
    pub(crate) async fn note(
        &mut self,
        tx: &mut Tx,
        case_no: i64,
        key: NodeKey,
        page: &Page,
        result: &NodeResult,
    ) -> Result<(), EngineError> {
        if let Some(old_key) = self.old.get(&page.name())
            && let Some(before) = tx.result(case_no, old_key, None).await?
            && before.result == *result
        {
            self.same.insert(key);
        }
        Ok(())
    }
}
