//! A run: fixtures found and read, outputs made or taken from where they are, scores, aggregates, gates, verdict.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use rayon::prelude::*;
use thiserror::Error;

use crate::cache::Cache;
use crate::fixture::{BadFixture, Fixture};
use crate::gates::{Facts, Gate, GateState, Verdict, judge};
use crate::outcome::{Outcome, Output, aggregates};
use crate::paired::{Scores, regressions};
use crate::provider::{Provider, ProviderError};
use crate::reading::Finding;
use crate::report::{CacheUse, Report};
use crate::score_name::SCORER_VERSION;
use crate::summary::Summary;

/// What a run is asked for.
pub struct RunOptions {
    /// Summaries made at once, at most.
    pub jobs: usize,
    /// How often each fixture is summarised.
    pub repeats: u32,
    /// The seed of bootstrap intervals.
    pub seed: u64,
    /// Gates.
    pub gates: Vec<Gate>,
    /// Scores that must not fall, and by how much a mean may.
    pub baseline: Option<(Scores, f64)>,
    /// A gate with nothing to measure is no failure.
    pub allow_unmeasured: bool,
    /// Hold scores against those that the fixtures expect of their stubs.
    pub check_expected: bool,
    /// Where outputs are kept.
    pub cache: Option<Cache>,
    /// The profile, as it is shown.
    pub profile: Option<String>,
    /// The revision of what is evaluated.
    pub commit: Option<String>,
    /// When the run began, in Unix milliseconds.
    pub at: i64,
}

/// Someone who watches a run and may stop it.
pub trait Progress: Sync {
    /// So many of so many outputs are scored.
    fn progress(&self, done: usize, all: usize);
    /// The run should stop.
    fn stop(&self) -> bool;
    /// Something that does not keep the run from going on.
    fn warn(&self, message: &str);
}

/// Why there is no run.
#[derive(Debug, Error)]
pub enum RunError {
    /// It was stopped. Outputs that were finished are kept in the cache.
    #[error("stopped; what was finished is kept in the cache")]
    Stopped,
    /// The threads could not be started.
    #[error("threads can't be started: {0}")]
    Threads(String),
    /// A path can't be read.
    #[error("{path} can't be read: {message}")]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        message: String,
    },
}

/// Which fixtures are wanted.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Those with one of these tags; all where there are none.
    pub tags: Vec<String>,
    /// Those whose name holds one of these; all where there are none.
    pub names: Vec<String>,
    /// The `n`th of `m` shards, from 1.
    pub shard: Option<(usize, usize)>,
}

impl Choice {
    fn wants(&self, fixture: &Fixture) -> bool {
        let tagged = self.tags.is_empty() || fixture.tags.iter().any(|tag| self.tags.contains(tag));
        let named = self.names.is_empty()
            || self
                .names
                .iter()
                .any(|part| fixture.name.contains(part.as_str()));
        tagged && named
    }
}

/// Fixtures as they were found.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Those that can be run, in order.
    pub fixtures: Vec<Fixture>,
    /// Files that are no fixtures.
    pub bad: Vec<BadFixture>,
}

/// The files that paths stand for: themselves, or of a folder all JSON and YAML files in it, by name.
///
/// # Errors
/// A path can't be read.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, RunError> {
    let mut all = Vec::new();
    for path in paths {
        let unreadable = |message: String| RunError::Path {
            path: path.clone(),
            message,
        };
        let found = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
        if !found.is_dir() {
            all.push(path.clone());
            continue;
        }
        let hidden = |entry: &walkdir::DirEntry| {
            entry.depth() > 0 && entry.file_name().to_string_lossy().starts_with('.')
        };
        let walk = walkdir::WalkDir::new(path).sort_by_file_name().into_iter();
        for entry in walk.filter_entry(|entry| !hidden(entry)) {
            let entry = entry.map_err(|error| unreadable(error.to_string()))?;
            if entry.file_type().is_file() && is_fixture_name(entry.path()) {
                all.push(entry.into_path());
            }
        }
    }
    // A file given twice, by itself and by its folder, is one fixture.
    let mut seen = std::collections::HashSet::new();
    all.retain(|path| seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
    Ok(all)
}

fn is_fixture_name(path: &Path) -> bool {
    crate::located::is_yaml(path)
        || path
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("json"))
}

/// Reads fixtures. Two of one name are an error of the second.
///
/// # Errors
/// The threads could not be started.
pub fn load(files: &[PathBuf], choice: &Choice, jobs: usize) -> Result<Loaded, RunError> {
    let read: Vec<Result<Fixture, BadFixture>> =
        pool(jobs)?.install(|| files.par_iter().map(|file| Fixture::open(file)).collect());
    let mut loaded = Loaded::default();
    let mut names: HashMap<String, PathBuf> = HashMap::new();
    for one in read {
        match one {
            Err(bad) => loaded.bad.push(bad),
            Ok(fixture) => {
                if let Some(first) = names.get(&fixture.name) {
                    let message = format!(
                        "the name {:?} is that of {} already",
                        fixture.name,
                        first.display()
                    );
                    loaded.bad.push(BadFixture {
                        file: fixture.file.clone(),
                        findings: vec![Finding {
                            line: 1,
                            path: "name".to_owned(),
                            message,
                        }],
                    });
                    continue;
                }
                names.insert(fixture.name.clone(), fixture.file.clone());
                if choice.wants(&fixture) {
                    loaded.fixtures.push(fixture);
                }
            }
        }
    }
    if let Some((n, of)) = choice.shard {
        let mut place = 0;
        loaded.fixtures.retain(|_| {
            place += 1;
            (place - 1) % of == n - 1
        });
    }
    Ok(loaded)
}

fn pool(jobs: usize) -> Result<rayon::ThreadPool, RunError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.max(1))
        .build()
        .map_err(|error| RunError::Threads(error.to_string()))
}

/// Runs fixtures.
///
/// # Errors
/// The run was stopped, or could not begin.
pub fn run(
    loaded: &Loaded,
    provider: &dyn Provider,
    options: &RunOptions,
    progress: &dyn Progress,
) -> Result<Report, RunError> {
    let begun = Instant::now();
    let jobs = options.jobs.min(provider.parallel()).max(1);
    let work: Vec<(&Fixture, u32)> = loaded
        .fixtures
        .iter()
        .flat_map(|fixture| (1..=options.repeats.max(1)).map(move |repeat| (fixture, repeat)))
        .collect();
    let maker = Maker {
        provider,
        options,
        progress,
        done: AtomicUsize::new(0),
        all: work.len(),
        hits: AtomicU64::new(0),
        misses: AtomicU64::new(0),
    };
    let outcomes: Vec<Option<Outcome>> = pool(jobs)?.install(|| {
        work.par_iter()
            .with_max_len(1)
            .map(|(fixture, repeat)| maker.outcome(fixture, *repeat))
            .collect()
    });
    let mut outcomes = outcomes
        .into_iter()
        .collect::<Option<Vec<Outcome>>>()
        .ok_or(RunError::Stopped)?;
    outcomes.extend(loaded.bad.iter().map(Outcome::bad));
    let cache = options
        .cache
        .as_ref()
        .filter(|_| provider.is_costly())
        .map(|_| CacheUse {
            hits: maker.hits.into_inner(),
            misses: maker.misses.into_inner(),
        });
    Ok(report(outcomes, provider, options, cache, begun))
}

fn report(
    outcomes: Vec<Outcome>,
    provider: &dyn Provider,
    options: &RunOptions,
    cache: Option<CacheUse>,
    begun: Instant,
) -> Report {
    let aggregates = aggregates(&outcomes, options.seed);
    let mut gates = judge(&options.gates, &outcomes, &aggregates);
    if let Some((baseline, tolerance)) = &options.baseline {
        gates.extend(regressions(baseline, &Scores::of(&outcomes), *tolerance));
    }
    let count = |state| gates.iter().filter(|gate| gate.state == state).count();
    let facts = Facts {
        bad_fixtures: outcomes.iter().filter(|outcome| outcome.bad).count(),
        run_errors: outcomes.iter().filter(|one| one.has_run_error()).count(),
        failed_gates: count(GateState::Failed),
        mismatched: outcomes
            .iter()
            .filter(|one| !one.mismatches.is_empty())
            .count(),
        unmeasured_gates: count(GateState::Unmeasured),
        fixtures: outcomes.iter().filter(|outcome| !outcome.bad).count(),
        allow_unmeasured: options.allow_unmeasured,
    };
    let verdict = Verdict::of(&facts);
    Report {
        provider: provider.name().to_owned(),
        identity: provider.identity(),
        profile: options.profile.clone(),
        scorer_version: SCORER_VERSION,
        commit: options.commit.clone(),
        at: options.at,
        repeats: options.repeats.max(1),
        seed: options.seed,
        seconds: begun.elapsed().as_secs_f64(),
        fixtures: outcomes,
        aggregates,
        cache,
        allow_unmeasured: options.allow_unmeasured,
        gates,
        verdict,
        exit_code: verdict.exit_code(),
    }
}

struct Maker<'r> {
    provider: &'r dyn Provider,
    options: &'r RunOptions,
    progress: &'r dyn Progress,
    done: AtomicUsize,
    all: usize,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Maker<'_> {
    /// None: the run was stopped.
    fn outcome(&self, fixture: &Fixture, repeat: u32) -> Option<Outcome> {
        if self.progress.stop() {
            return None;
        }
        let output = self.output(fixture, repeat)?;
        let outcome = Outcome::of(fixture, repeat, output, self.options.check_expected);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.progress.progress(done, self.all);
        Some(outcome)
    }

    fn output(&self, fixture: &Fixture, repeat: u32) -> Option<Output> {
        let cache = self
            .options
            .cache
            .as_ref()
            .filter(|_| self.provider.is_costly());
        let keyed = cache.and_then(|cache| {
            let key = Cache::key(fixture, self.provider, repeat).ok()?;
            Some((cache, key))
        });
        if let Some((cache, key)) = &keyed {
            if let Some((summary, seconds)) = cache.get(key) {
                self.hits.fetch_add(1, Ordering::Relaxed);
                return Some(Output {
                    summary: Ok(summary),
                    cached: true,
                    seconds,
                });
            }
            self.misses.fetch_add(1, Ordering::Relaxed);
        }
        let begun = Instant::now();
        // A fault in a provider costs its fixture and no other.
        let made = catch_unwind(AssertUnwindSafe(|| {
            self.provider.summarise(fixture, repeat)
        }))
        .unwrap_or_else(|_| Err(ProviderError::Engine("the provider broke off".to_owned())));
        let seconds = begun.elapsed().as_secs_f64();
        if let (Ok(summary), Some((cache, key))) = (&made, &keyed) {
            self.keep(cache, key, summary, seconds);
        }
        let summary = match made {
            Err(ProviderError::Stopped) => return None,
            other => other.map_err(|error| error.to_string()),
        };
        Some(Output {
            summary,
            cached: false,
            seconds,
        })
    }

    fn keep(&self, cache: &Cache, key: &str, summary: &Summary, seconds: f64) {
        if let Err(error) = cache.put(key, summary, seconds) {
            self.progress
                .warn(&format!("an output can't be kept in the cache: {error}"));
        }
    }
}
