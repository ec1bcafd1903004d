//! The verdict and the exit code come from one value, over every combination of what can go wrong.

use factum_eval::gates::{Facts, Gate, GateOn, GateState, Side, Verdict};
use factum_eval::outcome::{Outcome, Output};
use factum_eval::paired::{Scores, regressions};
use factum_eval::report::junit::junit;
use factum_eval::report::markdown::markdown;
use factum_eval::run::Loaded;
use factum_eval::{Fixture, ScoreName, Summary, provider};

use crate::support::{lines, options, read, run_by};

/// What the summary of the one fixture is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Holds,
    Fails,
    Nothing,
    Error,
}

/// A provider that gives what the case asks for.
struct Cased(Case);

impl provider::Provider for Cased {
    fn name(&self) -> &'static str {
        "cased"
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({"kind": "cased"})
    }

    fn is_costly(&self) -> bool {
        false
    }

    fn summarise(&self, _: &Fixture, _: u32) -> Result<Summary, provider::ProviderError> {
        let text = match self.0 {
            Case::Holds | Case::Nothing => "All quiet.",
            Case::Fails => "A dragon came.",
            Case::Error => return Err(provider::ProviderError::NoStub),
        };
        Ok(Summary {
            text: text.to_owned(),
            beats: None,
        })
    }
}

fn fixture(case: Case) -> Fixture {
    if case == Case::Nothing {
        lines(r#""absent": ["unicorn"]"#)
    } else {
        lines(
            r#""forbidden": [{"id": "dragon", "mentions": [["dragon"]], "why": "There is none."}]"#,
        )
    }
}

fn baseline(regressed: Option<bool>) -> Option<(Scores, f64)> {
    let regressed = regressed?;
    let fixture = lines(r#""absent": ["unicorn"]"#);
    let summary = Summary {
        text: "All quiet. ".repeat(if regressed { 1 } else { 2 }),
        beats: None,
    };
    let output = Output {
        summary: Ok(summary),
        cached: false,
        seconds: 0.0,
    };
    // Only duplication is common: a baseline without it is better than any run, one with it worse.
    let mut outcome = Outcome::of(&fixture, 1, output, false);
    outcome
        .card
        .measures
        .retain(|score, _| *score == ScoreName::Duplication);
    if regressed {
        // No run can be better than a negative share of repeats.
        outcome.card.measures.insert(
            ScoreName::Duplication,
            factum_eval::measured::Measured::Score {
                value: -1.0,
                hits: -1,
                of: 1,
            },
        );
    }
    Some((Scores::of(&[outcome]), 0.0))
}

#[test]
fn verdict_and_exit_code_agree_in_every_combination() {
    let mut seen = std::collections::BTreeSet::new();
    for case in [Case::Holds, Case::Fails, Case::Nothing, Case::Error] {
        for on in [None, Some(GateOn::Mean), Some(GateOn::Any)] {
            for regressed in [None, Some(false), Some(true)] {
                for bad in [false, true] {
                    for allow_unmeasured in [false, true] {
                        let mut options = options();
                        options.allow_unmeasured = allow_unmeasured;
                        options.gates = on
                            .map(|on| Gate {
                                score: ScoreName::Precision,
                                on,
                                side: Side::Under,
                                bound: 1.0,
                            })
                            .into_iter()
                            .collect();
                        options.baseline = baseline(regressed);
                        let mut loaded = Loaded {
                            fixtures: vec![fixture(case)],
                            bad: Vec::new(),
                        };
                        if bad {
                            loaded.bad.push(read("bad.json", "{").unwrap_err());
                        }
                        let report = run_by(&loaded, &Cased(case), &options);
                        // Duplication of a run that gave nothing is at its worst, which no baseline here is.
                        let fell = regressed == Some(true)
                            || (regressed == Some(false) && case == Case::Error);
                        let gate_fails = on.is_some() && matches!(case, Case::Fails | Case::Error);
                        let expected = if bad {
                            Verdict::BadFixture
                        } else if case == Case::Error {
                            Verdict::RunError
                        } else if gate_fails || fell {
                            Verdict::Failed
                        } else if on.is_some() && case == Case::Nothing && !allow_unmeasured {
                            Verdict::Unmeasured
                        } else {
                            Verdict::Passed
                        };
                        let about = format!(
                            "{case:?} {on:?} {regressed:?} bad {bad} allow {allow_unmeasured}"
                        );
                        assert_eq!(report.verdict, expected, "{about}");
                        assert_eq!(report.exit_code, expected.exit_code(), "{about}");
                        let word = expected.word();
                        assert!(
                            markdown(&report).starts_with(&format!("### Evaluation: {word}\n")),
                            "{about}"
                        );
                        let json = report.to_json().unwrap();
                        assert!(
                            json.contains(&format!("\"verdict\": \"{word}\"")),
                            "{about}"
                        );
                        let xml = junit(&report);
                        let all = xml.lines().nth(1).unwrap();
                        let clean = all.contains("failures=\"0\" errors=\"0\"");
                        assert_eq!(clean, report.exit_code == 0, "{about}\n{xml}");
                        seen.insert(word);
                    }
                }
            }
        }
    }
    assert_eq!(seen.len(), 5, "every verdict was reached: {seen:?}");
}

#[test]
fn every_verdict_has_its_exit_code() {
    let codes = [
        (Verdict::Passed, 0),
        (Verdict::RunError, 1),
        (Verdict::BadFixture, 3),
        (Verdict::Failed, 6),
        (Verdict::Unmeasured, 6),
    ];
    for (verdict, code) in codes {
        assert_eq!(verdict.exit_code(), code);
    }
}

#[test]
fn a_gate_over_nothing_is_no_pass() {
    let gate = Gate {
        score: ScoreName::CitationRecall,
        on: GateOn::Mean,
        side: Side::Under,
        bound: 0.0,
    };
    let mut options = options();
    options.gates = vec![gate];
    let loaded = Loaded {
        fixtures: vec![fixture(Case::Holds)],
        bad: Vec::new(),
    };
    let report = run_by(&loaded, &Cased(Case::Holds), &options);
    assert_eq!(report.gates[0].state, GateState::Unmeasured);
    assert_eq!(report.verdict, Verdict::Unmeasured);
    // No fixture at all is nothing measured too.
    let none = Facts::default();
    assert_eq!(Verdict::of(&none), Verdict::Unmeasured);
}

#[test]
fn a_fixture_without_an_output_stays_in_the_denominator_as_the_worst() {
    let good = fixture(Case::Holds);
    let mut lost = fixture(Case::Holds);
    lost.name = "lost".to_owned();
    let output = |summary: Result<Summary, String>| Output {
        summary,
        cached: false,
        seconds: 0.0,
    };
    let summary = Summary {
        text: "All quiet.".to_owned(),
        beats: None,
    };
    let outcomes = [
        Outcome::of(&good, 1, output(Ok(summary)), false),
        Outcome::of(&lost, 1, output(Err("died".to_owned())), false),
    ];
    let found = factum_eval::outcome::aggregates(&outcomes, 1);
    let precision = found[&ScoreName::Precision];
    assert_eq!(precision.mean, Some(0.5));
    assert_eq!((precision.of, precision.errored, precision.none), (2, 1, 0));
    let duplication = found[&ScoreName::Duplication];
    assert_eq!(
        duplication.mean,
        Some(0.5),
        "repeating everything is the worst"
    );
    let length = found[&ScoreName::Length];
    assert_eq!((length.of, length.errored), (1, 1), "no length is worst");
    let coverage = found[&ScoreName::Coverage];
    assert_eq!((coverage.of, coverage.errored, coverage.none), (0, 0, 2));
}

#[test]
fn a_score_that_vanished_is_one_that_fell() {
    let fixture = fixture(Case::Holds);
    let output = |summary| Output {
        summary,
        cached: false,
        seconds: 0.0,
    };
    let summary = Summary {
        text: "All quiet.".to_owned(),
        beats: None,
    };
    let before = Scores::of(&[Outcome::of(&fixture, 1, output(Ok(summary)), false)]);
    let mut after = before.clone();
    let scores = &mut after.fixtures.get_mut("two-lines").unwrap().scores;
    scores.remove(&ScoreName::Precision);
    let results = regressions(&before, &after, 0.0);
    let of = |score| results.iter().find(|one| one.score == Some(score)).unwrap();
    assert_eq!(of(ScoreName::Precision).state, GateState::Failed);
    assert_eq!(of(ScoreName::Precision).fixtures, ["two-lines"]);
    assert_eq!(of(ScoreName::AnswerRate).state, GateState::Held);
    let nothing = regressions(&Scores::default(), &after, 0.0);
    assert_eq!(nothing[0].state, GateState::Unmeasured);
}
