//! Search: rights before ranking, an index that can't lag, any script.

use std::collections::BTreeSet;

use factum_engine::retrieve::SearchIn;
use factum_engine::{EngineError, Workspace};

use crate::room::{Room, case, doc, who};

#[tokio::test]
async fn what_was_published_is_found_with_exact_spans() {
    let room = Room::new(&["wd"]).await;
    let text = "Bericht für das Gebäude 👩‍💧.\n\nThe hose under the sink burst on 3 March 2026.\n";
    room.publish("wd", "a.txt", text).await;
    room.publish("wd", "b.txt", "The repair costs 4,200 euros.\n")
        .await;
    let hits = room
        .search("local", "wd", "When did the hose burst?", 5)
        .await;
    assert_eq!(hits.len(), 1);
    let evidence = &hits[0].evidence;
    assert_eq!((evidence.doc_id.as_str(), evidence.version), ("a.txt", 1));
    let cut: String = text
        .chars()
        .skip(evidence.start as usize)
        .take((evidence.end - evidence.start) as usize)
        .collect();
    assert_eq!(cut, evidence.quote);
    assert!(evidence.quote.contains("3 March 2026"));
    assert_eq!(room.quotes("local", "wd", "gebaude").await.len(), 1);
    assert_eq!(
        room.quotes("local", "wd", "4200").await,
        ["The repair costs 4,200 euros."]
    );
    assert!(room.quotes("local", "wd", "elephants").await.is_empty());
    assert!(room.quotes("local", "wd", "").await.is_empty());
}

#[tokio::test]
async fn chinese_japanese_and_thai_are_found() {
    let room = Room::new(&["wd"]).await;
    room.publish(
        "wd",
        "ja.txt",
        "浴室の水道管が破裂した。修理費は四万円です。\n",
    )
    .await;
    room.publish("wd", "zh.txt", "保险公司已经赔偿了损失。\n")
        .await;
    room.publish("wd", "th.txt", "ท่อน้ำในห้องน้ำแตก\n").await;
    room.publish("wd", "ko.txt", "화장실 수도관이 터졌습니다.\n")
        .await;
    for (question, name) in [
        ("水道管", "ja.txt"),
        ("いつ破裂したか", "ja.txt"),
        ("赔偿", "zh.txt"),
        ("ท่อน้ำ", "th.txt"),
        ("수도관이", "ko.txt"),
    ] {
        let hits = room.search("local", "wd", question, 3).await;
        assert!(!hits.is_empty(), "{question}");
        assert_eq!(hits[0].evidence.doc_id.as_str(), name, "{question}");
    }
}

#[tokio::test]
async fn a_new_version_a_withdrawal_and_a_return_are_seen_by_the_next_search() {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", "The hose burst on Monday.\n")
        .await;
    room.publish("wd", "a.txt", "The pipe burst on Tuesday.\n")
        .await;
    assert!(room.quotes("local", "wd", "hose Monday").await.is_empty());
    assert_eq!(
        room.quotes("local", "wd", "burst").await,
        ["The pipe burst on Tuesday."]
    );
    let (workspace, owner, wd) = (&room.workspace, &room.owner, case("wd"));
    workspace.withdraw(owner, &wd, &doc("a.txt")).await.unwrap();
    assert!(room.quotes("local", "wd", "burst").await.is_empty());
    workspace
        .reinstate(owner, &wd, &doc("a.txt"))
        .await
        .unwrap();
    assert_eq!(room.quotes("local", "wd", "burst").await.len(), 1);
    // Back to the first text: it was never taken out of the index.
    room.publish("wd", "a.txt", "The hose burst on Monday.\n")
        .await;
    assert_eq!(room.quotes("local", "wd", "hose").await.len(), 1);
}

#[tokio::test]
async fn a_principal_finds_what_it_may_see_now_and_nothing_else() {
    let room = Room::new(&["wd", "other"]).await;
    room.publish("wd", "a.txt", "The hose burst.\n").await;
    room.publish("wd", "secret.txt", "The hose was cut on purpose.\n")
        .await;
    room.publish("other", "a.txt", "Another hose altogether.\n")
        .await;
    let (workspace, owner, wd) = (&room.workspace, &room.owner, case("wd"));
    let cases = [SearchIn {
        case: wd.clone(),
        documents: BTreeSet::new(),
    }];
    let refused = workspace.search(&who("broker"), &cases, "hose", 5).await;
    assert!(matches!(refused, Err(EngineError::Forbidden { .. })));
    workspace
        .grant(owner, &wd, &[doc("a.txt")], &who("broker"))
        .await
        .unwrap();
    assert_eq!(
        room.quotes("broker", "wd", "hose").await,
        ["The hose burst."]
    );
    workspace
        .grant(owner, &wd, &[], &who("broker"))
        .await
        .unwrap();
    assert_eq!(room.quotes("broker", "wd", "hose").await.len(), 2);
    workspace
        .revoke(owner, &wd, &[doc("secret.txt")], &who("broker"))
        .await
        .unwrap();
    assert_eq!(
        room.quotes("broker", "wd", "hose").await,
        ["The hose burst."]
    );
    assert_eq!(room.quotes("local", "wd", "hose").await.len(), 2);
}

#[tokio::test]
async fn hidden_documents_change_no_score() {
    let alone = Room::new(&["wd"]).await;
    let beside = Room::new(&["wd"]).await;
    let files: Vec<(String, String)> = (0..30)
        .map(|n| {
            (
                format!("{n:02}.txt"),
                format!("Room {n} was wet. The hose of flat {} burst.\n", n % 7),
            )
        })
        .collect();
    for room in [&alone, &beside] {
        room.publish_all("wd", &files).await;
        let (owner, wd) = (&room.owner, case("wd"));
        let docs: Vec<_> = files.iter().map(|(name, _)| doc(name)).collect();
        room.workspace
            .grant(owner, &wd, &docs, &who("broker"))
            .await
            .unwrap();
    }
    for n in 0..40 {
        beside
            .publish(
                "wd",
                &format!("hidden-{n}.txt"),
                "hose hose flat flat 3 3 wet wet wet\n",
            )
            .await;
    }
    for question in ["hose of flat 3", "wet room 12"] {
        let (a, b) = (
            alone.search("broker", "wd", question, 20).await,
            beside.search("broker", "wd", question, 20).await,
        );
        assert!(!a.is_empty());
        assert_eq!(a, b);
    }
}

#[tokio::test]
async fn many_small_publishings_and_one_large_one_find_the_same() {
    let files: Vec<(String, String)> = (0..150)
        .map(|n| {
            (
                format!("{n:03}.txt"),
                format!(
                    "Report {n} says that flat {} has {} windows.\n",
                    n % 13,
                    n % 29
                ),
            )
        })
        .collect();
    let (one, many) = (Room::new(&["wd"]).await, Room::new(&["wd"]).await);
    one.publish_all("wd", &files).await;
    for file in &files {
        many.publish_all("wd", std::slice::from_ref(file)).await;
    }
    for question in ["flat 7", "report 101", "28 windows", "windows"] {
        let (a, b) = (
            one.search("local", "wd", question, 25).await,
            many.search("local", "wd", question, 25).await,
        );
        assert!(!a.is_empty(), "{question}");
        assert_eq!(a, b, "{question}");
    }
}

#[tokio::test]
async fn only_the_named_documents_are_searched() {
    let room = Room::new(&["wd"]).await;
    for name in ["a.txt", "b.txt", "c.txt"] {
        room.publish("wd", name, &format!("The hose of {name} burst.\n"))
            .await;
    }
    let cases = [SearchIn {
        case: case("wd"),
        documents: [doc("b.txt"), doc("not-there.txt")].into(),
    }];
    let hits = room
        .workspace
        .search(&room.owner, &cases, "hose", 9)
        .await
        .unwrap();
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].evidence.doc_id, doc("b.txt"));
}

#[tokio::test]
async fn an_undone_publishing_leaves_nothing_to_find() {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", "The hose burst.\n").await;
    let file = (
        doc("b.txt"),
        crate::room::read("b.txt", "The hose was cut.\n"),
    );
    // The second names a document that does not exist, so that all is undone.
    let failed = room
        .workspace
        .add(&room.owner, &case("wd"), &[file], Some(&doc("nowhere.txt")))
        .await;
    assert!(failed.is_err());
    assert_eq!(
        room.quotes("local", "wd", "hose").await,
        ["The hose burst."]
    );
}

#[tokio::test]
async fn a_database_from_before_the_index_is_findable_once_it_is_opened() {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", "The hose burst.\n").await;
    let expected = room.search("local", "wd", "hose", 5).await;
    let Room {
        workspace, folder, ..
    } = room;
    workspace.close().await;
    let database = folder.path().join(".factum/factum.db");
    let program = "import sqlite3, sys\n\
        db = sqlite3.connect(sys.argv[1])\n\
        for table in ['search_texts', 'search_segments', 'search_blocks', 'conversations', 'conversation_cases', 'conversation_messages', 'passage_vectors', 'embedders', 'counters']:\n\
        \x20   db.execute('DROP TABLE ' + table)\n\
        db.execute(\"UPDATE meta SET value = '2' WHERE name = 'schema'\")\n\
        db.commit()\n";
    let ran = std::process::Command::new("python3")
        .args(["-c", program])
        .arg(&database)
        .status();
    assert!(ran.expect("this test needs python3").success());
    let workspace = Workspace::open(folder.path(), std::sync::Arc::new(|| 0))
        .await
        .unwrap();
    let cases = [SearchIn {
        case: case("wd"),
        documents: BTreeSet::new(),
    }];
    assert_eq!(
        workspace
            .search(&who("local"), &cases, "hose", 5)
            .await
            .unwrap(),
        expected
    );
}

#[tokio::test]
async fn verification_finds_a_flipped_byte_of_the_index() {
    let room = Room::new(&["wd"]).await;
    room.publish("wd", "a.txt", "The hose burst. 水道管が破裂した。\n")
        .await;
    room.publish("wd", "b.txt", "The repair costs 4,200 euros.\n")
        .await;
    let verified = room
        .workspace
        .verify_case(&case("wd"), &room.owner)
        .await
        .unwrap();
    assert!(verified.findings.is_empty(), "{:?}", verified.findings);
    let database = room.folder.path().join(".factum/factum.db");
    let program = "import sqlite3, sys\n\
        db = sqlite3.connect(sys.argv[1])\n\
        no, body = db.execute('SELECT rowid, body FROM search_blocks').fetchone()\n\
        body = bytearray(body); body[-1] ^= 1\n\
        db.execute('UPDATE search_blocks SET body = ? WHERE rowid = ?', (bytes(body), no))\n\
        db.commit()\n";
    let ran = std::process::Command::new("python3")
        .args(["-c", program])
        .arg(&database)
        .status();
    assert!(ran.expect("this test needs python3").success());
    let verified = room
        .workspace
        .verify_case(&case("wd"), &room.owner)
        .await
        .unwrap();
    assert!(
        verified
            .findings
            .iter()
            .any(|one| one.class == "search-index"),
        "{:?}",
        verified.findings
    );
}
