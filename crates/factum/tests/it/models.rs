//! Builds by language models, from the command line: outputs from a file, recorded generations, and a
//! server that the test plays.

use std::process::Command;

use serde_json::{Value, json};

use crate::server::{Server, body, words};
use crate::support::{CASE, FACTUM, LETTERS, Workspace, assert_format, claims};

/// A folder of its own for models, so that a test depends on nothing of this machine.
fn command(workspace: &Workspace, line: &str) -> Command {
    let mut command = Command::new(FACTUM);
    command.args(line.split_whitespace());
    command.env("FACTUM_MODELS", workspace.at("models"));
    command.env_remove("FACTUM_API_KEY");
    command
}

fn run(workspace: &Workspace, line: &str) -> crate::support::Ran {
    workspace.finish(command(workspace, line))
}

/// Outputs that quote the hose, and otherwise say nothing.
fn canned(workspace: &Workspace, outputs: &Value) {
    std::fs::write(
        workspace.at("canned.json"),
        json!({"outputs": outputs}).to_string(),
    )
    .unwrap();
}

fn hose() -> Value {
    let answer = json!({"claims": [{
        "evidence": ["e1"],
        "statement": "The hose under the sink burst on 3 March 2026.",
    }]});
    json!([
        {"contains": "hose", "text": answer.to_string()},
        {"contains": "", "text": "{\"claims\":[]}"},
    ])
}

#[test]
fn a_canned_model_s_summary_is_served_and_replayed_with_the_same_keys() {
    let workspace = Workspace::with(&LETTERS);
    canned(&workspace, &hose());
    let built = run(&workspace, "build wd --generator canned:canned.json --json")
        .ok()
        .json();
    assert_format(&built, "factum/build/1", "run_id root counts");
    assert!(built["counts"]["model_calls"].as_u64().unwrap() >= 4);
    let summary = run(&workspace, "show wd --json").ok().json();
    assert_eq!(
        claims(&summary),
        ["The hose under the sink burst on 3 March 2026."]
    );
    let exported = run(&workspace, "export run run-000001").ok();
    let document = exported.json();
    for record in document["generations"].as_object().unwrap().values() {
        for key in [
            "model",
            "messages",
            "text",
            "token_ids",
            "stop",
            "prompt_tokens",
            "new_tokens",
        ] {
            assert!(record.get(key).is_some(), "{key}: {record}");
        }
        assert_eq!(record["reused"], false);
    }
    std::fs::write(workspace.at("run.json"), &exported.stdout).unwrap();
    run(&workspace, "verify wd").ok();
    let replayed = run(&workspace, "build wd --generator replay:run.json --json")
        .ok()
        .json();
    assert_eq!(
        replayed["root"], built["root"],
        "the model's identity is in the keys, not how it was asked"
    );
    // Something that was not recorded is an error that names its digest, and nothing is made up.
    workspace.write(
        "d.txt",
        "The landlord inspected the roof on 9 May 2026. It was dry and sound.\n",
    );
    workspace.sync();
    let ran =
        run(&workspace, "build wd --generator replay:run.json").fails(1, "no recorded generation");
    assert!(ran.stderr.contains("incomplete"), "{ran:#?}");
}

#[test]
fn a_lost_call_is_exit_1_and_the_same_command_goes_on() {
    let workspace = Workspace::with(&LETTERS);
    canned(
        &workspace,
        &json!([
            {"contains": "insurer", "error": "timeout"},
            {"contains": "", "text": "{\"claims\":[]}"},
        ]),
    );
    run(&workspace, "build wd --generator canned:canned.json").fails(1, "incomplete");
    run(&workspace, "show wd").exits(4);
    let history = run(&workspace, "history wd --json").ok().json();
    assert_eq!(history["runs"][0]["state"], "unfinished");
    // The same answers without the loss are the same model, so only what was lost is asked for.
    canned(
        &workspace,
        &json!([{"contains": "", "text": "{\"claims\":[]}"}]),
    );
    let built = run(&workspace, "build wd --generator canned:canned.json --json")
        .ok()
        .json();
    assert_eq!(built["counts"]["model_calls"], 1);
    assert_eq!(built["counts"]["recomputed"], 2, "the leaf and its root");
}

#[test]
fn outputs_that_change_make_the_summary_stale() {
    let workspace = Workspace::with(&LETTERS);
    canned(&workspace, &hose());
    run(&workspace, "build wd --generator canned:canned.json").ok();
    run(&workspace, "show wd").ok();
    canned(
        &workspace,
        &json!([{"contains": "", "text": "{\"claims\":[]}"}]),
    );
    let refused = run(&workspace, "show wd --json").exits(4).json();
    assert_eq!(refused["status"], "STALE");
    assert_eq!(refused["reasons"][0]["kind"], "generator");
    std::fs::remove_file(workspace.at("canned.json")).unwrap();
    let refused = run(&workspace, "show wd --json").exits(4).json();
    assert_eq!(refused["status"], "STALE");
}

/// A build without local models says so before it looks for any.
const NO_SUCH_MODEL: &str = if cfg!(feature = "local") {
    "no model is called"
} else {
    "built without local models"
};

#[test]
fn generators_that_can_t_be_used_say_why_and_change_nothing() {
    let workspace = Workspace::with(&LETTERS);
    std::fs::write(workspace.at("bad.json"), "{").unwrap();
    workspace.unchanged(|| {
        for (generator, code, said) in [
            ("gpt", 3, "there is no generator"),
            ("openai:http://127.0.0.1:1/v1", 3, "openai:URL,MODEL"),
            ("openai:ftp://127.0.0.1/v1,m", 3, "http"),
            ("replay:", 3, "needs a file"),
            ("replay:nowhere.json", 3, "can't be read"),
            ("canned:bad.json", 3, "not a file of canned outputs"),
            ("local:no-such-model", 3, NO_SUCH_MODEL),
        ] {
            let line = format!("build {CASE} --generator {generator}");
            let ran = run(&workspace, &line).exits(code);
            assert!(ran.stderr.contains(said), "{ran:#?}");
        }
        run(&workspace, "build nothing --generator canned:bad.json").fails(3, "nothing");
    });
    workspace.profile(
        "plain",
        "name = \"plain\"\n[claim]\nreads = \"{s}\"\n[claim.fields.s]\nmax_chars = 9\n",
    );
    workspace.factum("case new other --profile plain").ok();
    canned(&workspace, &hose());
    run(&workspace, "build other --generator canned:canned.json").fails(3, "[model]");
}

#[test]
fn models_are_listed_and_a_damaged_one_is_named() {
    let workspace = Workspace::new();
    let listed = run(&workspace, "model list --json").ok().json();
    assert_format(&listed, "factum/models/1", "folder models");
    let names: Vec<&str> = listed["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"smollm2-135m-instruct") && names.contains(&"qwen2.5-1.5b-instruct"));
    assert!(
        listed["models"]
            .as_array()
            .unwrap()
            .iter()
            .all(|model| model["state"] == "absent")
    );
    run(&workspace, "model pull nothing").fails(3, "nothing");
    run(&workspace, "model check smollm2-135m-instruct").fails(3, "pull");
    std::fs::write(workspace.at("broken.gguf"), b"GGUF\x03\0\0\0\xff\xff").unwrap();
    let ran = run(&workspace, "model check ./broken.gguf --json").exits(1);
    assert_eq!(ran.json()["sound"], false);
}

#[test]
fn a_server_is_asked_with_the_ids_as_an_enum_and_the_key_is_kept_nowhere() {
    const KEY: &str = "sk-never-to-be-seen-4711";
    let workspace = Workspace::with(&LETTERS);
    let server = Server::start(|_, _| words("{\"claims\":[]}"));
    let line = format!("build {CASE} --generator openai:{},tiny --json", server.url);
    let mut asking = command(&workspace, &line);
    asking.env("FACTUM_API_KEY", KEY);
    let ran = workspace.finish(asking).ok();
    assert!(!ran.everything().contains(KEY));
    let seen = server.seen();
    assert_eq!(
        seen.len(),
        3,
        "a call for each leaf; above them there is nothing to read"
    );
    for request in &seen {
        assert!(request.contains(KEY), "the server gets the key");
        let body = body(request);
        assert_eq!(body["temperature"], 0);
        assert!(body.get("tools").is_none());
        let ids = &body["response_format"]["json_schema"]["schema"]["properties"]["claims"]["items"]
            ["properties"]["evidence"]["items"]["enum"];
        assert_eq!(ids, &json!(["e1", "e2"]), "{body:#}");
    }
    let run_file = run(&workspace, "export run run-000001").ok();
    assert!(!run_file.stdout.contains(KEY));
    assert!(
        run_file.stdout.contains("fp-1"),
        "the fingerprint is recorded"
    );
    let database = std::fs::read(workspace.database()).unwrap();
    assert!(
        !database
            .windows(KEY.len())
            .any(|window| window == KEY.as_bytes())
    );
    run(&workspace, "show wd").ok();
    run(&workspace, "verify wd").ok();
}

#[test]
fn a_server_that_is_not_there_leaves_the_run_incomplete() {
    let workspace = Workspace::with(&LETTERS);
    std::fs::create_dir(workspace.at("models")).unwrap();
    let settings =
        "[[server]]\nurl = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\ndeadline_seconds = 2\n";
    std::fs::write(workspace.at("models/settings.toml"), settings).unwrap();
    run(
        &workspace,
        "build wd --generator openai:http://127.0.0.1:1/v1,m",
    )
    .fails(1, "can't be reached");
    std::fs::write(workspace.at("models/settings.toml"), "[lokal]\n").unwrap();
    run(
        &workspace,
        "build wd --generator openai:http://127.0.0.1:1/v1,m",
    )
    .fails(3, "lokal");
}

#[test]
fn a_summary_with_an_invalid_part_says_so_in_every_format() {
    let workspace = Workspace::with(&LETTERS);
    canned(
        &workspace,
        &json!([
            {"contains": "insurer", "text": "no JSON at all"},
            {"contains": "hose", "text": hose()[0]["text"]},
            {"contains": "", "text": "{\"claims\":[]}"},
        ]),
    );
    let built = run(&workspace, "build wd --generator canned:canned.json --json")
        .ok()
        .json();
    assert_eq!(built["status"], "PARTIAL");
    for format in ["text", "md", "html"] {
        let shown = run(&workspace, &format!("show wd --format {format}"))
            .ok()
            .stdout;
        assert!(
            shown.contains("could not be summarised"),
            "{format}: {shown}"
        );
    }
}
