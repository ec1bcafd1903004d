//! What gold says of the roots, by group: precision over distinct facts, recall over the facts of the documents that
//! the reader may read. Ratios over nothing are none; recall of nothing is 0.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::experiment::Experiment;
use super::facts::Fields;
use super::json::{self, list, number, text};
use super::measures::{Measured, Root};
use super::protocol::Step;
use super::report::{Class, Report};

const NAME: &str = "gold.json";

/// What gold says of a group of roots.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct GoldGroup {
    /// The group, as reports name it.
    pub group: String,
    /// Roots.
    pub snapshots: u64,
    /// Their claims.
    pub claims: u64,
    /// Distinct facts claimed, root by root.
    pub unique_facts: u64,
    /// Those of them that gold has.
    pub correct_facts: u64,
    /// Facts that gold has of what could be read.
    pub gold_facts: u64,
    /// Correct among distinct.
    pub fact_precision: Option<f64>,
    /// Correct among gold.
    pub fact_recall: Option<f64>,
}

/// Facts by case file, document and version.
type Gold = BTreeMap<(String, String, u64), BTreeSet<Fields>>;

/// Works out what gold says.
pub(super) fn groups(
    bytes: &[u8],
    experiment: &Experiment,
    measured: &Measured,
    report: &mut Report,
) -> Vec<GoldGroup> {
    let value = match json::parse(bytes) {
        Ok(value) if text(&value, "format") == "factum/gold/1" => value,
        Ok(_) => {
            report.add(Class::Gold, NAME, "is of another format");
            return Vec::new();
        }
        Err(fault) => {
            report.add(Class::Gold, NAME, format!("is not strict JSON: {fault}"));
            return Vec::new();
        }
    };
    let gold = read(&value);
    let mut groups: BTreeMap<String, GoldGroup> = BTreeMap::new();
    for root in &measured.roots {
        let Some(true_facts) = known(&gold, root) else {
            report.add(
                Class::Gold,
                NAME,
                format!("does not know all versions of {}", root.case_id),
            );
            continue;
        };
        for name in names(root, experiment.extractive) {
            let group = groups.entry(name.clone()).or_default();
            group.group = name;
            group.snapshots += 1;
            group.claims += root.claims.len() as u64;
            group.unique_facts += root.facts.len() as u64;
            group.correct_facts += root.facts.intersection(&true_facts).count() as u64;
            group.gold_facts += true_facts.len() as u64;
        }
    }
    let mut groups: Vec<GoldGroup> = groups.into_values().collect();
    for group in &mut groups {
        group.fact_precision = share(group.correct_facts, group.unique_facts);
        group.fact_recall = share(group.correct_facts, group.gold_facts);
    }
    groups
}

fn read(value: &Value) -> Gold {
    let mut gold = Gold::new();
    for case in list(value, "cases") {
        for document in list(case, "documents") {
            for version in list(document, "versions") {
                let facts = list(version, "facts").iter().filter_map(Value::as_object);
                let facts = facts.map(|fact| {
                    let fields = fact.iter();
                    fields
                        .filter_map(|(name, value)| {
                            Some((name.clone(), value.as_str()?.to_owned()))
                        })
                        .collect()
                });
                let place = (
                    text(case, "case_id").to_owned(),
                    text(document, "doc_id").to_owned(),
                    number(version, "version"),
                );
                gold.insert(place, facts.collect());
            }
        }
    }
    gold
}

fn known(gold: &Gold, root: &Root) -> Option<BTreeSet<Fields>> {
    let mut facts = BTreeSet::new();
    for (doc_id, version) in &root.eligible {
        let place = (root.case_id.clone(), doc_id.clone(), *version);
        facts.extend(gold.get(&place)?.iter().cloned());
    }
    Some(facts)
}

/// The groups that a root counts in. Roots of the exercise count in none.
fn names(root: &Root, extractive: bool) -> Vec<String> {
    let kind = if root.kind == "extraction" || extractive {
        "extraction"
    } else {
        "model"
    };
    match root.step {
        Step::ExerciseDate | Step::ExercisePrompt => Vec::new(),
        Step::Initial => vec![format!("{}-initial/{kind}", root.group)],
        _ if extractive && root.kind == "incremental" => {
            vec![
                "test-events/extraction".to_owned(),
                "test-events/incremental".to_owned(),
            ]
        }
        _ => vec![format!("test-events/{}", root.kind)],
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of facts are far below 2^52"
    )]
    (whole > 0).then(|| part as f64 / whole as f64)
}
