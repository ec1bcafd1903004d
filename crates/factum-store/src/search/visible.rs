//! What a principal may find: which passages of the index belong to documents that it may see now.
//!
//! Everything that decides it moves with the number of the case file's latest event, in one transaction, so what
//! was found out for an event is kept for as long as no other follows.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use factum_base::TextDigest;

use super::{FindableText, damaged_index};
use crate::access::CaseAccess;
use crate::cases::CaseRow;
use crate::error::StoreError;
use crate::repository::Tx;
use crate::rows::Columns as _;

/// Kept for so many principals and case files.
const KEPT: usize = 16;

/// Passages that may be found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Visible {
    /// By first passage, without overlaps.
    ranges: Vec<Range>,
    /// Their passages together.
    pub(super) passages: u64,
    /// Terms of these passages together.
    pub(super) terms: u64,
    /// One more than the last.
    pub(super) end: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    first: u64,
    passages: u64,
    terms: u64,
    doc_no: i64,
    text_sha256: TextDigest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    case_no: i64,
    principal: String,
    event: u64,
    granted: bool,
}

/// What was found out lately.
#[derive(Debug, Default)]
pub(crate) struct VisibleCache {
    kept: Mutex<VecDeque<(Key, Arc<Visible>)>>,
}

impl VisibleCache {
    fn find(&self, key: &Key) -> Option<Arc<Visible>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(known, _)| known == key);
        found.map(|(_, visible)| Arc::clone(visible))
    }

    fn keep(&self, key: Key, visible: &Arc<Visible>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known.case_no != key.case_no || known.principal != key.principal);
        kept.push_back((key, Arc::clone(visible)));
        if kept.len() > KEPT {
            kept.pop_front();
        }
    }
}

impl Visible {
    fn of(mut ranges: Vec<Range>) -> Self {
        ranges.sort_by_key(|range| (range.first, range.doc_no));
        // Two documents with one text: the first stands for both.
        ranges.dedup_by_key(|range| range.first);
        Self {
            passages: ranges.iter().map(|range| range.passages).sum(),
            terms: ranges.iter().map(|range| range.terms).sum(),
            end: ranges
                .last()
                .map_or(0, |range| range.first + range.passages),
            ranges,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.passages == 0
    }

    /// Only what belongs to these documents.
    pub(super) fn only(&self, documents: &BTreeSet<i64>) -> Self {
        let wanted = self
            .ranges
            .iter()
            .filter(|range| documents.contains(&range.doc_no));
        Self::of(wanted.copied().collect())
    }

    /// First passage and one past the last of each stretch, in order.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges
            .iter()
            .map(|range| (range.first, range.first + range.passages))
    }

    /// The texts with their first passages and how many they have, in order.
    pub(super) fn texts(&self) -> impl Iterator<Item = FindableText> + '_ {
        self.ranges.iter().map(|range| FindableText {
            text_sha256: range.text_sha256,
            doc_no: range.doc_no,
            first: range.first,
            passages: range.passages,
        })
    }

    /// The document of a passage, and its place among that document's passages.
    pub(super) fn locate(&self, passage: u64) -> Option<(i64, usize)> {
        let after = self.ranges.partition_point(|range| range.first <= passage);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        let within = passage - range.first;
        (within < range.passages).then_some((range.doc_no, usize::try_from(within).ok()?))
    }
}

impl Tx {
    pub(super) async fn visible(
        &mut self,
        case: &CaseRow,
        principal: &str,
        access: CaseAccess,
    ) -> Result<Arc<Visible>, StoreError> {
        let key = Key {
            case_no: case.case_no,
            principal: principal.to_owned(),
            event: case.last_event,
            granted: access.granted,
        };
        if let Some(found) = self.visible.find(&key) {
            return Ok(found);
        }
        // What a transaction writes may be undone, and the event's number used again.
        let may_keep = !self.writes;
        // A granted document is not frozen, so its row's own version is the one that counts.
        let rows = sqlx::query(
            "SELECT t.first_passage, t.passages, t.terms, d.doc_no, d.text_sha256 FROM documents d \
             LEFT JOIN doc_access a ON a.doc_no = d.doc_no AND a.principal = $2 \
             LEFT JOIN search_texts t ON t.case_no = d.case_no AND t.text_sha256 = d.text_sha256 \
             WHERE d.case_no = $1 AND d.active = 1 AND COALESCE(a.granted, $3) = 1",
        )
        .bind(case.case_no)
        .bind(principal)
        .bind(i64::from(access.granted))
        .fetch_all(self.connection())
        .await?;
        let mut ranges = Vec::with_capacity(rows.len());
        for row in &rows {
            let Some(first) = row.optional_int(0)? else {
                return Err(damaged_index());
            };
            ranges.push(Range {
                first: u64::try_from(first).map_err(|_| damaged_index())?,
                passages: row.unsigned(1)?,
                terms: row.unsigned(2)?,
                doc_no: row.int(3)?,
                text_sha256: row.digest(4)?,
            });
        }
        let visible = Arc::new(Visible::of(ranges));
        if may_keep {
            self.visible.keep(key, &visible);
        }
        Ok(visible)
    }
}
