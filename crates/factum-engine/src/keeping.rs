//! Keeping answers while a model makes more, and looking out meanwhile: for people who watch, for someone who wants
//! it to stop, and for documents that are hidden.
//!
//! A request is begun only where the state of the store, read at that moment, hides none of the plan's
//! documents; those under way are cancelled soon after.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use factum_casefile::profile::ModelSettings;
use factum_casefile::{NodeResult, NodeStatus};
use factum_model::{Control, Generation, GenerationSink, Knocks, ModelError, RecordedGeneration};
use factum_store::StoredGeneration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::MissedTickBehavior;

use crate::asking::{Progress, Question};
use crate::build::{Job, Run, Watcher};
use crate::error::EngineError;
use crate::transformation::Model;

/// How often a build looks whether it should stop.
const LOOK: Duration = Duration::from_millis(50);
/// How often it looks whether documents were hidden, while requests are under way.
const LOOK_AT_RIGHTS: Duration = Duration::from_millis(250);

/// How asking ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Each question has come to its end.
    Through,
    /// Documents were hidden meanwhile. What was finished by then is kept.
    Overtaken,
}

/// Hands answers from the model's side to the store's.
pub(crate) struct Sink {
    pub(crate) finished: UnboundedSender<(usize, Result<Generation, ModelError>)>,
    pub(crate) tokens: Arc<AtomicU64>,
}

impl GenerationSink for Sink {
    fn finished(&self, request: usize, outcome: Result<Generation, ModelError>) {
        // Nobody listens any more only where the build has failed already.
        let _ = self.finished.send((request, outcome));
    }

    fn tokens(&self, new: u64) {
        self.tokens.fetch_add(new, Ordering::Relaxed);
    }
}

/// The side that keeps answers while the model makes more.
pub(crate) struct Keeping<'a> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) model: &'a Model,
    pub(crate) run: &'a Run,
    pub(crate) settings: &'a ModelSettings,
    pub(crate) questions: &'a [(Question, [u8; 32])],
    /// For each request, the questions that it answers.
    pub(crate) asked: &'a [Vec<usize>],
    pub(crate) tokens: &'a AtomicU64,
    pub(crate) control: &'a Control,
    pub(crate) watcher: &'a dyn Watcher,
    pub(crate) all: u64,
}

/// What comes from the model's side.
pub(crate) struct Incoming {
    pub(crate) answers: UnboundedReceiver<(usize, Result<Generation, ModelError>)>,
    pub(crate) knocks: Knocks,
}

impl Keeping<'_> {
    /// Keeps answers until the model's side is done.
    pub(crate) async fn all(
        &self,
        mut incoming: Incoming,
        progress: &mut Progress,
    ) -> Result<Asked, EngineError> {
        let mut look = tokio::time::interval(LOOK);
        let mut rights = tokio::time::interval(LOOK_AT_RIGHTS);
        rights.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut outcome = Ok(Asked::Through);
        loop {
            tokio::select! {
                answer = incoming.answers.recv() => {
                    let Some((request, answer)) = answer else { break };
                    // After a failure of the store the rest is only waited for.
                    if outcome.is_ok()
                        && let Err(error) = self.one(request, answer, progress).await
                    {
                        self.give_up(&mut outcome, Err(error));
                    }
                }
                Some(knock) = incoming.knocks.recv() => {
                    self.look_at_rights(&mut outcome, progress).await;
                    knock.answer(!self.control.cancel.is_cancelled());
                }
                _ = rights.tick() => self.look_at_rights(&mut outcome, progress).await,
                _ = look.tick() => {
                    self.watcher.tokens(self.tokens.swap(0, Ordering::Relaxed));
                    if self.watcher.stop() {
                        self.control.cancel.cancel();
                    }
                }
            }
        }
        self.watcher.tokens(self.tokens.swap(0, Ordering::Relaxed));
        match outcome? {
            Asked::Through if self.control.cancel.is_cancelled() => Err(EngineError::Interrupted),
            asked => Ok(asked),
        }
    }

    /// Gives up where documents were hidden.
    async fn look_at_rights(
        &self,
        outcome: &mut Result<Asked, EngineError>,
        progress: &mut Progress,
    ) {
        if self.control.cancel.is_cancelled() {
            return;
        }
        match self.is_overtaken(progress).await {
            Ok(false) => {}
            Ok(true) => self.give_up(outcome, Ok(Asked::Overtaken)),
            Err(error) => self.give_up(outcome, Err(error)),
        }
    }

    async fn is_overtaken(&self, progress: &mut Progress) -> Result<bool, EngineError> {
        let mut tx = self.job.workspace.repository.read().await?;
        let overtaken = self.job.is_overtaken(&mut tx, &mut progress.seen).await?;
        tx.close().await?;
        Ok(overtaken)
    }

    fn give_up(
        &self,
        outcome: &mut Result<Asked, EngineError>,
        because: Result<Asked, EngineError>,
    ) {
        *outcome = because;
        self.control.cancel.cancel();
    }

    async fn one(
        &self,
        request: usize,
        answer: Result<Generation, ModelError>,
        progress: &mut Progress,
    ) -> Result<(), EngineError> {
        let places = self.asked.get(request).map_or(&[][..], Vec::as_slice);
        let answer = match answer {
            Ok(answer) => answer,
            Err(ModelError::Cancelled) if self.control.cancel.is_cancelled() => return Ok(()),
            Err(refused @ ModelError::OverBudget { .. }) => {
                return self.refused(places, &refused, progress).await;
            }
            Err(error) => {
                let lost = places.iter().map(|&place| self.questions[place].0.key);
                progress.lost.extend(lost);
                progress.work.model_calls += 1;
                progress.first_error.get_or_insert(error);
                return Ok(());
            }
        };
        progress.work.model_calls += 1;
        progress.work.generations_reused += places.len().saturating_sub(1) as u64;
        progress.work.new_tokens += u64::from(answer.new_tokens);
        let mut made = Vec::with_capacity(places.len());
        let mut record = None;
        for &place in places {
            let (question, digest) = &self.questions[place];
            let result = self.job.read(self.settings, question, &answer, *digest);
            made.push((question.key, Arc::new(result)));
            record.get_or_insert_with(|| (question.request.clone(), *digest));
        }
        let Some((request, input)) = record else {
            return Ok(());
        };
        let record = RecordedGeneration::new(&self.model.identity, request, answer);
        let generation = StoredGeneration {
            input,
            run_no: self.run.number,
            body: serde_json::to_string(&record)?,
        };
        let mut tx = self.job.workspace.repository.write().await?;
        tx.put_generation(self.run.scope.unwrap_or(0), &generation)
            .await?;
        self.job
            .keep_results(&mut tx, &made, self.run, progress)
            .await?;
        tx.commit().await?;
        self.watcher.progress(progress.done, self.all);
        Ok(())
    }

    /// Input that is too long was not sent: the node is INVALID, and that is how it stays.
    async fn refused(
        &self,
        places: &[usize],
        why: &ModelError,
        progress: &mut Progress,
    ) -> Result<(), EngineError> {
        let mut result = NodeResult::empty(NodeStatus::Invalid);
        result.diagnostic = Some(why.to_string());
        let result = Arc::new(result);
        let made: Vec<_> = places
            .iter()
            .map(|&place| (self.questions[place].0.key, Arc::clone(&result)))
            .collect();
        let mut tx = self.job.workspace.repository.write().await?;
        self.job
            .keep_results(&mut tx, &made, self.run, progress)
            .await?;
        Ok(tx.commit().await?)
    }
}
