//! What a reader had to decide or leave out, told with the text it produced.
//!
//! Each kind appears at most once per document and carries a count, so that a hostile file can't
//! make the list of warnings long.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something about the text layer that whoever relies on it should know.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warning {
    /// Nothing in the file names its encoding; it was found by looking at the bytes.
    DetectedEncoding {
        /// The encoding used.
        encoding: String,
    },
    /// The file names an encoding that its bytes do not fit.
    MisleadingEncoding {
        /// What the file says.
        declared: String,
        /// The encoding used.
        used: String,
    },
    /// Some lines are UTF-8 and others are not, so each was decoded by itself.
    MixedEncodings {
        /// The encoding of the lines that are not UTF-8.
        legacy: String,
        /// How many lines those are.
        lines: u32,
        /// The first of them, counted from one.
        first_line: u32,
    },
    /// Bytes that are no character became U+FFFD.
    ReplacedBytes {
        /// How many places.
        count: u32,
    },
    /// JSON strings escape half of a surrogate pair; the escape is kept as written.
    LoneSurrogate {
        /// How many.
        count: u32,
    },
    /// The file is called JSON but is not valid JSON; it is kept as text.
    InvalidJson {
        /// Line of the first error, counted from one.
        line: u32,
        /// What was wrong there.
        problem: String,
    },
    /// Cues that end before they start.
    ReversedCueTime {
        /// How many.
        count: u32,
        /// The first of them, counted from one.
        first_cue: u32,
    },
    /// Cues whose times can't be read; their text is kept.
    UnreadableCueTime {
        /// How many.
        count: u32,
        /// The first of them, counted from one.
        first_cue: u32,
    },
    /// Text that belongs to no cue was left out.
    TextOutsideCues {
        /// How many lines.
        lines: u32,
        /// The first of them, counted from one.
        first_line: u32,
    },
    /// Parts of a page that a browser would not show were left out.
    HiddenContent {
        /// How many elements with text in them.
        elements: u32,
    },
    /// A quoted table cell is never closed, so it reaches to the end of the file.
    UnclosedQuote {
        /// Row of the cell, counted from one.
        row: u32,
    },
    /// Nesting goes deeper than expected of an honest document.
    DeepNesting {
        /// The depth reached.
        depth: u32,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DetectedEncoding { encoding } => {
                write!(
                    f,
                    "the encoding was not stated; read as {encoding} by detection"
                )
            }
            Self::MisleadingEncoding { declared, used } => {
                write!(
                    f,
                    "the file says it is {declared}, which its bytes do not fit; read as {used}"
                )
            }
            Self::MixedEncodings {
                legacy,
                lines,
                first_line,
            } => write!(
                f,
                "encodings are mixed: {lines} {} not UTF-8 (first: line {first_line}) and read as {legacy}",
                if *lines == 1 { "line is" } else { "lines are" }
            ),
            Self::ReplacedBytes { count } => {
                write!(
                    f,
                    "{} not a character and shown as \u{fffd}",
                    places(*count)
                )
            }
            Self::LoneSurrogate { count } => write!(
                f,
                "{count} escaped half surrogate{} kept as written",
                if *count == 1 { "" } else { "s" }
            ),
            Self::InvalidJson { line, problem } => {
                write!(f, "not valid JSON, kept as text: line {line}: {problem}")
            }
            Self::ReversedCueTime { count, first_cue } => {
                write!(
                    f,
                    "{} before its start (first: cue {first_cue})",
                    cues(*count, "ends", "end")
                )
            }
            Self::UnreadableCueTime { count, first_cue } => write!(
                f,
                "{} times that cannot be read (first: cue {first_cue})",
                cues(*count, "has", "have")
            ),
            Self::TextOutsideCues { lines, first_line } => write!(
                f,
                "{lines} line{} outside any cue left out (first: line {first_line})",
                if *lines == 1 { "" } else { "s" }
            ),
            Self::HiddenContent { elements } => write!(
                f,
                "{elements} hidden part{} left out",
                if *elements == 1 { "" } else { "s" }
            ),
            Self::UnclosedQuote { row } => {
                write!(f, "the quote opened in row {row} is never closed")
            }
            Self::DeepNesting { depth } => write!(f, "nested {depth} levels deep"),
        }
    }
}

fn places(count: u32) -> String {
    if count == 1 {
        "the bytes in one place are".to_owned()
    } else {
        format!("the bytes in {count} places are")
    }
}

fn cues(count: u32, one: &str, many: &str) -> String {
    if count == 1 {
        format!("one cue {one}")
    } else {
        format!("{count} cues {many}")
    }
}
