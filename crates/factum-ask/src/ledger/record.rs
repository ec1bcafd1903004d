//! One capability's record: what was cited when, the question under way, the latest evidence, what is declared.
//! It holds no content.

use std::collections::{BTreeMap, BTreeSet};

use factum_casefile::EvidenceId;
use serde::{Deserialize, Serialize};

use super::{Ending, LedgerError};

/// The life of a cited piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Occurrence {
    /// Questions that cited it.
    pub cited_in: BTreeSet<u64>,
    /// Those of them in which a search had found it.
    pub retrieved_in: BTreeSet<u64>,
}

/// What an answer is said to rest on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// The question.
    pub question: u64,
    /// When it was said.
    pub epoch: u64,
    /// On what; nothing where nothing supports the answer. None twice.
    pub refs: Vec<EvidenceId>,
}

/// One capability's record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Record {
    occurrences: BTreeMap<EvidenceId, Occurrence>,
    question: Option<u64>,
    in_progress: bool,
    evidence_epoch: Option<u64>,
    declaration: Option<Declaration>,
}

impl Record {
    /// The question asked last.
    pub const fn question(&self) -> Option<u64> {
        self.question
    }

    /// It is under way.
    pub const fn in_progress(&self) -> bool {
        self.in_progress
    }

    /// When evidence came last, in this question.
    pub const fn evidence_epoch(&self) -> Option<u64> {
        self.evidence_epoch
    }

    /// What is declared, current or not.
    pub const fn declaration(&self) -> Option<&Declaration> {
        self.declaration.as_ref()
    }

    /// Everything that was ever cited.
    pub fn occurrences(&self) -> impl Iterator<Item = (&EvidenceId, &Occurrence)> {
        self.occurrences.iter()
    }

    pub(super) fn may_begin(&self, question: u64) -> Result<(), LedgerError> {
        match self.question {
            Some(previous) if question <= previous => {
                Err(LedgerError::QuestionRegression { question, previous })
            }
            _ => Ok(()),
        }
    }

    /// Starts a question.
    ///
    /// # Errors
    /// It does not come after the previous one.
    pub fn begin(&mut self, question: u64) -> Result<(), LedgerError> {
        self.may_begin(question)?;
        self.question = Some(question);
        self.in_progress = true;
        self.evidence_epoch = None;
        self.declaration = None;
        Ok(())
    }

    // Equal is allowed: several tools answer one response.
    fn not_before(&self, epoch: u64) -> Result<u64, LedgerError> {
        let question = self.question.ok_or(LedgerError::NoQuestion)?;
        let declared = self.declaration.as_ref().map(|one| one.epoch);
        let least = question
            .max(self.evidence_epoch.unwrap_or(0))
            .max(declared.unwrap_or(0));
        if epoch < least {
            return Err(LedgerError::Regression { epoch, least });
        }
        Ok(question)
    }

    /// Evidence came.
    ///
    /// # Errors
    /// No question was asked, or the epoch lies before one that is recorded.
    pub fn outcome(&mut self, epoch: u64) -> Result<(), LedgerError> {
        self.not_before(epoch)?;
        self.evidence_epoch = Some(epoch);
        Ok(())
    }

    pub(super) fn may_declare(&self, epoch: u64) -> Result<(), LedgerError> {
        self.not_before(epoch).map(|_| ())
    }

    /// Declares. `retrieved` is what this question's searches found; `horizon` the highest epoch at which
    /// evidence came to any capability. Where none came since the standing declaration, the two are one.
    ///
    /// # Errors
    /// No question was asked, or the epoch lies before one that is recorded.
    pub fn declare(
        &mut self,
        refs: &[EvidenceId],
        retrieved: &BTreeSet<EvidenceId>,
        epoch: u64,
        horizon: Option<u64>,
    ) -> Result<(), LedgerError> {
        let question = self.not_before(epoch)?;
        let standing = self.declaration.take().filter(|one| {
            one.question == question && horizon.is_none_or(|horizon| horizon <= one.epoch)
        });
        let mut all = standing.map(|one| one.refs).unwrap_or_default();
        for id in refs {
            if !all.contains(id) {
                all.push(id.clone());
            }
            let occurrence = self.occurrences.entry(id.clone()).or_default();
            occurrence.cited_in.insert(question);
            if retrieved.contains(id) {
                occurrence.retrieved_in.insert(question);
            }
        }
        self.declaration = Some(Declaration {
            question,
            epoch,
            refs: all,
        });
        Ok(())
    }

    /// Ends the run: with an answer, the question is closed; else it stays under way.
    pub fn end(&mut self, ending: Ending) {
        if ending == Ending::Answered {
            self.in_progress = false;
        }
    }
}
