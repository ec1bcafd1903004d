//! Vectors of passages: by case file, by what made them, and by the passage's own text, so that a vector depends on
//! nothing else and an edit leaves those of untouched passages as they are.
//!
//! They are kept by case file, so that not even the time that a search takes tells what another case file holds. A
//! vector's digest covers what made it and the passage too: one that was moved to another row is found like one
//! that was changed.

use std::collections::HashMap;

use factum_base::{Digest, sha256};

use crate::error::{StoreError, damaged};
use crate::repository::Tx;
use crate::rows::Columns as _;

/// What [`EmbedderDigest`] is a digest of.
#[derive(Debug)]
pub enum EmbedderData {}

/// SHA-256 of the canonical JSON of an embedder's identity.
pub type EmbedderDigest = Digest<EmbedderData>;

/// What [`PassageDigest`] is a digest of.
#[derive(Debug)]
pub enum PassageText {}

/// SHA-256 of a passage's text.
pub type PassageDigest = Digest<PassageText>;

/// Vectors that one statement asks for.
const AT_ONCE: usize = 256;

fn record_digest(embedder: &EmbedderDigest, passage: &PassageDigest, vector: &[u8]) -> [u8; 32] {
    let mut bytes = Vec::with_capacity(64 + vector.len());
    bytes.extend(embedder.as_bytes());
    bytes.extend(passage.as_bytes());
    bytes.extend(vector);
    sha256(&bytes)
}

fn read_vector(
    embedder: &EmbedderDigest,
    passage: &PassageDigest,
    bytes: &[u8],
    digest: &[u8],
) -> Option<Vec<f32>> {
    let sound =
        record_digest(embedder, passage, bytes)[..] == *digest && bytes.len().is_multiple_of(4);
    let numbers: Vec<f32> = bytes
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
        .collect();
    (sound && numbers.iter().all(|number| number.is_finite())).then_some(numbers)
}

fn damaged_vector(passage: &PassageDigest) -> StoreError {
    damaged(format!(
        "the vector of passage {passage} does not match its digest"
    ))
}

impl Tx {
    /// The vectors of passages, as far as they were made, each verified and of so many numbers.
    ///
    /// # Errors
    /// The database can't be read, or a vector is damaged.
    pub async fn vectors(
        &mut self,
        case_no: i64,
        embedder: &EmbedderDigest,
        dimensions: usize,
        passages: &[PassageDigest],
    ) -> Result<HashMap<PassageDigest, Vec<f32>>, StoreError> {
        let mut found = HashMap::with_capacity(passages.len());
        let Some(embedder_no) = self.embedder_no(embedder).await? else {
            return Ok(found);
        };
        for chunk in passages.chunks(AT_ONCE) {
            let holes: Vec<String> = (3..chunk.len() + 3).map(|n| format!("${n}")).collect();
            let sql = format!(
                "SELECT passage_sha256, vector, digest FROM passage_vectors \
                 WHERE case_no = $1 AND embedder_no = $2 AND passage_sha256 IN ({})",
                holes.join(",")
            );
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(case_no)
                .bind(embedder_no);
            for passage in chunk {
                query = query.bind(&passage.as_bytes()[..]);
            }
            for row in query.fetch_all(self.connection()).await? {
                let passage: PassageDigest = row.digest(0)?;
                let vector = read_vector(embedder, &passage, &row.blob(1)?, &row.blob(2)?)
                    .filter(|vector| vector.len() == dimensions)
                    .ok_or_else(|| damaged_vector(&passage))?;
                found.insert(passage, vector);
            }
        }
        Ok(found)
    }

    /// Keeps vectors. One that is there stays as it is.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn put_vectors(
        &mut self,
        case_no: i64,
        identity: &str,
        vectors: &[(PassageDigest, Vec<f32>)],
    ) -> Result<(), StoreError> {
        let embedder = EmbedderDigest::of(identity.as_bytes());
        sqlx::query(
            "INSERT INTO embedders (digest, identity) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        )
        .bind(&embedder.as_bytes()[..])
        .bind(identity)
        .execute(self.connection())
        .await?;
        let embedder_no = self.embedder_no(&embedder).await?;
        let embedder_no =
            embedder_no.ok_or_else(|| damaged("an embedder is gone that was just written"))?;
        for (passage, vector) in vectors {
            let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
            let digest = record_digest(&embedder, passage, &bytes);
            sqlx::query(
                "INSERT INTO passage_vectors (case_no, embedder_no, passage_sha256, vector, digest) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
            )
            .bind(case_no)
            .bind(embedder_no)
            .bind(&passage.as_bytes()[..])
            .bind(bytes)
            .bind(&digest[..])
            .execute(self.connection())
            .await?;
        }
        Ok(())
    }

    async fn embedder_no(&mut self, digest: &EmbedderDigest) -> Result<Option<i64>, StoreError> {
        let row = sqlx::query("SELECT embedder_no FROM embedders WHERE digest = $1")
            .bind(&digest.as_bytes()[..])
            .fetch_optional(self.connection())
            .await?;
        row.map(|row| row.int(0)).transpose()
    }

    /// What is wrong with the vectors of a case file, in words. That a vector is the one its model gives can't be
    /// told without the model.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn vector_findings(&mut self, case_no: i64) -> Result<Vec<String>, StoreError> {
        let mut findings = Vec::new();
        let rows = sqlx::query("SELECT embedder_no, digest, identity FROM embedders")
            .fetch_all(self.connection())
            .await?;
        for row in &rows {
            let (number, digest): (i64, EmbedderDigest) = (row.int(0)?, row.digest(1)?);
            if EmbedderDigest::of(row.text(2)?.as_bytes()) != digest {
                findings.push(format!("embedder {digest} does not match its digest"));
            }
            self.vectors_of(case_no, number, &digest, &mut findings)
                .await?;
        }
        Ok(findings)
    }

    async fn vectors_of(
        &mut self,
        case_no: i64,
        embedder_no: i64,
        embedder: &EmbedderDigest,
        findings: &mut Vec<String>,
    ) -> Result<(), StoreError> {
        let mut after: Vec<u8> = Vec::new();
        loop {
            let rows = sqlx::query(
                "SELECT passage_sha256, vector, digest FROM passage_vectors WHERE case_no = $1 \
                 AND embedder_no = $2 AND passage_sha256 > $3 ORDER BY passage_sha256 LIMIT 500",
            )
            .bind(case_no)
            .bind(embedder_no)
            .bind(&after[..])
            .fetch_all(self.connection())
            .await?;
            for row in &rows {
                let passage: PassageDigest = row.digest(0)?;
                if read_vector(embedder, &passage, &row.blob(1)?, &row.blob(2)?).is_none() {
                    findings.push(damaged_vector(&passage).to_string());
                }
            }
            match rows.last() {
                Some(last) if rows.len() == 500 => after = last.blob(0)?,
                _ => return Ok(()),
            }
        }
    }
}
