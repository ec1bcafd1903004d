//! One answer in the making: which token comes next, and when it is whole.
//!
//! Greedy: of the tokens that the constraint allows, the one with the highest logit, and of equals the one
//! with the lowest id. It sees logits and bytes, and knows nothing of contexts and batches.

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::SimpleVob;

use super::grounded::GroundedAnswer;
use super::vocabulary::Vocabulary;
use crate::constraint::Constraint;
use crate::error::ModelError;
use crate::generation::StopReason;

/// What comes after a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The model has to be shown this token to choose another.
    Feed(u32),
    /// The answer has come to its end.
    Stop(StopReason),
}

/// An answer in the making.
pub(super) struct Decoder {
    rule: Rule,
    tokens: Vec<u32>,
    max_new_tokens: usize,
}

enum Rule {
    Any,
    Schema(Box<Matcher>),
    Grounded(Box<GroundedAnswer>),
}

impl Decoder {
    /// Of an answer held to `constraint`.
    pub(super) fn new(
        constraint: &Constraint,
        max_new_tokens: u32,
        vocabulary: &Vocabulary,
        schemas: &ParserFactory,
    ) -> Result<Self, ModelError> {
        let max_new_tokens = max_new_tokens as usize;
        if max_new_tokens == 0 {
            return Err(ModelError::BadConstraint(
                "an answer must be allowed a token".to_owned(),
            ));
        }
        let rule = match constraint {
            Constraint::None => Rule::Any,
            Constraint::JsonSchema(schema) => Rule::Schema(Box::new(matcher(schema, schemas)?)),
            Constraint::Grounded(schema) => Rule::Grounded(Box::new(GroundedAnswer::new(
                schema,
                max_new_tokens,
                vocabulary,
            )?)),
        };
        Ok(Self {
            rule,
            tokens: Vec::new(),
            max_new_tokens,
        })
    }

    /// Chooses the next token.
    pub(super) fn choose(
        &mut self,
        logits: &[f32],
        vocabulary: &Vocabulary,
    ) -> Result<Next, ModelError> {
        match &mut self.rule {
            Rule::Any => {
                let token = best(logits, |_| true).ok_or_else(no_token)?;
                self.tokens.push(token);
                if vocabulary.is_end(token) {
                    return Ok(Next::Stop(StopReason::End));
                }
                Ok(self.go_on(token))
            }
            Rule::Schema(matcher) => {
                let mask = matcher.compute_mask().map_err(|error| engine(&error))?;
                let token = best(logits, |token| allowed(&mask, token)).ok_or_else(no_token)?;
                self.tokens.push(token);
                if vocabulary.is_end(token) {
                    return Ok(Next::Stop(StopReason::End));
                }
                matcher
                    .consume_token(token)
                    .map_err(|error| engine(&error))?;
                if matcher.is_stopped() {
                    return Ok(Next::Stop(StopReason::End));
                }
                let whole = self.tokens.len() == self.max_new_tokens
                    && matcher.is_accepting().map_err(|error| engine(&error))?;
                if whole {
                    return Ok(Next::Stop(StopReason::End));
                }
                Ok(self.go_on(token))
            }
            Rule::Grounded(answer) => match answer.choose(logits, vocabulary) {
                Some(token) => Ok(Next::Feed(token)),
                None => Ok(Next::Stop(StopReason::End)),
            },
        }
    }

    /// The bytes of the token chosen last. None of a grounded answer: its end may be cut off again.
    pub(super) fn last_bytes<'v>(&self, vocabulary: &'v Vocabulary) -> &'v [u8] {
        let last = self
            .tokens
            .last()
            .filter(|token| !vocabulary.is_end(**token));
        last.map_or(&[], |token| vocabulary.bytes(*token))
    }

    /// The answer's tokens and text.
    pub(super) fn finish(self, vocabulary: &Vocabulary) -> (Vec<u32>, String) {
        let tokens = match self.rule {
            Rule::Grounded(answer) => answer.into_tokens(),
            Rule::Any | Rule::Schema(_) => self.tokens,
        };
        let bytes: Vec<u8> = tokens
            .iter()
            .flat_map(|token| vocabulary.bytes(*token))
            .copied()
            .collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (tokens, text)
    }

    fn go_on(&self, token: u32) -> Next {
        if self.tokens.len() >= self.max_new_tokens {
            Next::Stop(StopReason::Length)
        } else {
            Next::Feed(token)
        }
    }
}

/// The highest logit that `allow` lets through.
pub(super) fn best(logits: &[f32], allow: impl Fn(u32) -> bool) -> Option<u32> {
    let mut best: Option<(f32, u32)> = None;
    for (token, logit) in (0u32..).zip(logits) {
        let better = best.is_none_or(|(most, _)| *logit > most);
        if better && !logit.is_nan() && allow(token) {
            best = Some((*logit, token));
        }
    }
    best.map(|(_, token)| token)
}

fn allowed(mask: &SimpleVob, token: u32) -> bool {
    (token as usize) < mask.len() && mask.is_allowed(token)
}

fn matcher(schema: &Value, schemas: &ParserFactory) -> Result<Matcher, ModelError> {
    let bad = |error: &dyn ToString| ModelError::BadConstraint(error.to_string());
    // A request's digest does not see the order of keys, so the order in which the answer comes must not
    // depend on it.
    let sorted = factum_base::canonical_json(schema).map_err(|error| bad(&error))?;
    let mut schema: Value = serde_json::from_str(&sorted).map_err(|error| bad(&error))?;
    if let Value::Object(keywords) = &mut schema {
        keywords.insert(
            "x-guidance".to_owned(),
            json!({"whitespace_flexible": false}),
        );
    }
    let parser = schemas
        .create_parser(TopLevelGrammar::from_json_schema(schema))
        .map_err(|error| bad(&error))?;
    let matcher = Matcher::new(Ok(parser));
    match matcher.get_error() {
        Some(error) => Err(ModelError::BadConstraint(error)),
        None => Ok(matcher),
    }
}

fn engine(error: &impl ToString) -> ModelError {
    ModelError::Engine(error.to_string())
}

fn no_token() -> ModelError {
    ModelError::Engine("no token may come next".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_logits_the_lowest_id_is_chosen_and_nan_never() {
        assert_eq!(best(&[0.5, 1.0, 1.0, f32::NAN], |_| true), Some(1));
        assert_eq!(best(&[0.5, 1.0, 1.0], |token| token != 1), Some(2));
        assert_eq!(best(&[f32::NAN], |_| true), None);
        assert_eq!(best(&[f32::NEG_INFINITY], |_| true), Some(0));
    }
}
