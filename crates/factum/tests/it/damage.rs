//! Bytes that rot in the database file: they are found, named, and never served.

use std::process::Command;

use crate::support::{Ran, Workspace, claims, many, paragraphs, python};

/// Makes copies of the database file with one bit of one stored value changed in each: for each column
/// as many as asked for, or one for each row where 0 are. Prints what was changed, a line for each copy.
const FLIPS: &str = r#"
import random, shutil, sqlite3, sys
database, folder, copies, *columns = sys.argv[1:]
number = 0
for place in columns:
    table, column = place.split(".")
    db = sqlite3.connect(database)
    rows = db.execute(
        f"SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY rowid").fetchall()
    db.close()
    for seed in range(int(copies) or len(rows)):
        path = f"{folder}/{number}.db"
        number += 1
        shutil.copy(database, path)
        draw = random.Random(f"{place} {seed}")
        row, value = draw.choice(rows) if int(copies) else rows[seed]
        db = sqlite3.connect(path)
        db.execute("PRAGMA synchronous = OFF")
        hole = "?"
        if isinstance(value, int):
            new = value ^ 1
        else:
            raw = bytearray(value.encode() if isinstance(value, str) else value)
            raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
            new = bytes(raw)
            hole = "CAST(? AS TEXT)" if isinstance(value, str) else "?"
        db.execute(f"UPDATE OR REPLACE {table} SET {column} = {hole} WHERE rowid = ?", (new, row))
        db.commit()
        db.close()
        print(f"{place} in row {row}, copy {seed}")
"#;

/// A case file with a bit of everything in it.
fn eventful() -> Workspace {
    let workspace = Workspace::with(&many(9));
    workspace.profile(
        "short",
        "extends = \"narrative\"\n[segments]\nmin_chars = 100\nmax_chars = 400\n",
    );
    workspace.factum("case new short --profile short").ok();
    workspace.write("long.txt", paragraphs(16));
    workspace.write(
        "call.vtt",
        "WEBVTT\n\n00:01.000 --> 00:04.000\n<v Anna>The water came from above.\n",
    );
    workspace.write(
        "page.html",
        "<p>The <b>kitchen</b> is closed until further notice.</p>",
    );
    workspace.sync();
    workspace.factum("sync short in").ok();
    workspace.write(
        "report-0003.txt",
        "Report 3 has another text now. It is short.\n",
    );
    workspace.sync();
    workspace.factum("withdraw wd report-0005.txt").ok();
    workspace.factum("grant wd --to broker").ok();
    workspace
        .factum("revoke wd report-0007.txt --from broker")
        .ok();
    workspace.build();
    workspace.factum("build wd --full").ok();
    workspace.factum("build wd --as broker").ok();
    workspace.factum("build short").ok();
    workspace.factum("verify").ok();
    workspace
}

#[track_caller]
fn assert_no_panic(ran: &Ran, what: &str) {
    let right = ran.code.is_some_and(|code| code < 100) && !ran.stderr.contains("panicked");
    assert!(right, "{what}: {ran:#?}");
}

/// Whether `verify` finds the damage and names it.
fn is_found(workspace: &Workspace, what: &str) -> bool {
    let verified = workspace.factum("verify --json");
    assert_no_panic(&verified, what);
    let value = verified.json();
    let Some(findings) = value["findings"].as_array() else {
        let message = value["error"]["message"].as_str().unwrap();
        assert!(message.contains("damaged"), "{what}: {verified:#?}");
        return true;
    };
    assert_eq!(
        verified.code == Some(0),
        findings.is_empty(),
        "{what}: {verified:#?}"
    );
    for finding in findings {
        assert!(
            finding["message"]
                .as_str()
                .is_some_and(|message| !message.is_empty()),
            "{finding}"
        );
    }
    !findings.is_empty()
}

/// What each reader was shown before any damage.
fn shown(workspace: &Workspace) -> Vec<(String, Vec<String>)> {
    [
        "show wd --json",
        "show wd --json --as broker",
        "show short --json",
    ]
    .into_iter()
    .map(|line| (line.to_owned(), claims(&workspace.factum(line).ok().json())))
    .collect()
}

/// Asserts that nothing but the true claims is ever shown.
fn assert_not_served(workspace: &Workspace, what: &str, before: &[(String, Vec<String>)]) {
    for (line, before) in before {
        let shown = workspace.factum(line);
        assert_no_panic(&shown, what);
        match shown.code {
            Some(0) => assert_eq!(claims(&shown.json()), *before, "{what}"),
            Some(1) => assert!(shown.stderr.contains("damaged"), "{what}: {shown:#?}"),
            Some(3 | 4 | 7) => assert!(shown.json().get("claims").is_none(), "{what}: {shown:#?}"),
            _ => panic!("{what}: {shown:#?}"),
        }
    }
}

/// Flips bits in each of these columns, and asserts that each flip is found and none is served.
fn assert_guarded(columns: &[&str], copies: u32) {
    let workspace = eventful();
    let before = shown(&workspace);
    let folder = workspace.at("damaged");
    std::fs::create_dir(&folder).unwrap();
    let copies = copies.to_string();
    let mut arguments = vec![folder.to_str().unwrap(), &copies];
    arguments.extend(columns);
    let flips = python(FLIPS, &workspace.database(), &arguments);
    let mut unnoticed = Vec::new();
    for (number, what) in flips.lines().enumerate() {
        std::fs::rename(folder.join(format!("{number}.db")), workspace.database()).unwrap();
        assert_not_served(&workspace, what, &before);
        if !is_found(&workspace, what) {
            unnoticed.push(what);
        }
    }
    assert_eq!(unnoticed, [""; 0], "verify calls these clean");
}

#[test]
fn a_flipped_bit_in_a_result_or_page_is_found_and_never_served() {
    assert_guarded(
        &[
            "results.body",
            "results.digest",
            "results.key",
            "results.run_no",
            "pages.body",
            "pages.digest",
            "pages.key",
        ],
        3,
    );
}

#[test]
fn a_flipped_bit_in_an_event_is_found_and_never_served() {
    assert_guarded(
        &[
            "events.number",
            "events.body",
            "events.chain",
            "cases.last_event",
            "cases.chain",
        ],
        2,
    );
}

#[test]
fn a_flipped_bit_in_documents_or_rights_is_found_and_never_served() {
    assert_guarded(
        &[
            "documents.version",
            "documents.text_sha256",
            "documents.active",
            "documents.slot",
            "documents.doc_id",
            "case_access.granted",
            "case_access.revision",
            "doc_access.granted",
            "doc_access.revision",
            "doc_access.frozen_version",
        ],
        2,
    );
}

#[test]
fn a_flipped_bit_in_a_spec_or_run_is_found_and_never_served() {
    assert_guarded(
        &[
            "spec_parts.json",
            "contexts.leaf",
            "contexts.reduction",
            "contexts.principal",
            "runs.root",
            "runs.principal",
        ],
        2,
    );
}

#[test]
fn every_text_original_and_layout_is_checked_not_only_those_of_today() {
    assert_guarded(&["blobs.bytes"], 0);
}

#[test]
fn versions_are_held_against_the_events_that_published_them() {
    assert_guarded(
        &[
            "documents.chars",
            "versions.version",
            "versions.event",
            "versions.text_sha256",
            "versions.chars",
            "versions.layout",
            "versions.original",
        ],
        3,
    );
}

#[test]
fn segments_and_heads_are_checked_too() {
    assert_guarded(
        &[
            "segments.body",
            "events.at",
            "cases.access_revision",
            "heads.context",
            "heads.planned_root",
            "heads.planned_event",
            "heads.built_root",
            "heads.built_event",
            "heads.built_run",
            "heads.built_context",
        ],
        2,
    );
}

#[test]
fn a_head_that_says_it_is_further_than_its_events_serves_nothing_stale() {
    let workspace = Workspace::built();
    python(
        "import sqlite3, sys\n\
         db = sqlite3.connect(sys.argv[1])\n\
         db.execute('UPDATE heads SET planned_event = planned_event + 1')\n\
         db.commit()",
        &workspace.database(),
        &[],
    );
    // No citation tells, since the new document is not cited.
    workspace.write("d.txt", "The insurer refused the claim.\n");
    workspace.sync();
    let shown = workspace.factum("show wd");
    assert!(matches!(shown.code, Some(1 | 4)), "{shown:#?}");
}

#[test]
fn a_damaged_root_is_named_when_it_is_asked_for() {
    let workspace = Workspace::built();
    let root = workspace.show()["root"].as_str().unwrap().to_owned();
    let program = "import sqlite3, sys\n\
         db = sqlite3.connect(sys.argv[1])\n\
         key = bytes.fromhex(sys.argv[2])\n\
         body = bytearray(db.execute('SELECT body FROM results WHERE key = ?', (key,)).fetchone()[0])\n\
         at = body.index(b'5 March')\n\
         body[at:at + 1] = b'6'\n\
         db.execute('UPDATE results SET body = ? WHERE key = ?', (bytes(body), key))\n\
         db.commit()";
    python(program, &workspace.database(), &[&root]);
    for line in [
        "show wd",
        "show wd --json",
        "show wd --format html",
        "show wd --as-of 3",
        "export run run-000001",
    ] {
        let failed = workspace.factum(line).fails(1, "damaged");
        assert!(failed.stderr.contains(&root), "{failed:#?}");
        assert!(!failed.everything().contains("March"), "{failed:#?}");
    }
    let verified = workspace.factum("verify wd").exits(1);
    assert!(verified.stdout.contains(&root), "{verified:#?}");
}

#[test]
fn a_damaged_text_is_named_when_it_is_asked_for() {
    let workspace = Workspace::built();
    let texts = workspace.factum("export texts wd").ok().json();
    let cited = texts["versions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["doc_id"] == "b.txt");
    let digest = cited.unwrap()["text_sha256"].as_str().unwrap().to_owned();
    let program = "import sqlite3, sys\n\
         db = sqlite3.connect(sys.argv[1])\n\
         key = bytes.fromhex(sys.argv[2])\n\
         text = db.execute('SELECT bytes FROM blobs WHERE sha256 = ?', (key,)).fetchone()[0]\n\
         text = text.replace(b'5 March', b'6 March')\n\
         db.execute('UPDATE blobs SET bytes = ? WHERE sha256 = ?', (text, key))\n\
         db.commit()";
    python(program, &workspace.database(), &[&digest]);
    for line in [
        "show wd",
        "ledger wd --json",
        "export texts wd",
        "build wd --full",
    ] {
        let failed = workspace.factum(line).fails(1, "damaged");
        assert!(failed.stderr.contains(&digest), "{failed:#?}");
        assert!(!failed.everything().contains("March"), "{failed:#?}");
    }
    let verified = workspace.factum("verify wd").exits(1);
    assert!(verified.stdout.contains(&digest), "{verified:#?}");
}

#[test]
fn every_damaged_record_is_listed_wherever_it_stands() {
    let workspace = Workspace::with(&many(150));
    workspace.build();
    for _ in 0..2 {
        workspace.factum("build wd --full").ok();
    }
    // Three results for each node, and more than are read at a time.
    let program = "import sqlite3, sys\n\
         db = sqlite3.connect(sys.argv[1])\n\
         rows = db.execute('SELECT key, scope FROM results WHERE scope > 0').fetchall()\n\
         db.execute(\"UPDATE results SET digest = zeroblob(32) WHERE scope > 0\")\n\
         db.commit()\n\
         print(len(rows))";
    let damaged: usize = python(program, &workspace.database(), &[])
        .trim()
        .parse()
        .unwrap();
    assert!(damaged > 340, "{damaged}");
    let verified = workspace.factum("verify wd --json").exits(1).json();
    let found = verified["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["class"] == "damaged-record" && finding["place"] == "store")
        .count();
    assert_eq!(found, damaged);
}

#[test]
fn a_file_overwritten_with_noise_is_called_damaged() {
    let workspace = eventful();
    let whole = std::fs::read(workspace.database()).unwrap();
    let before = shown(&workspace);
    // The header, the schema, and pages all over the file.
    let places = [
        0,
        16,
        100,
        4_096,
        16_384,
        whole.len() / 3,
        whole.len() / 2,
        whole.len() - 9_000,
    ];
    for place in places {
        let what = format!("noise from byte {place} on");
        let mut bytes = whole.clone();
        for (n, byte) in bytes[place..].iter_mut().take(3_000).enumerate() {
            *byte = u8::try_from((n * 31 + place) % 251).unwrap();
        }
        std::fs::write(workspace.database(), &bytes).unwrap();
        assert_not_served(&workspace, &what, &before);
        for line in ["status", "history wd", "export texts wd", "ledger wd"] {
            assert_no_panic(&workspace.factum(line), &format!("{what}, {line}"));
        }
        // Space that SQLite does not use may hold anything.
        if !is_found(&workspace, &what) {
            assert_eq!(shown(&workspace), before, "{what}");
        }
    }
    std::fs::write(workspace.database(), &whole[..whole.len() / 2]).unwrap();
    let cut = workspace.factum("verify");
    assert_no_panic(&cut, "cut in half");
    assert_eq!(cut.code, Some(1));
    std::fs::write(workspace.database(), &whole).unwrap();
    workspace.factum("verify").ok();
}

#[test]
fn a_log_that_was_lost_with_its_process_leaves_an_earlier_whole_state() {
    let workspace = Workspace::built();
    let before = workspace.state();
    // A writer that is killed leaves its log; a copy without the log is the state before.
    let script = "import os, sqlite3, sys\n\
         db = sqlite3.connect(sys.argv[1])\n\
         db.execute('PRAGMA wal_autocheckpoint = 0')\n\
         db.execute(\"UPDATE cases SET title = 'Another'\")\n\
         db.commit()\n\
         os._exit(0)";
    let done = Command::new("python3")
        .args(["-c", script])
        .arg(workspace.database())
        .status()
        .unwrap();
    assert!(done.success());
    let log = workspace.at(".factum/factum.db-wal");
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    std::fs::remove_file(&log).unwrap();
    let _ = std::fs::remove_file(workspace.at(".factum/factum.db-shm"));
    assert_eq!(workspace.state(), before);
    workspace.show();
    workspace.factum("verify").ok();
}
