//! Building: plan, find what is missing, make it bottom up, record it.
//!
//! Results are committed in groups as they are finished, children before parents, so that a stop at
//! any instant loses at most the group at hand and never leaves a parent without its children. The
//! head moves in the last transaction alone: a root is served whole or not at all.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use factum_base::{CaseId, CodePointIndex, NodeKey, PrincipalId, TextDigest};
use factum_casefile::profile::ChildOrder;
use factum_casefile::{NodeResult, NodeStatus, Profile};
use factum_graph::difference::Difference;
use factum_graph::{Entry, LeafEntry, PageCache, SpecContext};
use factum_model::ModelIdentity;
use factum_store::{Built, Head, NewRun, StoreError, Tx};
use rayon::prelude::*;

use crate::early_cutoff::EarlyCutoff;
use crate::error::EngineError;
use crate::extract::{LeafInput, extract_leaf, reduce};
use crate::permission::{Permitted, permitted};
use crate::planning::{CurrentTree, PlanFor, fetch, segment_rule};
use crate::serve::{Decision, decide};
use crate::todo::{Todo, leaves_of, missing, missing_of};
use crate::transformation::Generator;
use crate::why::tree_difference;
use crate::workspace::Workspace;

pub use crate::build_report::{
    BuildOptions, BuildReport, Counts, Invalidation, StopFlag, Unwatched, Watcher,
};

/// Leaves computed and committed together.
const GROUP: usize = 256;
/// Invalidated nodes named in a run's record; above that only their count is kept.
const MOST_NAMED: usize = 1_000;
/// How often in a row a build starts again, with nothing kept, since documents were hidden while it ran.
const MOST_RESTARTS: u32 = 5;

/// A build that knows what it has to make.
pub(crate) struct Job<'w> {
    pub(crate) workspace: &'w Workspace,
    pub(crate) principal: &'w PrincipalId,
    pub(crate) options: BuildOptions,
    pub(crate) permitted: Permitted,
    pub(crate) profile: Arc<Profile>,
    context: Arc<SpecContext>,
    pub(crate) tree: CurrentTree,
    invalidation: Invalidation,
    todo: Vec<Todo>,
    nodes: u64,
    /// What the tree built last can save.
    cutoff: EarlyCutoff,
    /// The store has the context already.
    context_known: bool,
    plan_seconds: f64,
    begun: std::time::Instant,
}

/// How following a plan ended.
pub(crate) enum Followed {
    /// All is made.
    Through(Box<BuildReport>),
    /// Documents were hidden meanwhile, so the plan is not to be followed any further.
    Overtaken {
        /// The next plan finds something made.
        kept: bool,
    },
}

/// A run as recorded.
pub(crate) struct Run {
    pub(crate) number: i64,
    pub(crate) id: String,
    /// Where results go and come from: a full build has a scope of its own.
    pub(crate) scope: Option<i64>,
}

/// Results not yet handed on to a parent.
type Pending = HashMap<NodeKey, Arc<NodeResult>>;
/// Results of a group, children before parents.
type Made = Vec<(NodeKey, Arc<NodeResult>)>;

impl Workspace {
    /// Builds a principal's summary of a case file.
    ///
    /// # Errors
    /// The case file is unknown or hidden, the profile can't be used, the store fails, or the watcher
    /// stops it. What was finished is kept, and the next build goes on from there.
    pub async fn build(
        &self,
        case_id: &CaseId,
        principal: &PrincipalId,
        options: BuildOptions,
        watcher: &dyn Watcher,
    ) -> Result<BuildReport, EngineError> {
        let mut in_vain = 0;
        while in_vain < MOST_RESTARTS {
            let mut tx = self.repository.read().await?;
            let mut job = self
                .prepare(&mut tx, case_id, principal, options.clone())
                .await?;
            let todo = std::mem::take(&mut job.todo);
            watcher.progress(0, todo.len() as u64);
            let followed = if let Generator::Model(model) = &options.generator {
                tx.close().await?;
                job.by_model(&todo, model, watcher).await?
            } else if todo.len() <= GROUP {
                Followed::Through(Box::new(job.at_once(tx, &todo).await?))
            } else {
                tx.close().await?;
                job.group_by_group(&todo, watcher).await?
            };
            match followed {
                Followed::Through(report) => {
                    watcher.progress(todo.len() as u64, todo.len() as u64);
                    return Ok(*report);
                }
                // What a full build made is of no use to another.
                Followed::Overtaken { kept } if kept && !options.full => in_vain = 0,
                Followed::Overtaken { .. } => in_vain += 1,
            }
        }
        Err(EngineError::Overtaken(MOST_RESTARTS))
    }

    /// Plans, in the caller's read transaction, and records how the old root is refused.
    async fn prepare<'w>(
        &'w self,
        tx: &mut Tx,
        case_id: &CaseId,
        principal: &'w PrincipalId,
        options: BuildOptions,
    ) -> Result<Job<'w>, EngineError> {
        let begun = std::time::Instant::now();
        let permitted = permitted(tx, case_id, principal).await?;
        let case_no = permitted.case.case_no;
        let profile = self.profile(&permitted.case.profile)?;
        let context = self.spec_context(principal, &permitted.case.profile, &options.generator)?;
        let name = Some(options.generator.name());
        let decision = decide(self, tx, &permitted, principal, name).await?;
        let mut invalidation = Invalidation::default();
        let (head, tree) = match decision {
            Decision::Current(found) => (Some(found.0), Some(found.1)),
            Decision::Refused(refusal, found) => {
                invalidation.serve_refusal = Some(serde_json::to_value(&refusal)?);
                found.map_or((None, None), |found| (Some(found.0), Some(found.1)))
            }
        };
        let mut tree = if let Some(tree) = tree {
            tree
        } else {
            let head = tx.head(case_no, principal, name).await?;
            let plan = PlanFor {
                permitted: &permitted,
                principal,
                profile: &profile,
                context: &context,
            };
            plan.current_tree(tx, head.as_ref()).await?
        };
        let nodes = tree.nodes(tx, case_no).await?;
        let plan_seconds = begun.elapsed().as_secs_f64();
        let context_known = head
            .as_ref()
            .is_some_and(|head| head.context == context.digest());
        let built = head.and_then(|head| head.built);
        let built_context = built.as_ref().map(|built| built.context);
        let previous = built.map(|built| built.root);
        let found = describe(tx, case_no, previous, &mut tree, nodes, &mut invalidation).await?;
        // Key order may change with a key, and what is read in another order may be chosen otherwise.
        let comparable = context_known
            && !options.full
            && built_context == Some(context.digest())
            && profile.tree.children == ChildOrder::DocumentOrder;
        let todo = match &found {
            Some(found) if !options.full => missing_of(tx, case_no, &tree, found).await?,
            _ => missing(tx, case_no, &mut tree, options.full).await?,
        };
        let old = found.map(|found| found.old).unwrap_or_default();
        let old = old.into_iter().filter(|_| comparable);
        let cutoff = EarlyCutoff::new(old.map(|node| (node.name, node.key)));
        Ok(Job {
            workspace: self,
            principal,
            options,
            permitted,
            profile,
            context,
            tree,
            invalidation,
            todo,
            nodes,
            cutoff,
            context_known,
            plan_seconds,
            begun,
        })
    }
}

/// Describes what a build invalidates. The difference to the tree built last, where there is one.
async fn describe(
    tx: &mut Tx,
    case_no: i64,
    previous: Option<NodeKey>,
    tree: &mut CurrentTree,
    nodes: u64,
    invalidation: &mut Invalidation,
) -> Result<Option<Difference>, EngineError> {
    invalidation.previous_root_key = previous;
    invalidation.current_root_key = Some(tree.root);
    if let Some(previous) = previous
        && let Some(stored) = tx.result(case_no, &previous, None).await?
    {
        invalidation.previous_status = Some(stored.result.status);
    }
    if previous == Some(tree.root) {
        return Ok(None);
    }
    if previous.is_none() && nodes > MOST_NAMED as u64 {
        invalidation.node_count = nodes;
        return Ok(None);
    }
    let found = tree_difference(tx, case_no, &mut tree.cache, previous, tree.root).await?;
    invalidation.node_count = found.new.len() as u64;
    if found.new.len() <= MOST_NAMED {
        let names = found.new.iter().map(|node| node.name.clone());
        invalidation.nodes = names.collect();
    }
    Ok(previous.is_some().then_some(found))
}

impl Job<'_> {
    pub(crate) fn model_identity(&self) -> Option<&ModelIdentity> {
        match &self.options.generator {
            Generator::Model(model) => Some(&model.identity),
            Generator::Extractive => None,
        }
    }

    pub(crate) fn case_no(&self) -> i64 {
        self.permitted.case.case_no
    }

    /// A small build: all is made in the transaction that planned it, and recorded in one.
    async fn at_once(mut self, mut tx: Tx, todo: &[Todo]) -> Result<BuildReport, EngineError> {
        let mut pending = Pending::new();
        // The run has no number yet; a full build of this size makes all its children itself.
        let scope = self.options.full.then_some(i64::MAX);
        let made = self.make_leaves(&mut tx, todo).await?;
        let made = self
            .make_reductions(&mut tx, todo, made, &mut pending, scope)
            .await?;
        tx.close().await?;
        let mut tx = self.workspace.repository.write().await?;
        let run = self.open_run(&mut tx).await?;
        let scope = run.scope.unwrap_or(0);
        let made = tx
            .put_results(self.case_no(), scope, run.number, &made)
            .await?;
        let work = Counts {
            recomputed: made,
            ..Counts::default()
        };
        let report = self.close_run(&mut tx, run, work).await?;
        tx.commit().await?;
        Ok(report)
    }

    /// A large build: results are committed group by group.
    async fn group_by_group(
        mut self,
        todo: &[Todo],
        watcher: &dyn Watcher,
    ) -> Result<Followed, EngineError> {
        let all = todo.len() as u64;
        let mut tx = self.workspace.repository.write().await?;
        let run = self.open_run(&mut tx).await?;
        tx.commit().await?;
        let mut pending = Pending::new();
        let (mut done, mut new) = (0, 0);
        let mut seen = self.permitted.case.last_event;
        for group in todo.chunks(GROUP) {
            if watcher.stop() {
                return Err(EngineError::Interrupted);
            }
            let mut tx = self.workspace.repository.read().await?;
            if self.is_overtaken(&mut tx, &mut seen).await? {
                return Ok(Followed::Overtaken { kept: new > 0 });
            }
            let made = self.make_leaves(&mut tx, group).await?;
            let made = self
                .make_reductions(&mut tx, group, made, &mut pending, run.scope)
                .await?;
            tx.close().await?;
            let mut tx = self.workspace.repository.write().await?;
            // Another build may have been quicker: what it made counts as reused here.
            let scope = run.scope.unwrap_or(0);
            new += tx
                .put_results(self.case_no(), scope, run.number, &made)
                .await?;
            tx.commit().await?;
            done += group.len() as u64;
            watcher.progress(done, all);
        }
        let mut tx = self.workspace.repository.write().await?;
        let work = Counts {
            recomputed: new,
            ..Counts::default()
        };
        let report = self.close_run(&mut tx, run, work).await?;
        tx.commit().await?;
        Ok(Followed::Through(Box::new(report)))
    }

    /// Keeps the plan and records that the run has begun.
    pub(crate) async fn open_run(&self, tx: &mut Tx) -> Result<Run, EngineError> {
        let case = &self.permitted.case;
        if !self.context_known {
            tx.put_context(&self.context).await?;
        }
        tx.put_pages(case.case_no, &self.tree.new_pages).await?;
        let rule = segment_rule(&self.profile.segments)?;
        for (digest, segments) in &self.tree.new_segments {
            tx.put_segments(digest, &rule, segments).await?;
        }
        let generator = self.options.generator.name();
        // What was planned from later events stays, if another build was quicker.
        let known = tx
            .head(case.case_no, self.principal, Some(generator))
            .await?;
        if known
            .as_ref()
            .is_none_or(|known| known.planned_event <= case.last_event)
        {
            let head = Head {
                generator: generator.to_owned(),
                context: self.context.digest(),
                planned_root: self.tree.root,
                planned_event: case.last_event,
                access_revision: case.access_revision,
                built: known.and_then(|known| known.built),
            };
            tx.save_head(case.case_no, self.principal, &head).await?;
        }
        let run = NewRun {
            case_no: case.case_no,
            principal: self.principal.clone(),
            generator: generator.to_owned(),
            profile: case.profile.clone(),
            context: self.context.digest(),
            event: case.last_event,
            root: self.tree.root,
            full: self.options.full,
            started_at: self.workspace.now(),
        };
        let (number, id) = tx.insert_run(&run).await?;
        Ok(Run {
            number,
            id,
            scope: self.options.full.then_some(number),
        })
    }

    /// Records the run's end, with what it has done, and moves the head.
    pub(crate) async fn close_run(
        self,
        tx: &mut Tx,
        run: Run,
        work: Counts,
    ) -> Result<BuildReport, EngineError> {
        let case = &self.permitted.case;
        let root = tx
            .result(case.case_no, &self.tree.root, run.scope)
            .await?
            .ok_or_else(|| {
                StoreError::Damaged(format!(
                    "the result of root {} is gone right after it was made",
                    self.tree.root
                ))
            })?;
        let now = self.workspace.now();
        let counts = Counts {
            nodes: self.nodes,
            reused: self.nodes.saturating_sub(work.recomputed),
            ..work
        };
        let report = BuildReport {
            run_id: run.id,
            status: root.result.status,
            root: self.tree.root,
            event: case.last_event,
            counts,
            invalidation: self.invalidation,
            plan_seconds: self.plan_seconds,
            seconds: self.begun.elapsed().as_secs_f64(),
        };
        tx.finish_run(run.number, now, &serde_json::to_string(&report)?)
            .await?;
        let built = Built {
            root: self.tree.root,
            event: case.last_event,
            context: self.context.digest(),
            run_no: run.number,
            at: now,
        };
        let generator = self.options.generator.name();
        let known = tx
            .head(case.case_no, self.principal, Some(generator))
            .await?;
        if let Some(mut head) = known
            && head
                .built
                .as_ref()
                .is_none_or(|known| known.event <= built.event)
        {
            head.built = Some(built);
            tx.save_head(case.case_no, self.principal, &head).await?;
        }
        Ok(report)
    }

    async fn make_leaves(&self, tx: &mut Tx, group: &[Todo]) -> Result<Made, EngineError> {
        let leaves: Vec<&LeafEntry> = leaves_of(group).collect();
        let digests: BTreeSet<TextDigest> = leaves
            .iter()
            .filter(|leaf| leaf.segment.is_some())
            .map(|leaf| leaf.state.text_sha256)
            .collect();
        let texts = tx.texts(&digests.into_iter().collect::<Vec<_>>()).await?;
        let profile = &self.profile;
        let indexed: HashMap<&TextDigest, (&str, CodePointIndex)> = texts
            .par_iter()
            .map(|(digest, text)| (digest, (text.as_str(), CodePointIndex::new(text))))
            .collect();
        leaves
            .par_iter()
            .map(|leaf| {
                let Some(segment) = leaf.segment else {
                    return Ok((
                        leaf.key,
                        Arc::new(NodeResult::empty(NodeStatus::Ineligible)),
                    ));
                };
                let (text, index) = &indexed[&leaf.state.text_sha256];
                let text = index.slice(text, segment).map_err(|error| {
                    StoreError::Damaged(format!("segment of {}: {error}", leaf.state.doc_id))
                })?;
                let result = extract_leaf(
                    profile,
                    LeafInput {
                        state: &leaf.state,
                        segment,
                        text,
                    },
                );
                Ok((leaf.key, Arc::new(result)))
            })
            .collect()
    }

    async fn make_reductions(
        &mut self,
        tx: &mut Tx,
        group: &[Todo],
        mut made: Made,
        pending: &mut Pending,
        scope: Option<i64>,
    ) -> Result<Made, EngineError> {
        pending.extend(made.iter().cloned());
        for one in group {
            if let Todo::Reduction(key) = one {
                let result = Arc::new(self.make_reduction(tx, *key, pending, scope).await?);
                pending.insert(*key, Arc::clone(&result));
                made.push((*key, result));
            }
        }
        Ok(made)
    }

    async fn make_reduction(
        &mut self,
        tx: &mut Tx,
        key: NodeKey,
        pending: &mut Pending,
        scope: Option<i64>,
    ) -> Result<NodeResult, EngineError> {
        let case_no = self.case_no();
        fetch(tx, case_no, &mut self.tree.cache, key).await?;
        let page = cached(&self.tree.cache, key)?;
        let before = self
            .cutoff
            .result(tx, case_no, &self.tree.cache, key, &page)
            .await?;
        if let Some(before) = before {
            for entry in &page.entries {
                pending.remove(&entry.key());
            }
            return Ok(before);
        }
        let mut keys: Vec<NodeKey> = page.entries.iter().map(Entry::key).collect();
        if self.profile.tree.children == ChildOrder::KeyOrder {
            keys.sort_unstable();
        }
        let absent: Vec<NodeKey> = keys
            .iter()
            .filter(|key| !pending.contains_key(key))
            .copied()
            .collect();
        for stored in tx.results(case_no, &absent, scope).await? {
            pending.insert(stored.key, Arc::new(stored.result));
        }
        let children: Option<Vec<&NodeResult>> = keys
            .iter()
            .map(|key| pending.get(key).map(AsRef::as_ref))
            .collect();
        let children = children
            .ok_or_else(|| StoreError::Damaged(format!("a child of node {key} has no result")))?;
        let result = reduce(&self.profile, &children);
        self.cutoff.note(tx, case_no, key, &page, &result).await?;
        for key in keys {
            pending.remove(&key);
        }
        Ok(result)
    }
}

pub(crate) fn cached(
    cache: &PageCache,
    key: NodeKey,
) -> Result<std::sync::Arc<factum_graph::Page>, StoreError> {
    cache
        .get(&key)
        .map_err(|missing| StoreError::Damaged(missing.to_string()))
}
