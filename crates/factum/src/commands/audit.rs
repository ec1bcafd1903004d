//! `factum audit`: what a run's claims are worth.

use std::path::Path;

use anyhow::Result;
use factum_eval::audit::{Audit, AuditTotals, audit};
use factum_eval::controlled::gold::Gold;

use super::Context;
use crate::failure::BadInput;
use crate::text::clean;

pub(super) async fn run(run_id: &str, gold: Option<&Path>, context: &Context<'_>) -> Result<u8> {
    let hint = "gold is a factum/gold/1 file, or a folder with one called gold.json";
    let bad = |error: String| BadInput(error, Some(hint.to_owned()));
    let gold = gold
        .map(Gold::read)
        .transpose()
        .map_err(|error| bad(error.to_string()))?;
    let run = context
        .workspace
        .export_run(run_id, &context.principal)
        .await?;
    let texts = context
        .workspace
        .export_texts(&run.case_id, &context.principal)
        .await?;
    let found = audit(&run, &texts, gold.as_ref()).map_err(|error| bad(error.to_string()))?;
    context
        .output
        .result("factum/audit/1", &found, || text(&found))?;
    Ok(0)
}

fn text(found: &Audit) -> String {
    let mut out = format!(
        "{} of {}: root {}. VALID says nothing about truth.\n",
        found.run_id,
        found.case_id,
        found.root_status.word()
    );
    for row in &found.claims {
        let fields: Vec<&str> = row.fields.values().map(String::as_str).collect();
        out.push_str(&format!(
            "{:>3}. {} | citations {} | {} by {}{}{}\n",
            row.number,
            clean(&fields.join(" · ")),
            if row.reference_valid {
                "hold"
            } else {
                "DO NOT HOLD"
            },
            match row.support {
                factum_casefile::Verdict::Supported => "supported",
                factum_casefile::Verdict::Unsupported => "UNSUPPORTED",
                factum_casefile::Verdict::Unchecked => "unchecked",
            },
            row.method,
            match row.in_gold {
                Some(true) => " | in gold",
                Some(false) => " | NOT IN GOLD",
                None => "",
            },
            if row.duplicate { " | repeated" } else { "" },
        ));
        for citation in row.citations.iter().filter(|citation| !citation.valid) {
            out.push_str(&format!(
                "       {}: {}\n",
                clean(&citation.evidence_id),
                citation.diagnosis.as_deref().unwrap_or_default()
            ));
        }
    }
    for (what, totals) in [("Root", &found.root), ("Leaves", &found.leaves)] {
        out.push_str(&totals_text(what, totals));
    }
    out
}

fn totals_text(what: &str, totals: &AuditTotals) -> String {
    let shown =
        |value: Option<f64>| value.map_or_else(|| "n/a".to_owned(), |value| format!("{value:.3}"));
    let mut out = format!(
        "{what}: {} claims, {} withheld, {} repeated; citations hold {}; unsupported {}",
        totals.claims,
        totals.withheld_claims,
        totals.duplicate_claims,
        shown(totals.reference_validity),
        shown(totals.unsupported_rate),
    );
    if totals.gold_claims.is_some() {
        out.push_str(&format!(
            "; precision {}, recall {}",
            shown(totals.precision),
            shown(totals.recall)
        ));
    }
    out.push_str(&format!(
        "; {} seen by no reader.\n",
        totals.unreviewed_claims
    ));
    out
}
