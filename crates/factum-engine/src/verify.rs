//! Verification of what is stored: the file, every record's digest, the event chain, the tables
//! against the events, and runs by the independent code of `factum_graph::verify`.

use std::collections::{BTreeMap, HashMap};

use factum_base::{CaseId, PrincipalId};
use factum_casefile::{Event, Snapshot};
use factum_graph::verify::{Finding, Sources, verify_event_chain, verify_run};
use factum_store::Tx;
use serde::Serialize;
use serde_json::Value;

use crate::error::EngineError;
use crate::export::{readable_run, require_visible, run_file};
use crate::permission::{Permitted, all_events, is_owner, permitted};
use crate::verify_stored::verify_documents;
use crate::workspace::{OWNER, Workspace};

/// What verification found.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Verification {
    /// Runs looked at.
    pub runs: Vec<String>,
    /// Nodes whose keys and results were recomputed or checked.
    pub nodes: u64,
    /// Pieces of evidence held against their texts.
    pub evidence: u64,
    /// Events in the chain.
    pub events: u64,
    /// Texts whose digests were recomputed.
    pub texts: u64,
    /// Every difference found.
    pub findings: Vec<StoredFinding>,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredFinding {
    /// The run, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Its class.
    pub class: String,
    /// Where.
    pub place: String,
    /// What, in words.
    pub message: String,
}

impl Workspace {
    /// Verifies a case file: for the owner all that is stored of it and the newest run of each
    /// principal; for others their own newest run.
    ///
    /// # Errors
    /// The case file is unknown or hidden, or the store can't be read at all.
    pub async fn verify_case(
        &self,
        case_id: &CaseId,
        caller: &PrincipalId,
    ) -> Result<Verification, EngineError> {
        let mut out = Verification::default();
        let mut tx = self.repository.read().await?;
        let permitted = permitted(&mut tx, case_id, caller).await?;
        let case_no = permitted.case.case_no;
        let mut principals = vec![caller.clone()];
        if is_owner(caller) {
            for message in self.repository.integrity_findings().await? {
                out.add("database", "file", message);
            }
            for message in tx.damaged_records(case_no).await? {
                out.add("damaged-record", "store", message);
            }
            for message in tx.damaged_generations().await? {
                out.add("damaged-record", "store", message);
            }
            self.verify_events_and_documents(&mut tx, &permitted, &mut out)
                .await?;
            principals = tx.principals_with_heads(case_no).await?;
        }
        for principal in principals {
            let head = match tx.head(case_no, &principal, None).await {
                Ok(head) => head,
                Err(error) => {
                    out.add("damaged-record", "head", error.to_string());
                    continue;
                }
            };
            let Some((built, ahead)) = head.and_then(|head| {
                let ahead = head.planned_event > permitted.case.last_event;
                head.built.map(|built| (built, ahead))
            }) else {
                continue;
            };
            if ahead {
                out.add(
                    "head",
                    principal.as_str(),
                    "the head is ahead of the events".to_owned(),
                );
            }
            match tx.run_by_no(built.run_no).await? {
                Some(run) => {
                    self.verify_one(&mut tx, &run.run_id, caller, &mut out)
                        .await?;
                }
                None => out.add(
                    "run",
                    principal.as_str(),
                    "the run of its head is gone".to_owned(),
                ),
            }
        }
        Ok(out)
    }

    /// Verifies one run.
    ///
    /// # Errors
    /// The run is unknown, or rests on what the caller may no longer see.
    pub async fn verify_stored_run(
        &self,
        run_id: &str,
        caller: &PrincipalId,
    ) -> Result<Verification, EngineError> {
        let mut out = Verification::default();
        let mut tx = self.repository.read().await?;
        let run = readable_run(&mut tx, run_id, caller).await?;
        if !is_owner(caller) {
            let (file, permitted) = run_file(&mut tx, &run, caller).await?;
            require_visible(&mut tx, &permitted, caller, &file.snapshot, run_id).await?;
        }
        self.verify_one(&mut tx, run_id, caller, &mut out).await?;
        Ok(out)
    }

    async fn verify_one(
        &self,
        tx: &mut Tx,
        run_id: &str,
        caller: &PrincipalId,
        out: &mut Verification,
    ) -> Result<(), EngineError> {
        let run = readable_run(tx, run_id, caller).await?;
        out.runs.push(run_id.to_owned());
        let file = match run_file(tx, &run, caller).await {
            Ok((file, _)) => file,
            Err(EngineError::Store(error)) => {
                out.add_for(run_id, "damaged-record", "run", error.to_string());
                return Ok(());
            }
            Err(other) => return Err(other),
        };
        let case_no = run.new.case_no;
        let events: Result<Vec<Value>, serde_json::Error> = all_events(tx, case_no)
            .await?
            .iter()
            .map(serde_json::to_value)
            .collect();
        let events = events?;
        let mut texts: HashMap<(String, u32), String> = HashMap::new();
        for slot in file.snapshot.slots.iter().filter(|slot| slot.eligible) {
            match tx.text(&slot.text_sha256).await {
                Ok(text) => {
                    texts.insert((slot.doc_id.to_string(), slot.version), text);
                }
                Err(error) => out.add_for(
                    run_id,
                    "damaged-record",
                    slot.doc_id.as_str(),
                    error.to_string(),
                ),
            }
        }
        out.nodes += file.nodes.len() as u64;
        out.evidence += file
            .nodes
            .iter()
            .map(|node| node.result.evidence.len() as u64)
            .sum::<u64>();
        out.texts += texts.len() as u64;
        let sources = Sources {
            owner: OWNER,
            events: Some(&events),
            text: &|doc_id, version| texts.get(&(doc_id.to_owned(), version)).cloned(),
        };
        for finding in verify_run(&serde_json::to_value(&file)?, &sources) {
            out.add_finding(Some(run_id), &finding)?;
        }
        Ok(())
    }

    async fn verify_events_and_documents(
        &self,
        tx: &mut Tx,
        permitted: &Permitted,
        out: &mut Verification,
    ) -> Result<(), EngineError> {
        let case = &permitted.case;
        let stored = match tx.events_after(case.case_no, 0).await {
            Ok(stored) => stored,
            Err(error) => {
                out.add("event-chain", "events", error.to_string());
                return Ok(());
            }
        };
        let mut chain = Vec::with_capacity(stored.len());
        for (event, digest) in &stored {
            chain.push((serde_json::to_value(event)?, digest.to_hex()));
        }
        out.events = stored.len() as u64;
        for finding in verify_event_chain(&chain) {
            out.add_finding(None, &finding)?;
        }
        let end = stored
            .last()
            .map(|(event, chain)| (event.number, Some(*chain)));
        if end.unwrap_or((0, None)) != (case.last_event, case.chain) {
            out.add(
                "event-chain",
                "case",
                "the case file's latest event is not the end of its chain".to_owned(),
            );
        }
        let events: Vec<Event> = stored.into_iter().map(|(event, _)| event).collect();
        let profile = self.profile(&case.profile).ok();
        let rule = profile.as_ref().map(|profile| &profile.segments);
        verify_documents(tx, case, &events, rule, out).await?;
        // The owner's snapshot by the plain fold, against the tables that serving reads.
        let mut principals = tx.principals_with_heads(case.case_no).await?;
        principals.push(PrincipalId::new(OWNER)?);
        for principal in principals {
            self.verify_tables(tx, case.case_no, &events, &principal, out)
                .await?;
        }
        Ok(())
    }

    async fn verify_tables(
        &self,
        tx: &mut Tx,
        case_no: i64,
        events: &[Event],
        principal: &PrincipalId,
        out: &mut Verification,
    ) -> Result<(), EngineError> {
        let folded = Snapshot::fold(events, &PrincipalId::new(OWNER)?, principal, u64::MAX);
        let access = tx
            .effective_access(case_no, principal, is_owner(principal))
            .await?;
        let rows = match tx
            .principal_documents(case_no, principal.as_str(), access.case)
            .await
        {
            Ok(rows) => rows,
            Err(error) => {
                out.add("snapshot", principal.as_str(), error.to_string());
                return Ok(());
            }
        };
        let rows: BTreeMap<_, _> = rows
            .into_iter()
            .map(|row| (row.state.slot.clone(), row.state))
            .collect();
        let folded: BTreeMap<_, _> = folded
            .slots
            .into_iter()
            .map(|state| (state.slot.clone(), state))
            .collect();
        let keys: std::collections::BTreeSet<_> = rows.keys().chain(folded.keys()).collect();
        for slot in keys {
            if rows.get(slot) != folded.get(slot) {
                out.add(
                    "snapshot",
                    slot.as_str(),
                    format!("what is stored for {principal} is not what the events say"),
                );
            }
        }
        Ok(())
    }
}

impl Verification {
    pub(crate) fn add(&mut self, class: &str, place: &str, message: String) {
        self.findings.push(StoredFinding {
            run_id: None,
            class: class.to_owned(),
            place: place.to_owned(),
            message,
        });
    }

    fn add_for(&mut self, run_id: &str, class: &str, place: &str, message: String) {
        self.add(class, place, message);
        if let Some(last) = self.findings.last_mut() {
            last.run_id = Some(run_id.to_owned());
        }
    }

    fn add_finding(&mut self, run_id: Option<&str>, finding: &Finding) -> Result<(), EngineError> {
        let class = serde_json::to_value(finding.class)?;
        self.findings.push(StoredFinding {
            run_id: run_id.map(str::to_owned),
            class: class.as_str().unwrap_or("difference").to_owned(),
            place: finding.place.clone(),
            message: finding.message.clone(),
        });
        Ok(())
    }
}
