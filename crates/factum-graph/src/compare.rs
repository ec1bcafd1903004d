//! Two runs, node by node: is what one made the same as what the other made?
//!
//! The outcome holds names, keys, status words and digests, and no word of any document or claim, so
//! that it can be shown to those who may not read the texts. Node names hold slots, never document ids.

use std::collections::BTreeMap;

use factum_base::{BodyDigest, NodeKey, canonical_json};
use factum_casefile::claim::Claim;
use factum_casefile::{NodeResult, NodeStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::run_file::RunFile;

/// What differs between two nodes of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The second run has no such node.
    OnlyInFirst,
    /// The first run has no such node.
    OnlyInSecond,
    /// The key, so some input differs.
    Key,
    /// VALID, PARTIAL, INVALID, INELIGIBLE.
    Status,
    /// Fields, cited evidence or support verdicts of the claims handed on, or their order.
    Claims,
    /// The same for withheld claims.
    Withheld,
    /// The pieces of evidence.
    Evidence,
    /// The generation, or what it produced.
    Generation,
    /// The diagnosis of an INVALID node.
    Diagnostic,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The node's name.
    pub name: String,
    /// What differs.
    pub what: What,
    /// The first run's side: a key, a status word, or a digest.
    pub first: Option<String>,
    /// The second run's side.
    pub second: Option<String>,
}

/// The outcome of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// Nodes that both runs have, by name.
    pub nodes_compared: u64,
    /// Something was compared, and nothing differs.
    pub equal: bool,
    /// Every difference, in the order of the second run's nodes, then what only the first has.
    pub differences: Vec<Difference>,
}

/// A node reduced to what is compared. A few hundred bytes, whatever the node holds, so that runs too
/// large for memory can be compared while they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSummary {
    name: String,
    key: NodeKey,
    status: NodeStatus,
    claims: BodyDigest,
    withheld: BodyDigest,
    evidence: BodyDigest,
    generation: Option<String>,
    diagnostic: Option<BodyDigest>,
}

impl NodeSummary {
    /// Summarises a node. `generation` is the record that `result.generation` names, where it is at
    /// hand: equal inputs can still give different tokens, and those are compared too.
    pub fn new(name: &str, key: NodeKey, result: &NodeResult, generation: Option<&Value>) -> Self {
        Self {
            name: name.to_owned(),
            key,
            status: result.status,
            claims: claims_digest(&result.claims),
            withheld: claims_digest(&result.withheld),
            evidence: digest(&result.evidence),
            generation: result.generation.as_ref().map(|input| match generation {
                Some(record) => format!("{input}/{}", output_digest(record)),
                None => input.clone(),
            }),
            diagnostic: result
                .diagnostic
                .as_ref()
                .map(|text| BodyDigest::of(text.as_bytes())),
        }
    }

    fn differences(&self, second: &Self) -> impl Iterator<Item = Difference> {
        let hex = |d: &BodyDigest| Some(d.to_hex());
        let word = |s: NodeStatus| Some(s.word().to_owned());
        let optional = |d: &Option<BodyDigest>| d.as_ref().map(BodyDigest::to_hex);
        let sides = [
            (
                What::Key,
                Some(self.key.to_hex()),
                Some(second.key.to_hex()),
            ),
            (What::Status, word(self.status), word(second.status)),
            (What::Claims, hex(&self.claims), hex(&second.claims)),
            (What::Withheld, hex(&self.withheld), hex(&second.withheld)),
            (What::Evidence, hex(&self.evidence), hex(&second.evidence)),
            (
                What::Generation,
                self.generation.clone(),
                second.generation.clone(),
            ),
            (
                What::Diagnostic,
                optional(&self.diagnostic),
                optional(&second.diagnostic),
            ),
        ];
        let name = self.name.clone();
        sides
            .into_iter()
            .filter(|(_, first, second)| first != second)
            .map(move |(what, first, second)| Difference {
                name: name.clone(),
                what,
                first,
                second,
            })
    }
}

/// Compares two runs node by node.
pub fn compare_runs(first: &RunFile, second: &RunFile) -> Comparison {
    compare_nodes(summaries(first), summaries(second))
}

/// Compares nodes as they come, in any order. Only the first run's summaries are held in memory.
pub fn compare_nodes(
    first: impl IntoIterator<Item = NodeSummary>,
    second: impl IntoIterator<Item = NodeSummary>,
) -> Comparison {
    let mut differences = Vec::new();
    let mut open: BTreeMap<String, NodeSummary> = BTreeMap::new();
    for node in first {
        // A name given twice can't have two counterparts, so the earlier one counts as alone.
        if let Some(earlier) = open.insert(node.name.clone(), node) {
            differences.push(alone(earlier, What::OnlyInFirst));
        }
    }
    let mut nodes_compared = 0;
    for node in second {
        match open.remove(&node.name) {
            Some(other) => {
                nodes_compared += 1;
                differences.extend(other.differences(&node));
            }
            None => differences.push(alone(node, What::OnlyInSecond)),
        }
    }
    differences.extend(
        open.into_values()
            .map(|node| alone(node, What::OnlyInFirst)),
    );
    // Two runs without nodes agree on nothing.
    let equal = nodes_compared > 0 && differences.is_empty();
    Comparison {
        nodes_compared,
        equal,
        differences,
    }
}

fn summaries(run: &RunFile) -> impl Iterator<Item = NodeSummary> {
    run.nodes.iter().map(|node| {
        let record = node
            .result
            .generation
            .as_ref()
            .and_then(|id| run.generations.get(id));
        NodeSummary::new(&node.name, node.key, &node.result, record)
    })
}

fn alone(node: NodeSummary, what: What) -> Difference {
    let key = Some(node.key.to_hex());
    let (first, second) = if what == What::OnlyInFirst {
        (key, None)
    } else {
        (None, key)
    };
    Difference {
        name: node.name,
        what,
        first,
        second,
    }
}

fn claims_digest(claims: &[Claim]) -> BodyDigest {
    let compared: Vec<Value> = claims
        .iter()
        .map(|claim| {
            json!({
                "fields": claim.fields,
                "evidence": claim.evidence,
                "verdict": claim.support.verdict,
            })
        })
        .collect();
    digest(&compared)
}

// Of a generation's record, what the model produced: not how long it took, or on what device.
fn output_digest(record: &Value) -> BodyDigest {
    let field = |name: &str| record.get(name).cloned().unwrap_or(Value::Null);
    digest(&[field("text"), field("token_ids"), field("stop")])
}

fn digest<T: Serialize>(value: &T) -> BodyDigest {
    // Maps with text keys and numbers without fraction always have a JSON form.
    BodyDigest::of(canonical_json(value).unwrap_or_default().as_bytes())
}
