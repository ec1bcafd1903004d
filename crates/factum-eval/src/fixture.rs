//! Fixtures: a source, what a good summary of it must say, and what it must not say.
//!
//! Reading is strict, and a fixture that can't fail is refused: a check that always passes is a defect.

mod check;
mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use factum_base::TextDigest;

use crate::folded::Folded;
use crate::located;
use crate::reading::{Finding, Findings};
use crate::score_name::ScoreName;
use crate::source::Source;
use crate::summary::Summary;

/// The JSON Schema of a fixture, as it is published.
pub const SCHEMA: &str = include_str!("../schema/fixture.schema.json");

/// Larger files are refused before they are read.
pub const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A fixture.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// Its name; the file's, where it gives none.
    pub name: String,
    /// What it is about, for people.
    pub description: Option<String>,
    /// Words to choose fixtures by.
    pub tags: Vec<String>,
    /// What is summarised.
    pub source: Source,
    /// What a good summary says.
    pub events: Vec<Event>,
    /// What it does not say.
    pub forbidden: Vec<Forbidden>,
    /// Phrases that occur nowhere in it.
    pub absent: Vec<Phrase>,
    /// An output with known scores.
    pub stub: Option<Summary>,
    /// The scores that the stub must get; `None` for a score over nothing.
    pub expected: BTreeMap<ScoreName, Option<f64>>,
    /// The file.
    pub file: PathBuf,
    /// Digest of the file's bytes.
    pub digest: String,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its id.
    pub id: String,
    /// How a text mentions it.
    pub mentions: Mentions,
    /// Who did it.
    pub actor: Option<Actor>,
    /// Its place in time; events with the same number are at the same time.
    pub order: f64,
    /// Ids of the passages that state it.
    pub evidence: Vec<String>,
}

/// Who did something.
#[derive(Debug, Clone)]
pub struct Actor {
    /// The name.
    pub name: String,
    /// The name and every other by which a text may call them.
    pub names: Vec<Phrase>,
}

/// A claim that must not be made.
#[derive(Debug, Clone)]
pub struct Forbidden {
    /// Its id.
    pub id: String,
    /// How a text makes it.
    pub mentions: Mentions,
    /// Why it is wrong.
    pub why: String,
}

/// Groups of alternatives: a text matches where every group has one alternative in it.
#[derive(Debug, Clone)]
pub struct Mentions(pub Vec<Vec<Phrase>>);

/// A phrase to be found.
#[derive(Debug, Clone)]
pub struct Phrase {
    /// As it was written.
    pub text: String,
    /// As it is searched for.
    pub folded: Folded,
}

impl Phrase {
    /// A phrase.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            folded: Folded::phrase(text),
        }
    }
}

/// A file that is no fixture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadFixture {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it, in the order of lines.
    pub findings: Vec<Finding>,
}

impl BadFixture {
    fn of(file: &Path, line: u32, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            findings: vec![Finding {
                line,
                path: String::new(),
                message: message.into(),
            }],
        }
    }

    /// One message a finding, each with file and line.
    pub fn messages(&self) -> Vec<String> {
        let file = self.file.display();
        self.findings
            .iter()
            .map(|finding| {
                let at = if finding.path.is_empty() {
                    String::new()
                } else {
                    format!(" {}:", finding.path)
                };
                format!("{file}:{}:{at} {}", finding.line, finding.message)
            })
            .collect()
    }
}

impl fmt::Display for BadFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages().join("\n"))
    }
}

impl std::error::Error for BadFixture {}

impl Fixture {
    /// Reads a fixture's file.
    ///
    /// # Errors
    /// It can't be read, is too large, or is no fixture.
    pub fn open(file: &Path) -> Result<Self, BadFixture> {
        let unreadable = |error: std::io::Error| BadFixture::of(file, 1, error.to_string());
        let size = std::fs::metadata(file).map_err(unreadable)?.len();
        if size > MOST_BYTES {
            let message = format!("has {size} bytes; a fixture has at most {MOST_BYTES}");
            return Err(BadFixture::of(file, 1, message));
        }
        let bytes = std::fs::read(file).map_err(unreadable)?;
        Self::from_bytes(file, &bytes)
    }

    /// Reads a fixture. The file's name says whether it is YAML and what it is called.
    ///
    /// # Errors
    /// It is no fixture, or one that can't fail.
    pub fn from_bytes(file: &Path, bytes: &[u8]) -> Result<Self, BadFixture> {
        let node = located::read_file(file, bytes)
            .map_err(|error| BadFixture::of(file, error.line, error.message))?;
        let mut findings = Findings::default();
        let read = read::fixture(&mut findings, &node, file);
        match read {
            Some(mut fixture) if findings.is_empty() => {
                fixture.digest = TextDigest::of(bytes).to_hex();
                Ok(fixture)
            }
            _ => Err(BadFixture {
                file: file.to_owned(),
                findings: findings.into_vec(),
            }),
        }
    }

    /// Whether a score measures anything of this fixture, whatever the summary says.
    pub fn pins(&self, score: ScoreName) -> bool {
        match score {
            ScoreName::Coverage | ScoreName::CoverageInBeats => !self.events.is_empty(),
            ScoreName::Attribution => self.events.iter().any(|event| event.actor.is_some()),
            ScoreName::ChronologyTau | ScoreName::Chronology01 => self.events.len() > 1,
            ScoreName::Precision => !self.forbidden.is_empty(),
            ScoreName::Absence => !self.absent.is_empty(),
            ScoreName::CitationPrecision | ScoreName::CitationRecall => {
                self.events.iter().any(|event| !event.evidence.is_empty())
            }
            _ => true,
        }
    }
}
