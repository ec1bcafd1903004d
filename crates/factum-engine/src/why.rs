//! Why a summary is stale, and which nodes a build would make again; or what the last build made.

use std::collections::HashMap;

use factum_base::{CaseId, DocumentId, NodeKey, PrincipalId};
use factum_graph::{Difference, LeafEntry, PageCache, difference};
use factum_store::Tx;
use serde::Serialize;

use crate::build::BuildReport;
use crate::error::EngineError;
use crate::permission::permitted;
use crate::planning::fetch;
use crate::serve::{Decision, Reason, decide};
use crate::workspace::Workspace;

/// The answer to "why".
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// CURRENT, STALE or ABSENT.
    pub status: String,
    /// What happened since the summary was built.
    pub reasons: Vec<Reason>,
    /// Nodes that a build would make again, each with its reason.
    pub nodes: Vec<NodeReason>,
    /// Nodes of the whole tree.
    pub all_nodes: u64,
    /// What the last build did, where the summary is current.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_build: Option<BuildReport>,
}

/// Why one node is made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeReason {
    /// The node.
    pub name: String,
    /// Its document, where it belongs to one that the reader may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doc_id: Option<DocumentId>,
    /// The reason in words.
    pub reason: String,
}

impl Workspace {
    /// Why a summary is stale, or what made it what it is.
    ///
    /// # Errors
    /// The case file is unknown or hidden, or the store can't be read.
    pub async fn why(&self, case_id: &CaseId, caller: &PrincipalId) -> Result<Why, EngineError> {
        let mut tx = self.repository.read().await?;
        let permitted = permitted(&mut tx, case_id, caller).await?;
        let case_no = permitted.case.case_no;
        match decide(self, &mut tx, &permitted, caller, None).await? {
            Decision::Current(found) => {
                let (head, mut tree) = *found;
                let run = match &head.built {
                    Some(built) => tx.run_by_no(built.run_no).await?,
                    None => None,
                };
                let last_build = run
                    .and_then(|run| run.summary)
                    .and_then(|t| serde_json::from_str(&t).ok());
                Ok(Why {
                    status: "CURRENT".to_owned(),
                    reasons: Vec::new(),
                    nodes: Vec::new(),
                    all_nodes: tree.nodes(&mut tx, case_no).await?,
                    last_build,
                })
            }
            Decision::Refused(refusal, None) => Ok(Why {
                status: refusal.status.word().to_owned(),
                reasons: refusal.reasons,
                nodes: Vec::new(),
                all_nodes: 0,
                last_build: None,
            }),
            Decision::Refused(refusal, Some(found)) => {
                let (head, mut tree) = *found;
                let old = head.built.map(|built| built.root);
                let found =
                    tree_difference(&mut tx, case_no, &mut tree.cache, old, tree.root).await?;
                let (principal, access) = (caller.as_str(), permitted.access.case);
                let mut nodes = Vec::with_capacity(found.new.len());
                for (name, doc_id, reason) in reasons(&found) {
                    let hidden = match &doc_id {
                        Some(doc_id) => tx
                            .principal_document(case_no, principal, access, doc_id)
                            .await?
                            .is_none_or(|document| !document.granted),
                        None => false,
                    };
                    let (doc_id, reason) = if hidden {
                        (None, "access changed".to_owned())
                    } else {
                        (doc_id, reason)
                    };
                    nodes.push(NodeReason {
                        name,
                        doc_id,
                        reason,
                    });
                }
                Ok(Why {
                    status: refusal.status.word().to_owned(),
                    reasons: refusal.reasons,
                    nodes,
                    all_nodes: tree.nodes(&mut tx, case_no).await?,
                    last_build: None,
                })
            }
        }
    }
}

/// The difference of two trees, with pages fetched as they are needed.
pub(crate) async fn tree_difference(
    tx: &mut Tx,
    case_no: i64,
    cache: &mut PageCache,
    old: Option<NodeKey>,
    new: NodeKey,
) -> Result<Difference, EngineError> {
    loop {
        match difference(cache, old, new) {
            Ok(found) => return Ok(found),
            Err(missing) => fetch(tx, case_no, cache, missing.0).await?,
        }
    }
}

fn reasons(found: &Difference) -> Vec<(String, Option<DocumentId>, String)> {
    let old: HashMap<&str, &LeafEntry> = found
        .old
        .iter()
        .filter_map(|n| n.leaf.as_ref().map(|leaf| (n.name.as_str(), leaf)))
        .collect();
    let by_document: HashMap<&DocumentId, &LeafEntry> =
        old.values().map(|l| (&l.state.doc_id, *l)).collect();
    let old_names: std::collections::HashSet<&str> =
        found.old.iter().map(|n| n.name.as_str()).collect();
    found
        .new
        .iter()
        .map(|node| {
            let Some(leaf) = &node.leaf else {
                let reason = if old_names.contains(node.name.as_str()) {
                    "what is below changed"
                } else {
                    "new grouping"
                };
                return (node.name.clone(), None, reason.to_owned());
            };
            let before = old
                .get(node.name.as_str())
                .or_else(|| by_document.get(&leaf.state.doc_id));
            (
                node.name.clone(),
                Some(leaf.state.doc_id.clone()),
                leaf_reason(leaf, before.copied()),
            )
        })
        .collect()
}

fn leaf_reason(new: &LeafEntry, old: Option<&LeafEntry>) -> String {
    let Some(old) = old else {
        return "new document".to_owned();
    };
    let (new, old) = (&new.state, &old.state);
    if old.version != new.version {
        format!("version {} instead of {}", new.version, old.version)
    } else if old.active != new.active {
        if new.active {
            "reinstated"
        } else {
            "withdrawn"
        }
        .to_owned()
    } else if old.eligible != new.eligible || old.access_revision != new.access_revision {
        "access changed".to_owned()
    } else if old.slot != new.slot {
        "another place".to_owned()
    } else {
        "the profile or the generator changed".to_owned()
    }
}
