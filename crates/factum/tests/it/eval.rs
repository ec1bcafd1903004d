//! `factum eval` from outside: exit codes, verdicts, reports, and faults that users reported elsewhere.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::server::{Server, words};
use crate::support::{CASE, Workspace};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// A folder with one fixture whose stub makes the one forbidden claim.
fn one(desk: &Workspace) {
    std::fs::create_dir_all(desk.at("f")).unwrap();
    std::fs::write(
        desk.at("f/one.json"),
        r#"{"source": {"lines": [{"id": "a", "text": "All was quiet at the mill."}]},
            "forbidden": [{"id": "dragon", "mentions": [["dragon"]], "why": "None came."}],
            "stub": {"text": "A dragon came."}, "expected": {"precision": 0}}"#,
    )
    .unwrap();
}

fn eval(desk: &Workspace, more: &str) -> (i32, Value) {
    let ran = desk.factum(&format!("eval run f --json --no-cache {more}"));
    (
        ran.code.unwrap(),
        serde_json::from_str(&ran.stdout).unwrap(),
    )
}

#[test]
fn our_fixtures_pass_and_need_no_workspace() {
    let desk = Workspace::bare();
    let path = fixtures().display().to_string();
    let report = desk.factum(&format!("eval run {path} --json")).ok().json();
    assert_eq!(report["format"], "factum/eval/1");
    assert_eq!(report["verdict"], "passed");
    let all = report["fixtures"].as_array().unwrap();
    let fabricated = all
        .iter()
        .find(|one| one["name"] == "fabricated-location")
        .unwrap();
    assert_eq!(fabricated["scores"]["precision"], 0.5);
    assert_eq!(fabricated["fired"][0], "entered-the-hold");
    assert!(!desk.at(".factum").exists());
}

#[test]
fn the_printed_verdict_agrees_with_the_exit_code() {
    let desk = Workspace::bare();
    one(&desk);
    std::fs::create_dir_all(desk.at("bad")).unwrap();
    std::fs::write(desk.at("bad/bad.json"), "{\n\"source\": 1}").unwrap();
    for (more, code, verdict) in [
        ("", 0, "passed"),
        ("--fail-under-precision 0", 0, "passed"),
        ("--fail-under-precision 0.1", 6, "failed"),
        ("--fail-any-under-precision 0.1", 6, "failed"),
        ("--fail-over-length 3", 6, "failed"),
        ("--fail-under-coverage 0", 6, "unmeasured"),
        ("--fail-under-coverage 0 --allow-unmeasured", 0, "passed"),
        ("--tag none", 6, "unmeasured"),
        ("--filter nothing --allow-unmeasured", 0, "passed"),
        ("bad", 3, "bad-fixture"),
        ("bad --fail-under-precision 0.1", 3, "bad-fixture"),
        ("--provider command:false", 1, "run-error"),
        (
            "--provider command:false --fail-under-precision 0.1",
            1,
            "run-error",
        ),
        (
            "--provider extractive --fail-under-precision 1",
            0,
            "passed",
        ),
    ] {
        let (found, report) = eval(&desk, more);
        assert_eq!(
            (found, &report["verdict"]),
            (code, &Value::from(verdict)),
            "{more}"
        );
        assert_eq!(report["exit_code"], code, "{more}");
        let text = desk.factum(&format!("eval run f --no-cache {more}"));
        assert_eq!(text.code, Some(code), "{more}");
        assert!(
            text.stdout.trim_end().ends_with(verdict),
            "{more}: {}",
            text.stdout
        );
    }
    let (_, report) = eval(&desk, "bad");
    let error = report["fixtures"][1]["errors"][0].as_str().unwrap();
    assert!(
        error.contains("bad.json:2: source: expected an object"),
        "{error}"
    );
}

#[test]
fn wrong_use_and_bad_paths_have_codes_of_their_own() {
    let desk = Workspace::bare();
    one(&desk);
    for (line, code) in [
        ("eval run", 2),
        ("eval run f --fail-under-precision high", 2),
        ("eval run f --fail-under-nothing 1", 2),
        ("eval run f --fail-under-precision 1.5", 2),
        ("eval run f --fail-under-precision -0.1", 2),
        ("eval run f --fail-under-chronology-tau -1.1", 2),
        ("eval run f --fail-over-length -1", 2),
        ("eval run f --shard 3/2", 2),
        ("eval run f --profile narrative", 2),
        ("eval run nowhere", 3),
        ("eval run f --provider gpt", 3),
        ("eval run f --provider extractive --profile nowhere", 3),
        ("eval run f --provider stored:nowhere", 3),
        ("eval run f --fail-on-regression nowhere.json", 3),
        ("eval diff f/one.json f/one.json", 3),
        ("eval support --data nowhere", 3),
    ] {
        let ran = desk.factum(line);
        assert_eq!(ran.code, Some(code), "{line}: {}", ran.stderr);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{line}");
    }
}

#[test]
fn a_worse_run_fails_against_the_better_one_before_it() {
    let desk = Workspace::bare();
    one(&desk);
    std::fs::create_dir_all(desk.at("good")).unwrap();
    std::fs::write(desk.at("good/one.txt"), "All was quiet at the mill.").unwrap();
    let reports = "--report good.json --junit j.xml --markdown m.md --html h.html --history h.jsonl --commit r1";
    let (code, _) = eval(&desk, &format!("--provider stored:good {reports}"));
    assert_eq!(code, 0);
    for file in ["good.json", "j.xml", "m.md", "h.html", "h.jsonl"] {
        assert!(
            std::fs::metadata(desk.at(file)).unwrap().len() > 100,
            "{file}"
        );
    }
    for baseline in ["good.json", "h.jsonl", "h.jsonl#1"] {
        let (code, report) = eval(
            &desk,
            &format!("--fail-on-regression {baseline} --report bad.json"),
        );
        assert_eq!(
            (code, &report["verdict"]),
            (6, &Value::from("failed")),
            "{baseline}"
        );
        let (code, _) = eval(
            &desk,
            &format!("--provider stored:good --fail-on-regression {baseline}"),
        );
        assert_eq!(code, 0, "{baseline}");
    }
    // A run that failed does not become the measure of the next.
    for _ in 0..2 {
        let (code, _) = eval(&desk, "--fail-on-regression h.jsonl --history h.jsonl");
        assert_eq!(code, 6);
    }
    desk.factum("eval run f --provider stored:good --fail-on-regression h.jsonl#2")
        .ok();
    let failed = std::fs::read_to_string(desk.at("h.jsonl")).unwrap();
    let failed = failed.lines().nth(1).unwrap().to_owned() + "\n";
    std::fs::write(desk.at("failed.jsonl"), failed).unwrap();
    desk.factum("eval run f --fail-on-regression failed.jsonl")
        .fails(3, "no run in failed.jsonl passed");
    // A report is not written into.
    let before = std::fs::read(desk.at("good.json")).unwrap();
    desk.factum("eval run f --provider stored:good --history good.json")
        .fails(1, "is no history");
    assert_eq!(std::fs::read(desk.at("good.json")).unwrap(), before);
    let diff = desk
        .factum("eval diff good.json bad.json --json")
        .ok()
        .json();
    assert_eq!(diff["format"], "factum/eval-diff/1");
    assert_eq!(diff["scores"]["precision"]["difference"], -1.0);
    assert_eq!(diff["fixtures"][0]["newly_fired"][0], "dragon");
}

#[test]
fn outputs_that_cost_something_are_kept_and_hits_are_shown() {
    let desk = Workspace::bare();
    one(&desk);
    let line = "eval run f --json --provider extractive --cache kept";
    let first = desk.factum(line).ok().json();
    assert_eq!(
        (&first["cache"]["hits"], &first["cache"]["misses"]),
        (&0.into(), &1.into())
    );
    let second = desk.factum(line).ok().json();
    assert_eq!(
        (&second["cache"]["hits"], &second["cache"]["misses"]),
        (&1.into(), &0.into())
    );
    assert_eq!(
        first["fixtures"][0]["scores"],
        second["fixtures"][0]["scores"]
    );
    // Another profile is another provider.
    let other = desk.factum(&format!("{line} --profile facts")).ok().json();
    assert_eq!(other["cache"]["misses"], 1);
}

#[test]
fn the_schema_is_printed_as_it_is() {
    let desk = Workspace::bare();
    let schema: Value = serde_json::from_str(&desk.factum("eval schema").ok().stdout).unwrap();
    assert_eq!(schema["title"], "Factum evaluation fixture");
}

#[test]
fn public_data_gives_a_figure_for_each_origin() {
    let data = std::env::var_os("FACTUM_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    if !data.join("frank/valid.jsonl").exists() || !data.join("qmsum/val").exists() {
        println!("skipped: {} has no frank and qmsum", data.display());
        return;
    }
    let desk = Workspace::bare();
    let line = format!("eval support --json --data {}", data.display());
    let found = desk.factum(&line).ok().json();
    assert_eq!(found["format"], "factum/eval-support/2");
    let figures = found["figures"].as_array().unwrap();
    let of = |set: &str| {
        let scoring = |one: &&Value| one["set"] == set && one["half"] == "scoring";
        let all: Vec<f64> = figures
            .iter()
            .filter(scoring)
            .map(|one| one["balanced_accuracy"].as_f64().unwrap())
            .collect();
        all.into_iter().fold(f64::MIN, f64::max)
    };
    // Better than guessing on the half that nothing was tuned on; docs/support.md has the figures.
    for (set, least) in [("frank-cnndm", 54.0), ("frank-bbc", 54.0), ("qmsum", 60.0)] {
        assert!(of(set) > least, "{set} {}", of(set));
    }
}

/// A case file with the fixture's one document, built by a server; its run is exported.
const LETTER: &str = "The hose burst on 3 March 2026. The repair cost 4,200 euros.";

fn letter(desk: &Workspace) {
    let fixture = serde_json::json!({
        "name": "letter",
        "source": {"documents": [{"id": "letter.txt", "text": LETTER}]},
        "events": [{"id": "burst", "mentions": [["burst"], ["3 March 2026"]]}],
        "forbidden": [{"id": "wrong-date", "mentions": [["4 March 2026"]], "why": "It was the 3rd."}],
    });
    std::fs::create_dir_all(desk.at("f")).unwrap();
    std::fs::write(desk.at("f/letter.json"), fixture.to_string()).unwrap();
}

fn with_models(desk: &Workspace, line: &str) -> crate::support::Ran {
    let mut command = std::process::Command::new(crate::support::FACTUM);
    command.args(line.split_whitespace());
    command.env("FACTUM_MODELS", desk.at("models"));
    command.env_remove("FACTUM_API_KEY");
    desk.finish(command)
}

#[test]
fn a_server_and_its_recorded_generations_are_evaluated_and_give_the_same() {
    let desk = Workspace::with(&[("letter.txt", LETTER)]);
    letter(&desk);
    let claim = r#"{"claims":[{"statement":"The hose burst on 3 March 2026.","topic":"cause","evidence":["e1"]}]}"#;
    let server = Server::start(move |_, _| words(claim));
    let generator = format!("openai:{},tiny", server.url);
    let line = format!("eval run f --json --provider {generator} --cache kept");
    let first = with_models(&desk, &line).ok().json();
    let scores = &first["fixtures"][0]["scores"];
    assert_eq!(
        (&scores["coverage"], &scores["precision"]),
        (&1.0.into(), &1.0.into()),
        "{first:#}"
    );
    let asked = server.seen().len();
    assert!(asked > 0);
    let again = with_models(&desk, &line).ok().json();
    assert_eq!(again["cache"]["hits"], 1);
    assert_eq!(
        server.seen().len(),
        asked,
        "an output that is kept is not asked for again"
    );
    // What a build recorded of the same text answers without the server.
    with_models(&desk, &format!("build {CASE} --generator {generator}")).ok();
    let run = with_models(&desk, "export run run-000001").ok();
    std::fs::write(desk.at("run.json"), run.stdout).unwrap();
    let asked = server.seen().len();
    let replayed = with_models(&desk, "eval run f --json --provider replay:run.json")
        .ok()
        .json();
    assert_eq!(&replayed["fixtures"][0]["scores"], scores);
    assert_eq!(server.seen().len(), asked);
}

#[test]
fn a_server_that_is_not_there_is_an_error_of_its_fixture() {
    let desk = Workspace::bare();
    letter(&desk);
    std::fs::create_dir(desk.at("models")).unwrap();
    let settings =
        "[[server]]\nurl = \"http://127.0.0.1:1/v1\"\nmodel = \"tiny\"\ndeadline_seconds = 2\n";
    std::fs::write(desk.at("models/settings.toml"), settings).unwrap();
    let line = "eval run f --json --no-cache --provider openai:http://127.0.0.1:1/v1,tiny";
    let report = with_models(&desk, line).exits(1).json();
    assert_eq!(report["verdict"], "run-error");
    let error = report["fixtures"][0]["errors"][0].as_str().unwrap();
    assert!(error.contains("can't be reached"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_run_that_is_terminated_ends_its_programs_too() {
    let desk = Workspace::bare();
    one(&desk);
    let child = std::process::Command::new(crate::support::FACTUM)
        .args(["eval", "run", "f", "--no-cache", "--provider"])
        .arg("command:echo $$ > started; exec sleep 600")
        .current_dir(desk.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let program = loop {
        let text = std::fs::read_to_string(desk.at("started")).unwrap_or_default();
        if text.ends_with('\n') {
            break text.trim().to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let send = |signal: &str, to: &str| {
        let kill = std::process::Command::new("kill")
            .args([signal, to])
            .output();
        kill.unwrap().status.success()
    };
    assert!(send("-TERM", &child.id().to_string()));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(!send("-0", &program), "the program lives on");
}
