//! Grants and revocations. The right and its revision move in one transaction, so the next read sees
//! both or neither.

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_casefile::EventKind;

use crate::error::EngineError;
use crate::permission::{is_owner, owned_case};
use crate::publish::Publisher;
use crate::workspace::Workspace;

impl Workspace {
    /// Lets `to` see documents, or the whole case file with all later documents where `docs` is empty.
    /// The events; none where nothing changes.
    ///
    /// # Errors
    /// A document is unknown, or the caller is not the owner.
    pub async fn grant(
        &self,
        caller: &PrincipalId,
        case_id: &CaseId,
        docs: &[DocumentId],
        to: &PrincipalId,
    ) -> Result<Vec<u64>, EngineError> {
        self.change_rights(caller, case_id, docs, to, true).await
    }

    /// Hides documents, or the whole case file where `docs` is empty, from `from`.
    /// The events; none where nothing changes.
    ///
    /// # Errors
    /// A document is unknown, or the caller is not the owner.
    pub async fn revoke(
        &self,
        caller: &PrincipalId,
        case_id: &CaseId,
        docs: &[DocumentId],
        from: &PrincipalId,
    ) -> Result<Vec<u64>, EngineError> {
        self.change_rights(caller, case_id, docs, from, false).await
    }

    async fn change_rights(
        &self,
        caller: &PrincipalId,
        case_id: &CaseId,
        docs: &[DocumentId],
        principal: &PrincipalId,
        grant: bool,
    ) -> Result<Vec<u64>, EngineError> {
        let mut tx = self.repository.write().await?;
        let mut case = owned_case(&mut tx, case_id, caller).await?;
        let mut by = Publisher {
            tx: &mut tx,
            case: &mut case,
            caller,
            now: self.now(),
        };
        let mut events = Vec::new();
        if docs.is_empty() {
            events.extend(by.whole_case(principal, grant).await?);
        }
        for doc_id in docs {
            events.extend(by.one_document(case_id, doc_id, principal, grant).await?);
        }
        tx.save_case(&case).await?;
        tx.commit().await?;
        Ok(events)
    }
}

impl Publisher<'_> {
    async fn whole_case(
        &mut self,
        principal: &PrincipalId,
        grant: bool,
    ) -> Result<Option<u64>, EngineError> {
        let now = self
            .tx
            .effective_access(self.case.case_no, principal, is_owner(principal))
            .await?;
        let nothing_to_do = if grant {
            now.case.granted && !now.revoked_rows
        } else {
            !now.case.granted && !now.granted_rows
        };
        if nothing_to_do {
            return Ok(None);
        }
        let event = self.append(change(None, principal, grant)).await?;
        if grant {
            self.tx
                .grant_case(self.case.case_no, principal, event)
                .await?;
        } else {
            self.tx
                .revoke_case(self.case.case_no, principal, now.case, event)
                .await?;
        }
        Ok(Some(event))
    }

    async fn one_document(
        &mut self,
        case_id: &CaseId,
        doc_id: &DocumentId,
        principal: &PrincipalId,
        grant: bool,
    ) -> Result<Option<u64>, EngineError> {
        let document = self
            .tx
            .document(self.case.case_no, doc_id)
            .await?
            .ok_or_else(|| EngineError::UnknownDocument {
                case: case_id.clone(),
                doc: doc_id.clone(),
            })?;
        let whole = self
            .tx
            .effective_access(self.case.case_no, principal, is_owner(principal))
            .await?;
        let own = self.tx.doc_access(document.doc_no, principal).await?;
        let granted = own.map_or(whole.case.granted, |own| own.granted);
        if granted == grant {
            return Ok(None);
        }
        let event = self.append(change(Some(doc_id), principal, grant)).await?;
        if grant {
            self.tx
                .grant_document(self.case.case_no, document.doc_no, principal, event)
                .await?;
        } else {
            self.tx
                .revoke_document(self.case.case_no, document.doc_no, principal, event)
                .await?;
        }
        Ok(Some(event))
    }
}

fn change(doc_id: Option<&DocumentId>, principal: &PrincipalId, grant: bool) -> EventKind {
    let (doc_id, principal) = (doc_id.cloned(), principal.clone());
    if grant {
        EventKind::Granted {
            doc_id,
            to: principal,
        }
    } else {
        EventKind::Revoked {
            doc_id,
            from: principal,
        }
    }
}
