//! What changed between two summaries: claims added, removed, changed and moved, each with the event
//! that caused it. A claim never falls without a named cause.

use std::collections::{BTreeSet, HashMap};

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_casefile::claim::Fields;
use factum_casefile::{Claim, Event, EvidenceId, Profile};
use factum_store::{RunRow, Tx};
use serde::Serialize;

use crate::error::EngineError;
use crate::export::readable_run;
use crate::permission::{Permitted, all_events, is_owner, permitted};
use crate::workspace::Workspace;

/// The difference of two runs' summaries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SummaryDiff {
    /// The earlier run.
    pub from: String,
    /// The later run.
    pub to: String,
    /// Event of the earlier run.
    pub from_event: u64,
    /// Event of the later run.
    pub to_event: u64,
    /// Claims in the later summary only.
    pub added: Vec<ClaimChange>,
    /// Claims in the earlier summary only.
    pub removed: Vec<ClaimChange>,
    /// Claims that say something else now.
    pub changed: Vec<ClaimChange>,
    /// Claims that say the same from another place.
    pub moved: Vec<ClaimChange>,
    /// Claims that are the same in both.
    pub unchanged: u64,
    /// Removed claims whose documents the reader may no longer see; their text is not shown.
    pub removed_hidden: Vec<HiddenChange>,
}

/// A claim that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClaimChange {
    /// How it read before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// How it reads now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// What it cites now, or cited.
    pub evidence: Vec<EvidenceId>,
    /// What caused it.
    pub cause: Cause,
}

/// A claim that fell with a document the reader may no longer see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HiddenChange {
    /// What caused it.
    pub cause: Cause,
}

/// What caused a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The event; absent where the profile or the generator changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// In words.
    pub message: String,
}

struct Side<'c> {
    claims: Vec<&'c Claim>,
    matched: Vec<bool>,
}

impl Workspace {
    /// What changed between two runs of a case file; without names, between the last two whose
    /// summaries differ.
    ///
    /// # Errors
    /// The case file or a run is unknown or hidden, or there are no two runs.
    pub async fn diff(
        &self,
        case_id: &CaseId,
        caller: &PrincipalId,
        runs: Option<(&str, &str)>,
    ) -> Result<SummaryDiff, EngineError> {
        let mut tx = self.repository.read().await?;
        let permitted = permitted(&mut tx, case_id, caller).await?;
        let (from, to) = match runs {
            Some((from, to)) => {
                let from = readable_run(&mut tx, from, caller).await?;
                (from, readable_run(&mut tx, to, caller).await?)
            }
            None => last_two(&mut tx, &permitted, caller).await?,
        };
        if from.new.case_no != permitted.case.case_no || to.new.case_no != permitted.case.case_no {
            return Err(EngineError::UnknownRun(from.run_id));
        }
        self.diff_of(&mut tx, &permitted, caller, from, to).await
    }

    async fn diff_of(
        &self,
        tx: &mut Tx,
        permitted: &Permitted,
        caller: &PrincipalId,
        from: RunRow,
        to: RunRow,
    ) -> Result<SummaryDiff, EngineError> {
        let case_no = permitted.case.case_no;
        let found = permitted.documents(tx, caller).await?;
        let granted: BTreeSet<&DocumentId> = found
            .iter()
            .filter(|document| document.granted)
            .map(|document| &document.state.doc_id)
            .collect();
        let visible: BTreeSet<&DocumentId> = found
            .iter()
            .filter(|document| document.state.eligible)
            .map(|document| &document.state.doc_id)
            .collect();
        let profile = self.profile(&permitted.case.profile)?;
        let root = |run: &RunRow| (run.new.root, (run.scope != 0).then_some(run.scope));
        let load = async |tx: &mut Tx, run: &RunRow| -> Result<Vec<Claim>, EngineError> {
            let (root, scope) = root(run);
            let found = tx.result(case_no, &root, scope).await?;
            Ok(found.map(|stored| stored.result.claims).unwrap_or_default())
        };
        let (old, new) = (load(tx, &from).await?, load(tx, &to).await?);
        let events: Vec<Event> = tx
            .events_after(case_no, from.new.event.min(to.new.event))
            .await?
            .into_iter()
            .map(|(event, _)| event)
            .filter(|event| event.number <= from.new.event.max(to.new.event))
            .collect();
        let now = all_events(tx, case_no).await?;
        let causes = Causes {
            events: &events,
            later: &now,
            caller,
            granted: &granted,
            same_reader: from.new.principal == to.new.principal,
            context_changed: from.new.context != to.new.context,
        };
        let shown = |claim: &&Claim| claim.evidence.iter().all(|id| visible.contains(&id.doc_id));
        let (old_shown, old_hidden): (Vec<&Claim>, Vec<&Claim>) = old.iter().partition(shown);
        // The new summary may rest on what was hidden since, too.
        let (new_shown, new_hidden): (Vec<&Claim>, Vec<&Claim>) = new.iter().partition(shown);
        let still: BTreeSet<&Fields> = new_hidden.iter().map(|claim| &claim.fields).collect();
        let mut diff = pair(&profile, old_shown, new_shown, &causes);
        diff.removed_hidden = old_hidden
            .iter()
            .filter(|claim| !still.contains(&claim.fields))
            .map(|claim| HiddenChange {
                cause: causes.of_hidden(claim, is_owner(caller)),
            })
            .collect();
        (diff.from, diff.to) = (from.run_id, to.run_id);
        (diff.from_event, diff.to_event) = (from.new.event, to.new.event);
        Ok(diff)
    }
}

async fn last_two(
    tx: &mut Tx,
    permitted: &Permitted,
    caller: &PrincipalId,
) -> Result<(RunRow, RunRow), EngineError> {
    let mut runs = tx.runs(permitted.case.case_no, caller).await?;
    runs.retain(|run| run.finished_at.is_some());
    let to = runs.pop().ok_or(EngineError::NothingToCompare)?;
    let from = runs
        .iter()
        .rfind(|run| run.new.root != to.new.root)
        .cloned()
        .ok_or(EngineError::NothingToCompare)?;
    Ok((from, to))
}

fn pair(profile: &Profile, old: Vec<&Claim>, new: Vec<&Claim>, causes: &Causes<'_>) -> SummaryDiff {
    let mut old = Side {
        matched: vec![false; old.len()],
        claims: old,
    };
    let mut new = Side {
        matched: vec![false; new.len()],
        claims: new,
    };
    let mut diff = SummaryDiff {
        from: String::new(),
        to: String::new(),
        from_event: 0,
        to_event: 0,
        added: Vec::new(),
        removed: Vec::new(),
        changed: Vec::new(),
        moved: Vec::new(),
        unchanged: 0,
        removed_hidden: Vec::new(),
    };
    let change = |before: Option<&Claim>, after: Option<&Claim>| ClaimChange {
        before: before.map(|claim| profile.read(&claim.fields)),
        after: after.map(|claim| profile.read(&claim.fields)),
        evidence: after
            .or(before)
            .map(|claim| claim.evidence.clone())
            .unwrap_or_default(),
        cause: causes.of(before, after),
    };
    // The same fields.
    let by_fields: HashMap<&Fields, usize> = new
        .claims
        .iter()
        .enumerate()
        .map(|(n, claim)| (&claim.fields, n))
        .collect();
    for n in 0..old.claims.len() {
        if let Some(&m) = by_fields.get(&old.claims[n].fields)
            && !new.matched[m]
        {
            (old.matched[n], new.matched[m]) = (true, true);
            if places(old.claims[n]) == places(new.claims[m]) {
                diff.unchanged += 1;
            } else {
                diff.moved
                    .push(change(Some(old.claims[n]), Some(new.claims[m])));
            }
        }
    }
    // The same fact, or nearly the same sentence, of the same document.
    let best_first = near_pairs(profile, &old, &new);
    for (_, n, m) in best_first {
        if !old.matched[n] && !new.matched[m] {
            (old.matched[n], new.matched[m]) = (true, true);
            let changed = change(Some(old.claims[n]), Some(new.claims[m]));
            // What reads the same but for, say, the heading above it has only moved.
            if changed.before == changed.after {
                diff.moved.push(changed);
            } else {
                diff.changed.push(changed);
            }
        }
    }
    let rest = |side: &Side<'_>| -> Vec<usize> {
        (0..side.claims.len())
            .filter(|&n| !side.matched[n])
            .collect()
    };
    diff.removed = rest(&old)
        .into_iter()
        .map(|n| change(Some(old.claims[n]), None))
        .collect();
    diff.added = rest(&new)
        .into_iter()
        .map(|n| change(None, Some(new.claims[n])))
        .collect();
    diff
}

/// Documents and places cited, whatever the version.
fn places(claim: &Claim) -> BTreeSet<(&DocumentId, u32, u32)> {
    claim
        .evidence
        .iter()
        .map(|id| (&id.doc_id, id.span.start, id.span.end))
        .collect()
}

/// Pairs of unmatched claims that speak of the same thing, most alike first.
fn near_pairs(profile: &Profile, old: &Side<'_>, new: &Side<'_>) -> Vec<(u32, usize, usize)> {
    let mut pairs = Vec::new();
    for (n, before) in old
        .claims
        .iter()
        .enumerate()
        .filter(|(n, _)| !old.matched[*n])
    {
        for (m, after) in new
            .claims
            .iter()
            .enumerate()
            .filter(|(m, _)| !new.matched[*m])
        {
            let same_document = before
                .evidence
                .iter()
                .any(|a| after.evidence.iter().any(|b| a.doc_id == b.doc_id));
            if !same_document {
                continue;
            }
            let alike = if same_fact(profile, &before.fields, &after.fields) {
                1_000_000
            } else {
                likeness(&profile.read(&before.fields), &profile.read(&after.fields))
            };
            if alike >= 500_000 {
                pairs.push((alike, n, m));
            }
        }
    }
    pairs.sort_by_key(|&(alike, n, m)| (std::cmp::Reverse(alike), n, m));
    pairs
}

fn same_fact(profile: &Profile, a: &Fields, b: &Fields) -> bool {
    profile.ledger.as_ref().is_some_and(|ledger| {
        a.contains_key(&ledger.field)
            && a.get(&ledger.field) == b.get(&ledger.field)
            && a.get(&ledger.subject) == b.get(&ledger.subject)
    })
}

/// Shared words over all words (Jaccard), in parts per million.
fn likeness(a: &str, b: &str) -> u32 {
    let words = |text: &str| -> BTreeSet<String> {
        unicode_segmentation::UnicodeSegmentation::unicode_words(text)
            .map(str::to_lowercase)
            .collect()
    };
    let (a, b) = (words(a), words(b));
    let (shared, all) = (a.intersection(&b).count(), a.union(&b).count());
    u32::try_from((shared * 1_000_000).checked_div(all).unwrap_or(0)).unwrap_or(0)
}

struct Causes<'e> {
    /// Events between the two runs.
    events: &'e [Event],
    /// All events so far.
    later: &'e [Event],
    caller: &'e PrincipalId,
    /// Documents whose events the reader may know of.
    granted: &'e BTreeSet<&'e DocumentId>,
    same_reader: bool,
    context_changed: bool,
}

impl Causes<'_> {
    fn of(&self, before: Option<&Claim>, after: Option<&Claim>) -> Cause {
        let documents: BTreeSet<&DocumentId> = before
            .iter()
            .chain(&after)
            .flat_map(|claim| &claim.evidence)
            .map(|id| &id.doc_id)
            .collect();
        if let Some(event) = self.last(self.events, &documents) {
            return cause(event, true);
        }
        if !self.same_reader {
            return Cause {
                event: None,
                message: "the runs are for different readers".to_owned(),
            };
        }
        if self.context_changed {
            return Cause {
                event: None,
                message: "the profile or the generator changed".to_owned(),
            };
        }
        // The claim's own document is as it was: another claim took or gave up its place.
        let last = self
            .events
            .iter()
            .rev()
            .find(|event| self.concerns_caller(event));
        Cause {
            event: last.map(|event| event.number),
            message: match last {
                Some(event) => format!(
                    "chosen differently, since other documents changed up to event {}",
                    event.number
                ),
                None => "chosen differently".to_owned(),
            },
        }
    }

    /// The cause of a fall that must not show the document.
    fn of_hidden(&self, claim: &Claim, named: bool) -> Cause {
        let documents: BTreeSet<&DocumentId> = claim.evidence.iter().map(|id| &id.doc_id).collect();
        match self
            .last(self.events, &documents)
            .or_else(|| self.last(self.later, &documents))
        {
            Some(event) => cause(event, named),
            None => Cause {
                event: None,
                message: "access changed".to_owned(),
            },
        }
    }

    fn last<'e>(
        &self,
        events: &'e [Event],
        documents: &BTreeSet<&DocumentId>,
    ) -> Option<&'e Event> {
        events.iter().rev().find(|event| {
            self.concerns_caller(event)
                && event
                    .kind
                    .doc_id()
                    .is_none_or(|doc_id| documents.contains(doc_id))
        })
    }

    /// Of a hidden document only the reader's own rights are told, of an unknown one nothing.
    fn concerns_caller(&self, event: &Event) -> bool {
        match (event.kind.principal(), event.kind.doc_id()) {
            (Some(who), _) => who == self.caller,
            (None, Some(doc_id)) => self.granted.contains(doc_id),
            (None, None) => true,
        }
    }
}

fn cause(event: &Event, named: bool) -> Cause {
    let what = match event.kind.doc_id() {
        Some(_) if event.kind.principal().is_some() => "access changed".to_owned(),
        Some(doc_id) if named => format!("{doc_id} was {}", event.kind.word()),
        Some(_) => format!("a document was {}", event.kind.word()),
        None => "access changed".to_owned(),
    };
    Cause {
        event: Some(event.number),
        message: format!("{what} (event {})", event.number),
    }
}
