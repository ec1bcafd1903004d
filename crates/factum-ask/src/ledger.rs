//! The grounding ledger: what each answer declares to rest on, and whether that still covers all the evidence.
//!
//! Pure. One [`Record`] for each capability is written by that capability alone; the status of a question is
//! always derived from all records and never kept. Time is told by message counts: a question's id is the
//! number of messages when it came, an epoch the number when the model request was sent.
//!
//! It knows nothing of stores, models or documents' words. `docs/grounding.md` lists the rules it keeps.

mod citation;
mod record;

use std::collections::{BTreeMap, BTreeSet};

use factum_casefile::EvidenceId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use citation::{Citation, CiteJudgement, Named, bare_id, judge};
pub use record::{Declaration, Occurrence, Record};

use crate::message::{Capability, History, Ref};

/// Whether an answer's grounding is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing current is declared.
    Missing,
    /// Something is declared to support it.
    Grounded,
    /// It is declared that nothing supports it.
    Ungrounded,
}

impl Status {
    /// The word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Grounded => "grounded",
            Self::Ungrounded => "ungrounded",
        }
    }
}

/// Why the ledger refuses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LedgerError {
    /// Nothing was asked yet.
    #[error("there is no question to declare anything for")]
    NoQuestion,
    /// A moment before one that was recorded.
    #[error("epoch {epoch} lies before {least}, which is recorded already")]
    Regression {
        /// The moment.
        epoch: u64,
        /// The least that is allowed.
        least: u64,
    },
    /// A question that would not come after the one before it.
    #[error("question {question} does not come after question {previous}")]
    QuestionRegression {
        /// The new question's id.
        question: u64,
        /// The one before it.
        previous: u64,
    },
    /// No question is under way, and yet calls wait for an answer.
    #[error("{0} tool calls wait for an answer, but no question is under way")]
    UnansweredCalls(usize),
    /// The capability has no record here.
    #[error("there is no ledger for {0:?}")]
    UnknownCapability(Capability),
}

/// How a run of a question comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// There is an answer.
    Answered,
    /// A tool's result comes later.
    Paused,
    /// Something failed.
    Failed,
}

/// Whether [`Ledger::begin`] started a question or went on with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// A new question, with its id.
    Question(u64),
    /// The question under way, with its id.
    Resumed(u64),
}

impl Begun {
    /// The question's id.
    pub const fn question(self) -> u64 {
        match self {
            Self::Question(id) | Self::Resumed(id) => id,
        }
    }
}

/// One search of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// What was looked for.
    pub query: String,
    /// What was found, in order; what the same query found later comes after.
    pub found: Vec<EvidenceId>,
}

/// All that is kept of one capability.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CapabilityState {
    /// Its record.
    pub record: Record,
    /// What was ever cited, whole.
    pub citations: BTreeMap<EvidenceId, Citation>,
    /// Only these documents are searched; all where it is empty.
    pub filter: BTreeSet<String>,
    /// This question's searches.
    pub searches: Vec<Search>,
}

impl CapabilityState {
    /// What this question's searches found.
    pub fn retrieved(&self) -> BTreeSet<&EvidenceId> {
        self.searches.iter().flat_map(|one| &one.found).collect()
    }
}

/// The ledgers of a conversation, by capability.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger {
    capabilities: BTreeMap<Capability, CapabilityState>,
}

impl Ledger {
    /// Empty ledgers for these capabilities.
    pub fn new(capabilities: impl IntoIterator<Item = Capability>) -> Self {
        Self {
            capabilities: capabilities
                .into_iter()
                .map(|name| (name, CapabilityState::default()))
                .collect(),
        }
    }

    /// The ledgers.
    pub fn capabilities(&self) -> impl Iterator<Item = (&Capability, &CapabilityState)> {
        self.capabilities.iter()
    }

    /// One of them.
    pub fn capability(&self, name: &str) -> Option<&CapabilityState> {
        self.capabilities.get(name)
    }

    /// Searches only these documents of a capability from now on; all of them where there are none.
    pub fn set_filter(
        &mut self,
        name: &str,
        documents: BTreeSet<String>,
    ) -> Result<(), LedgerError> {
        self.state(name)?.filter = documents;
        Ok(())
    }

    fn state(&mut self, name: &str) -> Result<&mut CapabilityState, LedgerError> {
        self.capabilities
            .get_mut(name)
            .ok_or_else(|| LedgerError::UnknownCapability(name.to_owned()))
    }

    /// The question asked last.
    pub fn question(&self) -> Option<u64> {
        self.records().filter_map(Record::question).max()
    }

    /// A question is under way.
    pub fn in_progress(&self) -> bool {
        self.records().any(Record::in_progress)
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        self.capabilities.values().map(|one| &one.record)
    }

    /// Starts a question, or goes on with the one under way. `history` is what came before it.
    ///
    /// # Errors
    /// Calls wait for an answer though no question is under way, or the history is shorter than it was.
    /// Nothing is changed then.
    pub fn begin(&mut self, history: &History) -> Result<Begun, LedgerError> {
        let under_way = self.records().filter(|one| one.in_progress());
        if let Some(id) = under_way.filter_map(Record::question).max() {
            for one in self.capabilities.values_mut() {
                // A capability that came to the conversation meanwhile joins in.
                if !one.record.in_progress() && one.record.may_begin(id).is_ok() {
                    one.record.begin(id)?;
                    one.searches.clear();
                }
            }
            return Ok(Begun::Resumed(id));
        }
        let unanswered = history.unanswered().len();
        if unanswered > 0 {
            return Err(LedgerError::UnansweredCalls(unanswered));
        }
        let id = history.clock();
        for record in self.records() {
            record.may_begin(id)?;
        }
        for one in self.capabilities.values_mut() {
            one.record.begin(id)?;
            one.searches.clear();
        }
        Ok(Begun::Question(id))
    }

    /// A search of a capability ran. The same query again adds to what it found before.
    ///
    /// # Errors
    /// The epoch lies before one that is recorded.
    pub fn searched(
        &mut self,
        capability: &str,
        query: &str,
        found: &[EvidenceId],
        epoch: u64,
    ) -> Result<(), LedgerError> {
        let state = self.state(capability)?;
        state.record.outcome(epoch)?;
        let place = state.searches.iter().position(|one| one.query == query);
        let place = place.unwrap_or_else(|| {
            state.searches.push(Search {
                query: query.to_owned(),
                found: Vec::new(),
            });
            state.searches.len() - 1
        });
        let known = &mut state.searches[place].found;
        for id in found {
            if !known.contains(id) {
                known.push(id.clone());
            }
        }
        Ok(())
    }

    /// Evidence came other than by a search.
    ///
    /// # Errors
    /// The epoch lies before one that is recorded.
    pub fn outcome(&mut self, capability: &str, epoch: u64) -> Result<(), LedgerError> {
        self.state(capability)?.record.outcome(epoch)
    }

    /// Declares what this question's answer rests on. Where `refs` is empty, that nothing supports it: said for
    /// every capability. The citations are kept whole; what was cited before keeps its first citation.
    ///
    /// # Errors
    /// No question was asked, a capability is unknown, or the epoch lies before one that is recorded. Nothing is
    /// changed then.
    pub fn declare(
        &mut self,
        citations: Vec<(Ref, Citation)>,
        epoch: u64,
    ) -> Result<(), LedgerError> {
        let horizon = self.horizon();
        let mut by: BTreeMap<Capability, Vec<(EvidenceId, Citation)>> = BTreeMap::new();
        for (one, citation) in citations {
            by.entry(one.capability)
                .or_default()
                .push((one.evidence, citation));
        }
        if by.is_empty() {
            by = self
                .capabilities
                .keys()
                .map(|name| (name.clone(), Vec::new()))
                .collect();
        }
        for name in by.keys() {
            self.state(name)?.record.may_declare(epoch)?;
        }
        for (name, cited) in by {
            let mut next = self.next_display();
            let state = self.state(&name)?;
            let ids: Vec<EvidenceId> = cited.iter().map(|(id, _)| id.clone()).collect();
            let retrieved = state.retrieved().into_iter().cloned().collect();
            state.record.declare(&ids, &retrieved, epoch, horizon)?;
            for (id, mut citation) in cited {
                state.citations.entry(id).or_insert_with(|| {
                    citation.display = next;
                    next += 1;
                    citation
                });
            }
        }
        Ok(())
    }

    // One count for all capabilities, so that a number on screen means one thing.
    fn next_display(&self) -> u32 {
        let all = self
            .capabilities
            .values()
            .flat_map(|one| one.citations.values());
        all.map(|one| one.display).max().unwrap_or(0) + 1
    }

    /// Ends the run of a question.
    pub fn end(&mut self, ending: Ending) {
        for one in self.capabilities.values_mut() {
            one.record.end(ending);
        }
    }

    /// The highest epoch at which evidence came, over all records.
    pub fn horizon(&self) -> Option<u64> {
        self.records().filter_map(Record::evidence_epoch).max()
    }

    fn current(&self) -> impl Iterator<Item = (&Capability, &Declaration)> {
        let (question, horizon) = (self.question(), self.horizon());
        self.capabilities.iter().filter_map(move |(name, one)| {
            let declared = one.record.declaration()?;
            let current = Some(declared.question) == question && Some(declared.epoch) > horizon;
            current.then_some((name, declared))
        })
    }

    /// Whether the last question's answer is declared to rest on something.
    pub fn status(&self) -> Status {
        let mut status = Status::Missing;
        for (_, declared) in self.current() {
            if declared.refs.is_empty() && status == Status::Missing {
                status = Status::Ungrounded;
            } else if !declared.refs.is_empty() {
                status = Status::Grounded;
            }
        }
        status
    }

    /// What the last question's answer is declared to rest on.
    pub fn declared(&self) -> Vec<Ref> {
        self.current()
            .flat_map(|(name, declared)| {
                declared
                    .refs
                    .iter()
                    .map(|id| Ref::new(name.clone(), id.clone()))
            })
            .collect()
    }

    /// Something was ever cited.
    pub fn has_citations(&self) -> bool {
        self.records()
            .any(|record| record.occurrences().next().is_some())
    }

    /// The kept citation of a ref.
    pub fn citation(&self, of: &Ref) -> Option<&Citation> {
        self.capability(&of.capability)?.citations.get(&of.evidence)
    }
}
