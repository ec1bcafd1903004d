//! Makes the experiment's builds and records them.
//!
//! Incremental, full and baseline builds have workspaces of their own, so that a full build can neither read
//! nor copy what an incremental one made. What is recorded is not built again; a run that was stopped goes on
//! where it stopped.

mod case;
mod gold_guard;
mod profile;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use factum_base::{BodyDigest, IdError, PrincipalId, canonical_json};
use factum_engine::build::Watcher;
use factum_engine::transformation::{Generator, ModelShelf};
use factum_engine::workspace::Clock;
use factum_engine::{EngineError, OWNER, Workspace};
use factum_model::ModelIdentity;
use futures_util::StreamExt as _;
use serde::Serialize;
use serde_json::json;
use thiserror::Error;

pub use gold_guard::find_gold;
pub use profile::ExperimentProfile;

use super::corpus::{CaseFile, Corpus, CorpusError};
use super::folder::{EXPERIMENT_FORMAT, Experiment, Folder, FolderError, io, write_whole};
use super::measure::metrics;
use super::protocol::{EXERCISE_CASE, Kind, Part, Selection, Step};
use super::review::record_sample;
use case::CaseRun;

/// What is to be run.
#[derive(Clone)]
pub struct RunOptions {
    /// The folder of `corpus.json`.
    pub corpus: PathBuf,
    /// Where records go.
    pub out: PathBuf,
    /// What makes the claims.
    pub generator: Generator,
    /// How.
    pub profile: ExperimentProfile,
    /// What of it is wanted.
    pub selection: Selection,
    /// Case files built at the same time.
    pub parallel: usize,
    /// The time.
    pub clock: Clock,
}

/// What a run has come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunSummary {
    /// Where the records are.
    pub out: PathBuf,
    /// Steps that were wanted.
    pub steps: u64,
    /// Those of them that are recorded.
    pub recorded: u64,
}

/// Why the experiment can't be run, or not to its end.
#[derive(Debug, Error)]
pub enum RunError {
    /// The corpus.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The folder for the records.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Gold can be read from where the builds work.
    #[error("gold lies within reach of the builds, at {0}")]
    GoldWithinReach(PathBuf),
    /// Another process is at work on the folder.
    #[error("another process works on {0}")]
    Busy(PathBuf),
    /// A case file that was asked for is not in the corpus.
    #[error("the corpus has no case file {0:?}")]
    UnknownCase(String),
    /// None of the case files asked for has such a step.
    #[error("there is no step of that part in the case files asked for")]
    Nothing,
    /// The corpus is not as the protocol needs it.
    #[error("{case_id} has no {what}, which the protocol needs")]
    NotEnough {
        /// The case file.
        case_id: String,
        /// What it lacks.
        what: String,
    },
    /// The case file's events are not those of the protocol.
    #[error("the events of {0} in the workspace are not those of the protocol")]
    Events(String),
    /// Some builds got no whole answers. The rest is recorded, and another run goes on.
    #[error("{undone} of {steps} steps are not done, since answers were lost (the first: {first})")]
    Incomplete {
        /// Steps without a record.
        undone: u64,
        /// Steps wanted.
        steps: u64,
        /// What happened first.
        first: Box<EngineError>,
    },
    /// A malformed id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// Something can't be written as JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// A workspace for one kind of build.
struct Bench {
    kind: Kind,
    workspace: Workspace,
    generator: Generator,
}

/// Knows the one model of the experiment.
struct OneModel {
    name: String,
    identity: ModelIdentity,
}

impl ModelShelf for OneModel {
    fn identity(&self, name: &str) -> Result<ModelIdentity, String> {
        if name == self.name {
            Ok(self.identity.clone())
        } else {
            Err("it is not the experiment's".to_owned())
        }
    }
}

/// All that the builds share.
struct Bound<'a> {
    folder: &'a Folder,
    options: &'a RunOptions,
    corpus_folder: PathBuf,
    benches: Vec<Bench>,
    owner: PrincipalId,
    reader: PrincipalId,
    progress: &'a Overall<'a>,
}

/// Progress over all builds.
struct Overall<'a> {
    watcher: &'a dyn Watcher,
    done: AtomicU64,
    all: u64,
}

impl Overall<'_> {
    fn add(&self, nodes: u64) {
        let done = self.done.fetch_add(nodes, Ordering::Relaxed) + nodes;
        self.watcher.progress(done.min(self.all), self.all);
    }
}

/// Runs what is wanted and not recorded yet.
///
/// # Errors
/// See [`RunError`]. What was finished is recorded.
pub async fn run(options: RunOptions, watcher: &dyn Watcher) -> Result<RunSummary, RunError> {
    for reach in [&options.corpus, &options.out] {
        if let Some(found) = find_gold(reach)? {
            return Err(RunError::GoldWithinReach(found));
        }
    }
    let corpus = Corpus::read(&options.corpus)?;
    for wanted in &options.selection.cases {
        if !corpus.cases.iter().any(|case| case.case_id == *wanted) {
            return Err(RunError::UnknownCase(wanted.clone()));
        }
    }
    let wanted: Vec<(&CaseFile, Vec<Step>)> = corpus
        .cases
        .iter()
        .map(|case| (case, options.selection.steps(case)))
        .filter(|(_, steps)| !steps.is_empty())
        .collect();
    if wanted.is_empty() {
        return Err(RunError::Nothing);
    }
    let folder = prepare_folder(&options, &corpus)?;
    let _lock = lock(&folder)?;
    let steps = || wanted.iter().flat_map(|(_, steps)| steps);
    let overall = Overall {
        watcher,
        done: AtomicU64::new(0),
        all: steps().map(|step| step.nodes()).sum(),
    };
    let bound = Bound {
        folder: &folder,
        options: &options,
        corpus_folder: folder.corpus(),
        benches: benches(&folder, &options).await?,
        owner: PrincipalId::new(OWNER)?,
        reader: PrincipalId::new(super::protocol::READER)?,
        progress: &overall,
    };
    let outcome = bound.all(&corpus, &wanted).await;
    let closed = metrics(&folder).map(|found| canonical_json(&found));
    for bench in bound.benches {
        bench.workspace.close().await;
    }
    // After a stop, too, the figures are those of what is recorded.
    let kept = closed.and_then(|text| Ok(folder.put(&[("metrics.json".to_owned(), text?)])?));
    let first = outcome?;
    kept?;
    let mut recorded = 0;
    for case in folder.cases()? {
        let own = wanted
            .iter()
            .find(|(wanted, _)| wanted.case_id == case.case_id);
        let done = |step: &&Step| case.steps.iter().any(|record| record.step == **step);
        recorded += own.map_or(0, |(_, steps)| steps.iter().filter(done).count() as u64);
    }
    let all = steps().count() as u64;
    if let Some(first) = first {
        let undone = all - recorded;
        return Err(RunError::Incomplete {
            undone,
            steps: all,
            first: Box::new(first),
        });
    }
    Ok(RunSummary {
        out: options.out.clone(),
        steps: all,
        recorded,
    })
}

impl Bound<'_> {
    /// All case files, then the exercise, which changes the profile that all share. The first lost answers, if any
    /// were.
    async fn all(
        &self,
        corpus: &Corpus,
        wanted: &[(&CaseFile, Vec<Step>)],
    ) -> Result<Option<EngineError>, RunError> {
        let main = wanted.iter().map(|(case, steps)| {
            let steps: Vec<Step> = steps
                .iter()
                .copied()
                .filter(|step| step.part() != Part::Exercise)
                .collect();
            CaseRun::new(self, case, steps).all()
        });
        let mut running =
            futures_util::stream::iter(main).buffer_unordered(self.options.parallel.max(1));
        let mut first = None;
        let mut failure = None;
        while let Some(outcome) = running.next().await {
            match outcome {
                Ok(None) => {}
                Ok(Some(lost)) => {
                    first.get_or_insert(lost);
                }
                // The others see the same flag, or fail on their own.
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        drop(running);
        if let Some(error) = failure {
            return Err(error);
        }
        record_sample(self.folder, corpus)?;
        let exercise = wanted
            .iter()
            .find(|(case, _)| case.case_id == EXERCISE_CASE);
        if let (Some((case, steps)), None) = (exercise, &first) {
            let steps: Vec<Step> = steps
                .iter()
                .copied()
                .filter(|step| step.part() == Part::Exercise)
                .collect();
            if !steps.is_empty() {
                return CaseRun::new(self, case, steps).exercise().await;
            }
        }
        Ok(first)
    }

    fn bench(&self, kind: Kind) -> Option<&Bench> {
        self.benches.iter().find(|bench| bench.kind == kind)
    }
}

/// The folder with its copy of the inputs and the record of what is run.
fn prepare_folder(options: &RunOptions, corpus: &Corpus) -> Result<Folder, RunError> {
    let folder = Folder::open_or_make(&options.out)?;
    let digest = corpus.digest()?;
    let profile = options.profile.loaded()?;
    let model = profile.model.as_ref();
    let experiment = Experiment {
        format: EXPERIMENT_FORMAT.to_owned(),
        corpus_sha256: digest,
        generator: options.generator.name().to_owned(),
        identity: match &options.generator {
            Generator::Extractive => json!({"kind": "extractive"}),
            Generator::Model(model) => serde_json::to_value(&model.identity)?,
        },
        profile: options.profile.word().to_owned(),
        profile_sha256: BodyDigest::of(canonical_json(&profile)?.as_bytes()),
        reuses_generations: model
            .is_some_and(|model| model.reuse == factum_casefile::profile::Reuse::Generations),
        factum: env!("CARGO_PKG_VERSION").to_owned(),
    };
    if folder.has("experiment.json") {
        same_experiment(&folder.experiment()?, &experiment)?;
        if !folder.has("profile.json") {
            folder.put(&[("profile.json".to_owned(), canonical_json(&profile)?)])?;
        }
        return Ok(folder);
    }
    copy_corpus(options, corpus, &folder)?;
    folder.put(&[
        ("corpus/corpus.json".to_owned(), canonical_json(corpus)?),
        ("profile.json".to_owned(), canonical_json(&profile)?),
        ("experiment.json".to_owned(), canonical_json(&experiment)?),
    ])?;
    Ok(folder)
}

fn copy_corpus(options: &RunOptions, corpus: &Corpus, folder: &Folder) -> Result<(), RunError> {
    for case in &corpus.cases {
        for version in case
            .documents
            .iter()
            .flat_map(|document| &document.versions)
        {
            let bytes = version.bytes(&options.corpus)?;
            write_whole(&folder.corpus().join(&version.path), &bytes)?;
        }
    }
    Ok(())
}

fn same_experiment(there: &Experiment, here: &Experiment) -> Result<(), FolderError> {
    let settings = [
        (
            "corpus",
            there.corpus_sha256.to_hex(),
            here.corpus_sha256.to_hex(),
        ),
        ("generator", there.generator.clone(), here.generator.clone()),
        (
            "model",
            canonical_json(&there.identity)?,
            canonical_json(&here.identity)?,
        ),
        ("profile", there.profile.clone(), here.profile.clone()),
        (
            "text of the profile",
            there.profile_sha256.to_hex(),
            here.profile_sha256.to_hex(),
        ),
        (
            "version of factum",
            there.factum.clone(),
            here.factum.clone(),
        ),
    ];
    for (what, there, here) in settings {
        if there != here {
            return Err(FolderError::Other { what, there, here });
        }
    }
    Ok(())
}

fn lock(folder: &Folder) -> Result<std::fs::File, RunError> {
    let path = folder.path().join("work").join("lock");
    let open = || {
        std::fs::create_dir_all(folder.path().join("work"))?;
        std::fs::File::create(&path)
    };
    let file = open().map_err(|error| io(&path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(RunError::Busy(folder.path().to_owned())),
        Err(std::fs::TryLockError::Error(error)) => Err(io(&path, error).into()),
    }
}

async fn benches(folder: &Folder, options: &RunOptions) -> Result<Vec<Bench>, RunError> {
    let mut kinds = vec![
        (Kind::Incremental, options.generator.clone()),
        (Kind::Full, options.generator.clone()),
    ];
    if options.generator.name() != Generator::EXTRACTIVE {
        kinds.push((Kind::Extraction, Generator::Extractive));
    }
    let mut benches = Vec::new();
    for (kind, generator) in kinds {
        let place = folder.workspace(kind);
        let clock = Arc::clone(&options.clock);
        let mut workspace = if is_workspace(&place) {
            Workspace::open(&place, clock).await?
        } else {
            Workspace::init(&place, clock).await?
        };
        options.profile.put(&workspace.profiles_folder(), false)?;
        if let Generator::Model(model) = &generator {
            workspace = workspace.with_models(Arc::new(OneModel {
                name: model.name.clone(),
                identity: model.identity.clone(),
            }));
        }
        benches.push(Bench {
            kind,
            workspace,
            generator,
        });
    }
    Ok(benches)
}

fn is_workspace(place: &Path) -> bool {
    place.join(".factum").join("factum.db").exists()
}
