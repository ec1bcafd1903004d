//! A process may end at any instant: what was finished is kept, nothing half-made is served.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{FACTUM, Seeded, Workspace, assert_format, claims, many, python};

/// Documents of a case that takes long enough to be interrupted.
const DOCUMENTS: usize = 400;

fn start(workspace: &Workspace, line: &str) -> Child {
    Command::new(FACTUM)
        .args(line.split_whitespace())
        .current_dir(workspace.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for a started command to end well.
fn end_well(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Kills a command after a while, as the power does. True if it was still running.
fn kill_after(mut child: Child, delay: Duration) -> bool {
    std::thread::sleep(delay);
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

/// A case file in sync with a folder, and how long its first build takes.
fn large() -> (Workspace, Duration) {
    let workspace = Workspace::with(&many(DOCUMENTS));
    workspace.factum("case new twin").ok();
    workspace.factum("sync twin in").ok();
    let begun = Instant::now();
    workspace.factum("build twin").ok();
    (workspace, begun.elapsed())
}

/// Keys of the nodes of a case file that have a result.
fn finished(workspace: &Workspace) -> BTreeSet<String> {
    python(
        "import sqlite3, sys\n\
         db = sqlite3.connect(sys.argv[1])\n\
         for row in db.execute(\"SELECT key FROM results JOIN cases USING (case_no) WHERE case_id = 'wd'\"):\n\
         \x20   print(row[0].hex())",
        &workspace.database(),
        &[],
    )
    .lines()
    .map(str::to_owned)
    .collect()
}

#[test]
fn a_killed_build_loses_nothing_finished_and_serves_nothing_half_made() {
    let (workspace, whole) = large();
    let mut random = Seeded(2291);
    let mut killed = 0;
    for round in 0..12_u32 {
        let permille = round * 90 + u32::try_from(random.below(90)).unwrap();
        let line = if round % 3 == 2 {
            "build wd --full"
        } else {
            "build wd"
        };
        if kill_after(start(&workspace, line), whole * permille / 1000) {
            killed += 1;
        }
        let shown = workspace.factum("show wd --json");
        match shown.code {
            Some(0) => {
                assert_eq!(claims(&shown.json()).len(), 16);
                if round % 4 == 0 {
                    workspace.factum("verify wd").ok();
                }
                // Stale again, for the rounds to come.
                workspace.write(
                    "report-0200.txt",
                    format!("Report 200 was rewritten {round} times.\n"),
                );
                workspace.sync();
                workspace.factum("show wd").exits(4);
            }
            Some(4) => assert!(shown.json().get("claims").is_none()),
            _ => panic!("{shown:#?}"),
        }
    }
    assert!(killed >= 4, "only {killed} builds were killed in time");
    let before = finished(&workspace);
    let build = workspace.build();
    let run = format!("export run {}", build["run_id"].as_str().unwrap());
    let run = workspace.factum(&run).ok().json();
    let nodes = run["nodes"].as_array().unwrap();
    let missing = nodes
        .iter()
        .filter(|node| !before.contains(node["key"].as_str().unwrap()))
        .count();
    assert_eq!(build["counts"]["recomputed"], missing);
    assert!(missing < nodes.len(), "no earlier round finished a group");
    let full = workspace.factum("build wd --full --json").ok().json();
    assert_eq!(full["counts"]["recomputed"], full["counts"]["nodes"]);
    let compare = format!(
        "compare {} {}",
        build["run_id"].as_str().unwrap(),
        full["run_id"].as_str().unwrap()
    );
    workspace.factum(&compare).ok();
    workspace.factum("verify wd").ok();
}

#[test]
fn ctrl_c_stops_a_build_with_130_and_keeps_what_was_finished() {
    let (workspace, whole) = large();
    let mut codes = Vec::new();
    for attempt in 0..12 {
        let child = start(&workspace, "build wd --full --json");
        std::thread::sleep(whole * (30 + 5 * (attempt % 6)) / 100);
        let interrupt = format!("kill -INT {}", child.id());
        let sent = Command::new("sh")
            .args(["-c", &interrupt])
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        codes.push(output.status.code());
        if output.status.code() == Some(130) {
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(stderr.contains("interrupted"), "{stderr}");
            let error: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_format(&error, "factum/error/1", "error");
            assert_eq!(error["error"]["kind"], "interrupted");
            break;
        }
        assert!(!sent.success() || output.status.success() || output.status.code().is_none());
    }
    assert!(codes.contains(&Some(130)), "{codes:?}");
    let history = workspace.factum("history wd --json").ok().json();
    let states: Vec<&str> = history["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["state"].as_str().unwrap())
        .collect();
    assert!(states.contains(&"unfinished"), "{states:?}");
    workspace.build();
    assert_eq!(claims(&workspace.show()).len(), 16);
}

#[test]
fn a_killed_sync_happened_whole_or_not_at_all() {
    let workspace = Workspace::with(&many(DOCUMENTS));
    let begun = Instant::now();
    workspace.factum("case new timed").ok();
    workspace.factum("sync timed in").ok();
    let whole = begun.elapsed();
    let mut random = Seeded(14);
    let mut outcomes = BTreeSet::new();
    for round in 0..8_u32 {
        let case = format!("case-{round}");
        workspace.factum(&format!("case new {case}")).ok();
        let permille = round * 130 + u32::try_from(random.below(130)).unwrap();
        kill_after(
            start(&workspace, &format!("sync {case} in")),
            whole * permille / 1000,
        );
        let status = workspace
            .factum(&format!("status {case} --json"))
            .ok()
            .json();
        let event = status["event"].as_u64().unwrap();
        let documents = status["documents"].as_array().unwrap().len();
        assert_eq!(event, documents as u64);
        assert!(documents == 0 || documents == DOCUMENTS, "{documents}");
        outcomes.insert(documents);
        workspace.factum(&format!("verify {case}")).ok();
    }
    assert!(outcomes.contains(&0), "no sync was killed in time");
    workspace.factum("sync case-0 in").ok();
    workspace.factum("build case-0").ok();
    workspace.factum("show case-0").ok();
}

/// Builds twice at the same time, and gives both reports.
fn two_at_once(workspace: &Workspace, lines: [&str; 2]) -> [serde_json::Value; 2] {
    workspace.write(
        "report-0060.txt",
        format!("Report 60 was rewritten for {}.\n", lines.join(" and ")),
    );
    workspace.sync();
    let children = lines.map(|line| start(workspace, line));
    let reports = children.map(|child| serde_json::from_str(&end_well(child)).unwrap());
    let [first, second]: &[serde_json::Value; 2] = &reports;
    assert_ne!(first["run_id"], second["run_id"]);
    reports
}

const AT_ONCE: [[&str; 2]; 3] = [
    ["build wd --json", "build wd --json"],
    ["build wd --full --json", "build wd --full --json"],
    ["build wd --json", "build wd --json --as broker"],
];

#[test]
fn two_builds_at_once_both_end_right() {
    let workspace = Workspace::with(&many(120));
    workspace.factum("grant wd --to broker").ok();
    for lines in AT_ONCE {
        let reports = two_at_once(&workspace, lines);
        assert_eq!(workspace.show()["status"], "CURRENT");
        let ids: Vec<&str> = reports
            .iter()
            .map(|report| report["run_id"].as_str().unwrap())
            .collect();
        for id in &ids {
            workspace.factum(&format!("export run {id}")).ok();
        }
        if !lines[1].contains("broker") {
            assert_eq!(reports[0]["root"], reports[1]["root"]);
            workspace.factum(&format!("compare {}", ids.join(" "))).ok();
        }
    }
    workspace.factum("show wd --as broker").ok();
}

#[test]
fn builds_at_once_count_what_each_of_them_made() {
    let workspace = Workspace::with(&many(120));
    workspace.factum("grant wd --to broker").ok();
    for lines in AT_ONCE {
        for report in two_at_once(&workspace, lines) {
            workspace
                .factum(&format!("verify {}", report["run_id"].as_str().unwrap()))
                .ok();
        }
    }
    workspace.factum("verify").ok();
}

#[test]
fn writers_at_once_wait_for_each_other() {
    let workspace = Workspace::built();
    let children: Vec<Child> = (0..6)
        .map(|n| {
            start(
                &workspace,
                &format!("add wd in/a.txt --as-doc copy-{n}.txt"),
            )
        })
        .collect();
    for child in children {
        end_well(child);
    }
    assert_eq!(workspace.last_event(), 9);
    let status = workspace.factum("status wd --json").ok().json();
    assert_eq!(status["documents"].as_array().unwrap().len(), 9);
    workspace.build();
    workspace.factum("verify").ok();
}

#[test]
fn what_is_revoked_while_a_build_runs_is_not_in_what_it_serves() {
    let workspace = Workspace::with(&many(DOCUMENTS));
    workspace.factum("grant wd --to broker").ok();
    for round in 0..3_u32 {
        let secret = format!("report-{:04}.txt", 390 + round);
        let build = start(&workspace, "build wd --as broker --full");
        std::thread::sleep(Duration::from_millis(u64::from(60 * round)));
        workspace
            .factum(&format!("revoke wd {secret} --from broker"))
            .ok();
        end_well(build);
        let shown = workspace.factum("show wd --as broker --json");
        assert!(matches!(shown.code, Some(0 | 4)), "{shown:#?}");
        assert!(!shown.everything().contains(&secret), "{shown:#?}");
    }
    workspace.factum("build wd --as broker").ok();
    workspace.factum("ledger wd --as broker").ok();
    workspace.factum("verify").ok();
}
