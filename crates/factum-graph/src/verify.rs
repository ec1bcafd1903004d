//! The independent verification of an exported run.
//!
//! It works from the exported JSON, the raw texts and the events, and recomputes everything from
//! scratch. It shares nothing with the code that builds runs but canonical JSON and SHA-256 from
//! `factum-base`: a fault in the builder must not hide itself here. So it has its own reading of the
//! format, its own fold of the events, its own tagged digests.
//!
//! # What it can't check
//!
//! These parts of a run file are read, and their types are checked, but nothing in the file, the texts
//! or the events says what they must be:
//!
//! - `run_id`, `case_id`, `profile`, `seconds`;
//! - `event` beyond its snapshot: two event numbers with the same snapshot look alike;
//! - `counts.model_calls`, `counts.generations_reused` (but 0 in a full build), `counts.new_tokens`;
//! - `invalidation.nodes` beyond that they are names of this run, `previous_root_key`,
//!   `previous_status`, `serve_refusal`;
//! - what answers `generations` hold (their inputs are checked against their digests), and with it whether a
//!   node's claims are what its generation says, all of them, in its order;
//! - of a claim: `salience`, `support.version`, `support.detail`, and the wording of fields, except
//!   where the claim's own check binds it: by `verbatim` one field is a cited quote, by `fact-line`
//!   one cited quote holds every value that is not in the spec (a rule may set constants); whether a model's
//!   claim is rightly *unsupported* by `fact-line` is not checked, since no rule is applied again here;
//! - `diagnostic` and `repairs` beyond their presence.
//!
//! Without events the snapshot is only checked against itself.
//!
//! # What a verified run is not
//!
//! True. Its claims cite what they say they cite; whether a document is right, or a claim a fair reading
//! of its quotes, is for people to judge.

mod documents;
mod evidence;
mod history;
mod results;
mod shape;
mod totals;
mod tree;

use factum_base::sha256;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use history::verify_event_chain;

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingClass {
    /// A field is missing, unknown, of the wrong type or out of its range.
    Format,
    /// A key is not the digest of its spec.
    Key,
    /// A name is not what the node's spec and place make it.
    Name,
    /// The tree: unknown, late, shared, unordered or misplaced children.
    Children,
    /// An access fingerprint is not that of the documents below.
    AccessFingerprint,
    /// Nodes of one run were made by different transformations, or for another principal.
    Transformation,
    /// The snapshot: its digest, its slots, slots without leaves, leaves without slots.
    Snapshot,
    /// Document, version or text digest differ.
    Version,
    /// Active, eligible or access revision differ.
    Access,
    /// A text is missing or not the one its digest names.
    Text,
    /// The segments of a document don't cover it once.
    Segments,
    /// Evidence does not match its parts, its document, its segment, or what the node was given.
    Evidence,
    /// A quote is not the text at its offsets.
    Quote,
    /// A status that the node's document or children don't allow.
    Status,
    /// A claim without evidence, with foreign or repeated evidence, or at odds with its own check.
    Claim,
    /// A generation that the run does not hold.
    Generation,
    /// The root.
    Root,
    /// A count that is not so.
    Counts,
    /// The list of what was out of date.
    Invalidation,
    /// Events that are not numbered from 1 without gaps, or whose chain does not hold.
    EventChain,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of thing.
    pub class: FindingClass,
    /// Where, as a path into the run file or the events.
    pub place: String,
    /// What is wrong, without words of any text.
    pub message: String,
}

/// What a run is held against.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The owner of the case file, who sees all that is not revoked from it.
    pub owner: &'a str,
    /// The case file's events from the first on, in their exported form. Without them the snapshot is
    /// only checked against itself.
    pub events: Option<&'a [Value]>,
    /// The text of a document's version. It is asked only for what the snapshot lets the principal see.
    pub text: &'a dyn Fn(&str, u32) -> Option<String>,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("owner", &self.owner)
            .field("events", &self.events.map(<[Value]>::len))
            .finish_non_exhaustive()
    }
}

/// Checks an exported run, read by [`crate::run_file::parse_strict_json`], and returns every
/// difference found; none means that the run holds. Any JSON is accepted, and none makes it panic.
pub fn verify_run(run: &Value, sources: &Sources<'_>) -> Vec<Finding> {
    let mut report = Report::default();
    if shape::deeper_than(run, crate::run_file::MAX_DEPTH) {
        report.add(
            FindingClass::Format,
            "run",
            "is nested too deep to be a run",
        );
        return report.findings;
    }
    let run = shape::Run::read(run, &mut report);
    let index = tree::check(&run, &mut report);
    documents::check(&run, &mut report);
    if let Some(events) = sources.events {
        history::check_snapshot(&run, events, sources.owner, &mut report);
    }
    evidence::check(&run, sources.text, &mut report);
    results::check(&run, &index, &mut report);
    totals::check(&run, &index, &mut report);
    report.findings
}

#[derive(Default)]
struct Report {
    findings: Vec<Finding>,
}

impl Report {
    fn add(&mut self, class: FindingClass, place: &str, message: impl Into<String>) {
        self.findings.push(Finding {
            class,
            place: place.to_owned(),
            message: message.into(),
        });
    }

    fn require(&mut self, holds: bool, class: FindingClass, place: &str, message: &str) {
        if !holds {
            self.add(class, place, message);
        }
    }
}

/// SHA-256 of the tag, a zero byte, and the parts, each behind its length as eight bytes, big end
/// first. Fingerprints and event chains are such digests.
fn tagged(tag: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut bytes = tag.as_bytes().to_vec();
    bytes.push(0);
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    sha256(&bytes)
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes
        .iter()
        .flat_map(|b| [b >> 4, b & 15])
        .filter_map(|d| char::from_digit(d.into(), 16))
        .collect()
}

fn is_hex_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
