//! What builds cost, counted from keys and inputs: the nodes and answers that no earlier run has.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::experiment::Experiment;
use super::json::{field, number, text};
use super::tree::Tree;

/// What builds cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cost {
    pub(super) calls: u64,
    pub(super) recomputed_nodes: u64,
    pub(super) generations_reused: u64,
    pub(super) new_tokens: u64,
    pub(super) prompt_tokens: u64,
    pub(super) seconds: f64,
    pub(super) generation_seconds: f64,
    /// Inputs that were refused for their length; not part of the recorded figures.
    pub(super) refused: u64,
    /// Every new answer is of an input that no other node had.
    pub(super) repeated: u64,
}

impl Cost {
    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.recomputed_nodes += other.recomputed_nodes;
        self.generations_reused += other.generations_reused;
        self.new_tokens = self.new_tokens.saturating_add(other.new_tokens);
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.seconds += other.seconds;
        self.generation_seconds += other.generation_seconds;
        self.refused += other.refused;
        self.repeated += other.repeated;
    }

    /// As metrics record it.
    pub(super) fn value(&self) -> Value {
        json!({
            "calls": self.calls,
            "generation_seconds": self.generation_seconds,
            "generations_reused": self.generations_reused,
            "new_tokens": self.new_tokens,
            "prompt_tokens": self.prompt_tokens,
            "recomputed_nodes": self.recomputed_nodes,
            "seconds": self.seconds,
        })
    }
}

/// What the builds of a case file in one workspace have made so far.
#[derive(Default)]
pub(super) struct Made {
    keys: BTreeSet<String>,
    inputs: BTreeSet<String>,
}

impl Made {
    /// What a run adds.
    pub(super) fn cost(&mut self, tree: &Tree<'_>, experiment: &Experiment, reuses: bool) -> Cost {
        let mut cost = Cost {
            seconds: field(tree.run, "seconds").as_f64().unwrap_or(0.0),
            ..Cost::default()
        };
        for node in &tree.nodes {
            if !self.keys.insert(node.key.to_owned()) {
                continue;
            }
            cost.recomputed_nodes += 1;
            let status = text(node.result, "status");
            let Some(input) = field(node.result, "generation").as_str() else {
                let by_rules = experiment.extractive && status != "INELIGIBLE";
                cost.calls += u64::from(by_rules);
                cost.refused += u64::from(!by_rules && status == "INVALID");
                continue;
            };
            let known = !self.inputs.insert(input.to_owned());
            cost.repeated += u64::from(known);
            if known && reuses {
                cost.generations_reused += 1;
                continue;
            }
            cost.calls += 1;
            let record = field(field(tree.run, "generations"), input);
            cost.new_tokens = cost.new_tokens.saturating_add(number(record, "new_tokens"));
            cost.prompt_tokens = cost
                .prompt_tokens
                .saturating_add(number(record, "prompt_tokens"));
            cost.generation_seconds += field(record, "seconds").as_f64().unwrap_or(0.0);
        }
        cost
    }
}
