//! Providers: stored outputs, programs that behave and programs that do not, and the product itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use factum_engine::transformation::Generator;
use factum_eval::provider::command::{Limits, Program};
use factum_eval::provider::engine::{Engine, Profiles, Surroundings};
use factum_eval::provider::stored::Stored;
use factum_eval::provider::{Provider, Stub};
use factum_eval::run::Loaded;
use factum_eval::{Fixture, ScoreName};
use factum_model::canned::CannedGenerator;

use crate::support::{lines, loaded, options, ours, read, run_by, stub_report};

fn program(command: &str) -> Program {
    let limits = Limits {
        time: Duration::from_secs(1),
        bytes: 10_000,
    };
    Program::new(command, limits, Arc::new(|| false))
}

fn said(command: &str) -> Result<String, String> {
    let fixture = lines(r#""absent": ["x"]"#);
    program(command)
        .summarise(&fixture, 1)
        .map(|summary| summary.text)
        .map_err(|error| error.to_string())
}

#[cfg(unix)]
#[test]
fn a_program_gets_the_source_and_answers_in_json() {
    let answer = said(r#"grep -q '"l2"' && echo '{"text": "It was there."}'"#);
    assert_eq!(answer.unwrap(), "It was there.");
    let repeat = said(r#"printf '{"text": "repeat %s"}' "$FACTUM_EVAL_REPEAT""#);
    assert_eq!(repeat.unwrap(), "repeat 1");
    // One that does not read its input is welcome too.
    assert_eq!(
        said(r#"exec 0<&-; echo '{"text": "deaf"}'"#).unwrap(),
        "deaf"
    );
}

#[cfg(unix)]
#[test]
fn a_program_that_dies_hangs_floods_or_prints_rubbish_is_ended_in_time() {
    for (command, part) in [
        (
            "echo broken >&2; exit 3",
            "ended with exit status: 3: broken",
        ),
        ("kill -9 $$", "signal: 9"),
        ("sleep 60", "no output within 1 s"),
        ("sleep 60 & sleep 60", "no output within 1 s"),
        ("exec >&-; sleep 60", "no output within 1 s"),
        ("yes", "more than 10000 bytes"),
        ("yes >&2 & sleep 60", "no output within 1 s"),
        ("echo hello", "line 1: expected a value, found 'h'"),
        ("printf '\\377'", "not UTF-8"),
        ("true", "the file is empty"),
        (r#"echo '{"text": "\ud83d"}'"#, "lone surrogate"),
        (r#"echo '{"text": NaN}'"#, "expected a value"),
        ("/no/such/program", "ended with exit status: 127"),
    ] {
        let begun = Instant::now();
        let error = said(command).unwrap_err();
        assert!(error.contains(part), "{command}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{command}");
    }
}

#[cfg(unix)]
#[test]
fn what_a_hanging_program_started_is_ended_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let command = format!("(sleep 2; echo alive > {}) & sleep 60", mark.display());
    said(&command).unwrap_err();
    std::thread::sleep(Duration::from_millis(1_800));
    assert!(!mark.exists());
}

#[cfg(unix)]
#[test]
fn one_fixture_s_fault_leaves_the_others_whole() {
    let mut other = lines(r#""absent": ["x"]"#);
    "other".clone_into(&mut other.name);
    let loaded = Loaded {
        fixtures: vec![lines(r#""absent": ["x"]"#), other],
        bad: Vec::new(),
    };
    let command = r#"grep -q '"other"' && sleep 60; echo '{"text": "Fine."}'"#;
    let report = run_by(&loaded, &program(command), &options());
    assert_eq!(report.exit_code, 1);
    assert_eq!(report.fixtures[0].scores[&ScoreName::Absence], Some(1.0));
    assert!(report.fixtures[1].errors[0].contains("no output within 1 s"));
}

#[cfg(unix)]
#[test]
fn a_changed_program_is_another_provider() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("s.sh");
    std::fs::write(&script, "echo 1").unwrap();
    let command = format!("sh {}", script.display());
    let before = program(&command).identity();
    std::fs::write(&script, "echo 2").unwrap();
    assert_ne!(program(&command).identity(), before);
}

#[test]
fn stored_outputs_are_scored_again_without_being_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let report = stub_report();
    let path = folder.path().join("report.json");
    std::fs::write(&path, report.to_json().unwrap()).unwrap();
    let again = run_by(
        &loaded(&[ours()]),
        &Stored::open(&path).unwrap(),
        &options(),
    );
    for (one, two) in report.fixtures.iter().zip(&again.fixtures) {
        assert_eq!(one.scores, two.scores, "{}", one.name);
    }
    assert!(Stored::open(Path::new("/no/such")).is_err());
    std::fs::write(&path, "{}").unwrap();
    assert!(Stored::open(&path).is_err());
}

#[test]
fn a_folder_of_outputs_is_read_by_fixture_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("two-lines.txt"), "The gate.").unwrap();
    let stored = Stored::open(folder.path()).unwrap();
    let mut fixture = lines(r#""absent": ["x"]"#);
    assert_eq!(stored.summarise(&fixture, 1).unwrap().text, "The gate.");
    std::fs::write(
        folder.path().join("two-lines.json"),
        r#"{"text": "From JSON."}"#,
    )
    .unwrap();
    assert_eq!(stored.summarise(&fixture, 1).unwrap().text, "From JSON.");
    fixture.name = "../two-lines".to_owned();
    let error = stored.summarise(&fixture, 1).unwrap_err().to_string();
    assert!(error.contains("no file name"), "{error}");
    fixture.name = "absent".to_owned();
    assert!(stored.summarise(&fixture, 1).is_err());
}

fn product(generator: Generator, name: &str, runtime: &tokio::runtime::Runtime) -> Engine {
    let around = Surroundings {
        limit: Duration::from_mins(1),
        clock: Arc::new(|| 1_700_000_000_000),
        runtime: runtime.handle().clone(),
        stopped: Arc::new(|| false),
    };
    Engine::new(name, generator, Profiles::default(), around).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn the_product_without_a_model_cites_what_it_says() {
    let runtime = runtime();
    let provider = product(Generator::Extractive, "extractive", &runtime);
    let report = run_by(&loaded(&[ours()]), &provider, &options());
    let by_name: BTreeMap<&str, _> = report
        .fixtures
        .iter()
        .map(|one| (one.name.as_str(), one))
        .collect();
    for outcome in &report.fixtures {
        assert_eq!(outcome.errors, Vec::<String>::new(), "{}", outcome.name);
        for (score, at_least) in [
            (ScoreName::BeatValidity, 1.0),
            (ScoreName::Support, 1.0),
            (ScoreName::Absence, 1.0),
            (ScoreName::AnswerRate, 1.0),
        ] {
            let found = outcome.scores[&score];
            assert!(
                found.is_none_or(|found| found >= at_least),
                "{}: {score} {found:?}",
                outcome.name
            );
        }
    }
    // What was withdrawn, and what an old version said, was given to it and is not told.
    let rent = by_name["old-version-cited"].summary.as_ref().unwrap();
    assert!(
        rent.text.contains("980") && !rent.text.contains("900"),
        "{}",
        rent.text
    );
    let beats = by_name["clean-run"]
        .summary
        .as_ref()
        .unwrap()
        .beats
        .as_ref()
        .unwrap();
    assert!(
        beats
            .iter()
            .all(|beat| beat.evidence.iter().all(|id| id.starts_with('l')))
    );
}

#[test]
fn a_model_goes_through_the_product_s_prompts_and_checks() {
    let answer =
        r#"{\"claims\":[{\"statement\":\"The policy covers the carpet.\",\"evidence\":[\"e1\"]}]}"#;
    let canned = format!(r#"{{"outputs": [{{"contains": "", "text": "{answer}"}}]}}"#);
    let model = CannedGenerator::from_bytes(canned.as_bytes()).unwrap();
    let runtime = runtime();
    let provider = product(
        Generator::model("canned:x", Arc::new(model)),
        "canned:x",
        &runtime,
    );
    let fixture = read(
        "f.json",
        r#"{"source": {"documents": [{"id": "a.txt", "text": "The policy covers the carpet in the hall."}]},
        "events": [{"id": "e", "mentions": [["carpet"]]}]}"#,
    )
    .unwrap();
    let summary = provider.summarise(&fixture, 1).unwrap();
    assert_eq!(summary.text, "The policy covers the carpet.");
    // The quote is negated, the claim is not: the product withholds it.
    let negated = read(
        "g.json",
        r#"{"source": {"documents": [{"id": "a.txt", "text": "The policy does not cover the carpet in the hall."}]},
        "events": [{"id": "e", "mentions": [["carpet"]]}]}"#,
    )
    .unwrap();
    assert_eq!(provider.summarise(&negated, 1).unwrap().text, "");
}

#[test]
fn identities_hold_model_and_profile() {
    let runtime = runtime();
    let one = product(Generator::Extractive, "extractive", &runtime).identity();
    let model = CannedGenerator::from_bytes(br#"{"outputs": []}"#).unwrap();
    let two = product(
        Generator::model("extractive", Arc::new(model)),
        "extractive",
        &runtime,
    )
    .identity();
    assert_ne!(one, two);
    let around = Surroundings {
        limit: Duration::from_mins(1),
        clock: Arc::new(|| 0),
        runtime: runtime.handle().clone(),
        stopped: Arc::new(|| false),
    };
    let own = "extends = \"narrative\"\n[extraction]\nleaf_claims = 2\n";
    let profiles = Profiles::one("mine", Some(own.to_owned()));
    let three = Engine::new("extractive", Generator::Extractive, profiles, around).unwrap();
    assert_ne!(three.identity(), one);
    let fixture: Fixture = lines(r#""absent": ["x"]"#);
    assert!(three.summarise(&fixture, 1).is_ok());
}

#[test]
fn a_fixture_without_a_stub_is_an_error_of_its_own() {
    let loaded = Loaded {
        fixtures: vec![lines(r#""absent": ["x"]"#)],
        bad: Vec::new(),
    };
    let report = run_by(&loaded, &Stub, &options());
    assert!(report.fixtures[0].errors[0].contains("has no stub"));
    assert_eq!(report.exit_code, 1);
}
