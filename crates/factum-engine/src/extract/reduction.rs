//! A reduction's claims from its children's.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use factum_casefile::claim::Fields;
use factum_casefile::support::check_support;
use factum_casefile::{Claim, EvidenceId, NodeResult, NodeStatus, Profile};

use super::centroid::centrality;
use super::leaf::keep;

/// Folds children (in document order) into one result. What INVALID children and withheld claims hold
/// is not handed on.
pub fn reduce(profile: &Profile, children: &[&NodeResult]) -> NodeResult {
    let mut result = NodeResult::empty(status_over(children));
    for mut claim in chosen_claims(profile, children, profile.extraction.node_claims) {
        for id in &claim.evidence {
            let evidence = handing_on(children).find_map(|child| child.evidence.get(id));
            if let Some(evidence) = evidence {
                result.evidence.insert(id.clone(), evidence.clone());
            }
        }
        let quotes: Vec<&str> = claim
            .evidence
            .iter()
            .filter_map(|id| result.evidence.get(id))
            .map(|e| e.quote.as_str())
            .collect();
        claim.support = check_support(profile, &claim.fields, &quotes);
        keep(profile, &mut result, claim);
    }
    result
}

/// The status of a reduction whose own output is valid.
pub fn status_over(children: &[&NodeResult]) -> NodeStatus {
    let broken =
        |child: &&NodeResult| matches!(child.status, NodeStatus::Invalid | NodeStatus::Partial);
    if children.iter().any(broken) {
        NodeStatus::Partial
    } else {
        NodeStatus::Valid
    }
}

/// The claims that children hand on, duplicates folded; above `limit` (0: none) the most salient of each
/// document first.
pub fn chosen_claims(profile: &Profile, children: &[&NodeResult], limit: u32) -> Vec<Claim> {
    let mut claims = folded(
        profile,
        handing_on(children).flat_map(|child| &child.claims),
    );
    choose(profile, &mut claims, limit as usize);
    claims
}

fn handing_on<'c>(children: &'c [&'c NodeResult]) -> impl Iterator<Item = &'c NodeResult> {
    children
        .iter()
        .copied()
        .filter(|child| child.status != NodeStatus::Invalid)
}

/// Claims with the same fields become one that cites them all, as far as the schema allows.
fn folded<'c>(profile: &Profile, claims: impl Iterator<Item = &'c Claim>) -> Vec<Claim> {
    let most = profile.claim.max_evidence as usize;
    let mut place: BTreeMap<&Fields, usize> = BTreeMap::new();
    let mut out: Vec<Claim> = Vec::new();
    for claim in claims {
        if let Some(&at) = place.get(&claim.fields) {
            let kept = &mut out[at];
            kept.salience = kept.salience.max(claim.salience);
            for id in &claim.evidence {
                if kept.evidence.len() < most && !kept.evidence.contains(id) {
                    kept.evidence.push(id.clone());
                }
            }
        } else {
            place.insert(&claim.fields, out.len());
            out.push(claim.clone());
        }
    }
    out
}

fn choose(profile: &Profile, claims: &mut Vec<Claim>, limit: usize) {
    if limit == 0 || claims.len() <= limit {
        return;
    }
    // Each document's claims, best first.
    let mut by_document: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (n, claim) in claims.iter().enumerate() {
        by_document.entry(document_of(claim)).or_default().push(n);
    }
    let documents = by_document.len();
    let mut rounds: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for mut own in by_document.into_values() {
        own.sort_by_key(|&n| (Reverse(claims[n].salience), n));
        for (round, n) in own.into_iter().enumerate() {
            rounds.entry(round).or_default().push(n);
        }
    }
    let mut chosen: Vec<usize> = Vec::with_capacity(limit);
    for mut round in rounds.into_values() {
        if documents > limit {
            // Too many documents for one claim each: those whose claims say most of what all say.
            let central = central_claims(profile, claims, &round);
            round.sort_by_key(|n| (Reverse(central[n]), *n));
        } else {
            round.sort_by_key(|&n| (Reverse(claims[n].salience), n));
        }
        chosen.extend(round.into_iter().take(limit - chosen.len()));
        if chosen.len() == limit {
            break;
        }
    }
    chosen.sort_unstable();
    let mut n = 0;
    claims.retain(|_| {
        n += 1;
        chosen.binary_search(&(n - 1)).is_ok()
    });
}

fn central_claims(profile: &Profile, claims: &[Claim], round: &[usize]) -> BTreeMap<usize, u32> {
    let texts: Vec<String> = round
        .iter()
        .map(|&n| profile.read(&claims[n].fields))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    round.iter().copied().zip(centrality(&texts)).collect()
}

fn document_of(claim: &Claim) -> &str {
    claim
        .evidence
        .first()
        .map_or("", |id: &EvidenceId| id.doc_id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use factum_base::{DocumentId, Span, TextDigest};
    use factum_casefile::{Evidence, Support, Verdict};

    fn child(doc: u32, claims: u32) -> NodeResult {
        let mut result = NodeResult::empty(NodeStatus::Valid);
        for n in 0..claims {
            let quote = format!("Document {doc} says thing {n} about the water.");
            let doc_id = DocumentId::new(format!("{doc:03}")).unwrap();
            let span = Span::new(n * 100, n * 100 + 40);
            let evidence = Evidence::cite(&doc_id, 1, TextDigest::of(b""), span, &quote);
            result.claims.push(Claim {
                fields: [("statement".to_owned(), quote)].into(),
                evidence: vec![evidence.evidence_id.clone()],
                support: Support {
                    verdict: Verdict::Supported,
                    method: factum_casefile::support::Method::Verbatim,
                    version: 1,
                    detail: String::new(),
                },
                salience: 1_000_000 / (n + 1),
            });
            result
                .evidence
                .insert(evidence.evidence_id.clone(), evidence);
        }
        result
    }

    #[test]
    fn each_document_keeps_a_claim_while_they_fit() {
        let profile = Profile::built_in("narrative").unwrap();
        let children: Vec<NodeResult> = (0..12).map(|n| child(n, 9)).collect();
        let result = reduce(&profile, &children.iter().collect::<Vec<_>>());
        assert_eq!(result.claims.len(), 16);
        for doc in 0..12 {
            let own = result
                .claims
                .iter()
                .filter(|c| document_of(c) == format!("{doc:03}"))
                .count();
            assert!(own >= 1, "document {doc}");
        }
    }

    #[test]
    fn duplicates_fold_and_cite_both() {
        let profile = Profile::built_in("narrative").unwrap();
        let (a, mut b) = (child(1, 1), child(2, 1));
        b.claims[0].fields = a.claims[0].fields.clone();
        let id = b.claims[0].evidence[0].clone();
        b.evidence.get_mut(&id).unwrap().quote = a.claims[0].fields["statement"].clone();
        let result = reduce(&profile, &[&a, &b]);
        assert_eq!(result.claims.len(), 1);
        assert_eq!(result.claims[0].evidence.len(), 2);
    }

    #[test]
    fn a_broken_child_makes_its_parent_partial_and_hands_on_nothing() {
        let profile = Profile::built_in("narrative").unwrap();
        let mut broken = child(1, 2);
        broken.status = NodeStatus::Invalid;
        let result = reduce(&profile, &[&broken, &child(2, 1)]);
        assert_eq!(result.status, NodeStatus::Partial);
        assert_eq!(result.claims.len(), 1);
        let empty = reduce(&profile, &[&NodeResult::empty(NodeStatus::Ineligible)]);
        assert_eq!(empty.status, NodeStatus::Valid);
    }
}
