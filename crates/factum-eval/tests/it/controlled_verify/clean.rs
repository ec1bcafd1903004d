//! What was recorded honestly is clean.

use factum_engine::transformation::Generator;
use factum_eval::controlled::generate::{DEFAULT_SEED, generate};
use factum_eval::controlled::run::ExperimentProfile;
use factum_eval::controlled_verify::verify_experiment;
use serde_json::json;

use super::experiments::{
    answered, canned, experiment, extracted, interrupted, read, small, verified,
};

#[test]
fn an_experiment_by_extraction_is_clean_and_gold_confirms_it() {
    let gold = serde_json::to_vec(&generate(DEFAULT_SEED).gold).unwrap();
    let found = verify_experiment(extracted(), Some(&gold));
    assert_eq!(found.findings, []);
    assert_eq!((found.cases, found.steps, found.comparisons), (2, 7, 5));
    assert_eq!((found.runs.len(), found.nodes), (12, 12 * 16));
    assert_eq!(found.texts, 720);
    let groups = found.groups.unwrap();
    assert_eq!(groups.len(), 5);
    for group in groups {
        assert_eq!(
            (group.fact_precision, group.fact_recall),
            (Some(1.0), Some(1.0)),
            "{group:?}"
        );
    }
}

#[test]
fn an_experiment_by_a_model_that_answers_well_and_badly_is_clean() {
    let files = answered();
    let found = verified(files);
    assert_eq!(found.findings, []);
    assert!(found.generations > 100 && found.claims > 20, "{found:?}");
    // The answers are as different as they were meant to be.
    let run = read(files, "records/S-010/initial.incremental.json");
    let nodes = run["nodes"].as_array().unwrap();
    let count = |status: &str| {
        nodes
            .iter()
            .filter(|node| node["result"]["status"] == status)
            .count()
    };
    assert!(
        count("INVALID") >= 6 && count("VALID") >= 4 && count("PARTIAL") >= 1,
        "{run}"
    );
    let verdicts = |verdict: &str| {
        let claims = nodes
            .iter()
            .flat_map(|node| node["result"]["claims"].as_array().unwrap());
        claims
            .filter(|claim| claim["support"]["verdict"] == verdict)
            .count()
    };
    assert!(verdicts("supported") > 0 && verdicts("unsupported") > 0);
    let metrics = read(files, "metrics.json");
    assert_eq!(metrics["costs"]["exercise"]["calls"], json!(39));
}

#[test]
fn a_part_of_an_experiment_is_clean() {
    assert_eq!(verified(small()).findings, []);
}

#[test]
fn the_grounded_profile_is_clean() {
    for generator in [Generator::Extractive, canned()] {
        let files = experiment(
            generator,
            ExperimentProfile::Grounded,
            &["S-010", "S-037"],
            None,
        );
        assert_eq!(verified(&files).findings, []);
    }
}

#[test]
fn an_experiment_that_lost_answers_and_went_on_is_clean() {
    let (runs, files) = interrupted();
    assert!(runs > 1);
    assert_eq!(verified(&files).findings, []);
    assert!(
        read(&files, "metrics.json")["interrupted"]
            .as_u64()
            .unwrap()
            > 0
    );
}
