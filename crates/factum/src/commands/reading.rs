//! Commands that read.

use std::collections::BTreeMap;

use anyhow::Result;
use factum_casefile::{Evidence, EvidenceId};
use factum_engine::EngineError;
use factum_engine::serve::{Refusal, RefusalStatus, Served};
use serde_json::{Map, Value, json};

use super::{Context, case_id};
use crate::cli::Format;
use crate::models::Named;
use crate::output::warn;
use crate::text::{self, Label, Page};
use crate::{failure, html, moment};

pub(super) async fn show(
    case: &str,
    as_of: Option<&str>,
    format: Format,
    generator: Option<&str>,
    context: &Context<'_>,
) -> Result<u8> {
    let id = case_id(case)?;
    let (workspace, caller) = (&context.workspace, &context.principal);
    let generator = generator
        .map(Named::parse)
        .transpose()?
        .map(|named| named.name());
    let outcome = match as_of {
        None => workspace
            .serve(&id, caller, generator.as_deref())
            .await
            .map(|served| (served, Label::Current)),
        Some(moment) => workspace
            .serve_as_of(&id, caller, moment::parse(moment)?)
            .await
            .map(|found| {
                let label = Label::History { event: found.event };
                (found.served, label)
            }),
    };
    let (served, label) = match outcome {
        Ok(found) => found,
        Err(error @ (EngineError::Forbidden { .. } | EngineError::SourcesHidden(_)))
            if context.output.is_json() =>
        {
            return Ok(forbidden(&error, context));
        }
        Err(error) => return Err(error.into()),
    };
    let summary = match served {
        Served::Refused(refusal) => return Ok(refuse(case, &refusal, label, context)),
        Served::Current(summary) => summary,
    };
    let places = workspace
        .places(&id, caller, summary.evidence.values())
        .await?;
    let page = Page {
        summary: &summary,
        places: &places,
        label,
    };
    if context.output.is_json() {
        context
            .output
            .document("factum/summary/1", summary_json(&page)?);
    } else {
        let text = match format {
            Format::Text => text::summary(&page),
            Format::Md => text::markdown(&page),
            Format::Html => html::page(&page),
        };
        context.output.note(text.trim_end());
    }
    Ok(0)
}

fn summary_json(page: &Page<'_>) -> Result<Value> {
    let summary = page.summary;
    let claims: Vec<Value> = summary
        .claims
        .iter()
        .map(|(text, claim)| {
            json!({"text": text, "fields": claim.fields, "evidence": claim.evidence, "support": claim.support})
        })
        .collect();
    let mut value = json!({
        "case_id": summary.case_id,
        "title": summary.title,
        "principal": summary.principal,
        "event": summary.event,
        "status": page.label.word(),
        "root": summary.root,
        "root_status": summary.status,
        "generator": summary.generator,
        "built_at": moment::rfc_3339(summary.built_at),
        "documents": summary.documents,
        "claims": claims,
        "evidence": evidence_json(&summary.evidence, page.places)?,
        "withheld": summary.withheld,
    });
    if let Label::History { event } = page.label {
        value["as_of_event"] = json!(event);
    }
    Ok(value)
}

fn evidence_json(
    evidence: &BTreeMap<EvidenceId, Evidence>,
    places: &BTreeMap<EvidenceId, factum_ingest::Location>,
) -> Result<Value> {
    let mut out = Map::new();
    for (id, one) in evidence {
        let mut value = serde_json::to_value(one)?;
        if let Some(place) = places.get(id) {
            value["place"] = json!(place.to_string());
            value["location"] = serde_json::to_value(place)?;
        }
        out.insert(id.to_string(), value);
    }
    Ok(Value::Object(out))
}

fn forbidden(error: &EngineError, context: &Context<'_>) -> u8 {
    let reason = json!({"kind": "access", "message": error.to_string()});
    let value = json!({"status": RefusalStatus::Forbidden, "reasons": [reason]});
    context.output.document("factum/summary/1", value);
    failure::tell(&error.to_string(), error.hint().as_deref());
    7
}

/// Prints a refusal and gives its exit code.
fn refuse(case: &str, refusal: &Refusal, label: Label, context: &Context<'_>) -> u8 {
    let value = serde_json::to_value(refusal).unwrap_or_default();
    context.output.json_only("factum/summary/1", value);
    warn(text::refusal(case, refusal, label).trim_end());
    match refusal.status {
        RefusalStatus::Stale | RefusalStatus::Absent => 4,
        RefusalStatus::Invalid => 5,
        RefusalStatus::Forbidden => 7,
    }
}

pub(super) async fn status(case: Option<&str>, context: &Context<'_>) -> Result<u8> {
    let (workspace, caller) = (&context.workspace, &context.principal);
    match case {
        None => {
            let cases = workspace.cases(caller).await?;
            context
                .output
                .result("factum/cases/1", &json!({"cases": cases}), || {
                    text::cases(&cases)
                })?;
        }
        Some(case) => {
            let status = workspace.status(&case_id(case)?, caller).await?;
            context
                .output
                .result("factum/status/1", &status, || text::status(&status))?;
        }
    }
    Ok(0)
}

pub(super) async fn why(case: &str, context: &Context<'_>) -> Result<u8> {
    let why = context
        .workspace
        .why(&case_id(case)?, &context.principal)
        .await?;
    context
        .output
        .result("factum/why/1", &why, || text::why(&why))?;
    Ok(0)
}

pub(super) async fn diff(case: &str, runs: &[String], context: &Context<'_>) -> Result<u8> {
    let pair = match runs {
        [from, to] => Some((from.as_str(), to.as_str())),
        _ => None,
    };
    let diff = context
        .workspace
        .diff(&case_id(case)?, &context.principal, pair)
        .await?;
    context
        .output
        .result("factum/diff/1", &diff, || text::diff(&diff))?;
    Ok(0)
}

pub(super) async fn ledger(case: &str, context: &Context<'_>) -> Result<u8> {
    let id = case_id(case)?;
    let ledger = match context.workspace.ledger(&id, &context.principal).await? {
        Ok(ledger) => ledger,
        Err(refusal) => return Ok(refuse(case, &refusal, Label::Current, context)),
    };
    let places = context
        .workspace
        .places(&id, &context.principal, ledger.evidence.values())
        .await?;
    let mut value = serde_json::to_value(&ledger)?;
    value["evidence"] = evidence_json(&ledger.evidence, &places)?;
    context
        .output
        .result("factum/ledger/1", &value, || text::ledger(&ledger, &places))?;
    Ok(0)
}

pub(super) async fn history(case: &str, context: &Context<'_>) -> Result<u8> {
    let history = context
        .workspace
        .history(&case_id(case)?, &context.principal)
        .await?;
    context
        .output
        .result("factum/history/1", &history, || text::history(&history))?;
    Ok(0)
}
