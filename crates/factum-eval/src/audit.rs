//! The audit of a run: whether each citation holds, what each check says of each claim, and, where gold is given,
//! what is right and what is missing. Each is counted apart from the others.
//!
//! An audit reads an exported run and the texts. It builds nothing and changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use factum_casefile::claim::Fields;
use factum_casefile::{Claim, NodeStatus, SlotState, Verdict};
use factum_engine::export::Texts;
use factum_graph::run_file::{NodeKind, RunFile, RunNode};
use serde::Serialize;

use crate::controlled::gold::{Gold, GoldFields};

/// An audit, `factum/audit/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    /// The run.
    pub run_id: String,
    /// The case file.
    pub case_id: String,
    /// The profile.
    pub profile: String,
    /// The root's status. It says nothing about truth.
    pub root_status: NodeStatus,
    /// Nodes by status.
    pub nodes: BTreeMap<String, u64>,
    /// The root's claims, one by one.
    pub claims: Vec<AuditRow>,
    /// What the root's claims come to.
    pub root: AuditTotals,
    /// What the claims of all leaves come to. Gold is not held against them.
    pub leaves: AuditTotals,
}

/// One claim of the root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditRow {
    /// Its place, from 1.
    pub number: u64,
    /// Its fields.
    pub fields: Fields,
    /// Its citations.
    pub citations: Vec<AuditCitation>,
    /// All of them hold.
    pub reference_valid: bool,
    /// What the product's check said when the claim was made.
    pub support: Verdict,
    /// By which method.
    pub method: String,
    /// The same claim stands before it.
    pub duplicate: bool,
    /// Gold has it; absent where no gold is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_gold: Option<bool>,
}

/// One citation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditCitation {
    /// The evidence.
    pub evidence_id: String,
    /// It is of the version that the run read, eligible then, and the quote stands there word for word.
    pub valid: bool,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<String>,
}

/// What claims come to. Ratios over nothing are null.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct AuditTotals {
    /// Claims.
    pub claims: u64,
    /// Claims whose citations all hold.
    pub reference_valid_claims: u64,
    /// Their share.
    pub reference_validity: Option<f64>,
    /// Claims by method and verdict of the product's check.
    pub support: BTreeMap<String, BTreeMap<String, u64>>,
    /// Claims found supported.
    pub supported_claims: u64,
    /// The share of the others.
    pub unsupported_rate: Option<f64>,
    /// Claims kept on record and not served.
    pub withheld_claims: u64,
    /// Claims that repeat another.
    pub duplicate_claims: u64,
    /// Distinct claims.
    pub unique_claims: u64,
    /// Of the distinct claims, those in gold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correct_claims: Option<u64>,
    /// Claims in gold for the documents that were eligible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gold_claims: Option<u64>,
    /// Correct among distinct.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Correct among gold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
    /// Claims that no person has looked at: checks are no reader.
    pub unreviewed_claims: u64,
}

/// Gold that does not know what a run read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the gold does not know case file {0:?}, or not all versions of its documents that the run read"
)]
pub struct UnknownToGold(pub String);

/// Audits a run against the texts it read.
///
/// # Errors
/// Gold is given and does not know what the run read.
pub fn audit(run: &RunFile, texts: &Texts, gold: Option<&Gold>) -> Result<Audit, UnknownToGold> {
    let eligible = run.snapshot.slots.iter().filter(|slot| slot.eligible);
    let known = match gold {
        Some(gold) => Some(
            gold.of(
                run.case_id.as_str(),
                eligible.map(|slot| (slot.doc_id.as_str(), slot.version)),
            )
            .ok_or_else(|| UnknownToGold(run.case_id.to_string()))?,
        ),
        None => None,
    };
    let auditor = Auditor {
        slots: run
            .snapshot
            .slots
            .iter()
            .map(|slot| (slot.doc_id.as_str(), slot))
            .collect(),
        texts: texts
            .versions
            .iter()
            .map(|one| ((one.doc_id.as_str(), one.version), one.text.as_str()))
            .collect(),
    };
    let mut nodes: BTreeMap<String, u64> = BTreeMap::new();
    for node in &run.nodes {
        *nodes
            .entry(node.result.status.word().to_owned())
            .or_default() += 1;
    }
    let roots = run.nodes.last().filter(|node| node.key == run.root);
    let claims = auditor.rows(roots, known.as_ref());
    let leaves: Vec<&RunNode> = run
        .nodes
        .iter()
        .filter(|node| node.kind == NodeKind::Leaf)
        .collect();
    let below = auditor.rows(leaves.iter().copied(), None);
    Ok(Audit {
        run_id: run.run_id.clone(),
        case_id: run.case_id.to_string(),
        profile: run.profile.clone(),
        root_status: roots.map_or(NodeStatus::Invalid, |root| root.result.status),
        nodes,
        root: totals(
            &claims,
            roots.map_or(0, |root| root.result.withheld.len()),
            known.as_ref(),
        ),
        leaves: totals(
            &below,
            leaves.iter().map(|leaf| leaf.result.withheld.len()).sum(),
            None,
        ),
        claims,
    })
}

struct Auditor<'a> {
    slots: BTreeMap<&'a str, &'a SlotState>,
    texts: BTreeMap<(&'a str, u32), &'a str>,
}

impl Auditor<'_> {
    fn rows<'n>(
        &self,
        nodes: impl IntoIterator<Item = &'n RunNode>,
        gold: Option<&BTreeSet<&GoldFields>>,
    ) -> Vec<AuditRow> {
        let mut seen: BTreeSet<&Fields> = BTreeSet::new();
        let mut rows = Vec::new();
        for node in nodes {
            for claim in &node.result.claims {
                let citations = self.citations(node, claim);
                rows.push(AuditRow {
                    number: rows.len() as u64 + 1,
                    reference_valid: !citations.is_empty() && citations.iter().all(|one| one.valid),
                    citations,
                    support: claim.support.verdict,
                    method: word(&claim.support.method),
                    duplicate: !seen.insert(&claim.fields),
                    in_gold: gold.map(|gold| gold.contains(&claim.fields)),
                    fields: claim.fields.clone(),
                });
            }
        }
        rows
    }

    fn citations(&self, node: &RunNode, claim: &Claim) -> Vec<AuditCitation> {
        let check = |id: &factum_casefile::EvidenceId| -> Result<(), String> {
            let one = node
                .result
                .evidence
                .get(id)
                .ok_or("the node holds no such evidence")?;
            let text = self
                .texts
                .get(&(id.doc_id.as_str(), id.version))
                .ok_or("the text is not at hand")?;
            one.check(self.slots.get(id.doc_id.as_str()).copied(), text)
                .map_err(|fault| fault.to_string())
        };
        claim
            .evidence
            .iter()
            .map(|id| {
                let diagnosis = check(id).err();
                AuditCitation {
                    evidence_id: id.to_string(),
                    valid: diagnosis.is_none(),
                    diagnosis,
                }
            })
            .collect()
    }
}

fn word<T: Serialize>(value: &T) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn totals(rows: &[AuditRow], withheld: usize, gold: Option<&BTreeSet<&GoldFields>>) -> AuditTotals {
    use crate::controlled::measure::ratio;
    let count = |of: &dyn Fn(&&AuditRow) -> bool| rows.iter().filter(of).count() as u64;
    let claims = rows.len() as u64;
    let mut support: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for row in rows {
        let by_method = support.entry(row.method.clone()).or_default();
        *by_method.entry(word(&row.support)).or_default() += 1;
    }
    let valid = count(&|row| row.reference_valid);
    let supported = count(&|row| row.support == Verdict::Supported);
    let duplicates = count(&|row| row.duplicate);
    let correct = count(&|row| !row.duplicate && row.in_gold == Some(true));
    let wanted = gold.map(|gold| gold.len() as u64);
    AuditTotals {
        claims,
        reference_valid_claims: valid,
        reference_validity: ratio(valid, claims),
        support,
        supported_claims: supported,
        unsupported_rate: ratio(claims - supported, claims),
        withheld_claims: withheld as u64,
        duplicate_claims: duplicates,
        unique_claims: claims - duplicates,
        correct_claims: wanted.map(|_| correct),
        gold_claims: wanted,
        precision: wanted.and_then(|_| ratio(correct, claims - duplicates)),
        recall: wanted.and_then(|wanted| ratio(correct, wanted)),
        unreviewed_claims: claims,
    }
}
