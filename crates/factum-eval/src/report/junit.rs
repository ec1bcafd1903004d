//! JUnit XML: a test a fixture, failures apart from errors, and a test for each gate.

use crate::gates::{GateResult, GateState};
use crate::outcome::Outcome;
use crate::report::{Report, gate_line, mismatch_lines};

/// The report as JUnit XML.
pub fn junit(report: &Report) -> String {
    let fixtures: Vec<Case> = report
        .fixtures
        .iter()
        .map(|one| fixture(report, one))
        .collect();
    let gates: Vec<Case> = report.gates.iter().map(|one| gate(report, one)).collect();
    let suites = [("fixtures", &fixtures), ("gates", &gates)];
    let all: Vec<&Case> = fixtures.iter().chain(&gates).collect();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.push_str(&format!(
        "<testsuites name=\"factum eval\" {} time=\"{:.3}\">\n",
        counts(&all),
        report.seconds
    ));
    for (name, cases) in suites {
        let listed: Vec<&Case> = cases.iter().collect();
        out.push_str(&format!(
            "  <testsuite name=\"{name}\" {}>\n",
            counts(&listed)
        ));
        for case in cases {
            case.write(name, &mut out);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Kind {
    Passed,
    Failure,
    Error,
    Skipped,
}

struct Case {
    name: String,
    seconds: f64,
    kind: Kind,
    /// The first is the message.
    lines: Vec<String>,
}

fn counts(cases: &[&Case]) -> String {
    let of = |kind| cases.iter().filter(|case| case.kind == kind).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.len(),
        of(Kind::Failure),
        of(Kind::Error),
        of(Kind::Skipped)
    )
}

fn fixture(report: &Report, outcome: &Outcome) -> Case {
    let name = if report.repeats > 1 {
        format!("{} ({})", outcome.name, outcome.repeat)
    } else {
        outcome.name.clone()
    };
    let mut lines = outcome.errors.clone();
    let mut kind = Kind::Passed;
    if lines.is_empty() {
        lines.extend(mismatch_lines(outcome));
        let failed = report.gates.iter().filter(|gate| {
            gate.state == GateState::Failed && gate.fixtures.contains(&outcome.name)
        });
        lines.extend(failed.map(|gate| format!("{} failed", gate.gate)));
        if !lines.is_empty() {
            kind = Kind::Failure;
            lines.extend(
                outcome
                    .card
                    .fired
                    .iter()
                    .map(|id| format!("forbidden claim made: {id}")),
            );
            lines.extend(
                outcome
                    .card
                    .missed
                    .iter()
                    .map(|id| format!("event not mentioned: {id}")),
            );
        }
    } else {
        kind = Kind::Error;
    }
    Case {
        name,
        seconds: outcome.seconds,
        kind,
        lines,
    }
}

fn gate(report: &Report, gate: &GateResult) -> Case {
    let kind = match gate.state {
        GateState::Held => Kind::Passed,
        GateState::Unmeasured if report.allow_unmeasured => Kind::Skipped,
        GateState::Failed | GateState::Unmeasured => Kind::Failure,
    };
    Case {
        name: gate.gate.clone(),
        seconds: 0.0,
        kind,
        lines: if kind == Kind::Passed {
            Vec::new()
        } else {
            vec![gate_line(gate)]
        },
    }
}

impl Case {
    fn write(&self, suite: &str, out: &mut String) {
        out.push_str(&format!(
            "    <testcase classname=\"factum.eval.{suite}\" name=\"{}\" time=\"{:.3}\"",
            escaped(&self.name),
            self.seconds
        ));
        let element = match self.kind {
            Kind::Passed => {
                out.push_str("/>\n");
                return;
            }
            Kind::Failure => "failure",
            Kind::Error => "error",
            Kind::Skipped => "skipped",
        };
        let message = self.lines.first().map(String::as_str).unwrap_or_default();
        out.push_str(&format!(
            ">\n      <{element} message=\"{}\">{}</{element}>\n    </testcase>\n",
            escaped(message),
            escaped(&self.lines.join("\n"))
        ));
    }
}

/// Escaped for XML 1.0, which has no way at all to write most control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}
