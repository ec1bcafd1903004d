//! The figures: counted from the records, and held against `metrics.json` one by one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::build::{Checked, Place};
use super::citations::Held;
use super::cost::Cost;
use super::expected::is_stated;
use super::facts::Fields;
use super::files::ExperimentFiles;
use super::json::{Kind, closed, digest, field, list, text, texts};
use super::listing::load;
use super::prompts::fields_of;
use super::protocol::{Step, standings};
use super::report::{Class, Report};
use super::tree::{Node, Tree};

const NAME: &str = "metrics.json";
/// Sums of times may differ by their order of rounding, and by no more.
const ROUNDING: f64 = 1e-12;

/// A root, for what is counted later.
pub(super) struct Root {
    pub(super) case_id: String,
    pub(super) group: String,
    pub(super) step: Step,
    pub(super) kind: &'static str,
    pub(super) claims: Vec<Value>,
    pub(super) evidence: Value,
    pub(super) facts: BTreeSet<Fields>,
    /// Documents and versions that the reader may read.
    pub(super) eligible: Vec<(String, u64)>,
}

/// What the records come to.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) steps: u64,
    pub(super) roots: Vec<Root>,
    /// Of the first builds, the incremental and the full ones after events, and both in the exercise.
    pub(super) costs: [Cost; 4],
    lines: Vec<Value>,
    pairs: Vec<Value>,
    interrupted: u64,
}

impl Measured {
    /// Counts a build's root.
    pub(super) fn enter_root(&mut self, build: &Checked, at: Place<'_>) {
        let tree = Tree::read(&build.run, &build.file);
        let standings = standings(at.corpus, at.step);
        let held = Held {
            corpus: at.corpus,
            standings: &standings,
        };
        let mut nodes: BTreeMap<&str, u64> = BTreeMap::new();
        for node in &tree.nodes {
            *nodes.entry(text(node.result, "status")).or_default() += 1;
        }
        let root = tree.root();
        let claims = root.map_or(&[][..], |root| list(root.result, "claims"));
        let count = |holds: &dyn Fn(&Node<'_>, &Value) -> bool| {
            let counted = claims
                .iter()
                .filter(|claim| root.is_some_and(|root| holds(root, claim)));
            counted.count() as u64
        };
        let facts: BTreeSet<Fields> = claims.iter().map(fields_of).collect();
        self.lines.push(json!({
            "case_id": at.case_id,
            "claims": claims.len(),
            "claims_found_supported": count(&|_, claim| {
                text(field(claim, "support"), "verdict") == "supported"
            }),
            "facts": facts,
            "group": at.corpus.group,
            "kind": at.kind,
            "nodes": nodes,
            "reference_valid_claims": count(&|root, claim| is_valid(root, claim, &held)),
            "served": build.served,
            "status": root.map_or("INVALID", |root| text(root.result, "status")),
            "step": at.step.word(),
            "supported_claims": count(&|root, claim| is_stated(claim, field(root.result, "evidence"))),
            "withheld_claims": root.map_or(0, |root| list(root.result, "withheld").len()),
        }));
        self.interrupted = self
            .interrupted
            .saturating_add(build.attempts.saturating_sub(1));
        let eligible = standings.iter().filter(|standing| standing.eligible);
        self.roots.push(Root {
            case_id: at.case_id.to_owned(),
            group: at.corpus.group.clone(),
            step: at.step,
            kind: match at.kind {
                "incremental" => "incremental",
                "full" => "full",
                _ => "extraction",
            },
            evidence: root.map_or(Value::Null, |root| field(root.result, "evidence").clone()),
            claims: claims.to_vec(),
            facts,
            eligible: eligible
                .map(|one| (one.doc_id.to_owned(), one.version))
                .collect(),
        });
    }

    /// Adds what a step's builds cost.
    pub(super) fn enter_cost(&mut self, step: Step, incremental: &Cost, full: Option<&Cost>) {
        let part = super::case::part(step);
        self.costs[part].add(incremental);
        if let Some(full) = full {
            let part = if step.is_exercise() { part } else { part + 1 };
            self.costs[part.min(3)].add(full);
        }
    }

    /// Adds a pair of builds.
    pub(super) fn enter_pair(
        &mut self,
        at: Place<'_>,
        comparison: &Value,
        roots_equal: bool,
        incremental: &Cost,
        full: &Cost,
    ) {
        self.pairs.push(json!({
            "case_id": at.case_id,
            "differences": list(comparison, "differences").len(),
            "equal": field(comparison, "equal"),
            "full": full.value(),
            "incremental": incremental.value(),
            "roots_equal": roots_equal,
            "step": at.step.word(),
        }));
    }
}

fn is_valid(root: &Node<'_>, claim: &Value, held: &Held<'_>) -> bool {
    let ids = texts(claim, "evidence");
    let evidence = field(root.result, "evidence");
    let all = list(claim, "evidence").len();
    !ids.is_empty()
        && ids.len() == all
        && ids
            .iter()
            .all(|id| evidence.get(*id).is_some_and(|piece| held.holds(id, piece)))
}

/// Holds the recorded metrics against what was counted.
pub(super) fn check(files: &ExperimentFiles, measured: &Measured, report: &mut Report) {
    let Some(recorded) = load(files, NAME, report) else {
        return;
    };
    let known = [
        ("costs", Kind::Object),
        ("format", Kind::Text),
        ("interrupted", Kind::Count),
        ("main_sha256", Kind::Digest),
        ("pairs", Kind::List),
        ("roots", Kind::List),
    ];
    closed(&recorded, &known, NAME, report);
    let costs = measured.costs.map(|cost| cost.value());
    let wanted = json!({
        "costs": {
            "exercise": costs[3], "full": costs[2], "incremental": costs[1], "initial": costs[0],
        },
        "format": "factum/controlled-metrics/1",
        "interrupted": measured.interrupted,
        "main_sha256": main_digest(&recorded),
        "pairs": measured.pairs,
        "roots": measured.lines,
    });
    compare(&recorded, &wanted, "", report);
}

/// The digest of all that is not of the exercise, over what is recorded; the rest of the check holds that to what
/// was counted.
fn main_digest(recorded: &Value) -> String {
    let main = |name: &str| -> Vec<&Value> {
        let all = list(recorded, name).iter();
        all.filter(|one| !text(one, "step").starts_with("exercise"))
            .collect()
    };
    let costs = field(recorded, "costs");
    digest(&json!([
        main("roots"),
        main("pairs"),
        field(costs, "initial"),
        field(costs, "incremental"),
        field(costs, "full"),
    ]))
}

fn compare(recorded: &Value, wanted: &Value, path: &str, report: &mut Report) {
    let place = || format!("{NAME} {path}");
    match (recorded, wanted) {
        (Value::Object(recorded), Value::Object(wanted)) => {
            for (name, one) in recorded {
                let inside = format!("{path}.{name}");
                match wanted.get(name) {
                    Some(other) => compare(one, other, &inside, report),
                    None => report.add(Class::Metrics, format!("{NAME} {inside}"), "is no figure"),
                }
            }
            for name in wanted.keys().filter(|name| !recorded.contains_key(*name)) {
                report.add(Class::Metrics, place(), format!("lacks the figure {name}"));
            }
        }
        (Value::Array(recorded), Value::Array(wanted)) => {
            if recorded.len() != wanted.len() {
                let message = format!(
                    "has {} entries, and {} come out",
                    recorded.len(),
                    wanted.len()
                );
                report.add(Class::Metrics, place(), message);
            }
            for (n, (one, other)) in recorded.iter().zip(wanted).enumerate() {
                compare(one, other, &format!("{path}[{n}]"), report);
            }
        }
        _ => {
            report.total.figures += 1;
            let is_time = path.ends_with("seconds");
            if !(recorded == wanted || (is_time && is_near(recorded, wanted))) {
                let message = format!("is {}, and {} comes out", short(recorded), short(wanted));
                report.add(Class::Metrics, place(), message);
            }
        }
    }
}

fn is_near(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= ROUNDING * one.abs().max(other.abs()),
        _ => false,
    }
}

fn short(value: &Value) -> String {
    super::json::canonical(value).chars().take(80).collect()
}
