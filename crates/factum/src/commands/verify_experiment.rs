//! Verification of an experiment's records. It needs no workspace.

use std::path::{Path, PathBuf};

use anyhow::Result;
use factum_eval::controlled_verify::{ExperimentVerification, read_folder, verify_experiment};
use serde_json::json;

use crate::failure::BadInput;
use crate::output::Output;
use crate::text::clean;

/// Whether what is to be verified is the folder of an experiment.
pub(super) fn is_experiment(what: &str) -> bool {
    factum_eval::controlled_verify::is_experiment(Path::new(what))
}

/// Verifies the records in a folder.
pub(super) fn verify(folder: &str, gold: Option<&Path>, output: &Output) -> Result<u8> {
    let read = |path: &Path, error: &std::io::Error| {
        BadInput(
            format!("{}: {error}", path.display()),
            Some("see that it is there and can be read".to_owned()),
        )
    };
    let folder = Path::new(folder);
    let files = read_folder(folder).map_err(|error| read(folder, &error))?;
    let gold: Option<Vec<u8>> = match gold {
        None => None,
        Some(place) => {
            let file: PathBuf = if place.is_dir() {
                place.join("gold.json")
            } else {
                place.to_owned()
            };
            Some(std::fs::read(&file).map_err(|error| read(&file, &error))?)
        }
    };
    let found = verify_experiment(&files, gold.as_deref());
    let clean = found.findings.is_empty();
    let mut value = serde_json::to_value(&found)?;
    value["verdict"] = json!(if clean { "clean" } else { "differences" });
    output.result("factum/verify/1", &value, || text(&found))?;
    Ok(u8::from(!clean))
}

fn text(found: &ExperimentVerification) -> String {
    let mut text = format!(
        "Checked {} records, {} texts, {} case files with {} steps: {} runs, {} nodes, {} claims, {} citations, {} model calls, \
         {} events, {} comparisons, {} figures: {}.\n",
        found.files,
        found.texts,
        found.cases,
        found.steps,
        found.runs.len(),
        found.nodes,
        found.claims,
        found.evidence,
        found.generations,
        found.events,
        found.comparisons,
        found.figures,
        match found.findings.len() {
            0 => "no difference".to_owned(),
            n => format!("{n} DIFFERENCES"),
        }
    );
    for finding in &found.findings {
        text.push_str(&format!(
            "  {} [{}]: {}\n",
            clean(&finding.place),
            finding.class.word(),
            clean(&finding.message)
        ));
    }
    let share =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
    for group in found.groups.iter().flatten() {
        text.push_str(&format!(
            "{}: {} snapshots, {} claims, precision {} ({} of {}), recall {} ({} of {}).\n",
            clean(&group.group),
            group.snapshots,
            group.claims,
            share(group.fact_precision),
            group.correct_facts,
            group.unique_facts,
            share(group.fact_recall),
            group.correct_facts,
            group.gold_facts,
        ));
    }
    text
}
