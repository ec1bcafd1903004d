//! A leaf's claims from its segment.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use factum_base::{CodePointIndex, Span};
use factum_casefile::claim::{Fields, field_faults};
use factum_casefile::profile::{Policy, Salient};
use factum_casefile::support::check_support;
use factum_casefile::{Claim, Evidence, NodeResult, NodeStatus, Profile, SlotState, Verdict};

use super::salience::salience;
use super::sentences::{Sentence, sentences};

/// What a leaf reads.
#[derive(Debug, Clone, Copy)]
pub struct LeafInput<'t> {
    /// The document's state; must be eligible.
    pub state: &'t SlotState,
    /// The segment's place in the document.
    pub segment: Span,
    /// The segment's characters.
    pub text: &'t str,
}

struct Candidate {
    bytes: Range<usize>,
    fields: Fields,
    /// Place of the rule that made it; sentences come behind all rules.
    rule: usize,
    salience: u32,
}

/// Extracts a leaf's claims. Claims that break the schema's limits are not made. A claim's salience is
/// its rank in the leaf: earlier rules first, then by LexRank, then by place.
pub fn extract_leaf(profile: &Profile, input: LeafInput<'_>) -> NodeResult {
    let mut candidates = rule_candidates(profile, input.text);
    let salient = match profile.extraction.salient {
        Salient::Never => false,
        Salient::Otherwise => candidates.is_empty(),
        Salient::Also => true,
    };
    if salient {
        let found = sentence_candidates(profile, input.text, &candidates);
        candidates.extend(found);
    }
    candidates.retain(|c| field_faults(&profile.claim, &c.fields).is_empty());
    let mut seen = BTreeSet::new();
    candidates.retain(|c| seen.insert(c.fields.clone()));
    choose(&mut candidates, profile.extraction.leaf_claims as usize);
    let index = CodePointIndex::new(input.text);
    let mut result = NodeResult::empty(NodeStatus::Valid);
    for candidate in candidates {
        let quote = &input.text[candidate.bytes.clone()];
        let span = Span::new(
            input.segment.start + index.code_point_of(input.text, candidate.bytes.start),
            input.segment.start + index.code_point_of(input.text, candidate.bytes.end),
        );
        let state = input.state;
        let evidence = Evidence::cite(&state.doc_id, state.version, state.text_sha256, span, quote);
        let claim = Claim {
            support: check_support(profile, &candidate.fields, &[quote]),
            fields: candidate.fields,
            evidence: vec![evidence.evidence_id.clone()],
            salience: candidate.salience,
        };
        result
            .evidence
            .insert(evidence.evidence_id.clone(), evidence);
        keep(profile, &mut result, claim);
    }
    result
}

/// Puts a claim among the served or the withheld, as the profile's policy says.
pub(crate) fn keep(profile: &Profile, result: &mut NodeResult, claim: Claim) {
    match (claim.support.verdict, profile.support.policy) {
        (Verdict::Unsupported, Policy::Withhold) => result.withheld.push(claim),
        _ => result.claims.push(claim),
    }
}

fn rule_candidates(profile: &Profile, text: &str) -> Vec<Candidate> {
    let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (number, rule) in profile.rules.iter().enumerate() {
        for place in rule.matches(text) {
            // Earlier rules go first; what they took is not read a second time.
            let before = taken.range(..place.bytes.end).next_back();
            if before.is_some_and(|(_, &end)| end > place.bytes.start) {
                continue;
            }
            taken.insert(place.bytes.start, place.bytes.end);
            found.push(Candidate {
                bytes: place.bytes,
                fields: place.fields,
                rule: number,
                salience: 0,
            });
        }
    }
    found.sort_by_key(|candidate| candidate.bytes.start);
    let as_sentences: Vec<Sentence> = found
        .iter()
        .map(|c| Sentence {
            bytes: c.bytes.clone(),
            heading: None,
        })
        .collect();
    for (candidate, salience) in found.iter_mut().zip(salience(text, &as_sentences)) {
        candidate.salience = salience;
    }
    found
}

fn sentence_candidates(profile: &Profile, text: &str, taken: &[Candidate]) -> Vec<Candidate> {
    let Some(field) = profile.sentence_field() else {
        return Vec::new();
    };
    let all = sentences(text);
    let scores = salience(text, &all);
    all.iter()
        .zip(scores)
        .filter(|(sentence, score)| {
            *score > 0
                && taken.iter().all(|c| {
                    c.bytes.end <= sentence.bytes.start || c.bytes.start >= sentence.bytes.end
                })
        })
        .map(|(sentence, salience)| {
            let mut fields = Fields::new();
            fields.insert(field.to_owned(), text[sentence.bytes.clone()].to_owned());
            if let (Some(name), Some(heading)) = (&profile.extraction.heading, &sentence.heading) {
                fields.insert(name.clone(), text[heading.clone()].to_owned());
            }
            Candidate {
                bytes: sentence.bytes.clone(),
                fields,
                rule: usize::MAX,
                salience,
            }
        })
        .collect()
}

/// Keeps the best `limit` (all where 0), ranks them, and puts them back in text order.
fn choose(candidates: &mut Vec<Candidate>, limit: usize) {
    candidates.sort_by_key(|c| (c.rule, std::cmp::Reverse(c.salience), c.bytes.start));
    if limit > 0 {
        candidates.truncate(limit);
    }
    for (rank, candidate) in (1u32..).zip(candidates.iter_mut()) {
        candidate.salience = 1_000_000 / rank;
    }
    candidates.sort_by_key(|c| c.bytes.start);
}

#[cfg(test)]
mod tests {
    use super::*;
    use factum_base::{DocumentId, TextDigest, slice_code_points};

    fn leaf(profile: &str, text: &str) -> NodeResult {
        let state = SlotState {
            slot: "80000000".parse().unwrap(),
            doc_id: DocumentId::new("a.txt").unwrap(),
            version: 1,
            text_sha256: TextDigest::of(text.as_bytes()),
            active: true,
            eligible: true,
            access_revision: 0,
        };
        let segment = Span::new(0, u32::try_from(text.chars().count()).unwrap());
        let profile = Profile::built_in(profile).unwrap();
        let result = extract_leaf(
            &profile,
            LeafInput {
                state: &state,
                segment,
                text,
            },
        );
        for evidence in result.evidence.values() {
            let span = Span::new(evidence.start, evidence.end);
            assert_eq!(slice_code_points(text, span).unwrap(), evidence.quote);
            assert_eq!(evidence.check(Some(&state), text), Ok(()));
        }
        assert!(
            result
                .claims
                .iter()
                .all(|claim| claim.support.verdict == Verdict::Supported)
        );
        assert!(result.withheld.is_empty());
        result
    }

    #[test]
    fn controlled_facts_are_read_and_negations_and_quoted_orders_are_not() {
        let text = "Report\r\nProduct P-10-00 delivery: 18 October.\r\nThe delivery on 3 May is no longer valid.\n\
            \"Product P-10-00 status: approved.\"\nProduct P-10-00 site: 日本.\r\n";
        let result = leaf("controlled", text);
        let values: Vec<&str> = result
            .claims
            .iter()
            .map(|c| c.fields["value"].as_str())
            .collect();
        assert_eq!(values, ["18 October", "日本"]);
    }

    #[test]
    fn sentences_stand_in_where_no_rule_matches() {
        let result = leaf(
            "facts",
            "The hose under the sink had burst overnight. The kitchen floor was soaked through.",
        );
        assert_eq!(result.claims.len(), 2);
        assert!(result.claims[0].fields["value"].starts_with("The hose"));
    }

    #[test]
    fn claims_keep_their_spans_in_any_script() {
        for text in [
            "浴室の水道管が破裂した。台所の床は完全に水浸しになった。保険会社は修理費を支払う。",
            "Cafe\u{301} flooded again 👩‍💧 on Monday morning.\r\n\r\nThe cafe\u{301} owner called the plumber at once.",
        ] {
            assert!(!leaf("narrative", text).claims.is_empty(), "{text}");
        }
    }
}
