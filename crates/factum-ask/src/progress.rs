//! What one run has come to so far, with what an earlier process did of the same question. Pure but for the clock.

use std::time::{Duration, Instant};

use crate::answer::{Counts, Searched};
use crate::budget::Spent;
use crate::conversation::SoFar;

/// What one run has come to so far.
pub(crate) struct Progress {
    pub(crate) question: u64,
    pub(crate) spent: Spent,
    pub(crate) counts: Counts,
    started: Instant,
    /// Seconds of earlier processes.
    before: f64,
    /// The last message with words in it.
    pub(crate) said: Option<u64>,
    pub(crate) searches: Vec<Searched>,
    /// Vectors that were made.
    pub(crate) vectors: u64,
    /// The time that this took. It is not the question's: a case file's vectors are made once.
    pub(crate) preparing: Duration,
}

impl Progress {
    pub(crate) fn new(question: u64, said: Option<u64>, so_far: SoFar) -> Self {
        Self {
            question,
            spent: Spent::default(),
            counts: so_far.counts,
            started: Instant::now(),
            before: so_far.seconds,
            said,
            searches: so_far.searches,
            vectors: so_far.vectors,
            preparing: Duration::ZERO,
        }
    }

    /// The time that counts against the limit.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.preparing)
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }

    pub(crate) fn so_far(&self) -> SoFar {
        SoFar {
            searches: self.searches.clone(),
            counts: self.counts,
            vectors: self.vectors,
            seconds: self.seconds(),
        }
    }
}
