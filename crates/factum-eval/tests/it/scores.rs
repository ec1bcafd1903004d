//! Scores case by case.

use factum_eval::ScoreName;
use factum_eval::measured::Measured;

use crate::support::{lines, outcome};

fn value(found: &factum_eval::outcome::Outcome, score: ScoreName) -> Option<f64> {
    found.scores[&score]
}

const EVENTS: &str = r#""events": [
    {"id": "gate", "mentions": [["gate"], ["opened"]], "actor": {"name": "Ann", "aliases": ["the miller"]}},
    {"id": "sacks", "mentions": [["sacks"]], "actor": "Bo", "evidence": ["l2"]}]"#;

#[test]
fn a_score_over_nothing_is_none_and_says_why() {
    let fixture = lines(r#""absent": ["xyz"]"#);
    let found = outcome(&fixture, r#"{"text": "Nothing much."}"#);
    for score in [
        ScoreName::Coverage,
        ScoreName::Attribution,
        ScoreName::ChronologyTau,
        ScoreName::BeatValidity,
        ScoreName::DroppedBeats,
        ScoreName::CoverageInBeats,
        ScoreName::Precision,
        ScoreName::CitationPrecision,
        ScoreName::CitationRecall,
        ScoreName::Support,
    ] {
        assert_eq!(value(&found, score), None, "{score}");
        assert!(matches!(&found.card.measures[&score], Measured::None(why) if !why.is_empty()));
    }
    assert_eq!(value(&found, ScoreName::Absence), Some(1.0));
}

#[test]
fn every_group_must_be_present_and_denominators_are_kept() {
    let fixture = lines(EVENTS);
    let found = outcome(&fixture, r#"{"text": "Bo counted the sacks at the gate."}"#);
    assert_eq!(found.card.missed, ["gate"]);
    assert_eq!(
        found.card.measures[&ScoreName::Coverage],
        Measured::Score {
            value: 0.5,
            hits: 1,
            of: 2
        }
    );
    assert_eq!(
        value(&found, ScoreName::ChronologyTau),
        None,
        "one event has no order"
    );
}

#[test]
fn the_first_mention_of_a_combination_is_where_it_is_together() {
    let fixture = lines(EVENTS);
    let text = r#"{"text": "水 The gate stood there. Bo saw sacks. The miller opened the gate."}"#;
    let found = outcome(&fixture, text);
    // In code points: the first sentence names the gate, but nobody opens it there.
    assert_eq!(found.card.first_mentions["gate"], 49);
    assert_eq!(found.card.first_mentions["sacks"], 31);
    assert_eq!(value(&found, ScoreName::ChronologyTau), Some(-1.0));
    assert_eq!(value(&found, ScoreName::Chronology01), Some(0.0));
    assert_eq!(value(&found, ScoreName::Attribution), Some(1.0));
}

#[test]
fn an_actor_in_another_sentence_is_no_attribution() {
    let fixture = lines(EVENTS);
    let found = outcome(
        &fixture,
        r#"{"text": "Ann came. The gate was opened. Bo counted sacks."}"#,
    );
    assert_eq!(value(&found, ScoreName::Attribution), Some(0.5));
    assert_eq!(found.card.unattributed, ["gate"]);
}

#[test]
fn beats_must_cite_what_exists_by_the_speaker_on_the_matter() {
    let fixture = lines(EVENTS);
    let found = outcome(
        &fixture,
        r#"{"beats": [
            {"text": "Ann opened the gate.", "speaker": "ann", "evidence": ["l1"]},
            {"text": "The gate is open.", "evidence": ["l9"]},
            {"text": "Bo opened the gate.", "speaker": "Bo", "evidence": ["l1"]},
            {"text": "A dragon flew past.", "evidence": ["l1"]},
            {"text": "Flour.", "evidence": []},
            {"text": "Sacks of flour.", "t_start": 30, "t_end": 40, "evidence": ["l2"]}
        ]}"#,
    );
    let why: Vec<&str> = found
        .card
        .beats
        .iter()
        .map(|beat| beat.why.as_deref().unwrap_or("valid"))
        .collect();
    assert_eq!(
        why,
        [
            "valid",
            "\"l9\" is not in the source",
            "spoken by Ann, not by Bo",
            "its evidence shares no word of content with it",
            "it cites nothing",
            "its evidence lies outside its own time",
        ]
    );
    assert_eq!(value(&found, ScoreName::BeatValidity), Some(0.2));
    assert_eq!(value(&found, ScoreName::DroppedBeats), Some(1.0 / 6.0));
    // The dropped beat is the only one with sacks.
    assert_eq!(value(&found, ScoreName::Coverage), Some(1.0));
    assert_eq!(value(&found, ScoreName::CoverageInBeats), Some(0.5));
}

#[test]
fn no_beats_left_is_no_coverage_in_beats_but_no_beats_at_all_is_none() {
    let fixture = lines(EVENTS);
    let found = outcome(&fixture, r#"{"text": "Sacks.", "beats": []}"#);
    assert_eq!(value(&found, ScoreName::CoverageInBeats), Some(0.0));
    let found = outcome(&fixture, r#"{"text": "Sacks."}"#);
    assert_eq!(value(&found, ScoreName::CoverageInBeats), None);
}

#[test]
fn citations_are_held_against_the_gold_of_the_events_told() {
    let fixture = lines(EVENTS);
    let found = outcome(
        &fixture,
        r#"{"beats": [
            {"text": "Bo counted sacks.", "evidence": ["l2", "l1", "gone"]},
            {"text": "The gate.", "evidence": ["l1"]}
        ]}"#,
    );
    assert_eq!(value(&found, ScoreName::CitationPrecision), Some(1.0 / 3.0));
    assert_eq!(value(&found, ScoreName::CitationRecall), Some(1.0));
    let found = outcome(
        &fixture,
        r#"{"beats": [{"text": "Sacks.", "evidence": ["l1"]}]}"#,
    );
    assert_eq!(value(&found, ScoreName::CitationPrecision), Some(0.0));
    assert_eq!(value(&found, ScoreName::CitationRecall), Some(0.0));
}

#[test]
fn repeated_sentences_and_length_are_counted() {
    let fixture = lines(EVENTS);
    let found = outcome(
        &fixture,
        r#"{"text": "One thing was so. One thing was so. Another was not."}"#,
    );
    assert_eq!(value(&found, ScoreName::Duplication), Some(1.0 / 3.0));
    assert_eq!(value(&found, ScoreName::Length), Some(52.0));
    let found = outcome(&fixture, r#"{"text": " … "}"#);
    assert_eq!(value(&found, ScoreName::AnswerRate), Some(0.0));
    assert_eq!(value(&found, ScoreName::Length), Some(3.0));
}

#[test]
fn support_is_the_product_s_own_check() {
    let fixture = lines(EVENTS);
    let found = outcome(
        &fixture,
        r#"{"beats": [
            {"text": "Ann opens the gate.", "evidence": ["l1"]},
            {"text": "Ann opens 3 gates.", "evidence": ["l1"]},
            {"text": "No evidence.", "evidence": []}
        ]}"#,
    );
    assert_eq!(value(&found, ScoreName::Support), Some(0.5));
    assert!(
        found.card.beats[1]
            .unsupported
            .as_ref()
            .unwrap()
            .contains('3')
    );
}
