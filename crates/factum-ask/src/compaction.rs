//! What a model is shown of a conversation: the request, made anew each time from the history, the ledger and
//! what may be shown at this moment.
//!
//! Pure, and the history stays as it is. Evidence of earlier questions shrinks to receipts; what of it was
//! *cited* comes back whole in one capsule. What may not be shown now is never shown: not as a search result,
//! not in the capsule, and not in words that the model itself wrote while it saw it.

use std::collections::{BTreeMap, BTreeSet};

use factum_casefile::EvidenceId;
use thiserror::Error;

use crate::ledger::{Citation, Ledger};
use crate::message::{
    Capability, History, Message, Outcome, Part, Ref, Response, Source, ToolCall, ToolReturn,
    WhyIgnored,
};
use crate::policy::NOTICE;

/// The capsule's first lines.
pub const CAPSULE_HEADING: &str = "Passages cited in earlier answers. They can be cited again directly by their ids, without a search.";

const WITHHELD: &str =
    "(An earlier answer is left out: what it was made from has changed or may no longer be shown.)";
const GONE: &str = "can no longer be shown";

/// A piece of evidence as it may be shown now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// What its document is called.
    pub title: String,
    /// Exactly the text.
    pub text: String,
}

/// What may be shown at this moment, decided in one state of the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Live {
    /// Evidence of documents that are current for this principal.
    pub passages: BTreeMap<Ref, Passage>,
    /// Versions that are current for this principal.
    pub sources: BTreeSet<Source>,
}

/// What has to be looked up before a request can be shaped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needed {
    /// Evidence that would be shown.
    pub refs: BTreeSet<Ref>,
    /// Versions that answers were made from.
    pub sources: BTreeSet<Source>,
}

/// How requests are shaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Earlier evidence becomes receipts and a capsule; else all of it is shown again.
    pub compact: bool,
    /// Several case files: ids are written with the case file before them.
    pub several: bool,
}

/// A message as the model gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shaped {
    /// To the model.
    Request(Vec<ShapedPart>),
    /// From the model.
    Response {
        /// Its words.
        text: String,
        /// Its calls.
        calls: Vec<ToolCall>,
    },
}

/// A part of a message to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShapedPart {
    /// A person's words.
    Question(String),
    /// The policy's notice.
    Notice(String),
    /// A tool's answer, with the capsule behind it where this one carries it.
    Return {
        /// The call it answers.
        call_id: String,
        /// The tool.
        tool: String,
        /// Its words.
        text: String,
        /// What was cited earlier.
        capsule: Option<String>,
    },
    /// What was cited earlier, where no tool's answer can carry it.
    Capsule(String),
}

/// A request, and the versions whose words are in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its messages.
    pub messages: Vec<Shaped>,
    /// Whatever is answered to it was written in sight of these.
    pub sources: BTreeSet<Source>,
}

/// Why no request can be made: history and ledger do not belong together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompactionError {
    /// A cited occurrence without its citation.
    #[error("{} of {} was cited, but its citation is lost", .0.evidence, .0.capability)]
    NoCitation(Ref),
    /// Earlier evidence of a capability whose record did not come along.
    #[error("the history holds evidence of {0:?}, but its ledger did not come along")]
    NoRecord(Capability),
}

/// How an id is written for the model.
pub fn written_id(one: &Ref, form: Form) -> String {
    if form.several {
        format!("{}/{}", one.capability, one.evidence)
    } else {
        one.evidence.to_string()
    }
}

/// What has to be looked up for [`shape`].
pub fn needed(history: &History, ledger: &Ledger, form: Form) -> Needed {
    let boundary = boundary(ledger);
    let mut out = Needed::default();
    for (at, message) in history.messages().iter().enumerate() {
        match message {
            Message::Response(response) => out.sources.extend(response.sources.iter().cloned()),
            Message::Request(parts) if at >= boundary || !form.compact => {
                for one in parts.iter().filter_map(returned) {
                    out.refs.extend(one.outcome.shown().iter().cloned());
                }
            }
            Message::Request(_) => {}
        }
    }
    if form.compact {
        out.refs
            .extend(cited_before(ledger).into_iter().map(|(_, one)| one));
    }
    out
}

/// Makes the request for what comes next.
///
/// # Errors
/// History and ledger do not belong together.
pub fn shape(
    history: &History,
    ledger: &Ledger,
    live: &Live,
    form: Form,
) -> Result<Request, CompactionError> {
    check_owned(history, ledger)?;
    let mut shaper = Shaper {
        live,
        form,
        sources: BTreeSet::new(),
        withheld_calls: BTreeSet::new(),
        boundary: boundary(ledger),
    };
    let capsule = if form.compact {
        shaper.capsule(history, ledger)?
    } else {
        None
    };
    let carrier = capsule.as_ref().and_then(|_| shaper.carrier(history));
    let mut messages = Vec::with_capacity(history.messages().len() + 1);
    for (at, message) in history.messages().iter().enumerate() {
        if at == shaper.boundary
            && carrier.is_none()
            && let Some(text) = &capsule
        {
            messages.push(Shaped::Request(vec![ShapedPart::Capsule(text.clone())]));
        }
        messages.push(match message {
            Message::Response(response) => shaper.response(response),
            Message::Request(parts) => Shaped::Request(
                parts
                    .iter()
                    .enumerate()
                    .map(|(part_no, part)| {
                        let is_carrier = carrier == Some((at, part_no));
                        shaper.part(at, part, capsule.clone().filter(|_| is_carrier))
                    })
                    .collect(),
            ),
        });
    }
    Ok(Request {
        messages,
        sources: shaper.sources,
    })
}

// Everything before the question that is asked now.
fn boundary(ledger: &Ledger) -> usize {
    usize::try_from(ledger.question().unwrap_or(0)).unwrap_or(usize::MAX)
}

fn returned(part: &Part) -> Option<&ToolReturn> {
    match part {
        Part::Return(one) => Some(one),
        _ => None,
    }
}

fn check_owned(history: &History, ledger: &Ledger) -> Result<(), CompactionError> {
    let earlier = history.messages().iter().take(boundary(ledger));
    for message in earlier {
        let Message::Request(parts) = message else {
            continue;
        };
        for one in parts
            .iter()
            .filter_map(returned)
            .flat_map(|one| one.outcome.shown())
        {
            if ledger.capability(&one.capability).is_none() {
                return Err(CompactionError::NoRecord(one.capability.clone()));
            }
        }
    }
    Ok(())
}

/// What earlier questions cited, with the newest of them: newest first, then by capability and id.
fn cited_before(ledger: &Ledger) -> Vec<(u64, Ref)> {
    let now = ledger.question().unwrap_or(0);
    let mut all: Vec<(u64, Ref)> = ledger
        .capabilities()
        .flat_map(|(name, state)| {
            state
                .record
                .occurrences()
                .filter_map(move |(id, occurrence)| {
                    let newest = occurrence.cited_in.range(..now).next_back()?;
                    Some((*newest, Ref::new(name.clone(), id.clone())))
                })
        })
        .collect();
    all.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| by_name(x, y)));
    all
}

fn by_name(a: &Ref, b: &Ref) -> std::cmp::Ordering {
    let key = |one: &Ref| (one.capability.clone(), one.evidence.clone());
    key(a).cmp(&key(b))
}

struct Shaper<'a> {
    live: &'a Live,
    form: Form,
    sources: BTreeSet<Source>,
    /// Calls of responses that are left out: what was answered to them repeats none of their words.
    withheld_calls: BTreeSet<String>,
    boundary: usize,
}

impl Shaper<'_> {
    /// The newest earlier tool answer that shows evidence: message and part.
    fn carrier(&self, history: &History) -> Option<(usize, usize)> {
        let mut last = None;
        for (at, message) in history.messages().iter().enumerate().take(self.boundary) {
            let Message::Request(parts) = message else {
                continue;
            };
            for (part_no, part) in parts.iter().enumerate() {
                if returned(part).is_some_and(|one| is_owned(&one.outcome)) {
                    last = Some((at, part_no));
                }
            }
        }
        last
    }

    fn capsule(
        &mut self,
        history: &History,
        ledger: &Ledger,
    ) -> Result<Option<String>, CompactionError> {
        let now = history.since(self.boundary as u64);
        let shown: BTreeSet<&Ref> = crate::message::returns(now)
            .flat_map(|one| one.outcome.shown())
            .collect();
        let mut groups: Vec<(u64, Vec<String>)> = Vec::new();
        for (question, one) in cited_before(ledger) {
            let citation = ledger
                .citation(&one)
                .ok_or_else(|| CompactionError::NoCitation(one.clone()))?;
            if !self.live.passages.contains_key(&one) || shown.contains(&one) {
                continue;
            }
            let entry = self.entry(&one, citation);
            match groups.last_mut() {
                Some((of, entries)) if *of == question => entries.push(entry),
                _ => groups.push((question, vec![entry])),
            }
        }
        if groups.is_empty() {
            return Ok(None);
        }
        let mut text = CAPSULE_HEADING.to_owned();
        for (ordinal, (_, entries)) in groups.iter().enumerate() {
            text.push_str(&format!("\n\nGroup {}", ordinal + 1));
            for entry in entries {
                text.push_str("\n\n");
                text.push_str(entry);
            }
        }
        Ok(Some(text))
    }

    fn entry(&mut self, one: &Ref, citation: &Citation) -> String {
        self.sources.insert(one.source());
        format!(
            "[{}]\n{}\n{}",
            written_id(one, self.form),
            citation.title,
            citation.quote
        )
    }

    fn response(&mut self, response: &Response) -> Shaped {
        if response.sources.is_subset(&self.live.sources) {
            self.sources.extend(response.sources.iter().cloned());
            return Shaped::Response {
                text: response.text.clone(),
                calls: response.calls.clone(),
            };
        }
        // What it looked for, and even the name of a tool that it made up, may be words it had read.
        self.withheld_calls
            .extend(response.calls.iter().map(|call| call.id.clone()));
        let calls = response.calls.iter().map(|call| ToolCall {
            id: call.id.clone(),
            tool: known_tool(&call.tool).to_owned(),
            arguments: "{}".to_owned(),
        });
        Shaped::Response {
            text: WITHHELD.to_owned(),
            calls: calls.collect(),
        }
    }

    fn part(&mut self, at: usize, part: &Part, capsule: Option<String>) -> ShapedPart {
        match part {
            Part::Question { text } => ShapedPart::Question(text.clone()),
            Part::Notice { .. } => ShapedPart::Notice(NOTICE.to_owned()),
            Part::Return(one) => {
                let earlier = at < self.boundary && self.form.compact;
                let withheld = self.withheld_calls.contains(&one.call_id);
                let text = if earlier && is_owned(&one.outcome) {
                    receipt(one.outcome.shown().len())
                } else {
                    self.outcome(&one.outcome, !withheld)
                };
                let tool = if withheld {
                    known_tool(&one.tool)
                } else {
                    &one.tool
                };
                ShapedPart::Return {
                    call_id: one.call_id.clone(),
                    tool: tool.to_owned(),
                    text,
                    capsule,
                }
            }
        }
    }

    fn outcome(&mut self, outcome: &Outcome, may_repeat: bool) -> String {
        match outcome {
            Outcome::Found { refs } if refs.is_empty() => "Nothing was found.".to_owned(),
            Outcome::Found { refs } | Outcome::Context { refs } => self.passages(refs),
            Outcome::Cited { refs, ignored } => {
                let mut text = match refs.len() {
                    0 => "Noted: nothing supports this answer.".to_owned(),
                    n => format!("Noted: the answer rests on {n} passages."),
                };
                if !ignored.is_empty() {
                    text.push_str(&format!(
                        " {} Nothing more is needed.",
                        said_of(ignored, may_repeat)
                    ));
                }
                text
            }
            Outcome::NotCited { ignored } => format!(
                "{} Nothing is noted. Cite the ids of passages that a search showed, or cite none.",
                said_of(ignored, may_repeat)
            ),
            Outcome::Executed { .. } => "Done.".to_owned(),
            Outcome::Exhausted => {
                "No more calls of this tool are possible. Answer with what is at hand, and cite it."
                    .to_owned()
            }
            Outcome::Refused { reason } if may_repeat => reason.clone(),
            Outcome::Refused { .. } => "This call could not be used.".to_owned(),
        }
    }

    fn passages(&mut self, refs: &[Ref]) -> String {
        let mut entries = Vec::with_capacity(refs.len());
        let mut gone = 0;
        for one in refs {
            let Some(passage) = self.live.passages.get(one) else {
                gone += 1;
                continue;
            };
            self.sources.insert(one.source());
            entries.push(format!(
                "[{}]\n{}\n{}",
                written_id(one, self.form),
                passage.title,
                passage.text
            ));
        }
        if gone > 0 {
            entries.push(format!("({gone} passages {GONE}.)"));
        }
        entries.join("\n\n")
    }
}

fn is_owned(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Found { .. } | Outcome::Context { .. })
}

fn receipt(count: usize) -> String {
    format!(
        "(Earlier result of {count} passages, left out here. What of it was cited can be cited again.)"
    )
}

fn known_tool(name: &str) -> &str {
    match name {
        "search" | "read" | "cite" => name,
        _ => "unknown",
    }
}

fn said_of(ignored: &[crate::message::Ignored], may_repeat: bool) -> String {
    let count = |why: WhyIgnored| ignored.iter().filter(|one| one.why == why).count();
    let mut said = Vec::new();
    let unknown = ignored.iter().filter(|one| one.why == WhyIgnored::Unknown);
    let ids: Vec<&str> = unknown.map(|one| one.id.as_str()).collect();
    if !ids.is_empty() && may_repeat {
        said.push(format!("Not known, and ignored: {}.", ids.join(", ")));
    } else if !ids.is_empty() {
        said.push(format!("Ignored: {} that are not known.", ids.len()));
    }
    for (why, words) in [
        (WhyIgnored::Stale, "of an older version of its document"),
        (
            WhyIgnored::Ineligible,
            "of a document that may not be shown",
        ),
    ] {
        if count(why) > 0 {
            said.push(format!("Ignored: {} {words}.", count(why)));
        }
    }
    said.join(" ")
}

/// The evidence ids of an outcome, by capability.
pub fn by_capability(refs: &[Ref]) -> BTreeMap<&str, Vec<EvidenceId>> {
    let mut out: BTreeMap<&str, Vec<EvidenceId>> = BTreeMap::new();
    for one in refs {
        out.entry(&one.capability)
            .or_default()
            .push(one.evidence.clone());
    }
    out
}
