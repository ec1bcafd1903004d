//! Pages of kept trees, shared spec parts, and node results.

use std::collections::HashMap;
use std::sync::Arc;

use factum_base::{BodyDigest, NodeKey, PrincipalId, SpecPartDigest};
use factum_casefile::NodeResult;
use factum_graph::{Page, SpecContext, SpecPart};

use crate::error::{StoreError, damaged};
use crate::repository::Tx;
use crate::rows::Columns;

/// A node result as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResult {
    /// The node.
    pub key: NodeKey,
    /// The run that made it.
    pub run_no: i64,
    /// What it made.
    pub result: NodeResult,
}

const ROWS_PER_STATEMENT: usize = 100;
const ROWS_READ: usize = 500;

/// `($1, $2), ($3, $4)` for `rows` rows of `columns` columns.
fn value_rows(rows: usize, columns: usize) -> String {
    let mut out = String::new();
    for row in 0..rows {
        out.push_str(if row == 0 { "(" } else { ", (" });
        for column in 1..=columns {
            use std::fmt::Write as _;
            let _ = write!(
                out,
                "{}${}",
                if column == 1 { "" } else { ", " },
                row * columns + column
            );
        }
        out.push(')');
    }
    out
}

impl Tx {
    /// Keeps the parts of a spec context.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn put_context(&mut self, context: &SpecContext) -> Result<(), StoreError> {
        for part in [&context.leaf, &context.reduction] {
            sqlx::query(
                "INSERT INTO spec_parts (digest, json) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            )
            .bind(&part.digest().as_bytes()[..])
            .bind(part.json())
            .execute(self.connection())
            .await?;
        }
        sqlx::query(
            "INSERT INTO contexts (digest, principal, leaf, reduction) VALUES ($1, $2, $3, $4) \
             ON CONFLICT DO NOTHING",
        )
        .bind(&context.digest().as_bytes()[..])
        .bind(context.principal.as_str())
        .bind(&context.leaf.digest().as_bytes()[..])
        .bind(&context.reduction.digest().as_bytes()[..])
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// A spec context, verified.
    ///
    /// # Errors
    /// It is gone or damaged.
    pub async fn context(&mut self, digest: &SpecPartDigest) -> Result<SpecContext, StoreError> {
        let row = sqlx::query(
            "SELECT c.principal, l.json, r.json FROM contexts c JOIN spec_parts l ON l.digest = c.leaf \
             JOIN spec_parts r ON r.digest = c.reduction WHERE c.digest = $1",
        )
        .bind(&digest.as_bytes()[..])
        .fetch_optional(self.connection())
        .await?
        .ok_or_else(|| damaged(format!("spec context {digest} is gone")))?;
        let context = SpecContext {
            principal: PrincipalId::new(row.text(0)?).map_err(damaged)?,
            leaf: SpecPart::from_canonical(row.text(1)?),
            reduction: SpecPart::from_canonical(row.text(2)?),
        };
        if context.digest() == *digest {
            Ok(context)
        } else {
            Err(damaged(format!("spec context {digest} has another digest")))
        }
    }

    /// Keeps pages.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn put_pages(
        &mut self,
        case_no: i64,
        pages: &[(NodeKey, Page)],
    ) -> Result<(), StoreError> {
        for chunk in pages.chunks(ROWS_PER_STATEMENT) {
            let sql = format!(
                "INSERT INTO pages (case_no, key, body, digest) VALUES {} ON CONFLICT DO NOTHING",
                value_rows(chunk.len(), 4)
            );
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
            for (key, page) in chunk {
                let body = postcard::to_stdvec(page).map_err(damaged)?;
                let digest = page_digest(key, &body);
                query = query
                    .bind(case_no)
                    .bind(&key.as_bytes()[..])
                    .bind(body)
                    .bind(digest.as_bytes().to_vec());
            }
            query.execute(self.connection()).await?;
        }
        Ok(())
    }

    /// A page, verified.
    ///
    /// # Errors
    /// It is gone or damaged.
    pub async fn page(&mut self, case_no: i64, key: &NodeKey) -> Result<Page, StoreError> {
        let row = sqlx::query("SELECT body, digest FROM pages WHERE case_no = $1 AND key = $2")
            .bind(case_no)
            .bind(&key.as_bytes()[..])
            .fetch_optional(self.connection())
            .await?
            .ok_or_else(|| damaged(format!("page {key} of the tree is gone")))?;
        read_page(key, &row.blob(0)?, row.digest(1)?)
    }

    /// Many pages, verified.
    ///
    /// # Errors
    /// One is gone or damaged.
    pub async fn pages(
        &mut self,
        case_no: i64,
        keys: &[NodeKey],
    ) -> Result<Vec<(NodeKey, Page)>, StoreError> {
        let mut found = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(ROWS_PER_STATEMENT) {
            let holes: Vec<String> = (2..chunk.len() + 2).map(|n| format!("${n}")).collect();
            let sql = format!(
                "SELECT key, body, digest FROM pages WHERE case_no = $1 AND key IN ({})",
                holes.join(",")
            );
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(case_no);
            for key in chunk {
                query = query.bind(&key.as_bytes()[..]);
            }
            let rows = query.fetch_all(self.connection()).await?;
            if rows.len() < chunk.len() {
                return Err(damaged(format!(
                    "{} pages of the tree are gone",
                    chunk.len() - rows.len()
                )));
            }
            for row in rows {
                let key: NodeKey = row.digest(0)?;
                found.push((key, read_page(&key, &row.blob(1)?, row.digest(2)?)?));
            }
        }
        Ok(found)
    }

    /// Keeps results; one that is there already stays as it is. Gives the number of new ones.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn put_results(
        &mut self,
        case_no: i64,
        scope: i64,
        run_no: i64,
        results: &[(NodeKey, Arc<NodeResult>)],
    ) -> Result<u64, StoreError> {
        let mut inserted = 0;
        for chunk in results.chunks(ROWS_PER_STATEMENT) {
            let sql = format!(
                "INSERT INTO results (case_no, key, scope, run_no, body, digest) VALUES {} \
                 ON CONFLICT DO NOTHING",
                value_rows(chunk.len(), 6)
            );
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
            for (key, result) in chunk {
                let body = serde_json::to_vec(&**result).map_err(damaged)?;
                let digest = result_digest(key, &body);
                query = query
                    .bind(case_no)
                    .bind(&key.as_bytes()[..])
                    .bind(scope)
                    .bind(run_no)
                    .bind(body)
                    .bind(digest.as_bytes().to_vec());
            }
            inserted += query.execute(self.connection()).await?.rows_affected();
        }
        Ok(inserted)
    }

    /// The result of a node, verified: of the given scope, or of any where `scope` is `None` (results
    /// that incremental builds made come first).
    ///
    /// # Errors
    /// It is damaged.
    pub async fn result(
        &mut self,
        case_no: i64,
        key: &NodeKey,
        scope: Option<i64>,
    ) -> Result<Option<StoredResult>, StoreError> {
        let row = sqlx::query(
            "SELECT body, digest, run_no FROM results WHERE case_no = $1 AND key = $2 \
             AND (scope = $3 OR $3 < 0) ORDER BY scope LIMIT 1",
        )
        .bind(case_no)
        .bind(&key.as_bytes()[..])
        .bind(scope.unwrap_or(-1))
        .fetch_optional(self.connection())
        .await?;
        row.map(|row| {
            let result = read_result(key, &row.blob(0)?, row.digest(1)?)?;
            Ok(StoredResult {
                key: *key,
                run_no: row.int(2)?,
                result,
            })
        })
        .transpose()
    }

    /// The results of many nodes, verified, as [`Tx::result`] finds them; those without one are left out.
    ///
    /// # Errors
    /// One is damaged.
    pub async fn results(
        &mut self,
        case_no: i64,
        keys: &[NodeKey],
        scope: Option<i64>,
    ) -> Result<Vec<StoredResult>, StoreError> {
        let mut found: HashMap<NodeKey, StoredResult> = HashMap::with_capacity(keys.len());
        for chunk in keys.chunks(ROWS_PER_STATEMENT) {
            let holes: Vec<String> = (3..chunk.len() + 3).map(|n| format!("${n}")).collect();
            let sql = format!(
                "SELECT key, body, digest, run_no FROM results WHERE case_no = $1 AND (scope = $2 OR $2 < 0) \
                 AND key IN ({}) ORDER BY scope DESC",
                holes.join(",")
            );
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(case_no)
                .bind(scope.unwrap_or(-1));
            for key in chunk {
                query = query.bind(&key.as_bytes()[..]);
            }
            for row in query.fetch_all(self.connection()).await? {
                let key: NodeKey = row.digest(0)?;
                let result = read_result(&key, &row.blob(1)?, row.digest(2)?)?;
                // The lowest scope comes last and stays.
                found.insert(
                    key,
                    StoredResult {
                        key,
                        run_no: row.int(3)?,
                        result,
                    },
                );
            }
        }
        Ok(found.into_values().collect())
    }

    /// Which of these nodes have a result, with the run that made it.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn results_known(
        &mut self,
        case_no: i64,
        keys: &[NodeKey],
        scope: Option<i64>,
    ) -> Result<HashMap<NodeKey, i64>, StoreError> {
        let mut known = HashMap::new();
        for chunk in keys.chunks(ROWS_PER_STATEMENT) {
            let holes: Vec<String> = (3..chunk.len() + 3).map(|n| format!("${n}")).collect();
            let sql = format!(
                "SELECT key, MIN(run_no) FROM results WHERE case_no = $1 AND (scope = $2 OR $2 < 0) \
                 AND key IN ({}) GROUP BY key",
                holes.join(",")
            );
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(case_no)
                .bind(scope.unwrap_or(-1));
            for key in chunk {
                query = query.bind(&key.as_bytes()[..]);
            }
            for row in query.fetch_all(self.connection()).await? {
                known.insert(row.digest(0)?, row.int(1)?);
            }
        }
        Ok(known)
    }

    /// Every stored result and page of a case file whose bytes do not match their digest, in words.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn damaged_records(&mut self, case_no: i64) -> Result<Vec<String>, StoreError> {
        let mut findings = Vec::new();
        for (select, what) in [
            ("SELECT key, body, digest, scope FROM results", "result"),
            ("SELECT key, body, digest, 0 FROM pages", "page"),
        ] {
            let (scope, order) = if what == "result" {
                ("scope", "key, scope")
            } else {
                ("0", "key")
            };
            let (mut after, mut after_scope): (Vec<u8>, i64) = (Vec::new(), -1);
            loop {
                let sql = format!(
                    "{select} WHERE case_no = $1 AND (key > $2 OR (key = $2 AND {scope} > $3)) \
                     ORDER BY {order} LIMIT {ROWS_READ}"
                );
                let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
                    .bind(case_no)
                    .bind(&after[..])
                    .bind(after_scope)
                    .fetch_all(self.connection())
                    .await?;
                for row in &rows {
                    if let Err(error) = check_record(row, what) {
                        findings.push(error.to_string());
                    }
                }
                match rows.last() {
                    Some(last) if rows.len() == ROWS_READ => {
                        (after, after_scope) = (last.blob(0)?, last.int(3)?);
                    }
                    _ => break,
                }
            }
        }
        Ok(findings)
    }

    /// Whether any node of a case file has a result.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn has_results(&mut self, case_no: i64) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT 1 FROM results WHERE case_no = $1 LIMIT 1")
            .bind(case_no)
            .fetch_optional(self.connection())
            .await?;
        Ok(row.is_some())
    }
}

fn check_record(row: &sqlx::any::AnyRow, what: &str) -> Result<(), StoreError> {
    let key: NodeKey = row.digest(0)?;
    if what == "result" {
        read_result(&key, &row.blob(1)?, row.digest(2)?).map(|_| ())
    } else {
        read_page(&key, &row.blob(1)?, row.digest(2)?).map(|_| ())
    }
}

// The key is in the digest, so that a body can't be moved to another node.
fn result_digest(key: &NodeKey, body: &[u8]) -> BodyDigest {
    BodyDigest::tagged("factum/result/1", &[key.as_bytes(), body])
}

fn page_digest(key: &NodeKey, body: &[u8]) -> BodyDigest {
    BodyDigest::tagged("factum/page/1", &[key.as_bytes(), body])
}

pub(crate) fn read_result(
    key: &NodeKey,
    body: &[u8],
    digest: BodyDigest,
) -> Result<NodeResult, StoreError> {
    if result_digest(key, body) != digest {
        return Err(damaged(format!(
            "the stored result of node {key} does not match its digest"
        )));
    }
    serde_json::from_slice(body)
        .map_err(|error| damaged(format!("the result of node {key}: {error}")))
}

fn read_page(key: &NodeKey, body: &[u8], digest: BodyDigest) -> Result<Page, StoreError> {
    if page_digest(key, body) != digest {
        return Err(damaged(format!(
            "page {key} of the tree does not match its digest"
        )));
    }
    postcard::from_bytes(body).map_err(|error| damaged(format!("page {key} of the tree: {error}")))
}
