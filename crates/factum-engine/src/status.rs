//! What there is: case files, documents, and how each principal's summary stands.

use factum_base::{CaseId, DocumentId, PrincipalId};
use serde::Serialize;

use crate::error::EngineError;
use crate::permission::{is_owner, permitted};
use crate::serve::{Decision, Reason, decide};
use crate::workspace::Workspace;

/// A case file in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseLine {
    /// Its id.
    pub case_id: CaseId,
    /// Its title.
    pub title: String,
    /// Its profile's name.
    pub profile: String,
    /// Its latest event.
    pub event: u64,
    /// CURRENT, STALE or ABSENT for the caller; `PROFILE?` where the profile can't be read.
    pub summary: String,
}

/// A case file with its documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseStatus {
    /// The case file.
    #[serde(flatten)]
    pub line: CaseLine,
    /// Who asked.
    pub principal: PrincipalId,
    /// Why the summary is not current.
    pub reasons: Vec<Reason>,
    /// The event that the newest summary was built at.
    pub built_event: Option<u64>,
    /// The documents the caller has a slot for, in order.
    pub documents: Vec<DocumentLine>,
}

/// A document in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DocumentLine {
    /// Its id.
    pub doc_id: DocumentId,
    /// The version that counts.
    pub version: u32,
    /// `current`, `withdrawn` or `revoked`.
    pub state: String,
    /// Code points.
    pub chars: u32,
}

impl Workspace {
    /// The case files the caller may see.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn cases(&self, caller: &PrincipalId) -> Result<Vec<CaseLine>, EngineError> {
        let mut tx = self.repository.read().await?;
        let mut lines = Vec::new();
        for case in tx.cases().await? {
            let access = tx
                .effective_access(case.case_no, caller, is_owner(caller))
                .await?;
            if !access.any() && !is_owner(caller) {
                continue;
            }
            let permitted = crate::permission::Permitted { case, access };
            // One profile that can't be read must not hide the other case files.
            let summary = match self.standing(&mut tx, &permitted, caller).await {
                Ok((summary, ..)) => summary,
                Err(EngineError::Profile(_)) => "PROFILE?".to_owned(),
                Err(other) => return Err(other),
            };
            lines.push(line(&permitted, summary));
        }
        Ok(lines)
    }

    /// One case file with its documents.
    ///
    /// # Errors
    /// It is unknown or hidden, or the store can't be read.
    pub async fn status(
        &self,
        case_id: &CaseId,
        caller: &PrincipalId,
    ) -> Result<CaseStatus, EngineError> {
        let mut tx = self.repository.read().await?;
        let permitted = permitted(&mut tx, case_id, caller).await?;
        let (summary, reasons, built_event) = self.standing(&mut tx, &permitted, caller).await?;
        let found = permitted.documents(&mut tx, caller).await?;
        let mut documents = Vec::with_capacity(found.len());
        for document in found {
            let (state, revoked) = (document.state, !document.granted);
            if revoked && !is_owner(caller) {
                continue;
            }
            documents.push(DocumentLine {
                doc_id: state.doc_id,
                version: state.version,
                state: match (revoked, state.active) {
                    (true, _) => "revoked",
                    (false, false) => "withdrawn",
                    (false, true) => "current",
                }
                .to_owned(),
                chars: document.chars,
            });
        }
        Ok(CaseStatus {
            line: line(&permitted, summary),
            principal: caller.clone(),
            reasons,
            built_event,
            documents,
        })
    }

    async fn standing(
        &self,
        tx: &mut factum_store::Tx,
        permitted: &crate::permission::Permitted,
        caller: &PrincipalId,
    ) -> Result<(String, Vec<Reason>, Option<u64>), EngineError> {
        Ok(match decide(self, tx, permitted, caller, None).await? {
            Decision::Current(found) => (
                "CURRENT".to_owned(),
                Vec::new(),
                found.0.built.map(|built| built.event),
            ),
            Decision::Refused(refusal, _) => (
                refusal.status.word().to_owned(),
                refusal.reasons,
                refusal.built_event,
            ),
        })
    }
}

fn line(permitted: &crate::permission::Permitted, summary: String) -> CaseLine {
    let case = &permitted.case;
    CaseLine {
        case_id: case.case_id.clone(),
        title: case.title.clone(),
        profile: case.profile.clone(),
        event: case.last_event,
        summary,
    }
}
