//! The ledger: every supported claim of every leaf, duplicates folded, contradictions shown. Complete
//! where the summary is brief, and served by the same rule: only while the tree is current.

use std::collections::{BTreeMap, BTreeSet};

use factum_base::{CaseId, PrincipalId};
use factum_casefile::claim::Fields;
use factum_casefile::{Claim, Evidence, EvidenceId, NodeStatus, Profile, Support, Verdict};
use factum_graph::Entry;
use serde::Serialize;

use crate::error::EngineError;
use crate::export::load_tree;
use crate::permission::permitted;
use crate::serve::{Decision, Refusal, decide};
use crate::workspace::Workspace;

/// A case file's facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// The case file.
    pub case_id: CaseId,
    /// Who it is for.
    pub principal: PrincipalId,
    /// The case file's latest event.
    pub event: u64,
    /// Facts in document order.
    pub facts: Vec<Fact>,
    /// Facts that can't all be true.
    pub contradictions: Vec<Contradiction>,
    /// Whether the profile names fields to look for contradictions in.
    pub contradictions_sought: bool,
    /// What they cite.
    pub evidence: BTreeMap<EvidenceId, Evidence>,
}

/// One fact, from all documents that state it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// How it reads.
    pub text: String,
    /// Its fields.
    pub fields: Fields,
    /// Everything that states it.
    pub evidence: Vec<EvidenceId>,
    /// Whether its quotes support it.
    pub support: Support,
}

/// One subject and field with several values from current documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// What it is about; absent where it is the case file itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Which property.
    pub field: String,
    /// Its values.
    pub values: Vec<ContradictoryValue>,
}

/// One of several values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContradictoryValue {
    /// The value.
    pub value: String,
    /// Everything that states it.
    pub evidence: Vec<EvidenceId>,
}

impl Workspace {
    /// The ledger of a case file, or why it is refused.
    ///
    /// # Errors
    /// The case file is unknown or hidden, or the store is damaged.
    pub async fn ledger(
        &self,
        case_id: &CaseId,
        principal: &PrincipalId,
    ) -> Result<Result<Ledger, Refusal>, EngineError> {
        let mut tx = self.repository.read().await?;
        let permitted = permitted(&mut tx, case_id, principal).await?;
        let case = &permitted.case;
        let profile = self.profile(&case.profile)?;
        let tree = match decide(self, &mut tx, &permitted, principal, None).await? {
            Decision::Refused(refusal, _) => return Ok(Err(refusal)),
            Decision::Current(found) => found.1,
        };
        let pages = load_tree(&mut tx, case.case_no, tree.root).await?;
        let mut facts = Facts::default();
        for (_, page) in pages {
            let keys: Vec<_> = page
                .entries
                .iter()
                .filter_map(|entry| match entry {
                    Entry::Leaf(leaf) if leaf.state.eligible => Some(leaf.key),
                    _ => None,
                })
                .collect();
            let mut found = tx.results(case.case_no, &keys, None).await?;
            found.sort_by_key(|stored| keys.iter().position(|key| *key == stored.key));
            for stored in found
                .into_iter()
                .filter(|stored| stored.result.status == NodeStatus::Valid)
            {
                let claims = stored.result.claims.into_iter();
                for claim in claims.filter(|claim| claim.support.verdict == Verdict::Supported) {
                    facts.add(&profile, claim, &stored.result.evidence);
                }
            }
        }
        // The same checks as for a summary: each citation against the snapshot now.
        crate::serve::recheck_evidence(self, &mut tx, &permitted, principal, &facts.evidence)
            .await?;
        let contradictions = facts.contradictions(&profile);
        Ok(Ok(Ledger {
            case_id: case.case_id.clone(),
            principal: principal.clone(),
            event: case.last_event,
            facts: facts.list,
            contradictions,
            contradictions_sought: profile.ledger.is_some(),
            evidence: facts.evidence,
        }))
    }
}

#[derive(Default)]
struct Facts {
    list: Vec<Fact>,
    place: BTreeMap<Fields, usize>,
    evidence: BTreeMap<EvidenceId, Evidence>,
}

impl Facts {
    fn add(&mut self, profile: &Profile, claim: Claim, evidence: &BTreeMap<EvidenceId, Evidence>) {
        for id in &claim.evidence {
            if let Some(found) = evidence.get(id) {
                self.evidence.insert(id.clone(), found.clone());
            }
        }
        if let Some(&at) = self.place.get(&claim.fields) {
            let known = &mut self.list[at].evidence;
            known.extend(
                claim
                    .evidence
                    .into_iter()
                    .filter(|id| !known.contains(id))
                    .collect::<Vec<_>>(),
            );
            return;
        }
        self.place.insert(claim.fields.clone(), self.list.len());
        self.list.push(Fact {
            text: profile.read(&claim.fields),
            fields: claim.fields,
            evidence: claim.evidence,
            support: claim.support,
        });
    }

    fn contradictions(&self, profile: &Profile) -> Vec<Contradiction> {
        let Some(ledger) = &profile.ledger else {
            return Vec::new();
        };
        let mut values: BTreeMap<(Option<&String>, &String), Vec<&Fact>> = BTreeMap::new();
        for fact in &self.list {
            let Some(field) = fact.fields.get(&ledger.field) else {
                continue;
            };
            if !ledger.many_valued.contains(field) && fact.fields.contains_key(&ledger.value) {
                values
                    .entry((fact.fields.get(&ledger.subject), field))
                    .or_default()
                    .push(fact);
            }
        }
        values
            .into_iter()
            .filter(|(_, facts)| {
                facts
                    .iter()
                    .filter_map(|fact| fact.fields.get(&ledger.value))
                    .collect::<BTreeSet<_>>()
                    .len()
                    > 1
            })
            .map(|((subject, field), facts)| Contradiction {
                subject: subject.cloned(),
                field: field.clone(),
                values: facts
                    .into_iter()
                    .map(|fact| ContradictoryValue {
                        value: fact.fields.get(&ledger.value).cloned().unwrap_or_default(),
                        evidence: fact.evidence.clone(),
                    })
                    .collect(),
            })
            .collect()
    }
}
