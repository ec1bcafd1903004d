//! `factum eval support`.

use std::path::PathBuf;

use anyhow::Result;
use factum_casefile::support::{Bounds, SUPPORT_VERSION};
use factum_eval::scorers::closeness_if_accepted;
use factum_eval::study::{Figure, Half, Set, closest, figure, sets, verdicts};
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
    let (mut figures, mut curve) = (Vec::new(), Vec::new());
    for set in &sets {
        let found = closest(set, &closeness_if_accepted);
        for (bound, least, bounds) in curves() {
            for half in [Half::Tuning, Half::Scoring] {
                let found = figure(set, &verdicts(&found, bounds), half, seed);
                curve.extend(found.map(|found| Point::of(set, (bound, least), &found)));
            }
        }
        let found = verdicts(&found, Bounds::IN_USE);
        for half in [Half::All, Half::Tuning, Half::Scoring] {
            figures.extend(figure(set, &found, half, seed));
        }
    }
    let value = json!({
        "support_version": SUPPORT_VERSION,
        "bounds": Bounds::IN_USE,
        "figures": figures,
        "curve": curve,
    });
    output.result("factum/eval-support/2", &value, || {
        text(&figures) + &curve_text(&curve)
    })?;
    Ok(0)
}

const SHARED: &str = "shared words and neighbours, of 200";
const COPIED: &str = "neighbours of a claim that copies, of 100";

/// Each bound over its range, with its value, and the other as it is in use.
fn curves() -> Vec<(&'static str, u32, Bounds)> {
    let shared = (0..=150).step_by(10).map(|shared| {
        let bounds = Bounds {
            shared,
            ..Bounds::IN_USE
        };
        (SHARED, shared, bounds)
    });
    let copied = (50..=100).step_by(5).map(|copied_pairs| {
        let bounds = Bounds {
            copied_pairs,
            ..Bounds::IN_USE
        };
        (COPIED, copied_pairs, bounds)
    });
    shared.chain(copied).collect()
}

/// What the check would be worth with another bound.
#[derive(Serialize)]
struct Point {
    bound: &'static str,
    least: u32,
    set: String,
    quotes: String,
    half: &'static str,
    balanced_accuracy: f64,
}

impl Point {
    fn of(set: &Set, (bound, least): (&'static str, u32), found: &Figure) -> Self {
        Self {
            bound,
            least,
            set: set.name.clone(),
            quotes: set.quotes.clone(),
            half: found.half,
            balanced_accuracy: found.balanced_accuracy,
        }
    }
}

fn curve_text(curve: &[Point]) -> String {
    let Bounds {
        shared,
        copied_pairs,
    } = Bounds::IN_USE;
    let mut out =
        format!("\nBalanced accuracy by each bound (in use: {shared} and {copied_pairs}):\n");
    let mut before = None;
    for point in curve
        .iter()
        .filter(|point| point.half == Half::Tuning.word())
    {
        let key = |point: &Point| {
            let Point {
                bound, set, quotes, ..
            } = point;
            format!("{set}, {quotes}: {bound}")
        };
        let scoring = curve.iter().find(|other| {
            (key(other), other.least) == (key(point), point.least)
                && other.half == Half::Scoring.word()
        });
        let name = key(point);
        if before.as_ref() != Some(&name) {
            out.push_str(&format!("{name}\n  least   tuning  scoring\n"));
            before = Some(name);
        }
        let scoring = scoring.map_or_else(String::new, |point| {
            format!("{:.1}", point.balanced_accuracy)
        });
        out.push_str(&format!(
            "  {:>5}   {:>6.1}  {scoring:>7}\n",
            point.least, point.balanced_accuracy
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
