//! Markdown for a pull request: the verdict, what failed, and the scores.

use crate::outcome::Outcome;
use crate::report::{Report, gate_line, mismatch_lines, shown};

/// Fixtures listed at most: a comment has a limit.
const MOST_ROWS: usize = 200;

/// The report as Markdown.
pub fn markdown(report: &Report) -> String {
    let columns = report.columns();
    let mut out = format!("### Evaluation: {}\n\n", report.verdict.word());
    let cached = report.cache.map_or_else(String::new, |cache| {
        format!(
            ", {} of {} outputs from the cache",
            cache.hits,
            cache.hits + cache.misses
        )
    });
    out.push_str(&format!(
        "{} fixtures by {}{cached}.\n\n",
        report
            .fixtures
            .iter()
            .filter(|one| !one.bad && one.repeat == 1)
            .count(),
        code(&report.provider)
    ));
    for gate in &report.gates {
        out.push_str(&format!("- {}\n", escaped(&gate_line(gate))));
    }
    for outcome in &report.fixtures {
        for error in &outcome.errors {
            out.push_str(&format!(
                "- **{}**: error: {}\n",
                escaped(&outcome.name),
                escaped(error)
            ));
        }
        for line in mismatch_lines(outcome) {
            out.push_str(&format!(
                "- **{}**: {}\n",
                escaped(&outcome.name),
                escaped(&line)
            ));
        }
    }
    out.push_str("\n| fixture |");
    for score in &columns {
        out.push_str(&format!(" {} |", score.short()));
    }
    out.push_str(" forbidden claims made |\n|---|");
    out.push_str(&"---:|".repeat(columns.len()));
    out.push_str("---|\n| **mean** |");
    for score in &columns {
        let mean = report.aggregates.get(score).and_then(|found| found.mean);
        let mean = mean.map_or_else(|| "n/a".to_owned(), |mean| score.shown(mean));
        out.push_str(&format!(" **{mean}** |"));
    }
    out.push_str(" |\n");
    let run: Vec<&Outcome> = report.fixtures.iter().filter(|one| !one.bad).collect();
    for outcome in run.iter().take(MOST_ROWS) {
        out.push_str(&format!("| {} |", escaped(&outcome.name)));
        for score in &columns {
            out.push_str(&format!(" {} |", shown(outcome, *score)));
        }
        let fired: Vec<String> = outcome.card.fired.iter().map(|id| escaped(id)).collect();
        out.push_str(&format!(" {} |\n", fired.join(", ")));
    }
    if run.len() > MOST_ROWS {
        out.push_str(&format!(
            "\n{} more fixtures are not listed.\n",
            run.len() - MOST_ROWS
        ));
    }
    out
}

fn code(text: &str) -> String {
    format!(
        "`{}`",
        text.replace('`', "'").replace(['\n', '\r', '|'], " ")
    )
}

/// Text that is only text: no markup, no HTML, no new cell or line.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            // Without it, a name could notify people.
            '@' => out.push_str("@\u{2060}"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
