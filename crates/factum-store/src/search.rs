//! Search over passages: an inverted index in tables, written in the transaction of the event that brings a text.
//!
//! It is kept as *segments*, each a sorted run of terms with their postings in blocks of some kilobytes; what a
//! transaction publishes becomes one new segment, and runs of small ones are merged into larger ones, so that one
//! edit writes a page or two. BM25 is computed here over what the principal may see and nothing else: hidden
//! documents change neither the order nor a score. The same tables and SQL serve both databases.
//!
//! Why not the database's own full-text index: SQLite ranks 100,000 passages in 30 to 200 ms, counts hidden
//! rows in its ranking, and would rank differently from PostgreSQL's.

mod block;
mod rank;
mod segment;
mod verify;
mod visible;

use std::collections::BTreeSet;
use std::sync::Arc;

use factum_base::{DocumentId, Span, TextDigest};
use factum_casefile::passages::passages;
use factum_casefile::terms::each_term;

use crate::access::CaseAccess;
use crate::cases::CaseRow;
use crate::error::{StoreError, damaged};
use crate::repository::Tx;
use crate::rows::{Columns, signed};
use rank::Ranking;
pub(crate) use segment::Pending;
use visible::Visible;
pub(crate) use visible::VisibleCache;

/// What a principal may find in a case file, decided before anything is ranked.
#[derive(Debug, Clone)]
pub struct Findable {
    case_no: i64,
    visible: Arc<Visible>,
}

/// A text that may be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindableText {
    /// Its digest.
    pub text_sha256: TextDigest,
    /// The number of its first document that may be found.
    pub doc_no: i64,
    /// The number of its first passage within the case file.
    pub first: u64,
    /// How many passages it has.
    pub passages: u64,
}

impl Findable {
    /// The texts, in the order of their passages' numbers. A text that several documents have is there once.
    pub fn texts(&self) -> impl Iterator<Item = FindableText> + '_ {
        self.visible.texts()
    }

    /// The document of a passage and its place in it: what decides between equals. Passages' own numbers would not do,
    /// since a text that a hidden document had first has lower ones.
    pub fn place(&self, passage: u64) -> Option<(i64, usize)> {
        self.visible.locate(passage)
    }

    /// Passages of all texts together.
    pub fn passages(&self) -> u64 {
        self.visible.passages
    }
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundPassage {
    /// Its document.
    pub doc_id: DocumentId,
    /// The version that counts now.
    pub version: u32,
    /// Digest of that version's text.
    pub text_sha256: TextDigest,
    /// The passage, in code points.
    pub span: Span,
    /// What it was given in the ranking.
    pub score: f32,
}

/// The passages of a text that is in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedText {
    /// Their spans, in order.
    pub spans: Vec<Span>,
}

impl Tx {
    /// Puts a text into the index of a case file. It becomes findable with the transaction.
    ///
    /// # Errors
    /// The database can't be read or written.
    pub async fn index_text(
        &mut self,
        case_no: i64,
        digest: &TextDigest,
        text: &str,
    ) -> Result<(), StoreError> {
        if self.is_indexed(case_no, digest).await? {
            return Ok(());
        }
        let first = self.next_passage(case_no).await?;
        let index = factum_base::CodePointIndex::new(text);
        let mut spans = Vec::new();
        let mut terms = 0u64;
        for (number, at) in (first..).zip(passages(text)) {
            let pending = self.pending.of(case_no);
            terms += pending.add(number, &text[at.clone()], |text, each| {
                each_term(text, each);
            });
            spans.push(Span::new(
                index.code_point_of(text, at.start),
                index.code_point_of(text, at.end),
            ));
        }
        let count = spans.len() as u64;
        self.pending.advance(case_no, first + count);
        sqlx::query(
            "INSERT INTO search_texts (case_no, text_sha256, first_passage, passages, terms, spans) \
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(case_no)
        .bind(&digest.as_bytes()[..])
        .bind(signed(first))
        .bind(signed(count))
        .bind(signed(terms))
        .bind(block::write_spans(&spans))
        .execute(self.connection())
        .await?;
        if self.pending.is_large() {
            self.flush_index().await?;
        }
        Ok(())
    }

    /// Whether a text is in the index of a case file.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn is_indexed(
        &mut self,
        case_no: i64,
        digest: &TextDigest,
    ) -> Result<bool, StoreError> {
        let row = sqlx::query(
            "SELECT first_passage FROM search_texts WHERE case_no = $1 AND text_sha256 = $2",
        )
        .bind(case_no)
        .bind(&digest.as_bytes()[..])
        .fetch_optional(self.connection())
        .await?;
        Ok(row.is_some())
    }

    async fn next_passage(&mut self, case_no: i64) -> Result<u64, StoreError> {
        if let Some(next) = self.pending.next(case_no) {
            return Ok(next);
        }
        let row = sqlx::query(
            "SELECT COALESCE(MAX(first_passage + passages), 0) FROM search_segments WHERE case_no = $1",
        )
        .bind(case_no)
        .fetch_one(self.connection())
        .await?;
        row.unsigned(0)
    }

    /// The spans of a text's passages; `None` where it is not in the index.
    ///
    /// # Errors
    /// The database can't be read, or the record is damaged.
    pub async fn passage_spans(
        &mut self,
        case_no: i64,
        digest: &TextDigest,
    ) -> Result<Option<IndexedText>, StoreError> {
        let row =
            sqlx::query("SELECT spans FROM search_texts WHERE case_no = $1 AND text_sha256 = $2")
                .bind(case_no)
                .bind(&digest.as_bytes()[..])
                .fetch_optional(self.connection())
                .await?;
        row.map(|row| {
            let spans = block::read_spans(&row.blob(0)?)
                .ok_or_else(|| damaged(format!("the passages of {digest} can't be read")))?;
            Ok(IndexedText { spans })
        })
        .transpose()
    }

    /// What a principal may find in a case file: all that it may see now, or what of it belongs to these documents,
    /// where there are any.
    ///
    /// # Errors
    /// The database can't be read, or the index is damaged.
    pub async fn findable(
        &mut self,
        case: &CaseRow,
        principal: &str,
        access: CaseAccess,
        documents: &BTreeSet<DocumentId>,
    ) -> Result<Findable, StoreError> {
        let mut visible = self.visible(case, principal, access).await?;
        if !documents.is_empty() {
            let wanted = self.document_numbers(case.case_no, documents).await?;
            visible = Arc::new(visible.only(&wanted));
        }
        Ok(Findable {
            case_no: case.case_no,
            visible,
        })
    }

    /// The passages that BM25 puts first, with their scores. Nothing else than what may be found is ranked, or counted
    /// in the ranking. Terms are as [`factum_casefile::terms::question_terms`] gives them.
    ///
    /// # Errors
    /// The database can't be read, or the index is damaged.
    pub async fn best_by_words(
        &mut self,
        findable: &Findable,
        terms: &[String],
        limit: usize,
    ) -> Result<Vec<(u64, f32)>, StoreError> {
        if findable.visible.is_empty() {
            return Ok(Vec::new());
        }
        let mut ranking = Ranking::over(&findable.visible);
        for term in terms {
            let postings = self.postings(findable.case_no, term).await?;
            ranking.add(&postings).ok_or_else(damaged_index)?;
        }
        Ok(ranking.best(&findable.visible, limit))
    }

    /// A passage by its number.
    ///
    /// # Errors
    /// It is none that may be found, the database can't be read, or the index is damaged.
    pub async fn passage(
        &mut self,
        findable: &Findable,
        passage: u64,
        score: f32,
    ) -> Result<FoundPassage, StoreError> {
        let place = findable.visible.locate(passage);
        let (doc_no, within) = place.ok_or_else(damaged_index)?;
        self.found(findable.case_no, doc_no, within, score).await
    }

    async fn document_numbers(
        &mut self,
        case_no: i64,
        documents: &BTreeSet<DocumentId>,
    ) -> Result<BTreeSet<i64>, StoreError> {
        let mut out = BTreeSet::new();
        for doc_id in documents {
            if let Some(document) = self.document(case_no, doc_id).await? {
                out.insert(document.doc_no);
            }
        }
        Ok(out)
    }

    async fn found(
        &mut self,
        case_no: i64,
        doc_no: i64,
        within: usize,
        score: f32,
    ) -> Result<FoundPassage, StoreError> {
        let row = sqlx::query(
            "SELECT d.doc_id, d.version, d.text_sha256, t.spans FROM documents d \
             JOIN search_texts t ON t.case_no = d.case_no AND t.text_sha256 = d.text_sha256 \
             WHERE d.case_no = $1 AND d.doc_no = $2",
        )
        .bind(case_no)
        .bind(doc_no)
        .fetch_optional(self.connection())
        .await?;
        let row = row.ok_or_else(damaged_index)?;
        let spans = block::read_spans(&row.blob(3)?).ok_or_else(damaged_index)?;
        Ok(FoundPassage {
            doc_id: DocumentId::new(row.text(0)?).map_err(damaged)?,
            version: row.small(1)?,
            text_sha256: row.digest(2)?,
            span: *spans.get(within).ok_or_else(damaged_index)?,
            score,
        })
    }

    /// Size of the index in bytes, as kept: postings and spans, without what the database adds.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn index_bytes(&mut self) -> Result<u64, StoreError> {
        let row = sqlx::query(
            "SELECT COALESCE((SELECT SUM(LENGTH(body)) FROM search_blocks), 0) + \
             COALESCE((SELECT SUM(LENGTH(spans) + 48) FROM search_texts), 0)",
        )
        .fetch_one(self.connection())
        .await?;
        row.unsigned(0)
    }
}

fn damaged_index() -> StoreError {
    damaged("the search index can't be read")
}
