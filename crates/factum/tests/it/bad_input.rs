//! Bad input ends in the right exit code, with a message and a hint, and changes nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::support::{FACTUM, LETTERS, Ran, Workspace, claims, python, strings};

const BINARY: &[u8] = &[
    0x7f, b'E', b'L', b'F', 0, 0, 1, 2, 3, 0, 255, 254, 0, 0, 0, 8,
];

#[test]
fn unknown_things_are_named() {
    let workspace = Workspace::built();
    workspace.unchanged(|| {
        for line in [
            "show nowhere",
            "status nowhere",
            "why nowhere",
            "diff nowhere",
            "ledger nowhere",
            "history nowhere",
            "build nowhere",
            "sync nowhere in",
            "add nowhere in/a.txt",
            "withdraw nowhere a.txt",
            "grant nowhere --to broker",
            "export texts nowhere",
            "verify nowhere",
        ] {
            workspace.factum(line).fails(3, "\"nowhere\"");
        }
        for line in [
            "withdraw wd nothing.txt",
            "reinstate wd nothing.txt",
            "grant wd a.txt nothing.txt --to broker",
            "revoke wd nothing.txt --from broker",
            "add wd in/a.txt --as-doc new.txt --after nothing.txt",
        ] {
            workspace.factum(line).fails(3, "nothing.txt");
        }
        for line in [
            "export run run-000042",
            "compare run-000001 run-000042",
            "verify run-000042",
        ] {
            workspace.factum(line).fails(3, "run-000042");
        }
        workspace
            .factum("build wd --generator magic")
            .fails(3, "magic");
        workspace
            .factum("show wd --generator magic")
            .fails(3, "magic");
        workspace.factum("case new wd").fails(3, "already");
    });
}

#[test]
fn ids_that_could_escape_or_deceive_are_refused() {
    let workspace = Workspace::built();
    workspace.unchanged(|| {
        for bad in [
            "a/b",
            "",
            "  ",
            "a\nb",
            "a\u{202e}b",
            "a\\b",
            &"x".repeat(401),
        ] {
            workspace.run(["case", "new", bad]).fails(3, "case id");
            workspace.run(["show", bad]).fails(3, "case id");
        }
        for bad in ["../a.txt", "/etc/passwd", "a//b", "a/./b", "", "a\u{7}b"] {
            workspace
                .run(["withdraw", "wd", bad])
                .fails(3, "document id");
            workspace
                .run(["add", "wd", "in/a.txt", "--as-doc", bad])
                .fails(3, "document id");
        }
        for bad in ["", " ", "a\nb"] {
            workspace.run(["status", "--as", bad]).fails(3, "principal");
            workspace
                .run(["grant", "wd", "--to", bad])
                .fails(3, "principal");
        }
    });
}

#[test]
fn files_that_hold_no_text_are_refused_by_add() {
    let workspace = Workspace::built();
    workspace.write("empty.txt", "");
    workspace.write("blank.txt", " \n\t\r\n");
    workspace.write("binary.txt", BINARY);
    workspace.unchanged(|| {
        workspace
            .factum("add wd in/empty.txt")
            .fails(3, "empty.txt");
        workspace.factum("add wd in/blank.txt").fails(3, "no text");
        workspace.factum("add wd in/binary.txt").fails(3, "binary");
        workspace
            .factum("add wd in/missing.txt")
            .fails(3, "missing.txt");
        // All or none.
        workspace.write("good.txt", "The tenant was away for the whole week.\n");
        workspace
            .factum("add wd in/good.txt in/empty.txt")
            .fails(3, "empty.txt");
        workspace
            .factum("add wd in/good.txt in/good.txt")
            .fails(3, "twice");
    });
}

#[test]
fn a_folder_in_place_of_a_file_is_refused() {
    let workspace = Workspace::built();
    workspace.unchanged(|| workspace.factum("add wd in").fails(3, "in"));
}

#[test]
fn a_file_in_place_of_a_folder_is_refused() {
    let workspace = Workspace::built();
    let failed = workspace.unchanged(|| workspace.factum("sync wd in/a.txt").fails(3, "a.txt"));
    assert!(!failed.stderr.contains("document id"), "{failed:#?}");
}

#[test]
fn a_folder_that_does_not_exist_withdraws_nothing() {
    let workspace = Workspace::built();
    workspace.unchanged(|| workspace.factum("sync wd nowhere").fails(3, "nowhere"));
}

#[test]
fn links_out_of_the_folder_in_a_circle_or_to_nowhere_stop_a_sync() {
    let workspace = Workspace::built();
    std::fs::write(workspace.at("outside.txt"), "Outside stands a secret.\n").unwrap();
    std::fs::create_dir(workspace.at("elsewhere")).unwrap();
    std::fs::write(
        workspace.at("elsewhere/e.txt"),
        "Elsewhere stands a secret.\n",
    )
    .unwrap();
    workspace.write("new.txt", "A good file stands beside the bad link.\n");
    let link = workspace.at("in/link");
    for (target, says) in [
        ("../outside.txt", "leads out of the folder"),
        ("../elsewhere", "leads out of the folder"),
        ("/etc/hostname", "leads out of the folder"),
        (".", "leads back"),
        ("link", "leads back"),
        ("nowhere.txt", "link"),
    ] {
        symlink(target, &link).unwrap();
        let failed = workspace.unchanged(|| workspace.factum("sync wd in").fails(3, says));
        assert!(!failed.everything().contains("secret"), "{failed:#?}");
        std::fs::remove_file(&link).unwrap();
    }
    // Links within the folder are as good as files.
    symlink("a.txt", &link).unwrap();
    let sync = workspace.sync();
    assert_eq!(sync["published"].as_array().unwrap().len(), 2);
}

#[test]
fn good_files_are_published_beside_refused_ones() {
    let workspace = Workspace::built();
    workspace.write("empty.txt", "");
    workspace.write("binary.bin", BINARY);
    workspace.write("d.txt", "The caretaker closed the valve at nine.\n");
    // It was good before: its version stays, and it is not withdrawn.
    workspace.write("b.txt", BINARY);
    let sync = workspace.factum("sync wd in --json").exits(3);
    let report = sync.json();
    assert_eq!(report["published"].as_array().unwrap().len(), 1);
    assert_eq!(report["published"][0]["doc_id"], "d.txt");
    assert_eq!(strings(&report["withdrawn"]), [""; 0]);
    let refused: Vec<&str> = report["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect();
    assert_eq!(refused, ["b.txt", "binary.bin", "empty.txt"]);
    for name in refused {
        assert!(sync.stderr.contains(name), "{sync:#?}");
    }
    assert!(sync.stderr.contains("hint: "));
    let status = workspace.factum("status wd --json").ok().json();
    let documents = status["documents"].as_array().unwrap();
    assert_eq!(documents.len(), 4);
    let b = documents
        .iter()
        .find(|document| document["doc_id"] == "b.txt")
        .unwrap();
    assert_eq!(
        (b["version"].as_u64(), b["state"].as_str()),
        (Some(1), Some("current"))
    );
    workspace.build();
    assert!(
        claims(&workspace.show())
            .iter()
            .any(|claim| claim.contains("The insurer"))
    );
    // Again: the same refusals, and no event.
    workspace.unchanged(|| workspace.factum("sync wd in").exits(3));
}

#[test]
fn a_file_name_that_is_not_unicode_stops_a_sync() {
    let workspace = Workspace::built();
    let path = workspace.at("in").join(OsStr::from_bytes(b"caf\xe9.txt"));
    if std::fs::write(&path, "Good text under a bad name.\n").is_err() {
        return; // The file system does not take such a name.
    }
    workspace.unchanged(|| {
        workspace.factum("sync wd in").fails(3, "not valid Unicode");
        workspace
            .run([OsStr::new("add"), OsStr::new("wd"), path.as_os_str()])
            .fails(3, "not valid Unicode");
    });
    std::fs::remove_file(path).unwrap();
    // Nor does a name that would break a line of output, or pose as another.
    for name in ["two\nlines.txt", "gnp\u{202e}txt.a"] {
        workspace.write(name, "Good text under a bad name.\n");
        workspace.unchanged(|| workspace.factum("sync wd in").fails(3, "not allowed"));
        workspace.remove(name);
    }
}

#[test]
fn a_profile_that_can_not_be_used_says_what_is_wrong_with_it() {
    let workspace = Workspace::new();
    let base = "extends = \"narrative\"\n";
    workspace.unchanged(|| {
        for (toml, says) in [
            ("[extraction]\nleaf_claim = 5\n", "leaf_claim"),
            ("[extractoin]\nleaf_claims = 5\n", "extractoin"),
            ("[extraction]\nleaf_claims = \"five\"\n", "leaf_claims"),
            ("[claim.fields.statement]\nmax_chars = -1\n", "max_chars"),
            (
                "[[rules]]\nid = \"bad-rule\"\npattern = '(?<statement>'\n",
                "bad-rule",
            ),
            (
                "[[rules]]\nid = \"other-rule\"\npattern = '(?<nothing>x)'\n",
                "nothing",
            ),
            ("[extraction]\nsentence = \"nothing\"\n", "nothing"),
            ("[tree]\nmin = 5\nmax = 6\n", "max"),
            ("extends\n", "mine"),
        ] {
            let toml = if toml == "extends\n" {
                toml.to_owned()
            } else {
                format!("{base}{toml}")
            };
            workspace.profile("mine", &toml);
            let failed = workspace
                .factum("case new wd --profile mine")
                .fails(3, "\"mine\"");
            assert!(failed.stderr.contains(says), "{says}: {failed:#?}");
        }
        workspace.profile("mine", "extends = \"mine\"\n");
        workspace.factum("case new wd --profile mine").exits(3);
        workspace
            .factum("case new wd --profile nothing")
            .fails(3, "\"nothing\"");
        workspace
            .run(["case", "new", "wd", "--profile", "../../etc/passwd"])
            .fails(3, "no profile");
    });
}

#[test]
fn a_profile_edited_after_a_build_makes_its_summary_stale() {
    let workspace = Workspace::new();
    workspace.profile("mine", "extends = \"narrative\"\n");
    workspace.factum("case new wd --profile mine").ok();
    for (name, text) in LETTERS {
        workspace.write(name, text);
    }
    workspace.sync();
    workspace.build();
    workspace.show();
    workspace.profile(
        "mine",
        "extends = \"narrative\"\n[extraction]\nleaf_claims = 1\n",
    );
    let refusal = workspace.factum("show wd --json").exits(4).json();
    assert_eq!(refusal["status"], "STALE");
    assert_eq!(refusal["reasons"][0]["kind"], "profile");
    let why = workspace.factum("why wd --json").ok().json();
    assert_eq!(why["nodes"].as_array().unwrap().len(), 4);
    workspace.build();
    assert_eq!(claims(&workspace.show()).len(), 3);
    let diff = workspace.factum("diff wd --json").ok().json();
    assert_eq!(diff["removed"].as_array().unwrap().len(), 3);
    assert!(
        diff["removed"][0]["cause"]["message"]
            .as_str()
            .unwrap()
            .contains("profile")
    );

    // Broken, it is named, and nothing is served.
    workspace.profile(
        "mine",
        "extends = \"narrative\"\n[extraction]\nleaf_claims = [\n",
    );
    for line in ["show wd", "build wd", "ledger wd", "why wd"] {
        let failed = workspace.factum(line).exits(3);
        assert!(
            failed.stderr.contains("\"mine\"") && failed.stdout.is_empty(),
            "{failed:#?}"
        );
    }
    std::fs::remove_file(workspace.at(".factum/profiles/mine.toml")).unwrap();
    workspace.factum("show wd").fails(3, "\"mine\"");
    workspace.profile(
        "mine",
        "extends = \"narrative\"\n[extraction]\nleaf_claims = 1\n",
    );
    assert_eq!(claims(&workspace.show()).len(), 3);
}

#[test]
fn one_broken_profile_does_not_hide_the_other_case_files() {
    let workspace = Workspace::built();
    workspace.profile("mine", "extends = \"narrative\"\n");
    workspace.factum("case new other --profile mine").ok();
    workspace.factum("build other").ok();
    workspace.profile("mine", "broken");
    let list = workspace.factum("status --json").ok().json();
    assert_eq!(list["cases"].as_array().unwrap().len(), 2);
    workspace.factum("verify wd").ok();
    workspace.show();
}

#[test]
fn usage_errors_exit_with_2() {
    let workspace = Workspace::built();
    workspace.unchanged(|| {
        for line in [
            "",
            "frobnicate",
            "show",
            "show wd extra",
            "build wd --frobnicate",
            "show wd --format pdf",
            "grant wd",
            "revoke wd a.txt",
            "add wd",
            "diff wd run-000001",
            "compare run-000001",
            "case new",
            "experiment scale",
            "experiment scale --documents many",
            "experiment scale --documents 0",
            "add wd in/a.txt in/b.txt --as-doc x.txt",
            "sync wd",
            "-C",
            "export",
            "export run",
        ] {
            let failed = workspace.factum(line).exits(2);
            assert!(
                !failed.stderr.is_empty() && failed.stdout.is_empty(),
                "{failed:#?}"
            );
        }
    });
    for line in ["--help", "help", "show --help", "--version"] {
        assert!(!workspace.factum(line).ok().stdout.is_empty());
    }
}

#[test]
fn a_folder_without_a_workspace_says_how_to_make_one() {
    let workspace = Workspace::bare();
    for line in [
        "status",
        "show wd",
        "build wd",
        "-C in history wd",
        "-C nowhere status",
        "verify",
    ] {
        workspace.factum(line).fails(3, "no Factum workspace");
    }
    assert!(!workspace.at(".factum").exists());
}

#[test]
fn a_second_init_leaves_the_first_alone() {
    let workspace = Workspace::built();
    workspace.unchanged(|| workspace.factum("init").fails(3, "already"));
    workspace.show();
}

#[test]
fn a_newer_schema_is_left_alone() {
    let workspace = Workspace::built();
    let set = "import sqlite3, sys\n\
               db = sqlite3.connect(sys.argv[1])\n\
               db.execute(\"UPDATE meta SET value = ? WHERE name = 'schema'\", (sys.argv[2],))\n\
               db.commit()";
    python(set, &workspace.database(), &["99"]);
    let before = std::fs::read(workspace.database()).unwrap();
    for line in [
        "status",
        "show wd",
        "build wd",
        "withdraw wd a.txt",
        "verify",
    ] {
        workspace.factum(line).fails(3, "schema 99");
    }
    assert!(
        before == std::fs::read(workspace.database()).unwrap(),
        "the file was changed"
    );
    python(set, &workspace.database(), &["4"]);
    workspace.show();
}

#[test]
fn an_older_schema_is_brought_up_to_date() {
    let workspace = Workspace::built();
    let before = workspace.show();
    let older = "import sqlite3, sys\n\
                 db = sqlite3.connect(sys.argv[1])\n\
                 db.execute('DROP VIEW result_citations')\n\
                 db.execute('DROP TABLE generations')\n\
                 for table in ['search_texts', 'search_segments', 'search_blocks', 'conversations', 'conversation_cases', 'conversation_messages',\n\
                 \x20       'passage_vectors', 'embedders', 'counters']:\n\
                 \x20   db.execute('DROP TABLE ' + table)\n\
                 db.execute(\"UPDATE meta SET value = '1' WHERE name = 'schema'\")\n\
                 db.commit()";
    python(older, &workspace.database(), &[]);
    assert_eq!(workspace.show(), before);
    workspace.factum("verify wd").ok();
}

#[test]
fn a_file_that_is_no_database_is_called_so() {
    let workspace = Workspace::built();
    let whole = std::fs::read(workspace.database()).unwrap();
    for bytes in [
        b"This is a letter and no database at all. ".repeat(40),
        whole[..40].to_vec(),
        vec![0; 8192],
    ] {
        std::fs::write(workspace.database(), &bytes).unwrap();
        for line in ["status", "show wd", "build wd", "verify"] {
            let failed = workspace.factum(line).fails(1, "damaged");
            assert!(failed.stdout.is_empty(), "{failed:#?}");
        }
        assert_eq!(
            std::fs::read(workspace.database()).unwrap(),
            bytes,
            "the file was changed"
        );
    }
    std::fs::write(workspace.database(), whole).unwrap();
    workspace.show();
}

/// Runs the program as someone who may not write the workspace: as root that takes another user.
fn as_stranger(workspace: &Workspace, program: &Path, line: &str) -> Ran {
    let mut command = Command::new(program);
    command.args(line.split_whitespace());
    if workspace.path().metadata().unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    workspace.finish(command)
}

#[test]
fn a_read_only_workspace_is_told_and_left_as_it_is() {
    let workspace = Workspace::built();
    let program = workspace.at("factum");
    if std::fs::hard_link(FACTUM, &program).is_err() {
        std::fs::copy(FACTUM, &program).unwrap();
    }
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let modes = |folder: u32, file: u32| {
        mode(&workspace.database(), file);
        mode(&workspace.at(".factum"), folder);
        mode(workspace.path(), folder);
    };
    modes(0o555, 0o444);
    for line in ["withdraw wd a.txt", "add wd in/a.txt", "build wd --full"] {
        as_stranger(&workspace, &program, line).fails(1, "database can't be");
    }
    // Reading either works or says the same; it is never another answer.
    let shown = as_stranger(&workspace, &program, "show wd");
    if shown.code != Some(0) {
        shown.fails(1, "database can't be");
    }
    as_stranger(&workspace, &program, "-C in init").fails(1, "in");
    modes(0o755, 0o644);
    mode(&workspace.at("in/b.txt"), 0o000);
    if workspace.path().metadata().unwrap().uid() != 0 {
        workspace.unchanged(|| workspace.factum("sync wd in").fails(1, "b.txt"));
    }
    mode(&workspace.at("in/b.txt"), 0o644);
    workspace.show();
    workspace.factum("verify").ok();
}

/// Runs a command that may write files of so many bytes at most, as on a full disk.
fn with_room(workspace: &Workspace, bytes: u64, line: &str) -> Ran {
    let script = format!(
        "trap '' XFSZ; ulimit -f {}; exec {FACTUM} {line}",
        bytes / 512
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]);
    workspace.finish(shell)
}

#[test]
fn a_full_disk_loses_nothing() {
    let workspace = Workspace::built();
    for n in 0..24 {
        let line = format!("Paragraph {n} of a long report says the same again and again. ");
        workspace.write(&format!("long-{n:02}.txt"), line.repeat(600));
    }
    let size = std::fs::metadata(workspace.database()).unwrap().len();
    for room in [size + 300_000, size, 0] {
        workspace.unchanged(|| with_room(&workspace, room, "sync wd in").fails(1, "full"));
        workspace.show();
    }
    workspace.factum("verify").ok();
    workspace.sync();
    workspace.factum("show wd").exits(4);
    for room in [200_000, 0] {
        with_room(&workspace, room, "build wd").fails(1, "full");
        workspace.factum("show wd").exits(4);
    }
    workspace.build();
    workspace.show();
    workspace.factum("verify").ok();
}

#[test]
fn an_init_that_failed_can_be_done_again() {
    for room in [0, 8_192, 100_000] {
        let workspace = Workspace::bare();
        with_room(&workspace, room, "init").fails(1, "full");
        workspace.factum("init").ok();
        workspace.factum("case new wd").ok();
    }
}
