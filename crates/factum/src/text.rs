//! How results read on a terminal and in Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use factum_casefile::{Evidence, EvidenceId, NodeStatus, Verdict};
use factum_engine::claim_diff::{ClaimChange, SummaryDiff};
use factum_engine::history::History;
use factum_engine::ledger::Ledger;
use factum_engine::serve::{Refusal, RefusalStatus, Summary};
use factum_engine::status::{CaseLine, CaseStatus};
use factum_engine::why::Why;
use factum_ingest::Location;

use crate::moment;

/// Whether a summary is shown as current or as history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    Current,
    History { event: u64 },
}

impl Label {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Current => "CURRENT",
            Self::History { .. } => "HISTORY",
        }
    }
}

/// A summary with the places of its evidence.
pub(crate) struct Page<'p> {
    pub(crate) summary: &'p Summary,
    pub(crate) places: &'p BTreeMap<EvidenceId, Location>,
    pub(crate) label: Label,
}

impl<'p> Page<'p> {
    /// The cited passages in the order of their numbers: number, id, place behind a comma, quote.
    pub(crate) fn passages<'c>(
        &'c self,
        citations: &'c Citations<'p>,
    ) -> impl Iterator<Item = (usize, &'p EvidenceId, String, &'p str)> + 'c {
        citations.iter().map(|(n, id)| {
            let place = self
                .places
                .get(id)
                .map(|place| format!(", {place}"))
                .unwrap_or_default();
            let quote = self.summary.evidence.get(id);
            (n, id, place, quote.map_or("", |one| one.quote.as_str()))
        })
    }
}

/// The numbers that citations are shown with: one place makes them, so text and list agree.
pub(crate) struct Citations<'p> {
    order: Vec<&'p EvidenceId>,
}

impl<'p> Citations<'p> {
    pub(crate) fn of(ids: impl Iterator<Item = &'p EvidenceId>) -> Self {
        let mut order: Vec<&EvidenceId> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        order.extend(ids.filter(|id| seen.insert(*id)));
        Self { order }
    }

    pub(crate) fn number(&self, id: &EvidenceId) -> usize {
        self.order
            .iter()
            .position(|known| *known == id)
            .map_or(0, |at| at + 1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &'p EvidenceId)> {
        self.order.iter().enumerate().map(|(at, id)| (at + 1, *id))
    }

    fn marks(&self, ids: &[EvidenceId]) -> String {
        ids.iter()
            .map(|id| format!("[{}]", self.number(id)))
            .collect()
    }
}

/// Text of a document for a terminal: line breaks folded, control characters shown, so that a document
/// can't move the cursor or pose as our own output.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut space = false;
    for c in text.chars() {
        if c.is_whitespace() {
            space = true;
            continue;
        }
        if space && !out.is_empty() {
            out.push(' ');
        }
        space = false;
        let bidi = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || bidi {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn heading(page: &Page<'_>) -> String {
    let summary = page.summary;
    let claims = plural(summary.claims.len() as u64, "claim", "claims");
    let documents = plural(summary.documents, "document", "documents");
    match page.label {
        Label::Current => format!(
            "CURRENT at event {} · {claims} citing {documents}",
            summary.event
        ),
        Label::History { event } => format!(
            "HISTORY: what was current at event {event}, built {} · {claims} citing {documents} · not the state of today",
            moment::shown(summary.built_at)
        ),
    }
}

/// What a reader must know beside the claims, in any format.
pub(crate) fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    if summary.claims.is_empty() && summary.withheld > 0 {
        notes.push("No claim is left to show.".to_owned());
    } else if summary.claims.is_empty() {
        notes.push(
            "No document has anything to say here: none is eligible, or none holds a claim."
                .to_owned(),
        );
    }
    if summary.withheld > 0 {
        notes.push(format!(
            "{} withheld, since no cited passage supports them.",
            plural(summary.withheld as u64, "claim is", "claims are")
        ));
    }
    if summary.status == NodeStatus::Partial {
        notes.push(
            "Part of the case file could not be summarised: a node below is INVALID.".to_owned(),
        );
    }
    notes
}

/// A summary for a terminal.
pub(crate) fn summary(page: &Page<'_>) -> String {
    let summary = page.summary;
    let citations = Citations::of(summary.claims.iter().flat_map(|(_, claim)| &claim.evidence));
    let mut out = format!(
        "{} ({}), for {}\n{}\n\n",
        clean(&summary.title),
        summary.case_id,
        summary.principal,
        heading(page)
    );
    for (n, (text, claim)) in summary.claims.iter().enumerate() {
        let verdict = match claim.support.verdict {
            Verdict::Supported => "",
            Verdict::Unsupported => " (UNSUPPORTED)",
            Verdict::Unchecked => " (unchecked)",
        };
        let _ = writeln!(
            out,
            "{:>3}. {} {}{verdict}",
            n + 1,
            clean(text),
            citations.marks(&claim.evidence)
        );
    }
    for note in notes(summary) {
        let _ = writeln!(out, "{note}");
    }
    if !summary.claims.is_empty() {
        out.push_str("\nCited passages\n");
        out.push_str(&sources(&citations, &summary.evidence, page.places));
    }
    out
}

fn sources(
    citations: &Citations<'_>,
    evidence: &BTreeMap<EvidenceId, Evidence>,
    places: &BTreeMap<EvidenceId, Location>,
) -> String {
    let mut out = String::new();
    for (n, id) in citations.iter() {
        let place = places
            .get(id)
            .map(|place| format!(", {}", clean(&place.to_string())))
            .unwrap_or_default();
        let quote = evidence.get(id).map_or("", |one| one.quote.as_str());
        let _ = writeln!(
            out,
            "{:>5} {} v{}{place}: “{}”",
            format!("[{n}]"),
            clean(id.doc_id.as_str()),
            id.version,
            clean(quote)
        );
    }
    out
}

/// Makes text safe inside Markdown: a document's text is never markup.
fn markdown_safe(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text).chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '&' | '~'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A summary as Markdown.
pub(crate) fn markdown(page: &Page<'_>) -> String {
    let summary = page.summary;
    let citations = Citations::of(summary.claims.iter().flat_map(|(_, claim)| &claim.evidence));
    let mut out = format!(
        "# {}\n\n{} · for {}\n\n",
        markdown_safe(&summary.title),
        heading(page),
        summary.principal
    );
    for (text, claim) in &summary.claims {
        let marks: String = claim
            .evidence
            .iter()
            .map(|id| format!("[^{}]", citations.number(id)))
            .collect();
        let flag = if claim.support.verdict == Verdict::Supported {
            ""
        } else {
            " *(not supported)*"
        };
        let _ = writeln!(out, "- {}{marks}{flag}", markdown_safe(text));
    }
    for note in notes(summary) {
        let _ = writeln!(out, "\n{note}");
    }
    out.push('\n');
    for (n, id, place, quote) in page.passages(&citations) {
        let _ = writeln!(
            out,
            "[^{n}]: {} v{}{}: “{}”",
            markdown_safe(id.doc_id.as_str()),
            id.version,
            markdown_safe(&place),
            markdown_safe(quote)
        );
    }
    out
}

/// Why a summary is not shown.
pub(crate) fn refusal(case: &str, refusal: &Refusal, label: Label) -> String {
    let mut out = match label {
        Label::Current => match refusal.status {
            RefusalStatus::Stale => "The summary is STALE and is not shown.\n".to_owned(),
            RefusalStatus::Invalid => "The summary is INVALID and is not shown.\n".to_owned(),
            RefusalStatus::Absent => "There is no summary to show (ABSENT).\n".to_owned(),
            RefusalStatus::Forbidden => "You may not see this summary (FORBIDDEN).\n".to_owned(),
        },
        Label::History { event } => {
            format!(
                "There was no current summary at event {event} ({}).\n",
                refusal.status.word()
            )
        }
    };
    for reason in &refusal.reasons {
        let _ = writeln!(out, "  - {}", clean(&reason.message));
    }
    // What was not current then can't be made so now.
    match label {
        Label::Current if refusal.status == RefusalStatus::Forbidden => {}
        Label::Current => {
            let _ = writeln!(out, "hint: factum build {case}");
        }
        Label::History { .. } => {
            let _ = writeln!(
                out,
                "hint: `factum history {case}` lists the runs with their events"
            );
        }
    }
    out
}

/// The list of case files.
pub(crate) fn cases(cases: &[CaseLine]) -> String {
    if cases.is_empty() {
        return "There are no case files. Make one: factum case new CASE\n".to_owned();
    }
    let width = cases
        .iter()
        .map(|case| case.case_id.as_str().chars().count())
        .max()
        .unwrap_or(0);
    cases
        .iter()
        .map(|case| {
            format!(
                "{:width$}  {:8} event {:<6} {} ({})\n",
                case.case_id.as_str(),
                case.summary,
                case.event,
                clean(&case.title),
                case.profile
            )
        })
        .collect()
}

/// One case file.
pub(crate) fn status(status: &CaseStatus) -> String {
    let mut out = format!(
        "{} ({}), profile {}, event {}\nSummary for {}: {}\n",
        clean(&status.line.title),
        status.line.case_id,
        status.line.profile,
        status.line.event,
        status.principal,
        status.line.summary
    );
    for reason in &status.reasons {
        let _ = writeln!(out, "  - {}", clean(&reason.message));
    }
    let _ = writeln!(
        out,
        "{}:",
        plural(status.documents.len() as u64, "document", "documents")
    );
    for document in &status.documents {
        let _ = writeln!(
            out,
            "  {:<9} v{:<3} {:>9} chars  {}",
            document.state,
            document.version,
            document.chars,
            clean(document.doc_id.as_str())
        );
    }
    out
}

/// Why a summary is stale, or what made it.
pub(crate) fn why(why: &Why) -> String {
    let mut out = format!("{}\n", why.status);
    for reason in &why.reasons {
        let _ = writeln!(out, "  - {}", clean(&reason.message));
    }
    if let Some(build) = &why.last_build {
        let _ = writeln!(
            out,
            "Built by {} at event {}: {} of {} nodes made, {} reused.",
            build.run_id,
            build.event,
            build.counts.recomputed,
            build.counts.nodes,
            build.counts.reused
        );
        if let Some(refusal) = build
            .invalidation
            .serve_refusal
            .as_ref()
            .and_then(|r| r.get("reasons"))
        {
            for reason in refusal.as_array().into_iter().flatten() {
                let message = reason.get("message").and_then(|m| m.as_str()).unwrap_or("");
                let _ = writeln!(out, "  because {}", clean(message));
            }
        }
    }
    if !why.nodes.is_empty() {
        let _ = writeln!(
            out,
            "A build makes at most {} of {} nodes again:",
            why.nodes.len(),
            why.all_nodes
        );
        for node in why.nodes.iter().take(40) {
            let doc = node
                .doc_id
                .as_ref()
                .map(|doc| format!(" {}", clean(doc.as_str())))
                .unwrap_or_default();
            let _ = writeln!(out, "  {}{doc}: {}", node.name, node.reason);
        }
        if why.nodes.len() > 40 {
            let _ = writeln!(out, "  ... and {} more", why.nodes.len() - 40);
        }
    }
    out
}

/// What changed between two summaries.
pub(crate) fn diff(diff: &SummaryDiff) -> String {
    let mut out = format!(
        "From {} (event {}) to {} (event {}): {} added, {} removed, {} changed, {} moved, {} as before.\n",
        diff.from,
        diff.from_event,
        diff.to,
        diff.to_event,
        diff.added.len(),
        diff.removed.len() + diff.removed_hidden.len(),
        diff.changed.len(),
        diff.moved.len(),
        diff.unchanged
    );
    let mut list = |sign: &str, changes: &[ClaimChange]| {
        for change in changes {
            if let Some(before) = &change.before
                && sign != ">"
            {
                let _ = writeln!(
                    out,
                    "  {} {}",
                    if sign == "~" { "-" } else { sign },
                    clean(before)
                );
            }
            if let Some(after) = &change.after {
                let _ = writeln!(
                    out,
                    "  {} {}",
                    if sign == "~" { "+" } else { sign },
                    clean(after)
                );
            }
            let _ = writeln!(out, "      {}", clean(&change.cause.message));
        }
    };
    list("~", &diff.changed);
    list("-", &diff.removed);
    list("+", &diff.added);
    list(">", &diff.moved);
    let mut hidden: BTreeMap<&str, u64> = BTreeMap::new();
    for one in &diff.removed_hidden {
        *hidden.entry(one.cause.message.as_str()).or_default() += 1;
    }
    for (cause, count) in hidden {
        let claims = plural(count, "claim of a document", "claims of documents");
        let _ = writeln!(
            out,
            "  - ({claims} that may no longer be shown)\n      {}",
            clean(cause)
        );
    }
    out
}

/// The ledger.
pub(crate) fn ledger(ledger: &Ledger, places: &BTreeMap<EvidenceId, Location>) -> String {
    let citations = Citations::of(ledger.facts.iter().flat_map(|fact| &fact.evidence));
    let mut out = format!(
        "{}, for {}, at event {}: {}, {}\n",
        ledger.case_id,
        ledger.principal,
        ledger.event,
        plural(ledger.facts.len() as u64, "fact", "facts"),
        plural(
            ledger.contradictions.len() as u64,
            "contradiction",
            "contradictions"
        )
    );
    for contradiction in &ledger.contradictions {
        let subject = contradiction
            .subject
            .as_ref()
            .map(|s| format!("{}: ", clean(s)))
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "\nCONTRADICTION {subject}{}",
            clean(&contradiction.field)
        );
        for value in &contradiction.values {
            let _ = writeln!(
                out,
                "  {} {}",
                clean(&value.value),
                citations.marks(&value.evidence)
            );
        }
    }
    out.push('\n');
    for fact in &ledger.facts {
        let _ = writeln!(
            out,
            "  {} {}",
            clean(&fact.text),
            citations.marks(&fact.evidence)
        );
    }
    if !ledger.contradictions_sought {
        out.push_str("\nThe profile of this case file names no fields, so contradictions are not looked for.\n");
    }
    if !ledger.facts.is_empty() {
        out.push_str("\nCited passages\n");
        out.push_str(&sources(&citations, &ledger.evidence, places));
    }
    out
}

/// Events and runs.
pub(crate) fn history(history: &History) -> String {
    let mut out = String::from("Events\n");
    for event in &history.events {
        let _ = writeln!(
            out,
            "{:>6}  {}  {}",
            event.number,
            moment::shown(event.at),
            clean(&event.message)
        );
    }
    out.push_str("Runs\n");
    for run in &history.runs {
        let made = run.counts.map_or_else(
            || run.state.clone(),
            |counts| format!("{} of {} nodes made", counts.recomputed, counts.nodes),
        );
        let full = if run.full { ", full" } else { "" };
        let _ = writeln!(
            out,
            "  {}  {}  event {}, {}{full}: {made}",
            run.run_id,
            moment::shown(run.at),
            run.event,
            run.generator
        );
    }
    out
}
