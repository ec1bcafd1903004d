//! One HTML file that needs nothing else: the scores, and each summary as a person reads it, with matched and
//! forbidden mentions marked, missed events named, and beats linked to their lines.
//!
//! All text from outside is escaped by the template, and the page allows itself no script and no connection.

mod source;

use std::collections::HashMap;
use std::ops::Range;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::fixture::Fixture;
use crate::gates::GateState;
use crate::outcome::Outcome;
use crate::report::{Report, gate_line, mismatch_lines, shown};
use crate::scorers::{BeatFinding, BeatState, Mark, MarkKind};
use crate::summary::{Beat, Summary};

const STYLE: &str = include_str!("html/style.css");

/// The report as a page. `fixtures` are those of the run, for their sources and reasons.
pub fn page(report: &Report, fixtures: &[Fixture]) -> String {
    let by_name: HashMap<&str, &Fixture> = fixtures
        .iter()
        .map(|fixture| (fixture.name.as_str(), fixture))
        .collect();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { "Evaluation: " (report.verdict.word()) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(report))
                (overview(report))
                @for (number, outcome) in report.fixtures.iter().enumerate() {
                    (section(number, outcome, by_name.get(outcome.name.as_str()).copied()))
                }
            }
        }
    }
    .into_string()
}

/// HTML has no control characters, and text in the wrong direction should not leave its element.
fn clean(text: &str) -> String {
    let shown = |c: char| {
        let bidi = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if bidi || (c.is_control() && !c.is_whitespace()) {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    };
    text.chars().map(shown).collect()
}

fn head(report: &Report) -> Markup {
    html! {
        h1 { "Evaluation: " span class=(report.verdict.word()) { (report.verdict.word()) } }
        p {
            "Summaries by " code { (clean(&report.provider)) }
            @if let Some(profile) = &report.profile { ", profile " code { (clean(profile)) } }
            @if let Some(commit) = &report.commit { ", revision " code { (clean(commit)) } }
            ", scorers version " (report.scorer_version)
            @if report.repeats > 1 { ", " (report.repeats) " repeats" }
            "."
            @if let Some(cache) = report.cache {
                " " (cache.hits) " of " (cache.hits + cache.misses) " outputs came from the cache."
            }
        }
        @if !report.gates.is_empty() {
            ul class="gates" {
                @for gate in &report.gates {
                    @let class = match gate.state {
                        GateState::Held => "held",
                        GateState::Failed => "failed",
                        GateState::Unmeasured => "unmeasured",
                    };
                    li class=(class) { (clean(&gate_line(gate))) }
                }
            }
        }
    }
}

fn overview(report: &Report) -> Markup {
    let columns = report.columns();
    html! {
        div class="wide" { table {
            thead { tr {
                th { "fixture" }
                @for score in &columns { th title=(score.word()) { (score.short()) } }
                th { "made" }
            } }
            tbody {
                @for (number, outcome) in report.fixtures.iter().enumerate() {
                    tr class=(state(outcome)) {
                        td { a href={ "#f" (number) } { (clean(&outcome.name)) } @if outcome.repeat > 1 { " (" (outcome.repeat) ")" } }
                        @for score in &columns { td class="n" { (shown(outcome, *score)) } }
                        td { (clean(&outcome.card.fired.join(", "))) }
                    }
                }
            }
            tfoot {
                tr {
                    th { "mean" }
                    @for score in &columns {
                        td class="n" {
                            @match report.aggregates.get(score).and_then(|found| found.mean) {
                                Some(mean) => (score.shown(mean)),
                                None => "n/a",
                            }
                        }
                    }
                    td {}
                }
                tr {
                    th { "95% interval" }
                    @for score in &columns {
                        td class="n" {
                            @if let Some(found) = report.aggregates.get(score).and_then(|found| found.interval) {
                                (score.shown(found.low)) "–" (score.shown(found.high))
                            }
                        }
                    }
                    td {}
                }
                tr {
                    th { "fixtures (errors)" }
                    @for score in &columns {
                        td class="n" {
                            @if let Some(found) = report.aggregates.get(score) {
                                (found.of) @if found.errored > 0 { " (" (found.errored) ")" }
                            }
                        }
                    }
                    td {}
                }
            }
        } }
    }
}

fn state(outcome: &Outcome) -> &'static str {
    if !outcome.errors.is_empty() {
        "error"
    } else if !outcome.mismatches.is_empty() {
        "failed"
    } else {
        ""
    }
}

fn section(number: usize, outcome: &Outcome, fixture: Option<&Fixture>) -> Markup {
    html! {
        section id={ "f" (number) } {
            h2 { (clean(&outcome.name)) @if outcome.repeat > 1 { " (repeat " (outcome.repeat) ")" } }
            @if let Some(description) = fixture.and_then(|fixture| fixture.description.as_ref()) {
                p { (clean(description)) }
            }
            @for error in &outcome.errors { p class="problem" { "Error: " (clean(error)) } }
            @for line in mismatch_lines(outcome) { p class="problem" { (clean(&line)) } }
            @if let Some(fixture) = fixture {
                @if let Some(summary) = &outcome.summary {
                    (text(summary, outcome))
                    (findings(fixture, outcome))
                    (beats(number, summary, outcome, fixture))
                    (source::cited(number, &fixture.source, summary))
                }
            }
        }
    }
}

/// The text with its marks, unless the beats are the text.
fn text(summary: &Summary, outcome: &Outcome) -> Markup {
    html! {
        @if beat_starts(summary).is_none() {
            blockquote dir="auto" { (marked(&summary.text, 0..summary.text.len(), &outcome.card.marks)) }
        }
        @if summary.text.trim().is_empty() { p class="problem" { "The summary is empty." } }
    }
}

/// Where each beat begins in the text, where the beats are the text.
fn beat_starts(summary: &Summary) -> Option<Vec<usize>> {
    let beats = summary.beats.as_ref()?;
    let mut starts = Vec::with_capacity(beats.len());
    let mut at = 0;
    for (place, beat) in beats.iter().enumerate() {
        if place > 0 {
            at = summary
                .text
                .get(at..)?
                .starts_with("\n\n")
                .then_some(at + 2)?;
        }
        starts.push(at);
        at = summary
            .text
            .get(at..)?
            .starts_with(&beat.text)
            .then_some(at + beat.text.len())?;
    }
    (at == summary.text.len() && !starts.is_empty()).then_some(starts)
}

/// A part of a text, cut at the ends of its marks; where marks overlap, the worst one shows.
fn marked(text: &str, part: Range<usize>, marks: &[Mark]) -> Markup {
    let within: Vec<&Mark> = marks
        .iter()
        .filter(|mark| mark.start < part.end && part.start < mark.end)
        .collect();
    let mut cuts: Vec<usize> = within
        .iter()
        .flat_map(|mark| [mark.start, mark.end])
        .filter(|cut| part.contains(cut))
        .chain([part.start, part.end])
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    html! {
        @for pair in cuts.windows(2) {
            @let piece = clean(text.get(pair[0]..pair[1]).unwrap_or_default());
            @let here: Vec<&&Mark> = within.iter().filter(|mark| mark.start <= pair[0] && pair[1] <= mark.end).collect();
            @match here.iter().map(|mark| mark.kind).min() {
                None => (piece),
                Some(kind) => mark class=(class_of(kind)) title=(titles(&here)) { (piece) },
            }
        }
    }
}

const fn class_of(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Forbidden => "forbidden",
        MarkKind::Absent => "absent",
        MarkKind::Event => "event",
    }
}

fn titles(marks: &[&&Mark]) -> String {
    let mut all: Vec<String> = marks
        .iter()
        .map(|mark| match mark.kind {
            MarkKind::Forbidden => format!("forbidden: {}", clean(&mark.id)),
            MarkKind::Absent => "should be absent".to_owned(),
            MarkKind::Event => format!("event: {}", clean(&mark.id)),
        })
        .collect();
    all.dedup();
    all.join("; ")
}

fn findings(fixture: &Fixture, outcome: &Outcome) -> Markup {
    let card = &outcome.card;
    let phrases = |mentions: &crate::fixture::Mentions| -> String {
        let groups: Vec<String> = mentions
            .0
            .iter()
            .map(|group| {
                let texts: Vec<&str> = group.iter().map(|phrase| phrase.text.as_str()).collect();
                texts.join(" / ")
            })
            .collect();
        clean(&groups.join(" + "))
    };
    html! {
        ul class="findings" {
            @for claim in fixture.forbidden.iter().filter(|claim| card.fired.contains(&claim.id)) {
                li class="bad" { "Forbidden claim made: " b { (clean(&claim.id)) } " (" (phrases(&claim.mentions)) "). " (clean(&claim.why)) }
            }
            @for phrase in &card.present { li class="bad" { "Should be absent: " b { (clean(phrase)) } } }
            @for event in fixture.events.iter().filter(|event| card.missed.contains(&event.id)) {
                li class="miss" { "Not mentioned: " b { (clean(&event.id)) } " (" (phrases(&event.mentions)) ")" }
            }
            @for event in fixture.events.iter().filter(|event| card.unattributed.contains(&event.id)) {
                li class="miss" {
                    "Not attributed: " b { (clean(&event.id)) }
                    @if let Some(actor) = &event.actor { " (to " (clean(&actor.name)) ")" }
                }
            }
        }
    }
}

fn beats(number: usize, summary: &Summary, outcome: &Outcome, fixture: &Fixture) -> Markup {
    let Some(beats) = &summary.beats else {
        return html! {};
    };
    let starts = beat_starts(summary);
    html! {
        ol class="beats" {
            @for (place, (beat, found)) in beats.iter().zip(&outcome.card.beats).enumerate() {
                li dir="auto" class=(beat_class(found.state)) {
                    @match &starts {
                        Some(starts) => (marked(&summary.text, starts[place]..starts[place] + beat.text.len(), &outcome.card.marks)),
                        None => (clean(&beat.text)),
                    }
                    (links(number, beat, fixture))
                    (faults(found))
                }
            }
        }
    }
}

const fn beat_class(state: BeatState) -> &'static str {
    match state {
        BeatState::Valid => "",
        BeatState::Invalid => "invalid",
        BeatState::Dropped => "dropped",
    }
}

fn links(number: usize, beat: &Beat, fixture: &Fixture) -> Markup {
    html! {
        @for id in &beat.evidence {
            " "
            @match source::anchor(number, &fixture.source, id) {
                Some(anchor) => a href={ "#" (anchor) } { "[" (clean(id)) "]" },
                None => span class="problem" { "[" (clean(id)) "]" },
            }
        }
    }
}

fn faults(found: &BeatFinding) -> Markup {
    let word = match found.state {
        BeatState::Dropped => "Dropped",
        _ => "Evidence does not hold",
    };
    html! {
        @if let Some(why) = &found.why { div class="problem" { (word) ": " (clean(why)) } }
        @if let Some(why) = &found.unsupported { div class="problem" { "Not supported: " (clean(why)) } }
    }
}
