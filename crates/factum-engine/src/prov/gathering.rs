//! Gathers runs with their results, answers, claims and quotes from the store into lineage.

use std::collections::{BTreeSet, HashMap};

use factum_base::{BodyDigest, NodeKey, PrincipalId, canonical_json};
use factum_casefile::profile::ClaimSchema;
use factum_casefile::{NodeResult, NodeStatus};
use factum_graph::pages::{LeafEntry, Role};
use factum_graph::{Entry, Page, SpecContext};
use factum_model::RecordedGeneration;
use factum_store::{RunRow, StoreError, StoredGeneration, StoredResult, Tx};
use serde::Serialize;
use serde_json::Value;

use super::lineage::{
    AgentId, AgentLineage, AnswerId, AnswerLineage, ClaimLineage, Lineage, Moment, ResultId,
    ResultLineage, RunLineage, Source, SummaryLineage, Used,
};
use super::telling_runs::handed_on;
use crate::error::EngineError;
use crate::permission::is_owner;

/// A run while it is gathered.
struct AtHand<'r> {
    row: &'r RunRow,
    agent: AgentId,
    schema: Option<ClaimSchema>,
    stale: Option<Moment>,
    /// What was derived from what, and nothing that anyone wrote.
    outline: bool,
    /// The results of its nodes so far; none for nodes with nothing below that may be told.
    results: HashMap<NodeKey, ResultId>,
}

/// Gathers into a lineage.
pub(super) struct Gathering<'g> {
    tx: &'g mut Tx,
    caller: &'g PrincipalId,
    lineage: &'g mut Lineage,
    runs: HashMap<i64, RunRow>,
}

impl<'g> Gathering<'g> {
    pub(super) fn new(tx: &'g mut Tx, caller: &'g PrincipalId, lineage: &'g mut Lineage) -> Self {
        Self {
            tx,
            caller,
            lineage,
            runs: HashMap::new(),
        }
    }

    /// Adds a run. Its pages come children first.
    pub(super) async fn run(
        &mut self,
        row: &RunRow,
        pages: &[(NodeKey, Page)],
        stale: Option<Moment>,
        outline: bool,
    ) -> Result<(), EngineError> {
        let context = self.tx.context(&row.new.context).await?;
        let mut run = AtHand {
            row,
            agent: self.agent(&context, &row.new.generator)?,
            schema: claim_schema(&context),
            stale,
            outline,
            results: HashMap::new(),
        };
        for (key, page) in pages {
            self.page(&mut run, key, page).await?;
        }
        let lost = || StoreError::Damaged(format!("the root of {} is gone", row.run_id));
        let summary = run.results.get(&row.new.root).ok_or_else(lost)?.clone();
        let used = self.used(&run, &summary);
        self.lineage.runs.push(RunLineage {
            run_id: row.run_id.clone(),
            principal: row.new.principal.clone(),
            event: row.new.event,
            profile: row.new.profile.clone(),
            context: row.new.context.to_hex(),
            full: row.new.full,
            started_at: row.new.started_at,
            finished_at: row.finished_at.unwrap_or(row.new.started_at),
            agent: run.agent,
            summary,
            outline,
            used,
        });
        Ok(())
    }

    /// What a run read itself: the versions of leaves that it made, the results it took over for reductions
    /// that it made, and a root that it took over.
    fn used(&self, run: &AtHand<'_>, summary: &ResultId) -> BTreeSet<Used> {
        let mut used = BTreeSet::new();
        let own = |id: &ResultId| id.run_id == run.row.run_id;
        if !own(summary) {
            used.insert(Used::Result(summary.clone()));
        }
        for id in run.results.values().filter(|id| own(id)) {
            let Some(result) = self.lineage.results.get(id) else {
                continue;
            };
            if let Source::Leaf {
                doc_id, version, ..
            } = &result.source
            {
                used.insert(Used::Version(doc_id.clone(), *version));
            }
            let taken_over = result.source.read().iter().filter(|child| !own(child));
            used.extend(taken_over.cloned().map(Used::Result));
        }
        used
    }

    /// A reduction with its leaves.
    async fn page(
        &mut self,
        run: &mut AtHand<'_>,
        key: &NodeKey,
        page: &Page,
    ) -> Result<(), EngineError> {
        let leaves = || {
            page.entries.iter().filter_map(|entry| match entry {
                Entry::Leaf(leaf) => Some(&**leaf),
                Entry::Node(_) => None,
            })
        };
        let mut keys: Vec<NodeKey> = leaves()
            .filter(|leaf| leaf.state.eligible)
            .map(|leaf| leaf.key)
            .collect();
        keys.push(*key);
        let scope = (run.row.scope != 0).then_some(run.row.scope);
        let mut found: HashMap<NodeKey, StoredResult> = self
            .tx
            .results(run.row.new.case_no, &keys, scope)
            .await?
            .into_iter()
            .map(|stored| (stored.key, stored))
            .collect();
        let answers = self.generations(run, found.values()).await?;
        for leaf in leaves().filter(|leaf| leaf.state.eligible) {
            let stored = take(&mut found, &leaf.key)?;
            self.result(run, stored, leaf_source(leaf), &answers)
                .await?;
        }
        let (mut children, mut invalid) = (Vec::new(), Vec::new());
        for id in page
            .entries
            .iter()
            .filter_map(|entry| run.results.get(&entry.key()))
        {
            match self.lineage.results.get(id).map(|result| result.status) {
                Some(status) if handed_on(status) => children.push(id.clone()),
                _ => invalid.push(id.clone()),
            }
        }
        // A node over nothing but hidden documents says nothing, and its key is made of theirs.
        if children.is_empty() && invalid.is_empty() && page.role != Role::Root {
            return Ok(());
        }
        let source = Source::Reduction {
            role: page.role.word(),
            children,
            invalid,
        };
        let stored = take(&mut found, key)?;
        self.result(run, stored, source, &answers).await
    }

    async fn result(
        &mut self,
        run: &mut AtHand<'_>,
        stored: StoredResult,
        source: Source,
        answers: &HashMap<[u8; 32], StoredGeneration>,
    ) -> Result<(), EngineError> {
        let maker = self.maker(stored.run_no).await?;
        let id = ResultId {
            run_id: maker.run_id.clone(),
            key: stored.key,
        };
        let finished_at = maker.finished_at;
        run.results.insert(stored.key, id.clone());
        let known = self.lineage.results.get(&id);
        // Known whole already, or no better in outline.
        if known.is_some_and(|known| run.outline || known.counts.is_some()) {
            return Ok(());
        }
        let answer = if run.outline {
            None
        } else {
            self.answer(
                run,
                &id,
                &source,
                stored.result.generation.as_deref(),
                answers,
            )
            .await?
        };
        let is_root = stored.key == run.row.new.root;
        let summary = is_root.then(|| self.summary(run, &stored.result, finished_at));
        let counts = (stored.result.claims.len(), stored.result.withheld.len());
        let result = ResultLineage {
            source,
            status: stored.result.status,
            counts: (!run.outline).then_some(counts),
            answer,
            summary,
        };
        self.lineage.results.insert(id, result);
        Ok(())
    }

    fn summary(
        &mut self,
        run: &AtHand<'_>,
        result: &NodeResult,
        finished_at: Option<i64>,
    ) -> SummaryLineage {
        let mut claims = Vec::new();
        if !run.outline && result.status != NodeStatus::Invalid {
            for claim in &result.claims {
                let text = match &run.schema {
                    Some(schema) => schema.read(&claim.fields),
                    None => claim
                        .fields
                        .values()
                        .cloned()
                        .collect::<Vec<_>>()
                        .join(" · "),
                };
                claims.push(ClaimLineage {
                    text,
                    verdict: word(&claim.support.verdict),
                    method: word(&claim.support.method),
                    evidence: claim.evidence.clone(),
                });
                let cited = claim
                    .evidence
                    .iter()
                    .filter_map(|id| Some((id.clone(), result.evidence.get(id)?.quote.clone())));
                self.lineage.quotes.extend(cited);
            }
        }
        SummaryLineage {
            principal: run.row.new.principal.clone(),
            agent: run.agent.clone(),
            finished_at,
            stale: run.stale,
            claims,
        }
    }

    /// The generations that results were made from.
    async fn generations(
        &mut self,
        run: &AtHand<'_>,
        results: impl Iterator<Item = &StoredResult>,
    ) -> Result<HashMap<[u8; 32], StoredGeneration>, EngineError> {
        if run.outline {
            return Ok(HashMap::new());
        }
        let inputs: Vec<[u8; 32]> = results
            .filter_map(|stored| stored.result.generation.as_deref())
            .map(|id| id.parse().map(|digest: BodyDigest| *digest.as_bytes()))
            .collect::<Result<_, _>>()
            .map_err(|error| StoreError::Damaged(error.to_string()))?;
        Ok(self.tx.generations(&inputs, run.row.scope).await?)
    }

    /// The answer that a result was made from, with its call.
    async fn answer(
        &mut self,
        run: &AtHand<'_>,
        result: &ResultId,
        source: &Source,
        generation: Option<&str>,
        answers: &HashMap<[u8; 32], StoredGeneration>,
    ) -> Result<Option<AnswerId>, EngineError> {
        let Some(generation) = generation else {
            return Ok(None);
        };
        let damaged = || StoreError::Damaged(format!("the generation {generation} is gone"));
        let digest: BodyDigest = generation.parse().map_err(|_| damaged())?;
        let stored = answers.get(digest.as_bytes()).ok_or_else(damaged)?;
        let (case_no, principal) = (run.row.new.case_no, &run.row.new.principal);
        let owner = is_owner(self.caller);
        let asked_by = self.maker(stored.run_no).await?;
        // Answers are shared by case files and readers; who asked first is told only to who may know.
        let may_know =
            asked_by.new.case_no == case_no && (owner || asked_by.new.principal == *principal);
        let id = AnswerId {
            run_id: may_know.then(|| asked_by.run_id.clone()),
            digest,
        };
        if !self.lineage.answers.contains_key(&id) {
            let answer = self.recorded(&stored.body, &run.row.new.generator)?;
            self.lineage.answers.insert(id.clone(), answer);
        }
        if id.run_id.as_ref() == Some(&result.run_id)
            && let Some(answer) = self.lineage.answers.get_mut(&id)
        {
            if let Source::Leaf {
                doc_id, version, ..
            } = source
            {
                answer.used.insert(Used::Version(doc_id.clone(), *version));
            }
            answer
                .used
                .extend(source.read().iter().cloned().map(Used::Result));
        }
        Ok(Some(id))
    }

    fn recorded(&mut self, body: &str, generator: &str) -> Result<AnswerLineage, EngineError> {
        let record: RecordedGeneration = serde_json::from_str(body)
            .map_err(|error| StoreError::Damaged(format!("a generation: {error}")))?;
        let agent = self.add_agent(true, record.model.parts(), Some(generator))?;
        Ok(AnswerLineage {
            agent,
            stop: word(&record.stop),
            prompt_tokens: record.prompt_tokens,
            new_tokens: record.new_tokens,
            seconds: record.seconds,
            retries: record.retries,
            used: BTreeSet::new(),
        })
    }

    /// The run that made something.
    async fn maker(&mut self, run_no: i64) -> Result<&RunRow, EngineError> {
        if !self.runs.contains_key(&run_no) {
            let lost = || StoreError::Damaged(format!("the run {run_no} is gone"));
            let row = self.tx.run_by_no(run_no).await?.ok_or_else(lost)?;
            self.runs.insert(run_no, row);
        }
        Ok(&self.runs[&run_no])
    }

    /// The generator that a run's keys hold.
    fn agent(&mut self, context: &SpecContext, name: &str) -> Result<AgentId, EngineError> {
        let leaf: Value = serde_json::from_str(context.leaf.json())?;
        let generator = &leaf["generator"];
        match generator.get("model") {
            Some(model) => self.add_agent(true, model, Some(name)),
            None => self.add_agent(false, generator, Some(name)),
        }
    }

    fn add_agent(
        &mut self,
        model: bool,
        identity: &Value,
        name: Option<&str>,
    ) -> Result<AgentId, EngineError> {
        let text = canonical_json(identity)?;
        let id = AgentId {
            model,
            digest: BodyDigest::of(text.as_bytes()).to_hex(),
        };
        let agent = self
            .lineage
            .agents
            .entry(id.clone())
            .or_insert_with(|| AgentLineage {
                names: BTreeSet::new(),
                kind: identity["kind"].as_str().unwrap_or("").to_owned(),
                identity: text,
            });
        agent.names.extend(name.map(str::to_owned));
        Ok(id)
    }
}

fn leaf_source(leaf: &LeafEntry) -> Source {
    Source::Leaf {
        doc_id: leaf.state.doc_id.clone(),
        version: leaf.state.version,
        segment: leaf.segment,
    }
}

fn take(
    found: &mut HashMap<NodeKey, StoredResult>,
    key: &NodeKey,
) -> Result<StoredResult, StoreError> {
    found
        .remove(key)
        .ok_or_else(|| StoreError::Damaged(format!("the result of node {key} is gone")))
}

/// How claims read, as the run's keys hold it: the profile may have changed since.
fn claim_schema(context: &SpecContext) -> Option<ClaimSchema> {
    let leaf: Value = serde_json::from_str(context.leaf.json()).ok()?;
    serde_json::from_value(leaf["profile"]["claim"].clone()).ok()
}

/// The word that a value has in JSON.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}
