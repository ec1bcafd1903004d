//! A grounded answer in the making: held to its machine byte by byte, and always brought to an end.
//!
//! While the answer grows, the newest place is remembered at which it could be closed within the tokens it
//! has: after a whole item, or, while there is none, after a whole word of the last value that the first item
//! needs. When the tokens run out, the answer is cut back to that place and closed, so an item that did
//! not fit is dropped rather than broken off. The same is done when an item repeats an earlier one word for word:
//! greedy decoding would go on repeating it.

use std::ops::Range;

use toktrie::TokTrie;

use super::decoder::best;
use super::vocabulary::Vocabulary;
use crate::constraint::GroundedSchema;
use crate::error::ModelError;
use crate::grounded::{CLOSE_LIST, CLOSE_VALUE, GroundedMachine, GroundedState};

/// An answer in the making.
pub(super) struct GroundedAnswer {
    machine: GroundedMachine,
    state: GroundedState,
    tokens: Vec<u32>,
    text: Vec<u8>,
    /// The text's length after each token.
    lengths: Vec<usize>,
    item_start: usize,
    items: Vec<Range<usize>>,
    end: End,
    max_tokens: usize,
}

/// How the answer can be closed: so many of its tokens, and then these.
struct End {
    kept: usize,
    tail: Vec<u32>,
}

/// What a token did to the answer.
#[derive(Default)]
struct Passed {
    /// Where the text could be closed, and with what.
    place: Option<(usize, &'static [u8])>,
    repeats: bool,
}

impl GroundedAnswer {
    pub(super) fn new(
        schema: &GroundedSchema,
        max_tokens: usize,
        vocabulary: &Vocabulary,
    ) -> Result<Self, ModelError> {
        let machine = GroundedMachine::new(schema)?;
        let Some(tail) = vocabulary.spelled(&machine.shortest()) else {
            return Err(ModelError::Engine(
                "the model's tokens can't spell the keys of an answer".to_owned(),
            ));
        };
        if tail.len() > max_tokens {
            return Err(ModelError::BadConstraint(format!(
                "the shortest answer has {} tokens; {max_tokens} are allowed",
                tail.len()
            )));
        }
        Ok(Self {
            state: machine.start(),
            machine,
            tokens: Vec::new(),
            text: Vec::new(),
            lengths: Vec::new(),
            item_start: 0,
            items: Vec::new(),
            end: End { kept: 0, tail },
            max_tokens,
        })
    }

    /// The next token, or none where the answer is whole.
    pub(super) fn choose(&mut self, logits: &[f32], vocabulary: &Vocabulary) -> Option<u32> {
        let Some(token) = self.best(logits, vocabulary) else {
            self.close();
            return None;
        };
        let passed = self.push(token, vocabulary.bytes(token));
        if self.state.is_done() {
            return None;
        }
        if let Some((at, closing)) = passed.place {
            self.remember(at, closing, vocabulary);
        }
        if passed.repeats || self.tokens.len() >= self.max_tokens {
            self.close();
            return None;
        }
        Some(token)
    }

    pub(super) fn into_tokens(self) -> Vec<u32> {
        self.tokens
    }

    /// Most often the model's first choice is allowed, and nothing else has to be looked at.
    fn best(&self, logits: &[f32], vocabulary: &Vocabulary) -> Option<u32> {
        let first = best(logits, |_| true)?;
        if self.allows(vocabulary.bytes(first)) {
            return Some(first);
        }
        self.search(logits, vocabulary.trie())
    }

    fn allows(&self, bytes: &[u8]) -> bool {
        let mut state = self.state;
        for byte in bytes {
            let Some(next) = self.machine.step(state, *byte) else {
                return false;
            };
            state = next;
        }
        !bytes.is_empty()
    }

    /// The best of all allowed tokens. Where few are, few branches are looked into.
    fn search(&self, logits: &[f32], trie: &TokTrie) -> Option<u32> {
        let mut found: Option<(f32, u32)> = None;
        let mut open = vec![(trie.root(), self.state)];
        while let Some((node, state)) = open.pop() {
            for child in trie.node_children(node) {
                let Some(next) = self.machine.step(state, child.byte()) else {
                    continue;
                };
                open.push((child, next));
                let Some(token) = child.token_id() else {
                    continue;
                };
                let logit = logits.get(token as usize).copied().unwrap_or(f32::NAN);
                let better = found.is_none_or(|(most, id)| {
                    logit > most || (logit.total_cmp(&most).is_eq() && token < id)
                });
                if better && !logit.is_nan() {
                    found = Some((logit, token));
                }
            }
        }
        found.map(|(_, token)| token)
    }

    fn push(&mut self, token: u32, bytes: &[u8]) -> Passed {
        let mut passed = Passed::default();
        for byte in bytes {
            if *byte == b' ' && self.items.is_empty() && self.machine.can_close_value(self.state) {
                passed.place = Some((self.text.len(), CLOSE_VALUE));
            }
            let Some(next) = self.machine.step(self.state, *byte) else {
                break;
            };
            if self.state.is_item_start() {
                self.item_start = self.text.len();
            }
            self.state = next;
            self.text.push(*byte);
            if next.is_item_end() {
                let item = self.item_start..self.text.len();
                passed.repeats |= self
                    .items
                    .iter()
                    .any(|earlier| self.text.get(earlier.clone()) == self.text.get(item.clone()));
                if !passed.repeats {
                    passed.place = Some((item.end, CLOSE_LIST));
                    self.items.push(item);
                }
            }
        }
        self.tokens.push(token);
        self.lengths.push(self.text.len());
        passed
    }

    /// Takes `at` for the place to close at, if that fits.
    fn remember(&mut self, at: usize, closing: &[u8], vocabulary: &Vocabulary) {
        let kept = self.lengths.partition_point(|length| *length <= at);
        let from = kept.checked_sub(1).map_or(0, |last| self.lengths[last]);
        let Some(tail) = vocabulary.spelled(&[&self.text[from..at], closing].concat()) else {
            return;
        };
        if kept + tail.len() <= self.max_tokens {
            self.end = End { kept, tail };
        }
    }

    fn close(&mut self) {
        self.tokens.truncate(self.end.kept);
        self.tokens.append(&mut self.end.tail);
    }
}
