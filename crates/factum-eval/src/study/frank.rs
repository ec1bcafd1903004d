//! FRANK: generated news summaries with people's verdicts, of two origins.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::study::sentences::{Sentence, nearest, sentences};
use crate::study::{Item, Set, Statement, StudyError, is_tuning};

/// Sentences that a statement may rest on, as a summary that cites would choose them.
const PASSAGES: usize = 3;

#[derive(Deserialize)]
struct Row {
    origin: String,
    hash: String,
    label: u8,
    claim_lines: Vec<String>,
    article: String,
}

/// Each origin, against the whole article and against its nearest sentences.
pub(super) fn sets(path: &Path) -> Result<Vec<Set>, StudyError> {
    let text = std::fs::read_to_string(path).map_err(|error| StudyError::Unreadable {
        path: path.to_owned(),
        message: error.to_string(),
    })?;
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let row: Row = serde_json::from_str(line).map_err(|error| StudyError::Record {
            path: path.to_owned(),
            record: number + 1,
            message: error.to_string(),
        })?;
        rows.push(row);
    }
    let mut cut: HashMap<&str, Vec<Sentence>> = HashMap::new();
    for row in &rows {
        cut.entry(&row.article)
            .or_insert_with(|| sentences(&row.article));
    }
    let mut all = Vec::new();
    for (origin, floors) in [("cnndm", [64.3, 70.0]), ("bbc", [58.0, 58.8])] {
        for whole in [true, false] {
            let items = rows
                .iter()
                .filter(|row| row.origin == origin)
                .enumerate()
                .map(|(unit, row)| item(unit, row, &cut, whole));
            let quotes = if whole {
                "the whole article".to_owned()
            } else {
                format!("its {PASSAGES} nearest sentences")
            };
            all.push(Set {
                name: format!("frank-{origin}"),
                quotes,
                items: items.collect(),
                floors,
            });
        }
    }
    Ok(all)
}

fn item(unit: usize, row: &Row, cut: &HashMap<&str, Vec<Sentence>>, whole: bool) -> Item {
    let quotes = |line: &str| match cut.get(row.article.as_str()) {
        Some(sentences) if !whole => nearest(sentences, line, PASSAGES),
        _ => vec![row.article.clone()],
    };
    Item {
        statements: row
            .claim_lines
            .iter()
            .map(|line| Statement {
                text: line.clone(),
                quotes: quotes(line),
            })
            .collect(),
        supported: row.label == 1,
        unit,
        tuning: is_tuning(&row.hash),
    }
}
