//! What a user does from the first command on, and the formats that scripts rely on.

use std::process::Command;

use serde_json::Value;

use crate::support::{
    CASE, FACTUM, LETTERS, Workspace, assert_format, assert_keys, claims, many, strings,
};

const CORRECTED: &str =
    "The insurer received the claim on 6 March 2026. An expert will visit the house next week.\n";

/// Number of documents by their order in `status`.
fn order(workspace: &Workspace) -> Vec<String> {
    let status = workspace.factum("status wd --json").ok().json();
    status["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|document| document["doc_id"].as_str().unwrap().to_owned())
        .collect()
}

fn counts(build: &Value) -> (u64, u64, u64) {
    let count = |name: &str| build["counts"][name].as_u64().unwrap();
    (count("nodes"), count("recomputed"), count("reused"))
}

/// The kinds of the events after `event`, in order.
fn kinds_after(workspace: &Workspace, event: u64) -> Vec<String> {
    let history = workspace.factum("history wd --json").ok().json();
    history["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["number"].as_u64().unwrap() > event)
        .map(|line| {
            let event = line["event"].as_object().unwrap();
            let kind = [
                "published",
                "withdrawn",
                "reinstated",
                "moved",
                "granted",
                "revoked",
            ]
            .into_iter()
            .find(|kind| {
                Value::Object(event.clone())
                    .to_string()
                    .contains(&format!("\"{kind}\""))
            });
            kind.unwrap_or_else(|| panic!("{line}")).to_owned()
        })
        .collect()
}

#[test]
fn a_changed_document_makes_the_summary_refused_until_it_is_built_again() {
    let workspace = Workspace::new();
    workspace.factum("case new wd --title Water").ok();
    for (name, text) in LETTERS {
        workspace.write(name, text);
    }
    let sync = workspace.sync();
    assert_eq!(sync["published"].as_array().unwrap().len(), 3);
    assert_eq!(sync["event"], 3);

    // Never built: absent, and nothing to read.
    let absent = workspace.factum("show wd --json").exits(4).json();
    assert_eq!(absent["status"], "ABSENT");
    assert_eq!(workspace.factum("show wd").exits(4).stdout, "");

    // Three leaves and the root.
    let first = workspace.build();
    assert_eq!(counts(&first), (4, 4, 0));
    assert_eq!(first["status"], "VALID");
    let summary = workspace.show();
    assert_eq!(summary["status"], "CURRENT");
    assert_eq!(claims(&summary).len(), 6);
    let old = "The insurer received the claim on 5 March 2026.";
    assert!(claims(&summary).iter().any(|claim| claim == old));

    workspace.write("b.txt", CORRECTED);
    workspace.sync();
    for line in [
        "show wd",
        "show wd --json",
        "show wd --format md",
        "show wd --format html",
        "ledger wd",
    ] {
        let refused = workspace.factum(line).exits(4);
        assert!(
            !refused.everything().contains("The insurer"),
            "{refused:#?}"
        );
        assert!(
            refused.stderr.contains("b.txt has version 2 (event 4)"),
            "{refused:#?}"
        );
    }
    let refusal = workspace.factum("show wd --json").exits(4).json();
    assert_eq!(refusal["status"], "STALE");
    assert_eq!(refusal["reasons"][0]["event"], 4);
    assert_eq!(refusal["reasons"][0]["doc_id"], "b.txt");
    assert!(refusal.get("claims").is_none());

    let why = workspace.factum("why wd --json").ok().json();
    assert_eq!(why["status"], "STALE");
    assert_eq!(why["reasons"], refusal["reasons"]);
    assert_eq!(why["nodes"].as_array().unwrap().len(), 2);

    // The leaf and the root; the other two leaves are as they were.
    let second = workspace.build();
    assert_eq!(counts(&second), (4, 2, 2));
    let invalidation = &second["invalidation"];
    assert_eq!(invalidation["node_count"], 2);
    assert_eq!(invalidation["nodes"].as_array().unwrap().len(), 2);
    assert_eq!(invalidation["previous_root_key"], first["root"]);
    assert_eq!(invalidation["current_root_key"], second["root"]);
    assert_eq!(invalidation["previous_status"], "VALID");
    assert_eq!(invalidation["serve_refusal"]["status"], "STALE");
    assert_eq!(invalidation["serve_refusal"]["reasons"], refusal["reasons"]);

    let diff = workspace.factum("diff wd --json").ok().json();
    assert_eq!(diff["from"], first["run_id"]);
    assert_eq!(diff["to"], second["run_id"]);
    assert_eq!(diff["changed"].as_array().unwrap().len(), 1);
    assert_eq!(diff["changed"][0]["before"], old);
    assert_eq!(
        diff["changed"][0]["after"],
        "The insurer received the claim on 6 March 2026."
    );
    assert_eq!(diff["changed"][0]["cause"]["event"], 4);
    assert_eq!(diff["unchanged"], 5);

    let full = workspace.factum("build wd --full --json").ok().json();
    assert_eq!(counts(&full), (4, 4, 0));
    assert_eq!(full["root"], second["root"]);
    let runs = format!(
        "compare {} {} --json",
        second["run_id"].as_str().unwrap(),
        full["run_id"].as_str().unwrap()
    );
    let comparison = workspace.factum(&runs).ok().json();
    assert_eq!(comparison["equal"], true);
    assert_eq!(comparison["nodes_compared"], 4);
    let verified = workspace.factum("verify --json").ok().json();
    assert_eq!(verified["verdict"], "clean");
    assert_eq!(verified["events"], 4);
}

#[test]
fn the_summary_and_its_refusal_read_like_this() {
    let workspace = Workspace::built();
    insta::assert_snapshot!(workspace.factum("show wd").ok().stdout, @r"
    wd (wd), for local
    CURRENT at event 3 · 6 claims citing 3 documents

      1. The hose under the sink burst on 3 March 2026. [1]
      2. The kitchen floor was soaked through by the evening. [2]
      3. The insurer received the claim on 5 March 2026. [3]
      4. An expert will visit the house next week. [4]
      5. The repair costs 4,200 euros including the floor. [5]
      6. The plumber starts on 9 April 2026. [6]

    Cited passages
      [1] a.txt v1, line 1: “The hose under the sink burst on 3 March 2026.”
      [2] a.txt v1, line 1: “The kitchen floor was soaked through by the evening.”
      [3] b.txt v1, line 1: “The insurer received the claim on 5 March 2026.”
      [4] b.txt v1, line 1: “An expert will visit the house next week.”
      [5] c.txt v1, line 1: “The repair costs 4,200 euros including the floor.”
      [6] c.txt v1, line 1: “The plumber starts on 9 April 2026.”
    ");
    workspace.write("b.txt", CORRECTED);
    workspace.sync();
    workspace.factum("withdraw wd c.txt").ok();
    insta::assert_snapshot!(workspace.factum("show wd").exits(4).stderr, @r"
    The summary is STALE and is not shown.
      - b.txt has version 2 (event 4)
      - c.txt was withdrawn (event 5)
    hint: factum build wd
    ");
}

#[test]
fn an_unchanged_file_makes_no_event() {
    let workspace = Workspace::built();
    let sync = workspace.unchanged(|| workspace.sync());
    assert_eq!(sync["unchanged"], 3);
    assert_eq!(sync["published"].as_array().unwrap().len(), 0);
    let again = workspace.unchanged(|| workspace.factum("add wd in/b.txt --json").ok().json());
    assert_eq!(again["documents"][0]["what"], "unchanged");
    assert_eq!(again["documents"][0]["events"].as_array().unwrap().len(), 0);
    workspace.show();
}

#[test]
fn withdrawing_and_reinstating_are_events_that_each_ask_for_a_build() {
    let workspace = Workspace::built();
    let change = workspace.factum("withdraw wd b.txt --json").ok().json();
    assert_eq!(change["events"], serde_json::json!([4]));
    assert_eq!(
        workspace.unchanged(|| workspace.factum("withdraw wd b.txt --json").ok().json())["events"],
        serde_json::json!([])
    );
    let refusal = workspace.factum("show wd --json").exits(4).json();
    assert_eq!(refusal["reasons"][0]["kind"], "withdrawn");
    let build = workspace.build();
    assert_eq!(counts(&build), (4, 2, 2));
    assert_eq!(claims(&workspace.show()).len(), 4);

    workspace.factum("reinstate wd b.txt").ok();
    workspace.unchanged(|| workspace.factum("reinstate wd b.txt").ok());
    let refusal = workspace.factum("show wd --json").exits(4).json();
    assert_eq!(refusal["reasons"][0]["kind"], "reinstated");
    // The tree is that of the first build again, so nothing at all is made.
    let build = workspace.build();
    assert_eq!(counts(&build), (4, 0, 4));
    assert_eq!(claims(&workspace.show()).len(), 6);
    workspace.factum("verify wd").ok();
}

#[test]
fn a_removed_file_is_withdrawn_and_one_that_comes_back_is_reinstated() {
    let workspace = Workspace::built();
    workspace.remove("b.txt");
    let sync = workspace.sync();
    assert_eq!(sync["withdrawn"], serde_json::json!(["b.txt"]));
    assert_eq!(kinds_after(&workspace, 3), ["withdrawn"]);
    workspace.unchanged(|| workspace.sync());

    workspace.write("b.txt", LETTERS[1].1);
    let sync = workspace.sync();
    assert_eq!(sync["published"][0]["reinstated"], true);
    assert_eq!(sync["published"][0]["version"], 1);
    assert_eq!(kinds_after(&workspace, 4), ["reinstated"]);
    // It is what was built.
    workspace.show();

    workspace.remove("b.txt");
    workspace.sync();
    workspace.write("b.txt", CORRECTED);
    let sync = workspace.sync();
    assert_eq!(sync["published"][0]["version"], 2);
    assert_eq!(sync["published"][0]["reinstated"], true);
    assert_eq!(kinds_after(&workspace, 6), ["published", "reinstated"]);
    workspace.build();
    assert!(
        claims(&workspace.show())
            .iter()
            .any(|claim| claim.contains("6 March"))
    );
    workspace.factum("verify").ok();
}

#[test]
fn documents_stand_in_the_order_of_their_names_or_of_the_list() {
    let workspace = Workspace::with(&LETTERS);
    assert_eq!(order(&workspace), ["a.txt", "b.txt", "c.txt"]);
    workspace.write("aa.txt", "The neighbour heard water running at night.\n");
    workspace.write("folder/z.txt", "The caretaker closed the valve at once.\n");
    let sync = workspace.sync();
    assert_eq!(
        order(&workspace),
        ["a.txt", "aa.txt", "b.txt", "c.txt", "folder/z.txt"]
    );
    // An inserted document moves no other.
    assert_eq!(sync["moved"], serde_json::json!([]));
    assert_eq!(kinds_after(&workspace, 3), ["published", "published"]);
    workspace.build();

    // Listed ones first, the others by name; as few as possible move. A listed file may be absent.
    workspace.write(
        "factum.toml",
        "documents = [\"c.txt\", \"gone.txt\", \"a.txt\"]\n",
    );
    let sync = workspace.sync();
    assert_eq!(
        order(&workspace),
        ["c.txt", "a.txt", "aa.txt", "b.txt", "folder/z.txt"]
    );
    assert_eq!(sync["moved"], serde_json::json!(["c.txt"]));
    assert_eq!(kinds_after(&workspace, 5), ["moved"]);
    workspace.unchanged(|| workspace.sync());

    let refusal = workspace.factum("show wd --json").exits(4).json();
    assert_eq!(refusal["reasons"][0]["kind"], "moved");
    workspace.build();
    assert!(claims(&workspace.show())[0].starts_with("The repair costs"));
    workspace.factum("verify").ok();
}

#[test]
fn a_list_of_documents_that_can_not_be_used_says_why() {
    let workspace = Workspace::built();
    for (list, says) in [
        ("documents = [\"a.txt\", \"a.txt\"]\n", "listed twice"),
        ("dokuments = [\"a.txt\"]\n", "dokuments"),
        ("documents = 3\n", "factum.toml"),
        ("documents = [\"../a.txt\"]\n", "../a.txt"),
    ] {
        workspace.write("factum.toml", list);
        workspace.unchanged(|| workspace.factum("sync wd in").fails(3, says));
    }
}

#[test]
fn added_files_are_named_placed_and_versioned_as_asked() {
    let workspace = Workspace::built();
    workspace.write(
        "other/note.md",
        "# Note\n\nThe tenant moved to a hotel for two nights.\n",
    );
    let added = workspace
        .factum("add wd in/other/note.md --as-doc letters/note.md --after a.txt --json")
        .ok()
        .json();
    assert_eq!(added["documents"][0]["doc_id"], "letters/note.md");
    assert_eq!(added["documents"][0]["what"], "new");
    assert_eq!(
        order(&workspace),
        ["a.txt", "letters/note.md", "b.txt", "c.txt"]
    );
    // The same name is the same document, whatever the file is called.
    workspace.write("other/b2.txt", CORRECTED);
    let added = workspace
        .factum("add wd in/other/b2.txt --as-doc b.txt --json")
        .ok()
        .json();
    assert_eq!(added["documents"][0]["what"], "new_version");
    assert_eq!(added["documents"][0]["version"], 2);
    assert_eq!(order(&workspace).len(), 4);
    // Without a name, the file's own.
    workspace
        .factum("add wd in/other/note.md in/other/b2.txt")
        .ok();
    assert_eq!(order(&workspace)[4..], ["note.md", "b2.txt"]);
    workspace.build();
    workspace.factum("verify").ok();
}

#[test]
fn what_was_current_then_is_labelled_as_history() {
    let workspace = Workspace::built();
    workspace.write("b.txt", CORRECTED);
    workspace.sync();
    // Event 3 was built in time; event 4 is not built yet; at event 2 nothing was built.
    let then = workspace.factum("show wd --as-of 3 --json").ok().json();
    assert_eq!(then["status"], "HISTORY");
    assert_eq!(then["as_of_event"], 3);
    assert!(claims(&then).iter().any(|claim| claim.contains("5 March")));
    for format in ["text", "md", "html"] {
        let page = workspace
            .factum(&format!("show wd --as-of 3 --format {format}"))
            .ok()
            .stdout;
        assert!(
            page.contains(if format == "html" {
                "History: what was"
            } else {
                "HISTORY: what was"
            }),
            "{page}"
        );
        assert!(!page.contains("CURRENT"), "{page}");
    }
    let stale = workspace.factum("show wd --as-of 4").exits(4);
    assert!(
        stale
            .stderr
            .contains("no current summary at event 4 (STALE)"),
        "{stale:#?}"
    );
    assert!(!stale.stderr.contains("factum build"), "{stale:#?}");
    let stale = workspace.factum("show wd --as-of 4 --json").exits(4).json();
    assert_eq!(stale["status"], "STALE");
    assert!(stale.get("claims").is_none());
    for event in [0, 2] {
        let absent = workspace
            .factum(&format!("show wd --as-of {event} --json"))
            .exits(4)
            .json();
        assert_eq!(absent["status"], "ABSENT");
    }
    let build = workspace.build();
    assert_eq!(build["event"], 4);
    let now = workspace.factum("show wd --as-of 4 --json").ok().json();
    assert_eq!(now["status"], "HISTORY");
    assert!(claims(&now).iter().any(|claim| claim.contains("6 March")));
    let then = workspace.factum("show wd --as-of 3 --json").ok().json();
    assert!(claims(&then).iter().any(|claim| claim.contains("5 March")));

    // By date and by time.
    let built_at = workspace.show()["built_at"].as_str().unwrap().to_owned();
    for moment in [&built_at[..10], "2999-01-01", "2999-01-01T00:00:00Z"] {
        let found = workspace
            .factum(&format!("show wd --as-of {moment} --json"))
            .ok()
            .json();
        assert_eq!(found["status"], "HISTORY", "{moment}");
        assert_eq!(found["as_of_event"], 4, "{moment}");
    }
    for (moment, says) in [
        ("2001-01-01", "did not exist"),
        ("99", "there is no event 99 yet"),
        ("yesterday", "yesterday"),
        ("2026-02-30", "2026-02-30"),
    ] {
        workspace
            .factum(&format!("show wd --as-of {moment}"))
            .fails(3, says);
    }
}

#[test]
fn a_case_file_with_nothing_eligible_is_served_without_claims() {
    let workspace = Workspace::new();
    workspace.factum("case new wd").ok();
    workspace.build();
    let empty = workspace.show();
    assert_eq!(empty["status"], "CURRENT");
    assert_eq!(claims(&empty).len(), 0);
    assert!(
        workspace
            .factum("show wd")
            .ok()
            .stdout
            .contains("No document has anything to say")
    );
    assert_eq!(
        workspace.factum("ledger wd --json").ok().json()["facts"],
        serde_json::json!([])
    );
    workspace.factum("verify").ok();

    for (name, text) in LETTERS {
        workspace.write(name, text);
    }
    workspace.sync();
    workspace.factum("show wd").exits(4);
    workspace.build();
    for (name, _) in LETTERS {
        workspace.factum(&format!("withdraw wd {name}")).ok();
    }
    workspace.build();
    assert_eq!(claims(&workspace.show()).len(), 0);
    workspace.factum("verify").ok();
}

#[test]
fn the_ledger_shows_contradictions_while_both_documents_count() {
    let workspace = Workspace::with_profile(
        "facts",
        &[
            (
                "letter.txt",
                "Date of loss: 3 March 2026\nClaim number: WD-7\n",
            ),
            ("statement.txt", "Date of loss: 1 March 2026\n"),
            (
                "report.txt",
                "Date of loss: 3 March 2026\nClaim number: WD-7\n",
            ),
        ],
    );
    workspace.build();
    let ledger = workspace.factum("ledger wd --json").ok().json();
    assert_format(&ledger, "factum/ledger/1", "facts contradictions evidence");
    let contradictions = ledger["contradictions"].as_array().unwrap();
    assert_eq!(contradictions.len(), 1);
    assert_eq!(contradictions[0]["field"], "Date of loss");
    assert_eq!(contradictions[0]["values"].as_array().unwrap().len(), 2);
    // The same fact from two documents is one fact that cites both.
    let facts = ledger["facts"].as_array().unwrap();
    let number = facts
        .iter()
        .find(|fact| fact["fields"]["field"] == "Claim number")
        .unwrap();
    assert_eq!(number["evidence"].as_array().unwrap().len(), 2);
    assert_eq!(facts.len(), 3);
    assert!(
        workspace
            .factum("ledger wd")
            .ok()
            .stdout
            .contains("CONTRADICTION Date of loss")
    );

    workspace.factum("withdraw wd statement.txt").ok();
    workspace.factum("ledger wd").exits(4);
    workspace.build();
    let ledger = workspace.factum("ledger wd --json").ok().json();
    assert_eq!(ledger["contradictions"], serde_json::json!([]));
    assert_eq!(ledger["facts"].as_array().unwrap().len(), 2);
}

/// Every command in an order that works, with its format and keys.
const FORMATS: [(&str, &str, &str); 26] = [
    ("init", "init", "folder"),
    ("status", "cases", "cases"),
    ("case new wd --title Water", "case", "case_id title profile"),
    (
        "sync wd in",
        "sync",
        "case_id published unchanged withdrawn moved refused event",
    ),
    ("add wd in/a.txt", "add", "case_id documents"),
    (
        "build wd",
        "build",
        "run_id status root counts invalidation seconds event",
    ),
    (
        "show wd",
        "summary",
        "case_id principal event status root claims evidence withheld",
    ),
    ("ledger wd", "ledger", "facts contradictions"),
    (
        "status wd",
        "status",
        "case_id summary event documents reasons",
    ),
    ("why wd", "why", "status reasons nodes all_nodes"),
    ("history wd", "history", "events runs"),
    ("verify", "verify", "verdict runs nodes evidence findings"),
    ("verify wd", "verify", "verdict findings"),
    ("verify run-000001", "verify", "verdict findings"),
    (
        "withdraw wd c.txt",
        "change",
        "case_id doc_id change events",
    ),
    (
        "build wd --full",
        "build",
        "run_id status root counts invalidation seconds event",
    ),
    (
        "reinstate wd c.txt",
        "change",
        "case_id doc_id change events",
    ),
    (
        "grant wd a.txt b.txt --to broker",
        "change",
        "docs principal events",
    ),
    (
        "revoke wd a.txt --from broker",
        "change",
        "docs principal events",
    ),
    ("build wd", "build", "counts"),
    (
        "diff wd",
        "diff",
        "from to added removed changed moved unchanged",
    ),
    (
        "diff wd run-000001 run-000002",
        "diff",
        "from_event to_event",
    ),
    (
        "compare run-000001 run-000003",
        "compare",
        "equal differences nodes_compared",
    ),
    ("show wd --as-of 3", "summary", "as_of_event status claims"),
    (
        "export run run-000003",
        "run",
        "run_id case_id principal event profile full snapshot snapshot_sha256 root nodes generations \
         counts invalidation seconds",
    ),
    ("export texts wd", "texts", "versions"),
];

#[test]
fn every_command_prints_its_own_json_format() {
    let workspace = Workspace::bare();
    for (name, text) in LETTERS {
        workspace.write(name, text);
    }
    for (line, format, keys) in FORMATS {
        let value = workspace.factum(&format!("{line} --json")).ok().json();
        assert_format(&value, &format!("factum/{format}/1"), keys);
        if line.starts_with("export") {
            // Exports are JSON without being asked.
            assert_eq!(
                workspace.factum(line).ok().json()["format"],
                value["format"]
            );
        }
    }
    let different = workspace
        .factum("compare run-000001 run-000002 --json")
        .exits(1)
        .json();
    assert_format(
        &different,
        "factum/compare/1",
        "equal differences nodes_compared",
    );
    let refused = workspace.factum("withdraw wd c.txt").ok();
    assert!(refused.stdout.contains("withdrawn"));
    let refused = workspace.factum("show wd --json").exits(4).json();
    assert_format(&refused, "factum/summary/1", "status reasons");
}

#[test]
fn parts_of_the_formats_are_as_the_contract_says() {
    let workspace = Workspace::with(&LETTERS);
    workspace.write("d.txt", "The caretaker closed the valve at nine.\n");
    let published = &workspace.sync()["published"][0];
    assert_keys(published, "doc_id version what reinstated events warnings");
    let counts = &workspace.build()["counts"];
    assert_keys(
        counts,
        "nodes recomputed reused model_calls generations_reused new_tokens",
    );
    let summary = workspace.show();
    let claim = &summary["claims"][0];
    assert_keys(claim, "text fields evidence support");
    assert_eq!(claim["support"]["verdict"], "supported");
    let id = claim["evidence"][0].as_str().unwrap();
    let cited = &summary["evidence"][id];
    assert_keys(
        cited,
        "evidence_id doc_id version start end quote text_sha256",
    );
    let [version, start, end] = ["version", "start", "end"].map(|key| cited[key].as_u64().unwrap());
    assert_eq!(id, format!("a.txt@{version}:{start}:{end}"));
    assert_eq!(cited["evidence_id"], id);
    let run = workspace.factum("export run run-000001").ok().json();
    assert_keys(
        &run["nodes"][0],
        "name kind children spec key reused result",
    );
    assert_keys(&run["nodes"][0]["result"], "status claims evidence");
    assert_keys(
        &run["counts"],
        "nodes recomputed reused model_calls generations_reused new_tokens",
    );
    assert_keys(
        &run["invalidation"],
        "nodes previous_root_key current_root_key previous_status serve_refusal",
    );
    let slot = &run["snapshot"]["slots"][0];
    assert_keys(
        slot,
        "slot doc_id version text_sha256 active eligible access_revision",
    );
    let texts = workspace.factum("export texts wd").ok().json();
    assert_keys(&texts["versions"][0], "doc_id version text text_sha256");
}

#[test]
fn the_scale_experiment_measures_an_edit_and_an_insertion() {
    let workspace = Workspace::bare();
    let scale = workspace
        .factum("experiment scale --documents 3 --json")
        .ok()
        .json();
    assert_format(
        &scale,
        "factum/scale/1",
        "documents publish_seconds plan_seconds build_seconds edit insert text_bytes store_bytes",
    );
    for step in ["edit", "insert"] {
        assert_keys(
            &scale[step],
            "nodes_recomputed plan_seconds rebuild_seconds serve_p50_us serve_p99_us",
        );
    }
    // It needs no workspace, and leaves none.
    assert!(!workspace.at(".factum").exists());
}

#[test]
fn errors_are_json_documents_too() {
    let workspace = Workspace::built();
    for (line, code, kind) in [
        ("show nowhere --json", 3, "bad-input"),
        ("withdraw wd nothing.txt --json", 3, "bad-input"),
        ("withdraw wd a.txt --json --as broker", 7, "not-permitted"),
        ("export run run-000099 --json", 3, "bad-input"),
    ] {
        let failed = workspace.factum(line).exits(code);
        let value = failed.json();
        assert_format(&value, "factum/error/1", "error");
        assert_eq!(value["error"]["kind"], kind);
        let message = value["error"]["message"].as_str().unwrap();
        assert!(failed.stderr.contains(message), "{failed:#?}");
    }
    let forbidden = workspace
        .factum("show wd --json --as broker")
        .exits(7)
        .json();
    assert_format(&forbidden, "factum/summary/1", "status reasons");
    assert_eq!(forbidden["status"], "FORBIDDEN");
}

#[test]
fn the_workspace_is_searched_upwards() {
    let workspace = Workspace::built();
    std::fs::create_dir_all(workspace.at("in/deep/down")).unwrap();
    let from_below = |line: &str| {
        let script = format!("cd in/deep/down && exec {FACTUM} {line}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]);
        workspace.finish(shell)
    };
    let expected = workspace.factum("show wd").ok().stdout;
    assert_eq!(from_below("show wd").ok().stdout, expected);
    assert_eq!(workspace.factum("-C in/deep show wd").ok().stdout, expected);
    // A workspace of its own in the folder below is the nearer one.
    workspace.factum("-C in/deep init").ok();
    from_below("show wd").fails(3, "no case file");
    // What is hidden, the workspace itself among it, is no document.
    workspace.write(".hidden.txt", "Nobody reads this.\n");
    workspace.factum("sync wd .").ok();
    let status = workspace.factum("status wd").ok().stdout;
    assert!(
        status.contains("in/a.txt") && !status.contains("hidden"),
        "{status}"
    );
    assert!(!status.contains("factum.db"), "{status}");
}

#[test]
fn global_options_go_before_or_after_the_command() {
    let workspace = Workspace::built();
    workspace.factum("grant wd --to broker").ok();
    workspace.factum("build wd --as broker").ok();
    let expected = workspace
        .factum("show wd --json --as broker -C .")
        .ok()
        .stdout;
    for line in [
        "--json --as broker -C . show wd",
        "--json show wd --as broker",
        "-C . show --as broker wd --json",
        "--as=broker show --json wd",
    ] {
        assert_eq!(workspace.factum(line).ok().stdout, expected, "{line}");
    }
}

#[test]
fn messages_go_to_stderr_when_json_is_asked_for() {
    let workspace = Workspace::with(&LETTERS);
    workspace.write("empty.txt", "");
    let sync = workspace.factum("sync wd in --json").exits(3);
    assert_format(&sync.json(), "factum/sync/1", "refused");
    assert!(sync.stderr.contains("empty.txt"));
    let demo = workspace.factum("demo --json").ok();
    assert_format(&demo.json(), "factum/demo/1", "steps verified");
    assert!(
        demo.stderr.contains("verify") || demo.stderr.contains("Checked"),
        "{demo:#?}"
    );
}

#[test]
fn a_claim_and_its_title_are_text_and_never_markup() {
    let workspace = Workspace::new();
    workspace
        .run([
            "case",
            "new",
            "wd",
            "--title",
            "<script>alert(1)</script> & *stars*",
        ])
        .ok();
    workspace.write(
        "a.txt",
        "The <b>broken</b> hose & the [sink](http://x) cost *four* thousand \u{1b}[31meuros\u{7} in all.\n",
    );
    workspace.sync();
    workspace.build();
    let html = workspace.factum("show wd --format html").ok().stdout;
    assert!(
        !html.contains("<script>") && !html.contains("<b>"),
        "{html}"
    );
    assert!(html.contains("&lt;b&gt;broken&lt;/b&gt;"), "{html}");
    let md = workspace.factum("show wd --format md").ok().stdout;
    assert!(!md.contains("<b>") && !md.contains("[sink]("), "{md}");
    for format in ["text", "md", "html"] {
        let page = workspace
            .factum(&format!("show wd --format {format}"))
            .ok()
            .stdout;
        assert!(
            !page.contains('\u{1b}') && !page.contains('\u{7}'),
            "{page:?}"
        );
    }
}

#[test]
fn an_edit_in_a_larger_case_makes_one_path_again() {
    let documents = many(60);
    let workspace = Workspace::with(&documents);
    let first = workspace.build();
    let (nodes, made, _) = counts(&first);
    assert_eq!(nodes, made);
    workspace.write(
        "report-0031.txt",
        "Report number 31 was withdrawn by its writer. Nothing else is known.\n",
    );
    workspace.sync();
    let second = workspace.build();
    let (_, made, reused) = counts(&second);
    // The leaf, its group, and what is above it.
    assert_eq!(made + reused, nodes);
    assert!((3..=4).contains(&made), "{second:#}");
    assert_eq!(second["invalidation"]["node_count"], made);
    assert_eq!(strings(&second["invalidation"]["nodes"]).len() as u64, made);
    // An insertion moves boundaries near it at most.
    workspace.write(
        "report-0031-b.txt",
        "An annex to report 31 was found in the archive.\n",
    );
    workspace.sync();
    let third = workspace.build();
    let (nodes_now, made, _) = counts(&third);
    assert!(nodes_now.abs_diff(nodes) <= 3, "{third:#}");
    assert!(made <= 8, "{third:#}");
    let full = workspace.factum("build wd --full --json").ok().json();
    assert_eq!(full["root"], third["root"]);
    let line = format!(
        "compare {} {}",
        third["run_id"].as_str().unwrap(),
        full["run_id"].as_str().unwrap()
    );
    workspace.factum(&line).ok();
    workspace.factum("verify").ok();
}

#[test]
fn case_files_of_one_workspace_do_not_touch_each_other() {
    let workspace = Workspace::built();
    workspace.factum("case new other").ok();
    workspace.factum("sync other in").ok();
    workspace.factum("build other").ok();
    workspace.factum("withdraw other a.txt").ok();
    workspace.factum("show other").exits(4);
    assert_eq!(workspace.show()["status"], "CURRENT");
    // A run belongs to its case file.
    workspace.factum("diff wd run-000001 run-000002").exits(3);
    let cases = workspace.factum("status --json").ok().json();
    let list: Vec<(&str, &str)> = cases["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| {
            (
                case["case_id"].as_str().unwrap(),
                case["summary"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(list, [("other", "STALE"), (CASE, "CURRENT")]);
    workspace.factum("verify").ok();
}

#[test]
fn the_demo_tells_its_story_and_ends_well() {
    let workspace = Workspace::bare();
    let demo = workspace.factum("demo --keep kept").ok().stdout;
    for part in [
        "STALE",
        "was withdrawn",
        "access changed",
        "no difference",
        "equal",
    ] {
        assert!(demo.contains(part), "{part} is not in {demo}");
    }
    assert!(!demo.contains("must not be"), "{demo}");
    // It can be gone on with.
    workspace.factum("-C kept show WD-2291").ok();
    workspace.factum("-C kept verify").ok();
    workspace.factum("demo --keep kept").fails(3, "already");
}

#[test]
fn what_someone_withdrew_stays_withdrawn_though_its_file_is_there() {
    let workspace = Workspace::built();
    workspace.factum("withdraw wd a.txt").ok();
    let report = workspace.sync();
    assert_eq!(report["still_withdrawn"], serde_json::json!(["a.txt"]));
    assert_eq!(report["published"], serde_json::json!([]));
    // Nor does a new version bring it back, by either way.
    workspace.write("a.txt", "The hose under the bath burst on 4 March 2026.\n");
    workspace.sync();
    workspace.factum("add wd in/a.txt").ok();
    let status = workspace.factum("status wd --json").ok().json();
    assert_eq!(status["documents"][0]["state"], "withdrawn");
    workspace.factum("reinstate wd a.txt").ok();
    let status = workspace.factum("status wd --json").ok().json();
    assert_eq!(status["documents"][0]["state"], "current");
    assert_eq!(status["documents"][0]["version"], 2);
}

#[test]
fn a_document_added_by_hand_does_not_go_with_the_folder() {
    let workspace = Workspace::built();
    std::fs::write(
        workspace.at("memo.txt"),
        "The landlord asked for keys on 7 March 2026.\n",
    )
    .unwrap();
    workspace.factum("add wd memo.txt").ok();
    let report = workspace.sync();
    assert_eq!(report["withdrawn"], serde_json::json!([]));
    let status = workspace.factum("status wd --json").ok().json();
    assert!(
        status["documents"]
            .as_array()
            .unwrap()
            .iter()
            .any(|document| document["doc_id"] == "memo.txt" && document["state"] == "current")
    );
}

#[test]
fn output_that_can_not_be_written_is_an_error() {
    let workspace = Workspace::built();
    let factum = env!("CARGO_BIN_EXE_factum");
    let folder = workspace.at("");
    let line = format!(
        "cd {} && {factum} export texts wd > /dev/full",
        folder.display()
    );
    let ran = std::process::Command::new("sh")
        .arg("-c")
        .arg(line)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("can't be written"));
}
