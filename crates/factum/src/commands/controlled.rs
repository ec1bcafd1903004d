//! The controlled experiment's commands.

use std::path::Path;

use anyhow::Result;
use factum_engine::transformation::Generator;
use factum_eval::controlled::corpus::CorpusError;
use factum_eval::controlled::folder::{Folder, FolderError};
use factum_eval::controlled::generate::{generate, write};
use factum_eval::controlled::gold::Gold;
use factum_eval::controlled::markdown::markdown;
use factum_eval::controlled::page::page;
use factum_eval::controlled::protocol::{Part, Selection};
use factum_eval::controlled::report::report;
use factum_eval::controlled::review::{ReviewFinding, record_review, sample};
use factum_eval::controlled::run::{ExperimentProfile, RunError, RunOptions, run};
use serde_json::json;

use super::clock;
use crate::cli::{
    ControlledCommand, ControlledPart, ControlledProfile, ControlledReportArgs, ControlledRunArgs,
};
use crate::failure::{BadInput, Failed};
use crate::models::{Named, Shelf};
use crate::output::Output;
use crate::progress::Terminal;

pub(super) async fn controlled(command: ControlledCommand, output: &Output) -> Result<u8> {
    match command {
        ControlledCommand::Generate { out, seed } => make(&out, seed, output),
        ControlledCommand::Run(arguments) => build(arguments, output).await,
        ControlledCommand::Report(arguments) => tell(&arguments, output),
        ControlledCommand::Review {
            out,
            reviewer,
            findings,
        } => review(&out, reviewer.as_deref(), findings.as_deref(), output),
    }
}

fn make(out: &Path, seed: u64, output: &Output) -> Result<u8> {
    let made = generate(seed);
    write(out, &made).map_err(|error| match error {
        CorpusError::Exists(_) => BadInput(
            error.to_string(),
            Some("give another folder; nothing is written over".to_owned()),
        ),
        other => BadInput::of(other),
    })?;
    let digest = made.corpus.digest()?;
    let value = json!({
        "seed": seed,
        "inputs": out.join("inputs"),
        "gold": out.join("gold"),
        "cases": made.corpus.cases.len(),
        "texts": made.files.len(),
        "corpus_sha256": digest,
    });
    output.result("factum/controlled-corpus-made/1", &value, || {
        format!(
            "{} case files with {} texts in {}, what is true of them in {}. Corpus {digest}.\n",
            made.corpus.cases.len(),
            made.files.len(),
            out.join("inputs").display(),
            out.join("gold").display(),
        )
    })?;
    Ok(0)
}

async fn build(arguments: ControlledRunArgs, output: &Output) -> Result<u8> {
    let named = Named::parse(&arguments.generator)?;
    let generator = if named == Named::Extractive {
        Generator::Extractive
    } else {
        let shelf = Shelf::open()?;
        tokio::task::spawn_blocking(move || shelf.load(&named)).await??
    };
    let options = RunOptions {
        corpus: arguments.corpus,
        out: arguments.out.clone(),
        generator,
        profile: match arguments.profile {
            ControlledProfile::Controlled => ExperimentProfile::Controlled,
            ControlledProfile::Grounded => ExperimentProfile::Grounded,
        },
        selection: Selection {
            only: arguments.only.map(|part| match part {
                ControlledPart::Initial => Part::Initial,
                ControlledPart::Events => Part::Events,
                ControlledPart::Exercise => Part::Exercise,
            }),
            cases: arguments.case,
            events: usize::from(arguments.events),
        },
        parallel: usize::from(arguments.parallel),
        clock: clock(),
    };
    let watcher = Terminal::new("building");
    let outcome = run(options, &watcher).await;
    drop(watcher);
    let summary = outcome.map_err(failure)?;
    output.result("factum/controlled-run/1", &summary, || {
        format!(
            "{} of {} steps recorded. `factum experiment controlled report {} --gold GOLD` says what they come to.\n",
            summary.recorded,
            summary.steps,
            arguments.out.display(),
        )
    })?;
    Ok(0)
}

fn tell(arguments: &ControlledReportArgs, output: &Output) -> Result<u8> {
    let folder = Folder::open(&arguments.out).map_err(|error| failure(error.into()))?;
    let gold = Gold::read(&arguments.gold).map_err(|error| failure(error.into()))?;
    let found = report(&folder, &gold).map_err(failure)?;
    output.result("factum/experiment/1", &found, || {
        if arguments.html {
            page(&found)
        } else {
            markdown(&found)
        }
    })?;
    Ok(0)
}

fn review(
    out: &Path,
    reviewer: Option<&str>,
    findings: Option<&Path>,
    output: &Output,
) -> Result<u8> {
    let folder = Folder::open(out).map_err(|error| failure(error.into()))?;
    let (Some(reviewer), Some(path)) = (reviewer, findings) else {
        let sample = sample(&folder).map_err(|error| failure(error.into()))?;
        let sample = sample.ok_or_else(|| BadInput("there is no sample yet".to_owned(), Some("it is there once the first case file for testing went through its three events".to_owned())))?;
        output.document("factum/review-sample/1", serde_json::to_value(sample)?);
        return Ok(0);
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        BadInput(
            format!("{}: {error}", path.display()),
            Some("give a JSON file that can be read".to_owned()),
        )
    })?;
    let findings: Vec<ReviewFinding> = serde_json::from_str(&text).map_err(|error| {
        BadInput(
            format!("{}: {error}", path.display()),
            Some(
                "it is a JSON list of {\"claim\": 1, \"verdict\": \"right\", \"note\": \"...\"}"
                    .to_owned(),
            ),
        )
    })?;
    let name = record_review(&folder, reviewer, clock()(), findings).map_err(|error| {
        let FolderError::Findings(_) = &error else {
            return failure(error.into());
        };
        let hint = "`factum experiment controlled review DIR` prints the sample";
        BadInput(
            format!("{}: {error}", path.display()),
            Some(hint.to_owned()),
        )
        .into()
    })?;
    let value = json!({"review": name});
    output.result("factum/review-recorded/1", &value, || {
        format!("Recorded as {name}.\n")
    })?;
    Ok(0)
}

/// Where an error of the experiment belongs.
fn failure(error: RunError) -> anyhow::Error {
    let message = error.to_string();
    let bad = |hint: &str| BadInput(message.clone(), Some(hint.to_owned())).into();
    match error {
        RunError::Engine(error) => error.into(),
        RunError::Incomplete { .. } => Failed(
            message,
            "what was finished is recorded; the same command goes on with the rest".to_owned(),
        )
        .into(),
        RunError::GoldWithinReach(_) => bad(
            "give the folder of the inputs alone, and keep gold out of it and of the folder for the records",
        ),
        RunError::Folder(FolderError::Other { .. }) => {
            bad("an experiment goes on with what it began with; give another --out for another one")
        }
        RunError::Folder(FolderError::Foreign(_)) => {
            bad("give a folder that is empty or not there yet")
        }
        RunError::Folder(FolderError::NoExperiment(_)) => {
            bad("`factum experiment controlled run` makes one")
        }
        RunError::Folder(FolderError::Damaged(_)) => {
            bad("`factum verify DIR` lists all that is damaged")
        }
        RunError::Nothing => bad(
            "events are in the case files for testing, S-010 to S-029; the exercise is on S-037",
        ),
        RunError::Busy(_) => bad("wait for it, or stop it; what it finished is kept"),
        RunError::Corpus(_) | RunError::UnknownCase(_) | RunError::NotEnough { .. } => bad(
            "`factum experiment controlled generate` makes a corpus; its inputs and its gold go together",
        ),
        RunError::Folder(FolderError::Malformed { .. }) => bad(
            "nothing was changed; correct the file, or make the experiment again in another folder",
        ),
        RunError::Folder(FolderError::Io { .. }) => bad("check the path and its rights"),
        RunError::Folder(_) | RunError::Events(_) | RunError::Id(_) | RunError::Json(_) => {
            anyhow::anyhow!(message)
        }
    }
}
