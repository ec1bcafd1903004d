//! Citations: word for word in the version they name, which the reader may read at that step. Offsets count Unicode
//! code points, half open.

use std::collections::BTreeSet;

use serde_json::Value;

use super::corpus::CaseTexts;
use super::json::{field, list, number, text, texts};
use super::protocol::Standing;
use super::report::{Class, Report};
use super::tree::{Node, Tree};

/// What citations are held against.
pub(super) struct Held<'c> {
    pub(super) corpus: &'c CaseTexts,
    pub(super) standings: &'c [Standing<'c>],
}

impl Held<'_> {
    /// Whether a piece of evidence under an identity is current, eligible and word for word.
    pub(super) fn holds(&self, id: &str, piece: &Value) -> bool {
        self.fault(id, piece).is_none()
    }

    fn fault(&self, id: &str, piece: &Value) -> Option<&'static str> {
        let (doc_id, version) = (text(piece, "doc_id"), number(piece, "version"));
        let (Some(start), Some(end)) =
            (field(piece, "start").as_u64(), field(piece, "end").as_u64())
        else {
            return Some("has offsets that are no whole numbers");
        };
        let named = format!("{doc_id}@{version}:{start}:{end}");
        if named != id || named != text(piece, "evidence_id") {
            return Some("has an identity that does not match its parts");
        }
        let Some(standing) = self.standings.iter().find(|known| known.doc_id == doc_id) else {
            return Some("cites a document that the case file does not have");
        };
        if !standing.eligible {
            return Some("cites a document that is withdrawn or hidden");
        }
        if standing.version != version {
            return Some("cites a version that is not current");
        }
        let Some(known) = self.corpus.version(doc_id, version) else {
            return Some("cites a version that there is not");
        };
        if known.sha256 != text(piece, "text_sha256") {
            return Some("names another text");
        }
        let words = known
            .text
            .as_deref()
            .and_then(|text| slice(text, start, end));
        match words {
            None => Some("has offsets out of range"),
            Some(words) if words != text(piece, "quote") => Some("is not the text at its offsets"),
            Some(_) => None,
        }
    }

    /// Checks all that a run's nodes hold and cite.
    pub(super) fn check(&self, tree: &Tree<'_>, report: &mut Report) {
        for node in &tree.nodes {
            let held = field(node.result, "evidence").as_object();
            for (id, piece) in held.into_iter().flatten() {
                report.total.evidence += 1;
                if let Some(fault) = self.fault(id, piece) {
                    let place = format!("{} {}", node.place, super::json::short(id));
                    report.add(Class::Citation, place, fault);
                }
            }
            for claim in all_claims(node) {
                report.total.claims += 1;
                check_claim(node, claim, report);
            }
        }
    }
}

fn check_claim(node: &Node<'_>, claim: &Value, report: &mut Report) {
    let cited = list(claim, "evidence");
    let ids = texts(claim, "evidence");
    let distinct: BTreeSet<&&str> = ids.iter().collect();
    let sound = (1..=4).contains(&cited.len()) && distinct.len() == cited.len();
    let message = "has a claim that does not cite one to four distinct passages";
    report.require(sound, Class::Citation, &node.place, message);
    let evidence = field(node.result, "evidence");
    let known = ids.iter().all(|id| evidence.get(*id).is_some());
    let message = "has a claim that cites what the node does not hold";
    report.require(known, Class::Citation, &node.place, message);
}

/// The claims handed on and those withheld.
pub(super) fn all_claims<'r>(node: &Node<'r>) -> impl Iterator<Item = &'r Value> + use<'r> {
    let result = node.result;
    list(result, "claims")
        .iter()
        .chain(list(result, "withheld"))
}

/// The characters from `start` up to `end`, if the text has them.
fn slice(text: &str, start: u64, end: u64) -> Option<&str> {
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    if start >= end {
        return None;
    }
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let from = places.nth(start)?;
    let to = places.nth(end - start - 1)?;
    text.get(from..to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_code_points() {
        assert_eq!(slice("日本🌊\u{301}x", 1, 4), Some("本🌊\u{301}"));
        assert_eq!(slice("abc", 0, 3), Some("abc"));
        for (start, end) in [(0, 4), (3, 3), (2, 1), (4, 5), (0, u64::MAX)] {
            assert_eq!(slice("abc", start, end), None);
        }
    }
}
