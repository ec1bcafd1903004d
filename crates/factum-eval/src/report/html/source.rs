//! The lines of a source that a summary cites, with a little around them.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::clean;
use crate::source::{Passage, Source};
use crate::summary::Summary;

/// Lines shown before and after a cited one.
const AROUND: usize = 2;
/// Cited lines shown at most: a beat may cite a whole long document.
const MOST_LINES: usize = 400;

/// The anchor of the first line that an evidence id cites; none where there is nothing to cite.
pub(super) fn anchor(number: usize, source: &Source, id: &str) -> Option<String> {
    let passage = source.resolve(id).ok()?;
    let (place, line, _) = rows(source, &passage);
    Some(format!("f{number}-{place}-{line}"))
}

/// Which line or document, the first line in it, and the last.
fn rows(source: &Source, passage: &Passage<'_>) -> (usize, usize, usize) {
    match (source, passage.span) {
        (Source::Documents(documents), Some(span)) => {
            let text = &documents.all()[passage.place].text;
            let line_at = |point: u32| {
                text.chars()
                    .take(point as usize)
                    .filter(|&c| c == '\n')
                    .count()
            };
            let last = line_at(span.end.saturating_sub(1));
            (passage.place, line_at(span.start), last)
        }
        // All lines of a transcript are one list.
        _ => (0, passage.place, passage.place),
    }
}

/// The cited lines.
pub(super) fn cited(number: usize, source: &Source, summary: &Summary) -> Markup {
    let mut cited: BTreeMap<usize, BTreeMap<usize, bool>> = BTreeMap::new();
    let ids = summary
        .beats
        .iter()
        .flatten()
        .flat_map(|beat| &beat.evidence);
    for passage in ids.filter_map(|id| source.resolve(id).ok()) {
        let (place, first, last) = rows(source, &passage);
        let of = cited.entry(place).or_default();
        let last = last.min(first + MOST_LINES);
        for line in first.saturating_sub(AROUND)..=last + AROUND {
            let hit = (first..=last).contains(&line);
            *of.entry(line).or_default() |= hit;
        }
    }
    html! {
        @if !cited.is_empty() { details open { summary { "Cited lines" }
            @for (place, lines) in &cited {
                (block(number, source, *place, lines))
            }
        } }
    }
}

fn block(number: usize, source: &Source, place: usize, lines: &BTreeMap<usize, bool>) -> Markup {
    let (title, all): (String, Vec<(String, &str)>) = match source {
        Source::Lines(of) => {
            let shown = of.all().iter().map(|line| {
                let speaker = line.speaker.as_deref().unwrap_or("");
                (format!("{} {speaker}", line.id), line.text.as_str())
            });
            (String::new(), shown.collect())
        }
        Source::Documents(of) => {
            let document = &of.all()[place];
            let shown = document.text.lines().enumerate();
            let shown = shown.map(|(line, text)| ((line + 1).to_string(), text));
            (
                format!("{}, version {}", document.id, document.version),
                shown.collect(),
            )
        }
    };
    let mut before = None;
    html! {
        div class="lines" {
            @if !title.is_empty() { b { (clean(&title)) } }
            @for (line, hit) in lines {
                @if let Some((id, text)) = all.get(*line) {
                    @if before.is_some_and(|before: usize| before + 1 < *line) { p { "…" } }
                    @let _ = before.replace(*line);
                    p id={ "f" (number) "-" (place) "-" (line) } class=[hit.then_some("cited")] dir="auto" {
                        span class="id" { (clean(id)) } (clean(text))
                    }
                }
            }
        }
    }
}
