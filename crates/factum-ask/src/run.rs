//! One question from its words to its answer: requests, tool calls, the policy, the record after each step.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use factum_base::DocumentId;
use factum_casefile::{Evidence, EvidenceId};
use factum_engine::EngineError;
use factum_engine::retrieve::{Hit, SearchIn};
use factum_engine::searching::{ByMeaning, Order};
use factum_model::chat::{ChatModel, ChatReply, ChatRequest, ChatSink, Wanted};
use factum_model::{Control, Embedder};

use crate::access::Access;
use crate::answer::{Answer, Counts, EmbeddingsUsed, Searched};
use crate::budget::{Limits, Offer};
use crate::compaction::{needed, shape, written_id};
use crate::conversation::{Answered, Conversation};
use crate::error::AskError;
use crate::extractive;
use crate::ledger::{CiteJudgement, Ending, Status, judge};
use crate::message::{Message, Outcome, Part, Ref, Response, ToolCall, ToolReturn};
use crate::policy::{Step, ToolNames, View};
use crate::progress::Progress;
use crate::tools::{CITE, Call, READ, SEARCH, read_call, specs};
use crate::wire::{own_ids, wire};

/// Passages that one search shows.
pub const SHOWN: usize = 8;
/// Passages before and after one that `read` shows.
const AROUND: usize = 2;
/// How often rights are looked at while a model writes.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Calls of one response that are carried out.
const MOST_CALLS: usize = 8;
const TOOLS: ToolNames<'_> = ToolNames {
    output: &[],
    cite: CITE,
};

/// What answers.
#[derive(Debug, Clone)]
pub enum Answerer {
    /// Quotes, without a model.
    Extractive,
    /// A model.
    Model {
        /// Its name on screen.
        name: String,
        /// Itself.
        model: Arc<dyn ChatModel>,
    },
}

impl Answerer {
    /// The name on screen.
    pub fn name(&self) -> &str {
        match self {
            Self::Extractive => "extractive",
            Self::Model { name, .. } => name,
        }
    }
}

/// How a question is answered.
pub struct Asking<'a> {
    /// By what.
    pub answerer: &'a Answerer,
    /// At what cost at most.
    pub limits: Limits,
    /// How it may be stopped.
    pub control: &'a Control,
    /// Who watches.
    pub sink: &'a dyn ChatSink,
    /// What finds passages by their meaning too; by their words alone where there is none.
    pub embeddings: Option<Embeddings<'a>>,
}

/// How passages are found by their meaning.
#[derive(Clone, Copy)]
pub struct Embeddings<'a> {
    /// Its name on screen.
    pub name: &'a str,
    /// What makes vectors.
    pub embedder: &'a dyn Embedder,
    /// Told how many passages have their vectors, and of how many, while vectors are made.
    pub watch: &'a (dyn Fn(u64, u64) + Sync),
}

impl Conversation {
    /// Asks a question.
    ///
    /// # Errors
    /// There is no answer. The conversation is then as before, unless it was interrupted.
    pub async fn ask(&mut self, question: &str, asking: &Asking<'_>) -> Result<Answer, AskError> {
        let question = question.trim();
        if question.is_empty() {
            return Err(AskError::Empty);
        }
        if self.kept.ledger.in_progress() {
            return Err(AskError::Pending(self.id().to_owned()));
        }
        self.workspace
            .check_may_see(&self.principal, &self.kept.cases)
            .await?;
        let _held = self.workspace.hold_conversation(self.id())?;
        let id = self.start(question, asking.answerer.name()).await?;
        self.finish(id, asking).await
    }

    /// Goes on with the question that was not finished.
    ///
    /// # Errors
    /// There is none, or no answer.
    pub async fn resume(&mut self, asking: &Asking<'_>) -> Result<Answer, AskError> {
        if !self.kept.ledger.in_progress() {
            return Err(AskError::Settled(self.id().to_owned()));
        }
        let _held = self.workspace.hold_conversation(self.id())?;
        let begun = self.kept.ledger.begin(&self.history)?;
        self.finish(begun.question(), asking).await
    }

    async fn finish(&mut self, question: u64, asking: &Asking<'_>) -> Result<Answer, AskError> {
        let so_far = self.kept.so_far.clone().unwrap_or_default();
        let said = self.said_since(question);
        let mut progress = Progress::new(question, said, so_far);
        let outcome = match asking.answerer {
            Answerer::Extractive => self.quote(asking, &mut progress).await,
            Answerer::Model { model, .. } => {
                let model = Arc::clone(model);
                self.converse(&*model, asking, &mut progress).await
            }
        };
        match outcome {
            Ok(()) => self.conclude(progress, asking).await,
            Err(AskError::Interrupted) => Err(AskError::Interrupted),
            Err(error) => {
                // The error that came first says more than one that comes of going back.
                let _ = self.roll_back().await;
                Err(error)
            }
        }
    }

    fn said_since(&self, question: u64) -> Option<u64> {
        let messages = (question..).zip(self.history.since(question));
        messages
            .filter(|(_, message)| matches!(message, Message::Response(one) if !one.text.trim().is_empty()))
            .map(|(at, _)| at)
            .last()
    }

    pub(crate) fn access(&self) -> Access<'_> {
        Access {
            workspace: &self.workspace,
            principal: &self.principal,
        }
    }

    async fn converse(
        &mut self,
        model: &dyn ChatModel,
        asking: &Asking<'_>,
        progress: &mut Progress,
    ) -> Result<(), AskError> {
        // A run that was killed between a response and its record of calls has none pending: both are one step.
        loop {
            let offer = progress.spent.offer(&asking.limits, progress.elapsed());
            if offer == Offer::Nothing {
                return Ok(());
            }
            let epoch = self.history.clock();
            let (reply, sources) = self.request(model, asking, offer, progress).await?;
            let response = Response {
                text: reply.text,
                calls: own_ids(reply.calls, epoch),
                sources,
            };
            self.history.push(Message::Response(response.clone()));
            if !response.text.trim().is_empty() {
                progress.said = Some(epoch);
            }
            match self.judge_response(&response, asking, progress) {
                Step::Pass | Step::Violation => return Ok(()),
                Step::Ask(question) => {
                    progress.counts.notices += 1;
                    self.history
                        .push(Message::Request(vec![Part::Notice { question }]));
                }
                Step::Continue => {
                    self.carry_out(&response, epoch, offer, asking, progress)
                        .await?;
                    if is_answer_with_citation(&response)
                        && self.kept.ledger.status() != Status::Missing
                    {
                        return Ok(());
                    }
                }
            }
            self.save_step(progress).await?;
        }
    }

    async fn save_step(&mut self, progress: &Progress) -> Result<(), AskError> {
        self.kept.so_far = Some(progress.so_far());
        self.save().await
    }

    fn judge_response(
        &mut self,
        response: &Response,
        asking: &Asking<'_>,
        progress: &Progress,
    ) -> Step {
        let next = progress.spent.offer(&asking.limits, progress.elapsed());
        let view = View {
            history: &self.history,
            ledger: &self.kept.ledger,
            can_cite: next != Offer::Nothing,
        };
        self.kept.policy.after_response(response, &view, &TOOLS)
    }

    /// One request, shaped from what may be shown at this moment, and its reply.
    async fn request(
        &self,
        model: &dyn ChatModel,
        asking: &Asking<'_>,
        offer: Offer,
        progress: &mut Progress,
    ) -> Result<(ChatReply, BTreeSet<crate::message::Source>), AskError> {
        let (ledger, form) = (&self.kept.ledger, self.form());
        let live = self
            .access()
            .live(&needed(&self.history, ledger, form))
            .await?;
        let request = shape(&self.history, ledger, &live, form)?;
        let citable = live
            .passages
            .keys()
            .map(|one| written_id(one, form))
            .collect();
        let chat = ChatRequest {
            messages: wire(&request),
            tools: specs(offer == Offer::CiteOnly),
            wanted: if self.history.ends_in_notice() {
                Wanted::Call(CITE)
            } else {
                Wanted::Anything
            },
            citable,
            input_budget: asking.limits.input_tokens,
            max_new_tokens: asking.limits.new_tokens,
        };
        let left = asking.limits.time.saturating_sub(progress.elapsed());
        let control = Control {
            gate: asking.control.gate.clone(),
            cancel: asking.control.cancel.clone(),
            deadline: Some(
                asking
                    .control
                    .deadline
                    .unwrap_or(left)
                    .min(left)
                    .max(Duration::from_millis(1)),
            ),
        };
        let reply = tokio::select! {
            reply = model.respond(&chat, &control, asking.sink) => reply?,
            () = self.hidden(&request.sources) => {
                asking.sink.restart();
                return Err(AskError::Hidden);
            }
        };
        let tokens = u64::from(reply.prompt_tokens) + u64::from(reply.new_tokens);
        progress.spent.add(tokens, offer);
        let counts = &mut progress.counts;
        counts.requests += 1;
        counts.prompt_tokens += u64::from(reply.prompt_tokens);
        counts.new_tokens += u64::from(reply.new_tokens);
        counts.tokens_bounded |= reply.tokens_bounded;
        counts.retries += reply.retries;
        if reply.length {
            return Err(AskError::Cut(asking.limits.new_tokens));
        }
        Ok((reply, request.sources))
    }

    /// Waits until one of these versions may no longer be shown: what is written in sight of it is not to go on.
    async fn hidden(&self, sources: &BTreeSet<crate::message::Source>) {
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            // A store that can't be read now is found out by the next step.
            if let Ok(false) = self.access().all_visible(sources).await {
                return;
            }
        }
    }

    /// Carries out a response's calls and adds what they returned as one message.
    async fn carry_out(
        &mut self,
        response: &Response,
        epoch: u64,
        offer: Offer,
        asking: &Asking<'_>,
        progress: &mut Progress,
    ) -> Result<(), AskError> {
        let mut parts = Vec::with_capacity(response.calls.len());
        for (number, call) in response.calls.iter().enumerate() {
            let only_cite = offer == Offer::CiteOnly && (call.tool == SEARCH || call.tool == READ);
            let outcome = if number >= MOST_CALLS || only_cite {
                Outcome::Exhausted
            } else {
                match read_call(&call.tool, &call.arguments) {
                    Ok(call) => self.call(call, epoch, asking, progress).await?,
                    Err(reason) => Outcome::Refused { reason },
                }
            };
            if matches!(outcome, Outcome::Refused { .. }) {
                progress.counts.refused_calls += 1;
            }
            parts.push(Part::Return(ToolReturn {
                call_id: call.id.clone(),
                tool: call.tool.clone(),
                outcome,
            }));
        }
        self.history.push(Message::Request(parts));
        Ok(())
    }

    async fn call(
        &mut self,
        call: Call,
        epoch: u64,
        asking: &Asking<'_>,
        progress: &mut Progress,
    ) -> Result<Outcome, AskError> {
        match call {
            Call::Search { query } => {
                let hits = self.search(&query, epoch, asking, progress).await?;
                let refs = hits.iter().map(hit_ref).collect();
                Ok(Outcome::Found { refs })
            }
            Call::Read { evidence_id } => {
                progress.counts.reads += 1;
                self.read(&evidence_id, epoch).await
            }
            Call::Cite { evidence_ids } => {
                progress.counts.cites += 1;
                self.cite(&evidence_ids, epoch).await
            }
        }
    }

    async fn search(
        &mut self,
        query: &str,
        epoch: u64,
        asking: &Asking<'_>,
        progress: &mut Progress,
    ) -> Result<Vec<Hit>, AskError> {
        progress.counts.searches += 1;
        let mut cases = Vec::with_capacity(self.kept.cases.len());
        for case in &self.kept.cases {
            let filter = self
                .kept
                .ledger
                .capability(case.as_str())
                .map(|state| &state.filter);
            let documents = filter.into_iter().flatten();
            cases.push(SearchIn {
                case: case.clone(),
                documents: documents
                    .filter_map(|id| DocumentId::new(id.as_str()).ok())
                    .collect(),
            });
        }
        let hits = self.find(&cases, query, asking, progress).await?;
        for case in &self.kept.cases {
            let of_case = hits.iter().filter(|hit| hit.case == *case);
            let found: Vec<EvidenceId> = of_case
                .map(|hit| hit.evidence.evidence_id.clone())
                .collect();
            self.kept
                .ledger
                .searched(case.as_str(), query, &found, epoch)?;
            progress.searches.push(Searched {
                case_id: case.to_string(),
                query: query.to_owned(),
                found,
            });
        }
        Ok(hits)
    }

    /// By words, or by words and meaning where that is asked for.
    async fn find(
        &self,
        cases: &[SearchIn],
        query: &str,
        asking: &Asking<'_>,
        progress: &mut Progress,
    ) -> Result<Vec<Hit>, AskError> {
        let (workspace, principal) = (&self.workspace, &self.principal);
        let Some(embeddings) = asking.embeddings else {
            return Ok(workspace.search(principal, cases, query, SHOWN).await?);
        };
        let by = ByMeaning {
            embedder: embeddings.embedder,
            control: asking.control,
            watch: embeddings.watch,
            order: Order::Fused,
        };
        let began = Instant::now();
        let found = workspace
            .search_by_meaning(principal, cases, query, SHOWN, &by)
            .await
            .map_err(|error| match error {
                EngineError::Interrupted => AskError::Interrupted,
                other => AskError::Engine(other),
            })?;
        if found.made > 0 {
            progress.vectors += found.made;
            progress.preparing += began.elapsed();
        }
        Ok(found.hits)
    }

    async fn read(&mut self, raw: &str, epoch: u64) -> Result<Outcome, AskError> {
        let ids = [raw.to_owned()];
        let named = self.access().named(&ids, &self.kept.ledger).await?;
        let one = match named.into_iter().next() {
            Some((_, crate::ledger::Named::Evidence(one, _))) => one,
            Some((id, crate::ledger::Named::Not(why))) => {
                let ignored = vec![crate::message::Ignored { id, why }];
                return Ok(Outcome::NotCited { ignored });
            }
            None => {
                return Ok(Outcome::NotCited {
                    ignored: Vec::new(),
                });
            }
        };
        let Some(case) = self
            .kept
            .cases
            .iter()
            .find(|case| case.as_str() == one.capability)
        else {
            return Ok(Outcome::NotCited {
                ignored: Vec::new(),
            });
        };
        let around = self
            .workspace
            .around(&self.principal, case, &one.evidence, AROUND)
            .await?;
        self.kept.ledger.outcome(&one.capability, epoch)?;
        // It may have been hidden a moment ago: then there is nothing to show.
        let passages: Vec<Evidence> = around.unwrap_or_default();
        let refs = passages
            .into_iter()
            .map(|passage| Ref::new(one.capability.clone(), passage.evidence_id))
            .collect();
        Ok(Outcome::Context { refs })
    }

    async fn cite(&mut self, ids: &[String], epoch: u64) -> Result<Outcome, AskError> {
        let named = self.access().named(ids, &self.kept.ledger).await?;
        match judge(named) {
            CiteJudgement::Retry(ignored) => Ok(Outcome::NotCited { ignored }),
            CiteJudgement::Declare(found, ignored) => {
                let refs = found.iter().map(|(one, _)| one.clone()).collect();
                self.kept.ledger.declare(found, epoch)?;
                Ok(Outcome::Cited { refs, ignored })
            }
        }
    }

    /// Answers with quotes: the same steps as a model takes, with no model.
    async fn quote(
        &mut self,
        asking: &Asking<'_>,
        progress: &mut Progress,
    ) -> Result<(), AskError> {
        // All of it is done again where it was not finished: it costs nothing.
        progress.counts = Counts::default();
        progress.searches.clear();
        let question = self.question_text(progress.question).to_owned();
        let epoch = self.history.clock();
        let mut response = Response {
            calls: vec![ToolCall {
                id: format!("call-{epoch}-0"),
                tool: SEARCH.to_owned(),
                arguments: serde_json::json!({"query": question}).to_string(),
            }],
            ..Response::default()
        };
        self.history.push(Message::Response(response.clone()));
        let hits = self.search(&question, epoch, asking, progress).await?;
        let refs = hits.iter().map(hit_ref).collect();
        self.history
            .push(Message::Request(vec![Part::Return(ToolReturn {
                call_id: response.calls[0].id.clone(),
                tool: SEARCH.to_owned(),
                outcome: Outcome::Found { refs },
            })]));
        self.save_step(progress).await?;
        let passages: Vec<Evidence> = hits.iter().map(|hit| hit.evidence.clone()).collect();
        let chosen = extractive::choose(&question, &passages);
        let form = self.form();
        let refs: Vec<Ref> = chosen
            .iter()
            .map(|one| {
                Ref::new(
                    hits[one.passage].case.as_str(),
                    one.evidence.evidence_id.clone(),
                )
            })
            .collect();
        let ids: Vec<String> = refs.iter().map(|one| written_id(one, form)).collect();
        let epoch = self.history.clock();
        let lines: Vec<(EvidenceId, String)> = chosen
            .into_iter()
            .map(|one| (one.evidence.evidence_id, one.evidence.quote))
            .collect();
        response = Response {
            text: extractive::in_words(&lines),
            calls: vec![ToolCall {
                id: format!("call-{epoch}-0"),
                tool: CITE.to_owned(),
                arguments: serde_json::json!({"evidence_ids": ids}).to_string(),
            }],
            sources: refs.iter().map(Ref::source).collect(),
        };
        self.history.push(Message::Response(response.clone()));
        progress.said = Some(epoch);
        self.carry_out(&response, epoch, Offer::All, asking, progress)
            .await
    }

    async fn conclude(
        &mut self,
        progress: Progress,
        asking: &Asking<'_>,
    ) -> Result<Answer, AskError> {
        let view = View {
            history: &self.history,
            ledger: &self.kept.ledger,
            can_cite: false,
        };
        self.kept.policy.at_end(&view, Ending::Answered);
        self.kept.ledger.end(Ending::Answered);
        let declared =
            (self.kept.ledger.status() != Status::Missing).then(|| self.kept.ledger.declared());
        let answered = Answered {
            question: progress.question,
            at: self.workspace.now(),
            generator: asking.answerer.name().to_owned(),
            embeddings: asking
                .embeddings
                .map(|by| EmbeddingsUsed::of(by.name, by.embedder, progress.vectors))
                .transpose()?,
            message: progress.said,
            declared,
            seconds: progress.seconds(),
            searches: progress.searches,
            counts: progress.counts,
        };
        let Some(answer) = self.showable(&answered).await? else {
            self.roll_back().await?;
            return Err(AskError::Hidden);
        };
        self.settle(answered).await?;
        Ok(answer)
    }
}

fn hit_ref(hit: &Hit) -> Ref {
    Ref::new(hit.case.as_str(), hit.evidence.evidence_id.clone())
}

/// Words and nothing but citations: the answer and its declaration in one.
fn is_answer_with_citation(response: &Response) -> bool {
    !response.text.trim().is_empty() && response.calls.iter().all(|call| call.tool == CITE)
}
