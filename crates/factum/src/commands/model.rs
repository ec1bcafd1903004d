//! `factum model list | pull | check`.

use anyhow::Result;
use factum_model::openai::CheckReport as ServerReport;
use factum_model::openai::check::Finding as ServerFinding;
use factum_model::pins::{ListedModel, PullProgress, PullTools, Pulled, State};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::cli::ModelCommand;
use crate::failure::BadInput;
use crate::models::{Named, Shelf, suggestion};
use crate::moment::rfc_3339;
use crate::output::Output;
use crate::signals::stop_token;

use super::clock;

pub(super) async fn model(command: ModelCommand, output: &Output) -> Result<u8> {
    let shelf = Shelf::open()?;
    match command {
        ModelCommand::List => list(&shelf, output),
        ModelCommand::Pull { name } => pull(shelf, name, output).await,
        ModelCommand::Check { name } => check(shelf, &name, output).await,
    }
}

fn list(shelf: &Shelf, output: &Output) -> Result<u8> {
    let registry = shelf.registry()?;
    let models = registry.list();
    let folder = registry.folder().display().to_string();
    let body = json!({"folder": folder, "models": models.iter().map(listed).collect::<Vec<_>>()});
    output.result("factum/models/1", &body, || {
        let mut out = String::new();
        for model in &models {
            out.push_str(&format!(
                "{:<28} {:>8} MB  {:<11} {:<8} {}\n",
                model.name,
                model.size / 1_000_000,
                model.licence,
                state(model.state),
                model.source,
            ));
        }
        out.push_str(&format!("Files are kept in {folder}.\n"));
        out
    })?;
    Ok(0)
}

const fn state(state: State) -> &'static str {
    match state {
        State::Absent => "absent",
        State::Present => "present",
        State::Damaged => "damaged",
    }
}

fn listed(model: &ListedModel) -> Value {
    json!({
        "name": model.name,
        "licence": model.licence,
        "size": model.size,
        "source": model.source.to_string(),
        "format": model.format,
        "state": state(model.state),
    })
}

async fn pull(shelf: Shelf, name: String, output: &Output) -> Result<u8> {
    let cancel = stop_token();
    let bar = bar();
    let watched = bar.clone();
    let at = rfc_3339(clock()());
    let pulled = tokio::task::spawn_blocking(move || -> Result<Pulled, BadInput> {
        let mut progress = |step: PullProgress| match step {
            PullProgress::Fetching { file, done, total } => {
                watched.set_message(format!("fetching {file}"));
                watched.set_length(total.unwrap_or(done));
                watched.set_position(done);
            }
            PullProgress::Verifying { file } => watched.set_message(format!("verifying {file}")),
        };
        let tools = PullTools::default();
        shelf
            .registry()?
            .pull(&name, &tools, &at, &mut progress, &cancel)
            .map_err(|error| BadInput::pin(&error))
    })
    .await??;
    bar.finish_and_clear();
    let model = &pulled.model;
    let files: Vec<Value> = model
        .files
        .iter()
        .map(|file| json!({"name": file.name, "size": file.size, "sha256": file.sha256.to_hex()}))
        .collect();
    let body = json!({
        "name": model.name,
        "path": model.path,
        "already": pulled.already,
        "trusted": pulled.trusted,
        "files": files,
    });
    output.result("factum/pulled/1", &body, || {
        let mut out = String::new();
        for file in &model.files {
            out.push_str(&format!("{}  {}  {} bytes\n", file.sha256.to_hex(), file.name, file.size));
        }
        for file in &pulled.trusted {
            out.push_str(&format!(
                "The digest of {file} was not known before: what came was trusted, and is recorded.\n"
            ));
        }
        let word = if pulled.already { "is there already" } else { "is there" };
        out.push_str(&format!("{} {word}.\n", model.name.as_deref().unwrap_or("The model")));
        out
    })?;
    Ok(0)
}

async fn check(shelf: Shelf, name: &str, output: &Output) -> Result<u8> {
    if name.starts_with("openai:") {
        return check_server(&shelf, name, output).await;
    }
    let cancel = stop_token();
    let name = name.strip_prefix("local:").unwrap_or(name).to_owned();
    let asked = name.clone();
    let report = tokio::task::spawn_blocking(move || {
        shelf
            .registry()?
            .check(&asked, &cancel)
            .map_err(|error| BadInput::pin(&error))
    })
    .await??;
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let facts = &report.facts;
    let body = json!({
        "name": name,
        "sound": report.is_clean(),
        "findings": findings,
        "architecture": facts.architecture,
        "tensors": facts.tensors,
        "parameters": facts.parameters,
        "context_length": facts.context_length,
        "tied": facts.tied,
        "tokenizer_sha256": facts.tokenizer.map(|digest| digest.to_hex()),
        "template_sha256": facts.template.map(|digest| digest.to_hex()),
    });
    output.result("factum/model-check/1", &body, || {
        let mut out = String::new();
        for finding in &findings {
            out.push_str(&format!("{finding}\n"));
        }
        out.push_str(&if findings.is_empty() {
            format!("{name} is sound: every tensor is there and none else, and its digests are as pinned.\n")
        } else {
            format!("{name} is not to be used: {} findings.\n", findings.len())
        });
        out
    })?;
    Ok(u8::from(!report.is_clean()))
}

async fn check_server(shelf: &Shelf, name: &str, output: &Output) -> Result<u8> {
    let Named::OpenAi { url, model } = Named::parse(name)? else {
        return Err(BadInput(format!("{name:?} is no server"), None).into());
    };
    let options = shelf.openai_options(&url, &model, true)?;
    let report = factum_model::openai::check(&options)
        .await
        .map_err(BadInput::of)?;
    let usable = report.recommended_mode.is_some();
    output.result("factum/server-check/1", &report, || server_text(&report))?;
    Ok(u8::from(!usable))
}

fn server_text(report: &ServerReport) -> String {
    let word = |finding: &ServerFinding| match finding {
        ServerFinding::Works => "works".to_owned(),
        ServerFinding::Differs { message } | ServerFinding::Failed { message, .. } => {
            message.clone()
        }
    };
    let mut out = format!("{} on {}\n", report.model, report.url);
    out.push_str(&format!("listed: {}\n", word(&report.listed)));
    for mode in &report.modes {
        out.push_str(&format!("{}: {}\n", mode.mode.word(), word(&mode.finding)));
    }
    match suggestion(report) {
        Some(settings) => {
            out.push_str("\nTo use it so, put this into settings.toml in the models' folder:\n\n");
            out.push_str(&settings);
        }
        None => out.push_str("It can't be used.\n"),
    }
    out
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) =
        ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes} {eta} left")
    {
        bar.set_style(style);
    }
    bar
}
