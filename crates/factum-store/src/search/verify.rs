//! The index held against the texts: every passage, every term, every weight is computed again.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use factum_base::{CodePointIndex, Span, TextDigest};
use factum_casefile::passages::passages;
use factum_casefile::terms::each_term;

use super::block::{Weight, read_all, read_spans};
use crate::error::StoreError;
use crate::repository::Tx;
use crate::rows::Columns as _;

// One number for all terms of a passage, whatever their order.
type Sums = HashMap<u64, u64>;

fn add(sums: &mut Sums, passage: u64, term: &str, weight: Weight) {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((term, weight.0));
    let sum = sums.entry(passage).or_default();
    *sum = sum.wrapping_add(hash);
}

impl Tx {
    /// What is wrong with the search index of a case file, in words.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn index_findings(&mut self, case_no: i64) -> Result<Vec<String>, StoreError> {
        let mut findings = Vec::new();
        let mut kept = Sums::new();
        let blocks = sqlx::query(
            "SELECT b.body FROM search_segments s JOIN search_blocks b ON b.segment = s.segment WHERE s.case_no = $1",
        )
        .bind(case_no)
        .fetch_all(self.connection())
        .await?;
        for block in &blocks {
            let terms = read_all(&block.blob(0)?).unwrap_or_else(|| {
                findings.push("a block of the search index can't be read".to_owned());
                Vec::new()
            });
            for (term, postings) in terms {
                let whole = postings.each(|passage, weight| add(&mut kept, passage, &term, weight));
                if whole.is_none() {
                    findings.push(format!("the search index of {term:?} can't be read"));
                }
            }
        }
        let rows = sqlx::query(
            "SELECT d.text_sha256, t.first_passage, t.spans FROM documents d LEFT JOIN search_texts t \
             ON t.case_no = d.case_no AND t.text_sha256 = d.text_sha256 WHERE d.case_no = $1",
        )
        .bind(case_no)
        .fetch_all(self.connection())
        .await?;
        for row in &rows {
            let digest: TextDigest = row.digest(0)?;
            let (Some(first), Some(spans)) = (row.optional_int(1)?, row.optional_blob(2)?) else {
                findings.push(format!("text {digest} is not in the search index"));
                continue;
            };
            // A damaged text is reported where texts are checked.
            let Ok(text) = self.text(&digest).await else {
                continue;
            };
            let first = u64::try_from(first).unwrap_or(u64::MAX);
            if !matches(&text, first, &spans, &kept) {
                findings.push(format!(
                    "the search index of text {digest} is not what the text says"
                ));
            }
        }
        Ok(findings)
    }
}

fn matches(text: &str, first: u64, spans: &[u8], kept: &Sums) -> bool {
    let index = CodePointIndex::new(text);
    let mut expected = Vec::new();
    let mut good = true;
    for (number, at) in (first..).zip(passages(text)) {
        let mut counts: HashMap<String, u32> = HashMap::new();
        let mut length = 0;
        each_term(&text[at.clone()], |term| {
            length += 1;
            *counts.entry(term.to_owned()).or_default() += 1;
        });
        let mut sums = Sums::new();
        for (term, count) in &counts {
            add(&mut sums, number, term, Weight::new(*count, length));
        }
        good &= sums.get(&number) == kept.get(&number);
        expected.push(Span::new(
            index.code_point_of(text, at.start),
            index.code_point_of(text, at.end),
        ));
    }
    good && read_spans(spans) == Some(expected)
}
