//! Runs and texts as they leave: whole, so that a stranger can check every key and quote.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use factum_base::{BodyDigest, CaseId, ChainDigest, DocumentId, NodeKey, PrincipalId, TextDigest};
use factum_casefile::{Event, SlotState, Snapshot};
use factum_graph::compare::{Comparison, compare_runs};
use factum_graph::run_file::{
    Invalidation, NodeKind, RUN_FORMAT, RunCounts, RunFile, RunNode, snapshot_sha256,
};
use factum_graph::{Entry, Page, SpecContext};
use factum_model::RecordedGeneration;
use factum_store::{RunRow, StoreError, Tx};
use serde::Serialize;

use crate::build::{BuildReport, Counts};
use crate::error::EngineError;
use crate::permission::{Permitted, is_owner, permitted, require_owner};
use crate::workspace::Workspace;

/// All versions of a case file that the caller may see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Texts {
    /// In document order, then by version.
    pub versions: Vec<TextVersion>,
}

/// One version's text layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextVersion {
    /// The document.
    pub doc_id: DocumentId,
    /// The version.
    pub version: u32,
    /// The text layer.
    pub text: String,
    /// Its digest.
    pub text_sha256: TextDigest,
}

impl Workspace {
    /// A run as `factum/run/1`.
    ///
    /// # Errors
    /// The run is unknown, unfinished, not the caller's, or rests on what the caller may no longer see.
    pub async fn export_run(
        &self,
        run_id: &str,
        caller: &PrincipalId,
    ) -> Result<RunFile, EngineError> {
        let mut tx = self.repository.read().await?;
        let run = readable_run(&mut tx, run_id, caller).await?;
        let (file, permitted) = run_file(&mut tx, &run, caller).await?;
        require_visible(&mut tx, &permitted, caller, &file.snapshot, run_id).await?;
        Ok(file)
    }

    /// Compares two runs node by node. The result names nodes and holds no text.
    ///
    /// # Errors
    /// A run is unknown or unfinished, or not the caller's.
    pub async fn compare(
        &self,
        first: &str,
        second: &str,
        caller: &PrincipalId,
    ) -> Result<Comparison, EngineError> {
        let mut tx = self.repository.read().await?;
        let first = readable_run(&mut tx, first, caller).await?;
        let second = readable_run(&mut tx, second, caller).await?;
        let mut files = Vec::with_capacity(2);
        for run in [&first, &second] {
            let (file, permitted) = run_file(&mut tx, run, caller).await?;
            // Even digests of hidden claims say something. The owner compares what it has.
            if !is_owner(caller) {
                require_visible(&mut tx, &permitted, caller, &file.snapshot, &run.run_id).await?;
            }
            files.push(file);
        }
        Ok(compare_runs(&files[0], &files[1]))
    }

    /// The events of a case file with the chained digest of each, for its owner.
    ///
    /// # Errors
    /// The caller is not the owner, or there is no such case file.
    pub async fn export_events(
        &self,
        case_id: &CaseId,
        caller: &PrincipalId,
    ) -> Result<Vec<(Event, ChainDigest)>, EngineError> {
        require_owner(caller)?;
        let mut tx = self.repository.read().await?;
        let permitted = permitted(&mut tx, case_id, caller).await?;
        Ok(tx.events_after(permitted.case.case_no, 0).await?)
    }

    /// The texts of a case file.
    ///
    /// # Errors
    /// The case file is unknown or hidden, or a text is damaged.
    pub async fn export_texts(
        &self,
        case_id: &CaseId,
        caller: &PrincipalId,
    ) -> Result<Texts, EngineError> {
        let mut tx = self.repository.read().await?;
        let permitted = permitted(&mut tx, case_id, caller).await?;
        let documents = permitted.documents(&mut tx, caller).await?;
        let mut versions = Vec::new();
        for document in documents
            .into_iter()
            .filter(|document| document.state.eligible)
        {
            for row in tx.versions(document.doc_no).await? {
                let text_sha256 = row.new.text_sha256;
                versions.push(TextVersion {
                    doc_id: document.state.doc_id.clone(),
                    version: row.new.version,
                    text: tx.text(&text_sha256).await?,
                    text_sha256,
                });
            }
        }
        Ok(Texts { versions })
    }
}

/// A finished run of the caller's own; the owner may read those of others.
pub(crate) async fn readable_run(
    tx: &mut Tx,
    run_id: &str,
    caller: &PrincipalId,
) -> Result<RunRow, EngineError> {
    tx.run(run_id)
        .await?
        .filter(|run| {
            run.finished_at.is_some() && (run.new.principal == *caller || is_owner(caller))
        })
        .ok_or_else(|| {
            let run_id = run_id.to_owned();
            if is_owner(caller) {
                EngineError::UnknownRun(run_id)
            } else {
                EngineError::ForbiddenRun(run_id)
            }
        })
}

/// The documents whose text the caller may see now.
pub(crate) async fn visible_documents(
    tx: &mut Tx,
    permitted: &Permitted,
    caller: &PrincipalId,
) -> Result<BTreeSet<DocumentId>, EngineError> {
    let found = permitted.documents(tx, caller).await?;
    Ok(found
        .into_iter()
        .filter(|d| d.state.eligible)
        .map(|d| d.state.doc_id)
        .collect())
}

/// Refuses where any source of a snapshot is hidden from the caller now.
pub(crate) async fn require_visible(
    tx: &mut Tx,
    permitted: &Permitted,
    caller: &PrincipalId,
    snapshot: &Snapshot,
    what: &str,
) -> Result<(), EngineError> {
    let visible = visible_documents(tx, permitted, caller).await?;
    let hidden = |slot: &SlotState| slot.eligible && !visible.contains(&slot.doc_id);
    if snapshot.slots.iter().any(hidden) {
        return Err(EngineError::SourcesHidden(what.to_owned()));
    }
    Ok(())
}

/// All pages of a tree in document order, children before parents.
pub(crate) async fn load_tree(
    tx: &mut Tx,
    case_no: i64,
    root: NodeKey,
) -> Result<Vec<(NodeKey, Page)>, EngineError> {
    let mut pages: HashMap<NodeKey, Page> = HashMap::new();
    let mut level = vec![root];
    while !level.is_empty() {
        let mut next = Vec::new();
        for (key, page) in tx.pages(case_no, &level).await? {
            next.extend(page.entries.iter().filter_map(|entry| match entry {
                Entry::Node(node) => Some(node.key),
                Entry::Leaf(_) => None,
            }));
            pages.insert(key, page);
        }
        level = next;
    }
    let mut order = Vec::with_capacity(pages.len());
    let mut open = vec![root];
    // Parents before children, last child first; reversed below.
    while let Some(key) = open.pop() {
        let page = pages
            .remove(&key)
            .ok_or_else(|| StoreError::Damaged(format!("page {key} is gone")))?;
        open.extend(page.entries.iter().filter_map(|entry| match entry {
            Entry::Node(node) => Some(node.key),
            Entry::Leaf(_) => None,
        }));
        order.push((key, page));
    }
    order.reverse();
    Ok(order)
}

/// The snapshot that a tree was planned from, read off its leaves.
pub(crate) fn snapshot_of(pages: &[(NodeKey, Page)]) -> Snapshot {
    let mut slots: BTreeMap<_, SlotState> = BTreeMap::new();
    for entry in pages.iter().flat_map(|(_, page)| &page.entries) {
        if let Entry::Leaf(leaf) = entry {
            slots.insert(leaf.state.slot.clone(), leaf.state.clone());
        }
    }
    Snapshot {
        slots: slots.into_values().collect(),
    }
}

/// A run with all its nodes.
pub(crate) async fn run_file(
    tx: &mut Tx,
    run: &RunRow,
    caller: &PrincipalId,
) -> Result<(RunFile, Permitted), EngineError> {
    let unknown = || EngineError::UnknownRun(run.run_id.clone());
    let case = tx.case_by_no(run.new.case_no).await?.ok_or_else(unknown)?;
    let permitted = permitted(tx, &case.case_id, caller).await?;
    let context = tx.context(&run.new.context).await?;
    let summary = run.summary.as_deref().ok_or_else(unknown)?;
    let report: BuildReport = serde_json::from_str(summary)
        .map_err(|error| StoreError::Damaged(format!("the record of {}: {error}", run.run_id)))?;
    let pages = load_tree(tx, case.case_no, run.new.root).await?;
    let nodes = run_nodes(tx, run, &context, &pages).await?;
    let generations = run_generations(tx, run, &nodes).await?;
    let snapshot = snapshot_of(&pages);
    let file = RunFile {
        format: RUN_FORMAT.to_owned(),
        run_id: run.run_id.clone(),
        case_id: case.case_id,
        principal: run.new.principal.clone(),
        event: run.new.event,
        profile: run.new.profile.clone(),
        full: run.new.full,
        snapshot_sha256: snapshot_sha256(&snapshot)?,
        snapshot,
        root: run.new.root,
        nodes,
        generations,
        counts: exported_counts(report.counts),
        invalidation: exported_invalidation(report.invalidation, run.new.root),
        seconds: report.seconds,
    };
    Ok((file, permitted))
}

/// A run's nodes, children before parents.
async fn run_nodes(
    tx: &mut Tx,
    run: &RunRow,
    context: &SpecContext,
    pages: &[(NodeKey, Page)],
) -> Result<Vec<RunNode>, EngineError> {
    let scope = (run.scope != 0).then_some(run.scope);
    let names: HashMap<NodeKey, String> = pages
        .iter()
        .map(|(key, page)| (*key, page.name()))
        .collect();
    let mut nodes = Vec::new();
    for (key, page) in pages {
        let mut keys: Vec<NodeKey> = page.entries.iter().map(Entry::key).collect();
        keys.push(*key);
        let mut results: HashMap<NodeKey, _> = tx
            .results(run.new.case_no, &keys, scope)
            .await?
            .into_iter()
            .map(|stored| (stored.key, stored))
            .collect();
        let mut node =
            |key: NodeKey, name: String, kind, children, spec: String| -> Result<(), EngineError> {
                let stored = results.remove(&key).ok_or_else(|| {
                    StoreError::Damaged(format!("the result of node {key} is gone"))
                })?;
                nodes.push(RunNode {
                    name,
                    kind,
                    children,
                    spec: serde_json::from_str(&spec)?,
                    key,
                    reused: stored.run_no != run.run_no,
                    result: stored.result,
                });
                Ok(())
            };
        let mut children = Vec::with_capacity(page.entries.len());
        for entry in &page.entries {
            match entry {
                Entry::Leaf(leaf) => {
                    children.push(leaf.name());
                    let spec = context.leaf_spec(&leaf.state, leaf.segment);
                    node(leaf.key, leaf.name(), NodeKind::Leaf, Vec::new(), spec)?;
                }
                Entry::Node(child) => {
                    children.push(names.get(&child.key).cloned().unwrap_or_default());
                }
            }
        }
        node(
            *key,
            page.name(),
            NodeKind::Reduction,
            children,
            page.spec(context),
        )?;
    }
    Ok(nodes)
}

/// The generations that nodes refer to, by digest.
async fn run_generations(
    tx: &mut Tx,
    run: &RunRow,
    nodes: &[RunNode],
) -> Result<BTreeMap<String, serde_json::Value>, EngineError> {
    let damaged = |id: &str| StoreError::Damaged(format!("the generation {id} of a node is gone"));
    let mut inputs = BTreeMap::new();
    for id in nodes
        .iter()
        .filter_map(|node| node.result.generation.as_ref())
    {
        let digest: BodyDigest = id.parse().map_err(|_| damaged(id))?;
        inputs.insert(id.clone(), *digest.as_bytes());
    }
    let asked: Vec<[u8; 32]> = inputs.values().copied().collect();
    let found = tx.generations(&asked, run.scope).await?;
    let mut out = BTreeMap::new();
    for (id, input) in inputs {
        let stored = found.get(&input).ok_or_else(|| damaged(&id))?;
        let mut record: RecordedGeneration = serde_json::from_str(&stored.body)
            .map_err(|error| StoreError::Damaged(format!("the generation {id}: {error}")))?;
        record.reused = Some(stored.run_no != run.run_no);
        out.insert(id, serde_json::to_value(record)?);
    }
    Ok(out)
}

fn exported_counts(counts: Counts) -> RunCounts {
    RunCounts {
        nodes: counts.nodes,
        recomputed: counts.recomputed,
        reused: counts.reused,
        model_calls: counts.model_calls,
        generations_reused: counts.generations_reused,
        new_tokens: counts.new_tokens,
    }
}

fn exported_invalidation(found: crate::build::Invalidation, root: NodeKey) -> Invalidation {
    Invalidation {
        nodes: found.nodes,
        previous_root_key: found.previous_root_key,
        current_root_key: root,
        previous_status: found.previous_status.map(|status| status.word().to_owned()),
        serve_refusal: found.serve_refusal,
    }
}
