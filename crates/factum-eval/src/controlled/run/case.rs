//! One case file through its steps.

use std::sync::atomic::{AtomicU64, Ordering};

use factum_base::{CaseId, DocumentId, canonical_json};
use factum_engine::EngineError;
use factum_engine::build::{BuildOptions, Watcher};
use factum_engine::history::RunLine;
use factum_engine::publish::ReadFile;
use factum_engine::serve::{RefusalStatus, Served};
use factum_graph::compare::compare_runs;
use factum_graph::run_file::RunFile;
use factum_ingest::Limits;
use serde_json::{Value, json};

use super::super::corpus::{CaseFile, Document, Version};
use super::super::folder::{BuildRecord, CASE_FORMAT, CaseRecord, StepRecord, case_name, run_name};
use super::super::protocol::{CORRECTED, EXERCISE_DOCUMENT, Kind, Part, REVOKED, Step, WITHDRAWN};
use super::{Bench, Bound, Overall, RunError};

/// A case file that is built step by step.
pub(super) struct CaseRun<'a> {
    bound: &'a Bound<'a>,
    case: &'a CaseFile,
    steps: Vec<Step>,
}

/// A build with its run.
struct Built {
    record: BuildRecord,
    run: RunFile,
}

impl<'a> CaseRun<'a> {
    pub(super) fn new(bound: &'a Bound<'a>, case: &'a CaseFile, steps: Vec<Step>) -> Self {
        Self { bound, case, steps }
    }

    /// All steps that are not recorded yet. The lost answers that stopped it, if any did.
    pub(super) async fn all(self) -> Result<Option<EngineError>, RunError> {
        let mut record = self.record()?;
        for &step in &self.steps {
            if record.steps.iter().any(|done| done.step == step) {
                self.bound.progress.add(step.nodes());
                continue;
            }
            if self.bound.progress.watcher.stop() {
                return Err(EngineError::Interrupted.into());
            }
            match self.step(step, &record).await? {
                Ok((done, runs)) => {
                    record.steps.push(done);
                    let mut files = runs;
                    files.push((case_name(&self.case.case_id), canonical_json(&record)?));
                    self.bound.folder.put(&files)?;
                }
                Err(lost) => return Ok(Some(lost)),
            }
        }
        Ok(None)
    }

    /// The exercise's steps. The second one's profile is put in place for it alone.
    pub(super) async fn exercise(self) -> Result<Option<EngineError>, RunError> {
        let (bound, case) = (self.bound, self.case);
        for &step in &self.steps {
            let changed = step == Step::ExercisePrompt;
            for bench in &bound.benches {
                let profiles = bench.workspace.profiles_folder();
                bound.options.profile.put(&profiles, changed)?;
            }
            let outcome = CaseRun::new(bound, case, vec![step]).all().await;
            for bench in &bound.benches {
                let profiles = bench.workspace.profiles_folder();
                bound.options.profile.put(&profiles, false)?;
            }
            if let Some(lost) = outcome? {
                return Ok(Some(lost));
            }
        }
        Ok(None)
    }

    fn record(&self) -> Result<CaseRecord, RunError> {
        let known = self.bound.folder.record(&case_name(&self.case.case_id))?;
        Ok(known.unwrap_or_else(|| CaseRecord {
            format: CASE_FORMAT.to_owned(),
            case_id: self.case.case_id.clone(),
            group: self.case.group,
            steps: Vec::new(),
        }))
    }

    /// One step: its builds, and the incremental one compared with the full one. The inner error is lost answers.
    async fn step(
        &self,
        step: Step,
        before: &CaseRecord,
    ) -> Result<Result<(StepRecord, Vec<(String, String)>), EngineError>, RunError> {
        let kinds: &[Kind] = match step.part() {
            Part::Initial => &[Kind::Incremental, Kind::Extraction],
            Part::Events => &[Kind::Incremental, Kind::Full, Kind::Extraction],
            Part::Exercise => &[Kind::Incremental, Kind::Full],
        };
        let counted = AtomicU64::new(0);
        let mut built = Vec::new();
        let mut lost = None;
        for bench in kinds.iter().filter_map(|&kind| self.bound.bench(kind)) {
            match self.build(bench, step, before, &counted).await {
                Ok(one) => built.push(one),
                Err(RunError::Engine(error @ EngineError::Incomplete { .. })) => {
                    lost.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        let rest = step.nodes().saturating_sub(counted.load(Ordering::Relaxed));
        if let Some(lost) = lost {
            return Ok(Err(lost));
        }
        self.bound.progress.add(rest);
        let of = |kind| built.iter().find(|one: &&Built| one.record.kind == kind);
        let comparison = match (of(Kind::Incremental), of(Kind::Full)) {
            (Some(incremental), Some(full)) => Some(compare_runs(&incremental.run, &full.run)),
            _ => None,
        };
        let mut files = Vec::with_capacity(built.len());
        for one in &built {
            files.push((one.record.file.clone(), canonical_json(&one.run)?));
        }
        let builds = built.into_iter().map(|one| one.record).collect();
        Ok(Ok((
            StepRecord {
                step,
                builds,
                comparison,
            },
            files,
        )))
    }

    async fn build(
        &self,
        bench: &Bench,
        step: Step,
        before: &CaseRecord,
        counted: &AtomicU64,
    ) -> Result<Built, RunError> {
        let case_id = CaseId::new(self.case.case_id.as_str())?;
        let (workspace, reader) = (&bench.workspace, &self.bound.reader);
        self.bring_to(bench, &case_id, step).await?;
        let served_before = workspace
            .serve(&case_id, reader, Some(bench.generator.name()))
            .await?;
        let known = self.known_run(bench, &case_id, &served_before).await?;
        let run_id = if let Some(run_id) = known {
            run_id
        } else {
            let watcher = BuildWatcher {
                overall: self.bound.progress,
                last: AtomicU64::new(0),
                counted: (bench.kind != Kind::Extraction).then_some(counted),
            };
            let options = BuildOptions {
                full: bench.kind == Kind::Full,
                generator: bench.generator.clone(),
            };
            let built = workspace.build(&case_id, reader, options, &watcher).await?;
            built.run_id
        };
        let run = workspace.export_run(&run_id, reader).await?;
        let after = workspace
            .serve(&case_id, reader, Some(bench.generator.name()))
            .await?;
        let events = workspace.export_events(&case_id, &self.bound.owner).await?;
        let attempts =
            self.runs(bench, &case_id).await?.len() as u64 - attempts_before(before, bench.kind);
        let record = BuildRecord {
            kind: bench.kind,
            file: run_name(&self.case.case_id, step, bench.kind),
            attempts,
            served_before: recorded_refusal(&run),
            served_after: served_word(&after).to_owned(),
            events: events
                .iter()
                .map(|(event, chain)| Ok(json!({"event": event, "chain": chain})))
                .collect::<Result<Vec<Value>, serde_json::Error>>()?,
        };
        Ok(Built { record, run })
    }

    async fn runs(&self, bench: &Bench, case_id: &CaseId) -> Result<Vec<RunLine>, RunError> {
        Ok(bench
            .workspace
            .history(case_id, &self.bound.reader)
            .await?
            .runs)
    }

    /// The run that made what is served now, where a stop came between the build and its record.
    async fn known_run(
        &self,
        bench: &Bench,
        case_id: &CaseId,
        served: &Served,
    ) -> Result<Option<String>, RunError> {
        let built = match served {
            Served::Current(_) => true,
            Served::Refused(refusal) => refusal.status == RefusalStatus::Invalid,
        };
        if !built {
            return Ok(None);
        }
        let runs = self.runs(bench, case_id).await?;
        let last = runs.into_iter().rev().find(|run| run.state == "finished");
        Ok(last.map(|run| run.run_id))
    }

    /// Brings the case file of a workspace to where a step builds it. Events are counted, so that it goes on
    /// wherever an earlier run was stopped.
    async fn bring_to(&self, bench: &Bench, case_id: &CaseId, step: Step) -> Result<(), RunError> {
        let (workspace, owner, reader) = (&bench.workspace, &self.bound.owner, &self.bound.reader);
        let profile = self.bound.options.profile.word();
        match workspace.new_case(owner, case_id, None, profile).await {
            Ok(()) | Err(EngineError::CaseExists(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let first = self.case.documents.len();
        let events = async || -> Result<usize, RunError> {
            Ok(workspace.export_events(case_id, owner).await?.len())
        };
        if events().await? == 0 {
            let mut files = Vec::with_capacity(first);
            for document in &self.case.documents {
                files.push(self.file(document, 1)?);
            }
            workspace.add(owner, case_id, &files, None).await?;
        }
        if events().await? == first {
            workspace.grant(owner, case_id, &[], reader).await?;
        }
        let (target, changes): (usize, &[Step]) = match step {
            Step::Initial => (0, &[]),
            Step::Corrected => (1, &[Step::Corrected]),
            Step::Withdrawn => (2, &[Step::Corrected, Step::Withdrawn]),
            Step::Revoked => (3, &[Step::Corrected, Step::Withdrawn, Step::Revoked]),
            Step::ExerciseDate | Step::ExercisePrompt => (1, &[Step::ExerciseDate]),
        };
        for (n, change) in changes.iter().enumerate() {
            if events().await? == first + 1 + n {
                self.change(bench, case_id, *change).await?;
            }
        }
        if events().await? != first + 1 + target {
            return Err(RunError::Events(self.case.case_id.clone()));
        }
        Ok(())
    }

    async fn change(&self, bench: &Bench, case_id: &CaseId, change: Step) -> Result<(), RunError> {
        let (workspace, owner) = (&bench.workspace, &self.bound.owner);
        match change {
            Step::Corrected | Step::ExerciseDate => {
                let place = if change == Step::Corrected {
                    CORRECTED
                } else {
                    EXERCISE_DOCUMENT
                };
                let file = self.file(self.document(place)?, 2)?;
                workspace.add(owner, case_id, &[file], None).await?;
            }
            Step::Withdrawn => {
                let doc_id = DocumentId::new(self.document(WITHDRAWN)?.doc_id.as_str())?;
                workspace.withdraw(owner, case_id, &doc_id).await?;
            }
            Step::Revoked => {
                let doc_id = DocumentId::new(self.document(REVOKED)?.doc_id.as_str())?;
                workspace
                    .revoke(owner, case_id, &[doc_id], &self.bound.reader)
                    .await?;
            }
            Step::Initial | Step::ExercisePrompt => {}
        }
        Ok(())
    }

    fn document(&self, place: usize) -> Result<&Document, RunError> {
        self.case
            .documents
            .get(place)
            .ok_or_else(|| RunError::NotEnough {
                case_id: self.case.case_id.clone(),
                what: format!("document {place}"),
            })
    }

    fn file(&self, document: &Document, number: u32) -> Result<(DocumentId, ReadFile), RunError> {
        let version: &Version = document
            .versions
            .iter()
            .find(|version| version.version == number)
            .ok_or_else(|| RunError::NotEnough {
                case_id: self.case.case_id.clone(),
                what: format!("version {number} of {}", document.doc_id),
            })?;
        let bytes = version.bytes(&self.bound.corpus_folder)?;
        let path = self.bound.corpus_folder.join(&version.path);
        let file = ReadFile::read(&path, bytes, &Limits::default())?;
        Ok((DocumentId::new(document.doc_id.as_str())?, file))
    }
}

fn attempts_before(record: &CaseRecord, kind: Kind) -> u64 {
    let builds = record.steps.iter().flat_map(|step| &step.builds);
    builds
        .filter(|build| build.kind == kind)
        .map(|build| build.attempts)
        .sum()
}

fn served_word(served: &Served) -> &'static str {
    match served {
        Served::Current(_) => "CURRENT",
        Served::Refused(refusal) => refusal.status.word(),
    }
}

/// What asking for the old root gave, as the build itself recorded it.
fn recorded_refusal(run: &RunFile) -> String {
    let status = run
        .invalidation
        .serve_refusal
        .as_ref()
        .and_then(|refusal| refusal["status"].as_str());
    status.unwrap_or("CURRENT").to_owned()
}

/// Adds a build's nodes to the whole.
struct BuildWatcher<'a> {
    overall: &'a Overall<'a>,
    last: AtomicU64,
    /// Where the step counts them; not for the baseline.
    counted: Option<&'a AtomicU64>,
}

impl Watcher for BuildWatcher<'_> {
    fn progress(&self, done: u64, _: u64) {
        let Some(counted) = self.counted else { return };
        let new = done.saturating_sub(self.last.swap(done, Ordering::Relaxed));
        counted.fetch_add(new, Ordering::Relaxed);
        self.overall.add(new);
    }

    fn tokens(&self, new: u64) {
        self.overall.watcher.tokens(new);
    }

    fn stop(&self) -> bool {
        self.overall.watcher.stop()
    }
}
