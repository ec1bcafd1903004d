//! Questions against a server under the test's control, and without a model.

use std::time::Duration;

use factum_ask::budget::Limits;
use factum_ask::ledger::Status;
use factum_ask::run::{Answerer, Asking};
use factum_ask::{Answer, AnswerStanding, AskError, Beginning, Conversation};
use factum_casefile::Verdict;
use factum_model::Control;
use factum_model::chat::Unheard;
use serde_json::json;

use crate::room::{Room, case, doc, who};
use crate::server::{Asked, Reply, Server, both, call, cite, say, search};

pub(crate) const HOSE: &str = "The hose under the sink burst on 3 March 2026.";
pub(crate) const COST: &str = "The repair costs 4,200 euros including the floor.";

pub(crate) async fn flooded() -> Room {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", &format!("{HOSE}\n")).await;
    room.publish("wd", "b.txt", &format!("{COST}\n")).await;
    room
}

pub(crate) fn beginning(cases: &[&str], compact: bool) -> Beginning {
    Beginning {
        cases: cases.iter().map(|name| case(name)).collect(),
        documents: Vec::new(),
        compact,
        title: "a question".to_owned(),
    }
}

pub(crate) async fn begin(room: &Room, principal: &str) -> Conversation {
    Conversation::begin(&room.workspace, &who(principal), beginning(&["wd"], true))
        .await
        .unwrap()
}

pub(crate) async fn ask_within(
    conversation: &mut Conversation,
    question: &str,
    answerer: &Answerer,
    limits: Limits,
) -> Result<Answer, AskError> {
    let control = Control::default();
    let asking = Asking {
        answerer,
        limits,
        control: &control,
        sink: &Unheard,
        embeddings: None,
    };
    if question.is_empty() {
        conversation.resume(&asking).await
    } else {
        conversation.ask(question, &asking).await
    }
}

pub(crate) async fn ask(
    conversation: &mut Conversation,
    question: &str,
    answerer: &Answerer,
) -> Answer {
    ask_within(conversation, question, answerer, Limits::default())
        .await
        .unwrap()
}

fn notices(server: &Server) -> usize {
    let notice = |asked: &Asked| {
        asked.last_role() == "user" && asked.last().starts_with("Before this answer")
    };
    server.asked().iter().filter(|asked| notice(asked)).count()
}

/// Searches, cites all that was found, and answers with the ids behind the sentence.
pub(crate) fn obedient(number: usize, asked: &Asked) -> Reply {
    match number % 3 {
        0 => search("hose burst repair costs"),
        1 => cite(&asked.ids()),
        _ => {
            // The newest citation of the hose's document.
            let mut ids = asked
                .text
                .split('[')
                .filter_map(|part| part.split(']').next());
            let id = ids
                .rfind(|id| id.starts_with("a.txt@"))
                .unwrap_or("nothing");
            say(&format!(
                "The hose burst on 3 March 2026 [{id}]. Nobody knows why."
            ))
        }
    }
}

#[tokio::test]
async fn an_obedient_model_s_answer_is_grounded_sentence_by_sentence() {
    let room = flooded().await;
    let server = Server::start(obedient).await;
    let mut conversation = begin(&room, "local").await;
    let answer = ask(
        &mut conversation,
        "When did the hose burst?",
        &server.answerer(),
    )
    .await;
    assert_eq!(answer.status, Status::Grounded);
    assert_eq!(answer.violations, Vec::<u64>::new());
    let hose = answer
        .refs
        .iter()
        .find(|one| one.doc_id == "a.txt")
        .unwrap();
    let number = hose.display;
    let expected = format!("The hose burst on 3 March 2026. [{number}] Nobody knows why.");
    assert_eq!(answer.text, expected);
    assert_eq!(answer.sentences.len(), 2);
    assert_eq!(answer.sentences[0].refs, [number]);
    assert_eq!(answer.sentences[0].support.verdict, Verdict::Supported);
    assert!(answer.sentences[1].refs.is_empty());
    assert_eq!(answer.sentences[1].support.verdict, Verdict::Unchecked);
    assert_eq!(hose.quote.as_deref(), Some(HOSE));
    assert_eq!(
        (
            answer.counts.requests,
            answer.counts.searches,
            answer.counts.notices
        ),
        (3, 1, 0)
    );
    let first = &server.asked()[0];
    assert_eq!(first.tools(), ["cite", "search", "read"]);
    assert!(
        !first.text.contains("4,200"),
        "nothing is shown that no search found"
    );
}

#[tokio::test]
async fn a_model_that_never_cites_is_asked_once_and_is_one_violation() {
    let room = flooded().await;
    let server = Server::start(|number, _| {
        if number == 0 {
            search("hose")
        } else {
            say("On 3 March.")
        }
    })
    .await;
    let mut conversation = begin(&room, "local").await;
    let answer = ask(&mut conversation, "When?", &server.answerer()).await;
    assert_eq!(answer.status, Status::Missing);
    assert_eq!(answer.violations, [answer.question_id]);
    assert_eq!((notices(&server), answer.counts.notices), (1, 1));
    assert_eq!(server.asked().len(), 3);
    assert_eq!(answer.text, "On 3 March.");
    // A second question is asked again, once.
    let second = ask(&mut conversation, "And where?", &server.answerer()).await;
    assert_eq!(
        second.violations,
        Vec::<u64>::from([answer.question_id]),
        "no search, nothing cited: nothing to declare"
    );
}

#[tokio::test]
async fn foreign_ids_are_refused_and_named_and_the_model_may_try_again() {
    let room = flooded().await;
    let foreign = vec!["nowhere.txt@1:0:4".to_owned(), "nonsense".to_owned()];
    let server = Server::start(move |number, asked| match number {
        0 => search("hose"),
        1 => cite(&foreign),
        2 => {
            assert!(
                asked.last().contains("nowhere.txt@1:0:4"),
                "{}",
                asked.last()
            );
            assert!(asked.last().contains("Nothing is noted"));
            // One good id among bad ones, with white space and brackets.
            let first = &asked.messages()[3]["content"].as_str().unwrap().to_owned();
            let id = first.split('[').nth(1).unwrap().split(']').next().unwrap();
            cite(&[format!(" [{id}] "), "nonsense".to_owned()])
        }
        3 => {
            assert!(
                asked.last().contains("rests on 1 passages") && asked.last().contains("nonsense")
            );
            say("On 3 March.")
        }
        _ => say("?"),
    })
    .await;
    let mut conversation = begin(&room, "local").await;
    let answer = ask(&mut conversation, "When?", &server.answerer()).await;
    assert_eq!(answer.status, Status::Grounded);
    assert_eq!((notices(&server), server.asked().len()), (0, 4));
}

#[tokio::test]
async fn only_foreign_ids_are_no_declaration() {
    let room = flooded().await;
    let server = Server::start(|number, _| match number {
        0 => search("hose"),
        1 => cite(&["nowhere.txt@1:0:4".to_owned()]),
        _ => say("On 3 March."),
    })
    .await;
    let mut conversation = begin(&room, "local").await;
    let answer = ask(&mut conversation, "When?", &server.answerer()).await;
    assert_eq!((answer.status, notices(&server)), (Status::Missing, 1));
    assert_eq!(answer.violations.len(), 1);
    assert_eq!(answer.refs, []);
}

#[tokio::test]
async fn a_search_after_the_citation_has_to_be_declared_anew() {
    let room = flooded().await;
    let server = Server::start(|number, asked| match number {
        0 => search("hose"),
        1 => cite(&asked.ids()),
        2 => search("repair"),
        3 => say("On 3 March, for 4,200 euros."),
        4 => {
            assert_eq!(asked.last_role(), "user");
            let all = asked
                .text
                .split('[')
                .filter_map(|part| part.split(']').next());
            let ids: Vec<String> = all
                .filter(|id| id.starts_with("b.txt@"))
                .map(str::to_owned)
                .collect();
            cite(&ids[..1])
        }
        _ => say(""),
    })
    .await;
    let mut conversation = begin(&room, "local").await;
    let answer = ask(&mut conversation, "When, and how much?", &server.answerer()).await;
    assert_eq!((answer.status, notices(&server)), (Status::Grounded, 1));
    // What was declared before the second search no longer counts.
    let docs: Vec<&str> = answer.refs.iter().map(|one| one.doc_id.as_str()).collect();
    assert_eq!(docs, ["b.txt"]);
    assert_eq!(
        answer.text, "On 3 March, for 4,200 euros. [2]",
        "the words said before the notice"
    );
    assert_eq!(answer.violations, Vec::<u64>::new());
}

#[tokio::test]
async fn an_answer_with_its_citation_in_one_response_needs_no_further_request() {
    let room = flooded().await;
    let server = Server::start(|number, asked| match number {
        0 => search("hose"),
        _ => both("On 3 March.", "cite", json!({"evidence_ids": asked.ids()})),
    })
    .await;
    let mut conversation = begin(&room, "local").await;
    let answer = ask(&mut conversation, "When?", &server.answerer()).await;
    assert_eq!((answer.status, server.asked().len()), (Status::Grounded, 2));
    assert!(answer.text.starts_with("On 3 March."));
}

#[tokio::test]
async fn unknown_tools_and_broken_arguments_are_refused_and_the_run_goes_on() {
    let room = flooded().await;
    let server = Server::start(|number, asked| match number {
        0 => call("delete_everything", json!({})),
        1 => call("search", json!("{\"query\": ")),
        2 => call("search", json!({"q": "hose"})),
        3 => {
            let told: Vec<_> = asked
                .messages()
                .iter()
                .filter(|m| m["role"] == "tool")
                .collect();
            assert!(
                told[0]["content"]
                    .as_str()
                    .unwrap()
                    .contains("no tool \"delete_everything\"")
            );
            assert!(
                told[1]["content"]
                    .as_str()
                    .unwrap()
                    .contains("can't be used")
            );
            // Ids are the record's own: no two calls share one, whatever the server says.
            assert_ne!(told[0]["tool_call_id"], told[1]["tool_call_id"]);
            say("I do not know.")
        }
        _ => say("I do not know."),
    })
    .await;
    let mut conversation = begin(&room, "local").await;
    let answer = ask(&mut conversation, "When?", &server.answerer()).await;
    // No evidence came, and nothing was cited: there is nothing to declare.
    assert_eq!((answer.status, notices(&server)), (Status::Missing, 0));
    assert_eq!(answer.counts.refused_calls, 3);
    assert_eq!(answer.violations, Vec::<u64>::new());
}

#[tokio::test]
async fn a_server_that_fails_leaves_the_conversation_as_it_was() {
    let room = flooded().await;
    let faults = [
        Reply::Stream("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"On\"}}]}\n\ndata: garbage\n\n".to_owned()),
        Reply::Stream("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"On\"}}]}\n\n".to_owned()),
        Reply::Status(429, "{\"error\":{\"message\":\"slow down\"}}".to_owned()),
        Reply::Status(500, "oops".to_owned()),
        Reply::Status(200, "{\"choices\": 7}".to_owned()),
        Reply::Hang,
    ];
    let mut conversation = begin(&room, "local").await;
    let good = Server::start(obedient).await;
    ask(
        &mut conversation,
        "When did the hose burst?",
        &good.answerer(),
    )
    .await;
    let before = (
        conversation.history().clone(),
        conversation.ledger().clone(),
    );
    for fault in faults {
        // The fault comes after a search, in the middle of the question.
        let last = fault.clone();
        let server = Server::start(move |number, _| {
            if number == 0 {
                search("repair")
            } else {
                last.clone()
            }
        })
        .await;
        let error = ask_within(
            &mut conversation,
            "And how much?",
            &server.answerer(),
            Limits::default(),
        )
        .await
        .unwrap_err();
        assert!(matches!(error, AskError::Model(_)), "{fault:?}: {error}");
        assert!(error.hint().is_some());
        assert_eq!(
            (
                conversation.history().clone(),
                conversation.ledger().clone()
            ),
            before,
            "{fault:?}"
        );
        let id = conversation.id().to_owned();
        let opened = Conversation::open(&room.workspace, &who("local"), &id)
            .await
            .unwrap();
        assert_eq!(
            (opened.history(), opened.ledger(), opened.pending()),
            (&before.0, &before.1, None)
        );
    }
    // The next prompt is a new question.
    let server = Server::start(obedient).await;
    let answer = ask(&mut conversation, "And how much?", &server.answerer()).await;
    assert_eq!(
        (answer.status, answer.question_id),
        (Status::Grounded, before.0.clock())
    );
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_nothing_is_done_twice() {
    let room = flooded().await;
    let server = Server::start(|number, asked| match number {
        0 => search("hose"),
        1 => Reply::Status(429, "{}".to_owned()),
        2 => Reply::Status(503, "{}".to_owned()),
        3 => cite(&asked.ids()),
        _ => say("On 3 March."),
    })
    .await;
    let mut conversation = begin(&room, "local").await;
    let answer = ask(&mut conversation, "When?", &server.answerer()).await;
    assert_eq!(
        (answer.status, answer.counts.retries, answer.counts.searches),
        (Status::Grounded, 2, 1)
    );
    assert_eq!(server.asked()[1].text, server.asked()[3].text);
}

#[tokio::test]
async fn after_the_limit_only_citing_is_offered_and_then_nothing() {
    let room = flooded().await;
    let server = Server::start(|_, _| search("hose")).await;
    let mut conversation = begin(&room, "local").await;
    let limits = Limits {
        requests: 2,
        ..Limits::default()
    };
    let answer = ask_within(&mut conversation, "When?", &server.answerer(), limits)
        .await
        .unwrap();
    let tools: Vec<usize> = server
        .asked()
        .iter()
        .map(|asked| asked.tools().len())
        .collect();
    assert_eq!(tools, [3, 3, 1, 1]);
    assert!(server.asked()[3].last().contains("No more calls"));
    assert_eq!(
        (answer.text.as_str(), answer.status, answer.counts.searches),
        ("", Status::Missing, 2)
    );
    assert_eq!(answer.violations.len(), 1);
}

#[tokio::test]
async fn a_killed_run_resumes_at_every_step() {
    for stop_at in 0..3 {
        let room = flooded().await;
        let mut conversation = begin(&room, "local").await;
        let id = conversation.id().to_owned();
        let server = Server::start(move |number, asked| {
            if number == stop_at {
                Reply::Hang
            } else {
                obedient(number, asked)
            }
        })
        .await;
        let answerer = server.answerer();
        let asking = ask_within(
            &mut conversation,
            "When did the hose burst?",
            &answerer,
            Limits::default(),
        );
        // Dropped in the middle, like a process that dies: nothing more is written.
        assert!(
            tokio::time::timeout(Duration::from_millis(700), asking)
                .await
                .is_err()
        );
        drop(conversation);
        let mut again = Conversation::open(&room.workspace, &who("local"), &id)
            .await
            .unwrap();
        assert_eq!(again.pending(), Some("When did the hose burst?"));
        let refused = ask_within(
            &mut again,
            "Something else?",
            &Answerer::Extractive,
            Limits::default(),
        )
        .await;
        assert!(matches!(refused, Err(AskError::Pending(_))));
        let rest = Server::start(move |number, asked| obedient(number + stop_at, asked)).await;
        let answer = ask(&mut again, "", &rest.answerer()).await;
        assert_eq!(
            (answer.status, answer.question_id),
            (Status::Grounded, 0),
            "{stop_at}"
        );
        assert_eq!(
            rest.asked().len(),
            3 - stop_at,
            "what was done is not done again"
        );
        assert_eq!(again.pending(), None);
        let settled = ask_within(&mut again, "", &answerer, Limits::default()).await;
        assert!(matches!(settled, Err(AskError::Settled(_))));
    }
}

#[tokio::test]
async fn an_interrupted_question_is_kept() {
    let room = flooded().await;
    let server = Server::start(|number, _| {
        if number == 0 {
            search("hose")
        } else {
            Reply::Hang
        }
    })
    .await;
    let mut conversation = begin(&room, "local").await;
    let control = Control::default();
    let cancel = control.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cancel.cancel();
    });
    let answerer = server.answerer();
    let asking = Asking {
        answerer: &answerer,
        limits: Limits::default(),
        control: &control,
        sink: &Unheard,
        embeddings: None,
    };
    let error = conversation.ask("When?", &asking).await.unwrap_err();
    assert!(matches!(error, AskError::Interrupted));
    let rest = Server::start(|number, asked| obedient(number + 1, asked)).await;
    let answer = ask(&mut conversation, "", &rest.answerer()).await;
    assert_eq!(answer.status, Status::Grounded);
}

#[tokio::test]
async fn two_writers_do_not_overwrite_each_other() {
    let room = flooded().await;
    let mut one = begin(&room, "local").await;
    let mut two = Conversation::open(&room.workspace, &who("local"), one.id())
        .await
        .unwrap();
    ask(&mut one, "When did the hose burst?", &Answerer::Extractive).await;
    let error = ask_within(
        &mut two,
        "What is the cost?",
        &Answerer::Extractive,
        Limits::default(),
    )
    .await;
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("another process changed")
    );
    let kept = Conversation::open(&room.workspace, &who("local"), one.id())
        .await
        .unwrap();
    assert_eq!(kept.history(), one.history());
}

#[tokio::test]
async fn quotes_answer_without_a_model_and_nothing_is_invented() {
    let room = flooded().await;
    let mut conversation = begin(&room, "local").await;
    let answer = ask(
        &mut conversation,
        "When did the hose burst?",
        &Answerer::Extractive,
    )
    .await;
    assert_eq!(answer.status, Status::Grounded);
    assert_eq!(answer.text, format!("{HOSE} [1]"));
    assert_eq!(answer.sentences[0].support.verdict, Verdict::Supported);
    assert_eq!(answer.refs[0].evidence_id.to_string(), "a.txt@1:0:46");
    assert_eq!(answer.counts.requests, 0);
    let nothing = ask(
        &mut conversation,
        "Which elephants were insured?",
        &Answerer::Extractive,
    )
    .await;
    assert_eq!(nothing.status, Status::Ungrounded);
    assert_eq!(nothing.text, factum_ask::extractive::NOTHING);
    assert_eq!((nothing.refs.len(), nothing.violations.len()), (0, 0));
}

#[tokio::test]
async fn two_case_files_that_hold_one_name_stay_apart() {
    let room = Room::new(&["one", "two"]).await;
    room.publish("one", "a.txt", "The hose burst on Monday.\n")
        .await;
    room.publish("two", "a.txt", "The hose burst on Friday.\n")
        .await;
    let server = Server::start(|number, asked| match number {
        0 => search("hose burst"),
        1 => {
            assert_eq!(asked.ids().len(), 2);
            let id = asked
                .ids()
                .into_iter()
                .find(|id| id.starts_with("two/"))
                .unwrap();
            cite(&[id])
        }
        _ => say("On Friday."),
    })
    .await;
    let mut conversation = Conversation::begin(
        &room.workspace,
        &who("local"),
        beginning(&["one", "two"], true),
    )
    .await
    .unwrap();
    let answer = ask(&mut conversation, "When?", &server.answerer()).await;
    assert_eq!(answer.status, Status::Grounded);
    assert_eq!(
        (answer.refs.len(), answer.refs[0].case_id.as_str()),
        (1, "two")
    );
    assert!(answer.refs[0].quote.as_deref().unwrap().contains("Friday"));
}

#[tokio::test]
async fn reading_around_a_passage_shows_its_neighbours() {
    let room = Room::new(&["wd"]).await;
    let text: Vec<String> = (0..9)
        .map(|n| format!("Paragraph {n} {}.", "speaks of water at length ".repeat(12)))
        .collect();
    room.publish("wd", "long.txt", &text.join("\n\n")).await;
    let server = Server::start(|number, asked| match number {
        0 => search("paragraph 4"),
        1 => call("read", json!({"evidence_id": asked.ids()[0]})),
        2 => {
            let shown = asked.last();
            for n in 2..=6 {
                assert!(shown.contains(&format!("Paragraph {n} ")), "{n}: {shown}");
            }
            assert!(!shown.contains("Paragraph 1 ") && !shown.contains("Paragraph 7 "));
            both("So it says.", "cite", json!({"evidence_ids": asked.ids()}))
        }
        _ => say("?"),
    })
    .await;
    let mut conversation = begin(&room, "local").await;
    let answer = ask(&mut conversation, "What of water?", &server.answerer()).await;
    assert_eq!((answer.status, answer.counts.reads), (Status::Grounded, 1));
}

#[tokio::test]
async fn a_conversation_is_its_principal_s_own() {
    let room = flooded().await;
    let mut conversation = begin(&room, "local").await;
    ask(
        &mut conversation,
        "When did the hose burst?",
        &Answerer::Extractive,
    )
    .await;
    let (workspace, wd) = (&room.workspace, case("wd"));
    workspace
        .grant(&room.owner, &wd, &[], &who("broker"))
        .await
        .unwrap();
    let refused = Conversation::open(workspace, &who("broker"), conversation.id()).await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("you have no conversation")
    );
    assert!(
        workspace
            .conversations(&who("broker"))
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        workspace
            .delete_conversation(&who("broker"), conversation.id())
            .await
            .is_err()
    );
    workspace
        .delete_conversation(&who("local"), conversation.id())
        .await
        .unwrap();
    assert!(
        workspace
            .conversations(&who("local"))
            .await
            .unwrap()
            .is_empty()
    );
    let _ = (doc("a.txt"), AnswerStanding::Current);
}
