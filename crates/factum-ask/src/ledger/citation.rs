//! Citations, and what becomes of the ids that a model writes.

use factum_base::{DocumentId, TextDigest};
use factum_casefile::{Evidence, EvidenceId};
use serde::{Deserialize, Serialize};

use crate::message::{Ignored, Ref, WhyIgnored};

/// A citation, whole: it can be shown when its document has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// Its number on screen, from 1; the first one stays.
    pub display: u32,
    /// The document.
    pub doc_id: DocumentId,
    /// Its version.
    pub version: u32,
    /// What the document is called on screen.
    pub title: String,
    /// Where in the document, in its own terms; pages, lines, cells.
    pub place: Option<String>,
    /// Exactly the cited characters.
    pub quote: String,
    /// Digest of the whole text.
    pub text_sha256: TextDigest,
}

impl Citation {
    /// A citation of evidence. It gets its number when it is registered.
    pub fn of(evidence: &Evidence, place: Option<String>) -> Self {
        Self {
            display: 0,
            doc_id: evidence.doc_id.clone(),
            version: evidence.version,
            title: evidence.doc_id.to_string(),
            place,
            quote: evidence.quote.clone(),
            text_sha256: evidence.text_sha256,
        }
    }

    /// As evidence again.
    pub fn evidence(&self, id: &EvidenceId) -> Evidence {
        Evidence::cite(
            &self.doc_id,
            self.version,
            self.text_sha256,
            id.span,
            &self.quote,
        )
    }
}

/// An id without the white space, brackets and quotation marks that models put around it.
pub fn bare_id(raw: &str) -> &str {
    let mut id = raw.trim();
    for (open, close) in [('[', ']'), ('(', ')'), ('<', '>'), ('`', '`'), ('"', '"')] {
        if let Some(inner) = id
            .strip_prefix(open)
            .and_then(|rest| rest.strip_suffix(close))
        {
            id = inner.trim();
        }
    }
    id
}

/// What an id was found to name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// Evidence that may be cited now.
    Evidence(Ref, Citation),
    /// Nothing that may be.
    Not(WhyIgnored),
}

/// What a call of `cite` comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CiteJudgement {
    /// This is declared; the ids that were left out are named, and no other call is asked for.
    Declare(Vec<(Ref, Citation)>, Vec<Ignored>),
    /// None of the ids names anything: the model may try again, and nothing is declared.
    Retry(Vec<Ignored>),
}

/// Judges the ids of one call. None at all is a declaration: nothing supports the answer.
pub fn judge(looked_up: Vec<(String, Named)>) -> CiteJudgement {
    let mut found: Vec<(Ref, Citation)> = Vec::new();
    let mut ignored = Vec::new();
    let none_given = looked_up.is_empty();
    for (id, named) in looked_up {
        match named {
            Named::Evidence(one, citation) => {
                if !found.iter().any(|(known, _)| *known == one) {
                    found.push((one, citation));
                }
            }
            Named::Not(why) => ignored.push(Ignored { id, why }),
        }
    }
    if found.is_empty() && !none_given {
        CiteJudgement::Retry(ignored)
    } else {
        CiteJudgement::Declare(found, ignored)
    }
}
