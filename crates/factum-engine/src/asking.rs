//! Building by a language model: nodes whose children are made are asked for together, and every answer is
//! kept as soon as it is whole.
//!
//! A node without a whole answer is *lost*: it is not made, nor is anything above it, and the run ends
//! incomplete. An answer that is whole but breaks a rule is kept with its diagnosis as an INVALID node
//! and never asked for again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use factum_base::NodeKey;
use factum_casefile::profile::{ChildOrder, Decoding, ModelSettings, Reductions, Reuse, WhenEmpty};
use factum_casefile::support::check_support;
use factum_casefile::{Claim, NodeResult, NodeStatus};
use factum_graph::{Entry, LeafEntry};
use factum_model::{
    Control, Generation, GenerationRequest, GenerationSink, ModelError, RecordedGeneration,
};
use factum_store::{StoreError, StoredGeneration, Tx};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::answer::read_answer;
use crate::build::{BuildReport, Counts, Job, Run, Todo, Watcher, cached};
use crate::error::EngineError;
use crate::extract::{keep, reduce, status_over};
use crate::planning::fetch;
use crate::prompting::{Catalogue, cited, handed_on, leaf_request, passages, reduction_request};
use crate::transformation::{Model, model_settings};

/// How often a build looks whether it should stop.
const LOOK: Duration = Duration::from_millis(50);
/// Leaves whose texts are in memory at once, and nodes planned together.
const WAVE: usize = 256;

/// A node as it comes out of reading what it depends on.
enum Ready {
    /// Nothing has to be asked.
    Made(NodeResult),
    /// A model has to be asked.
    Ask(Box<Question>),
}

/// What a model is asked for a node.
struct Question {
    key: NodeKey,
    request: GenerationRequest,
    catalogue: Catalogue,
    /// The node's status if its answer is valid.
    status: NodeStatus,
}

/// What a build by model has come to so far.
#[derive(Default)]
struct Progress {
    results: HashMap<NodeKey, Arc<NodeResult>>,
    lost: HashSet<NodeKey>,
    first_error: Option<ModelError>,
    work: Counts,
    done: u64,
}

/// Hands answers from the model's side to the store's.
struct Sink {
    finished: UnboundedSender<(usize, Result<Generation, ModelError>)>,
    tokens: Arc<AtomicU64>,
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

impl Job<'_> {
    /// Makes all nodes of `todo` that can be made. `None` where documents were hidden meanwhile, so that
    /// the plan is not to be followed any further.
    pub(crate) async fn by_model(
        mut self,
        todo: &[Todo],
        model: &Model,
        watcher: &dyn Watcher,
    ) -> Result<Option<BuildReport>, EngineError> {
        let mut tx = self.workspace.repository.write().await?;
        let run = self.open_run(&mut tx).await?;
        tx.commit().await?;
        let mut progress = Progress::default();
        let all = todo.len() as u64;
        for wave in self.waves(todo)? {
            for group in wave.chunks(WAVE) {
                if watcher.stop() {
                    return Err(EngineError::Interrupted);
                }
                let Some(questions) = self.read_group(group, &run, &mut progress).await? else {
                    return Ok(None);
                };
                let questions = self
                    .answer_from_store(questions, &run, &mut progress)
                    .await?;
                watcher.progress(progress.done, all);
                self.ask(questions, model, &run, &mut progress, (watcher, all))
                    .await?;
            }
        }
        if let Some(first) = progress.first_error {
            return Err(EngineError::Incomplete {
                run_id: run.id,
                lost: progress.lost.len() as u64,
                nodes: all,
                first,
            });
        }
        let mut tx = self.workspace.repository.write().await?;
        let report = self.close_run(&mut tx, run, progress.work).await?;
        tx.commit().await?;
        Ok(Some(report))
    }

    /// The nodes to make by height: each wave rests on earlier ones only.
    fn waves<'t>(&self, todo: &'t [Todo]) -> Result<Vec<Vec<&'t Todo>>, EngineError> {
        let mut height: HashMap<NodeKey, usize> = HashMap::new();
        let mut waves: Vec<Vec<&Todo>> = Vec::new();
        // Children come before their parents.
        for one in todo {
            let own = match one {
                Todo::Leaf(_) => 0,
                Todo::Reduction(key) => {
                    let page = cached(&self.tree.cache, *key)?;
                    let below = page.entries.iter().filter_map(|e| height.get(&e.key()));
                    below.max().map_or(1, |highest| highest + 1)
                }
            };
            height.insert(one.key(), own);
            if waves.len() <= own {
                waves.resize_with(own + 1, Vec::new);
            }
            waves[own].push(one);
        }
        Ok(waves)
    }

    /// Reads what a group depends on. What needs no model is made and kept. `None` where a document was hidden since
    /// the plan.
    async fn read_group(
        &mut self,
        group: &[&Todo],
        run: &Run,
        progress: &mut Progress,
    ) -> Result<Option<Vec<Question>>, EngineError> {
        let mut tx = self.workspace.repository.read().await?;
        let leaves = group.iter().filter_map(|one| one.leaf());
        if !self.still_eligible(&mut tx, leaves).await? {
            return Ok(None);
        }
        let mut made = Vec::new();
        let mut questions = Vec::new();
        for one in group {
            let ready = match one {
                Todo::Leaf(leaf) => self.read_leaf(&mut tx, leaf).await?,
                Todo::Reduction(key) => {
                    let Some(ready) = self.read_reduction(&mut tx, *key, run, progress).await?
                    else {
                        progress.lost.insert(*key);
                        continue;
                    };
                    ready
                }
            };
            match ready {
                Ready::Made(result) => made.push((one.key(), Arc::new(result))),
                Ready::Ask(question) => questions.push(*question),
            }
        }
        tx.close().await?;
        if !made.is_empty() {
            let mut tx = self.workspace.repository.write().await?;
            self.keep_results(&mut tx, &made, run, progress).await?;
            tx.commit().await?;
        }
        Ok(Some(questions))
    }

    async fn read_leaf(&self, tx: &mut Tx, leaf: &LeafEntry) -> Result<Ready, EngineError> {
        let Some(segment) = leaf.segment else {
            return Ok(Ready::Made(NodeResult::empty(NodeStatus::Ineligible)));
        };
        let settings = model_settings(&self.profile)?;
        let texts = self
            .workspace
            .texts
            .texts(tx, std::iter::once(leaf.state.text_sha256))
            .await?;
        let found = &texts[&leaf.state.text_sha256];
        let text = found.index.slice(&found.text, segment).map_err(|error| {
            StoreError::Damaged(format!("segment of {}: {error}", leaf.state.doc_id))
        })?;
        let catalogue = passages(settings.evidence, &leaf.state, segment, text);
        if catalogue.evidence.is_empty() && settings.when_empty == WhenEmpty::Skip {
            return Ok(Ready::Made(NodeResult::empty(NodeStatus::Valid)));
        }
        Ok(Ready::Ask(Box::new(Question {
            key: leaf.key,
            request: leaf_request(&self.profile, settings, &catalogue),
            catalogue,
            status: NodeStatus::Valid,
        })))
    }

    /// `None` where a child is lost.
    async fn read_reduction(
        &mut self,
        tx: &mut Tx,
        key: NodeKey,
        run: &Run,
        progress: &mut Progress,
    ) -> Result<Option<Ready>, EngineError> {
        let case_no = self.case_no();
        fetch(tx, case_no, &mut self.tree.cache, key).await?;
        let page = cached(&self.tree.cache, key)?;
        let mut keys: Vec<NodeKey> = page.entries.iter().map(Entry::key).collect();
        if self.profile.tree.children == ChildOrder::KeyOrder {
            keys.sort_unstable();
        }
        if keys.iter().any(|key| progress.lost.contains(key)) {
            return Ok(None);
        }
        let absent: Vec<NodeKey> = keys
            .iter()
            .filter(|key| !progress.results.contains_key(key))
            .copied()
            .collect();
        for stored in tx.results(case_no, &absent, run.scope).await? {
            progress.results.insert(stored.key, Arc::new(stored.result));
        }
        let children: Option<Vec<Arc<NodeResult>>> = keys
            .iter()
            .map(|key| progress.results.get(key).cloned())
            .collect();
        let children = children
            .ok_or_else(|| StoreError::Damaged(format!("a child of node {key} has no result")))?;
        // A node has one parent.
        for key in &keys {
            progress.results.remove(key);
        }
        let children: Vec<&NodeResult> = children.iter().map(AsRef::as_ref).collect();
        let settings = model_settings(&self.profile)?;
        if settings.reductions == Reductions::Fold {
            return Ok(Some(Ready::Made(reduce(&self.profile, &children))));
        }
        let claims = handed_on(&self.profile, settings, &children);
        let status = status_over(&children);
        if claims.is_empty() && settings.when_empty == WhenEmpty::Skip {
            return Ok(Some(Ready::Made(NodeResult::empty(status))));
        }
        let catalogue = cited(&claims, &children);
        Ok(Some(Ready::Ask(Box::new(Question {
            key,
            request: reduction_request(&self.profile, settings, &claims, &catalogue),
            catalogue,
            status,
        }))))
    }

    /// Answers what was answered before to the same input. The questions that are left.
    async fn answer_from_store(
        &self,
        questions: Vec<Question>,
        run: &Run,
        progress: &mut Progress,
    ) -> Result<Vec<(Question, [u8; 32])>, EngineError> {
        let Some(identity) = self.model_identity() else {
            return Ok(Vec::new());
        };
        let mut keyed = Vec::with_capacity(questions.len());
        for question in questions {
            let digest = question.request.digest(identity)?;
            keyed.push((question, *digest.as_bytes()));
        }
        let settings = model_settings(&self.profile)?;
        if self.options.full || settings.reuse == Reuse::Nodes {
            return Ok(keyed);
        }
        let digests: Vec<[u8; 32]> = keyed.iter().map(|(_, digest)| *digest).collect();
        let mut tx = self.workspace.repository.read().await?;
        let known = tx.generations(&digests, 0).await?;
        tx.close().await?;
        let mut left = Vec::new();
        let mut made = Vec::new();
        for (question, digest) in keyed {
            let Some(stored) = known.get(&digest) else {
                left.push((question, digest));
                continue;
            };
            let record = read_record(stored)?;
            made.push((
                question.key,
                Arc::new(self.read(settings, &question, &record.generation(), digest)),
            ));
            progress.work.generations_reused += 1;
        }
        if !made.is_empty() {
            let mut tx = self.workspace.repository.write().await?;
            self.keep_results(&mut tx, &made, run, progress).await?;
            tx.commit().await?;
        }
        Ok(left)
    }

    /// Asks a model and keeps each answer as it comes.
    async fn ask(
        &self,
        questions: Vec<(Question, [u8; 32])>,
        model: &Model,
        run: &Run,
        progress: &mut Progress,
        (watcher, all): (&dyn Watcher, u64),
    ) -> Result<(), EngineError> {
        if questions.is_empty() {
            return Ok(());
        }
        let engine = model
            .engine
            .as_ref()
            .ok_or_else(|| EngineError::ModelNotLoaded(model.name.clone()))?;
        let settings = model_settings(&self.profile)?;
        let asked = distinct(
            &questions,
            settings.reuse == Reuse::Generations && !self.options.full,
        );
        let requests: Vec<GenerationRequest> = asked
            .iter()
            .map(|places| questions[places[0]].0.request.clone())
            .collect();
        let control = Control::default();
        let (sender, receiver) = unbounded_channel();
        let tokens = Arc::new(AtomicU64::new(0));
        let sink = Sink {
            finished: sender,
            tokens: Arc::clone(&tokens),
        };
        let keeping = Keeping {
            job: self,
            model,
            run,
            settings,
            questions: &questions,
            asked: &asked,
            tokens: &tokens,
            control: &control,
            watcher,
            all,
        };
        let asking = async {
            engine.generate(&requests, &control, &sink).await;
            // Closes the channel, so that keeping ends.
            drop(sink);
        };
        let ((), kept) = tokio::join!(asking, keeping.all(receiver, progress));
        kept
    }

    /// A node's result from an answer.
    fn read(
        &self,
        settings: &ModelSettings,
        question: &Question,
        answer: &Generation,
        digest: [u8; 32],
    ) -> NodeResult {
        let profile = &self.profile;
        let grounded = settings.decoding == Decoding::Grounded;
        let reading = read_answer(
            profile,
            &question.catalogue,
            &answer.text,
            answer.stop,
            grounded,
        );
        let mut result = NodeResult::empty(question.status);
        result.repairs = reading.repairs;
        result.generation = Some(factum_base::BodyDigest::from_bytes(digest).to_hex());
        let claims = match reading.claims {
            Ok(claims) => claims,
            Err(fault) => {
                result.status = NodeStatus::Invalid;
                result.diagnostic = Some(fault.to_string());
                return result;
            }
        };
        let evidence: BTreeMap<_, _> = question
            .catalogue
            .evidence
            .iter()
            .map(|one| (&one.evidence_id, one))
            .collect();
        for (rank, claim) in (1u32..).zip(claims) {
            let mut quotes = Vec::with_capacity(claim.evidence.len());
            for id in &claim.evidence {
                if let Some(one) = evidence.get(id) {
                    quotes.push(one.quote.as_str());
                    result.evidence.insert(id.clone(), (*one).clone());
                }
            }
            let claim = Claim {
                support: check_support(profile, &claim.fields, &quotes),
                fields: claim.fields,
                evidence: claim.evidence,
                // A model is asked for what matters most first.
                salience: 1_000_000 / rank,
            };
            keep(profile, &mut result, claim);
        }
        result
    }

    async fn keep_results(
        &self,
        tx: &mut Tx,
        made: &[(NodeKey, Arc<NodeResult>)],
        run: &Run,
        progress: &mut Progress,
    ) -> Result<(), EngineError> {
        let scope = run.scope.unwrap_or(0);
        progress.work.recomputed += tx
            .put_results(self.case_no(), scope, run.number, made)
            .await?;
        progress.done += made.len() as u64;
        progress.results.extend(made.iter().cloned());
        Ok(())
    }
}

/// The places of questions with the same input, if such are to be asked once.
fn distinct(questions: &[(Question, [u8; 32])], once: bool) -> Vec<Vec<usize>> {
    let mut seen: HashMap<[u8; 32], usize> = HashMap::new();
    let mut asked: Vec<Vec<usize>> = Vec::new();
    for (place, (_, digest)) in questions.iter().enumerate() {
        match seen.get(digest) {
            Some(&at) if once => asked[at].push(place),
            _ => {
                seen.insert(*digest, asked.len());
                asked.push(vec![place]);
            }
        }
    }
    asked
}

fn read_record(stored: &StoredGeneration) -> Result<RecordedGeneration, StoreError> {
    serde_json::from_str(&stored.body).map_err(|error| {
        StoreError::Damaged(format!("the generation of run {}: {error}", stored.run_no))
    })
}

/// The side that keeps answers while the model makes more.
struct Keeping<'a> {
    job: &'a Job<'a>,
    model: &'a Model,
    run: &'a Run,
    settings: &'a ModelSettings,
    questions: &'a [(Question, [u8; 32])],
    /// For each request, the questions that it answers.
    asked: &'a [Vec<usize>],
    tokens: &'a AtomicU64,
    control: &'a Control,
    watcher: &'a dyn Watcher,
    all: u64,
}

impl Keeping<'_> {
    async fn all(
        &self,
        mut answers: UnboundedReceiver<(usize, Result<Generation, ModelError>)>,
        progress: &mut Progress,
    ) -> Result<(), EngineError> {
        let mut look = tokio::time::interval(LOOK);
        let mut outcome = Ok(());
        loop {
            tokio::select! {
                answer = answers.recv() => {
                    let Some((request, answer)) = answer else { break };
                    // After a failure of the store the rest is only waited for.
                    if outcome.is_ok() {
                        outcome = self.one(request, answer, progress).await;
                        if outcome.is_err() {
                            self.control.cancel.cancel();
                        }
                    }
                }
                _ = look.tick() => {
                    self.watcher.tokens(self.tokens.swap(0, Ordering::Relaxed));
                    if self.watcher.stop() {
                        self.control.cancel.cancel();
                    }
                }
            }
        }
        self.watcher.tokens(self.tokens.swap(0, Ordering::Relaxed));
        outcome?;
        if self.control.cancel.is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        Ok(())
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
