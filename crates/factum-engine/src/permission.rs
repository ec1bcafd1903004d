//! Who may do what. Unknown and forbidden case files look alike to all but the owner.

use factum_base::{CaseId, PrincipalId};
use factum_casefile::Event;
use factum_store::{CaseRow, Effective, PrincipalDocument, StoreError, Tx};

use crate::error::EngineError;
use crate::workspace::OWNER;

/// A case file with what the caller may see of it.
#[derive(Debug, Clone)]
pub(crate) struct Permitted {
    pub(crate) case: CaseRow,
    pub(crate) access: Effective,
}

impl Permitted {
    /// Everything the caller has a slot for, in slot order.
    pub(crate) async fn documents(
        &self,
        tx: &mut Tx,
        caller: &PrincipalId,
    ) -> Result<Vec<PrincipalDocument>, StoreError> {
        tx.principal_documents(self.case.case_no, caller.as_str(), self.access.case)
            .await
    }
}

/// All events of a case file, in order.
pub(crate) async fn all_events(tx: &mut Tx, case_no: i64) -> Result<Vec<Event>, StoreError> {
    let events = tx.events_after(case_no, 0).await?;
    Ok(events.into_iter().map(|(event, _)| event).collect())
}

pub(crate) fn is_owner(principal: &PrincipalId) -> bool {
    principal.as_str() == OWNER
}

pub(crate) fn require_owner(caller: &PrincipalId) -> Result<(), EngineError> {
    if is_owner(caller) {
        Ok(())
    } else {
        Err(EngineError::OwnerOnly(caller.clone()))
    }
}

/// The case file, for someone who may see at least something of it.
pub(crate) async fn permitted(
    tx: &mut Tx,
    case_id: &CaseId,
    caller: &PrincipalId,
) -> Result<Permitted, EngineError> {
    let owner = is_owner(caller);
    let forbidden = || EngineError::Forbidden {
        principal: caller.clone(),
        case: case_id.clone(),
    };
    let Some((case, access)) = tx.case_and_access(case_id, caller, owner).await? else {
        return Err(if owner {
            EngineError::UnknownCase(case_id.clone())
        } else {
            forbidden()
        });
    };
    if access.any() {
        Ok(Permitted { case, access })
    } else {
        Err(forbidden())
    }
}

/// The case file, for the owner to change. The owner may change even what is revoked from it, else no
/// one could grant it again.
pub(crate) async fn owned_case(
    tx: &mut Tx,
    case_id: &CaseId,
    caller: &PrincipalId,
) -> Result<CaseRow, EngineError> {
    require_owner(caller)?;
    tx.case(case_id)
        .await?
        .ok_or_else(|| EngineError::UnknownCase(case_id.clone()))
}
