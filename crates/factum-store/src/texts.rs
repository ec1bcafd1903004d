//! Text layers, originals and layouts, by the SHA-256 of their bytes.

use std::collections::HashMap;

use factum_base::{TextDigest, sha256};
use factum_graph::Segment;
use sqlx::Row as _;

use crate::error::{StoreError, damaged};
use crate::repository::Tx;
use crate::rows::Columns;

/// What a blob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobKind {
    /// A text layer.
    Text,
    /// A file as it came, where it is not its own text layer.
    Original,
    /// A layout that can't be made from the text layer.
    Layout,
}

impl BlobKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Original => "original",
            Self::Layout => "layout",
        }
    }
}

/// Bytes as the text of a digest.
fn verified_text(digest: &TextDigest, bytes: Vec<u8>) -> Result<String, StoreError> {
    if TextDigest::of(&bytes) != *digest {
        return Err(damaged(format!("text {digest} has another digest")));
    }
    String::from_utf8(bytes).map_err(|_| damaged(format!("text {digest} is not UTF-8")))
}

impl Tx {
    /// Keeps bytes, once however often they come.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn put_blob(&mut self, kind: BlobKind, bytes: &[u8]) -> Result<[u8; 32], StoreError> {
        let digest = sha256(bytes);
        sqlx::query(
            "INSERT INTO blobs (sha256, kind, bytes) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        )
        .bind(&digest[..])
        .bind(kind.word())
        .bind(bytes)
        .execute(self.connection())
        .await?;
        Ok(digest)
    }

    /// Bytes by digest, verified.
    ///
    /// # Errors
    /// They are gone or damaged.
    pub async fn blob(&mut self, digest: &[u8; 32]) -> Result<Vec<u8>, StoreError> {
        let row = sqlx::query("SELECT bytes FROM blobs WHERE sha256 = $1")
            .bind(&digest[..])
            .fetch_optional(self.connection())
            .await?;
        let name = TextDigest::from_bytes(*digest);
        let bytes = row
            .ok_or_else(|| damaged(format!("the bytes of {name} are gone")))?
            .blob(0)?;
        if sha256(&bytes) != *digest {
            return Err(damaged(format!("the bytes of {name} have another digest")));
        }
        Ok(bytes)
    }

    /// A text layer by digest, verified.
    ///
    /// # Errors
    /// It is gone or damaged.
    pub async fn text(&mut self, digest: &TextDigest) -> Result<String, StoreError> {
        let bytes = self.blob(digest.as_bytes()).await?;
        verified_text(digest, bytes)
    }

    /// Many text layers, verified.
    ///
    /// # Errors
    /// One is gone or damaged.
    pub async fn texts(
        &mut self,
        digests: &[TextDigest],
    ) -> Result<HashMap<TextDigest, String>, StoreError> {
        let mut found = HashMap::with_capacity(digests.len());
        for chunk in digests.chunks(64) {
            let holes: Vec<String> = (1..=chunk.len()).map(|n| format!("${n}")).collect();
            let sql = format!(
                "SELECT sha256, bytes FROM blobs WHERE sha256 IN ({})",
                holes.join(",")
            );
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
            for digest in chunk {
                query = query.bind(&digest.as_bytes()[..]);
            }
            for row in query.fetch_all(self.connection()).await? {
                let digest: TextDigest = row.digest(0)?;
                let bytes: Vec<u8> = row.try_get(1)?;
                found.insert(digest, verified_text(&digest, bytes)?);
            }
        }
        match digests.iter().find(|digest| !found.contains_key(digest)) {
            Some(lost) => Err(damaged(format!("text {lost} is gone"))),
            None => Ok(found),
        }
    }

    /// The segments of a text under a segmentation rule, where they were cut before.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn segments(
        &mut self,
        digest: &TextDigest,
        rule: &str,
    ) -> Result<Option<Vec<Segment>>, StoreError> {
        let row = sqlx::query("SELECT body FROM segments WHERE text_sha256 = $1 AND rule = $2")
            .bind(&digest.as_bytes()[..])
            .bind(rule)
            .fetch_optional(self.connection())
            .await?;
        row.map(|row| {
            postcard::from_bytes(&row.blob(0)?)
                .map_err(|e| damaged(format!("segments of {digest}: {e}")))
        })
        .transpose()
    }

    /// Keeps the segments of a text.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn put_segments(
        &mut self,
        digest: &TextDigest,
        rule: &str,
        segments: &[Segment],
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO segments (text_sha256, rule, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        )
        .bind(&digest.as_bytes()[..])
        .bind(rule)
        .bind(postcard::to_stdvec(segments).map_err(damaged)?)
        .execute(self.connection())
        .await?;
        Ok(())
    }
}
