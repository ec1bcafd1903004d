//! The repository's own fixtures: each gets exactly the scores it expects, and fails exactly what it is meant to.

use std::collections::{BTreeMap, BTreeSet};

use factum_eval::ScoreName;
use factum_eval::ScoreName::{
    Absence, AnswerRate, Attribution, BeatValidity, Chronology01, ChronologyTau, CitationPrecision,
    Coverage, CoverageInBeats, DroppedBeats, Duplication, Precision, Support,
};
use factum_eval::score_name::Better;

use crate::support::{loaded, ours, stub_report};

#[test]
fn every_fixture_gets_the_scores_it_expects() {
    let found = loaded(&[ours()]);
    assert_eq!(found.bad, [], "all files are fixtures");
    assert!(found.fixtures.len() >= 12);
    for fixture in &found.fixtures {
        assert!(
            fixture.expected.len() >= 10,
            "{} pins its scores",
            fixture.name
        );
    }
    let report = stub_report();
    for outcome in &report.fixtures {
        assert_eq!(outcome.mismatches, [], "{}", outcome.name);
        assert_eq!(outcome.errors, Vec::<String>::new(), "{}", outcome.name);
    }
    assert_eq!(report.exit_code, 0);
}

#[test]
fn the_reference_fixtures_score_as_published() {
    let order = [
        Coverage,
        Attribution,
        ChronologyTau,
        Chronology01,
        BeatValidity,
        Precision,
        CoverageInBeats,
    ];
    let one = Some(1.0);
    let published = [
        ("clean-run", [one; 7]),
        (
            "fabricated-location",
            [one, one, one, one, one, Some(0.5), one],
        ),
        (
            "hallucinated-citation",
            [Some(0.8), one, one, one, Some(0.8), None, Some(0.8)],
        ),
    ];
    let report = stub_report();
    for (name, scores) in published {
        let outcome = report.fixtures.iter().find(|one| one.name == name).unwrap();
        for (score, published) in order.iter().zip(scores) {
            let found = outcome.scores[score];
            let agrees = match (found, published) {
                (Some(found), Some(published)) => (found - published).abs() < 0.0005,
                (found, published) => found == published,
            };
            assert!(agrees, "{name}: {score} is {found:?}, not {published:?}");
        }
    }
}

#[test]
fn each_fixture_fails_exactly_the_score_it_is_meant_to() {
    let meant: BTreeMap<&str, &[ScoreName]> = [
        ("clean-run", &[][..]),
        ("fabricated-location", &[Precision, Support]),
        // What is hallucinated stands in place of what happened, and rests on nothing.
        (
            "hallucinated-citation",
            &[Coverage, BeatValidity, CoverageInBeats, Support],
        ),
        ("date-from-the-wrong-letter", &[Precision]),
        ("negation-turned-round", &[Support]),
        ("amount-in-the-wrong-currency", &[Support]),
        ("right-claim-wrong-citation", &[CitationPrecision]),
        ("old-version-cited", &[BeatValidity]),
        ("archived-instruction-obeyed", &[Precision]),
        ("namesake-merged", &[Attribution]),
        ("withdrawn-document-told", &[Absence]),
        // One score in two scales.
        ("events-out-of-order", &[ChronologyTau, Chronology01]),
        ("correct-but-empty", &[AnswerRate]),
        ("dropped-beat", &[DroppedBeats]),
        ("said-again-and-again", &[Duplication]),
    ]
    .into();
    let report = stub_report();
    let names: BTreeSet<&str> = report
        .fixtures
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, meant.keys().copied().collect());
    for outcome in &report.fixtures {
        let failed: BTreeSet<ScoreName> = outcome
            .scores
            .iter()
            .filter(|(score, value)| {
                let best = match score.better() {
                    Better::Higher => 1.0,
                    Better::Lower => 0.0,
                    Better::Neither => return false,
                };
                value.is_some_and(|value| (value - best).abs() > 0.0005)
            })
            .map(|(score, _)| *score)
            .collect();
        let expected: BTreeSet<ScoreName> = meant[outcome.name.as_str()].iter().copied().collect();
        assert_eq!(failed, expected, "{}", outcome.name);
    }
}

#[test]
fn together_they_measure_every_score() {
    let report = stub_report();
    let measured: BTreeSet<ScoreName> = report.columns().into_iter().collect();
    assert_eq!(measured, ScoreName::ALL.into());
}
