//! Documents that change, go or are hidden while a conversation is under way.

use factum_ask::budget::Limits;
use factum_ask::ledger::Status;
use factum_ask::message::WhyIgnored;
use factum_ask::run::Answerer;
use factum_ask::{ActionModel, AnswerStanding, AskError, Conversation};
use factum_model::canned::CannedGenerator;
use serde_json::json;
use std::sync::Arc;

use crate::asking::{COST, HOSE, ask, ask_within, begin, beginning, flooded, obedient};
use crate::room::{Room, case, doc, who};
use crate::server::{Server, cite, say, search};

const SECRET: &str = "The zinnober valve was opened on purpose by Ms Quillfeather.";

/// A broker who may see all of a case file with a secret in it.
async fn with_secret() -> Room {
    let room = flooded().await;
    room.publish("wd", "secret.txt", &format!("{SECRET}\n"))
        .await;
    room.workspace
        .grant(&room.owner, &case("wd"), &[], &who("broker"))
        .await
        .unwrap();
    room
}

fn words(text: &str) -> Vec<String> {
    // Words that only the secret has.
    text.split([' ', '.'])
        .filter(|word| ["zinnober", "valve", "Quillfeather", "purpose"].contains(word))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn a_revoked_document_s_words_are_in_no_request_after_the_revocation() {
    for compact in [true, false] {
        let room = with_secret().await;
        // The model repeats what it reads: in its answer, in a search, as a made-up tool, as an id.
        let server = Server::start(|number, asked| match number {
            0 => search("zinnober valve"),
            1 | 6 => cite(&asked.ids()),
            2 => crate::server::call("Quillfeather", json!({"zinnober": "valve"})),
            3 => cite(&["zinnober valve".to_owned()]),
            4 => say(SECRET),
            5 => search("hose"),
            _ => say("On 3 March."),
        })
        .await;
        let mut conversation =
            Conversation::begin(&room.workspace, &who("broker"), beginning(&["wd"], compact))
                .await
                .unwrap();
        let first = ask(&mut conversation, "Why did it happen?", &server.answerer()).await;
        assert_eq!(first.status, Status::Grounded);
        assert!(server.asked()[1].text.contains("zinnober"));
        let before = server.asked().len();
        room.workspace
            .revoke(
                &room.owner,
                &case("wd"),
                &[doc("secret.txt")],
                &who("broker"),
            )
            .await
            .unwrap();
        let second = ask(
            &mut conversation,
            "And when did the hose burst?",
            &server.answerer(),
        )
        .await;
        assert_eq!(second.status, Status::Grounded);
        let after = &server.asked()[before..];
        assert_eq!(after.len(), 3);
        for asked in after {
            assert_eq!(words(&asked.text), Vec::<String>::new(), "{}", asked.text);
            assert!(!asked.text.contains("secret.txt"), "{}", asked.text);
        }
        // Nor is the old answer shown again.
        let exchanges = conversation.exchanges().await.unwrap();
        assert_eq!(exchanges[0].standing, AnswerStanding::Withheld);
        let shown = serde_json::to_string(&exchanges).unwrap();
        assert_eq!(words(&shown), Vec::<String>::new(), "{shown}");
        assert!(!shown.contains("secret.txt"), "{shown}");
        assert_eq!(exchanges[1].standing, AnswerStanding::Current);
        // Granted again, it is.
        room.workspace
            .grant(
                &room.owner,
                &case("wd"),
                &[doc("secret.txt")],
                &who("broker"),
            )
            .await
            .unwrap();
        assert_eq!(
            conversation.exchanges().await.unwrap()[0].standing,
            AnswerStanding::Current
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_revocation_in_the_middle_of_a_question_holds_from_the_next_request() {
    let room = Arc::new(with_secret().await);
    let inner = Arc::clone(&room);
    let runtime = tokio::runtime::Handle::current();
    let server = Server::start(move |number, asked| match number {
        0 => search("opened hose"),
        1 => {
            assert!(asked.text.contains("zinnober"));
            let (room, runtime) = (Arc::clone(&inner), runtime.clone());
            let revoked = std::thread::spawn(move || {
                runtime.block_on(async {
                    let docs = [doc("secret.txt")];
                    let (owner, workspace) = (&room.owner, &room.workspace);
                    workspace
                        .revoke(owner, &case("wd"), &docs, &who("broker"))
                        .await
                })
            });
            revoked.join().unwrap().unwrap();
            // What was found is cited when it is hidden already.
            cite(
                &asked
                    .ids()
                    .into_iter()
                    .filter(|id| id.starts_with("secret"))
                    .collect::<Vec<_>>(),
            )
        }
        2 => {
            assert_eq!(words(&asked.text), Vec::<String>::new(), "{}", asked.text);
            assert!(
                asked.last().contains("Nothing is noted"),
                "{}",
                asked.last()
            );
            cite(&[])
        }
        _ => say("I can't say."),
    });
    let server = tokio::task::spawn(server).await.unwrap();
    let mut conversation = begin(&room, "broker").await;
    let limits = Limits::default();
    match ask_within(&mut conversation, "Why?", &server.answerer(), limits).await {
        Ok(answer) => assert_eq!(answer.status, Status::Ungrounded),
        // Where the response comes so late that the revocation is noticed first, there is none.
        Err(error) => assert!(matches!(error, AskError::Hidden), "{error}"),
    }
    for asked in server.asked().iter().skip(2) {
        assert_eq!(words(&asked.text), Vec::<String>::new(), "{}", asked.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_model_that_writes_while_its_document_is_hidden_is_stopped_and_nothing_is_kept() {
    for withdrawn in [false, true] {
        let room = with_secret().await;
        let server = Server::start(|number, _| match number {
            0 => search("zinnober valve"),
            _ => crate::server::Reply::Hang,
        })
        .await;
        let mut conversation = begin(&room, "broker").await;
        let hide = async {
            while server.asked().len() < 2 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            assert!(server.asked()[1].text.contains("zinnober"));
            let (workspace, owner, secret) = (&room.workspace, &room.owner, doc("secret.txt"));
            if withdrawn {
                workspace
                    .withdraw(owner, &case("wd"), &secret)
                    .await
                    .unwrap();
            } else {
                let docs = [secret];
                let broker = who("broker");
                workspace
                    .revoke(owner, &case("wd"), &docs, &broker)
                    .await
                    .unwrap();
            }
        };
        let answerer = server.answerer();
        let asked = ask_within(&mut conversation, "Why?", &answerer, Limits::default());
        let (outcome, ()) = tokio::join!(asked, hide);
        assert!(matches!(outcome, Err(AskError::Hidden)), "{outcome:?}");
        assert_eq!(conversation.history().clock(), 0);
        assert!(conversation.pending().is_none());
    }
}

#[tokio::test]
async fn an_answer_whose_citation_was_hidden_before_it_was_finished_is_not_given() {
    let room = with_secret().await;
    let owned = room.workspace.clone();
    let server = Server::start(|number, asked| match number {
        0 => search("opened hose"),
        1 => cite(&asked.ids()),
        _ => crate::server::Reply::Hang,
    })
    .await;
    let mut conversation = begin(&room, "broker").await;
    let id = conversation.id().to_owned();
    {
        // Killed while the model writes its answer.
        let answerer = server.answerer();
        let asked = ask_within(&mut conversation, "Why?", &answerer, Limits::default());
        let third = async {
            while server.asked().len() < 3 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            outcome = asked => panic!("{outcome:?}"),
            () = third => {}
        }
    }
    let docs = [doc("secret.txt")];
    owned
        .revoke(&room.owner, &case("wd"), &docs, &who("broker"))
        .await
        .unwrap();
    let server = Server::start(|_, _| say("It was opened.")).await;
    let mut conversation = Conversation::open(&owned, &who("broker"), &id)
        .await
        .unwrap();
    let outcome = ask_within(&mut conversation, "", &server.answerer(), Limits::default()).await;
    assert!(matches!(outcome, Err(AskError::Hidden)), "{outcome:?}");
    assert!(!server.asked()[0].text.contains("zinnober"));
    assert_eq!(conversation.history().clock(), 0);
}

#[tokio::test]
async fn an_answer_on_an_older_version_is_marked_and_its_citation_resolves_to_an_error() {
    let room = flooded().await;
    let mut conversation = begin(&room, "local").await;
    let server = Server::start(obedient).await;
    let first = ask(
        &mut conversation,
        "When did the hose burst?",
        &server.answerer(),
    )
    .await;
    let of_hose = |refs: &[factum_ask::answer::Cited]| {
        refs.iter().position(|one| one.doc_id == "a.txt").unwrap()
    };
    let old = first.refs[of_hose(&first.refs)].evidence_id.to_string();
    room.publish(
        "wd",
        "a.txt",
        "The hose under the sink burst on 4 March 2026.\n",
    )
    .await;
    let exchanges = conversation.exchanges().await.unwrap();
    assert_eq!(exchanges[0].standing, AnswerStanding::Outdated);
    let refs = &exchanges[0].answer.refs;
    let cited = &refs[of_hose(refs)];
    assert_eq!(cited.fault, Some(WhyIgnored::Stale));
    // As cited, it stays readable to one who may still see the document.
    assert_eq!(cited.quote.as_deref(), Some(HOSE));
    // The model is told neither the old words nor its own old answer, and can't cite the old id.
    let stale = old.clone();
    let server = Server::start(move |number, asked| {
        assert!(!asked.text.contains("3 March"), "{}", asked.text);
        match number {
            0 => cite(std::slice::from_ref(&stale)),
            1 => {
                assert!(asked.last().contains("older version"), "{}", asked.last());
                search("hose")
            }
            2 => cite(&asked.ids()),
            _ => say("On 4 March."),
        }
    })
    .await;
    let second = ask(&mut conversation, "When exactly?", &server.answerer()).await;
    assert_eq!(second.status, Status::Grounded);
    assert!(second.refs.iter().all(|one| one.fault.is_none()));
    assert!(second.refs.iter().any(|one| one.evidence_id.version == 2));
}

#[tokio::test]
async fn an_answer_on_a_withdrawn_document_is_withheld_from_everyone() {
    let room = flooded().await;
    let mut conversation = begin(&room, "local").await;
    ask(
        &mut conversation,
        "When did the hose burst?",
        &Answerer::Extractive,
    )
    .await;
    room.workspace
        .withdraw(&room.owner, &case("wd"), &doc("a.txt"))
        .await
        .unwrap();
    let exchanges = conversation.exchanges().await.unwrap();
    assert_eq!(exchanges[0].standing, AnswerStanding::Withheld);
    let shown = serde_json::to_string(&exchanges).unwrap();
    assert!(!shown.contains("a.txt"), "{shown}");
    assert!(!serde_json::to_string(&exchanges).unwrap().contains("sink"));
    let again = ask(
        &mut conversation,
        "When did the hose burst?",
        &Answerer::Extractive,
    )
    .await;
    assert_eq!(again.status, Status::Ungrounded);
}

#[tokio::test]
async fn one_who_may_see_nothing_any_more_can_ask_nothing_more() {
    let room = with_secret().await;
    let mut conversation = begin(&room, "broker").await;
    ask(
        &mut conversation,
        "When did the hose burst?",
        &Answerer::Extractive,
    )
    .await;
    room.workspace
        .revoke(&room.owner, &case("wd"), &[], &who("broker"))
        .await
        .unwrap();
    let error = ask_within(
        &mut conversation,
        "And the cost?",
        &Answerer::Extractive,
        factum_ask::budget::Limits::default(),
    )
    .await;
    assert!(error.unwrap_err().to_string().contains("may not see"));
    let exchanges = conversation.exchanges().await.unwrap();
    assert_eq!(exchanges[0].standing, AnswerStanding::Withheld);
    assert!(!serde_json::to_string(&exchanges).unwrap().contains("sink"));
}

/// Tokens as a quarter of the bytes: what matters is how the two compare.
fn tokens(server: &Server) -> Vec<usize> {
    server
        .asked()
        .iter()
        .map(|asked| asked.text.len() / 4)
        .collect()
}

#[tokio::test]
async fn thirty_questions_cost_less_with_compaction_and_lose_no_cited_passage() {
    let room = Room::new(&["wd"]).await;
    let files: Vec<(String, String)> = (0..240)
        .map(|n| {
            let text = format!(
                "Report {n} of topic{} was written in room {n}. {}\n",
                n % 30,
                "The water stood high and the walls were wet all over on that day. ".repeat(4)
            );
            (format!("{n:03}.txt"), text)
        })
        .collect();
    room.publish_all("wd", &files).await;
    let mut sums = Vec::new();
    for compact in [true, false] {
        let server = Server::start(|number, asked| match number % 3 {
            0 => search(&format!("topic{}", number / 3)),
            1 => cite(&asked.ids()[..2]),
            _ => say("So it was reported."),
        })
        .await;
        let mut conversation =
            Conversation::begin(&room.workspace, &who("local"), beginning(&["wd"], compact))
                .await
                .unwrap();
        let limits = factum_ask::budget::Limits {
            input_tokens: 4_000_000,
            total_tokens: 1 << 40,
            ..Default::default()
        };
        let mut cited = Vec::new();
        for n in 0..30 {
            let answer = ask_within(
                &mut conversation,
                &format!("What of topic {n}?"),
                &server.answerer(),
                limits,
            )
            .await
            .unwrap();
            assert_eq!((answer.status, answer.refs.len()), (Status::Grounded, 2));
            cited.extend(answer.refs);
        }
        let last = server.asked().pop().unwrap();
        let said: String = last
            .messages()
            .iter()
            .filter_map(|m| m["content"].as_str())
            .collect();
        for one in &cited {
            assert!(
                said.contains(one.quote.as_deref().unwrap()),
                "{} is lost",
                one.evidence_id
            );
        }
        let all = tokens(&server);
        println!(
            "compact {compact}: tokens per request, question 1: {:?}, 10: {:?}, 20: {:?}, 30: {:?}; all {}",
            &all[..3],
            &all[27..30],
            &all[57..60],
            &all[87..],
            all.iter().sum::<usize>()
        );
        sums.push((all.iter().sum::<usize>(), all[89]));
    }
    assert!(sums[0].0 * 2 < sums[1].0, "{sums:?}");
    assert!(sums[0].1 * 2 < sums[1].1, "{sums:?}");
}

#[tokio::test]
async fn a_model_that_writes_actions_searches_cites_and_answers() {
    let room = flooded().await;
    // What a small model in this process would write, turn by turn; a canned one is told turns apart by their words.
    let canned = json!({"outputs": [
        {"contains": "Noted:", "text": "{\"action\":\"answer\",\"text\":\"On 3 March 2026 [a.txt@1:0:46].\"}"},
        {"contains": "Result:", "text": "{\"action\":\"cite\",\"evidence_ids\":[\"a.txt@1:0:46\"]}"},
        {"contains": "", "text": "{\"action\":\"search\",\"query\":\"hose burst\"}"},
    ]});
    let generator = CannedGenerator::from_bytes(canned.to_string().as_bytes()).unwrap();
    let answerer = Answerer::Model {
        name: "canned".to_owned(),
        model: Arc::new(ActionModel::new(Arc::new(generator))),
    };
    let mut conversation = begin(&room, "local").await;
    let answer = ask(&mut conversation, "When did the hose burst?", &answerer).await;
    assert_eq!(answer.status, Status::Grounded);
    assert_eq!(answer.text, "On 3 March 2026. [1]");
    assert_eq!(answer.counts.requests, 3);
    assert!(COST.contains("4,200"));
}
