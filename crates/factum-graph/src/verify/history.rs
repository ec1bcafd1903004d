//! The case file's events: their chain, and what they let a principal see.
//!
//! The snapshot is worked out document by document: what happened to the document itself and to the
//! principal's rights, in order, then what of it shows at the end.

use std::collections::BTreeMap;

use factum_base::canonical_json;
use serde_json::Value;

use super::FindingClass::{Access, EventChain, Snapshot, Version};
use super::shape::{Fields, Run, SlotRow, inexact};
use super::{Finding, Report, hex, is_hex_digest, tagged};

/// Checks a chain: each event with the chain digest recorded for it, in hex, from the first event on.
/// Each digest must be that of the digest before and the event; numbers must run from 1 without gaps.
///
/// A link is the tagged digest (`factum/event/1`) of two parts: the 32 bytes of the link before
/// (nothing for the first), and the event's RFC 8785 text.
pub fn verify_event_chain(events: &[(Value, String)]) -> Vec<Finding> {
    let mut report = Report::default();
    let mut before: Vec<u8> = Vec::new();
    for (n, (event, stated)) in events.iter().enumerate() {
        let place = format!("events[{n}]");
        if super::shape::deeper_than(event, crate::run_file::MAX_DEPTH) {
            report.add(EventChain, &place, "is nested too deep to be an event");
            continue;
        }
        let number = event.get("number").and_then(Value::as_u64);
        let right = number == Some(n as u64 + 1);
        report.require(
            right,
            EventChain,
            &place,
            "is not numbered one more than the event before",
        );
        if let Some(what) = inexact(event) {
            report.add(EventChain, &place, format!("holds {what}"));
        }
        let body = canonical_json(event).unwrap_or_default();
        let link = tagged("factum/event/1", &[&before, body.as_bytes()]);
        let right = *stated == hex(&link);
        report.require(
            right,
            EventChain,
            &place,
            "has a chain digest that does not follow",
        );
        // Going on from what is stated keeps one broken link from making all later ones wrong.
        before = bytes_of_hex(stated).unwrap_or_else(|| link.to_vec());
    }
    report.findings
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    if !is_hex_digest(text) {
        return None;
    }
    let digit = |b: u8| char::from(b).to_digit(16);
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect()
}

/// What happened to one document, or to the principal's rights.
#[derive(Clone, Copy)]
enum Step<'j> {
    Published {
        version: u64,
        text_sha256: &'j str,
        slot: &'j str,
    },
    Active(bool),
    Moved {
        slot: &'j str,
    },
    /// Rights given or taken; `whole` for the whole case file.
    Rights {
        given: bool,
        whole: bool,
    },
}

struct Happened<'j> {
    number: u64,
    step: Step<'j>,
}

pub(super) fn check_snapshot(run: &Run<'_>, events: &[Value], owner: &str, report: &mut Report) {
    let mut documents: BTreeMap<&str, Vec<Happened<'_>>> = BTreeMap::new();
    let mut whole: Vec<Happened<'_>> = Vec::new();
    for (n, event) in events.iter().enumerate() {
        let Some((number, doc_id, step)) = read_event(event, n, run.principal, report) else {
            continue;
        };
        if number > run.event {
            continue;
        }
        match doc_id {
            Some(doc_id) => documents
                .entry(doc_id)
                .or_default()
                .push(Happened { number, step }),
            None => whole.push(Happened { number, step }),
        }
    }
    if run.event > events.len() as u64 {
        report.add(Snapshot, "run.event", "is behind the last event");
    }
    let standing = run.principal == owner;
    let expected: BTreeMap<&str, SlotRow<'_>> = documents
        .iter()
        .filter_map(|(doc_id, own)| Some((*doc_id, state_of(doc_id, own, &whole, standing)?)))
        .collect();
    compare(run, &expected, report);
}

// Events that concern only others' rights are checked in form, and then give nothing.
fn read_event<'j>(
    value: &'j Value,
    n: usize,
    principal: &str,
    report: &mut Report,
) -> Option<(u64, Option<&'j str>, Step<'j>)> {
    let word = value.get("event").and_then(Value::as_str).unwrap_or("");
    let own: &[&str] = match word {
        "published" => &["doc_id", "version", "text_sha256", "slot"],
        "withdrawn" => &["doc_id", "file_gone"],
        "reinstated" => &["doc_id"],
        "moved" => &["doc_id", "from", "slot"],
        "granted" => &["doc_id", "to"],
        "revoked" => &["doc_id", "from"],
        _ => {
            report.add(EventChain, &format!("events[{n}]"), "is no known event");
            return None;
        }
    };
    let known: Vec<&str> = ["number", "at", "by", "event"]
        .iter()
        .chain(own)
        .copied()
        .collect();
    let fields = Fields::open(value, format!("events[{n}]"), &known, report);
    let number = fields.number("number", report);
    let right = number == n as u64 + 1;
    let message = "is not numbered one more than the event before";
    report.require(right, EventChain, &fields.place, message);
    fields.text("by", report);
    let at = fields.value("at").as_i64().is_some();
    report.require(at, EventChain, &fields.place, "has no time in milliseconds");
    let rights = |name: &str, given: bool, report: &mut Report| {
        let doc_id = fields.optional_text("doc_id", report);
        let concerned = fields.text(name, report) == principal;
        concerned.then_some((
            number,
            doc_id,
            Step::Rights {
                given,
                whole: doc_id.is_none(),
            },
        ))
    };
    let step = match word {
        "granted" => return rights("to", true, report),
        "revoked" => return rights("from", false, report),
        "published" => Step::Published {
            version: fields.number("version", report),
            text_sha256: fields.digest("text_sha256", report),
            slot: fields.text("slot", report),
        },
        "moved" => Step::Moved {
            slot: fields.text("slot", report),
        },
        _ => Step::Active(word == "reinstated"),
    };
    Some((number, Some(fields.text("doc_id", report)), step))
}

/// The document as the principal meets it at the end; `None` where it was never shown to it.
fn state_of<'j>(
    doc_id: &'j str,
    own: &[Happened<'j>],
    whole: &[Happened<'j>],
    standing: bool,
) -> Option<SlotRow<'j>> {
    let is_published = |h: &&Happened<'_>| matches!(h.step, Step::Published { .. });
    let first = own.iter().find(is_published)?.number;
    let mut steps: Vec<&Happened<'j>> = own.iter().chain(whole).collect();
    steps.sort_by_key(|h| h.number);
    // A right to one document begins only once there is the document; one to the whole case file
    // covers later documents.
    let counts = |h: &Happened<'_>| match h.step {
        Step::Rights { whole, .. } => whole || h.number > first,
        _ => h.number >= first,
    };
    steps.retain(|h| counts(h));
    let rights = |h: &&&Happened<'j>| matches!(h.step, Step::Rights { .. });
    // The latest grant, or the owner's standing right, then the first revocation behind it.
    let is_grant = |h: &&&Happened<'j>| matches!(h.step, Step::Rights { given: true, .. });
    let granted = steps.iter().rev().find(is_grant).map(|h| h.number);
    let from = granted.or(standing.then_some(0))?;
    let hidden = steps
        .iter()
        .filter(rights)
        .map(|h| h.number)
        .find(|&number| number > from);
    // Taken away before there was the document: it was never shown.
    if hidden.is_some_and(|number| number < first) {
        return None;
    }
    let last_right = steps.iter().rev().find(rights).map_or(0, |h| h.number);
    let mut slot = SlotRow {
        place: String::new(),
        slot: "",
        doc_id,
        version: 0,
        text_sha256: "",
        active: true,
        eligible: false,
        access_revision: last_right,
    };
    for happened in &steps {
        apply(&mut slot, happened, hidden);
    }
    slot.eligible = slot.active && hidden.is_none();
    Some(slot)
}

// The place in the case file is no secret of a document that has a slot; all else stays as last seen.
fn apply<'j>(slot: &mut SlotRow<'j>, happened: &Happened<'j>, hidden: Option<u64>) {
    let seen = hidden.is_none_or(|from| happened.number < from);
    match happened.step {
        Step::Published {
            version,
            text_sha256,
            slot: place,
        } => {
            if slot.slot.is_empty() {
                slot.slot = place;
            }
            if seen {
                (slot.version, slot.text_sha256) = (version, text_sha256);
            }
        }
        Step::Active(active) if seen => slot.active = active,
        Step::Moved { slot: place } => slot.slot = place,
        Step::Active(_) | Step::Rights { .. } => {}
    }
}

fn compare(run: &Run<'_>, expected: &BTreeMap<&str, SlotRow<'_>>, report: &mut Report) {
    let mut missing: BTreeMap<&str, &SlotRow<'_>> = expected.iter().map(|(k, v)| (*k, v)).collect();
    for slot in &run.slots {
        let Some(right) = missing.remove(slot.doc_id) else {
            report.add(
                Snapshot,
                &slot.place,
                "is a document that the principal was never shown",
            );
            continue;
        };
        let message = |field: &str| format!("has another {field} than the events give it");
        let differs = [
            (Snapshot, "slot", slot.slot != right.slot),
            (Version, "version", slot.version != right.version),
            (
                Version,
                "text digest",
                slot.text_sha256 != right.text_sha256,
            ),
            (Access, "active flag", slot.active != right.active),
            (Access, "eligible flag", slot.eligible != right.eligible),
            (
                Access,
                "access revision",
                slot.access_revision != right.access_revision,
            ),
        ];
        for (class, field, _) in differs.into_iter().filter(|(_, _, differs)| *differs) {
            report.add(class, &slot.place, message(field));
        }
    }
    for slot in missing.values() {
        report.add(
            Snapshot,
            "run.snapshot",
            format!("lacks the slot {}", slot.slot),
        );
    }
}
