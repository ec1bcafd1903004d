//! Segments: what one transaction brings, and the merging of small ones.

use std::collections::{BTreeMap, HashMap};

use super::block::{BlockWriter, Postings, Weight, find, read_all};
use super::damaged_index;
use crate::error::StoreError;
use crate::repository::Tx;
use crate::rows::{Columns, signed};

/// A block is closed at this size; a term of many passages makes a longer one.
const BLOCK_BYTES: usize = 8 << 10;
/// So many segments of one size are merged.
const FAN: usize = 8;
/// Segments that would come to more passages are left as they are.
const LARGEST: u64 = 4_000_000;
/// Postings held in memory before a segment is written.
const PENDING_BYTES: usize = 48 << 20;

/// What a transaction has to write into the index, by case file.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    cases: BTreeMap<i64, PendingCase>,
}

#[derive(Debug, Default)]
pub(crate) struct PendingCase {
    numbers: HashMap<Box<str>, usize>,
    /// By number.
    lists: Vec<Postings>,
    /// Numbers of the terms of the passage at hand.
    passage: Vec<usize>,
    first: Option<u64>,
    next: Option<u64>,
    bytes: usize,
}

impl Pending {
    pub(crate) fn of(&mut self, case_no: i64) -> &mut PendingCase {
        self.cases.entry(case_no).or_default()
    }

    pub(crate) fn next(&self, case_no: i64) -> Option<u64> {
        self.cases.get(&case_no)?.next
    }

    pub(crate) fn advance(&mut self, case_no: i64, next: u64) {
        self.of(case_no).next = Some(next);
    }

    pub(crate) fn is_large(&self) -> bool {
        self.cases.values().map(|case| case.bytes).sum::<usize>() > PENDING_BYTES
    }
}

impl PendingCase {
    /// Adds a passage, and gives its length in terms.
    pub(crate) fn add(
        &mut self,
        passage: u64,
        text: &str,
        each_term: impl FnOnce(&str, &mut dyn FnMut(&str)),
    ) -> u64 {
        self.first.get_or_insert(passage);
        self.passage.clear();
        each_term(text, &mut |term| {
            let number = if let Some(number) = self.numbers.get(term) {
                *number
            } else {
                self.bytes += 80;
                self.lists.push(Postings::default());
                self.numbers.insert(term.into(), self.lists.len() - 1);
                self.lists.len() - 1
            };
            self.passage.push(number);
        });
        self.passage.sort_unstable();
        let length = u32::try_from(self.passage.len()).unwrap_or(u32::MAX);
        for same in self.passage.chunk_by(|a, b| a == b) {
            let count = u32::try_from(same.len()).unwrap_or(u32::MAX);
            self.lists[same[0]].push(passage, Weight::new(count, length));
            self.bytes += 3;
        }
        length.into()
    }

    fn into_terms(self) -> BTreeMap<String, Postings> {
        let mut lists = self.lists;
        let take = |(term, number): (Box<str>, usize)| {
            (String::from(term), std::mem::take(&mut lists[number]))
        };
        self.numbers.into_iter().map(take).collect()
    }
}

struct Segment {
    number: i64,
    first: u64,
    passages: u64,
}

impl Segment {
    // Sizes in steps of the fan.
    fn level(&self) -> u32 {
        (self.passages / 64).max(1).ilog2() / FAN.ilog2()
    }
}

impl Tx {
    /// Writes what is pending. Called when the transaction commits.
    pub(crate) async fn flush_index(&mut self) -> Result<(), StoreError> {
        let cases = std::mem::take(&mut self.pending.cases);
        for (case_no, case) in cases {
            let (Some(first), Some(next)) = (case.first, case.next) else {
                continue;
            };
            // What comes later in this transaction goes on from here.
            self.pending.of(case_no).next = Some(next);
            self.write_segment(case_no, first, next - first, case.into_terms())
                .await?;
            self.merge_segments(case_no).await?;
        }
        Ok(())
    }

    async fn write_segment(
        &mut self,
        case_no: i64,
        first: u64,
        passages: u64,
        terms: BTreeMap<String, Postings>,
    ) -> Result<(), StoreError> {
        let row = sqlx::query(
            "INSERT INTO search_segments (case_no, first_passage, passages) VALUES ($1, $2, $3) RETURNING segment",
        )
        .bind(case_no)
        .bind(signed(first))
        .bind(signed(passages))
        .fetch_one(self.connection())
        .await?;
        let segment = row.int(0)?;
        let mut block = BlockWriter::default();
        for (term, postings) in terms {
            block.add(&term, &postings);
            if block.bytes.len() >= BLOCK_BYTES {
                self.write_block(segment, std::mem::take(&mut block))
                    .await?;
            }
        }
        if !block.bytes.is_empty() {
            self.write_block(segment, block).await?;
        }
        Ok(())
    }

    async fn write_block(&mut self, segment: i64, block: BlockWriter) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO search_blocks (segment, first_term, body) VALUES ($1, $2, $3)")
            .bind(segment)
            .bind(block.first)
            .bind(block.bytes)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    async fn segments_of(&mut self, case_no: i64) -> Result<Vec<Segment>, StoreError> {
        let rows = sqlx::query(
            "SELECT segment, first_passage, passages FROM search_segments WHERE case_no = $1 \
             ORDER BY first_passage, segment",
        )
        .bind(case_no)
        .fetch_all(self.connection())
        .await?;
        rows.iter()
            .map(|row| {
                Ok(Segment {
                    number: row.int(0)?,
                    first: row.unsigned(1)?,
                    passages: row.unsigned(2)?,
                })
            })
            .collect()
    }

    // The last segments, as far back as they are no larger than the newest one's size, become one when
    // there are enough of them. What is merged is a run, so that passages stay in order.
    async fn merge_segments(&mut self, case_no: i64) -> Result<(), StoreError> {
        loop {
            let segments = self.segments_of(case_no).await?;
            let Some(newest) = segments.last() else {
                return Ok(());
            };
            let level = newest.level();
            let run = segments
                .iter()
                .rev()
                .take_while(|one| one.level() <= level)
                .count();
            let run = &segments[segments.len() - run..];
            let passages: u64 = run.iter().map(|one| one.passages).sum();
            if run.len() < FAN || passages > LARGEST {
                return Ok(());
            }
            let first = run[0].first;
            let mut terms: BTreeMap<String, Postings> = BTreeMap::new();
            for segment in run {
                for (term, postings) in self.all_terms(segment.number).await? {
                    let merged = terms.entry(term).or_default();
                    merged.append(&postings).ok_or_else(damaged_index)?;
                }
                self.remove_segment(segment.number).await?;
            }
            self.write_segment(case_no, first, passages, terms).await?;
        }
    }

    async fn all_terms(&mut self, segment: i64) -> Result<Vec<(String, Postings)>, StoreError> {
        let rows =
            sqlx::query("SELECT body FROM search_blocks WHERE segment = $1 ORDER BY first_term")
                .bind(segment)
                .fetch_all(self.connection())
                .await?;
        let mut out = Vec::new();
        for row in &rows {
            out.extend(read_all(&row.blob(0)?).ok_or_else(damaged_index)?);
        }
        Ok(out)
    }

    async fn remove_segment(&mut self, segment: i64) -> Result<(), StoreError> {
        for sql in [
            "DELETE FROM search_blocks WHERE segment = $1",
            "DELETE FROM search_segments WHERE segment = $1",
        ] {
            sqlx::query(sql)
                .bind(segment)
                .execute(self.connection())
                .await?;
        }
        Ok(())
    }

    /// The postings of a term in each segment of a case file.
    pub(super) async fn postings(
        &mut self,
        case_no: i64,
        term: &str,
    ) -> Result<Vec<Postings>, StoreError> {
        let rows = sqlx::query(
            "SELECT b.body FROM search_segments s \
             JOIN search_blocks b ON b.segment = s.segment AND b.first_term = \
             (SELECT MAX(c.first_term) FROM search_blocks c WHERE c.segment = s.segment AND c.first_term <= $2) \
             WHERE s.case_no = $1 ORDER BY s.first_passage, s.segment",
        )
        .bind(case_no)
        .bind(term)
        .fetch_all(self.connection())
        .await?;
        let mut out = Vec::with_capacity(rows.len());
        for row in &rows {
            let found = find(&row.blob(0)?, term).ok_or_else(damaged_index)?;
            if found.count > 0 {
                out.push(found);
            }
        }
        Ok(out)
    }
}
