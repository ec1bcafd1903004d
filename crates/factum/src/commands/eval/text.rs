//! Evaluations as text for a terminal.

use factum_eval::gates::GateState;
use factum_eval::outcome::{Aggregate, Outcome};
use factum_eval::paired::Diff;
use factum_eval::report::{gate_line, mismatch_lines, shown};
use factum_eval::{Report, ScoreName};

use crate::text::clean;

/// Names are cut to this in the table; the JSON report has them whole.
const WIDEST: usize = 40;

/// A report: a row a fixture, aggregates below, then what is wrong, then the verdict.
pub(super) fn report(report: &Report) -> String {
    let columns = report.columns();
    let run: Vec<&Outcome> = report.fixtures.iter().filter(|one| !one.bad).collect();
    let labels: Vec<String> = run.iter().map(|one| label(one, report.repeats)).collect();
    let width = labels
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0)
        .max(8);
    let mut out = String::new();
    if !run.is_empty() {
        row(
            &mut out,
            width,
            "fixture",
            columns.iter().map(|score| score.short().to_owned()),
        );
        for (outcome, name) in run.iter().zip(&labels) {
            row(
                &mut out,
                width,
                name,
                columns.iter().map(|score| shown(outcome, *score)),
            );
        }
        aggregates(report, &columns, width, &mut out);
    }
    for outcome in &report.fixtures {
        problems(outcome, &mut out);
    }
    if let Some(cache) = report.cache {
        out.push_str(&format!(
            "{} of {} outputs came from the cache.\n",
            cache.hits,
            cache.hits + cache.misses
        ));
    }
    for gate in &report.gates {
        let mark = if gate.state == GateState::Held {
            " "
        } else {
            "!"
        };
        out.push_str(&format!("{mark} {}\n", clean(&gate_line(gate))));
    }
    out.push_str(&format!(
        "{} by {} in {:.2} s: {}\n",
        fixtures(run.iter().filter(|outcome| outcome.repeat == 1).count()),
        clean(&report.provider),
        report.seconds,
        report.verdict.word()
    ));
    out
}

fn fixtures(n: usize) -> String {
    if n == 1 {
        "1 fixture".to_owned()
    } else {
        format!("{n} fixtures")
    }
}

fn label(outcome: &Outcome, repeats: u32) -> String {
    let name = clean(&outcome.name);
    let mut name: String = if name.chars().count() > WIDEST {
        name.chars().take(WIDEST - 1).chain(['…']).collect()
    } else {
        name
    };
    if repeats > 1 {
        name.push_str(&format!(" {}", outcome.repeat));
    }
    name
}

fn row(out: &mut String, width: usize, name: &str, cells: impl Iterator<Item = String>) {
    out.push_str(name);
    out.extend(std::iter::repeat_n(
        ' ',
        width.saturating_sub(name.chars().count()),
    ));
    for cell in cells {
        out.push_str(&format!(" {cell:>7}"));
    }
    out.push('\n');
}

fn aggregates(report: &Report, columns: &[ScoreName], width: usize, out: &mut String) {
    let cells = |pick: &dyn Fn(&Aggregate, ScoreName) -> Option<String>| {
        columns
            .iter()
            .map(|score| {
                let found = report.aggregates.get(score);
                found
                    .and_then(|found| pick(found, *score))
                    .unwrap_or_default()
            })
            .collect::<Vec<_>>()
            .into_iter()
    };
    row(
        out,
        width,
        "mean",
        cells(&|found, score| {
            Some(
                found
                    .mean
                    .map_or_else(|| "n/a".to_owned(), |mean| score.shown(mean)),
            )
        }),
    );
    let any = |has: fn(&Aggregate) -> bool| {
        let found = |score| report.aggregates.get(score).is_some_and(has);
        columns.iter().any(found)
    };
    // One fixture alone has no interval.
    if any(|found| found.interval.is_some()) {
        let low = cells(&|found, score| Some(score.shown(found.interval?.low)));
        row(out, width, "  from", low);
        let high = cells(&|found, score| Some(score.shown(found.interval?.high)));
        row(out, width, "  to", high);
    }
    let of = cells(&|found, _| Some(found.of.to_string()));
    row(out, width, "  over", of);
    if any(|found| found.errored > 0) {
        let errored = cells(&|found, _| Some(found.errored.to_string()));
        row(out, width, "  errors", errored);
    }
}

fn problems(outcome: &Outcome, out: &mut String) {
    let name = clean(&outcome.name);
    for error in &outcome.errors {
        let of = if outcome.bad {
            String::new()
        } else {
            format!("{name}: ")
        };
        out.push_str(&format!("! {of}{}\n", clean(error)));
    }
    for line in mismatch_lines(outcome) {
        out.push_str(&format!("! {name}: {}\n", clean(&line)));
    }
    for (what, ids) in [
        ("forbidden claims made", &outcome.card.fired),
        ("should be absent", &outcome.card.present),
        ("not mentioned", &outcome.card.missed),
    ] {
        if !ids.is_empty() {
            out.push_str(&format!("  {name}: {what}: {}\n", clean(&ids.join(", "))));
        }
    }
}

/// Two runs compared.
pub(super) fn diff(diff: &Diff, before: &str, after: &str) -> String {
    let mut out = format!(
        "{} in both {} and {}.\n",
        fixtures(diff.both),
        clean(before),
        clean(after)
    );
    if !diff.scores.is_empty() {
        out.push_str(&format!(
            "{:<20} {:>9} {:>9} {:>9}  {:<20} {:>6} {:>6} {:>6}\n",
            "score", "before", "after", "change", "95% interval", "better", "worse", "of"
        ));
    }
    for (score, change) in &diff.scores {
        let interval = change.interval.map_or_else(String::new, |found| {
            format!("{:+.3} to {:+.3}", found.low, found.high)
        });
        out.push_str(&format!(
            "{:<20} {:>9} {:>9} {:>+9.3}  {interval:<20} {:>6} {:>6} {:>6}\n",
            score.word(),
            score.shown(change.before),
            score.shown(change.after),
            change.difference,
            change.better,
            change.worse,
            change.pairs
        ));
    }
    for fixture in &diff.fixtures {
        let name = clean(&fixture.name);
        for (score, (one, two)) in &fixture.scores {
            let value = |value: &Option<f64>| {
                value.map_or_else(|| "n/a".to_owned(), |value| score.shown(value))
            };
            out.push_str(&format!(
                "  {name}: {score} {} -> {}\n",
                value(one),
                value(two)
            ));
        }
        for (what, ids) in [
            ("now made", &fixture.newly_fired),
            ("no longer made", &fixture.no_longer_fired),
        ] {
            if !ids.is_empty() {
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                out.push_str(&format!(
                    "  {name}: forbidden claims {what}: {}\n",
                    clean(&ids.join(", "))
                ));
            }
        }
    }
    for (which, names) in [(before, &diff.only_before), (after, &diff.only_after)] {
        if !names.is_empty() {
            let names = names.join(", ");
            out.push_str(&format!("only in {}: {}\n", clean(which), clean(&names)));
        }
    }
    out
}
