//! `factum eval support`.

use std::path::PathBuf;

use anyhow::Result;
use factum_casefile::support::{LEAST_SHARE, SUPPORT_VERSION};
use factum_eval::scorers::share_if_accepted;
use factum_eval::study::{Figure, Half, figure, sets, shares, verdicts};
use serde::Serialize;
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
    let mut curve = Vec::new();
    for set in &sets {
        let shares = shares(set, &share_if_accepted);
        for least_share in (0..=100).step_by(10) {
            for half in [Half::Tuning, Half::Scoring] {
                let found = figure(set, &verdicts(&shares, least_share), half, seed);
                curve.extend(found.map(|found| Point {
                    least_share,
                    set: found.set,
                    quotes: found.quotes,
                    half: found.half,
                    balanced_accuracy: found.balanced_accuracy,
                }));
            }
        }
        let found = verdicts(&shares, LEAST_SHARE);
        for half in [Half::All, Half::Tuning, Half::Scoring] {
            figures.extend(figure(set, &found, half, seed));
        }
    }
    let value = json!({
        "support_version": SUPPORT_VERSION,
        "least_share": LEAST_SHARE,
        "figures": figures,
        "curve": curve,
    });
    output.result("factum/eval-support/1", &value, || {
        text(&figures) + &curve_text(&curve)
    })?;
    Ok(0)
}

/// What the check would be worth with another bound on shared words.
#[derive(Serialize)]
struct Point {
    least_share: u32,
    set: String,
    quotes: String,
    half: &'static str,
    balanced_accuracy: f64,
}

fn curve_text(curve: &[Point]) -> String {
    let mut out = format!(
        "\nBalanced accuracy by the least share of content words, in percent (in use: {LEAST_SHARE}):\n"
    );
    let mut before = None;
    for point in curve
        .iter()
        .filter(|point| point.half == Half::Tuning.word())
    {
        let scoring = curve.iter().find(|other| {
            (&other.set, &other.quotes, other.least_share)
                == (&point.set, &point.quotes, point.least_share)
                && other.half == Half::Scoring.word()
        });
        let name = format!("{}, {}", point.set, point.quotes);
        if before.as_ref() != Some(&name) {
            out.push_str(&format!("{name}\n  least   tuning  scoring\n"));
            before = Some(name);
        }
        let scoring = scoring.map_or_else(String::new, |point| {
            format!("{:.1}", point.balanced_accuracy)
        });
        out.push_str(&format!(
            "  {:>5}   {:>6.1}  {scoring:>7}\n",
            point.least_share, point.balanced_accuracy
        ));
    }
    out
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
