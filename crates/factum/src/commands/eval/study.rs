//! `factum eval support`.

use std::path::PathBuf;

use anyhow::Result;
use factum_casefile::Verdict;
use factum_casefile::support::SUPPORT_VERSION;
use factum_eval::scorers::supports;
use factum_eval::study::{Figure, Half, figure, sets, verdicts};
use serde_json::json;

use crate::failure::BadInput;
use crate::output::Output;

pub(super) fn support(data: Option<PathBuf>, seed: u64, output: &Output) -> Result<u8> {
    let folder = data
        .or_else(|| std::env::var_os("FACTUM_DATA").map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("../shared/data"));
    let sets = sets(&folder).map_err(|error| {
        let hint = "--data names the folder that holds frank/valid.jsonl and qmsum/val".to_owned();
        BadInput(error.to_string(), Some(hint))
    })?;
    let mut figures = Vec::new();
    for set in &sets {
        let found = verdicts(set, &|statement, quotes| {
            supports(statement, quotes).is_some_and(|found| found.verdict == Verdict::Supported)
        });
        for half in [Half::All, Half::Tuning, Half::Scoring] {
            figures.extend(figure(set, &found, half, seed));
        }
    }
    let value = json!({"support_version": SUPPORT_VERSION, "figures": figures});
    output.result("factum/eval-support/1", &value, || text(&figures))?;
    Ok(0)
}

fn text(figures: &[Figure]) -> String {
    let mut out = format!(
        "The support check, version {SUPPORT_VERSION}. Balanced accuracy in percent; guessing gives 50.\n\
         {:<12} {:<37} {:<8} {:>6}  {:<12} {:>14} {:>14} {:>13}\n",
        "data", "held against", "half", "bal.", "95%", "accepted", "refused", "floors"
    );
    for one in figures {
        let interval = one.interval.map_or_else(String::new, |found| {
            format!("{:.1}-{:.1}", found.low, found.high)
        });
        out.push_str(&format!(
            "{:<12} {:<37} {:<8} {:>6.1}  {:<12} {:>6.3} of {:>4} {:>6.3} of {:>4} {:>6.1} {:>6.1}\n",
            one.set,
            one.quotes,
            one.half,
            one.balanced_accuracy,
            interval,
            one.accepted,
            one.supported,
            one.refused,
            one.unsupported,
            one.floors[0],
            one.floors[1]
        ));
    }
    out
}
