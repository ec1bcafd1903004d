//! Generations: whole answers of models, by the digest of their input.

use std::collections::HashMap;

use factum_base::BodyDigest;

use crate::error::{StoreError, damaged};
use crate::repository::Tx;
use crate::rows::Columns;

/// A generation as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredGeneration {
    /// The digest of its input.
    pub input: [u8; 32],
    /// The run that made it.
    pub run_no: i64,
    /// The record, as JSON.
    pub body: String,
}

/// Generations asked for in one statement.
const CHUNK: usize = 200;

impl Tx {
    /// Keeps a generation; one that is there already stays as it is.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn put_generation(
        &mut self,
        scope: i64,
        generation: &StoredGeneration,
    ) -> Result<(), StoreError> {
        let digest = body_digest(&generation.input, generation.body.as_bytes());
        sqlx::query(
            "INSERT INTO generations (digest, scope, run_no, body, body_digest) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT DO NOTHING",
        )
        .bind(&generation.input[..])
        .bind(scope)
        .bind(generation.run_no)
        .bind(generation.body.as_bytes())
        .bind(digest.as_bytes().to_vec())
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// The generations of these inputs, verified: those of `scope` where there are such, else of any. Inputs
    /// without one are left out.
    ///
    /// # Errors
    /// One is damaged.
    pub async fn generations(
        &mut self,
        inputs: &[[u8; 32]],
        scope: i64,
    ) -> Result<HashMap<[u8; 32], StoredGeneration>, StoreError> {
        let mut found = HashMap::with_capacity(inputs.len());
        for chunk in inputs.chunks(CHUNK) {
            let holes: Vec<String> = (2..chunk.len() + 2).map(|n| format!("${n}")).collect();
            // The wanted scope comes last and stays; among the others, the lowest.
            let sql = format!(
                "SELECT digest, run_no, body, body_digest FROM generations WHERE digest IN ({}) \
                 ORDER BY CASE WHEN scope = $1 THEN 1 ELSE 0 END, scope DESC",
                holes.join(",")
            );
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(scope);
            for input in chunk {
                query = query.bind(&input[..]);
            }
            for row in query.fetch_all(self.connection()).await? {
                let input: BodyDigest = row.digest(0)?;
                let input = *input.as_bytes();
                let body = row.blob(2)?;
                if body_digest(&input, &body) != row.digest(3)? {
                    return Err(damaged(format!(
                        "the generation of input {} does not match its digest",
                        BodyDigest::from_bytes(input)
                    )));
                }
                let body = String::from_utf8(body).map_err(damaged)?;
                let run_no = row.int(1)?;
                found.insert(
                    input,
                    StoredGeneration {
                        input,
                        run_no,
                        body,
                    },
                );
            }
        }
        Ok(found)
    }

    /// Every stored generation whose bytes do not match their digest, in words.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn damaged_generations(&mut self) -> Result<Vec<String>, StoreError> {
        let mut findings = Vec::new();
        let (mut after, mut after_scope): (Vec<u8>, i64) = (Vec::new(), -1);
        loop {
            let rows = sqlx::query(
                "SELECT digest, scope, body, body_digest FROM generations WHERE digest > $1 \
                 OR (digest = $1 AND scope > $2) ORDER BY digest, scope LIMIT 500",
            )
            .bind(&after[..])
            .bind(after_scope)
            .fetch_all(self.connection())
            .await?;
            for row in &rows {
                let input: BodyDigest = row.digest(0)?;
                if body_digest(input.as_bytes(), &row.blob(2)?) != row.digest(3)? {
                    findings.push(format!(
                        "the generation of input {input} does not match its digest"
                    ));
                }
            }
            match rows.last() {
                Some(last) if rows.len() == 500 => {
                    (after, after_scope) = (last.blob(0)?, last.int(1)?);
                }
                _ => return Ok(findings),
            }
        }
    }
}

// The input is in the digest, so that a body can't be moved to another input.
fn body_digest(input: &[u8; 32], body: &[u8]) -> BodyDigest {
    BodyDigest::tagged("factum/generation/1", &[input, body])
}
