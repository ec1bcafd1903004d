//! What was current at an earlier event or date: history, for those who may still see all of it.

use factum_base::{CaseId, PrincipalId};
use factum_casefile::{Event, NodeStatus, Snapshot};
use factum_store::RunRow;

use crate::error::EngineError;
use crate::export::{require_visible, run_file};
use crate::permission::{all_events, permitted};
use crate::serve::{About, Reason, Refusal, RefusalStatus, Served, summary};
use crate::workspace::{OWNER, Workspace};

/// A moment in a case file's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Right after this event.
    Event(u64),
    /// At this time, in Unix milliseconds.
    Time(i64),
}

/// What was served at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsOf {
    /// The case file's latest event at that moment.
    pub event: u64,
    /// The summary, or why there was none.
    pub served: Served,
}

impl Workspace {
    /// What was current at a moment. The summary is history, whatever it says.
    ///
    /// # Errors
    /// The case file is unknown or hidden, the moment lies outside its history, or what was current
    /// then rests on documents that the caller may no longer see.
    pub async fn serve_as_of(
        &self,
        case_id: &CaseId,
        principal: &PrincipalId,
        moment: Moment,
    ) -> Result<AsOf, EngineError> {
        let mut tx = self.repository.read().await?;
        let permitted_now = permitted(&mut tx, case_id, principal).await?;
        let case = permitted_now.case.clone();
        let events = all_events(&mut tx, case.case_no).await?;
        let (event, until) = locate(&events, case.created_at, moment)?;
        let refused = |status, message: &str, built_event| AsOf {
            event,
            served: Served::Refused(Refusal {
                status,
                reasons: vec![Reason {
                    event: None,
                    kind: "history".to_owned(),
                    doc_id: None,
                    message: message.to_owned(),
                }],
                event,
                built_event,
            }),
        };
        let runs = tx.runs(case.case_no, principal).await?;
        let newest = runs
            .into_iter()
            .rfind(|run| run.new.event <= event && run.finished_at.is_some_and(|at| at <= until));
        let Some(run) = newest else {
            return Ok(refused(
                RefusalStatus::Absent,
                "no summary had been built by then",
                None,
            ));
        };
        let owner = PrincipalId::new(OWNER)?;
        let then = Snapshot::fold(&events, &owner, principal, event);
        if Snapshot::fold(&events, &owner, principal, run.new.event) != then {
            return Ok(refused(
                RefusalStatus::Stale,
                "the summary was stale then: it had not been built again after the last change",
                Some(run.new.event),
            ));
        }
        let (file, permitted) = run_file(&mut tx, &run, principal).await?;
        require_visible(
            &mut tx,
            &permitted,
            principal,
            &file.snapshot,
            "what was current then",
        )
        .await?;
        self.history_summary(run, file, event, case.title)
    }

    fn history_summary(
        &self,
        run: RunRow,
        file: factum_graph::run_file::RunFile,
        event: u64,
        title: String,
    ) -> Result<AsOf, EngineError> {
        let profile = self.profile(&run.new.profile)?;
        let root = file.nodes.into_iter().next_back().map(|node| node.result);
        let root = root.ok_or_else(|| EngineError::UnknownRun(run.run_id.clone()))?;
        if root.status == NodeStatus::Invalid {
            let refusal = Refusal {
                status: RefusalStatus::Invalid,
                reasons: Vec::new(),
                event,
                built_event: Some(run.new.event),
            };
            return Ok(AsOf {
                event,
                served: Served::Refused(refusal),
            });
        }
        let about = About {
            case_id: file.case_id,
            title,
            principal: run.new.principal,
            event,
            root: file.root,
            generator: run.new.generator,
            built_at: run.finished_at.unwrap_or(run.new.started_at),
        };
        Ok(AsOf {
            event,
            served: Served::Current(Box::new(summary(about, &profile, root))),
        })
    }
}

/// The latest event at a moment, and the time until which it was the latest.
fn locate(events: &[Event], created_at: i64, moment: Moment) -> Result<(u64, i64), EngineError> {
    let last = events.last().map_or(0, |event| event.number);
    match moment {
        Moment::Event(number) if number > last => Err(EngineError::BadMoment(format!(
            "there is no event {number} yet; the latest is {last}"
        ))),
        Moment::Event(number) => {
            let next = events
                .iter()
                .find(|event| event.number > number)
                .map_or(i64::MAX, |event| event.at);
            Ok((number, next))
        }
        Moment::Time(time) if time < created_at => Err(EngineError::BadMoment(
            "the case file did not exist at that date".to_owned(),
        )),
        Moment::Time(time) => {
            let event = events
                .iter()
                .rev()
                .find(|event| event.at <= time)
                .map_or(0, |event| event.number);
            Ok((event, time))
        }
    }
}
