//! Runs (one build each) and heads (what a principal's summary is built from, and what it should be).

use factum_base::digest::kind;
use factum_base::{BodyDigest, NodeKey, PrincipalId, SpecPartDigest};

use crate::error::{StoreError, damaged};
use crate::repository::Tx;
use crate::rows::{Columns, signed};

/// A run about to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// The case file.
    pub case_no: i64,
    /// Who it is for.
    pub principal: PrincipalId,
    /// The generator's name.
    pub generator: String,
    /// The profile's name.
    pub profile: String,
    /// The spec context.
    pub context: SpecPartDigest,
    /// The snapshot's event.
    pub event: u64,
    /// The planned root.
    pub root: NodeKey,
    /// A full build: it reuses nothing and keeps its results apart.
    pub full: bool,
    /// When, in Unix milliseconds.
    pub started_at: i64,
}

/// A run as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The row's number.
    pub run_no: i64,
    /// Its public id.
    pub run_id: String,
    /// What was known at its start.
    pub new: NewRun,
    /// Where its results are: 0 for shared ones, else its own number.
    pub scope: i64,
    /// When it finished, in Unix milliseconds; `None` for a run that was interrupted or goes on.
    pub finished_at: Option<i64>,
    /// Its counts and invalidation, as JSON.
    pub summary: Option<String>,
}

/// What a principal's summary is built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The generator's name.
    pub generator: String,
    /// The spec context of the kept tree.
    pub context: SpecPartDigest,
    /// Root of the kept tree.
    pub planned_root: NodeKey,
    /// The event up to which the tree is kept.
    pub planned_event: u64,
    /// The case file's access revision then.
    pub access_revision: u64,
    /// The root last built.
    pub built: Option<Built>,
}

/// The build a head serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// Its root.
    pub root: NodeKey,
    /// The snapshot's event.
    pub event: u64,
    /// The spec context.
    pub context: SpecPartDigest,
    /// The run.
    pub run_no: i64,
    /// When, in Unix milliseconds.
    pub at: i64,
}

const RUN_COLUMNS: &str = "run_no, run_id, case_no, principal, generator, profile, context, event, root, \
    scope, started_at, finished_at, summary";
const HEAD_COLUMNS: &str = "generator, context, planned_root, planned_event, access_revision, built_root, \
    built_event, built_context, built_run, built_at, digest";

fn read_run<R: Columns>(row: &R, summary: Option<String>) -> Result<RunRow, StoreError> {
    let scope = row.int(9)?;
    Ok(RunRow {
        run_no: row.int(0)?,
        run_id: row.text(1)?,
        new: NewRun {
            case_no: row.int(2)?,
            principal: PrincipalId::new(row.text(3)?).map_err(damaged)?,
            generator: row.text(4)?,
            profile: row.text(5)?,
            context: row.digest(6)?,
            event: row.unsigned(7)?,
            root: row.digest(8)?,
            full: scope != 0,
            started_at: row.int(10)?,
        },
        scope,
        finished_at: row.optional_int(11)?,
        summary,
    })
}

fn run_of(row: &sqlx::any::AnyRow) -> Result<RunRow, StoreError> {
    read_run(row, sqlx::Row::try_get(row, 12)?)
}

/// Reads a head whose columns begin at `first`, and holds it against its digest.
pub(crate) fn read_head<R: Columns>(
    row: &R,
    first: usize,
    case_no: i64,
    principal: &PrincipalId,
) -> Result<Head, StoreError> {
    let built = match row.optional_digest(first + 5)? {
        None => None,
        Some(root) => Some(Built {
            root,
            event: row.unsigned(first + 6)?,
            context: row.digest(first + 7)?,
            run_no: row.int(first + 8)?,
            at: row.int(first + 9)?,
        }),
    };
    let head = Head {
        generator: row.text(first)?,
        context: row.digest(first + 1)?,
        planned_root: row.digest(first + 2)?,
        planned_event: row.unsigned(first + 3)?,
        access_revision: row.unsigned(first + 4)?,
        built,
    };
    if row.digest::<kind::Body>(first + 10)? == head_digest(case_no, principal, &head) {
        Ok(head)
    } else {
        Err(damaged(format!(
            "the head of {principal} does not match its digest"
        )))
    }
}

impl Tx {
    /// Records the start of a run and gives its number and public id.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn insert_run(&mut self, run: &NewRun) -> Result<(i64, String), StoreError> {
        // The public id holds the number, which the insertion gives.
        let placeholder = format!(
            "starting {} {} {}",
            run.case_no, run.principal, run.started_at
        );
        let row = sqlx::query(
            "INSERT INTO runs (run_id, case_no, principal, generator, profile, context, event, root, scope, \
             started_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9) RETURNING run_no",
        )
        .bind(placeholder)
        .bind(run.case_no)
        .bind(run.principal.as_str())
        .bind(run.generator.as_str())
        .bind(run.profile.as_str())
        .bind(&run.context.as_bytes()[..])
        .bind(signed(run.event))
        .bind(&run.root.as_bytes()[..])
        .bind(run.started_at)
        .fetch_one(self.connection())
        .await?;
        let run_no = row.int(0)?;
        let run_id = format!("run-{run_no:06}");
        sqlx::query("UPDATE runs SET run_id = $1, scope = $2 WHERE run_no = $3")
            .bind(run_id.as_str())
            .bind(if run.full { run_no } else { 0 })
            .bind(run_no)
            .execute(self.connection())
            .await?;
        Ok((run_no, run_id))
    }

    /// Records a run's end.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn finish_run(
        &mut self,
        run_no: i64,
        at: i64,
        summary: &str,
    ) -> Result<(), StoreError> {
        sqlx::query("UPDATE runs SET finished_at = $1, summary = $2 WHERE run_no = $3 AND finished_at IS NULL")
            .bind(at)
            .bind(summary)
            .bind(run_no)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// A run by its public id.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn run(&mut self, run_id: &str) -> Result<Option<RunRow>, StoreError> {
        let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE run_id = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(run_id)
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(run_of).transpose()
    }

    /// A run by its number.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn run_by_no(&mut self, run_no: i64) -> Result<Option<RunRow>, StoreError> {
        let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE run_no = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(run_no)
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(run_of).transpose()
    }

    /// The runs of a principal on a case file, oldest first.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn runs(
        &mut self,
        case_no: i64,
        principal: &PrincipalId,
    ) -> Result<Vec<RunRow>, StoreError> {
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM runs WHERE case_no = $1 AND principal = $2 ORDER BY run_no"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(case_no)
            .bind(principal.as_str())
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(run_of).collect()
    }

    /// The principals that have a head on a case file.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn principals_with_heads(
        &mut self,
        case_no: i64,
    ) -> Result<Vec<PrincipalId>, StoreError> {
        let rows = sqlx::query(
            "SELECT DISTINCT principal FROM heads WHERE case_no = $1 ORDER BY principal",
        )
        .bind(case_no)
        .fetch_all(self.connection())
        .await?;
        rows.iter()
            .map(|row| PrincipalId::new(row.text(0)?).map_err(damaged))
            .collect()
    }

    /// The head to serve: of the named generator, else the one built last.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn head(
        &mut self,
        case_no: i64,
        principal: &PrincipalId,
        generator: Option<&str>,
    ) -> Result<Option<Head>, StoreError> {
        let sql = format!(
            "SELECT {HEAD_COLUMNS} FROM heads WHERE case_no = $1 AND principal = $2 \
             AND (generator = $3 OR $3 = '') ORDER BY COALESCE(built_run, 0) DESC LIMIT 1"
        );
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(case_no)
            .bind(principal.as_str())
            .bind(generator.unwrap_or(""))
            .fetch_optional(self.connection())
            .await?;
        row.map(|row| read_head(&row, 0, case_no, principal))
            .transpose()
    }

    /// Writes a head whole. Read it in the same write transaction first, so that nothing newer is lost.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn save_head(
        &mut self,
        case_no: i64,
        principal: &PrincipalId,
        head: &Head,
    ) -> Result<(), StoreError> {
        let built = head.built.as_ref();
        sqlx::query(
            "INSERT INTO heads (case_no, principal, generator, context, planned_root, planned_event, \
             access_revision, built_root, built_event, built_context, built_run, built_at, \
             digest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
             ON CONFLICT (case_no, principal, generator) DO UPDATE SET context = $4, planned_root = $5, \
             planned_event = $6, access_revision = $7, built_root = $8, built_event = $9, \
             built_context = $10, built_run = $11, built_at = $12, digest = $13",
        )
        .bind(case_no)
        .bind(principal.as_str())
        .bind(head.generator.as_str())
        .bind(head.context.as_bytes().to_vec())
        .bind(head.planned_root.as_bytes().to_vec())
        .bind(signed(head.planned_event))
        .bind(signed(head.access_revision))
        .bind(built.map(|built| built.root.as_bytes().to_vec()))
        .bind(built.map(|built| signed(built.event)))
        .bind(built.map(|built| built.context.as_bytes().to_vec()))
        .bind(built.map(|built| built.run_no))
        .bind(built.map(|built| built.at))
        .bind(head_digest(case_no, principal, head).as_bytes().to_vec())
        .execute(self.connection())
        .await?;
        Ok(())
    }
}

/// Covers all of a head: a flipped bit in how far the tree is kept would hide events.
fn head_digest(case_no: i64, principal: &PrincipalId, head: &Head) -> BodyDigest {
    let number = |value: i64| value.to_be_bytes();
    let mut parts: Vec<Vec<u8>> = vec![
        number(case_no).to_vec(),
        principal.as_str().as_bytes().to_vec(),
        head.generator.as_bytes().to_vec(),
        head.context.as_bytes().to_vec(),
        head.planned_root.as_bytes().to_vec(),
        number(signed(head.planned_event)).to_vec(),
        number(signed(head.access_revision)).to_vec(),
    ];
    if let Some(built) = &head.built {
        parts.push(built.root.as_bytes().to_vec());
        parts.push(number(signed(built.event)).to_vec());
        parts.push(built.context.as_bytes().to_vec());
        parts.push(number(built.run_no).to_vec());
        parts.push(number(built.at).to_vec());
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    BodyDigest::tagged("factum/head/1", &parts)
}
