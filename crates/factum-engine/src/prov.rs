//! Provenance for others' tools: a case file's history, or one run's, as W3C PROV-O.
//!
//! The same data as a run file, under the same rules: a run one of whose sources is hidden from the caller is not
//! told. What may be told is gathered first, as plain data (`lineage`), and told by pure code (`telling`), which
//! sees neither the store nor anything that was held back. `docs/provenance.md` describes what is made of it.

mod gathering;
mod lineage;
mod names;
mod past;
mod telling;
mod telling_runs;
#[cfg(test)]
mod tests;
mod triples;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_casefile::Event;
use factum_store::{CaseRow, Tx};
use oxrdf::Triple;
use serde_json::Value;
use thiserror::Error;

use crate::error::EngineError;
use crate::export::{load_tree, readable_run, require_visible, snapshot_of};
use crate::permission::{Permitted, all_events, permitted};
use crate::workspace::{OWNER, Workspace};
use gathering::Gathering;
use lineage::{LeftOut, Lineage, Moment};
use past::{Eyes, Sight, Standing};

/// Provenance that can't be written. Not caused by any input.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("internal: the provenance can't be written: {0}")]
pub struct ProvenanceError(String);

impl From<std::io::Error> for ProvenanceError {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Statements of PROV-O, in a fixed order.
#[derive(Debug, Clone, PartialEq)]
pub struct Provenance {
    triples: Vec<Triple>,
}

impl Provenance {
    fn of(lineage: &Lineage) -> Self {
        let triples = telling::tell(lineage);
        Self { triples }
    }

    /// How many statements there are.
    pub const fn len(&self) -> usize {
        self.triples.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.triples.is_empty()
    }

    /// As Turtle.
    ///
    /// # Errors
    /// See [`ProvenanceError`].
    pub fn turtle(&self) -> Result<String, ProvenanceError> {
        triples::turtle(&self.triples)
    }

    /// As JSON-LD.
    ///
    /// # Errors
    /// See [`ProvenanceError`].
    pub fn json_ld(&self) -> Result<Value, ProvenanceError> {
        triples::json_ld(&self.triples)
    }
}

impl Workspace {
    /// The provenance of one run's summary.
    ///
    /// # Errors
    /// The run is unknown, unfinished, not the caller's, or rests on what the caller may no longer see.
    pub async fn provenance_of_run(
        &self,
        run_id: &str,
        caller: &PrincipalId,
    ) -> Result<Provenance, EngineError> {
        let mut tx = self.repository.read().await?;
        let run = readable_run(&mut tx, run_id, caller).await?;
        let case = tx
            .case_by_no(run.new.case_no)
            .await?
            .ok_or_else(|| EngineError::UnknownRun(run_id.to_owned()))?;
        let permitted = permitted(&mut tx, &case.case_id, caller).await?;
        let pages = load_tree(&mut tx, case.case_no, run.new.root).await?;
        let snapshot = snapshot_of(&pages);
        require_visible(&mut tx, &permitted, caller, &snapshot, run_id).await?;
        let sights = sights(&mut tx, &permitted, caller).await?;
        let events = all_events(&mut tx, permitted.case.case_no).await?;
        let mut lineage = history(&permitted.case, caller, &sights, &events)?;
        let stale = stale_moment(&lineage, &events, &run.new.principal, run.new.event)?;
        keep_what_concerns(&mut lineage, &snapshot, &run.new, stale);
        let mut gathering = Gathering::new(&mut tx, caller, &mut lineage);
        gathering.run(&run, &pages, stale, false).await?;
        Ok(Provenance::of(&lineage))
    }

    /// The provenance of a case file's whole history, as far as the caller may know it: all events, and all
    /// finished runs of the caller but those with a source that is hidden from it.
    ///
    /// # Errors
    /// The case file is unknown or hidden, or the store is damaged.
    pub async fn provenance_of_case(
        &self,
        case_id: &CaseId,
        caller: &PrincipalId,
    ) -> Result<Provenance, EngineError> {
        let mut tx = self.repository.read().await?;
        let permitted = permitted(&mut tx, case_id, caller).await?;
        let case_no = permitted.case.case_no;
        let sights = sights(&mut tx, &permitted, caller).await?;
        let events = all_events(&mut tx, permitted.case.case_no).await?;
        let mut lineage = history(&permitted.case, caller, &sights, &events)?;
        let standing = Standing::of(&events, &PrincipalId::new(OWNER)?, caller);
        let mut left_out = LeftOut::default();
        let runs = tx.runs(case_no, caller).await?;
        for run in runs.iter().filter(|run| run.finished_at.is_some()) {
            let pages = load_tree(&mut tx, case_no, run.new.root).await?;
            let snapshot = snapshot_of(&pages);
            let seen: BTreeSet<Option<Sight>> = snapshot
                .slots
                .iter()
                .filter(|slot| slot.eligible)
                .map(|slot| sights.get(&slot.doc_id).copied())
                .collect();
            if seen.contains(&None) || seen.contains(&Some(Sight::Hidden)) {
                left_out.hidden += 1;
                continue;
            }
            let outline = seen.contains(&Some(Sight::Named));
            left_out.outlined += u64::from(outline);
            let stale = first_seen(&lineage, &standing.stale_since(run.new.event));
            let mut gathering = Gathering::new(&mut tx, caller, &mut lineage);
            gathering.run(run, &pages, stale, outline).await?;
        }
        lineage.left_out = Some(left_out);
        Ok(Provenance::of(&lineage))
    }
}

/// What the caller may know of each document that it has a slot for.
async fn sights(
    tx: &mut Tx,
    permitted: &Permitted,
    caller: &PrincipalId,
) -> Result<HashMap<DocumentId, Sight>, EngineError> {
    let found = permitted.documents(tx, caller).await?;
    Ok(found
        .into_iter()
        .map(|document| {
            let sight = match (document.granted, document.state.eligible) {
                (true, true) => Sight::Whole,
                (true, false) => Sight::Named,
                (false, _) => Sight::Hidden,
            };
            (document.state.doc_id, sight)
        })
        .collect())
}

/// What events say, without any run.
fn history(
    case: &CaseRow,
    caller: &PrincipalId,
    sights: &HashMap<DocumentId, Sight>,
    events: &[Event],
) -> Result<Lineage, EngineError> {
    let owner = PrincipalId::new(OWNER)?;
    let eyes = Eyes {
        caller,
        owner: &owner,
        sights,
    };
    Ok(Lineage {
        case_id: case.case_id.clone(),
        title: case.title.clone(),
        created_at: case.created_at,
        caller: caller.clone(),
        last_event: case.last_event,
        left_out: None,
        documents: eyes.documents(events),
        events: events.iter().filter_map(|event| eyes.see(event)).collect(),
        rights: eyes.rights(events),
        agents: BTreeMap::new(),
        runs: Vec::new(),
        results: BTreeMap::new(),
        answers: BTreeMap::new(),
        quotes: BTreeMap::new(),
    })
}

fn stale_moment(
    lineage: &Lineage,
    events: &[Event],
    principal: &PrincipalId,
    event: u64,
) -> Result<Option<Moment>, EngineError> {
    let standing = Standing::of(events, &PrincipalId::new(OWNER)?, principal);
    Ok(first_seen(lineage, &standing.stale_since(event)))
}

/// The first of these events that the caller may know of. Another may have been to blame first; it is not told.
fn first_seen(lineage: &Lineage, stretch: &[u64]) -> Option<Moment> {
    stretch.iter().find_map(|number| {
        let seen = lineage
            .events
            .binary_search_by_key(number, |event| event.moment.event);
        seen.ok().map(|at| lineage.events[at].moment)
    })
}

/// For one run, only what concerns its sources, its reader and its end.
fn keep_what_concerns(
    lineage: &mut Lineage,
    snapshot: &factum_casefile::Snapshot,
    run: &factum_store::NewRun,
    stale: Option<Moment>,
) {
    let sources: BTreeSet<&DocumentId> = snapshot
        .slots
        .iter()
        .filter(|slot| slot.eligible)
        .map(|slot| &slot.doc_id)
        .collect();
    let of_reader =
        |principal: Option<&PrincipalId>| principal.is_none_or(|who| *who == run.principal);
    let end = stale.map(|moment| moment.event);
    lineage.events.retain(|event| {
        let concerns = match &event.doc_id {
            Some(doc_id) => sources.contains(doc_id),
            None => event.principal.is_some(),
        };
        let number = event.moment.event;
        number == run.event
            || Some(number) == end
            || (concerns && of_reader(event.principal.as_ref()))
    });
    let kept: BTreeSet<u64> = lineage
        .events
        .iter()
        .map(|event| event.moment.event)
        .collect();
    lineage
        .rights
        .retain(|id, right| kept.contains(&id.grant) && right.holder == run.principal);
    let mentioned: BTreeSet<DocumentId> = lineage
        .events
        .iter()
        .filter_map(|event| event.doc_id.clone())
        .collect();
    lineage
        .documents
        .retain(|doc_id, _| mentioned.contains(doc_id));
    for (doc_id, document) in &mut lineage.documents {
        if !sources.contains(doc_id) {
            document
                .versions
                .retain(|_, version| kept.contains(&version.published.event));
        }
    }
}
