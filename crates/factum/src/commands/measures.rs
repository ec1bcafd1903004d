//! Commands that build, check, export and measure.

use std::path::PathBuf;

use anyhow::Result;
use factum_base::CaseId;
use factum_engine::EngineError;
use factum_engine::build::{BuildOptions, BuildReport};
use factum_engine::scale::{ScaleReport, measure};
use factum_engine::transformation::Generator;
use factum_engine::verify::Verification;
use serde_json::json;

use super::{Context, case_id, clock};
use crate::cli::ExportCommand;
use crate::models::{Named, Shelf};
use crate::output::Output;
use crate::progress::Terminal;
use crate::text::clean;

pub(super) async fn build(
    case: &str,
    full: bool,
    generator: &str,
    context: &Context<'_>,
) -> Result<u8> {
    let id = case_id(case)?;
    let named = Named::parse(generator)?;
    let generator = if named == Named::Extractive {
        Generator::Extractive
    } else {
        // Fail on a case file that can't be built before a model is loaded.
        context
            .workspace
            .check_may_build(&id, &context.principal)
            .await?;
        let shelf = Shelf::open()?;
        tokio::task::spawn_blocking(move || shelf.load(&named)).await??
    };
    let options = BuildOptions { full, generator };
    let watcher = Terminal::new("building");
    let report = context
        .workspace
        .build(&id, &context.principal, options, &watcher)
        .await?;
    drop(watcher);
    context
        .output
        .result("factum/build/1", &report, || build_text(&report))?;
    Ok(0)
}

/// What a build did, in two lines.
pub(crate) fn build_text(report: &BuildReport) -> String {
    let counts = &report.counts;
    format!(
        "{}: {} of {} nodes made, {} reused, at event {} ({:.2} s). Root: {}, key {}.\n",
        report.run_id,
        counts.recomputed,
        counts.nodes,
        counts.reused,
        report.event,
        report.seconds,
        report.status.word(),
        report.root.short(),
    )
}

pub(super) async fn compare(first: &str, second: &str, context: &Context<'_>) -> Result<u8> {
    let comparison = context
        .workspace
        .compare(first, second, &context.principal)
        .await?;
    context.output.result("factum/compare/1", &comparison, || {
        if comparison.equal {
            return format!("Equal in all {} nodes.\n", comparison.nodes_compared);
        }
        let mut text = format!(
            "{} differences in {} nodes:\n",
            comparison.differences.len(),
            comparison.nodes_compared
        );
        for difference in comparison.differences.iter().take(50) {
            text.push_str(&format!("  {}: {:?}\n", difference.name, difference.what));
        }
        text
    })?;
    Ok(u8::from(!comparison.equal))
}

pub(super) async fn verify(what: Option<&str>, context: &Context<'_>) -> Result<u8> {
    let (workspace, caller) = (&context.workspace, &context.principal);
    let mut total = Verification::default();
    match what {
        Some(run) if run.starts_with("run-") => {
            total = match workspace.verify_stored_run(run, caller).await {
                Err(EngineError::UnknownRun(_) | EngineError::ForbiddenRun(_))
                    if CaseId::new(run).is_ok() =>
                {
                    // A case file may be called like a run.
                    workspace.verify_case(&case_id(run)?, caller).await?
                }
                other => other?,
            };
        }
        Some(case) => total = workspace.verify_case(&case_id(case)?, caller).await?,
        None => {
            for case in workspace.cases(caller).await? {
                let found = workspace.verify_case(&case.case_id, caller).await?;
                total.runs.extend(found.runs);
                total.nodes += found.nodes;
                total.evidence += found.evidence;
                total.events += found.events;
                total.texts += found.texts;
                total.findings.extend(found.findings);
            }
        }
    }
    let verdict = if total.findings.is_empty() {
        "clean"
    } else {
        "differences"
    };
    let mut value = serde_json::to_value(&total)?;
    value["verdict"] = json!(verdict);
    context
        .output
        .result("factum/verify/1", &value, || verify_text(&total))?;
    Ok(u8::from(!total.findings.is_empty()))
}

/// What verification found, in words.
pub(crate) fn verify_text(total: &Verification) -> String {
    let mut text = format!(
        "Checked {} events, {} runs, {} nodes, {} citations, {} texts: {}.\n",
        total.events,
        total.runs.len(),
        total.nodes,
        total.evidence,
        total.texts,
        match total.findings.len() {
            0 => "no difference".to_owned(),
            n => format!("{n} DIFFERENCES"),
        }
    );
    for finding in &total.findings {
        let run = finding
            .run_id
            .as_deref()
            .map(|run| format!("{run}, "))
            .unwrap_or_default();
        text.push_str(&format!(
            "  {run}{} [{}]: {}\n",
            clean(&finding.place),
            finding.class,
            clean(&finding.message)
        ));
    }
    text
}

pub(super) async fn export(command: ExportCommand, context: &Context<'_>) -> Result<u8> {
    match command {
        ExportCommand::Run { run } => {
            let file = context
                .workspace
                .export_run(&run, &context.principal)
                .await?;
            context
                .output
                .document("factum/run/1", serde_json::to_value(&file)?);
        }
        ExportCommand::Texts { case } => {
            let texts = context
                .workspace
                .export_texts(&case_id(&case)?, &context.principal)
                .await?;
            context
                .output
                .document("factum/texts/1", serde_json::to_value(&texts)?);
        }
        ExportCommand::Prov { what, format } => {
            return super::prov::export(&what, format, context).await;
        }
    }
    Ok(0)
}

pub(super) async fn scale(documents: u64, keep: Option<PathBuf>, output: &Output) -> Result<u8> {
    let temporary = tempfile::Builder::new().prefix("factum-scale-").tempdir()?;
    let folder = keep.unwrap_or_else(|| temporary.path().to_owned());
    let watcher = Terminal::new("measuring");
    let report = measure(&folder, clock(), documents, &watcher).await?;
    drop(watcher);
    output.result("factum/scale/1", &report, || scale_text(&report))?;
    Ok(0)
}

fn scale_text(report: &ScaleReport) -> String {
    let megabytes = |bytes: u64| format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10);
    let mut text = format!(
        "{} documents: published in {:.2} s, planned in {:.2} s, built in {:.2} s ({} nodes).\n",
        report.documents,
        report.publish_seconds,
        report.plan_seconds,
        report.build_seconds,
        report.nodes
    );
    for (what, step) in [("edited", &report.edit), ("inserted", &report.insert)] {
        text.push_str(&format!(
            "One document {what}: {} nodes made again, planned in {:.1} ms, rebuilt in {:.1} ms; \
             served in {} µs (p50), {} µs (p99).\n",
            step.nodes_recomputed,
            step.plan_seconds * 1e3,
            step.rebuild_seconds * 1e3,
            step.serve_p50_us,
            step.serve_p99_us
        ));
    }
    text.push_str(&format!(
        "Text {}, database {}, originals beside it {}, search index {}.\n",
        megabytes(report.text_bytes),
        megabytes(report.store_bytes),
        megabytes(report.original_bytes),
        megabytes(report.index_bytes)
    ));
    text
}
