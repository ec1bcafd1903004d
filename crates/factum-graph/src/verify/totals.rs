//! Counts, the list of what was out of date, and the generations' table.

use std::collections::HashSet;

use factum_base::{canonical_json, sha256};
use serde_json::Value;

use super::FindingClass::{Counts, Format, Generation, Invalidation};
use super::shape::{Fields, Run};
use super::tree::Index;
use super::{Report, hex, is_hex_digest};

const COUNTS: [&str; 6] = [
    "nodes",
    "recomputed",
    "reused",
    "model_calls",
    "generations_reused",
    "new_tokens",
];
const INVALIDATION: [&str; 5] = [
    "nodes",
    "previous_root_key",
    "current_root_key",
    "previous_status",
    "serve_refusal",
];

pub(super) fn check(run: &Run<'_>, index: &Index<'_>, report: &mut Report) {
    check_counts(run, report);
    check_invalidation(run, index, report);
    let generations = Fields::any(
        run.top.value("generations"),
        "run.generations".to_owned(),
        report,
    );
    for (id, record) in generations.entries() {
        let sound = is_hex_digest(id) && record.is_object();
        report.require(
            sound,
            Format,
            &generations.place,
            "holds what is not a generation by digest",
        );
        check_input(id, record, &generations.place, report);
    }
}

/// A generation's digest is that of its recorded input. A record in another form is not understood here.
fn check_input(id: &str, record: &Value, place: &str, report: &mut Report) {
    let form = record.get("format").and_then(Value::as_str);
    if form != Some("factum/generation-input/1") {
        return;
    }
    let parts = [
        "constraint",
        "constraint_version",
        "format",
        "input_budget",
        "max_new_tokens",
        "messages",
        "model",
    ];
    let input: serde_json::Map<String, Value> = parts
        .into_iter()
        .filter_map(|part| Some((part.to_owned(), record.get(part)?.clone())))
        .collect();
    let digest = canonical_json(&input).map(|text| hex(&sha256(text.as_bytes())));
    report.require(
        digest.is_ok_and(|digest| digest == id),
        Generation,
        place,
        "holds a generation whose digest is not that of its input",
    );
}

fn check_counts(run: &Run<'_>, report: &mut Report) {
    let counts = Fields::open(
        run.top.value("counts"),
        "run.counts".to_owned(),
        &COUNTS,
        report,
    );
    let [nodes, recomputed, reused, _, generations_reused, _] =
        COUNTS.map(|name| counts.number(name, report));
    let place = &counts.place;
    let marked = run.nodes.iter().filter(|node| node.reused).count() as u64;
    let all = run.nodes.len() as u64;
    report.require(
        nodes == all,
        Counts,
        place,
        "has another number of nodes than the run",
    );
    report.require(
        reused == marked,
        Counts,
        place,
        "has another number of reused nodes than the run",
    );
    let made = all - marked;
    report.require(
        recomputed == made,
        Counts,
        place,
        "has another number of new nodes than the run",
    );
    let nothing = !run.full || (marked == 0 && generations_reused == 0);
    report.require(
        nothing,
        Counts,
        place,
        "reuses something, although the build is full",
    );
}

fn check_invalidation(run: &Run<'_>, index: &Index<'_>, report: &mut Report) {
    let place = "run.invalidation".to_owned();
    let fields = Fields::open(run.top.value("invalidation"), place, &INVALIDATION, report);
    let place = &fields.place;
    let current = fields.digest("current_root_key", report) == run.root;
    report.require(
        current,
        Invalidation,
        place,
        "has another current root than the run",
    );
    let mut seen = HashSet::new();
    for name in fields.texts("nodes", report) {
        report.require(seen.insert(name), Invalidation, place, "names a node twice");
        let known = index.by_name.contains_key(name);
        report.require(
            known,
            Invalidation,
            place,
            "names a node that the run lacks",
        );
    }
    if let Some(key) = fields.optional_text("previous_root_key", report) {
        report.require(
            is_hex_digest(key),
            Invalidation,
            place,
            "has a previous root that is no key",
        );
    }
    if let Some(status) = fields.optional_text("previous_status", report) {
        let known = matches!(status, "VALID" | "PARTIAL" | "INVALID" | "INELIGIBLE");
        report.require(known, Invalidation, place, "has an unknown previous status");
    }
    let refusal = fields.value("serve_refusal");
    let sound = matches!(refusal, Value::Null | Value::Object(_));
    report.require(
        sound,
        Invalidation,
        place,
        "has a refusal that is not an object",
    );
}
