//! The snapshot against itself, and the leaves against the snapshot.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::FindingClass::{Access, Format, Segments, Snapshot, Version};
use super::Report;
use super::shape::{Node, Run, SlotRow, Spec, canonical_digest, inexact};

pub(super) fn check(run: &Run<'_>, report: &mut Report) {
    check_digest(run, report);
    check_slots(run, report);
    let by_slot: HashMap<&str, &SlotRow<'_>> =
        run.slots.iter().map(|slot| (slot.slot, slot)).collect();
    let mut read: BTreeMap<&str, Vec<Option<(u64, u64)>>> = BTreeMap::new();
    for node in &run.nodes {
        let Spec::Leaf { slot, segment } = &node.spec else {
            continue;
        };
        match by_slot.get(slot.slot) {
            Some(row) => check_leaf(node, slot, row, report),
            None => report.add(
                Snapshot,
                &slot.place,
                "is a leaf of a slot that the snapshot lacks",
            ),
        }
        read.entry(slot.slot).or_default().push(*segment);
    }
    for slot in &run.slots {
        check_segments(
            slot,
            read.get(slot.slot).map_or(&[][..], Vec::as_slice),
            report,
        );
    }
}

fn check_digest(run: &Run<'_>, report: &mut Report) {
    let snapshot = run.top.value("snapshot");
    let stated = run.top.digest("snapshot_sha256", report);
    let right = canonical_digest(snapshot).is_some_and(|digest| digest == stated);
    let place = "run.snapshot_sha256";
    report.require(
        right,
        Snapshot,
        place,
        "is not the SHA-256 of the snapshot's RFC 8785 text",
    );
    if let Some(what) = inexact(snapshot) {
        report.add(Format, "run.snapshot", format!("holds {what}"));
    }
}

fn check_slots(run: &Run<'_>, report: &mut Report) {
    let mut documents = HashSet::new();
    let mut before = "";
    for slot in &run.slots {
        let place = &slot.place;
        report.require(
            before < slot.slot,
            Snapshot,
            place,
            "does not come behind the slot before it",
        );
        let new = documents.insert(slot.doc_id);
        report.require(new, Snapshot, place, "has the document of an earlier slot");
        let sound = slot.active || !slot.eligible;
        report.require(sound, Access, place, "is eligible, but not active");
        let known = slot.access_revision <= run.event;
        report.require(
            known,
            Access,
            place,
            "has an access revision behind the run's event",
        );
        let version = (1..=u64::from(u32::MAX)).contains(&slot.version);
        report.require(version, Version, place, "has a version that can't be");
        before = slot.slot;
    }
}

fn check_leaf(node: &Node<'_>, leaf: &SlotRow<'_>, row: &SlotRow<'_>, report: &mut Report) {
    let place = |field: &str| format!("{}.spec.{field}", node.place);
    let message = "is not what the snapshot says";
    report.require(
        leaf.doc_id == row.doc_id,
        Version,
        &place("doc_id"),
        message,
    );
    report.require(
        leaf.version == row.version,
        Version,
        &place("version"),
        message,
    );
    report.require(
        leaf.text_sha256 == row.text_sha256,
        Version,
        &place("text_sha256"),
        message,
    );
    report.require(leaf.active == row.active, Access, &place("active"), message);
    report.require(
        leaf.eligible == row.eligible,
        Access,
        &place("eligible"),
        message,
    );
    let same = leaf.access_revision == row.access_revision;
    report.require(same, Access, &place("access_revision"), message);
}

// Whether the last segment ends where the text does is checked where the text is at hand.
fn check_segments(slot: &SlotRow<'_>, read: &[Option<(u64, u64)>], report: &mut Report) {
    let place = &slot.place;
    if read.is_empty() {
        return report.add(Snapshot, place, "has no leaf");
    }
    if !slot.eligible {
        let one = read == [None];
        return report.require(
            one,
            Segments,
            place,
            "is not eligible, so one leaf without a segment",
        );
    }
    let mut spans: Vec<(u64, u64)> = read.iter().copied().flatten().collect();
    report.require(
        spans.len() == read.len(),
        Segments,
        place,
        "has a leaf without a segment",
    );
    spans.sort_unstable();
    let mut covered = 0;
    for (start, end) in &spans {
        report.require(
            *start == covered,
            Segments,
            place,
            "has segments with a gap or an overlap",
        );
        // Only an empty text has an empty segment.
        let sound = end > start || spans.len() == 1;
        report.require(sound, Segments, place, "has a segment that covers nothing");
        covered = *end;
    }
}
