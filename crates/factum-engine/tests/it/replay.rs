//! Real versioned documents, replayed in date order. Skipped, by name, where the data is absent.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::Desk;

fn data(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("FACTUM_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = root.join(folder);
    if path.join("manifest.jsonl").exists() {
        return Some(path);
    }
    println!("skipped: {} is not there", path.display());
    None
}

/// Documents with their files, oldest first.
fn versions(folder: &Path) -> Vec<(String, PathBuf)> {
    let manifest = std::fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
    let mut all: Vec<(jiff::Timestamp, String, PathBuf)> = manifest
        .lines()
        .map(|line| {
            let entry: Value = serde_json::from_str(line).unwrap();
            let text = |field: &str| entry[field].as_str().unwrap().to_owned();
            (
                text("date").parse().unwrap(),
                text("doc"),
                folder.join(text("file")),
            )
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, doc, path)| (doc, path)).collect()
}

async fn replay(folder: &Path, sampled: usize) {
    let desk = Desk::new("narrative", None).await;
    let owner = &desk.owner;
    let incoming = tempfile::tempdir().unwrap();
    let all = versions(folder);
    let (mut recomputed, mut nodes, mut edits) = (0, 0, 0);
    let mut known = std::collections::BTreeSet::new();
    for (n, (doc, path)) in all.iter().enumerate() {
        std::fs::copy(path, incoming.path().join(format!("{doc}.md"))).unwrap();
        let report = desk
            .workspace
            .sync(owner, &desk.case, incoming.path())
            .await
            .unwrap();
        if report.published.is_empty() {
            // The same text under another commit: no event, and the summary stays current.
            desk.summary(owner).await;
            continue;
        }
        assert_eq!(report.published.len(), 1);
        let refusal = desk.refusal(owner).await;
        assert!(
            n == 0
                || refusal
                    .reasons
                    .iter()
                    .any(|r| r.event == Some(report.event)),
            "{refusal:?}"
        );
        let build = desk.build(owner, false).await;
        if !known.insert(doc.clone()) {
            (recomputed, nodes, edits) = (
                recomputed + build.counts.recomputed,
                nodes + build.counts.nodes,
                edits + 1,
            );
            let file = desk
                .workspace
                .export_run(&build.run_id, owner)
                .await
                .unwrap();
            let name = format!("{doc}.md");
            for node in file
                .nodes
                .iter()
                .filter(|node| !node.reused && node.spec["kind"] == "leaf")
            {
                assert_eq!(
                    node.spec["doc_id"],
                    name.as_str(),
                    "only the changed document's segments"
                );
            }
        }
        if n % (all.len() / sampled).max(1) == 0 {
            desk.check_against_full(owner).await;
        }
        desk.summary(owner).await;
    }
    let found = desk.workspace.verify_case(&desk.case, owner).await.unwrap();
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    println!(
        "{}: {} versions, {edits} edits: {recomputed} nodes made again of {nodes}",
        folder.display(),
        all.len()
    );
}

#[tokio::test]
async fn site_policies_replayed_by_sync_are_refused_and_rebuilt_at_every_step() {
    if let Some(folder) = data("site-policy") {
        replay(&folder, 10).await;
    }
}

#[tokio::test]
async fn laws_replayed_by_sync_are_refused_and_rebuilt_at_every_step() {
    if let Some(folder) = data("laws") {
        replay(&folder, 10).await;
    }
}
