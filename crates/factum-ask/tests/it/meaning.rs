//! Search by meaning: rights before vectors and ranking, vectors that can't lag and are made once, faults that are seen.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;

use factum_ask::budget::Limits;
use factum_ask::{Answerer, Asking, Beginning, Conversation, Embeddings};
use factum_engine::retrieve::SearchIn;
use factum_engine::searching::{ByMeaning, FoundByMeaning, Order};
use factum_engine::{EngineError, Workspace};
use factum_model::Control;
use factum_model::chat::Unheard;

use crate::embedder::Concepts;
use crate::room::{Room, case, doc, who};

const QUESTION: &str = "which pipe broke?";

async fn find_in(
    workspace: &Workspace,
    principal: &str,
    cases: &[SearchIn],
    embedder: &Concepts,
    order: Order,
) -> Result<FoundByMeaning, EngineError> {
    let control = Control::default();
    let by = ByMeaning {
        embedder,
        control: &control,
        watch: &|_, _| {},
        order,
    };
    workspace
        .search_by_meaning(&who(principal), cases, QUESTION, 20, &by)
        .await
}

fn all_of(of: &str) -> [SearchIn; 1] {
    [SearchIn {
        case: case(of),
        documents: BTreeSet::new(),
    }]
}

async fn find(room: &Room, principal: &str, embedder: &Concepts) -> FoundByMeaning {
    find_in(
        &room.workspace,
        principal,
        &all_of("wd"),
        embedder,
        Order::Fused,
    )
    .await
    .unwrap()
}

fn quotes(found: &FoundByMeaning) -> Vec<&str> {
    let hits = found.hits.iter();
    hits.map(|hit| hit.evidence.quote.as_str()).collect()
}

/// What the embedder was given beside the question.
fn passages(embedder: &Concepts) -> Vec<String> {
    let mut given = embedder.given();
    given.retain(|text| text != QUESTION);
    given
}

fn python(room: &Room, program: &str) {
    let ran = Command::new("python3")
        .arg("-c")
        .arg(format!(
            "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\n{program}\ndb.commit()\n"
        ))
        .arg(room.folder.path().join(".factum/factum.db"))
        .status();
    assert!(ran.expect("this test needs python3").success());
}

/// A document of passages that stand apart, each about one room.
fn rooms(count: usize) -> String {
    let passage = |n: usize| {
        format!(
            "Room {n} was inspected on the morning after the storm, and the surveyor wrote down that its \
             northern wall number {n} was wet up to the window, while the floor had stayed dry.\n\n"
        )
    };
    (0..count).map(passage).collect()
}

#[tokio::test]
async fn meaning_finds_what_no_word_of_the_question_names() {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", "The hose cracked at night.\n")
        .await;
    room.publish("wd", "b.txt", "The meeting began on time.\n")
        .await;
    assert!(room.quotes("local", "wd", QUESTION).await.is_empty());
    let found = find(&room, "local", &Concepts::new(1)).await;
    assert_eq!(quotes(&found)[0], "The hose cracked at night.");
    assert_eq!(found.made, 2);
}

#[tokio::test]
async fn hidden_passages_influence_neither_the_order_nor_the_vectors_that_are_made() {
    let alone = Room::new(&["wd"]).await;
    let beside = Room::new(&["wd"]).await;
    let files: Vec<(String, String)> = (0..30)
        .map(|n| {
            let what = ["hose", "tube", "window", "pipe"][n % 4];
            let how = ["burst", "opened", "broke"][n % 3];
            (
                format!("{n:02}.txt"),
                format!("The {what} of flat {n} {how}.\n"),
            )
        })
        .collect();
    for n in 0..20 {
        let text = format!("Hidden: pipe {n} broke, pipe pipe broke.\n");
        beside
            .publish("wd", &format!("hidden-{n}.txt"), &text)
            .await;
    }
    for room in [&alone, &beside] {
        room.publish_all("wd", &files).await;
        let docs: Vec<_> = files.iter().map(|(name, _)| doc(name)).collect();
        room.workspace
            .grant(&room.owner, &case("wd"), &docs, &who("broker"))
            .await
            .unwrap();
    }
    for order in [Order::Fused, Order::Vectors] {
        let (one, other) = (Concepts::new(1), Concepts::new(1));
        let a = find_in(&alone.workspace, "broker", &all_of("wd"), &one, order).await;
        let b = find_in(&beside.workspace, "broker", &all_of("wd"), &other, order).await;
        assert_eq!(a.unwrap(), b.unwrap());
        let (given, given_beside) = (passages(&one), passages(&other));
        assert_eq!(given, given_beside);
        assert!(!given_beside.iter().any(|text| text.contains("Hidden")));
    }
}

#[tokio::test]
async fn a_hidden_document_that_had_a_text_first_does_not_decide_between_equals() {
    let alone = Room::new(&["wd"]).await;
    let beside = Room::new(&["wd"]).await;
    beside
        .publish("wd", "hidden.txt", "The pipe broke!\n")
        .await;
    for room in [&alone, &beside] {
        room.publish("wd", "a.txt", "The pipe broke.\n").await;
        room.publish("wd", "b.txt", "The pipe broke!\n").await;
        room.workspace
            .grant(
                &room.owner,
                &case("wd"),
                &[doc("a.txt"), doc("b.txt")],
                &who("broker"),
            )
            .await
            .unwrap();
    }
    let by_words = alone.quotes("broker", "wd", QUESTION).await;
    assert_eq!(by_words, ["The pipe broke.", "The pipe broke!"]);
    assert_eq!(beside.quotes("broker", "wd", QUESTION).await, by_words);
    let embedder = Concepts::new(1);
    let by_meaning = find(&alone, "broker", &embedder).await;
    assert_eq!(quotes(&by_meaning), by_words);
    assert_eq!(find(&beside, "broker", &embedder).await, by_meaning);
}

// Onyx: rights reach the search index 5 to 30 minutes later.
#[tokio::test]
async fn rights_versions_and_withdrawals_reach_the_next_search_by_meaning() {
    let room = Room::new(&["wd"]).await;
    let embedder = Concepts::new(1);
    room.publish("wd", "a.txt", "The hose cracked.\n").await;
    room.publish("wd", "b.txt", "A tube burst.\n").await;
    let (workspace, owner, wd) = (&room.workspace, &room.owner, case("wd"));
    let refused = find_in(workspace, "broker", &all_of("wd"), &embedder, Order::Fused).await;
    assert!(matches!(refused, Err(EngineError::Forbidden { .. })));
    assert!(
        embedder.given().is_empty(),
        "nothing is computed for a stranger"
    );
    workspace
        .grant(owner, &wd, &[], &who("broker"))
        .await
        .unwrap();
    assert_eq!(find(&room, "broker", &embedder).await.hits.len(), 2);
    workspace
        .revoke(owner, &wd, &[doc("a.txt")], &who("broker"))
        .await
        .unwrap();
    assert_eq!(
        quotes(&find(&room, "broker", &embedder).await),
        ["A tube burst."]
    );
    workspace.withdraw(owner, &wd, &doc("b.txt")).await.unwrap();
    assert!(find(&room, "broker", &embedder).await.hits.is_empty());
    workspace
        .reinstate(owner, &wd, &doc("b.txt"))
        .await
        .unwrap();
    room.publish("wd", "b.txt", "Another pipe broke.\n").await;
    assert_eq!(
        quotes(&find(&room, "broker", &embedder).await),
        ["Another pipe broke."]
    );
}

#[tokio::test]
async fn an_edit_makes_vectors_of_new_passages_only() {
    let room = Room::new(&["wd"]).await;
    let embedder = Concepts::new(1);
    room.publish("wd", "a.txt", &rooms(100)).await;
    let first = find(&room, "local", &embedder).await;
    assert_eq!(first.made, 100);
    assert_eq!(passages(&embedder).len(), 100);
    assert_eq!(find(&room, "local", &embedder).await.made, 0);
    let edited = rooms(100).replace("northern wall number 42 ", "hose by the northern wall ");
    room.publish("wd", "a.txt", &edited).await;
    embedder.given();
    let found = find(&room, "local", &embedder).await;
    assert_eq!(found.made, 1);
    let given = passages(&embedder);
    assert!(
        given.len() == 1 && given[0].contains("Room 42"),
        "{given:?}"
    );
    assert!(quotes(&found)[0].contains("Room 42"));
    // Another process has them from the store.
    let Room {
        workspace, folder, ..
    } = room;
    workspace.close().await;
    let workspace = Workspace::open(folder.path(), Arc::new(|| 0))
        .await
        .unwrap();
    let again = find_in(&workspace, "local", &all_of("wd"), &embedder, Order::Fused).await;
    assert_eq!(again.unwrap().hits, found.hits);
    assert!(passages(&embedder).is_empty());
}

#[tokio::test]
async fn a_passage_that_stands_in_many_documents_has_one_vector() {
    let room = Room::new(&["wd", "other"]).await;
    let embedder = Concepts::new(1);
    for n in 0..5 {
        let text = format!(
            "{}Signed by number {n}, who had seen the wall and the window from the inside and \
            from the outside, and who had nothing to add to what the others had written.\n",
            rooms(1)
        );
        room.publish("wd", &format!("{n}.txt"), &text).await;
    }
    assert_eq!(find(&room, "local", &embedder).await.made, 6);
    // Another case file has its own: not even the time of a search tells what is in this one.
    room.publish("other", "a.txt", &rooms(1)).await;
    let found = find_in(
        &room.workspace,
        "local",
        &all_of("other"),
        &embedder,
        Order::Fused,
    )
    .await;
    assert_eq!(found.unwrap().made, 1);
}

#[tokio::test]
async fn only_the_named_documents_get_vectors() {
    let room = Room::new(&["wd"]).await;
    let embedder = Concepts::new(1);
    room.publish("wd", "a.txt", "The hose cracked.\n").await;
    room.publish("wd", "b.txt", "A tube burst.\n").await;
    let cases = [SearchIn {
        case: case("wd"),
        documents: [doc("b.txt")].into(),
    }];
    let found = find_in(&room.workspace, "local", &cases, &embedder, Order::Fused).await;
    assert_eq!(quotes(&found.unwrap()), ["A tube burst."]);
    assert_eq!(passages(&embedder), ["A tube burst."]);
}

// LangChain #39937: an index 3% complete while every run said success.
#[tokio::test]
async fn vectors_of_a_part_are_no_search_and_the_next_one_goes_on_from_them() {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", &rooms(100)).await;
    // The question and 69 passages: two whole batches of 32 are kept.
    let failing = Concepts::failing_after(70);
    let outcome = find_in(
        &room.workspace,
        "local",
        &all_of("wd"),
        &failing,
        Order::Fused,
    )
    .await;
    assert!(matches!(outcome, Err(EngineError::Model(_))), "{outcome:?}");
    let embedder = Concepts::new(1);
    assert_eq!(find(&room, "local", &embedder).await.made, 36);
}

#[tokio::test]
async fn an_interrupted_search_keeps_what_it_made() {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", &rooms(100)).await;
    let stopped = Concepts::stopped_after(65);
    let outcome = find_in(
        &room.workspace,
        "local",
        &all_of("wd"),
        &stopped,
        Order::Fused,
    )
    .await;
    assert!(
        matches!(outcome, Err(EngineError::Interrupted)),
        "{outcome:?}"
    );
    let embedder = Concepts::new(1);
    assert_eq!(find(&room, "local", &embedder).await.made, 36);
}

// RAGFlow, opensanctions #4958, GraphRAG: the model is missing from the cache key.
#[tokio::test]
async fn another_embedder_makes_vectors_of_its_own() {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", &rooms(3)).await;
    assert_eq!(find(&room, "local", &Concepts::new(1)).await.made, 3);
    assert_eq!(find(&room, "local", &Concepts::new(2)).await.made, 3);
    assert_eq!(find(&room, "local", &Concepts::new(1)).await.made, 0);
}

async fn damaged_by(program: &str) {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", "The hose cracked.\n").await;
    room.publish("wd", "b.txt", "A tube burst.\n").await;
    find(&room, "local", &Concepts::new(1)).await;
    let verified = |workspace: Workspace, owner| async move {
        workspace.verify_case(&case("wd"), &owner).await.unwrap()
    };
    let sound = verified(room.workspace.clone(), room.owner.clone()).await;
    assert!(sound.findings.is_empty(), "{:?}", sound.findings);
    python(&room, program);
    let found = verified(room.workspace.clone(), room.owner.clone()).await;
    assert!(
        found
            .findings
            .iter()
            .any(|one| one.class == "passage-vector"),
        "{:?}",
        found.findings
    );
    let workspace = Workspace::open(room.folder.path(), Arc::new(|| 0))
        .await
        .unwrap();
    let outcome = find_in(
        &workspace,
        "local",
        &all_of("wd"),
        &Concepts::new(1),
        Order::Fused,
    )
    .await;
    assert!(matches!(outcome, Err(EngineError::Store(_))), "{outcome:?}");
    // Searching by words does not need them.
    assert_eq!(room.quotes("local", "wd", "hose").await.len(), 1);
}

#[tokio::test]
async fn a_flipped_byte_of_a_vector_is_found() {
    damaged_by(
        "no, vector = db.execute('SELECT rowid, vector FROM passage_vectors').fetchone()\n\
         vector = bytearray(vector); vector[5] ^= 1\n\
         db.execute('UPDATE passage_vectors SET vector = ? WHERE rowid = ?', (bytes(vector), no))",
    )
    .await;
}

#[tokio::test]
async fn vectors_that_have_changed_places_are_found() {
    damaged_by(
        "rows = db.execute('SELECT rowid, vector, digest FROM passage_vectors').fetchall()\n\
         for (no, _, _), (_, vector, digest) in zip(rows, reversed(rows)):\n\
         \x20   db.execute('UPDATE passage_vectors SET vector = ?, digest = ? WHERE rowid = ?', (vector, digest, no))",
    )
    .await;
}

#[tokio::test]
async fn a_database_from_before_the_vectors_takes_them_once_it_is_opened() {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", "The hose cracked.\n").await;
    python(
        &room,
        "db.execute('DROP TABLE passage_vectors'); db.execute('DROP TABLE embedders'); db.execute('DROP TABLE counters')\n\
         db.execute(\"UPDATE meta SET value = '3' WHERE name = 'schema'\")",
    );
    let workspace = Workspace::open(room.folder.path(), Arc::new(|| 0))
        .await
        .unwrap();
    let embedder = Concepts::new(1);
    let found = find_in(&workspace, "local", &all_of("wd"), &embedder, Order::Fused).await;
    assert_eq!(found.unwrap().made, 1);
}

#[tokio::test]
async fn several_case_files_are_one_ranking() {
    let room = Room::new(&["wd", "other"]).await;
    room.publish("wd", "a.txt", "The meeting began on time.\n")
        .await;
    room.publish("other", "b.txt", "The hose cracked.\n").await;
    let both: Vec<SearchIn> = ["wd", "other"].into_iter().flat_map(all_of).collect();
    let embedder = Concepts::new(1);
    let found = find_in(&room.workspace, "local", &both, &embedder, Order::Fused).await;
    let found = found.unwrap();
    assert_eq!(quotes(&found)[0], "The hose cracked.");
    assert_eq!((found.hits[0].case.as_str(), found.made), ("other", 2));
}

async fn answered(room: &Room, embedder: Option<&Concepts>) -> factum_ask::Answer {
    let beginning = Beginning {
        cases: vec![case("wd")],
        documents: Vec::new(),
        compact: true,
        title: "test".to_owned(),
    };
    let mut conversation = Conversation::begin(&room.workspace, &room.owner, beginning)
        .await
        .unwrap();
    let control = Control::default();
    let asking = Asking {
        answerer: &Answerer::Extractive,
        limits: Limits::default(),
        control: &control,
        sink: &Unheard,
        embeddings: embedder.map(|embedder| Embeddings {
            name: "concepts",
            embedder,
            watch: &|_, _| {},
        }),
    };
    let answer = conversation
        .ask("Which hose burst?", &asking)
        .await
        .unwrap();
    let kept = conversation.exchanges().await.unwrap();
    assert_eq!(kept[0].answer.embeddings, answer.embeddings);
    answer
}

#[tokio::test]
async fn an_answer_says_what_found_its_passages_and_without_embeddings_none_are_made() {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", "The hose burst at night.\n")
        .await;
    let plain = answered(&room, None).await;
    assert_eq!(plain.embeddings, None);
    assert!(
        !serde_json::to_string(&plain)
            .unwrap()
            .contains("embeddings")
    );
    python(
        &room,
        "assert db.execute('SELECT COUNT(*) FROM embedders').fetchone() == (0,)",
    );
    let by = answered(&room, Some(&Concepts::new(1)))
        .await
        .embeddings
        .unwrap();
    assert_eq!((by.name.as_str(), by.made), ("concepts", 1));
    assert_eq!(by.identity_sha256.len(), 64);
    let again = answered(&room, Some(&Concepts::new(1)))
        .await
        .embeddings
        .unwrap();
    assert_eq!((again.made, again.identity_sha256), (0, by.identity_sha256));
}
