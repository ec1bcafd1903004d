//! The thread that owns the context: it takes requests as sequences become free, and steps all of them
//! together.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use factum_base::Digest;
use llguidance::ParserFactory;
use tokio::sync::mpsc::UnboundedSender;

use super::Memory;
use super::context::Context;
use super::decoder::{Decoder, Next};
use super::prefixes::Prefixes;
use super::vocabulary::Vocabulary;
use crate::error::ModelError;
use crate::generation::{Generation, StopReason};
use crate::generator::Control;
use crate::request::GenerationRequest;

/// What a digest over logits is a digest of.
#[derive(Debug)]
pub enum Logits {}

/// Requests of one call.
pub(super) struct Job {
    pub(super) requests: Vec<GenerationRequest>,
    pub(super) control: Control,
    /// Digest the logits of each answer.
    pub(super) traced: bool,
    pub(super) events: UnboundedSender<Event>,
}

/// What a call is told.
pub(super) enum Event {
    /// The request at this place has come to an end.
    Finished(usize, Result<Traced, ModelError>),
    /// The request at this place has one more token, with these bytes where they stay as they are.
    Token(usize, Vec<u8>),
}

/// A generation, with a digest over all logits that its tokens were chosen by.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// The generation.
    pub generation: Generation,
    /// The digest, if it was asked for.
    pub logits: Option<Digest<Logits>>,
}

/// A request that waits, or is worked on.
struct Ticket {
    job: Arc<Job>,
    request: usize,
}

/// A request that is worked on.
struct Active {
    ticket: Ticket,
    decoder: Decoder,
    started: Instant,
    prompt_tokens: usize,
    /// Where the next token goes, and which it is.
    position: usize,
    token: i32,
    seconds: f64,
    logits: Option<Digest<Logits>>,
}

/// What the thread works with.
pub(super) struct Worker<'model> {
    pub(super) context: Context<'model>,
    pub(super) vocabulary: Arc<Vocabulary>,
    pub(super) schemas: ParserFactory,
    pub(super) keep_prefixes: bool,
    pub(super) context_tokens: usize,
    pub(super) device: &'static str,
    pub(super) memory: Memory,
    pub(super) prefix_bytes: Arc<AtomicU64>,
    pub(super) sequences: usize,
}

impl Worker<'_> {
    /// Works until no one is left to ask anything.
    pub(super) fn run(mut self, jobs: &mpsc::Receiver<Job>) {
        let mut waiting = VecDeque::new();
        let mut active: Vec<Option<Active>> = (0..self.sequences).map(|_| None).collect();
        let mut prefixes = Prefixes::default();
        loop {
            let idle = waiting.is_empty() && active.iter().all(Option::is_none);
            if idle {
                match jobs.recv() {
                    Ok(job) => enqueue(job, &mut waiting),
                    Err(mpsc::RecvError) => return,
                }
            }
            while let Ok(job) = jobs.try_recv() {
                enqueue(job, &mut waiting);
            }
            drop_cancelled(&mut waiting);
            for (sequence, place) in active.iter_mut().enumerate() {
                while place.is_none()
                    && let Some(ticket) = waiting.pop_front()
                {
                    *place = self.begin(sequence, ticket, &mut prefixes);
                }
            }
            self.step(&mut active);
        }
    }

    /// Computes a request's prompt and chooses its first token.
    fn begin(
        &mut self,
        sequence: usize,
        ticket: Ticket,
        prefixes: &mut Prefixes,
    ) -> Option<Active> {
        let started = Instant::now();
        match self.prepare(sequence, &ticket, started, prefixes) {
            Ok((decoder, prompt_tokens)) => {
                let mut active = Active {
                    ticket,
                    decoder,
                    started,
                    prompt_tokens,
                    position: prompt_tokens,
                    token: 0,
                    seconds: 0.0,
                    logits: None,
                };
                let chosen = active.choose(self.context.last_logits(), &self.vocabulary);
                active.seconds = started.elapsed().as_secs_f64();
                self.settle(active, chosen)
            }
            Err(error) => {
                ticket.finish(Err(error));
                None
            }
        }
    }

    fn prepare(
        &mut self,
        sequence: usize,
        ticket: &Ticket,
        started: Instant,
        prefixes: &mut Prefixes,
    ) -> Result<(Decoder, usize), ModelError> {
        let request = ticket.request();
        let mut go_on = || ticket.check(started);
        go_on()?;
        // Other sequences wait for this too; it takes less than a token does.
        if !ticket.job.control.admits_blocking(ticket.request) {
            return Err(ModelError::Cancelled);
        }
        let prompt = self.vocabulary.prompt(&request.messages)?;
        let tokens = prompt.len();
        let room = self
            .context_tokens
            .saturating_sub(request.max_new_tokens as usize);
        let budget = room.min(request.input_budget as usize);
        if tokens > budget {
            return Err(ModelError::OverBudget {
                tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
                budget: u32::try_from(budget).unwrap_or(u32::MAX),
            });
        }
        let decoder = Decoder::new(
            &request.constraint,
            request.max_new_tokens,
            &self.vocabulary,
            &self.schemas,
        )?;
        self.context.clear(sequence)?;
        let known = if self.keep_prefixes {
            prefixes.get(&prompt.prefix)
        } else {
            None
        };
        if let Some(state) = known {
            self.context.restore(sequence, state)?;
        } else if !prompt.prefix.is_empty() {
            self.context
                .prompt(sequence, 0, &prompt.prefix, false, &mut go_on)?;
            if self.keep_prefixes {
                prefixes.insert(prompt.prefix.clone(), self.context.save(sequence)?);
                self.prefix_bytes.store(prefixes.bytes(), Ordering::Relaxed);
            }
        }
        let from = prompt.prefix.len();
        self.context
            .prompt(sequence, from, &prompt.rest, true, &mut go_on)?;
        Ok((decoder, tokens))
    }

    /// One step of all sequences.
    fn step(&mut self, active: &mut [Option<Active>]) {
        let began = Instant::now();
        for place in active.iter_mut() {
            let stopped = place.as_ref().map(|work| work.ticket.check(work.started));
            if let Some(Err(error)) = stopped
                && let Some(work) = place.take()
            {
                work.ticket.finish(Err(error));
            }
        }
        let working = active.iter().flatten().count();
        if working == 0 {
            return;
        }
        let work: Vec<_> = active
            .iter()
            .map(|place| place.as_ref().map(|work| (work.position, work.token)))
            .collect();
        if let Err(error) = self.context.step(&work) {
            for work in active.iter_mut().filter_map(Option::take) {
                work.ticket.finish(Err(error.clone()));
            }
            return;
        }
        let mut chosen = Vec::with_capacity(active.len());
        for (sequence, place) in active.iter_mut().enumerate() {
            let Some(mut work) = place.take() else {
                continue;
            };
            work.position += 1;
            let next = self
                .context
                .step_logits(sequence)
                .and_then(|logits| work.choose(logits, &self.vocabulary));
            chosen.push((sequence, work, next));
        }
        let share = began.elapsed().as_secs_f64() / f64::from(u32::try_from(working).unwrap_or(1));
        for (sequence, mut work, next) in chosen {
            work.seconds += share;
            active[sequence] = self.settle(work, next);
        }
    }

    /// Hands a finished request over, or keeps it for the next step.
    fn settle(&self, mut work: Active, next: Result<Next, ModelError>) -> Option<Active> {
        let bytes = work.decoder.last_bytes(&self.vocabulary).to_vec();
        work.ticket.tell(Event::Token(work.ticket.request, bytes));
        match next {
            Ok(Next::Feed(token)) => {
                work.token = token.cast_signed();
                Some(work)
            }
            Ok(Next::Stop(stop)) => {
                let Active {
                    ticket,
                    decoder,
                    prompt_tokens,
                    seconds,
                    logits,
                    ..
                } = work;
                let generation = self.generation(decoder, stop, prompt_tokens, seconds);
                ticket.finish(Ok(Traced { generation, logits }));
                None
            }
            Err(error) => {
                work.ticket.finish(Err(error));
                None
            }
        }
    }

    fn generation(
        &self,
        decoder: Decoder,
        stop: StopReason,
        prompt_tokens: usize,
        seconds: f64,
    ) -> Generation {
        let (tokens, text) = decoder.finish(&self.vocabulary);
        Generation {
            text,
            new_tokens: u32::try_from(tokens.len()).unwrap_or(u32::MAX),
            token_ids: Some(tokens),
            stop,
            prompt_tokens: u32::try_from(prompt_tokens).unwrap_or(u32::MAX),
            tokens_bounded: false,
            seconds,
            device: Some(self.device.to_owned()),
            memory_bytes: Some(self.memory.total() + self.prefix_bytes.load(Ordering::Relaxed)),
            system_fingerprint: None,
            retries: 0,
        }
    }
}

impl Active {
    fn choose(&mut self, logits: &[f32], vocabulary: &Vocabulary) -> Result<Next, ModelError> {
        if self.ticket.job.traced {
            let mut bytes = self
                .logits
                .map(|so_far| so_far.to_hex().into_bytes())
                .unwrap_or_default();
            bytes.extend(
                logits
                    .iter()
                    .flat_map(|logit| logit.to_bits().to_le_bytes()),
            );
            self.logits = Some(Digest::of(&bytes));
        }
        self.decoder.choose(logits, vocabulary)
    }
}

impl Ticket {
    fn request(&self) -> &GenerationRequest {
        &self.job.requests[self.request]
    }

    /// Whether it is still wanted, and in time.
    fn check(&self, started: Instant) -> Result<(), ModelError> {
        if self.job.control.cancel.is_cancelled() || self.job.events.is_closed() {
            return Err(ModelError::Cancelled);
        }
        match self.job.control.deadline {
            Some(limit) if started.elapsed() >= limit => Err(ModelError::Timeout {
                seconds: limit.as_secs(),
                attempts: 1,
            }),
            _ => Ok(()),
        }
    }

    fn finish(&self, outcome: Result<Traced, ModelError>) {
        self.tell(Event::Finished(self.request, outcome));
    }

    /// A caller who has gone need not be told.
    fn tell(&self, event: Event) {
        let _ = self.job.events.send(event);
    }
}

fn enqueue(job: Job, waiting: &mut VecDeque<Ticket>) {
    let job = Arc::new(job);
    waiting.extend((0..job.requests.len()).map(|request| Ticket {
        job: Arc::clone(&job),
        request,
    }));
}

fn drop_cancelled(waiting: &mut VecDeque<Ticket>) {
    waiting.retain(|ticket| {
        let gone = ticket.job.control.cancel.is_cancelled() || ticket.job.events.is_closed();
        if gone {
            ticket.finish(Err(ModelError::Cancelled));
        }
        !gone
    });
}
