//! Building by a language model: nodes whose children are made are asked for together, and every answer is
//! kept as soon as it is whole.
//!
//! A node without a whole answer is *lost*: it is not made, nor is anything above it, and the run ends
//! incomplete. An answer that is whole but breaks a rule is kept with its diagnosis as an INVALID node
//! and never asked for again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use factum_base::NodeKey;
use factum_casefile::profile::{ChildOrder, Decoding, ModelSettings, Reductions, Reuse, WhenEmpty};
use factum_casefile::support::check_support;
use factum_casefile::{Claim, NodeResult, NodeStatus};
use factum_graph::{Entry, LeafEntry};
use factum_model::{Control, Gate, Generation, GenerationRequest, ModelError, RecordedGeneration};
use factum_store::{StoreError, StoredGeneration, Tx};
use tokio::sync::mpsc::unbounded_channel;

use crate::answer::read_answer;
use crate::build::{Counts, Followed, Job, Run, Watcher, cached};
use crate::error::EngineError;
use crate::extract::{keep, reduce, status_over};
use crate::keeping::{Asked, Incoming, Keeping, Sink};
use crate::planning::fetch;
use crate::prompting::{Catalogue, cited, handed_on, leaf_request, passages, reduction_request};
use crate::todo::Todo;
use crate::transformation::{Model, model_settings};

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
pub(crate) struct Question {
    pub(crate) key: NodeKey,
    pub(crate) request: GenerationRequest,
    catalogue: Catalogue,
    /// The node's status if its answer is valid.
    status: NodeStatus,
}

/// What a build by model has come to so far.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) results: HashMap<NodeKey, Arc<NodeResult>>,
    pub(crate) lost: HashSet<NodeKey>,
    pub(crate) first_error: Option<ModelError>,
    pub(crate) work: Counts,
    pub(crate) done: u64,
    /// The latest event that was looked at.
    pub(crate) seen: u64,
}

impl Job<'_> {
    /// Makes all nodes of `todo` that can be made.
    pub(crate) async fn by_model(
        mut self,
        todo: &[Todo],
        model: &Model,
        watcher: &dyn Watcher,
    ) -> Result<Followed, EngineError> {
        let mut tx = self.workspace.repository.write().await?;
        let run = self.open_run(&mut tx).await?;
        tx.commit().await?;
        let mut progress = Progress {
            seen: self.permitted.case.last_event,
            ..Progress::default()
        };
        let all = todo.len() as u64;
        for wave in self.waves(todo)? {
            for group in wave.chunks(WAVE) {
                if watcher.stop() {
                    return Err(EngineError::Interrupted);
                }
                let Some(questions) = self.read_group(group, &run, &mut progress).await? else {
                    return Ok(progress.overtaken());
                };
                let questions = self
                    .answer_from_store(questions, &run, &mut progress)
                    .await?;
                watcher.progress(progress.done, all);
                let asked = self
                    .ask(questions, model, &run, &mut progress, (watcher, all))
                    .await?;
                if asked == Asked::Overtaken {
                    return Ok(progress.overtaken());
                }
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
        Ok(Followed::Through(Box::new(report)))
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
        if self.is_overtaken(&mut tx, &mut progress.seen).await? {
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
    ) -> Result<Asked, EngineError> {
        if questions.is_empty() {
            return Ok(Asked::Through);
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
        let (gate, knocks) = Gate::new();
        let control = Control {
            gate: Some(gate),
            ..Control::default()
        };
        let (sender, answers) = unbounded_channel();
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
        let ((), kept) = tokio::join!(asking, keeping.all(Incoming { answers, knocks }, progress));
        kept
    }

    /// A node's result from an answer.
    pub(crate) fn read(
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

    pub(crate) async fn keep_results(
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

impl Progress {
    fn overtaken(&self) -> Followed {
        Followed::Overtaken {
            kept: self.work.recomputed > 0,
        }
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
