//! A history of runs: one line of JSON a run, only ever appended to.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::gates::Verdict;
use crate::paired::Scores;
use crate::report::{FORMAT as REPORT, Report};
use crate::score_name::ScoreName;

/// The name of the format of a line.
pub const FORMAT: &str = "factum/eval-history/1";

/// A record of a hundred thousand fixtures is shorter.
const MOST_OF_A_LINE: u64 = 64 * 1024 * 1024;

/// A run, as the history keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: String,
    /// When the run began, in Unix milliseconds.
    pub at: i64,
    /// The revision of what was evaluated.
    pub commit: Option<String>,
    /// Where the summaries came from.
    pub provider: String,
    /// All of it that can change a summary: the model, with its files and settings.
    pub identity: Value,
    /// The profile.
    pub profile: Option<String>,
    /// The scorers' version.
    pub scorer_version: u32,
    /// The means.
    pub means: BTreeMap<ScoreName, Option<f64>>,
    /// The verdict.
    pub verdict: Verdict,
    /// The scores by fixture, with the forbidden claims that were made.
    #[serde(flatten)]
    pub scores: Scores,
}

impl Record {
    /// The record of a run.
    pub fn of(report: &Report) -> Self {
        let means = report.aggregates.iter();
        Self {
            format: FORMAT.to_owned(),
            at: report.at,
            commit: report.commit.clone(),
            provider: report.provider.clone(),
            identity: report.identity.clone(),
            profile: report.profile.clone(),
            scorer_version: report.scorer_version,
            means: means.map(|(score, found)| (*score, found.mean)).collect(),
            verdict: report.verdict,
            scores: Scores::of(&report.fixtures),
        }
    }

    /// Appends the record as one line, in one write.
    ///
    /// # Errors
    /// The file can't be written, or holds something else than a history.
    pub fn append(&self, path: &Path) -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)?;
        let mut line = serde_json::to_string(self)? + "\n";
        if !begins_with_a_record(&file)? {
            let what = format!("{} is there already, and is no history", path.display());
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
        }
        // A run that was killed in the middle of its write costs its own record, not this one too.
        if !ends_with_a_line(&mut file)? {
            line.insert(0, '\n');
        }
        file.write_all(line.as_bytes())
    }
}

/// Whether a file's first line is a record. An empty file is a history without records.
fn begins_with_a_record(file: &File) -> std::io::Result<bool> {
    let mut first = Vec::new();
    std::io::BufReader::new(file.take(MOST_OF_A_LINE)).read_until(b'\n', &mut first)?;
    let record = || serde_json::from_slice::<Record>(&first);
    Ok(first.is_empty() || record().is_ok_and(|record| record.format == FORMAT))
}

fn ends_with_a_line(file: &mut File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Why a run's scores can't be read.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// The file can't be read.
    #[error("{path} can't be read: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is neither a report nor a history.
    #[error("{path} is neither a report of `factum eval run --json` nor a history: {message}")]
    Neither {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// No run of the history passed, so there is nothing to hold another against.
    #[error("no run in {path} passed")]
    NonePassed {
        /// The file.
        path: PathBuf,
    },
    /// The history has no such record.
    #[error("{path} has {records} records, so there is no record {wanted}")]
    NoRecord {
        /// The file.
        path: PathBuf,
        /// How many there are.
        records: usize,
        /// Which was wanted, from 1.
        wanted: usize,
    },
}

/// A run to compare with: its scores, and what it is called.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// For people.
    pub label: String,
    /// The scores.
    pub scores: Scores,
    /// The scorers' version.
    pub scorer_version: u32,
}

/// Reads a report, or a record of a history: the last one, or with `FILE#N` the `N`th.
///
/// # Errors
/// There is none there.
pub fn read(name: &str) -> Result<Named, HistoryError> {
    read_record(name, Which::Last)
}

/// Reads what later runs are held against: a report, or of a history the last record that passed, so that a run that failed does
/// not become the measure of the next; with `FILE#N` the `N`th, whatever it came to.
///
/// # Errors
/// There is none there.
pub fn read_baseline(name: &str) -> Result<Named, HistoryError> {
    read_record(name, Which::LastThatPassed)
}

#[derive(Clone, Copy)]
enum Which {
    Last,
    LastThatPassed,
}

fn read_record(name: &str, which: Which) -> Result<Named, HistoryError> {
    let (path, wanted) = match name.rsplit_once('#') {
        Some((path, number)) if !Path::new(name).exists() => match number.parse::<usize>() {
            Ok(number) => (path, Some(number)),
            Err(_) => (name, None),
        },
        _ => (name, None),
    };
    let path = PathBuf::from(path);
    let unreadable = |error| HistoryError::Unreadable {
        path: path.clone(),
        error,
    };
    let bytes = std::fs::read(&path).map_err(unreadable)?;
    let neither = |message: String| HistoryError::Neither {
        path: path.clone(),
        message,
    };
    if let Ok(value) = serde_json::from_slice::<Value>(&bytes)
        && value.get("format").and_then(Value::as_str) == Some(REPORT)
    {
        let report: Report = serde_json::from_value(value).map_err(|e| neither(e.to_string()))?;
        return Ok(Named {
            label: name.to_owned(),
            scores: Scores::of(&report.fixtures),
            scorer_version: report.scorer_version,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| neither("not UTF-8".to_owned()))?;
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let number = match (wanted, which) {
        (Some(number), _) => number,
        (None, Which::Last) => lines.len(),
        (None, Which::LastThatPassed) => {
            let passed = |line: &&str| {
                serde_json::from_str::<Record>(line)
                    .is_ok_and(|record| record.verdict == Verdict::Passed)
            };
            let found = lines.iter().rposition(passed);
            found.ok_or_else(|| HistoryError::NonePassed { path: path.clone() })? + 1
        }
    };
    let line = number.checked_sub(1).and_then(|place| lines.get(place));
    let line = line.ok_or_else(|| HistoryError::NoRecord {
        path: path.clone(),
        records: lines.len(),
        wanted: number,
    })?;
    let record: Record =
        serde_json::from_str(line).map_err(|error| neither(format!("record {number}: {error}")))?;
    if record.format != FORMAT {
        return Err(neither(format!("record {number} is no {FORMAT}")));
    }
    Ok(Named {
        label: format!("{}#{number}", path.display()),
        scores: record.scores,
        scorer_version: record.scorer_version,
    })
}
