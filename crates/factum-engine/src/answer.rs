//! Strict reading of a model's answer: claims, or one named fault.
//!
//! The answer must be exactly the claim schema's JSON. Two corrections are made, and recorded: outer white
//! space is trimmed, and one complete `json` fence is taken off. Nothing else is repaired: a claim that
//! breaks a rule spoils the whole answer, for what else is wrong with it can't be known.

use std::collections::BTreeMap;

use factum_casefile::claim::{ClaimFault, Fields, field_faults};
use factum_casefile::profile::ClaimSchema;
use factum_casefile::{Evidence, EvidenceId, Profile};
use factum_graph::run_file::{RunFileError, parse_strict_json};
use factum_model::StopReason;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::prompting::{CLAIMS, Catalogue, EVIDENCE};

/// Version of the rules in this module; part of node keys.
pub const ANSWER_VERSION: u32 = 1;

/// A claim as the model gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadClaim {
    /// Its fields.
    pub fields: Fields,
    /// What it cites.
    pub evidence: Vec<EvidenceId>,
}

/// Reads an answer of a model that was shown `passages` as `e1`, `e2`, and so on.
///
/// # Errors
/// The first rule that the answer breaks.
pub fn read_claims(
    profile: &Profile,
    passages: &[Evidence],
    text: &str,
    stop: StopReason,
) -> Result<Vec<ReadClaim>, AnswerFault> {
    let catalogue = Catalogue {
        evidence: passages.to_vec(),
    };
    read_answer(profile, &catalogue, text, stop, true).claims
}

/// Why an answer is no use.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnswerFault {
    /// The model ran into the limit of new tokens; even a prefix that reads well is not used.
    #[error("the answer stopped for length")]
    Length,
    /// Nothing but white space.
    #[error("the answer is empty")]
    Empty,
    /// Not one JSON document.
    #[error("the answer is not JSON: {0}")]
    NotJson(String),
    /// A key given twice in one object.
    #[error("the answer gives the key {0:?} twice in one object")]
    DuplicateKey(String),
    /// Something is not of the type that the schema says.
    #[error("{place} is not {expected}")]
    Type {
        /// Where.
        place: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A key that the schema does not have.
    #[error("{place} has the unknown key {key:?}")]
    UnknownKey {
        /// Where.
        place: String,
        /// The key.
        key: String,
    },
    /// A key that the schema needs.
    #[error("{place} lacks the key {key:?}")]
    MissingKey {
        /// Where.
        place: String,
        /// The key.
        key: &'static str,
    },
    /// More claims than allowed.
    #[error("the answer has {0} claims; {1} are allowed")]
    TooManyClaims(usize, usize),
    /// A claim's fields break a limit.
    #[error("claim {number}: {fault}")]
    Field {
        /// The claim, from 1.
        number: usize,
        /// What is wrong.
        fault: ClaimFault,
    },
    /// A claim cites nothing, or more than allowed.
    #[error("claim {number} cites {count} passages; 1 to {most} are allowed")]
    EvidenceCount {
        /// The claim, from 1.
        number: usize,
        /// How many it cites.
        count: usize,
        /// The most allowed.
        most: usize,
    },
    /// A claim cites a passage twice.
    #[error("claim {number} cites {id:?} twice")]
    RepeatedEvidence {
        /// The claim, from 1.
        number: usize,
        /// The passage.
        id: String,
    },
    /// A claim cites what the node was not given.
    #[error("claim {number} cites {id:?}, which this node was not given")]
    ForeignEvidence {
        /// The claim, from 1.
        number: usize,
        /// The passage.
        id: String,
    },
    /// A value that must come from the first passage cited does not.
    #[error("claim {number}: {field:?} is not in the first passage cited")]
    NotInQuote {
        /// The claim, from 1.
        number: usize,
        /// The field.
        field: String,
    },
}

/// What came of reading an answer.
pub(crate) struct Reading {
    /// Corrections that were made, by name.
    pub(crate) repairs: Vec<String>,
    /// The claims, or what is wrong.
    pub(crate) claims: Result<Vec<ReadClaim>, AnswerFault>,
}

/// Reads an answer. Values that must come from a quote are held to it only where `grounded` says that the
/// answer was asked for so.
pub(crate) fn read_answer(
    profile: &Profile,
    catalogue: &Catalogue,
    text: &str,
    stop: StopReason,
    grounded: bool,
) -> Reading {
    let mut repairs = Vec::new();
    if stop == StopReason::Length {
        return Reading {
            repairs,
            claims: Err(AnswerFault::Length),
        };
    }
    let mut body = text.trim();
    if body.len() != text.len() {
        repairs.push("outer-white-space".to_owned());
    }
    if let Some(inner) = unfenced(body) {
        repairs.push("json-fence".to_owned());
        body = inner;
    }
    let claims = read_body(profile, catalogue, body, grounded);
    Reading { repairs, claims }
}

/// The inside of one complete `json` fence around everything.
fn unfenced(body: &str) -> Option<&str> {
    let inner = body.strip_prefix("```json")?.strip_suffix("```")?;
    let inner = inner
        .strip_prefix("\r\n")
        .or_else(|| inner.strip_prefix('\n'))?;
    (!inner.contains("```")).then(|| inner.trim())
}

fn read_body(
    profile: &Profile,
    catalogue: &Catalogue,
    body: &str,
    grounded: bool,
) -> Result<Vec<ReadClaim>, AnswerFault> {
    if body.is_empty() {
        return Err(AnswerFault::Empty);
    }
    let value = parse_strict_json(body.as_bytes()).map_err(|error| match error {
        RunFileError::DuplicateKey(key) => AnswerFault::DuplicateKey(key),
        other => AnswerFault::NotJson(other.to_string()),
    })?;
    let answer = object(&value, "the answer")?;
    only_keys(answer, &[CLAIMS], "the answer")?;
    let claims = answer.get(CLAIMS).ok_or_else(|| AnswerFault::MissingKey {
        place: "the answer".to_owned(),
        key: CLAIMS,
    })?;
    let claims = claims.as_array().ok_or_else(|| AnswerFault::Type {
        place: CLAIMS.to_owned(),
        expected: "a list",
    })?;
    let most = profile.claim.max_claims as usize;
    if claims.len() > most {
        return Err(AnswerFault::TooManyClaims(claims.len(), most));
    }
    let read = |(number, claim)| read_claim(&profile.claim, catalogue, number, claim, grounded);
    (1..).zip(claims).map(read).collect()
}

fn read_claim(
    schema: &ClaimSchema,
    catalogue: &Catalogue,
    number: usize,
    claim: &Value,
    grounded: bool,
) -> Result<ReadClaim, AnswerFault> {
    let place = format!("claim {number}");
    let claim = object(claim, &place)?;
    let mut known: Vec<&str> = schema.fields.keys().map(String::as_str).collect();
    known.push(EVIDENCE);
    only_keys(claim, &known, &place)?;
    let mut fields = BTreeMap::new();
    for (name, value) in claim.iter().filter(|(name, _)| name.as_str() != EVIDENCE) {
        let value = value.as_str().ok_or_else(|| AnswerFault::Type {
            place: format!("{place}: {name:?}"),
            expected: "a text",
        })?;
        fields.insert(name.clone(), value.to_owned());
    }
    if let Some(fault) = field_faults(schema, &fields).into_iter().next() {
        return Err(AnswerFault::Field { number, fault });
    }
    let evidence = read_evidence(schema, catalogue, number, claim.get(EVIDENCE))?;
    if grounded {
        let first = evidence
            .first()
            .and_then(|(short, _)| catalogue.find(short));
        let quote = first.map_or("", |one| one.quote.as_str());
        let strays = |(name, value): &(&String, &String)| {
            schema.fields.get(*name).is_some_and(|rule| rule.from_quote)
                && !quote.contains(value.as_str())
        };
        if let Some((field, _)) = fields.iter().find(strays) {
            return Err(AnswerFault::NotInQuote {
                number,
                field: field.clone(),
            });
        }
    }
    Ok(ReadClaim {
        fields,
        evidence: evidence.into_iter().map(|(_, id)| id).collect(),
    })
}

fn read_evidence(
    schema: &ClaimSchema,
    catalogue: &Catalogue,
    number: usize,
    cited: Option<&Value>,
) -> Result<Vec<(String, EvidenceId)>, AnswerFault> {
    let place = format!("claim {number}");
    let cited = cited.ok_or_else(|| AnswerFault::MissingKey {
        place: place.clone(),
        key: EVIDENCE,
    })?;
    let cited = cited.as_array().ok_or_else(|| AnswerFault::Type {
        place: format!("{place}: {EVIDENCE:?}"),
        expected: "a list",
    })?;
    let most = schema.max_evidence as usize;
    if cited.is_empty() || cited.len() > most {
        let count = cited.len();
        return Err(AnswerFault::EvidenceCount {
            number,
            count,
            most,
        });
    }
    let mut out: Vec<(String, EvidenceId)> = Vec::with_capacity(cited.len());
    for id in cited {
        let id = id.as_str().ok_or_else(|| AnswerFault::Type {
            place: format!("{place}: {EVIDENCE:?}"),
            expected: "a list of texts",
        })?;
        if out.iter().any(|(known, _)| known == id) {
            let id = id.to_owned();
            return Err(AnswerFault::RepeatedEvidence { number, id });
        }
        let Some(found) = catalogue.find(id) else {
            let id = id.to_owned();
            return Err(AnswerFault::ForeignEvidence { number, id });
        };
        out.push((id.to_owned(), found.evidence_id.clone()));
    }
    Ok(out)
}

fn object<'v>(value: &'v Value, place: &str) -> Result<&'v Map<String, Value>, AnswerFault> {
    value.as_object().ok_or_else(|| AnswerFault::Type {
        place: place.to_owned(),
        expected: "an object",
    })
}

fn only_keys(object: &Map<String, Value>, known: &[&str], place: &str) -> Result<(), AnswerFault> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(AnswerFault::UnknownKey {
            place: place.to_owned(),
            key: key.clone(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use factum_base::{DocumentId, Span, TextDigest};
    use proptest::prelude::*;

    fn passages() -> Vec<Evidence> {
        let doc_id = DocumentId::new("a.txt").unwrap();
        let digest = TextDigest::of(b"");
        let cite = |start: u32, quote: &str| {
            let end = start + u32::try_from(quote.chars().count()).unwrap();
            Evidence::cite(&doc_id, 1, digest, Span::new(start, end), quote)
        };
        vec![
            cite(0, "Date of loss: 3 March 2026"),
            cite(40, "The hose burst."),
        ]
    }

    fn read(text: &str) -> Result<Vec<ReadClaim>, AnswerFault> {
        let profile = Profile::built_in("facts").unwrap();
        read_claims(&profile, &passages(), text, StopReason::End)
    }

    #[test]
    fn a_value_must_come_from_the_first_passage_cited() {
        let good = "{\"claims\":[{\"evidence\":[\"e1\",\"e2\"],\"field\":\"loss\",\"value\":\"3 March 2026\"}]}";
        assert_eq!(read(good).unwrap().len(), 1);
        let turned = good.replace("\"e1\",\"e2\"", "\"e2\",\"e1\"");
        assert!(matches!(
            read(&turned),
            Err(AnswerFault::NotInQuote { number: 1, .. })
        ));
    }

    #[test]
    fn only_one_whole_json_fence_is_taken_off() {
        let inner = "{\"claims\":[]}";
        assert_eq!(read(&format!(" ```json\n{inner}\n``` ")), Ok(Vec::new()));
        for wrong in [
            format!("```\n{inner}\n```"),
            format!("```json\n{inner}"),
            format!("Here:\n```json\n{inner}\n```"),
            format!("```json\n```json\n{inner}\n```\n```"),
            format!("```json {inner}```"),
        ] {
            assert!(
                matches!(read(&wrong), Err(AnswerFault::NotJson(_))),
                "{wrong}"
            );
        }
    }

    #[test]
    fn limits_are_those_of_the_schema() {
        let claim = "{\"evidence\":[\"e1\"],\"value\":\"loss\"}";
        let many = |n: usize| format!("{{\"claims\":[{}]}}", vec![claim; n].join(","));
        assert_eq!(read(&many(8)).unwrap().len(), 8);
        assert_eq!(read(&many(9)), Err(AnswerFault::TooManyClaims(9, 8)));
        let long = format!(
            "{{\"claims\":[{{\"evidence\":[\"e1\"],\"value\":\"{}\"}}]}}",
            "x".repeat(601)
        );
        assert!(matches!(
            read(&long),
            Err(AnswerFault::Field { number: 1, .. })
        ));
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        assert!(matches!(read(&deep), Err(AnswerFault::NotJson(_))));
    }

    proptest! {
        #[test]
        fn whatever_a_model_says_is_claims_or_one_fault(text in any::<String>()) {
            let _ = read(&text);
        }

        #[test]
        fn a_damaged_answer_is_claims_or_one_fault(at in 0_usize..80, junk in any::<String>(), cut in any::<bool>()) {
            let good = "{\"claims\":[{\"evidence\":[\"e1\",\"e2\"],\"field\":\"loss\",\"value\":\"3 March 2026\"}]}";
            let (before, after) = good.split_at(at.min(good.len()));
            let damaged = if cut { format!("{before}{junk}") } else { format!("{before}{junk}{after}") };
            if let Ok(claims) = read(&damaged) {
                for claim in claims {
                    prop_assert!(!claim.evidence.is_empty());
                }
            }
        }
    }
}
