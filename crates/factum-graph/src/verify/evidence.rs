//! Evidence and texts. Everything that concerns one document is done together, so that each text is
//! asked for once and only one is held at a time.

use std::collections::{BTreeMap, HashMap};

use factum_base::sha256;

use super::FindingClass::{Evidence, Format, Quote, Segments, Text};
use super::shape::{Node, Piece, Run, SlotRow, Spec};
use super::{Report, hex};

pub(super) fn check(
    run: &Run<'_>,
    text: &dyn Fn(&str, u32) -> Option<String>,
    report: &mut Report,
) {
    let mut cited: BTreeMap<&str, Vec<&Piece<'_>>> = BTreeMap::new();
    for node in &run.nodes {
        for piece in &node.result.evidence {
            check_identity(piece, report);
            check_segment(node, piece, report);
            cited.entry(piece.doc_id).or_default().push(piece);
        }
    }
    let ends = ends_of_segments(run);
    for slot in &run.slots {
        let pieces = cited.remove(slot.doc_id).unwrap_or_default();
        check_document(slot, &pieces, ends.get(slot.slot).copied(), text, report);
    }
    for piece in cited.into_values().flatten() {
        report.add(
            Evidence,
            &piece.place,
            "cites a document that is not in the snapshot",
        );
    }
}

fn check_identity(piece: &Piece<'_>, report: &mut Report) {
    let Piece {
        doc_id,
        version,
        start,
        end,
        ..
    } = piece;
    let id = format!("{doc_id}@{version}:{start}:{end}");
    let right = id == piece.id && id == piece.stated_id;
    report.require(
        right,
        Evidence,
        &piece.place,
        "has an id that does not match its parts",
    );
    report.require(start < end, Evidence, &piece.place, "covers no characters");
    let in_range = [*version, *start, *end]
        .iter()
        .all(|&n| u32::try_from(n).is_ok());
    report.require(
        in_range,
        Format,
        &piece.place,
        "has a number that is out of range",
    );
}

fn check_segment(node: &Node<'_>, piece: &Piece<'_>, report: &mut Report) {
    let Spec::Leaf { slot, segment } = &node.spec else {
        return;
    };
    report.require(
        piece.doc_id == slot.doc_id && piece.version == slot.version,
        Evidence,
        &piece.place,
        "cites another document or version than its leaf reads",
    );
    let within = segment.is_some_and(|(start, end)| piece.start >= start && piece.end <= end);
    report.require(
        within,
        Evidence,
        &piece.place,
        "lies outside its leaf's segment",
    );
}

fn ends_of_segments<'j>(run: &Run<'j>) -> HashMap<&'j str, u64> {
    let mut ends = HashMap::new();
    for node in &run.nodes {
        if let Spec::Leaf {
            slot,
            segment: Some((_, end)),
        } = &node.spec
        {
            let known: &mut u64 = ends.entry(slot.slot).or_default();
            *known = (*known).max(*end);
        }
    }
    ends
}

fn check_document(
    slot: &SlotRow<'_>,
    pieces: &[&Piece<'_>],
    segments_end: Option<u64>,
    text: &dyn Fn(&str, u32) -> Option<String>,
    report: &mut Report,
) {
    for piece in pieces {
        check_state(piece, slot, report);
    }
    if !slot.eligible {
        return;
    }
    let found = u32::try_from(slot.version)
        .ok()
        .and_then(|version| text(slot.doc_id, version));
    let Some(text) = found else {
        return report.add(
            Text,
            &slot.place,
            "has no text at hand, so its quotes can't be checked",
        );
    };
    let right = hex(&sha256(text.as_bytes())) == slot.text_sha256;
    report.require(right, Text, &slot.place, "has a text of another digest");
    let points = CodePoints::new(&text);
    if segments_end.is_some_and(|end| end != points.length) {
        report.add(
            Segments,
            &slot.place,
            "has segments that don't end where the text does",
        );
    }
    for piece in pieces {
        match points.slice(piece.start, piece.end) {
            None => report.add(
                Evidence,
                &piece.place,
                "has offsets that don't fit the text",
            ),
            Some(slice) => {
                let message = "is not the text at its offsets";
                report.require(slice == piece.quote, Quote, &piece.place, message);
            }
        }
    }
}

fn check_state(piece: &Piece<'_>, slot: &SlotRow<'_>, report: &mut Report) {
    let place = &piece.place;
    report.require(slot.active, Evidence, place, "cites a withdrawn document");
    report.require(
        slot.eligible,
        Evidence,
        place,
        "cites a document the principal may not see",
    );
    let version = piece.version == slot.version;
    report.require(
        version,
        Evidence,
        place,
        "cites another version than the snapshot's",
    );
    let text = piece.text_sha256 == slot.text_sha256;
    report.require(
        text,
        Evidence,
        place,
        "was taken from another text than the snapshot's",
    );
}

/// A text by code points. A mark every 256 code points keeps thousands of quotes of one long text
/// from walking it from the start each.
struct CodePoints<'t> {
    text: &'t str,
    marks: Vec<usize>,
    length: u64,
}

impl<'t> CodePoints<'t> {
    fn new(text: &'t str) -> Self {
        let marks = text
            .char_indices()
            .step_by(256)
            .map(|(byte, _)| byte)
            .collect();
        Self {
            text,
            marks,
            length: text.chars().count() as u64,
        }
    }

    fn slice(&self, start: u64, end: u64) -> Option<&'t str> {
        if start > end || end > self.length {
            return None;
        }
        let start = usize::try_from(start).ok()?;
        let count = usize::try_from(end).ok()? - start;
        let mark = self
            .marks
            .get(start / 256)
            .copied()
            .unwrap_or(self.text.len());
        let mut chars = self.text.get(mark..)?.chars();
        for _ in 0..start % 256 {
            chars.next();
        }
        let rest = chars.as_str();
        for _ in 0..count {
            chars.next();
        }
        rest.get(..rest.len() - chars.as_str().len())
    }
}
