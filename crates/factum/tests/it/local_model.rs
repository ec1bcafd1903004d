//! A build by a real model in the process. Needs the file that `FACTUM_TEST_MODEL` names; skipped without it.

use std::process::Command;

use serde_json::Value;

use crate::support::{FACTUM, LETTERS, Ran, Workspace, strings};

fn run(workspace: &Workspace, line: &str) -> Ran {
    let mut command = Command::new(FACTUM);
    command.args(line.split_whitespace());
    command.env("FACTUM_MODELS", workspace.at("models"));
    workspace.finish_within(10, command)
}

#[test]
fn local_model_decodes_nothing_that_it_was_not_given_and_always_the_same() {
    let Ok(model) = std::env::var("FACTUM_TEST_MODEL") else {
        eprintln!("skipped: FACTUM_TEST_MODEL names no model");
        return;
    };
    let workspace = Workspace::with_profile("facts", &LETTERS);
    let build = format!("build wd --json --generator local:{model}");
    let first = run(&workspace, &build).ok().json();
    assert!(first["counts"]["model_calls"].as_u64().unwrap() >= 4);
    let exported = run(&workspace, "export run run-000001").ok().json();
    for node in exported["nodes"].as_array().unwrap() {
        let result = &node["result"];
        assert_eq!(result["status"], "VALID", "{node:#}");
        let all = [&result["claims"], &result["withheld"]];
        for claim in all.iter().flat_map(|list| list.as_array().unwrap()) {
            let first = claim["evidence"][0].as_str().unwrap();
            let quote = result["evidence"][first]["quote"].as_str().unwrap();
            let value = claim["fields"]["value"].as_str().unwrap();
            assert!(quote.contains(value), "{value:?} is not in {quote:?}");
        }
    }
    // The same key for the same model, and another process says the same, token for token.
    let full = run(&workspace, &format!("{build} --full")).ok().json();
    assert_eq!(full["root"], first["root"]);
    run(&workspace, "compare run-000001 run-000002").ok();
    let tokens = |run: &Value| -> Vec<Value> {
        let records = run["generations"].as_object().unwrap().values();
        records.map(|record| record["token_ids"].clone()).collect()
    };
    let second = run(&workspace, "export run run-000002").ok().json();
    assert_eq!(tokens(&exported), tokens(&second));
    run(&workspace, "verify wd").ok();
}

/// The model is far too small to answer well. What is asked of it is that nothing comes out that was not declared, or that it
/// was not given.
#[test]
fn local_model_looks_before_it_answers_and_cites_nothing_that_it_was_not_given() {
    let Ok(model) = std::env::var("FACTUM_TEST_MODEL") else {
        eprintln!("skipped: FACTUM_TEST_MODEL names no model");
        return;
    };
    let workspace = Workspace::with(&LETTERS);
    let ask = |question: &str| {
        let mut command = Command::new(FACTUM);
        command.args(["ask", "wd", question, "--json", "--max-requests", "4"]);
        command.arg("--generator").arg(format!("local:{model}"));
        command.env("FACTUM_MODELS", workspace.at("models"));
        workspace.finish_within(10, command)
    };
    let mut answered = 0;
    for question in ["When did the hose burst?", "What does the repair cost?"] {
        let ran = ask(question);
        if ran.code == Some(1) {
            // It went on and on: no answer, and nothing is kept of it.
            assert!(ran.stderr.contains("longer than 512 tokens"), "{ran:#?}");
            continue;
        }
        let answer = ran.ok().json();
        answered += 1;
        assert!(
            answer["counts"]["searches"].as_u64().unwrap() >= 1,
            "{answer:#}"
        );
        // Asked what it rests on, it can only say that.
        assert_ne!(answer["status"], "missing", "{answer:#}");
        assert_eq!(answer["violations"].as_array().unwrap().len(), 0);
        let retrieved = strings(&answer["retrieved"]);
        for one in answer["refs"].as_array().unwrap() {
            let id = one["evidence_id"].as_str().unwrap().to_owned();
            assert!(retrieved.contains(&id), "{answer:#}");
        }
    }
    let kept = run(&workspace, "conversation list --json").ok().json();
    assert_eq!(kept["conversations"].as_array().unwrap().len(), answered);
}

#[test]
fn local_model_is_evaluated() {
    let Ok(model) = std::env::var("FACTUM_TEST_MODEL") else {
        eprintln!("skipped: FACTUM_TEST_MODEL names no model");
        return;
    };
    let workspace = Workspace::bare();
    let fixture = serde_json::json!({
        "source": {"documents": [{"id": "a.txt", "text": LETTERS[0].1}]},
        "events": [{"id": "burst", "mentions": [["burst"]]}],
    });
    std::fs::create_dir(workspace.at("f")).unwrap();
    std::fs::write(workspace.at("f/one.json"), fixture.to_string()).unwrap();
    let line = format!("eval run f --json --cache kept --provider local:{model}");
    let first = run(&workspace, &line).ok().json();
    assert_eq!(first["cache"]["misses"], 1);
    // All of the model is in the contexts that its nodes are made in.
    assert_eq!(first["identity"]["contexts"].as_array().unwrap().len(), 2);
    // The same again, and from the cache.
    let again = run(&workspace, &line).ok().json();
    assert_eq!(again["cache"]["hits"], 1);
    assert_eq!(
        again["fixtures"][0]["scores"],
        first["fixtures"][0]["scores"]
    );
}

/// One case file and its first build by both profiles; by `grounded` its first event, too.
#[test]
fn local_model_goes_through_the_experiment_with_the_counts_that_any_model_gives() {
    let Ok(model) = std::env::var("FACTUM_TEST_MODEL") else {
        eprintln!("skipped: FACTUM_TEST_MODEL names no model");
        return;
    };
    let workspace = Workspace::bare();
    run(&workspace, "experiment controlled generate --out corpus").ok();
    for (profile, events, calls) in [("controlled", 0, [16, 0, 0]), ("grounded", 1, [12, 1, 12])] {
        let line = format!(
            "experiment controlled run --corpus corpus/inputs --out {profile} --profile {profile} --case S-010 --events {events} \
             --generator local:{model}"
        );
        run(&workspace, &line).ok();
        // The model is the same when it is asked again, and nothing is left to do.
        run(&workspace, &line).ok();
        let line = format!("experiment controlled report {profile} --gold corpus/gold --json");
        let report = run(&workspace, &line).ok().json();
        let found = ["initial", "incremental", "full"]
            .map(|part| report["costs"][part]["calls"].as_u64().unwrap());
        assert_eq!(found, calls, "{profile}");
        assert_eq!(report["comparisons"]["equal"], events, "{profile}");
        for (name, group) in report["groups"].as_object().unwrap() {
            if profile == "grounded" {
                assert!(group["nodes"].get("INVALID").is_none(), "{name}: {group:#}");
                assert_eq!(group["claims"], group["supported_claims"], "{name}");
            }
        }
        run(&workspace, &format!("verify {profile}")).ok();
    }
}

#[test]
fn local_model_of_sentences_finds_by_meaning_makes_vectors_once_and_is_named_in_the_answer() {
    let Ok(model) = std::env::var("FACTUM_TEST_EMBEDDER") else {
        eprintln!("skipped: FACTUM_TEST_EMBEDDER names no sentence model");
        return;
    };
    let workspace = Workspace::with(&LETTERS);
    let embedder = format!("local:{model}");
    let ask = |question: &str| {
        let mut command = Command::new(FACTUM);
        command.args(["ask", "wd", question, "--json", "--embeddings", &embedder]);
        command.env("FACTUM_MODELS", workspace.at("models"));
        workspace.finish_within(10, command).ok().json()
    };
    // No word of it stands in the letters.
    let answer = ask("A tube cracked: what day?");
    let nearest = answer["retrieved"][0].as_str().unwrap();
    assert!(nearest.starts_with("a.txt@1:0:"), "{answer:#}");
    let by = &answer["embeddings"];
    assert_eq!(by["name"], embedder.as_str());
    assert_eq!(by["made"], LETTERS.len());
    let again = ask("When did the hose burst?");
    assert_eq!(again["status"], "grounded");
    assert_eq!(again["embeddings"]["made"], 0);
    assert_eq!(
        again["embeddings"]["identity_sha256"],
        by["identity_sha256"]
    );
    let resume =
        format!("conversation resume conversation-000002 When? --json --embeddings {embedder}");
    let resumed = run(&workspace, &resume).ok().json();
    assert_eq!(resumed["embeddings"]["name"], embedder.as_str());
    run(&workspace, "verify wd").ok();
}
