//! Asking from the command line: one question, a conversation, and what was asked before.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::server::{Say, Server, call, words};
use crate::support::{CASE, FACTUM, LETTERS, Ran, Seeded, Workspace, assert_format, strings};

fn ask(workspace: &Workspace, question: &str) -> Ran {
    workspace.run(["ask", CASE, question, "--json"])
}

#[test]
fn a_question_is_answered_with_quotes_and_recorded() {
    let workspace = Workspace::with(&LETTERS);
    let answer = ask(&workspace, "When did the hose burst?").ok().json();
    assert_format(
        &answer,
        "factum/answer/1",
        "text sentences refs status violations retrieved searches counts seconds conversation_id",
    );
    assert_eq!(answer["status"], "grounded");
    assert_eq!(answer["violations"].as_array().unwrap().len(), 0);
    let first = &answer["refs"][0];
    assert_eq!(first["doc_id"], "a.txt");
    assert_eq!(first["evidence_id"], "a.txt@1:0:46");
    assert_eq!(
        first["quote"],
        "The hose under the sink burst on 3 March 2026."
    );
    assert_eq!(answer["sentences"][0]["support"]["verdict"], "supported");
    let text = workspace
        .run(["ask", CASE, "What does the repair cost?"])
        .ok()
        .stdout;
    assert!(
        text.contains("4,200 euros") && text.contains("GROUNDED") && text.contains("[1] c.txt"),
        "{text}"
    );
    let list = workspace.factum("conversation list --json").ok().json();
    assert_format(&list, "factum/conversations/1", "conversations");
    assert_eq!(list["conversations"].as_array().unwrap().len(), 2);
}

#[test]
fn an_embedder_that_is_not_there_is_refused_with_the_way_to_it_and_no_question_is_kept() {
    let workspace = Workspace::with(&LETTERS);
    let asked = |embedder: &str| {
        let line = [
            "ask",
            CASE,
            "When did the hose burst?",
            "--embeddings",
            embedder,
        ];
        let mut command = Command::new(FACTUM);
        command
            .args(line)
            .env("FACTUM_MODELS", workspace.at("models"));
        workspace.finish_within(10, command)
    };
    asked("magic").fails(3, "--embeddings");
    asked("openai:http://127.0.0.1:1/v1,m").fails(3, "--embeddings");
    let way = if cfg!(feature = "local") {
        "factum model pull all-minilm-l6-v2"
    } else {
        "--features local"
    };
    asked("local").fails(3, way);
    let list = workspace.factum("conversation list --json").ok().json();
    assert_eq!(list["conversations"].as_array().unwrap().len(), 0);
    // Off unless it is asked for.
    let answer = ask(&workspace, "When did the hose burst?").ok().json();
    assert!(answer.get("embeddings").is_none());
}

#[test]
fn where_nothing_is_found_nothing_is_invented_and_the_exit_code_is_0() {
    let workspace = Workspace::with(&LETTERS);
    let answer = ask(&workspace, "Which elephants were insured?").ok().json();
    assert_eq!(answer["status"], "ungrounded");
    assert_eq!(answer["refs"].as_array().unwrap().len(), 0);
    assert!(
        answer["text"]
            .as_str()
            .unwrap()
            .starts_with("Nothing in the documents")
    );
}

#[test]
fn a_conversation_goes_on_over_lines_and_is_shown_resumed_and_deleted() {
    let workspace = Workspace::with(&LETTERS);
    let mut command = Command::new(FACTUM);
    command
        .args(["ask", CASE, "--json"])
        .current_dir(workspace.path());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let questions = "When did the hose burst?\n\nWhat does the repair cost?\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(questions.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let talk: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_format(
        &talk,
        "factum/conversation/1",
        "conversation_id exchanges pending violations",
    );
    assert_eq!(talk["exchanges"].as_array().unwrap().len(), 2);
    // Numbers go on through the conversation.
    assert_eq!(talk["exchanges"][1]["refs"][0]["display"], 2);
    let id = talk["conversation_id"].as_str().unwrap();
    let more = workspace
        .run([
            "conversation",
            "resume",
            id,
            "When does the plumber start?",
            "--json",
        ])
        .ok()
        .json();
    assert_eq!(more["conversation_id"], id);
    assert!(more["text"].as_str().unwrap().contains("9 April 2026"));
    // Without a question there is an error, and a document that says so.
    let nothing = workspace.run(["ask", CASE, "--json"]).exits(2).json();
    assert_eq!(nothing["error"]["kind"], "usage");
    workspace
        .run(["ask", CASE, "hose?", "--doc", "misspelt.txt"])
        .fails(3, "misspelt.txt");
    // What it rests on changes, and goes.
    workspace.write("a.txt", "The hose under the sink burst on 4 March 2026.\n");
    workspace.remove("c.txt");
    workspace.sync();
    let show = workspace
        .run(["conversation", "show", id, "--json"])
        .ok()
        .json();
    let standings: Vec<&str> = show["exchanges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["standing"].as_str().unwrap())
        .collect();
    assert_eq!(standings, ["outdated", "withheld", "withheld"]);
    let text = workspace.run(["conversation", "show", id]).ok().stdout;
    assert!(
        text.contains("OUTDATED") && text.contains("WITHHELD"),
        "{text}"
    );
    assert!(
        !text.contains("4,200") && !text.contains("9 April"),
        "{text}"
    );
    workspace.run(["conversation", "delete", id]).ok();
    workspace
        .run(["conversation", "show", id])
        .fails(3, "you have no conversation");
}

#[test]
fn a_principal_asks_only_what_it_may_see() {
    let workspace = Workspace::with(&LETTERS);
    let question = [
        "ask",
        CASE,
        "When did the hose burst?",
        "--as",
        "broker",
        "--json",
    ];
    workspace.run(question).exits(7);
    workspace.factum("grant wd b.txt --to broker").ok();
    let answer = workspace.run(question).ok().json();
    assert_eq!(answer["status"], "ungrounded");
    workspace.factum("grant wd --to broker").ok();
    let answer = workspace.run(question).ok().json();
    assert_eq!(answer["status"], "grounded");
    let id = answer["conversation_id"].as_str().unwrap().to_owned();
    workspace.factum("revoke wd a.txt --from broker").ok();
    assert_eq!(workspace.run(question).ok().json()["status"], "ungrounded");
    let ran = workspace
        .run(["conversation", "show", &id, "--as", "broker"])
        .ok();
    assert!(
        ran.stdout.contains("WITHHELD") && !ran.stdout.contains("3 March"),
        "{ran:#?}"
    );
    // It is the broker's own conversation, and not the owner's.
    workspace
        .run(["conversation", "show", &id])
        .fails(3, "you have no conversation");
}

#[test]
fn bad_questions_and_generators_have_their_exit_codes_and_hints() {
    let workspace = Workspace::with(&LETTERS);
    workspace
        .run(["ask", CASE, "  "])
        .fails(3, "the question is empty");
    workspace
        .run(["ask", "nowhere", "Why?"])
        .fails(3, "no case file");
    workspace
        .run(["ask", CASE, "Why?", "--generator", "replay:x.json"])
        .fails(3, "answer no questions");
    // A server that is not there: nothing is kept of the question.
    let ran = workspace.run([
        "ask",
        CASE,
        "Why?",
        "--generator",
        "openai:http://127.0.0.1:9/v1,m",
        "--max-seconds",
        "2",
    ]);
    ran.fails(1, "no answer");
    let list = workspace.factum("conversation list --json").ok().json();
    assert_eq!(list["conversations"].as_array().unwrap().len(), 0);
}

#[test]
fn a_canned_model_holds_a_conversation() {
    let workspace = Workspace::with(&LETTERS);
    let outputs = serde_json::json!({"outputs": [
        {"contains": "Noted:", "text": "{\"action\":\"answer\",\"text\":\"It burst on 3 March 2026 [a.txt@1:0:46].\"}"},
        {"contains": "Result:", "text": "{\"action\":\"cite\",\"evidence_ids\":[\"a.txt@1:0:46\"]}"},
        {"contains": "", "text": "{\"action\":\"search\",\"query\":\"hose burst\"}"},
    ]});
    std::fs::write(workspace.at("canned.json"), outputs.to_string()).unwrap();
    let answer = workspace
        .run([
            "ask",
            CASE,
            "When?",
            "--generator",
            "canned:canned.json",
            "--json",
        ])
        .ok()
        .json();
    assert_eq!(answer["status"], "grounded");
    assert_eq!(answer["text"], "It burst on 3 March 2026. [1]");
    assert_eq!(answer["counts"]["requests"], 3);
    assert_eq!(strings(&answer["retrieved"]).len(), 1);
}

/// A model that searches, cites what it found and answers. What it does follows from what it is shown, so that it goes on
/// where it was.
fn diligent(_: usize, body: &Value) -> Say {
    let messages = body["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let said = last["content"].as_str().unwrap_or_default();
    match last["role"].as_str() {
        Some("tool") if said.contains("Noted") => words("It burst on 3 March 2026."),
        Some("tool") => call("cite", &json!({"evidence_ids": ["a.txt@1:0:46"]})),
        _ => call("search", &json!({"query": "hose burst"})),
    }
}

fn by(server: &Server, arguments: &[&str], workspace: &Workspace) -> Command {
    let mut command = Command::new(FACTUM);
    command
        .args(arguments)
        .args(["--json", "--generator"])
        .arg(format!("openai:{},tiny", server.url))
        .env("FACTUM_MODELS", workspace.at("models"))
        .current_dir(workspace.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn conversations(workspace: &Workspace) -> Vec<String> {
    let list = workspace.factum("conversation list --json").ok().json();
    let all = list["conversations"].as_array().unwrap();
    all.iter()
        .map(|one| one["conversation_id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_question_killed_before_any_answer_goes_on_and_asks_nothing_twice() {
    let whole = {
        let workspace = Workspace::with(&LETTERS);
        let server = Server::start(diligent);
        let ran = workspace.finish(by(&server, &["ask", CASE, "When?"], &workspace));
        let answer = ran.ok().json();
        assert_eq!(answer["status"], "grounded");
        assert_eq!(server.seen().len(), 3);
        answer
    };
    for held in 0..3 {
        let workspace = Workspace::with(&LETTERS);
        let server = Server::start(move |number, body| {
            if number == held {
                Say::Nothing
            } else {
                diligent(number, body)
            }
        });
        let mut child = by(&server, &["ask", CASE, "When?"], &workspace)
            .spawn()
            .unwrap();
        server.wait_for(held + 1);
        child.kill().unwrap();
        child.wait().unwrap();
        let ids = conversations(&workspace);
        assert_eq!(ids.len(), 1);
        let show = workspace
            .run(["conversation", "show", &ids[0], "--json"])
            .ok();
        assert_eq!(show.json()["pending"], "When?");
        // What was answering goes on, without being named again.
        let mut resume = Command::new(FACTUM);
        resume
            .args(["conversation", "resume", &ids[0], "--json"])
            .env("FACTUM_MODELS", workspace.at("models"));
        let ran = workspace.finish(resume).ok();
        let answer = ran.json();
        for field in [
            "text",
            "status",
            "refs",
            "violations",
            "sentences",
            "retrieved",
        ] {
            assert_eq!(
                answer[field], whole[field],
                "killed at request {held}: {field}"
            );
        }
        assert_eq!(
            server.seen().len(),
            4,
            "the one that was lost is asked again, and no other"
        );
        let show = workspace
            .run(["conversation", "show", &ids[0], "--json"])
            .ok();
        assert_eq!(show.json()["pending"], Value::Null);
    }
}

#[test]
fn a_question_killed_at_any_instant_goes_on_or_was_never_begun() {
    let workspace = Workspace::with(&LETTERS);
    let server = Server::start(diligent);
    let begun = std::time::Instant::now();
    let ran = workspace.finish(by(&server, &["ask", CASE, "When?"], &workspace));
    let text = ran.ok().json()["text"].clone();
    let whole = begun.elapsed();
    let mut random = Seeded(611);
    for round in 0..16_u32 {
        let permille = round * 62 + u32::try_from(random.below(62)).unwrap();
        let mut child = by(&server, &["ask", CASE, "When?"], &workspace)
            .spawn()
            .unwrap();
        std::thread::sleep(whole * permille / 1000);
        child.kill().unwrap();
        child.wait().unwrap();
        for id in conversations(&workspace) {
            let show = workspace
                .run(["conversation", "show", &id, "--json"])
                .ok()
                .json();
            if show["pending"].is_string() {
                let ran =
                    workspace.finish(by(&server, &["conversation", "resume", &id], &workspace));
                assert_eq!(
                    ran.ok().json()["text"],
                    text,
                    "killed at {permille} in 1000"
                );
            } else if let Some(answered) = show["exchanges"].as_array().unwrap().first() {
                assert_eq!(answered["text"], text);
            }
            workspace.run(["conversation", "delete", &id]).ok();
        }
    }
    workspace.run(["verify", CASE]).ok();
}

#[test]
fn a_question_that_a_living_process_answers_is_not_taken_over() {
    let workspace = Workspace::with(&LETTERS);
    let server = Server::start(|number, body| match number {
        1 => Say::Nothing,
        _ => diligent(number, body),
    });
    let mut child = by(&server, &["ask", CASE, "When?"], &workspace)
        .spawn()
        .unwrap();
    server.wait_for(2);
    let id = conversations(&workspace).remove(0);
    for line in [
        &["conversation", "resume", &id][..],
        &["conversation", "resume", &id, "Why?"],
        &["conversation", "delete", &id],
    ] {
        let ran = workspace.run(line).exits(1);
        assert!(
            ran.stderr.contains("another process is answering"),
            "{ran:#?}"
        );
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = workspace.finish(by(&server, &["conversation", "resume", &id], &workspace));
    assert_eq!(ran.ok().json()["status"], "grounded");
}

#[test]
fn a_deleted_conversation_leaves_no_word_and_its_id_is_not_given_again() {
    let workspace = Workspace::with(&LETTERS);
    ask(&workspace, "Was it a purplemonkeydishwasher?").ok();
    let held = |workspace: &Workspace| {
        let files = std::fs::read_dir(workspace.database().parent().unwrap()).unwrap();
        files
            .map(|file| std::fs::read(file.unwrap().path()).unwrap_or_default())
            .any(|bytes| bytes.windows(12).any(|part| part == b"purplemonkey"))
    };
    assert!(held(&workspace));
    workspace
        .run(["conversation", "delete", "conversation-000001"])
        .ok();
    assert!(!held(&workspace));
    let answer = ask(&workspace, "When did the hose burst?").ok().json();
    assert_eq!(answer["conversation_id"], "conversation-000002");
}

#[test]
fn a_line_that_is_no_text_is_named_and_the_other_questions_are_asked() {
    let workspace = Workspace::with(&LETTERS);
    let mut child = Command::new(FACTUM)
        .args(["ask", CASE])
        .current_dir(workspace.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = b"When did \xff\xfe it burst?\nWhat does the repair cost?\n";
    child.stdin.take().unwrap().write_all(lines).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("line 1 is not UTF-8"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("4,200 euros"));
}
