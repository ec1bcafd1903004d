//! Computed prefixes, kept so that siblings need not compute them again: the last few used.

use llama_cpp_2::context::session::SeqState;

/// How many are kept.
const KEPT: usize = 4;

/// Prefixes, the last used one last.
#[derive(Default)]
pub(super) struct Prefixes {
    kept: Vec<(Vec<i32>, SeqState)>,
}

impl Prefixes {
    /// What was computed for these tokens.
    pub(super) fn get(&mut self, tokens: &[i32]) -> Option<&SeqState> {
        let at = self.kept.iter().position(|(kept, _)| kept == tokens)?;
        let found = self.kept.remove(at);
        self.kept.push(found);
        self.kept.last().map(|(_, state)| state)
    }

    pub(super) fn insert(&mut self, tokens: Vec<i32>, state: SeqState) {
        self.kept.retain(|(kept, _)| *kept != tokens);
        if self.kept.len() >= KEPT {
            self.kept.remove(0);
        }
        self.kept.push((tokens, state));
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.kept
            .iter()
            .map(|(_, state)| state.byte_len() as u64)
            .sum()
    }
}
