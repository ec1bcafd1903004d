//! QMSum: answers about meetings with the turns that they rest on, against turns beside those.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::study::{Item, Set, Statement, StudyError, is_tuning};

#[derive(Deserialize)]
struct Meeting {
    specific_query_list: Vec<Query>,
    meeting_transcripts: Vec<Turn>,
}

#[derive(Deserialize)]
struct Query {
    answer: String,
    relevant_text_span: Vec<[String; 2]>,
}

#[derive(Deserialize)]
struct Turn {
    speaker: String,
    content: String,
}

/// Each answer against its own turns, and against as many turns right behind them, or before.
pub(super) fn set(folder: &Path) -> Result<Set, StudyError> {
    let unreadable = |message: String| StudyError::Unreadable {
        path: folder.to_owned(),
        message,
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(|error: std::io::Error| unreadable(error.to_string()))?;
    files.retain(|path| path.extension().is_some_and(|end| end == "json"));
    files.sort();
    let mut items = Vec::new();
    for path in files {
        let record = |message: String| StudyError::Record {
            path: path.clone(),
            record: 1,
            message,
        };
        let bytes = std::fs::read(&path).map_err(|error| record(error.to_string()))?;
        let meeting: Meeting =
            serde_json::from_slice(&bytes).map_err(|error| record(error.to_string()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        for query in &meeting.specific_query_list {
            let unit = items.len() / 2;
            items.extend(
                pair(&meeting, query, unit, is_tuning(&name))
                    .into_iter()
                    .flatten(),
            );
        }
    }
    Ok(Set {
        name: "qmsum".to_owned(),
        quotes: "the gold turns, or those beside them".to_owned(),
        items,
        floors: [68.3, 84.0],
    })
}

fn pair(meeting: &Meeting, query: &Query, unit: usize, tuning: bool) -> Option<[Item; 2]> {
    let turns = &meeting.meeting_transcripts;
    let mut spans = Vec::with_capacity(query.relevant_text_span.len());
    for [first, last] in &query.relevant_text_span {
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        spans.push((first, last.min(turns.len().checked_sub(1)?)));
    }
    let (first, last) = (spans.first()?.0, spans.last()?.1);
    let length = (last + 1).checked_sub(first)?;
    let beside = if last + length < turns.len() {
        (last + 1, last + length)
    } else {
        (first.checked_sub(length)?, first - 1)
    };
    let item = |spans: &[(usize, usize)], supported| Item {
        statements: vec![Statement {
            text: query.answer.clone(),
            quotes: spans.iter().map(|span| text_of(turns, *span)).collect(),
        }],
        supported,
        unit,
        tuning,
    };
    Some([item(&spans, true), item(&[beside], false)])
}

fn text_of(turns: &[Turn], (first, last): (usize, usize)) -> String {
    let turns = turns.get(first..=last).unwrap_or_default();
    let lines: Vec<String> = turns
        .iter()
        .map(|turn| format!("{}: {}", turn.speaker, turn.content))
        .collect();
    lines.join("\n")
}
