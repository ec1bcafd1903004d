//! Where a span came from, in the terms of the document's own format.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cues::{CueTime, write_clock};

/// A cell of a table, both counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The row; a header row counts.
    pub row: u32,
    /// The column.
    pub column: u32,
}

/// The place of a span. All counts start at one; `first` and `last` are both inclusive.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    /// Lines of a text.
    Lines {
        /// First line.
        first: u32,
        /// Last line.
        last: u32,
    },
    /// Cells of a table.
    Cells {
        /// The cell the span starts in.
        first: Cell,
        /// The cell the span ends in.
        last: Cell,
        /// Header of the column the span starts in, where the table has a header.
        first_header: Option<String>,
        /// Header of the column the span ends in.
        last_header: Option<String>,
    },
    /// Part of a JSON text.
    Json {
        /// First line.
        first: u32,
        /// Last line.
        last: u32,
        /// RFC 6901 pointer to the innermost value that holds the whole span, where it is known.
        pointer: Option<String>,
    },
    /// Cues of a recording.
    Cues {
        /// First cue, as it comes in the file.
        first: u32,
        /// Last cue.
        last: u32,
        /// From the start of the first to the end of the last, where both are known.
        time: Option<CueTime>,
        /// Who speaks, where one voice speaks it all.
        speaker: Option<String>,
        /// First byte of the cues in the original file.
        start_byte: u64,
        /// One past the last byte.
        end_byte: u64,
    },
    /// Bytes of the original file, half open.
    Bytes {
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
    },
    /// The layout says nothing about the span.
    Unplaced,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines { first, last } => write_range(f, "line", *first, *last),
            Self::Cells {
                first,
                last,
                first_header,
                last_header,
            } => {
                write_range(f, "row", first.row, last.row)?;
                if first.row != last.row {
                    return Ok(());
                }
                let one = first.column == last.column;
                f.write_str(if one { ", column " } else { ", columns " })?;
                write_column(f, first.column, first_header.as_deref())?;
                if !one {
                    f.write_str("–")?;
                    write_column(f, last.column, last_header.as_deref())?;
                }
                Ok(())
            }
            Self::Json {
                first,
                last,
                pointer,
            } => {
                write_range(f, "line", *first, *last)?;
                match pointer.as_deref() {
                    None | Some("") => Ok(()),
                    Some(pointer) => write!(f, ", {pointer}"),
                }
            }
            Self::Cues {
                first,
                last,
                time,
                speaker,
                ..
            } => {
                write_range(f, "cue", *first, *last)?;
                if let Some(time) = time {
                    f.write_str(", ")?;
                    write_clock(f, time.start_ms)?;
                    f.write_str("–")?;
                    write_clock(f, time.end_ms)?;
                }
                match speaker {
                    Some(speaker) => write!(f, ", {speaker}"),
                    None => Ok(()),
                }
            }
            Self::Bytes { start, end } => write!(f, "bytes {start}–{end} of the original"),
            Self::Unplaced => f.write_str("no known place"),
        }
    }
}

fn write_range(f: &mut fmt::Formatter<'_>, what: &str, first: u32, last: u32) -> fmt::Result {
    if first == last {
        write!(f, "{what} {first}")
    } else {
        write!(f, "{what}s {first}–{last}")
    }
}

fn write_column(f: &mut fmt::Formatter<'_>, number: u32, header: Option<&str>) -> fmt::Result {
    match header {
        Some(header) => f.write_str(header),
        None => write!(f, "{number}"),
    }
}
