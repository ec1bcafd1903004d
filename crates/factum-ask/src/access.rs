//! From the conversation's terms to the workspace's and back: what may be shown now, what an id names, where
//! evidence stands.

use std::collections::{BTreeMap, BTreeSet};

use factum_base::{CaseId, PrincipalId};
use factum_casefile::{Evidence, EvidenceFault, EvidenceId};
use factum_engine::Workspace;
use factum_engine::retrieve::{Standing, VersionOf};

use crate::compaction::{Live, Needed, Passage};
use crate::error::AskError;
use crate::ledger::{Citation, Ledger, Named, bare_id};
use crate::message::{Ref, Source, WhyIgnored};

/// Reads for one principal.
pub(crate) struct Access<'w> {
    pub(crate) workspace: &'w Workspace,
    pub(crate) principal: &'w PrincipalId,
}

fn version_of(source: &Source) -> Option<VersionOf> {
    let case = CaseId::new(source.capability.as_str()).ok()?;
    Some((case, source.doc_id.clone(), source.version))
}

fn key_of(one: &Ref) -> Option<(CaseId, EvidenceId)> {
    let case = CaseId::new(one.capability.as_str()).ok()?;
    Some((case, one.evidence.clone()))
}

pub(crate) fn why(fault: &EvidenceFault) -> WhyIgnored {
    match fault {
        EvidenceFault::OtherVersion { .. } | EvidenceFault::OtherText(_) => WhyIgnored::Stale,
        EvidenceFault::Withdrawn(_) | EvidenceFault::Revoked(_) => WhyIgnored::Ineligible,
        _ => WhyIgnored::Unknown,
    }
}

impl Access<'_> {
    pub(crate) async fn standing(
        &self,
        refs: &BTreeSet<Ref>,
        sources: &BTreeSet<Source>,
    ) -> Result<Standing, AskError> {
        let refs = refs.iter().filter_map(key_of).collect();
        let versions = sources.iter().filter_map(version_of).collect();
        Ok(self
            .workspace
            .evidence_standing(self.principal, &refs, &versions)
            .await?)
    }

    /// Whether all of these versions may still be shown, if only as earlier ones.
    pub(crate) async fn all_visible(&self, sources: &BTreeSet<Source>) -> Result<bool, AskError> {
        let standing = self.standing(&BTreeSet::new(), sources).await?;
        let seen = |version: &VersionOf| {
            standing.current.contains(version) || standing.replaced.contains(version)
        };
        let mut versions = sources.iter().map(version_of);
        Ok(versions.all(|version| version.as_ref().is_some_and(seen)))
    }

    /// What of the needed may be shown now, decided in one state of the store.
    pub(crate) async fn live(&self, needed: &Needed) -> Result<Live, AskError> {
        let standing = self.standing(&needed.refs, &needed.sources).await?;
        let mut live = Live::default();
        for ((case, id), found) in standing.evidence {
            let Ok(evidence) = found else { continue };
            let title = evidence.doc_id.to_string();
            let text = evidence.quote;
            live.passages
                .insert(Ref::new(case.as_str(), id), Passage { title, text });
        }
        for (case, doc_id, version) in standing.current {
            live.sources.insert(Source {
                capability: case.to_string(),
                doc_id,
                version,
            });
        }
        Ok(live)
    }

    /// What ids name: this question's findings first, then what was ever cited, then the store. Only what is current
    /// now is evidence.
    pub(crate) async fn named(
        &self,
        ids: &[String],
        ledger: &Ledger,
    ) -> Result<Vec<(String, Named)>, AskError> {
        let candidates: Vec<Vec<Ref>> = ids.iter().map(|raw| candidates(raw, ledger)).collect();
        let all = candidates.iter().flatten().cloned().collect();
        let standing = self.standing(&all, &BTreeSet::new()).await?;
        let found = |one: &Ref| standing.evidence.get(&key_of(one)?);
        let mut out = Vec::with_capacity(ids.len());
        for (raw, refs) in ids.iter().zip(candidates) {
            let good = refs
                .iter()
                .find_map(|one| Some((one.clone(), found(one)?.as_ref().ok()?.clone())));
            let named = if let Some((one, evidence)) = good {
                let place = self.place(&one, &evidence).await?;
                Named::Evidence(one, Citation::of(&evidence, place))
            } else {
                let faults = refs.iter().filter_map(|one| found(one)?.as_ref().err());
                Named::Not(faults.map(why).max().unwrap_or(WhyIgnored::Unknown))
            };
            out.push((raw.clone(), named));
        }
        Ok(out)
    }

    async fn place(&self, one: &Ref, evidence: &Evidence) -> Result<Option<String>, AskError> {
        let Ok(case) = CaseId::new(one.capability.as_str()) else {
            return Ok(None);
        };
        let places: BTreeMap<EvidenceId, _> = self
            .workspace
            .places(&case, self.principal, std::iter::once(evidence))
            .await?;
        Ok(places.get(&one.evidence).map(ToString::to_string))
    }
}

/// What an id can name, the likeliest first.
pub(crate) fn candidates(raw: &str, ledger: &Ledger) -> Vec<Ref> {
    let id = bare_id(raw);
    let mut out: Vec<(u8, Ref)> = Vec::new();
    for (name, state) in ledger.capabilities() {
        let own = id
            .strip_prefix(name.as_str())
            .and_then(|rest| rest.strip_prefix('/'));
        for text in [own, Some(id)].into_iter().flatten() {
            let Ok(evidence) = text.parse::<EvidenceId>() else {
                continue;
            };
            let order = if state.retrieved().contains(&evidence) {
                0
            } else if state.citations.contains_key(&evidence) {
                1
            } else {
                2
            };
            out.push((order, Ref::new(name.clone(), evidence)));
        }
    }
    out.sort_by_key(|(order, _)| *order);
    out.into_iter().map(|(_, one)| one).collect()
}
