//! Case files and their events.

use factum_base::{CaseId, ChainDigest};
use factum_casefile::Event;

use crate::error::{StoreError, damaged};
use crate::repository::Tx;
use crate::rows::{Columns, signed};

/// A case file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseRow {
    /// The row's number.
    pub case_no: i64,
    /// Its id.
    pub case_id: CaseId,
    /// Its title.
    pub title: String,
    /// Name of its profile.
    pub profile: String,
    /// When it was made, in Unix milliseconds.
    pub created_at: i64,
    /// Number of its latest event.
    pub last_event: u64,
    /// Digest of all its events.
    pub chain: Option<ChainDigest>,
    /// Number of its latest grant or revocation.
    pub access_revision: u64,
}

const COLUMNS: &str =
    "case_no, case_id, title, profile, created_at, last_event, chain, access_revision";

pub(crate) fn read<R: Columns>(row: &R) -> Result<CaseRow, StoreError> {
    Ok(CaseRow {
        case_no: row.int(0)?,
        case_id: CaseId::new(row.text(1)?).map_err(damaged)?,
        title: row.text(2)?,
        profile: row.text(3)?,
        created_at: row.int(4)?,
        last_event: row.unsigned(5)?,
        chain: row.optional_digest(6)?,
        access_revision: row.unsigned(7)?,
    })
}

impl Tx {
    /// The case file of that id.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn case(&mut self, case_id: &CaseId) -> Result<Option<CaseRow>, StoreError> {
        let sql = const_format("WHERE case_id = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(case_id.as_str())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// The case file of that number.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn case_by_no(&mut self, case_no: i64) -> Result<Option<CaseRow>, StoreError> {
        let sql = const_format("WHERE case_no = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(case_no)
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// All case files, by id.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn cases(&mut self) -> Result<Vec<CaseRow>, StoreError> {
        let sql = const_format("ORDER BY case_id");
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(read).collect()
    }

    /// Adds a case file without events.
    ///
    /// # Errors
    /// The id is taken, or the database can't be written.
    pub async fn insert_case(
        &mut self,
        case_id: &CaseId,
        title: &str,
        profile: &str,
        at: i64,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO cases (case_id, title, profile, created_at, last_event, access_revision) \
             VALUES ($1, $2, $3, $4, 0, 0)",
        )
        .bind(case_id.as_str())
        .bind(title)
        .bind(profile)
        .bind(at)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Appends an event, which must be numbered next, and moves `case` on. Call [`Tx::save_case`] when
    /// all events of the transaction are appended.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn append_event(
        &mut self,
        case: &mut CaseRow,
        event: &Event,
    ) -> Result<(), StoreError> {
        debug_assert_eq!(event.number, case.last_event + 1);
        let chain = event.chained(case.chain.as_ref()).map_err(damaged)?;
        let body = factum_base::canonical_json(event).map_err(damaged)?;
        sqlx::query(
            "INSERT INTO events (case_no, number, at, body, chain) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(case.case_no)
        .bind(signed(event.number))
        .bind(event.at)
        .bind(body)
        .bind(&chain.as_bytes()[..])
        .execute(self.connection())
        .await?;
        case.last_event = event.number;
        case.chain = Some(chain);
        if event.kind.principal().is_some() {
            case.access_revision = event.number;
        }
        Ok(())
    }

    /// Writes the case file's latest event, chain and access revision.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn save_case(&mut self, case: &CaseRow) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE cases SET last_event = $1, chain = $2, access_revision = $3 WHERE case_no = $4",
        )
        .bind(signed(case.last_event))
        .bind(case.chain.map(|chain| chain.as_bytes().to_vec()))
        .bind(signed(case.access_revision))
        .bind(case.case_no)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// The events after number `after`, in order, with their chain digests.
    ///
    /// # Errors
    /// The database can't be read, or an event can't.
    pub async fn events_after(
        &mut self,
        case_no: i64,
        after: u64,
    ) -> Result<Vec<(Event, ChainDigest)>, StoreError> {
        let rows = sqlx::query(
            "SELECT number, body, chain, at FROM events WHERE case_no = $1 AND number > $2 ORDER BY number",
        )
        .bind(case_no)
        .bind(signed(after))
        .fetch_all(self.connection())
        .await?;
        rows.iter()
            .map(|row| {
                let number = row.unsigned(0)?;
                let event: Event = serde_json::from_str(&row.text(1)?)
                    .map_err(|error| damaged(format!("event {number}: {error}")))?;
                if event.number != number {
                    return Err(damaged(format!(
                        "event {number} says it is {}",
                        event.number
                    )));
                }
                if event.at != row.int(3)? {
                    return Err(damaged(format!("event {number} has two times")));
                }
                Ok((event, row.digest(2)?))
            })
            .collect()
    }
}

fn const_format(rest: &str) -> String {
    format!("SELECT {COLUMNS} FROM cases {rest}")
}
