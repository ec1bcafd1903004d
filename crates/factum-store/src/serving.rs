//! All that serving has to know, in one question.
//!
//! A single statement sees one state of the database, just as a transaction of several would, and costs one
//! hand-over to the database's thread instead of six. Where the newest head is not up to date there is
//! no answer here: why not is found out at leisure, in a transaction.

use factum_base::{CaseId, PrincipalId};
use factum_casefile::NodeResult;

use crate::access::{Effective, effective};
use crate::cases::{CaseRow, read as read_case};
use crate::error::StoreError;
use crate::pages::read_result;
use crate::repository::Repository;
use crate::rows::Columns;
use crate::runs::{Head, read_head};

/// The newest summary of a case file for a principal, if it was built from the case file's latest event.
#[derive(Debug, Clone, PartialEq)]
pub struct ServingRow {
    /// The case file.
    pub case: CaseRow,
    /// What the principal may see of it.
    pub access: Effective,
    /// The newest head; its tree is kept up to the latest event, and its root is the built one.
    pub head: Head,
    /// The root's result.
    pub result: NodeResult,
    /// How many pieces of the result's evidence the principal may cite now: the document is active, the
    /// principal may see it, and this version with this text is the one that counts.
    pub citable: u64,
}

// The columns of case, access and head are read by the functions that read them elsewhere. The newest head
// is sought first and its state asked afterwards: an older head that happens to be up to date must not
// stand in for it. The evidence is read out of the result itself, so that no second list of it can
// disagree. A granted document is not frozen, so its row's own version is the one that counts.
const SERVING: &str = "\
    SELECT c.case_no, c.case_id, c.title, c.profile, c.created_at, c.last_event, c.chain, \
    c.access_revision, a.granted, a.revision, \
    (SELECT COUNT(*) FROM (SELECT 1 FROM doc_access x WHERE x.case_no = c.case_no \
    AND x.principal = $2 AND x.granted = 1 LIMIT 1) AS g), \
    (SELECT COUNT(*) FROM (SELECT 1 FROM doc_access x WHERE x.case_no = c.case_no \
    AND x.principal = $2 AND x.granted = 0 LIMIT 1) AS r), \
    h.generator, h.context, h.planned_root, h.planned_event, h.access_revision, h.built_root, \
    h.built_event, h.built_context, h.built_run, h.built_at, h.digest, r.body, r.digest, \
    (SELECT COUNT(*) FROM result_citations e \
    CROSS JOIN documents d ON d.case_no = e.case_no AND d.doc_id = e.doc_id \
    LEFT JOIN doc_access x ON x.doc_no = d.doc_no AND x.principal = $2 \
    WHERE e.case_no = r.case_no AND e.key = r.key AND e.scope = r.scope AND d.active = 1 \
    AND d.version = e.version AND d.text_sha256 = e.text_sha256 \
    AND COALESCE(x.granted, a.granted, $4) = 1) \
    FROM cases c \
    JOIN heads h ON h.case_no = c.case_no AND h.principal = $2 AND (h.generator = $3 OR $3 = '') \
    JOIN results r ON r.case_no = c.case_no AND r.key = h.built_root \
    LEFT JOIN case_access a ON a.case_no = c.case_no AND a.principal = $2 \
    WHERE c.case_id = $1 AND h.planned_event = c.last_event AND h.planned_root = h.built_root \
    AND NOT EXISTS (SELECT 1 FROM heads n WHERE n.case_no = h.case_no AND n.principal = h.principal \
    AND $3 = '' AND COALESCE(n.built_run, 0) > COALESCE(h.built_run, 0)) \
    AND r.scope = (SELECT MIN(s.scope) FROM results s WHERE s.case_no = c.case_no AND s.key = h.built_root)";

impl Repository {
    /// What there is to serve: of the named generator, else of the one built last. `None` where the case
    /// file or head is unknown or the head is not up to date.
    ///
    /// # Errors
    /// The database can't be read, or what it holds is damaged.
    pub async fn serving_row(
        &self,
        case_id: &CaseId,
        principal: &PrincipalId,
        is_owner: bool,
        generator: Option<&str>,
    ) -> Result<Option<ServingRow>, StoreError> {
        let row = sqlx::query(SERVING)
            .bind(case_id.as_str())
            .bind(principal.as_str())
            .bind(generator.unwrap_or(""))
            .bind(i64::from(is_owner))
            .fetch_optional(self.pool())
            .await?;
        let Some(row) = row else { return Ok(None) };
        let case = read_case(&row)?;
        let head = read_head(&row, 12, case.case_no, principal)?;
        let root = head.planned_root;
        Ok(Some(ServingRow {
            access: effective(&row, 8, is_owner)?,
            result: read_result(&root, &row.blob(23)?, row.digest(24)?)?,
            citable: row.unsigned(25)?,
            case,
            head,
        }))
    }
}
