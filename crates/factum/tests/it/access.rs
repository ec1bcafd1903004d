//! Who sees what: nothing of what a reader may not see shows in any command, whatever the exit code.

use crate::support::{CASE, LETTERS, Ran, Workspace, claims};

/// A word that stands in one document only, and that document's name.
const MARKER: &str = "Quetzalcoatl";
const SECRET: &str = "zanzibar-memo.txt";
const MEMO: &str = "Agent Quetzalcoatl inspected the cellar on 7 March 2026. The safe behind the panel was empty.\n";
/// Another word of the memo's second version.
const LATER: &str = "The courier Xolotl took the second key on 11 March 2026.\n";

/// Three letters and the memo.
fn with_memo() -> Workspace {
    let workspace = Workspace::with(&LETTERS);
    workspace.write(SECRET, MEMO);
    workspace.sync();
    workspace
}

/// The same, granted to the broker whole and built by it: `run-000001`.
fn granted() -> Workspace {
    let workspace = with_memo();
    workspace.factum("grant wd --to broker").ok();
    workspace.factum("build wd --as broker").ok();
    workspace
}

/// Every reading command a principal can give, on these runs.
fn readings(runs: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = [
        "show wd",
        "show wd --format md",
        "show wd --format html",
        "status",
        "status wd",
        "why wd",
        "diff wd",
        "history wd",
        "ledger wd",
        "export texts wd",
        "export prov wd",
        "verify",
        "verify wd",
    ]
    .map(str::to_owned)
    .into();
    for (n, run) in runs.iter().enumerate() {
        lines.push(format!("export run {run}"));
        lines.push(format!("export prov {run}"));
        lines.push(format!("verify {run}"));
        for other in &runs[n..] {
            lines.push(format!("compare {run} {other}"));
            lines.push(format!("diff wd {run} {other}"));
        }
    }
    // In JSON there is all that there is in text, and more.
    let json: Vec<String> = lines
        .iter()
        .skip(3)
        .map(|line| format!("{line} --json"))
        .collect();
    lines.extend(json);
    lines.push("show wd --json".to_owned());
    lines.push("export prov wd --format turtle".to_owned());
    for moment in ["3", "4", "5", "6", "2999-01-01"] {
        lines.push(format!("show wd --as-of {moment} --json"));
    }
    lines
}

/// Runs every reading command as a principal.
fn read_all(workspace: &Workspace, principal: &str, runs: &[&str]) -> Vec<Ran> {
    let all: Vec<Ran> = readings(runs)
        .iter()
        .map(|line| workspace.factum(&format!("{line} --as {principal}")))
        .collect();
    for ran in &all {
        assert!(
            ran.code.is_some() && !ran.stderr.contains("panicked"),
            "{ran:#?}"
        );
    }
    all
}

#[track_caller]
fn assert_nowhere(all: &[Ran], words: &[&str]) {
    for ran in all {
        for word in words {
            assert!(!ran.everything().contains(word), "{word} shows in {ran:#?}");
        }
    }
}

/// Runs whose snapshots name a revoked document's slot, as their keys need it; its text is not there.
fn except_exports<'r>(all: &'r [Ran], run: &str) -> Vec<Ran> {
    let exports = format!("\"export\" \"run\" \"{run}\"");
    let others = |ran: &&'r Ran| !ran.line.contains(&exports);
    all.iter().filter(others).cloned().collect()
}

#[test]
fn a_principal_sees_nothing_until_granted() {
    let workspace = with_memo();
    workspace.build();
    assert!(
        claims(&workspace.show())
            .iter()
            .any(|claim| claim.contains(MARKER))
    );
    let all = read_all(&workspace, "broker", &["run-000001"]);
    for ran in &all {
        let list = ran.line.contains("\"status\" \"--") || ran.line.contains("\"verify\" \"--");
        let expected = if list { 0 } else { 7 };
        assert_eq!(ran.code, Some(expected), "{ran:#?}");
    }
    assert_nowhere(&all, &[MARKER, SECRET, "a.txt", "hose", "narrative"]);
    let cases = workspace.factum("status --as broker --json").ok().json();
    assert_eq!(cases["cases"], serde_json::json!([]));
}

#[test]
fn an_unknown_case_and_a_forbidden_one_look_alike() {
    let workspace = with_memo();
    workspace.build();
    workspace.factum("case new granted").ok();
    workspace.factum("grant granted --to broker").ok();
    let commands = [
        "show CASE",
        "show CASE --as-of 1",
        "show CASE --as-of 99",
        "status CASE",
        "why CASE",
        "diff CASE",
        "diff CASE run-000001 run-000002",
        "history CASE",
        "ledger CASE",
        "export texts CASE",
        "verify CASE",
        "build CASE",
        "build CASE --full",
        "withdraw CASE a.txt",
        "withdraw CASE no.txt",
        "reinstate CASE a.txt",
        "grant CASE --to broker",
        "revoke CASE a.txt --from local",
        "add CASE in/a.txt",
        "sync CASE in",
        "case new CASE",
    ];
    for command in commands {
        for json in ["", " --json"] {
            let line = format!("{command}{json} --as broker");
            let forbidden = workspace.factum(&line.replace("CASE", CASE)).exits(7);
            let unknown = workspace.factum(&line.replace("CASE", "nowhere")).exits(7);
            let name = |text: &str, case: &str| {
                text.replace(&format!("\\\"{case}\\\""), "CASE")
                    .replace(&format!("{case:?}"), "CASE")
            };
            assert_eq!(
                name(&forbidden.stdout, CASE),
                name(&unknown.stdout, "nowhere"),
                "{line}"
            );
            assert_eq!(
                name(&forbidden.stderr, CASE),
                name(&unknown.stderr, "nowhere"),
                "{line}"
            );
        }
    }
    // So do another's run and one that never was.
    for command in ["export run RUN", "verify RUN", "compare RUN RUN"] {
        let line = format!("{command} --as broker");
        let hidden = workspace.factum(&line.replace("RUN", "run-000001"));
        let unknown = workspace.factum(&line.replace("RUN", "run-000077"));
        assert_eq!(hidden.code, unknown.code, "{line}");
        let name = |text: &str, run: &str| text.replace(run, "RUN");
        assert_eq!(
            name(&hidden.stderr, "run-000001"),
            name(&unknown.stderr, "run-000077"),
            "{line}"
        );
    }
}

#[test]
fn only_the_owner_writes() {
    let workspace = granted();
    workspace.unchanged(|| {
        for line in [
            "withdraw wd a.txt",
            "withdraw wd nothing.txt",
            "reinstate wd a.txt",
            "grant wd --to broker",
            "grant wd a.txt --to friend",
            "revoke wd --from local",
            "add wd in/a.txt",
            "sync wd in",
            "case new mine",
            "init",
        ] {
            workspace
                .factum(&format!("{line} --as broker"))
                .fails(7, "only its owner may");
        }
    });
}

#[test]
fn grants_of_single_documents_show_those_alone() {
    let workspace = with_memo();
    workspace.factum("grant wd a.txt c.txt --to broker").ok();
    workspace.factum("build wd --as broker").ok();
    let summary = workspace.factum("show wd --json --as broker").ok().json();
    assert_eq!(claims(&summary).len(), 4);
    assert_eq!(summary["principal"], "broker");
    let all = read_all(&workspace, "broker", &["run-000001"]);
    assert_nowhere(&all, &[MARKER, SECRET, "b.txt", "insurer"]);
    // What it has no slot for does not make its summary stale.
    workspace.write("b.txt", "The insurer refused the claim on 8 March 2026.\n");
    workspace.write("new.txt", "A new document stands here.\n");
    workspace.sync();
    workspace.factum(&format!("withdraw wd {SECRET}")).ok();
    workspace.factum("show wd --as broker").ok();
    workspace.factum("verify wd --as broker").ok();
    workspace.unchanged(|| workspace.factum("grant wd a.txt --to broker").ok());
}

#[test]
fn a_whole_case_grant_covers_later_documents() {
    let workspace = granted();
    workspace.write("d.txt", "The caretaker closed the valve at nine.\n");
    workspace.sync();
    workspace.factum("show wd --as broker").exits(4);
    workspace.factum("build wd --as broker").ok();
    let summary = workspace.factum("show wd --json --as broker").ok().json();
    assert!(
        claims(&summary)
            .iter()
            .any(|claim| claim.contains("caretaker"))
    );
}

#[test]
fn a_revoked_document_shows_nowhere_from_the_next_command_on() {
    let workspace = granted();
    let words = [MARKER, SECRET, "safe behind the panel"];
    // Before: it is there, so that its absence means something.
    let before = workspace.factum("show wd --as broker").ok().everything();
    assert!(words.iter().all(|word| before.contains(word)));

    workspace
        .factum(&format!("revoke wd {SECRET} --from broker"))
        .ok();
    let event = workspace.last_event();
    let refused = workspace.factum("show wd --as broker").exits(4);
    assert!(
        refused
            .stderr
            .contains(&format!("access changed (event {event})")),
        "{refused:#?}"
    );
    let refusal = workspace
        .factum("show wd --json --as broker")
        .exits(4)
        .json();
    assert_eq!(refusal["status"], "STALE");
    assert_eq!(refusal["reasons"].as_array().unwrap().len(), 1);
    assert_eq!(
        refusal["reasons"][0]["message"],
        format!("access changed (event {event})")
    );
    assert!(refusal["reasons"][0].get("doc_id").is_none());
    assert_nowhere(&read_all(&workspace, "broker", &["run-000001"]), &words);
    workspace
        .factum("export run run-000001 --as broker")
        .fails(7, "may no longer see");
    let then = format!("show wd --as-of {} --as broker", event - 1);
    workspace.factum(&then).fails(7, "may no longer see");
    let forbidden = workspace.factum(&format!("{then} --json")).exits(7).json();
    assert_eq!(forbidden["status"], "FORBIDDEN");

    let build = workspace.factum("build wd --json --as broker").ok();
    assert_nowhere(std::slice::from_ref(&build), &words);
    assert_eq!(build.json()["counts"]["recomputed"], 2);
    assert_eq!(build.json()["counts"]["reused"], 3);
    let all = read_all(&workspace, "broker", &["run-000001", "run-000002"]);
    assert_nowhere(&except_exports(&all, "run-000002"), &words);
    assert_nowhere(&all, &[MARKER, "safe behind the panel"]);
    let summary = workspace.factum("show wd --json --as broker").ok().json();
    assert_eq!(claims(&summary).len(), 6);
    // The fall of its claims is told, with its cause and without its words.
    let diff = workspace
        .factum("diff wd run-000001 run-000002 --json --as broker")
        .ok()
        .json();
    assert_eq!(diff["removed_hidden"].as_array().unwrap().len(), 2);
    assert_eq!(diff["removed_hidden"][0]["cause"]["event"], event);
    workspace.factum("verify wd --as broker").ok();

    // The owner's view is as it was.
    workspace.build();
    assert!(
        claims(&workspace.show())
            .iter()
            .any(|claim| claim.contains(MARKER))
    );
    workspace.factum("verify").ok();
}

#[test]
fn the_owner_does_not_notice_what_is_granted_and_revoked_to_others() {
    let workspace = with_memo();
    workspace.build();
    let before = workspace.show();
    for line in [
        "grant wd --to broker",
        "revoke wd a.txt --from broker",
        "revoke wd --from broker",
    ] {
        workspace.factum(line).ok();
        let after = workspace.show();
        assert_eq!(after["root"], before["root"], "{line}");
        assert_eq!(after["claims"], before["claims"], "{line}");
    }
}

#[test]
fn later_versions_of_a_revoked_document_do_not_show_through() {
    let workspace = granted();
    workspace
        .factum(&format!("revoke wd {SECRET} --from broker"))
        .ok();
    workspace.factum("build wd --as broker").ok();
    let words = [MARKER, "Xolotl", SECRET];
    for change in 0..4 {
        match change {
            0 => {
                workspace.write(SECRET, LATER);
                workspace.sync();
            }
            1 => {
                workspace.factum(&format!("withdraw wd {SECRET}")).ok();
            }
            2 => {
                workspace.factum(&format!("reinstate wd {SECRET}")).ok();
            }
            _ => {
                workspace.remove(SECRET);
                workspace.sync();
            }
        }
        let mut all = vec![workspace.factum("show wd --as broker").ok()];
        for command in ["why", "status", "history", "export texts", "ledger"] {
            all.push(
                workspace
                    .factum(&format!("{command} wd --json --as broker"))
                    .ok(),
            );
        }
        if change % 2 == 0 {
            all.extend(read_all(
                &workspace,
                "broker",
                &["run-000001", "run-000002"],
            ));
        }
        assert_nowhere(&except_exports(&all, "run-000002"), &words);
        assert_nowhere(&all, &[MARKER, "Xolotl"]);
        workspace.factum("verify wd --as broker").ok();
    }
    workspace.factum("verify").ok();
}

#[test]
fn a_hidden_document_that_changes_its_place_gives_no_stale_without_a_reason() {
    let workspace = granted();
    workspace
        .factum(&format!("revoke wd {SECRET} --from broker"))
        .ok();
    workspace.factum("build wd --as broker").ok();
    workspace.write("factum.toml", format!("documents = [\"{SECRET}\"]\n"));
    workspace.sync();
    let shown = workspace.factum("show wd --json --as broker");
    match shown.code {
        Some(0) => {}
        Some(4) => {
            let reasons = shown.json()["reasons"].as_array().unwrap().clone();
            assert!(!reasons.is_empty(), "{shown:#?}");
        }
        _ => panic!("{shown:#?}"),
    }
    assert_nowhere(&[shown], &[SECRET, MARKER]);
    workspace.factum("build wd --as broker").ok();
    workspace.factum("show wd --as broker").ok();
    workspace.factum("verify").ok();
}

#[test]
fn a_regranted_document_is_seen_again_as_it_is_now() {
    let workspace = granted();
    workspace
        .factum(&format!("revoke wd {SECRET} --from broker"))
        .ok();
    workspace.factum("build wd --as broker").ok();
    workspace.write(SECRET, LATER);
    workspace.sync();
    workspace
        .factum(&format!("grant wd {SECRET} --to broker"))
        .ok();
    workspace.factum("show wd --as broker").exits(4);
    workspace.factum("build wd --as broker").ok();
    let summary = workspace.factum("show wd --json --as broker").ok().json();
    assert!(
        claims(&summary)
            .iter()
            .any(|claim| claim.contains("Xolotl"))
    );
    assert!(!claims(&summary).iter().any(|claim| claim.contains(MARKER)));
    // All of the first run may be seen again.
    workspace.factum("export run run-000001 --as broker").ok();
    workspace.factum("verify").ok();
}

#[test]
fn a_revoked_case_is_as_if_it_had_never_been() {
    let workspace = granted();
    let before = workspace.factum("show wd --as broker").ok().everything();
    assert!(before.contains(MARKER));
    workspace.factum("revoke wd --from broker").ok();
    let all = read_all(&workspace, "broker", &["run-000001"]);
    assert_nowhere(&all, &[MARKER, SECRET, "a.txt", "hose", "narrative"]);
    for ran in &all {
        let list = ran.line.contains("\"status\" \"--") || ran.line.contains("\"verify\" \"--");
        assert_eq!(ran.code, Some(if list { 0 } else { 7 }), "{ran:#?}");
    }
    workspace.factum("build wd --as broker").exits(7);
    workspace.factum("verify").ok();
    workspace.unchanged(|| workspace.factum("revoke wd --from broker").ok());
}

#[test]
fn documents_granted_after_a_whole_revocation_are_all_there_is() {
    let workspace = granted();
    workspace.factum("revoke wd --from broker").ok();
    workspace.factum("grant wd a.txt --to broker").ok();
    workspace.factum("show wd --as broker").exits(4);
    workspace.factum("build wd --as broker").ok();
    let summary = workspace.factum("show wd --json --as broker").ok().json();
    assert_eq!(claims(&summary).len(), 2);
    let all = read_all(&workspace, "broker", &["run-000001", "run-000002"]);
    assert_nowhere(
        &except_exports(&all, "run-000002"),
        &[MARKER, SECRET, "b.txt", "insurer"],
    );
    assert_nowhere(&all, &[MARKER, "insurer"]);
    workspace.factum("verify").ok();
}

#[test]
fn a_withdrawn_documents_text_shows_nowhere_not_even_for_the_owner() {
    let workspace = with_memo();
    workspace.build();
    workspace.factum("grant wd --to broker").ok();
    workspace.factum("build wd --as broker").ok();
    workspace.write(SECRET, format!("{MEMO}{LATER}"));
    workspace.sync();
    workspace.build();
    workspace.factum(&format!("withdraw wd {SECRET}")).ok();
    let words = [MARKER, "Xolotl", "safe behind the panel"];
    let runs = ["run-000001", "run-000002", "run-000003"];
    for principal in ["local", "broker"] {
        assert_nowhere(&read_all(&workspace, principal, &runs), &words);
    }
    for run in ["run-000001", "run-000003"] {
        workspace
            .factum(&format!("export run {run}"))
            .fails(7, "may no longer see");
    }
    workspace.build();
    workspace.factum("build wd --as broker").ok();
    for principal in ["local", "broker"] {
        assert_nowhere(&read_all(&workspace, principal, &runs), &words);
    }
    let diff = workspace.factum("diff wd --json").ok().json();
    assert!(
        !diff["removed_hidden"].as_array().unwrap().is_empty(),
        "{diff:#}"
    );
    workspace.factum("verify").ok();

    // Reinstated, its history may be read again.
    workspace.factum(&format!("reinstate wd {SECRET}")).ok();
    workspace.factum("export run run-000001").ok();
    let then = workspace.factum("show wd --as-of 4 --json").ok().json();
    assert!(claims(&then).iter().any(|claim| claim.contains(MARKER)));
}

#[test]
fn the_owner_can_be_kept_from_a_document_too() {
    let workspace = with_memo();
    workspace.build();
    workspace
        .factum(&format!("revoke wd {SECRET} --from local"))
        .ok();
    let words = [MARKER, "safe behind the panel"];
    assert_nowhere(&read_all(&workspace, "local", &["run-000001"]), &words);
    workspace.build();
    assert_nowhere(
        &read_all(&workspace, "local", &["run-000001", "run-000002"]),
        &words,
    );
    assert_eq!(claims(&workspace.show()).len(), 6);
    workspace.factum("verify").ok();
    workspace
        .factum(&format!("grant wd {SECRET} --to local"))
        .ok();
    workspace.build();
    assert_eq!(claims(&workspace.show()).len(), 8);
    workspace.factum("verify").ok();
}

#[test]
fn a_run_of_another_principal_is_not_read_by_a_third() {
    let workspace = granted();
    workspace.factum("grant wd --to auditor").ok();
    workspace.factum("build wd --as auditor").ok();
    workspace
        .factum("export run run-000001 --as auditor")
        .fails(7, "run-000001");
    workspace
        .factum("compare run-000001 run-000002 --as auditor")
        .fails(7, "run-000001");
    // The owner may, as far as the owner may see its sources.
    workspace.factum("export run run-000001").ok();
    workspace.factum("compare run-000001 run-000002").exits(1);
}

#[test]
fn diff_tells_nothing_of_what_happened_to_a_hidden_document() {
    let workspace = granted();
    workspace.factum("build wd --as broker").ok();
    workspace.factum("revoke wd b.txt --from broker").ok();
    workspace.write(
        "b.txt",
        "The insurer received another claim on 9 May 2026.\n",
    );
    workspace.sync();
    let publication = workspace.factum("status wd --json").ok().json()["event"].clone();
    workspace.factum("build wd --as broker").ok();
    let diff = workspace.factum("diff wd --json --as broker").ok();
    let causes: Vec<serde_json::Value> = ["added", "removed", "changed", "moved", "removed_hidden"]
        .iter()
        .flat_map(|list| diff.json()[*list].as_array().unwrap().clone())
        .map(|change| change["cause"].clone())
        .collect();
    assert!(!causes.is_empty());
    for cause in &causes {
        assert_ne!(cause["event"], publication, "{diff:#?}");
    }
    assert!(!diff.stdout.contains("published"), "{diff:#?}");
}

#[test]
fn runs_with_hidden_sources_are_not_compared() {
    let workspace = granted();
    workspace.factum("build wd --as broker").ok();
    workspace.factum("revoke wd b.txt --from broker").ok();
    workspace.factum("build wd --as broker").ok();
    let runs = workspace
        .factum("history wd --json --as broker")
        .ok()
        .json();
    let ids: Vec<String> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["run_id"].as_str().unwrap().to_owned())
        .collect();
    let line = format!("compare {} {} --as broker", ids[0], ids[ids.len() - 1]);
    workspace.factum(&line).fails(7, "no longer see");
}
