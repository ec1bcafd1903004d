//! Faults that users met in comparable systems, each with the test that it can't happen here.

use std::fs::File;

use crate::support::{LETTERS, Workspace, claims, many, paragraphs, python, strings};

fn node_specs(run: &serde_json::Value, kind: &str) -> Vec<serde_json::Value> {
    let nodes = run["nodes"].as_array().unwrap();
    nodes
        .iter()
        .filter(|node| node["kind"] == kind)
        .map(|node| node["spec"].clone())
        .collect()
}

// OpenTranscribe #920: answered from a cache after a revocation; the revision moved before the rights.
#[test]
fn access_revision_moves_with_the_grant_and_is_in_the_key() {
    let workspace = Workspace::with(&LETTERS);
    workspace.factum("grant wd --to broker").ok();
    workspace.factum("build wd --as broker").ok();
    let first = workspace
        .factum("export run run-000001 --as broker")
        .ok()
        .json();
    for spec in node_specs(&first, "leaf") {
        assert_eq!(spec["access_revision"], 4);
        assert_eq!(spec["principal"], "broker");
    }
    workspace.factum("revoke wd b.txt --from broker").ok();
    workspace.factum("grant wd b.txt --to broker").ok();
    // The same documents in the same versions may be seen, and yet the key is another.
    workspace.factum("show wd --as broker").exits(4);
    workspace.factum("build wd --as broker").ok();
    let second = workspace
        .factum("export run run-000002 --as broker")
        .ok()
        .json();
    assert_ne!(first["root"], second["root"]);
    let revisions: Vec<u64> = node_specs(&second, "leaf")
        .iter()
        .map(|spec| spec["access_revision"].as_u64().unwrap())
        .collect();
    assert_eq!(revisions, [4, 6, 4]);
    // The event, the right and the revision are one transaction: the event's number is the revision.
    let rows = python(
        "import sqlite3, sys\n\
         db = sqlite3.connect(sys.argv[1])\n\
         print(db.execute('SELECT granted, revision FROM doc_access').fetchall())\n\
         print(db.execute('SELECT last_event, access_revision FROM cases').fetchall())",
        &workspace.database(),
        &[],
    );
    assert_eq!(rows, "[(1, 6)]\n[(6, 6)]\n");
}

// Graphiti #1837, GraphRAG #1637: a removed document's fact lives on in the summary.
#[test]
fn removed_documents_fact_does_not_live_on() {
    let workspace = Workspace::with(&many(40));
    workspace.write(
        "report-0020.txt",
        "The basement of number 20 burned down in the night.\n",
    );
    workspace.sync();
    workspace.build();
    let ledger = |line: &str| workspace.factum(line).ok().stdout;
    assert!(ledger("ledger wd").contains("burned down"));
    workspace.remove("report-0020.txt");
    workspace.sync();
    let build = workspace.build();
    assert!(
        build["counts"]["recomputed"].as_u64().unwrap() < 6,
        "{build:#}"
    );
    for line in [
        "ledger wd",
        "show wd",
        "show wd --json",
        "export run run-000002",
        "export texts wd",
    ] {
        assert!(
            !workspace
                .factum(line)
                .ok()
                .everything()
                .contains("burned down"),
            "{line}"
        );
    }
    // Nor in what nodes hand on below the root.
    let run = workspace.factum("export run run-000002").ok().json();
    assert!(!run.to_string().contains("burned down"));
}

// GraphRAG update: an edited document of the same title is skipped; deletions are found, then thrown away.
#[test]
fn identity_is_not_a_title() {
    let workspace = Workspace::with(&[
        ("one.md", "# Report\n\nThe first flat was dry on Monday.\n"),
        ("two.md", "# Report\n\nThe second flat was wet on Monday.\n"),
    ]);
    workspace.build();
    assert_eq!(claims(&workspace.show()).len(), 2);
    workspace.write("one.md", "# Report\n\nThe first flat was wet on Tuesday.\n");
    assert_eq!(workspace.sync()["published"][0]["version"], 2);
    workspace.build();
    let now = claims(&workspace.show());
    assert_eq!(
        now,
        [
            "The first flat was wet on Tuesday.",
            "The second flat was wet on Monday."
        ]
    );
    // The same text under another name is another document, and an end of the old one.
    std::fs::rename(workspace.at("in/one.md"), workspace.at("in/three.md")).unwrap();
    let sync = workspace.sync();
    assert_eq!(strings(&sync["withdrawn"]), ["one.md"]);
    assert_eq!(sync["published"][0]["doc_id"], "three.md");
}

// DocETL checkpoints: a file edited in place reloads old results.
#[test]
fn edited_in_place_file_is_noticed() {
    let workspace = Workspace::built();
    let path = workspace.at("in/b.txt");
    let before = std::fs::metadata(&path).unwrap();
    // As many bytes, and the time of the last change set back.
    std::fs::write(&path, LETTERS[1].1.replace("5 March", "6 March")).unwrap();
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(before.modified().unwrap())
        .unwrap();
    let after = std::fs::metadata(&path).unwrap();
    assert_eq!(
        (before.len(), before.modified().unwrap()),
        (after.len(), after.modified().unwrap())
    );
    assert_eq!(workspace.sync()["published"][0]["version"], 2);
    workspace.factum("show wd").exits(4);
    workspace.build();
    assert!(
        claims(&workspace.show())
            .iter()
            .any(|claim| claim.contains("6 March"))
    );
}

// RAGFlow, opensanctions #4958, GraphRAG: model, template or endpoint missing from the cache key.
#[test]
fn the_whole_identity_is_in_the_key() {
    let workspace = Workspace::new();
    workspace.profile("mine", "extends = \"facts\"\n");
    workspace.factum("case new wd --profile mine").ok();
    workspace.write("a.txt", "Date of loss: 3 March 2026\nColour: red\n");
    workspace.sync();
    workspace.build();
    let run = workspace.factum("export run run-000001").ok().json();
    for kind in ["leaf", "reduction"] {
        let spec = &node_specs(&run, kind)[0]["transformation"];
        assert_eq!(spec["generator"]["kind"], "extractive");
        assert!(spec["generator"]["version"].is_u64() || spec["generator"]["version"].is_string());
        assert!(spec["support"]["version"].is_u64() || spec["support"]["version"].is_string());
        assert!(
            spec["profile"]["rules"][0]["pattern"].is_string(),
            "{spec:#}"
        );
        assert!(spec["profile"]["claim"].is_object(), "{spec:#}");
    }
    let mut roots = vec![run["root"].clone()];
    for change in [
        "[extraction]\nleaf_claims = 1",
        "[extraction]\nnode_claims = 1",
        "[claim]\nreads = \"{value}!\"",
        "[segments]\nmax_chars = 9000",
        "[support]\npolicy = \"flag\"",
        "[[rules]]\nid = \"other\"\npattern = '(?m)^Colour: (?<value>\\w+)$'",
    ] {
        workspace.profile("mine", &format!("extends = \"facts\"\n{change}\n"));
        let refusal = workspace.factum("show wd --json").exits(4).json();
        assert_eq!(
            refusal["reasons"][0]["kind"], "profile",
            "{change}: {refusal:#}"
        );
        let root = workspace.build()["root"].clone();
        assert!(!roots.contains(&root), "{change}");
        roots.push(root);
    }
    // Back to what it was: the first summary is current again, and nothing is made.
    workspace.profile("mine", "extends = \"facts\"\n");
    let build = workspace.build();
    assert_eq!(build["root"], roots[0]);
    assert_eq!(build["counts"]["recomputed"], 0);
    workspace.factum("verify").ok();
}

// LangExtract #334, #81: offsets wrong or null on Japanese and other non-ASCII text.
#[test]
fn offsets_are_code_points_in_every_script() {
    let texts = [
        (
            "ja.txt",
            "浴室の水道管が破裂した。台所の床は完全に水浸しになった。",
        ),
        (
            "emoji.txt",
            "👩‍🔧 The plumber came on Monday 🎉. She fixed the pipe 👍🏽 before noon.",
        ),
        (
            "nfd.txt",
            "The cafe\u{301} flooded on Monday.\r\nThe cafe\u{301} owner called a plumber.",
        ),
    ];
    let workspace = Workspace::with(&texts);
    workspace.build();
    let summary = workspace.show();
    let mut seen = 0;
    for one in summary["evidence"].as_object().unwrap().values() {
        let (_, text) = texts
            .iter()
            .find(|(name, _)| one["doc_id"] == *name)
            .unwrap();
        let [start, end] =
            ["start", "end"].map(|at| usize::try_from(one[at].as_u64().unwrap()).unwrap());
        let cut: String = text.chars().skip(start).take(end - start).collect();
        assert_eq!(one["quote"], cut);
        seen += 1;
    }
    assert_eq!(seen, 6);
}

// RAGFlow #17815, OpenContracts #2391: an update rewrote what an old citation pointed at.
#[test]
fn old_citation_still_opens_the_text_as_cited() {
    let workspace = Workspace::built();
    let old = workspace.show();
    let cited = old["evidence"]
        .as_object()
        .unwrap()
        .values()
        .find(|one| one["doc_id"] == "b.txt")
        .unwrap()
        .clone();
    workspace.write(
        "b.txt",
        format!(
            "A line came before.\n{}",
            LETTERS[1].1.replace("5 March", "6 March")
        ),
    );
    workspace.sync();
    workspace.build();
    let texts = workspace.factum("export texts wd").ok().json();
    let version = |number: u64| {
        let versions = texts["versions"].as_array().unwrap();
        let found = versions
            .iter()
            .find(|one| one["doc_id"] == "b.txt" && one["version"] == number);
        found.unwrap()["text"].as_str().unwrap().to_owned()
    };
    let (start, end) = (
        cited["start"].as_u64().unwrap(),
        cited["end"].as_u64().unwrap(),
    );
    let opened: String = version(1)
        .chars()
        .skip(usize::try_from(start).unwrap())
        .take(usize::try_from(end - start).unwrap())
        .collect();
    assert_eq!(opened, cited["quote"].as_str().unwrap());
    assert!(version(2).starts_with("A line came before."));
    // The run that cited it says what it said, and so does history.
    let run = workspace.factum("export run run-000001").ok().json();
    let root = run["nodes"].as_array().unwrap().last().unwrap();
    assert_eq!(
        root["result"]["evidence"][cited["evidence_id"].as_str().unwrap()]["quote"],
        cited["quote"]
    );
    let then = workspace.factum("show wd --as-of 3 --json").ok().json();
    assert_eq!(then["claims"], old["claims"]);
    assert_eq!(then["evidence"], old["evidence"]);
}

// LangChain #39937: an index 3% complete while every run said success.
#[test]
fn incomplete_is_a_status_and_an_exit_code() {
    let workspace = Workspace::built();
    workspace.write("bad.txt", [0_u8, 1, 2, 3, 0, 0, 0, 255]);
    let sync = workspace.factum("sync wd in --json").exits(3);
    assert_eq!(sync.json()["refused"][0]["path"], "bad.txt");
    // Not built again is not served as if it were.
    workspace.write("d.txt", "The caretaker closed the valve at nine.\n");
    workspace.factum("sync wd in").exits(3);
    workspace.factum("show wd").exits(4);
    assert_eq!(
        workspace.factum("status wd --json").ok().json()["summary"],
        "STALE"
    );
    // A run that did not end says so, is not exported, and is not served.
    python(
        "import sqlite3, sys\n\
         db = sqlite3.connect(sys.argv[1])\n\
         db.execute('UPDATE runs SET finished_at = NULL, summary = NULL')\n\
         db.execute('DELETE FROM heads')\n\
         db.commit()",
        &workspace.database(),
        &[],
    );
    let history = workspace.factum("history wd --json").ok().json();
    assert_eq!(history["runs"][0]["state"], "unfinished");
    workspace
        .factum("export run run-000001")
        .fails(3, "run-000001");
    workspace.factum("show wd").exits(4);
}

// Onyx #991, #14334: imperfect quotes dropped in silence; numbers differ between text and list.
#[test]
fn citation_numbers_agree_between_text_and_list() {
    let workspace = Workspace::with_profile(
        "facts",
        &[
            (
                "letter.txt",
                "Date of loss: 3 March 2026\nClaim number: WD-7\nRoom: kitchen\n",
            ),
            (
                "report.txt",
                "Claim number: WD-7\nDate of loss: 3 March 2026\n",
            ),
        ],
    );
    workspace.build();
    let summary = workspace.show();
    let page = workspace.factum("show wd").ok().stdout;
    let (body, list) = page.split_once("\nCited passages\n").unwrap();
    let lines: Vec<&str> = body
        .lines()
        .filter(|line| line.contains(". ") && line.contains('['))
        .collect();
    let all = summary["claims"].as_array().unwrap();
    assert_eq!(lines.len(), all.len());
    let passages: Vec<&str> = list
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    assert_eq!(
        passages.len(),
        summary["evidence"].as_object().unwrap().len()
    );
    for (line, claim) in lines.iter().zip(all) {
        assert!(line.contains(claim["text"].as_str().unwrap()), "{line}");
        let numbers: Vec<usize> = line[line.find('[').unwrap()..]
            .split(['[', ']'])
            .filter_map(|number| number.parse().ok())
            .collect();
        let ids = strings(&claim["evidence"]);
        assert_eq!(numbers.len(), ids.len(), "{line}");
        for (number, id) in numbers.into_iter().zip(ids) {
            let passage = passages[number - 1];
            let cited = &summary["evidence"][&id];
            assert!(
                passage.trim().starts_with(&format!("[{number}] ")),
                "{passage}"
            );
            assert!(
                passage.contains(cited["doc_id"].as_str().unwrap()),
                "{passage}"
            );
            assert!(
                passage.contains(cited["quote"].as_str().unwrap()),
                "{passage}"
            );
        }
    }
}

// CocoIndex #1779: tracking tables larger than the data.
#[test]
fn storage_is_no_multiple_of_the_text_and_shared_parts_are_kept_once() {
    let workspace = Workspace::new();
    let size = || std::fs::metadata(workspace.database()).unwrap().len();
    let empty = size();
    workspace.factum("case new wd --profile facts").ok();
    let mut text = 0;
    for n in 0..100 {
        let lines = format!("House number {n}.\n\n{}", paragraphs(60));
        text += lines.len() as u64;
        workspace.write(&format!("house-{n}.txt"), lines);
    }
    workspace.sync();
    workspace.build();
    let kept = size() - empty;
    assert!(
        kept < 4 * text,
        "{kept} bytes kept for {text} bytes of text"
    );
    // The profile and its rules, which every spec holds, are in the file a few times at most.
    let bytes = std::fs::read(workspace.database()).unwrap();
    let needle = b"\"segmentation\"";
    let found = bytes
        .windows(needle.len())
        .filter(|window| window == needle)
        .count();
    assert!((1..10).contains(&found), "{found} copies");
}

// Dify #35950, #36937; PageIndex #316: summaries not made again after an update, or all of them.
#[test]
fn exactly_the_touched_nodes_are_made_again() {
    let documents = many(50);
    let workspace = Workspace::with(&documents);
    workspace.build();
    workspace.write(
        "report-0007.txt",
        "Report 7 says that the roof is sound. It was written in May.\n",
    );
    workspace.sync();
    let why = workspace.factum("why wd --json").ok().json();
    let mut foretold: Vec<String> = why["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["name"].as_str().unwrap().to_owned())
        .collect();
    let build = workspace.build();
    let run = workspace.factum("export run run-000002").ok().json();
    let nodes = run["nodes"].as_array().unwrap();
    let mut made: Vec<String> = nodes
        .iter()
        .filter(|node| node["reused"] == false)
        .map(|node| node["name"].as_str().unwrap().to_owned())
        .collect();
    // Those made are the document's leaf and all above it, and no other.
    let leaf = nodes
        .iter()
        .find(|node| node["spec"]["doc_id"] == "report-0007.txt")
        .unwrap();
    let mut path = vec![leaf["name"].as_str().unwrap().to_owned()];
    while let Some(parent) = nodes
        .iter()
        .find(|node| strings(&node["children"]).contains(path.last().unwrap()))
    {
        path.push(parent["name"].as_str().unwrap().to_owned());
    }
    let mut invalid = strings(&build["invalidation"]["nodes"]);
    for names in [&mut foretold, &mut made, &mut path, &mut invalid] {
        names.sort();
    }
    assert_eq!(made, path);
    assert_eq!(foretold, path);
    assert_eq!(invalid, path);
    assert_eq!(build["counts"]["recomputed"], made.len());
}

// Onyx: rights reach the search index 5 to 30 minutes later.
#[test]
fn rights_reach_the_next_read() {
    let workspace = Workspace::with(&LETTERS);
    workspace.factum("grant wd --to broker").ok();
    workspace.factum("build wd --as broker").ok();
    for _ in 0..3 {
        workspace.factum("show wd --as broker").ok();
        workspace.factum("revoke wd b.txt --from broker").ok();
        let texts = workspace.factum("export texts wd --as broker").ok().stdout;
        assert!(!texts.contains("b.txt"));
        workspace.factum("show wd --as broker").exits(4);
        workspace.factum("grant wd b.txt --to broker").ok();
        assert!(
            workspace
                .factum("export texts wd --as broker")
                .ok()
                .stdout
                .contains("b.txt")
        );
        workspace.factum("build wd --as broker").ok();
    }
}

// Graphiti #1728: facts retired wrongly.
#[test]
fn a_claim_falls_only_by_a_named_event() {
    let workspace = Workspace::with(&many(30));
    workspace.build();
    let before = workspace.show();
    workspace.write(
        "report-0003.txt",
        "Report 3 was replaced by a shorter one in June.\n",
    );
    workspace.remove("report-0009.txt");
    workspace.sync();
    workspace.factum("withdraw wd report-0011.txt").ok();
    workspace.build();
    let after = workspace.show();
    let diff = workspace.factum("diff wd --json").ok().json();
    let list = |name: &str| diff[name].as_array().unwrap().clone();
    let gone = list("removed").len() + list("removed_hidden").len();
    let kept = usize::try_from(diff["unchanged"].as_u64().unwrap()).unwrap();
    let both = kept + list("changed").len() + list("moved").len();
    // Every claim of both summaries is accounted for.
    assert_eq!(both + gone, claims(&before).len(), "{diff:#}");
    assert_eq!(both + list("added").len(), claims(&after).len(), "{diff:#}");
    for name in ["added", "removed", "changed", "moved", "removed_hidden"] {
        for change in list(name) {
            let event = change["cause"]["event"]
                .as_u64()
                .unwrap_or_else(|| panic!("{change:#}"));
            assert!((31..=33).contains(&event), "{change:#}");
        }
    }
}

// agentv #882: the printed verdict contradicts the exit code.
#[test]
fn the_printed_verdict_and_the_exit_code_agree() {
    let workspace = Workspace::built();
    workspace.write("b.txt", "The insurer paid.\n");
    workspace.sync();
    workspace.build();
    let equal = workspace
        .factum("compare run-000001 run-000001 --json")
        .ok();
    assert_eq!(equal.json()["equal"], true);
    let different = workspace
        .factum("compare run-000001 run-000002 --json")
        .exits(1);
    assert_eq!(different.json()["equal"], false);
    assert!(
        !different.json()["differences"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert!(
        workspace
            .factum("compare run-000001 run-000002")
            .exits(1)
            .stdout
            .contains("difference")
    );
    let clean = workspace.factum("verify --json").ok();
    assert_eq!(clean.json()["verdict"], "clean");
    python(
        "import sqlite3, sys\n\
         db = sqlite3.connect(sys.argv[1])\n\
         db.execute('UPDATE documents SET version = 7 WHERE doc_no = 1')\n\
         db.commit()",
        &workspace.database(),
        &[],
    );
    let wrong = workspace.factum("verify --json").exits(1);
    assert_eq!(wrong.json()["verdict"], "differences");
    assert!(!wrong.json()["findings"].as_array().unwrap().is_empty());
    assert!(
        workspace
            .factum("verify")
            .exits(1)
            .stdout
            .contains("DIFFERENCES")
    );
}
