//! The controlled experiment from the command line: by extraction whole, and two case files by a model that
//! answers all the wrong things.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::support::{FACTUM, Ran, Workspace, assert_format, assert_keys};

fn run(workspace: &Workspace, line: &str) -> Ran {
    let mut command = Command::new(FACTUM);
    command.args(line.split_whitespace());
    command.env("FACTUM_MODELS", workspace.at("models"));
    command.env_remove("FACTUM_API_KEY");
    workspace.finish(command)
}

fn corpus() -> Workspace {
    let workspace = Workspace::bare();
    run(&workspace, "experiment controlled generate --out corpus").ok();
    workspace
}

fn report(workspace: &Workspace, out: &str) -> Value {
    let line = format!("experiment controlled report {out} --gold corpus/gold --json");
    let found = run(workspace, &line).ok().json();
    assert_format(
        &found,
        "factum/experiment/1",
        "groups costs comparisons published review",
    );
    found
}

fn calls(report: &Value) -> [u64; 4] {
    ["initial", "incremental", "full", "exercise"]
        .map(|part| report["costs"][part]["calls"].as_u64().unwrap())
}

#[test]
fn extraction_is_right_everywhere_and_its_incremental_builds_equal_its_full_ones() {
    let workspace = corpus();
    run(
        &workspace,
        "experiment controlled run --corpus corpus/inputs --out out",
    )
    .ok();
    let found = report(&workspace, "out");
    assert_eq!(calls(&found), [480, 140, 900, 39]);
    assert_eq!(found["comparisons"]["pairs"], 62);
    assert_eq!(found["comparisons"]["equal"], 62);
    let groups = found["groups"].as_object().unwrap();
    assert_eq!(groups.len(), 5, "{groups:#?}");
    for (name, group) in groups {
        for one in ["fact_precision", "fact_recall", "reference_validity"] {
            assert_eq!(group[one], 1.0, "{name} {one}");
        }
        assert_eq!(group["unsupported_rate"], 0.0, "{name}");
        assert_eq!(group["statuses"]["INVALID"], 0, "{name}");
    }
    assert_eq!(groups["test-events/extraction"]["claims"], 2640);
    assert_eq!(found["review"]["sample"], "PENDING");

    // Once more: everything is recorded, and nothing is built.
    let before = std::fs::read(workspace.at("out/records.json")).unwrap();
    run(
        &workspace,
        "experiment controlled run --corpus corpus/inputs --out out",
    )
    .ok();
    assert_eq!(
        std::fs::read(workspace.at("out/records.json")).unwrap(),
        before
    );

    // What a reader found is a record of its own; the sample stays as it is.
    let sample = std::fs::read(workspace.at("out/records/sample.json")).unwrap();
    let findings = r#"[{"claim": 1, "verdict": "right"}, {"claim": 2, "verdict": "unclear", "note": "which dock?"}]"#;
    std::fs::write(workspace.at("findings.json"), findings).unwrap();
    run(
        &workspace,
        "experiment controlled review out --reviewer reader --findings findings.json",
    )
    .ok();
    assert_eq!(
        std::fs::read(workspace.at("out/records/sample.json")).unwrap(),
        sample
    );
    let again = report(&workspace, "out");
    assert_eq!(again["review"]["reviews"][0]["right"], 1);
    assert_eq!(again["main_sha256"], found["main_sha256"]);
    std::fs::write(
        workspace.at("findings.json"),
        r#"[{"claim": 9999, "verdict": "right"}]"#,
    )
    .unwrap();
    run(
        &workspace,
        "experiment controlled review out --reviewer reader --findings findings.json",
    )
    .fails(3, "9999");

    let page = run(
        &workspace,
        "experiment controlled report out --gold corpus/gold --html",
    )
    .ok()
    .stdout;
    // Extraction writes no tokens, so there is no plot of them.
    assert_eq!(page.matches("<svg").count(), 3);
    assert!(!page.contains("not drawn"), "a plot is missing");
}

#[test]
fn gold_within_reach_stops_the_run_before_anything_is_built() {
    let workspace = corpus();
    let copied = workspace.at("out/deep");
    std::fs::create_dir_all(&copied).unwrap();
    std::fs::copy(
        workspace.at("corpus/gold/gold.json"),
        copied.join("harmless.json"),
    )
    .unwrap();
    for line in [
        "experiment controlled run --corpus corpus --out elsewhere",
        "experiment controlled run --corpus corpus/inputs --out out",
        "experiment controlled run --corpus corpus/inputs --out corpus",
    ] {
        run(&workspace, line).fails(3, "gold lies within reach");
    }
    assert!(!workspace.at("elsewhere").exists() && !workspace.at("out/records.json").exists());
}

#[test]
fn an_experiment_goes_on_only_with_what_it_began_with() {
    let workspace = corpus();
    run(
        &workspace,
        "experiment controlled run --corpus corpus/inputs --out out --only initial --case S-010",
    )
    .ok();
    run(
        &workspace,
        "experiment controlled run --corpus corpus/inputs --out out --profile grounded",
    )
    .fails(3, "another");
    run(
        &workspace,
        "experiment controlled generate --out other --seed 7",
    )
    .ok();
    run(
        &workspace,
        "experiment controlled run --corpus other/inputs --out out",
    )
    .fails(3, "another corpus");
    run(
        &workspace,
        "experiment controlled run --corpus corpus/inputs --out corpus/inputs",
    )
    .fails(3, "not empty");
    run(
        &workspace,
        "experiment controlled run --corpus corpus/inputs --out out --case S-999",
    )
    .fails(3, "S-999");
    run(
        &workspace,
        "experiment controlled report nowhere --gold corpus/gold",
    )
    .fails(3, "no experiment");
    run(
        &workspace,
        "experiment controlled report out --gold corpus/inputs",
    )
    .fails(3, "gold.json");
    run(&workspace, "experiment controlled generate --out corpus").fails(3, "already");
    // A text that was changed after it was listed.
    let text = workspace.at("corpus/inputs/S-011/v1");
    let first = std::fs::read_dir(text)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::write(&first, "Product P-11-00 status: sold.\n").unwrap();
    run(
        &workspace,
        "experiment controlled run --corpus corpus/inputs --out new",
    )
    .fails(3, "digest");
}

/// What the server does with a request, by what it is asked.
enum Answer {
    Text(String, &'static str),
    HangUp,
}

/// The facts of the passages shown, at most four, as a model might report them.
fn right(shown: &str) -> String {
    let claims: Vec<Value> = shown
        .lines()
        .filter_map(|line| {
            let (id, rest) = line.strip_prefix('[')?.split_once("] Product ")?;
            let (subject, rest) = rest.strip_suffix('.')?.split_once(' ')?;
            let (field, value) = rest.split_once(": ")?;
            Some(json!({"evidence": [id], "subject": subject, "field": field, "value": value}))
        })
        .take(4)
        .collect();
    json!({"claims": claims}).to_string()
}

fn answer(body: &Value, stalls: bool) -> Answer {
    let shown = body["messages"][1]["content"].as_str().unwrap();
    let right = right(shown);
    if stalls && shown.contains("P-10-07") && shown.contains("<document>") {
        return Answer::HangUp;
    }
    let kind = shown.bytes().map(u64::from).sum::<u64>() % 8;
    match kind {
        0 => Answer::Text(
            "Certainly! Here are the facts you asked for.".to_owned(),
            "stop",
        ),
        1 => Answer::Text(right[..right.len() / 2].to_owned(), "length"),
        2 => Answer::Text(
            right.replace("{\"claims\"", "{\"claims\":[],\"claims\""),
            "stop",
        ),
        3 => Answer::Text(right.replace("[\"e", "[\"e9"), "stop"),
        4 => Answer::Text(format!("```json\n{right}\n```"), "stop"),
        5 => Answer::Text(right.replace("\"value\":\"", "\"value\":\"about "), "stop"),
        _ => Answer::Text(right, "stop"),
    }
}

fn serve(mut stream: TcpStream, stalls: &AtomicBool, asked: &AtomicU64) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while reader.read_line(&mut head).unwrap_or(0) > 2 {}
    let length = head.lines().find_map(|line| {
        let line = line.to_lowercase();
        line.strip_prefix("content-length: ")?.parse().ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let Answer::Text(text, finish) = answer(&body, stalls.load(Ordering::SeqCst)) else {
        return;
    };
    asked.fetch_add(1, Ordering::SeqCst);
    let reply = json!({
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 50},
    })
    .to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{reply}",
        reply.len()
    );
}

#[test]
fn a_model_that_answers_all_the_wrong_things_leaves_counts_statuses_and_report_right() {
    let workspace = corpus();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let stalls = Arc::new(AtomicBool::new(true));
    let asked = Arc::new(AtomicU64::new(0));
    let (held, counted) = (Arc::clone(&stalls), Arc::clone(&asked));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (held, counted) = (Arc::clone(&held), Arc::clone(&counted));
            std::thread::spawn(move || serve(stream.unwrap(), &held, &counted));
        }
    });
    std::fs::create_dir(workspace.at("models")).unwrap();
    let settings = format!("[[server]]\nurl = \"{url}\"\nmodel = \"m\"\ndeadline_seconds = 2\n");
    std::fs::write(workspace.at("models/settings.toml"), settings).unwrap();
    let line = format!(
        "experiment controlled run --corpus corpus/inputs --out out --case S-010,S-037 --generator openai:{url},m"
    );
    run(&workspace, &line).fails(1, "steps are not done");
    let halfway = report(&workspace, "out");
    assert!(
        halfway["steps"]["recorded"].as_u64().unwrap() < 7,
        "{halfway:#}"
    );

    stalls.store(false, Ordering::SeqCst);
    run(&workspace, &line).ok();
    let found = report(&workspace, "out");
    let line = "experiment controlled report out --gold corpus/gold --html";
    assert_eq!(run(&workspace, line).ok().stdout.matches("<svg").count(), 4);
    assert_eq!(calls(&found), [32, 7, 45, 39]);
    assert_eq!(
        asked.load(Ordering::SeqCst),
        123,
        "no whole answer is asked for twice"
    );
    assert_eq!(found["comparisons"]["equal"], 5);
    let events = &found["groups"]["test-events/incremental"];
    assert_keys(
        events,
        "snapshots statuses claims unsupported_rate fact_precision fact_recall duplicate_claims",
    );
    assert_eq!(
        found["groups"]["test-events/extraction"]["fact_recall"],
        1.0
    );
    no_invalid_root_is_served(&workspace);
    diagnoses(&workspace);
}

/// The records of a case file's builds.
fn builds(workspace: &Workspace) -> Vec<(Value, Value)> {
    let mut all = Vec::new();
    for case in ["S-010", "S-037"] {
        let text = std::fs::read(workspace.at(&format!("out/records/{case}.json"))).unwrap();
        let record: Value = serde_json::from_slice(&text).unwrap();
        for step in record["steps"].as_array().unwrap() {
            for build in step["builds"].as_array().unwrap() {
                let file = workspace.at("out").join(build["file"].as_str().unwrap());
                let run = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
                all.push((build.clone(), run));
            }
        }
    }
    all
}

fn no_invalid_root_is_served(workspace: &Workspace) {
    for (build, run) in builds(workspace) {
        let root = run["nodes"].as_array().unwrap().last().unwrap().clone();
        let invalid = root["result"]["status"] == "INVALID";
        let served = build["served_after"].as_str().unwrap();
        assert_eq!(
            served,
            if invalid { "INVALID" } else { "CURRENT" },
            "{build}"
        );
        assert!(!invalid || root["result"]["claims"].as_array().unwrap().is_empty());
    }
}

/// Each kind of wrong answer was really there, and has a diagnosis of its own.
fn diagnoses(workspace: &Workspace) {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for (_, run) in builds(workspace) {
        for node in run["nodes"].as_array().unwrap() {
            if let Some(diagnosis) = node["result"]["diagnostic"].as_str() {
                *seen.entry(diagnosis.to_owned()).or_default() += 1;
            }
        }
    }
    let all = seen.keys().cloned().collect::<Vec<_>>().join("\n");
    for word in ["JSON", "length", "twice", "e9"] {
        assert!(all.contains(word), "{word} is in none of:\n{all}");
    }
}

#[test]
fn an_audit_counts_citations_support_and_gold_apart() {
    let workspace = corpus();
    run(
        &workspace,
        "experiment controlled run --corpus corpus/inputs --out out --case S-010",
    )
    .ok();
    let line = "-C out/work/incremental --as reader audit run-000004 --gold corpus/gold --json";
    let found = run(&workspace, line).ok().json();
    assert_format(&found, "factum/audit/1", "run_id root leaves claims nodes");
    // What the reader may no longer see can't be audited by it; the last run rests on ten documents.
    run(
        &workspace,
        "-C out/work/incremental --as reader audit run-000001",
    )
    .fails(7, "no longer see");
    assert_eq!(found["root"]["claims"], 40);
    assert_eq!(found["root"]["precision"], 1.0);
    assert_eq!(found["root"]["recall"], 1.0);
    assert_eq!(found["root"]["unreviewed_claims"], 40);
    assert_eq!(found["root"]["support"]["fact-line"]["supported"], 40);
    assert_eq!(found["claims"][0]["in_gold"], true);
    // A gold that is wrong in one value.
    let gold = std::fs::read_to_string(workspace.at("corpus/gold/gold.json")).unwrap();
    let changed = gold.replacen("\"value\":\"", "\"value\":\"not ", 8);
    std::fs::write(workspace.at("wrong.json"), changed).unwrap();
    let line = "-C out/work/incremental --as reader audit run-000004 --gold wrong.json --json";
    let found = run(&workspace, line).ok().json();
    assert!(found["root"]["precision"].as_f64().unwrap() < 1.0);
    assert!(found["root"]["recall"].as_f64().unwrap() < 1.0);
    run(
        &workspace,
        "-C out/work/incremental --as reader audit run-000004 --gold findings.json",
    )
    .fails(3, "findings.json");
    run(
        &workspace,
        "-C out/work/incremental --as stranger audit run-000004",
    )
    .exits(7);
}
