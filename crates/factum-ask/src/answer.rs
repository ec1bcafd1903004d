//! An answer as it is shown: its sentences with what each cites and the product's support verdict.
//!
//! Pure. Ids in square brackets become the numbers of their citations; what a model put into brackets that is no
//! citation stays as it is.

use std::collections::BTreeSet;
use std::ops::Range;

use factum_casefile::support::{Method, SUPPORT_VERSION, Support, Verdict, check_support};
use factum_casefile::terms::each_term;
use factum_casefile::{EvidenceId, Profile};
use factum_engine::extract::sentence_bounds;
use factum_model::Embedder;
use factum_store::EmbedderDigest;
use serde::Serialize;

use crate::ledger::{Citation, Ledger, Status, bare_id};
use crate::message::{Ref, WhyIgnored};

/// A sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// Its words, without the ids.
    pub text: String,
    /// Numbers of the citations it rests on.
    pub refs: Vec<u32>,
    /// Whether their quotes support it.
    pub support: Support,
}

/// A citation of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cited {
    /// Its number; the same one everywhere in the conversation.
    pub display: u32,
    /// The case file.
    pub case_id: String,
    /// Which characters of which version.
    pub evidence_id: EvidenceId,
    /// The document.
    pub doc_id: String,
    /// The version.
    pub version: u32,
    /// What the document is called.
    pub title: String,
    /// Where in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The characters; none where they may no longer be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// Why it can't be relied on now; none where it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<WhyIgnored>,
}

/// What a search of an answer came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Searched {
    /// The case file.
    pub case_id: String,
    /// What was looked for.
    pub query: String,
    /// What was found.
    pub found: Vec<EvidenceId>,
}

/// What an answer cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, serde::Deserialize)]
pub struct Counts {
    /// Requests to the model.
    pub requests: u32,
    /// Tokens of all requests.
    pub prompt_tokens: u64,
    /// Tokens of all responses.
    pub new_tokens: u64,
    /// Some of these are upper bounds.
    pub tokens_bounded: bool,
    /// Searches.
    pub searches: u32,
    /// Calls of `read`.
    pub reads: u32,
    /// Calls of `cite`.
    pub cites: u32,
    /// Calls that could not be used.
    pub refused_calls: u32,
    /// Notices of the citation policy; at most one.
    pub notices: u32,
    /// Attempts that gave no whole response.
    pub retries: u32,
}

/// What found passages by their meaning, beside their words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct EmbeddingsUsed {
    /// Its name.
    pub name: String,
    /// SHA-256 of its identity: of all that can change a vector.
    pub identity_sha256: String,
    /// Vectors that had to be made for this question.
    pub made: u64,
}

impl EmbeddingsUsed {
    pub(crate) fn of(
        name: &str,
        embedder: &dyn Embedder,
        made: u64,
    ) -> Result<Self, serde_json::Error> {
        let identity = embedder.identity().canonical()?;
        Ok(Self {
            name: name.to_owned(),
            identity_sha256: EmbedderDigest::of(identity.as_bytes()).to_hex(),
            made,
        })
    }
}

/// An answer, whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The conversation.
    pub conversation_id: String,
    /// Number of the question: how many messages came before it.
    pub question_id: u64,
    /// The question.
    pub question: String,
    /// The answer, with numbers for its citations.
    pub text: String,
    /// Sentence by sentence.
    pub sentences: Vec<Sentence>,
    /// What it is declared to rest on.
    pub refs: Vec<Cited>,
    /// Whether that is declared.
    pub status: Status,
    /// Questions of this conversation that ended without a declaration, though asked for one.
    pub violations: Vec<u64>,
    /// Everything that this question's searches found.
    pub retrieved: Vec<EvidenceId>,
    /// The searches.
    pub searches: Vec<Searched>,
    /// What it cost.
    pub counts: Counts,
    /// Wall time.
    pub seconds: f64,
    /// What answered.
    pub generator: String,
    /// What found passages by their meaning; none where only words were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<EmbeddingsUsed>,
}

/// Text with the places of the citations that stood in it.
struct Marked {
    text: String,
    /// Where, in bytes of the text, and the number.
    marks: Vec<(usize, u32)>,
}

fn marked(raw: &str, number_of: &dyn Fn(&str) -> Option<u32>) -> Marked {
    let mut out = Marked {
        text: String::with_capacity(raw.len()),
        marks: Vec::new(),
    };
    let mut rest = raw;
    while let Some(open) = rest.find('[') {
        let inside = &rest[open + 1..];
        let found = inside
            .find(']')
            .and_then(|close| Some((close, numbers(&inside[..close], number_of)?)));
        let Some((close, numbers)) = found else {
            out.text.push_str(&rest[..=open]);
            rest = inside;
            continue;
        };
        // The space before a mark goes with it.
        out.text.push_str(&rest[..open]);
        let trimmed = out.text.trim_end_matches(' ').len();
        out.text.truncate(trimmed);
        out.marks
            .extend(numbers.into_iter().map(|number| (trimmed, number)));
        rest = &inside[close + 1..];
    }
    out.text.push_str(rest);
    out
}

/// The citations of one bracket, if it holds nothing else.
fn numbers(inside: &str, number_of: &dyn Fn(&str) -> Option<u32>) -> Option<Vec<u32>> {
    if let Some(number) = number_of(inside) {
        return Some(vec![number]);
    }
    let parts = inside
        .split([',', ';'])
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let numbers: Option<Vec<u32>> = parts.map(number_of).collect();
    numbers.filter(|numbers| !numbers.is_empty())
}

/// A text and its sentences, given what it is declared to rest on.
pub fn read_answer(raw: &str, declared: &[Ref], ledger: &Ledger) -> (String, Vec<Sentence>) {
    let citations: Vec<(&Ref, &Citation)> = declared
        .iter()
        .filter_map(|one| Some((one, ledger.citation(one)?)))
        .collect();
    let number_of = |raw: &str| {
        let id = bare_id(raw);
        let names = |one: &Ref| {
            let plain = one.evidence.to_string();
            plain == id || format!("{}/{plain}", one.capability) == id
        };
        let found = citations.iter().find(|(one, _)| names(one));
        found.map(|(_, citation)| citation.display)
    };
    let marked = marked(raw.trim(), &number_of);
    let mut shown = String::new();
    let mut sentences = Vec::new();
    let mut from = 0;
    for at in sentence_ranges(&marked.text) {
        let mut refs: Vec<u32> = Vec::new();
        for (place, number) in &marked.marks {
            if (at.start < *place && *place <= at.end || *place == 0 && at.start == 0)
                && !refs.contains(number)
            {
                refs.push(*number);
            }
        }
        let text = marked.text[at.clone()].trim();
        if refs.is_empty() {
            refs = nearest(text, &citations);
        }
        shown.push_str(&marked.text[from..at.end]);
        for number in &refs {
            let space = if shown.ends_with(']') { "" } else { " " };
            shown.push_str(&format!("{space}[{number}]"));
        }
        from = at.end;
        sentences.push(Sentence {
            text: text.to_owned(),
            support: support(text, &refs, &citations),
            refs,
        });
    }
    shown.push_str(&marked.text[from..]);
    (shown, sentences)
}

// Without the white space behind each.
fn sentence_ranges(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    for bounds in sentence_bounds(text) {
        let start = bounds.start;
        let piece = &text[bounds];
        let solid = piece.trim_end();
        let lead = solid.len() - solid.trim_start().len();
        if !solid.trim().is_empty() {
            out.push(start + lead..start + solid.len());
        }
    }
    out
}

/// For a sentence that names no passage: of those that the answer rests on, the one that it shares most words with.
fn nearest(text: &str, citations: &[(&Ref, &Citation)]) -> Vec<u32> {
    let terms = |text: &str| {
        let mut all = BTreeSet::new();
        each_term(text, |term| {
            all.insert(term.to_owned());
        });
        all
    };
    let own: BTreeSet<String> = factum_casefile::terms::question_terms(text)
        .into_iter()
        .collect();
    let shared = |citation: &Citation| terms(&citation.quote).intersection(&own).count();
    let best = citations
        .iter()
        .map(|(_, citation)| (shared(citation), citation.display))
        .filter(|(shared, _)| *shared * 3 >= own.len().max(1))
        .max_by_key(|(shared, display)| (*shared, std::cmp::Reverse(*display)));
    best.map(|(_, display)| display).into_iter().collect()
}

fn support(text: &str, refs: &[u32], citations: &[(&Ref, &Citation)]) -> Support {
    let quotes: Vec<String> = citations
        .iter()
        .filter(|(_, citation)| refs.contains(&citation.display))
        .map(|(_, citation)| {
            citation
                .quote
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    let unchecked = |detail: &str| Support {
        verdict: Verdict::Unchecked,
        method: Method::None,
        version: SUPPORT_VERSION,
        detail: detail.to_owned(),
    };
    let Ok(profile) = Profile::built_in("narrative") else {
        return unchecked("there is no profile to check by");
    };
    if quotes.is_empty() {
        return unchecked("it cites nothing");
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let fields = [("statement".to_owned(), text)].into();
    let quotes: Vec<&str> = quotes.iter().map(String::as_str).collect();
    check_support(&profile, &fields, &quotes)
}
