//! The source of a fixture: a transcript's lines or a case file's documents, and what an evidence id means there.
//!
//! Of a transcript, an id is a line's id. Of documents, it is `DOC`, `DOC@VERSION`, with `:START:END` for
//! code points or `#LINE` or `#FIRST-LAST` for lines; without a version it is the one that counts.

use std::collections::HashMap;
use std::ops::Range;

use factum_base::{Span, slice_code_points};

/// A source.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A transcript.
    Lines(Lines),
    /// Documents.
    Documents(Documents),
}

/// A transcript.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lines {
    all: Vec<Line>,
    by_id: HashMap<String, usize>,
}

/// A line of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its id.
    pub id: String,
    /// Who speaks.
    pub speaker: Option<String>,
    /// From when, in seconds.
    pub start: Option<f64>,
    /// Until when, in seconds.
    pub end: Option<f64>,
    /// What is said.
    pub text: String,
}

/// Documents, in order; a document's versions are entries of their own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Documents {
    all: Vec<Document>,
    by_version: HashMap<(String, u32), usize>,
    newest: HashMap<String, u32>,
}

/// One version of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The document's id.
    pub id: String,
    /// The version, from 1.
    pub version: u32,
    /// Its text.
    pub text: String,
    /// The document is withdrawn.
    pub withdrawn: bool,
}

/// What an evidence id stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage<'s> {
    /// Which line or document, as an index in the source.
    pub place: usize,
    /// The characters of a document.
    pub span: Option<Span>,
    /// The text.
    pub text: &'s str,
    /// Who speaks, of a transcript.
    pub speaker: Option<&'s str>,
    /// Its time, of a transcript.
    pub time: Option<(f64, f64)>,
}

/// Why an evidence id stands for nothing that may be cited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// The source has no such line or document.
    #[error("{0:?} is not in the source")]
    Unknown(String),
    /// The document has no such version.
    #[error("{0:?} is not a version of its document")]
    UnknownVersion(String),
    /// The document has no such characters or lines.
    #[error("{0:?} lies outside its document")]
    Outside(String),
    /// Another version counts.
    #[error("{id:?} is not the version that counts, which is {current}")]
    OldVersion {
        /// The id.
        id: String,
        /// The version that counts.
        current: u32,
    },
    /// The document is withdrawn.
    #[error("{0:?} is of a withdrawn document")]
    Withdrawn(String),
}

impl Lines {
    /// Lines in order. The first id that is given twice is an error.
    ///
    /// # Errors
    /// The place of the second line with that id.
    pub fn new(all: Vec<Line>) -> Result<Self, usize> {
        let mut by_id = HashMap::with_capacity(all.len());
        for (place, line) in all.iter().enumerate() {
            if by_id.insert(line.id.clone(), place).is_some() {
                return Err(place);
            }
        }
        Ok(Self { all, by_id })
    }

    /// The lines.
    pub fn all(&self) -> &[Line] {
        &self.all
    }
}

impl Documents {
    /// Documents in order. The first version that is given twice is an error.
    ///
    /// # Errors
    /// The place of the second entry of that version.
    pub fn new(all: Vec<Document>) -> Result<Self, usize> {
        let mut by_version = HashMap::with_capacity(all.len());
        let mut newest: HashMap<String, u32> = HashMap::new();
        for (place, document) in all.iter().enumerate() {
            let key = (document.id.clone(), document.version);
            if by_version.insert(key, place).is_some() {
                return Err(place);
            }
            let latest = newest.entry(document.id.clone()).or_insert(0);
            *latest = (*latest).max(document.version);
        }
        Ok(Self {
            all,
            by_version,
            newest,
        })
    }

    /// All versions, in order.
    pub fn all(&self) -> &[Document] {
        &self.all
    }

    /// The documents that count: the newest version of each that is not withdrawn.
    pub fn current(&self) -> impl Iterator<Item = &Document> {
        self.all
            .iter()
            .filter(|document| !document.withdrawn && self.is_newest(document))
    }

    fn is_newest(&self, document: &Document) -> bool {
        self.newest.get(&document.id) == Some(&document.version)
    }

    fn resolve(&self, id: &str) -> Result<Passage<'_>, EvidenceError> {
        if self.newest.contains_key(id) {
            return self.passage(id, id, None, None);
        }
        let (rest, part) = split_part(id).unwrap_or((id, None));
        if let Some(part) = &part
            && self.newest.contains_key(rest)
        {
            return self.passage(id, rest, None, Some(part));
        }
        let unknown = || EvidenceError::Unknown(id.to_owned());
        let (doc, version) = rest.rsplit_once('@').ok_or_else(unknown)?;
        let version: u32 = version.parse().map_err(|_| unknown())?;
        self.passage(id, doc, Some(version), part.as_ref())
    }

    fn passage(
        &self,
        id: &str,
        doc: &str,
        version: Option<u32>,
        part: Option<&Part>,
    ) -> Result<Passage<'_>, EvidenceError> {
        let current = *self
            .newest
            .get(doc)
            .ok_or_else(|| EvidenceError::Unknown(id.to_owned()))?;
        let key = (doc.to_owned(), version.unwrap_or(current));
        let place = *self
            .by_version
            .get(&key)
            .ok_or_else(|| EvidenceError::UnknownVersion(id.to_owned()))?;
        let document = &self.all[place];
        if document.withdrawn {
            return Err(EvidenceError::Withdrawn(id.to_owned()));
        }
        if document.version != current {
            return Err(EvidenceError::OldVersion {
                id: id.to_owned(),
                current,
            });
        }
        let outside = || EvidenceError::Outside(id.to_owned());
        let span = match part {
            None => Span::new(0, length(&document.text)),
            Some(&Part::Points(start, end)) if start < end => Span::new(start, end),
            Some(Part::Points(..)) => return Err(outside()),
            Some(&Part::Lines(first, last)) => {
                span_of_lines(&document.text, first, last).ok_or_else(outside)?
            }
        };
        let text = slice_code_points(&document.text, span).map_err(|_| outside())?;
        Ok(Passage {
            place,
            span: Some(span),
            text,
            speaker: None,
            time: None,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Points(u32, u32),
    Lines(u32, u32),
}

/// The part of a document that an id names behind it.
fn split_part(id: &str) -> Option<(&str, Option<Part>)> {
    if let Some((rest, lines)) = id.rsplit_once('#') {
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        return Some((rest, Some(Part::Lines(first, last))));
    }
    let (rest, end) = id.rsplit_once(':')?;
    let (rest, start) = rest.rsplit_once(':')?;
    let part = Part::Points(start.parse().ok()?, end.parse().ok()?);
    Some((rest, Some(part)))
}

fn length(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

/// Lines, from 1, as a span without the last one's line end.
fn span_of_lines(text: &str, first: u32, last: u32) -> Option<Span> {
    if first == 0 || last < first {
        return None;
    }
    let (mut start, mut at) = (None, 0);
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if number == first {
            start = Some(at);
        }
        let shown = length(line.trim_end_matches(['\n', '\r']));
        if number == last {
            return Some(Span::new(start?, at + shown)).filter(|span| span.start < span.end);
        }
        at += length(line);
    }
    None
}

impl Source {
    /// What an evidence id stands for.
    ///
    /// # Errors
    /// Nothing that may be cited.
    pub fn resolve(&self, id: &str) -> Result<Passage<'_>, EvidenceError> {
        match self {
            Self::Documents(documents) => documents.resolve(id),
            Self::Lines(lines) => {
                let place = *lines
                    .by_id
                    .get(id)
                    .ok_or_else(|| EvidenceError::Unknown(id.to_owned()))?;
                let line = &lines.all[place];
                Ok(Passage {
                    place,
                    span: None,
                    text: &line.text,
                    speaker: line.speaker.as_deref(),
                    time: line.start.map(|start| (start, line.end.unwrap_or(start))),
                })
            }
        }
    }
}

impl Passage<'_> {
    /// Whether two passages share a character.
    pub fn overlaps(&self, other: &Passage<'_>) -> bool {
        let spans = match (self.span, other.span) {
            (Some(one), Some(two)) => one.start < two.end && two.start < one.end,
            _ => true,
        };
        self.place == other.place && spans
    }

    /// Whether it lies within a time, where both are known.
    pub fn lies_in(&self, time: &Range<f64>) -> bool {
        self.time
            .is_none_or(|(start, end)| start <= time.end && time.start <= end)
    }

    /// The passage as a check of support reads it: a transcript's line with its speaker.
    pub fn quote(&self) -> String {
        match self.speaker {
            Some(speaker) => format!("{speaker}: {}", self.text),
            None => self.text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Source {
        let entry = |id: &str, version, text: &str, withdrawn| Document {
            id: id.to_owned(),
            version,
            text: text.to_owned(),
            withdrawn,
        };
        let all = vec![
            entry("a.txt", 1, "Old.", false),
            entry("a.txt", 2, "水が\nNew line.\r\nThird", false),
            entry("x@y:1.txt", 1, "Odd name", false),
            entry("gone.txt", 1, "Gone", true),
        ];
        Source::Documents(Documents::new(all).unwrap())
    }

    #[test]
    fn an_evidence_id_names_document_version_and_part() {
        let source = documents();
        for (id, text) in [
            ("a.txt", "水が\nNew line.\r\nThird"),
            ("a.txt@2", "水が\nNew line.\r\nThird"),
            ("a.txt@2:0:2", "水が"),
            ("a.txt:3:6", "New"),
            ("a.txt#2", "New line."),
            ("a.txt@2#1-2", "水が\nNew line."),
            ("x@y:1.txt", "Odd name"),
            ("x@y:1.txt@1:0:3", "Odd"),
        ] {
            assert_eq!(source.resolve(id).unwrap().text, text, "{id}");
        }
    }

    #[test]
    fn each_way_not_to_be_citable_has_its_own_error() {
        let source = documents();
        let error = |id: &str| source.resolve(id).unwrap_err();
        assert!(matches!(error("b.txt"), EvidenceError::Unknown(_)));
        assert!(matches!(error(""), EvidenceError::Unknown(_)));
        assert!(matches!(error("b.txt#1"), EvidenceError::Unknown(_)));
        assert!(matches!(error("a.txt@3"), EvidenceError::UnknownVersion(_)));
        assert!(matches!(
            error("a.txt@1"),
            EvidenceError::OldVersion { current: 2, .. }
        ));
        assert!(matches!(error("gone.txt#1"), EvidenceError::Withdrawn(_)));
        for id in [
            "a.txt#9",
            "a.txt#0",
            "a.txt:0:99",
            "a.txt:3:3",
            "a.txt@2#2-1",
        ] {
            assert!(matches!(error(id), EvidenceError::Outside(_)), "{id}");
        }
    }

    #[test]
    fn spans_overlap_where_they_share_a_character() {
        let source = documents();
        let at = |id: &str| source.resolve(id).unwrap();
        assert!(at("a.txt:0:4").overlaps(&at("a.txt:3:6")));
        assert!(!at("a.txt:0:3").overlaps(&at("a.txt:3:6")));
        assert!(!at("a.txt").overlaps(&at("x@y:1.txt")));
    }
}
