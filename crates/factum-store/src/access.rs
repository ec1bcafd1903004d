//! Grants and revocations, as rows kept up to date in the transaction of each event.
//!
//! A principal has one whole-case right and, where that does not say it all, a row per document. The
//! rows of revoked documents hold what the principal last saw.

use factum_base::{CaseId, PrincipalId};

use crate::cases::{CaseRow, read as read_case};
use crate::error::StoreError;
use crate::repository::Tx;
use crate::rows::{Columns, signed};

/// A principal's right to a whole case file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseAccess {
    /// May see all documents without a row of their own, later ones too.
    pub granted: bool,
    /// The event that said so; 0 for the owner's standing right.
    pub revision: u64,
}

/// A principal's own row for a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocAccess {
    /// May see it.
    pub granted: bool,
    /// The event that said so.
    pub revision: u64,
}

/// What a principal may see of a case file, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effective {
    /// The whole-case right.
    pub case: CaseAccess,
    /// Some documents are granted by a row of their own.
    pub granted_rows: bool,
    /// Some documents are revoked by a row of their own.
    pub revoked_rows: bool,
}

impl Effective {
    /// May see at least something, now or once documents come.
    pub const fn any(&self) -> bool {
        self.case.granted || self.granted_rows
    }
}

pub(crate) fn effective<R: Columns>(
    row: &R,
    first: usize,
    is_owner: bool,
) -> Result<Effective, StoreError> {
    let case = match (row.optional_int(first)?, row.optional_int(first + 1)?) {
        (Some(granted), Some(revision)) => CaseAccess {
            granted: granted != 0,
            revision: u64::try_from(revision).unwrap_or(0),
        },
        _ => CaseAccess {
            granted: is_owner,
            revision: 0,
        },
    };
    Ok(Effective {
        case,
        granted_rows: row.flag(first + 2)?,
        revoked_rows: row.flag(first + 3)?,
    })
}

impl Tx {
    /// The whole-case right and the number of rows beside it. `owner` stands for a right at revision 0
    /// where no event said otherwise.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn effective_access(
        &mut self,
        case_no: i64,
        principal: &PrincipalId,
        is_owner: bool,
    ) -> Result<Effective, StoreError> {
        let row = sqlx::query(
            "SELECT (SELECT granted FROM case_access WHERE case_no = $1 AND principal = $2), \
             (SELECT revision FROM case_access WHERE case_no = $1 AND principal = $2), \
             (SELECT COUNT(*) FROM (SELECT 1 FROM doc_access WHERE case_no = $1 AND principal = $2 \
             AND granted = 1 LIMIT 1) AS g), \
             (SELECT COUNT(*) FROM (SELECT 1 FROM doc_access WHERE case_no = $1 AND principal = $2 \
             AND granted = 0 LIMIT 1) AS r)",
        )
        .bind(case_no)
        .bind(principal.as_str())
        .fetch_one(self.connection())
        .await?;
        effective(&row, 0, is_owner)
    }

    /// The case file of that id with what a principal may see of it, in one question.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn case_and_access(
        &mut self,
        case_id: &CaseId,
        principal: &PrincipalId,
        is_owner: bool,
    ) -> Result<Option<(CaseRow, Effective)>, StoreError> {
        let row = sqlx::query(
            "SELECT c.case_no, c.case_id, c.title, c.profile, c.created_at, c.last_event, c.chain, \
             c.access_revision, a.granted, a.revision, \
             (SELECT COUNT(*) FROM (SELECT 1 FROM doc_access d WHERE d.case_no = c.case_no \
             AND d.principal = $2 AND d.granted = 1 LIMIT 1) AS g), \
             (SELECT COUNT(*) FROM (SELECT 1 FROM doc_access d WHERE d.case_no = c.case_no \
             AND d.principal = $2 AND d.granted = 0 LIMIT 1) AS r) \
             FROM cases c LEFT JOIN case_access a ON a.case_no = c.case_no AND a.principal = $2 \
             WHERE c.case_id = $1",
        )
        .bind(case_id.as_str())
        .bind(principal.as_str())
        .fetch_optional(self.connection())
        .await?;
        row.map(|row| Ok((read_case(&row)?, effective(&row, 8, is_owner)?)))
            .transpose()
    }

    /// A principal's own row for a document.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn doc_access(
        &mut self,
        doc_no: i64,
        principal: &PrincipalId,
    ) -> Result<Option<DocAccess>, StoreError> {
        let row = sqlx::query(
            "SELECT granted, revision FROM doc_access WHERE doc_no = $1 AND principal = $2",
        )
        .bind(doc_no)
        .bind(principal.as_str())
        .fetch_optional(self.connection())
        .await?;
        row.map(|row| {
            Ok(DocAccess {
                granted: row.flag(0)?,
                revision: row.unsigned(1)?,
            })
        })
        .transpose()
    }

    /// Records a grant of one document.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn grant_document(
        &mut self,
        case_no: i64,
        doc_no: i64,
        principal: &PrincipalId,
        event: u64,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO doc_access (doc_no, principal, case_no, granted, revision) \
             VALUES ($1, $2, $3, 1, $4) ON CONFLICT (doc_no, principal) DO UPDATE SET granted = 1, \
             revision = $4, frozen_version = NULL, frozen_active = NULL",
        )
        .bind(doc_no)
        .bind(principal.as_str())
        .bind(case_no)
        .bind(signed(event))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Records a revocation of one document the principal has a slot for.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn revoke_document(
        &mut self,
        case_no: i64,
        doc_no: i64,
        principal: &PrincipalId,
        event: u64,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO doc_access (doc_no, principal, case_no, granted, revision, frozen_version, \
             frozen_active) SELECT d.doc_no, $2, d.case_no, 0, $3, d.version, d.active FROM documents d \
             WHERE d.doc_no = $1 AND d.case_no = $4 \
             ON CONFLICT (doc_no, principal) DO UPDATE SET granted = 0, revision = $3, \
             frozen_version = COALESCE(doc_access.frozen_version, excluded.frozen_version), \
             frozen_active = COALESCE(doc_access.frozen_active, excluded.frozen_active)",
        )
        .bind(doc_no)
        .bind(principal.as_str())
        .bind(signed(event))
        .bind(case_no)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Records a grant of the whole case file: rows of single documents give way to it.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn grant_case(
        &mut self,
        case_no: i64,
        principal: &PrincipalId,
        event: u64,
    ) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM doc_access WHERE case_no = $1 AND principal = $2")
            .bind(case_no)
            .bind(principal.as_str())
            .execute(self.connection())
            .await?;
        self.set_case_access(case_no, principal, true, event).await
    }

    /// Records a revocation of the whole case file: every document the principal has a slot for gets
    /// a row with what it last saw.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn revoke_case(
        &mut self,
        case_no: i64,
        principal: &PrincipalId,
        was: CaseAccess,
        event: u64,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO doc_access (doc_no, principal, case_no, granted, revision, frozen_version, \
             frozen_active) SELECT d.doc_no, $2, d.case_no, 0, $3, d.version, d.active FROM documents d \
             LEFT JOIN doc_access a ON a.doc_no = d.doc_no AND a.principal = $2 \
             WHERE d.case_no = $1 AND ($4 = 1 OR a.granted IS NOT NULL) \
             ON CONFLICT (doc_no, principal) DO UPDATE SET granted = 0, revision = $3, \
             frozen_version = COALESCE(doc_access.frozen_version, excluded.frozen_version), \
             frozen_active = COALESCE(doc_access.frozen_active, excluded.frozen_active)",
        )
        .bind(case_no)
        .bind(principal.as_str())
        .bind(signed(event))
        .bind(i64::from(was.granted))
        .execute(self.connection())
        .await?;
        self.set_case_access(case_no, principal, false, event).await
    }

    async fn set_case_access(
        &mut self,
        case_no: i64,
        principal: &PrincipalId,
        granted: bool,
        event: u64,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO case_access (case_no, principal, granted, revision) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (case_no, principal) DO UPDATE SET granted = $3, revision = $4",
        )
        .bind(case_no)
        .bind(principal.as_str())
        .bind(i64::from(granted))
        .bind(signed(event))
        .execute(self.connection())
        .await?;
        Ok(())
    }
}
