//! `factum eval run | diff | schema | support`: evaluation needs no workspace.

mod args;
mod providers;
mod study;
mod text;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use factum_engine::EngineError;
use factum_eval::Report;
use factum_eval::cache::Cache;
use factum_eval::fixture::SCHEMA;
use factum_eval::paired;
use factum_eval::report::history::{self, HistoryError, Record};
use factum_eval::report::{html, junit, markdown};
use factum_eval::run::{Choice, Loaded, Progress, RunError, RunOptions, files, load, run};
use factum_eval::score_name::SCORER_VERSION;
use serde_json::json;

use super::clock;
use crate::failure::{BadInput, Failed};
use crate::output::{Output, warn};
use crate::progress::Terminal;

pub(crate) use args::EvalCommand;
use args::RunArgs;

pub(super) async fn eval(command: EvalCommand, output: &Output) -> Result<u8> {
    match command {
        EvalCommand::Run(args) => run_fixtures(*args, output).await,
        EvalCommand::Diff {
            before,
            after,
            seed,
        } => diff(&before, &after, seed, output),
        EvalCommand::Schema => {
            output.raw(SCHEMA);
            Ok(0)
        }
        EvalCommand::Support { data, seed } => study::support(data, seed, output),
    }
}

/// A run's progress, on the terminal.
struct Watched(Terminal);

impl Progress for Watched {
    fn progress(&self, done: usize, all: usize) {
        factum_engine::build::Watcher::progress(&self.0, done as u64, all as u64);
    }

    fn stop(&self) -> bool {
        factum_engine::build::Watcher::stop(&self.0)
    }

    fn warn(&self, message: &str) {
        warn(&format!("factum: {message}"));
    }
}

async fn run_fixtures(args: RunArgs, output: &Output) -> Result<u8> {
    let at = clock()();
    let baseline = match &args.gates.baseline {
        Some(name) => Some((
            scores_of(name, history::read_baseline(name))?.scores,
            args.gates.tolerance,
        )),
        None => None,
    };
    let watched = Watched(Terminal::new("evaluating"));
    let provider = providers::provider(&args, watched.0.stop_flag()).await?;
    let profile = provider.profile.clone();
    let options = RunOptions {
        jobs: args.jobs.map_or_else(processors, usize::from),
        repeats: args.repeats,
        seed: args.seed,
        gates: args.gates.gates.clone(),
        baseline,
        allow_unmeasured: args.gates.allow_unmeasured,
        check_expected: args.provider == "stub",
        cache: cache(&args),
        profile,
        commit: args.commit.clone().or_else(commit_here),
        at,
    };
    let choice = Choice {
        tags: args.tag.clone(),
        names: args.filter.clone(),
        shard: args.shard,
    };
    let done = tokio::task::block_in_place(|| -> Result<(Loaded, Report), RunError> {
        let files = files(&args.paths)?;
        let loaded = load(&files, &choice, processors())?;
        if loaded.fixtures.is_empty() && loaded.bad.is_empty() {
            warn(&why_empty(files.len()));
        }
        let report = run(&loaded, provider.provider.as_ref(), &options, &watched)?;
        Ok((loaded, report))
    });
    drop(watched);
    let (loaded, report) = done.map_err(run_error)?;
    let value = serde_json::to_value(&report)?;
    let told = |report: &Report| output.result("factum/eval/1", &value, || text::report(report));
    // What was found is told even where a report can't be written.
    if let Err(error) = write_reports(&args, &report, &loaded) {
        told(&report)?;
        let hint = "the scores are above; give a folder that is there and can be written";
        return Err(Failed(format!("{error:#}"), hint.to_owned()).into());
    }
    told(&report)?;
    Ok(report.exit_code)
}

fn why_empty(files: usize) -> String {
    if files == 0 {
        "factum: there are no fixtures: no JSON or YAML file is there".to_owned()
    } else {
        format!(
            "factum: none of {files} fixtures has that tag, that name and a place in that shard"
        )
    }
}

fn run_error(error: RunError) -> anyhow::Error {
    match error {
        RunError::Stopped => EngineError::Interrupted.into(),
        RunError::Path { .. } => BadInput::of(error).into(),
        RunError::Threads(_) => anyhow::Error::msg(error.to_string()),
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn cache(args: &RunArgs) -> Option<Cache> {
    if args.no_cache {
        return None;
    }
    let folder = args.cache.clone().or_else(cache_folder)?;
    Some(Cache::new(folder, args.refresh))
}

/// The user's cache folder, where there is one.
fn cache_folder() -> Option<PathBuf> {
    let filled = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = match filled("XDG_CACHE_HOME") {
        Some(base) => PathBuf::from(base),
        None => PathBuf::from(filled("HOME")?).join(".cache"),
    };
    Some(base.join("factum").join("eval"))
}

/// The revision of the git repository here, where there is one.
fn commit_here() -> Option<String> {
    let found = std::process::Command::new("git")
        .args(["rev-parse", "--verify", "--quiet", "HEAD"])
        .stderr(std::process::Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(found.stdout).ok()?;
    let text = text.trim();
    (found.status.success() && !text.is_empty()).then(|| text.to_owned())
}

fn write_reports(args: &RunArgs, report: &Report, loaded: &Loaded) -> Result<()> {
    let reports = &args.reports;
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).with_context(|| format!("{} can't be written", path.display()))
    };
    if let Some(path) = &reports.report {
        write(path, report.to_json()?)?;
    }
    if let Some(path) = &reports.junit {
        write(path, junit::junit(report))?;
    }
    if let Some(path) = &reports.markdown {
        write(path, markdown::markdown(report))?;
    }
    if let Some(path) = &reports.html {
        write(path, html::page(report, &loaded.fixtures))?;
    }
    if let Some(path) = &reports.history {
        Record::of(report)
            .append(path)
            .with_context(|| format!("{} can't be written", path.display()))?;
    }
    Ok(())
}

fn scores_of(
    name: &str,
    read: Result<history::Named, HistoryError>,
) -> Result<history::Named, BadInput> {
    let error = match read {
        Ok(found) => {
            if found.scorer_version != SCORER_VERSION {
                warn(&format!(
                    "factum: {name} was scored by version {} of the scorers, this is {SCORER_VERSION}: scores may differ for that alone",
                    found.scorer_version
                ));
            }
            return Ok(found);
        }
        Err(error) => error,
    };
    let hint = match &error {
        HistoryError::Neither { .. } => Some(
            "`factum eval run ... --json > FILE` or `--report FILE` writes a report, `--history FILE` a history",
        ),
        HistoryError::NonePassed { .. } => Some("name the record to hold this one against: FILE#N"),
        HistoryError::NoRecord { .. } => Some("records are counted from 1"),
        HistoryError::Unreadable { .. } => None,
    };
    Err(BadInput(error.to_string(), hint.map(str::to_owned)))
}

fn diff(before: &str, after: &str, seed: u64, output: &Output) -> Result<u8> {
    let scores = |name: &str| scores_of(name, history::read(name));
    let (one, two) = (scores(before)?, scores(after)?);
    let diff = paired::diff(&one.scores, &two.scores, seed);
    let mut value = serde_json::to_value(&diff)?;
    value["before"] = json!(one.label);
    value["after"] = json!(two.label);
    output.result("factum/eval-diff/1", &value, || {
        text::diff(&diff, &one.label, &two.label)
    })?;
    Ok(0)
}

/// The limit as the providers take it.
fn limit(args: &RunArgs) -> Duration {
    Duration::from_secs(args.timeout)
}
