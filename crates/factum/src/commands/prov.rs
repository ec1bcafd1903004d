//! Provenance for others' tools: W3C PROV-O.

use anyhow::Result;
use factum_base::CaseId;
use factum_engine::EngineError;
use factum_engine::prov::Provenance;
use serde_json::json;

use super::Context;
use crate::cli::ProvFormat;
use crate::failure::Usage;

pub(super) async fn export(what: &str, format: ProvFormat, context: &Context<'_>) -> Result<u8> {
    if format == ProvFormat::Turtle && context.output.is_json() {
        let message = "Turtle is no JSON: leave out --json, or choose --format jsonld";
        return Err(Usage(message.to_owned()).into());
    }
    let found = provenance(what, context).await?;
    match format {
        ProvFormat::Jsonld => context.output.document("factum/prov/1", found.json_ld()?),
        ProvFormat::Turtle => {
            let text = found.turtle()?;
            context
                .output
                .result("factum/prov/1", &json!(null), || text)?;
        }
    }
    Ok(0)
}

/// A run's provenance, or a case file's.
async fn provenance(what: &str, context: &Context<'_>) -> Result<Provenance> {
    let (workspace, caller) = (&context.workspace, &context.principal);
    if !what.starts_with("run-") {
        let case = CaseId::new(what)?;
        return Ok(workspace.provenance_of_case(&case, caller).await?);
    }
    let of_run = workspace.provenance_of_run(what, caller).await;
    let (Err(EngineError::UnknownRun(_) | EngineError::ForbiddenRun(_)), Ok(case)) =
        (&of_run, CaseId::new(what))
    else {
        return Ok(of_run?);
    };
    // A case file may be called like a run.
    match workspace.provenance_of_case(&case, caller).await {
        Err(EngineError::UnknownCase(_) | EngineError::Forbidden { .. }) => Ok(of_run?),
        of_case => Ok(of_case?),
    }
}
