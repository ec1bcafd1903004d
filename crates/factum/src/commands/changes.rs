//! Commands that change a workspace.

use std::path::Path;

use anyhow::Result;
use factum_base::{DocumentId, PrincipalId};
use factum_engine::publish::{Outcome, Published, ReadFile};
use factum_engine::sync::SyncReport;
use factum_engine::{EngineError, OWNER, Workspace};
use factum_ingest::Limits;
use serde_json::json;

use super::{Context, case_id, clock};
use crate::cli::{AddArgs, CaseCommand};
use crate::failure::Usage;
use crate::output::{Output, warn};
use crate::text::clean;

pub(super) async fn init(folder: &Path, principal: &PrincipalId, output: &Output) -> Result<u8> {
    if principal.as_str() != OWNER {
        return Err(EngineError::OwnerOnly(principal.clone()).into());
    }
    let workspace = Workspace::init(folder, clock()).await?;
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    output.result("factum/init/1", &json!({"folder": folder}), || {
        format!(
            "Made a workspace in {}.\nNext: factum case new CASE, then factum sync CASE FOLDER.\n",
            folder.display()
        )
    })?;
    workspace.close().await;
    Ok(0)
}

pub(super) async fn case(command: CaseCommand, context: &Context<'_>) -> Result<u8> {
    let CaseCommand::New {
        case,
        title,
        profile,
    } = command;
    let id = case_id(&case)?;
    context
        .workspace
        .new_case(&context.principal, &id, title.as_deref(), &profile)
        .await?;
    let value =
        json!({"case_id": id, "title": title.as_deref().unwrap_or(&case), "profile": profile});
    context.output.result("factum/case/1", &value, || {
        format!("Made case file {case} with profile {profile}.\nNext: factum sync {case} FOLDER\n")
    })?;
    Ok(0)
}

pub(super) async fn add(args: AddArgs, context: &Context<'_>) -> Result<u8> {
    if args.as_doc.is_some() && args.files.len() != 1 {
        return Err(Usage("--as-doc goes with one file".to_owned()).into());
    }
    context.workspace.check_may_change(&context.principal)?;
    let id = case_id(&args.case)?;
    let after = args.after.map(DocumentId::new).transpose()?;
    let mut files: Vec<(DocumentId, ReadFile)> = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let doc_id = if let Some(name) = &args.as_doc {
            DocumentId::new(name.as_str())?
        } else {
            let name = path
                .file_name()
                .ok_or_else(|| EngineError::FileName(path.clone()))?;
            factum_engine::sync::document_id(Path::new(name))?
        };
        if files.iter().any(|(known, _)| *known == doc_id) {
            return Err(EngineError::GivenTwice(doc_id).into());
        }
        let bytes = std::fs::read(path).map_err(|source| EngineError::Io {
            path: path.clone(),
            source,
        })?;
        files.push((doc_id, ReadFile::read(path, bytes, &Limits::default())?));
    }
    let outcomes = context
        .workspace
        .add(&context.principal, &id, &files, after.as_ref())
        .await?;
    context.output.result(
        "factum/add/1",
        &json!({"case_id": id, "documents": outcomes}),
        || outcomes.iter().map(outcome_line).collect(),
    )?;
    Ok(0)
}

fn outcome_line(outcome: &Outcome) -> String {
    let what = match (&outcome.what, outcome.reinstated) {
        (Published::New, _) => "added".to_owned(),
        (Published::NewVersion, false) => format!("version {}", outcome.version),
        (Published::NewVersion, true) => format!("version {}, reinstated", outcome.version),
        (Published::Unchanged, true) => "reinstated".to_owned(),
        (Published::Unchanged, false) => "unchanged; no event".to_owned(),
    };
    let mut line = format!("{}: {what}\n", clean(outcome.doc_id.as_str()));
    if outcome.withdrawn {
        line.push_str("  it is withdrawn and stays so; `factum reinstate` lets it count again\n");
    }
    for warning in &outcome.warnings {
        line.push_str(&format!("  warning: {}\n", clean(warning)));
    }
    line
}

pub(super) async fn sync(case: &str, folder: &Path, context: &Context<'_>) -> Result<u8> {
    let id = case_id(case)?;
    let report = context
        .workspace
        .sync(&context.principal, &id, folder)
        .await?;
    let mut value = serde_json::to_value(&report)?;
    value["case_id"] = json!(id);
    context
        .output
        .result("factum/sync/1", &value, || sync_text(case, &report))?;
    for refused in &report.refused {
        warn(&format!(
            "factum: {} was not read: {} ({})",
            clean(&refused.path),
            refused.message,
            refused.kind
        ));
        warn(&format!("hint: {}", refused.hint));
    }
    Ok(if report.refused.is_empty() { 0 } else { 3 })
}

fn sync_text(case: &str, report: &SyncReport) -> String {
    let mut text: String = report.published.iter().map(outcome_line).collect();
    for doc_id in &report.withdrawn {
        text.push_str(&format!(
            "{}: withdrawn, since its file is gone\n",
            clean(doc_id.as_str())
        ));
    }
    for doc_id in &report.still_withdrawn {
        text.push_str(&format!(
            "{}: stays withdrawn, though its file is there; `factum reinstate` lets it count again\n",
            clean(doc_id.as_str())
        ));
    }
    for doc_id in &report.moved {
        text.push_str(&format!("{}: another place\n", clean(doc_id.as_str())));
    }
    text.push_str(&format!(
        "{} published, {} unchanged, {} withdrawn, {} not read. The latest event is {}.\n",
        report.published.len(),
        report.unchanged,
        report.withdrawn.len(),
        report.refused.len(),
        report.event
    ));
    if !report.published.is_empty() || !report.withdrawn.is_empty() || !report.moved.is_empty() {
        text.push_str(&format!("Next: factum build {case}\n"));
    }
    text
}

pub(super) async fn set_active(
    case: &str,
    doc: &str,
    active: bool,
    context: &Context<'_>,
) -> Result<u8> {
    let (id, doc_id) = (case_id(case)?, DocumentId::new(doc)?);
    let (workspace, caller) = (&context.workspace, &context.principal);
    let event = if active {
        workspace.reinstate(caller, &id, &doc_id).await?
    } else {
        workspace.withdraw(caller, &id, &doc_id).await?
    };
    let word = if active { "reinstated" } else { "withdrawn" };
    context.output.result(
        "factum/change/1",
        &json!({"case_id": id, "doc_id": doc_id, "change": word, "events": event.into_iter().collect::<Vec<_>>()}),
        || match event {
            Some(event) => format!("{}: {word} (event {event})\n", clean(doc)),
            None if active => format!("{}: is not withdrawn; no event\n", clean(doc)),
            None => format!("{}: is withdrawn already; no event\n", clean(doc)),
        },
    )?;
    Ok(0)
}

pub(super) async fn rights(
    case: &str,
    docs: &[String],
    principal: &str,
    grant: bool,
    context: &Context<'_>,
) -> Result<u8> {
    let id = case_id(case)?;
    let docs = docs
        .iter()
        .map(|doc| DocumentId::new(doc.as_str()))
        .collect::<Result<Vec<_>, _>>()?;
    let who = PrincipalId::new(principal)?;
    let (workspace, caller) = (&context.workspace, &context.principal);
    let events = if grant {
        workspace.grant(caller, &id, &docs, &who).await?
    } else {
        workspace.revoke(caller, &id, &docs, &who).await?
    };
    let word = if grant { "granted" } else { "revoked" };
    context.output.result(
        "factum/change/1",
        &json!({"case_id": id, "docs": docs, "principal": who, "change": word, "events": events}),
        || {
            let what = if docs.is_empty() {
                "the whole case file".to_owned()
            } else {
                docs.iter()
                    .map(|doc| clean(doc.as_str()))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let numbers: Vec<String> = events.iter().map(u64::to_string).collect();
            if events.is_empty() {
                format!(
                    "{who} {} {what} already; no event\n",
                    if grant { "may see" } else { "may not see" }
                )
            } else {
                format!("{word}: {what}, {who} (event {})\n", numbers.join(", "))
            }
        },
    )?;
    Ok(0)
}
