//! Two runs compared.

use factum_eval::ScoreName;
use factum_eval::outcome::Outcome;
use factum_eval::paired::{Scores, diff};

use crate::support::{lines, outcome};

const FORBIDDEN: &str =
    r#""forbidden": [{"id": "dragon", "mentions": [["dragon"]], "why": "There is none."}]"#;

fn named(name: &str, text: &str) -> Outcome {
    let mut found = outcome(&lines(FORBIDDEN), &format!("{{\"text\": {text:?}}}"));
    name.clone_into(&mut found.name);
    found
}

#[test]
fn fixtures_are_paired_by_name_and_claims_newly_made_are_named() {
    let before = Scores::of(&[
        named("a", "All quiet."),
        named("b", "A dragon came."),
        named("gone", "All quiet."),
    ]);
    let after = Scores::of(&[
        named("b", "All quiet."),
        named("new", "All quiet."),
        named("a", "A dragon came, a dragon."),
    ]);
    let found = diff(&before, &after, 1);
    assert_eq!(found.both, 2);
    assert_eq!(
        (&found.only_before[..], &found.only_after[..]),
        (&["gone".to_owned()][..], &["new".to_owned()][..])
    );
    let precision = found.scores[&ScoreName::Precision];
    assert_eq!(
        (precision.pairs, precision.better, precision.worse),
        (2, 1, 1)
    );
    assert!(precision.difference.abs() < 1e-12);
    let interval = precision.interval.unwrap();
    assert!(interval.low <= 0.0 && 0.0 <= interval.high);
    let a = found.fixtures.iter().find(|one| one.name == "a").unwrap();
    assert!(a.newly_fired.contains("dragon") && a.no_longer_fired.is_empty());
    assert_eq!(a.scores[&ScoreName::Precision], (Some(1.0), Some(0.0)));
    // Length is described, not judged.
    assert_eq!(found.scores[&ScoreName::Length].better, 0);
    assert!(!found.scores.contains_key(&ScoreName::Coverage));
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let one = Scores::of(&[named("a", "All quiet."), named("b", "A dragon came.")]);
    let found = diff(&one, &one, 1);
    assert!(found.fixtures.is_empty());
    assert!(
        found
            .scores
            .values()
            .all(|change| change.difference.abs() < 1e-12)
    );
}

#[test]
fn repeats_of_a_fixture_count_as_one_fixture() {
    let mut again = named("a", "A dragon came.");
    again.repeat = 2;
    let scores = Scores::of(&[named("a", "All quiet."), again]);
    assert_eq!(scores.fixtures.len(), 1);
    let precision = scores.fixtures["a"].scores[&ScoreName::Precision];
    assert!((precision - 0.5).abs() < 1e-9);
}
