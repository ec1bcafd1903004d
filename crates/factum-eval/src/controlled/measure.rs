//! What the records come to: statuses, claims, citations, support, costs, comparisons. Gold is not read here;
//! [`super::report`] adds it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use factum_base::{BodyDigest, NodeKey, canonical_json};
use factum_casefile::{Claim, NodeStatus, SlotState, Verdict};
use factum_graph::run_file::{NodeKind, RunFile, RunNode};
use serde::{Deserialize, Serialize};

use super::corpus::{Corpus, CorpusError, Group};
use super::facts::fact_of_line;
use super::folder::{BuildRecord, CaseRecord, Experiment, Folder};
use super::gold::GoldFields;
use super::protocol::{Kind, Part, Step};
use super::run::RunError;

/// The value of `metrics.json`'s `format`.
pub const METRICS_FORMAT: &str = "factum/controlled-metrics/1";

/// What a root comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootMeasure {
    /// The case file.
    pub case_id: String,
    /// What it is for.
    pub group: Group,
    /// The step.
    pub step: Step,
    /// How it was built.
    pub kind: Kind,
    /// The root's status.
    pub status: String,
    /// What serving gave right after.
    pub served: String,
    /// The root's claims.
    pub claims: u64,
    /// Those of them whose citations are all of current, eligible versions, word for word.
    pub reference_valid_claims: u64,
    /// Those of them whose exact fact stands as an affirmative line in a cited quote.
    pub supported_claims: u64,
    /// Those of them that the product's own check says are supported.
    pub claims_found_supported: u64,
    /// Claims kept on record and not served.
    pub withheld_claims: u64,
    /// The distinct facts of the claims.
    pub facts: BTreeSet<GoldFields>,
    /// The nodes of the run by status.
    pub nodes: BTreeMap<String, u64>,
}

/// What builds cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Answers asked of the generator, without recorded answers used again.
    pub calls: u64,
    /// Nodes made, those without text included.
    pub recomputed_nodes: u64,
    /// Nodes answered by a recorded generation.
    pub generations_reused: u64,
    /// Tokens of those answers.
    pub new_tokens: u64,
    /// Tokens read for them.
    pub prompt_tokens: u64,
    /// Wall time of the builds, in seconds. Builds of several case files run at the same time.
    pub seconds: f64,
    /// Time that the generator spent on those answers, in seconds.
    pub generation_seconds: f64,
}

impl Cost {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.recomputed_nodes += other.recomputed_nodes;
        self.generations_reused += other.generations_reused;
        self.new_tokens += other.new_tokens;
        self.prompt_tokens += other.prompt_tokens;
        self.seconds += other.seconds;
        self.generation_seconds += other.generation_seconds;
    }
}

/// What the parts cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// The first builds.
    pub initial: Cost,
    /// The incremental builds after events.
    pub incremental: Cost,
    /// The full builds after events.
    pub full: Cost,
    /// Both kinds in the exercise.
    pub exercise: Cost,
}

/// One step's two builds, for the plots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The case file.
    pub case_id: String,
    /// The step.
    pub step: Step,
    /// Key, status, claims and tokens of all nodes are the same.
    pub equal: bool,
    /// How many differences there are.
    pub differences: u64,
    /// Root status and root claims are the same.
    pub roots_equal: bool,
    /// What the incremental build cost.
    pub incremental: Cost,
    /// What the full one cost.
    pub full: Cost,
}

/// All that the records come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// [`METRICS_FORMAT`].
    pub format: String,
    /// Roots, by case file, step and kind.
    pub roots: Vec<RootMeasure>,
    /// What it cost.
    pub costs: Costs,
    /// Incremental against full.
    pub pairs: Vec<Pair>,
    /// Runs that were begun and not finished.
    pub interrupted: u64,
    /// The digest of all that is not of the exercise: the exercise must leave it as it is.
    pub main_sha256: BodyDigest,
}

/// Texts of the corpus by case file, document and version.
struct Texts<'a> {
    folder: &'a Folder,
    corpus: &'a Corpus,
}

impl Texts<'_> {
    fn of(&self, case_id: &str, doc_id: &str, version: u32) -> Result<Option<String>, CorpusError> {
        let found = self
            .corpus
            .cases
            .iter()
            .find(|case| case.case_id == case_id)
            .and_then(|case| {
                case.documents
                    .iter()
                    .find(|document| document.doc_id == doc_id)
            })
            .and_then(|document| {
                document
                    .versions
                    .iter()
                    .find(|known| known.version == version)
            });
        let Some(found) = found else { return Ok(None) };
        Ok(String::from_utf8(found.bytes(&self.folder.corpus())?).ok())
    }
}

/// Reads the records of a folder.
///
/// # Errors
/// A record is damaged or absent.
pub fn metrics(folder: &Folder) -> Result<Metrics, RunError> {
    let experiment = folder.experiment()?;
    let corpus = Corpus::read(&folder.corpus())?;
    let texts = Texts {
        folder,
        corpus: &corpus,
    };
    let mut found = Metrics {
        format: METRICS_FORMAT.to_owned(),
        roots: Vec::new(),
        costs: Costs::default(),
        pairs: Vec::new(),
        interrupted: 0,
        main_sha256: BodyDigest::of(b""),
    };
    for case in folder.cases()? {
        measure_case(&mut found, &case, folder, &experiment, &texts)?;
    }
    found.main_sha256 = main_digest(&found)?;
    Ok(found)
}

fn main_digest(found: &Metrics) -> Result<BodyDigest, serde_json::Error> {
    let main = |step: Step| step.part() != Part::Exercise;
    let roots: Vec<_> = found.roots.iter().filter(|root| main(root.step)).collect();
    let pairs: Vec<_> = found.pairs.iter().filter(|pair| main(pair.step)).collect();
    let costs = &found.costs;
    let text = canonical_json(&(
        roots,
        pairs,
        &costs.initial,
        &costs.incremental,
        &costs.full,
    ))?;
    Ok(BodyDigest::of(text.as_bytes()))
}

fn measure_case(
    found: &mut Metrics,
    case: &CaseRecord,
    folder: &Folder,
    experiment: &Experiment,
    texts: &Texts<'_>,
) -> Result<(), RunError> {
    // What earlier incremental builds of this case file made.
    let mut made = Made::default();
    for step in &case.steps {
        let mut costs: BTreeMap<Kind, Cost> = BTreeMap::new();
        let mut runs: BTreeMap<Kind, RunFile> = BTreeMap::new();
        for build in &step.builds {
            let run = folder.run(build)?;
            let mut root = measure_root(&run, texts)?;
            (root.group, root.step, root.kind) = (case.group, step.step, build.kind);
            root.served.clone_from(&build.served_after);
            found.roots.push(root);
            found.interrupted += build.attempts.saturating_sub(1);
            let cost = match build.kind {
                Kind::Incremental => made.cost(&run, experiment),
                Kind::Full => Made::default().cost(
                    &run,
                    &Experiment {
                        reuses_generations: false,
                        ..experiment.clone()
                    },
                ),
                Kind::Extraction => continue,
            };
            costs.insert(build.kind, cost);
            runs.insert(build.kind, run);
        }
        let incremental = costs.get(&Kind::Incremental).copied().unwrap_or_default();
        let full = costs.get(&Kind::Full).copied().unwrap_or_default();
        match step.step.part() {
            Part::Initial => found.costs.initial.add(&incremental),
            Part::Events => {
                found.costs.incremental.add(&incremental);
                found.costs.full.add(&full);
            }
            Part::Exercise => {
                found.costs.exercise.add(&incremental);
                found.costs.exercise.add(&full);
            }
        }
        if let (Some(comparison), Some(one), Some(other)) = (
            &step.comparison,
            runs.get(&Kind::Incremental),
            runs.get(&Kind::Full),
        ) {
            found.pairs.push(Pair {
                case_id: case.case_id.clone(),
                step: step.step,
                equal: comparison.equal,
                differences: comparison.differences.len() as u64,
                roots_equal: roots_equal(one, other),
                incremental,
                full,
            });
        }
    }
    Ok(())
}

fn roots_equal(one: &RunFile, other: &RunFile) -> bool {
    let said = |run: &RunFile| {
        root_of(run).map(|root| {
            let claims: Vec<_> = root
                .result
                .claims
                .iter()
                .map(|claim| (claim.fields.clone(), claim.evidence.clone()))
                .collect();
            (root.result.status, claims)
        })
    };
    said(one).is_some() && said(one) == said(other)
}

/// The nodes and generations that a case file's builds have made so far.
#[derive(Default)]
struct Made {
    nodes: HashSet<NodeKey>,
    generations: HashSet<String>,
}

impl Made {
    /// What a run cost: the nodes and generations that no earlier run has. It is counted from keys and not from
    /// the run's own counters, so that a build in several attempts comes out as one.
    fn cost(&mut self, run: &RunFile, experiment: &Experiment) -> Cost {
        let mut cost = Cost {
            seconds: run.seconds,
            ..Cost::default()
        };
        for node in &run.nodes {
            if !self.nodes.insert(node.key) {
                continue;
            }
            cost.recomputed_nodes += 1;
            let Some(digest) = &node.result.generation else {
                let asked = experiment.identity["kind"] == "extractive"
                    && node.result.status != NodeStatus::Ineligible;
                cost.calls += u64::from(asked);
                continue;
            };
            let known = !self.generations.insert(digest.clone());
            if known && experiment.reuses_generations {
                cost.generations_reused += 1;
                continue;
            }
            cost.calls += 1;
            if let Some(record) = run.generations.get(digest) {
                cost.new_tokens += record["new_tokens"].as_u64().unwrap_or(0);
                cost.prompt_tokens += record["prompt_tokens"].as_u64().unwrap_or(0);
                cost.generation_seconds += record["seconds"].as_f64().unwrap_or(0.0);
            }
        }
        cost
    }
}

/// The root of a run, which is its last node.
pub(crate) fn root_of(run: &RunFile) -> Option<&RunNode> {
    run.nodes
        .last()
        .filter(|node| node.kind == NodeKind::Reduction && node.key == run.root)
}

fn measure_root(run: &RunFile, texts: &Texts<'_>) -> Result<RootMeasure, RunError> {
    let case_id = run.case_id.as_str();
    let mut nodes: BTreeMap<String, u64> = BTreeMap::new();
    for node in &run.nodes {
        *nodes
            .entry(node.result.status.word().to_owned())
            .or_default() += 1;
    }
    let mut measure = RootMeasure {
        case_id: case_id.to_owned(),
        group: Group::Test,
        step: Step::Initial,
        kind: Kind::Incremental,
        status: NodeStatus::Invalid.word().to_owned(),
        served: String::new(),
        claims: 0,
        reference_valid_claims: 0,
        supported_claims: 0,
        claims_found_supported: 0,
        withheld_claims: 0,
        facts: BTreeSet::new(),
        nodes,
    };
    let Some(root) = root_of(run) else {
        return Ok(measure);
    };
    root.result.status.word().clone_into(&mut measure.status);
    measure.withheld_claims = root.result.withheld.len() as u64;
    let slots: BTreeMap<&str, &SlotState> = run
        .snapshot
        .slots
        .iter()
        .map(|slot| (slot.doc_id.as_str(), slot))
        .collect();
    for claim in &root.result.claims {
        measure.claims += 1;
        measure.facts.insert(claim.fields.clone());
        measure.supported_claims += u64::from(is_stated(claim, root));
        measure.claims_found_supported += u64::from(claim.support.verdict == Verdict::Supported);
        let mut valid = !claim.evidence.is_empty();
        for id in &claim.evidence {
            let text = texts.of(case_id, id.doc_id.as_str(), id.version)?;
            let checked = match (root.result.evidence.get(id), &text) {
                (Some(one), Some(text)) => one
                    .check(slots.get(id.doc_id.as_str()).copied(), text)
                    .is_ok(),
                _ => false,
            };
            valid = valid && checked;
        }
        measure.reference_valid_claims += u64::from(valid);
    }
    Ok(measure)
}

/// Whether a cited quote is the line that states the claim.
fn is_stated(claim: &Claim, node: &RunNode) -> bool {
    let quotes = claim
        .evidence
        .iter()
        .filter_map(|id| node.result.evidence.get(id));
    quotes
        .filter_map(|one| fact_of_line(&one.quote))
        .any(|fact| fact.fields() == claim.fields)
}

/// What is measured of several roots. Ratios over nothing are null; recall of nothing that there is, is 0.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupMeasure {
    /// Roots.
    pub snapshots: u64,
    /// Roots by status.
    pub statuses: BTreeMap<String, u64>,
    /// Roots by what serving gave.
    pub served: BTreeMap<String, u64>,
    /// All nodes of the runs by status.
    pub nodes: BTreeMap<String, u64>,
    /// Claims of the roots.
    pub claims: u64,
    /// Claims whose citations are all valid.
    pub reference_valid_claims: u64,
    /// Their share.
    pub reference_validity: Option<f64>,
    /// Claims that a cited line states.
    pub supported_claims: u64,
    /// The share of the others.
    pub unsupported_rate: Option<f64>,
    /// Claims kept on record and not served.
    pub withheld_claims: u64,
    /// Claims that repeat a fact.
    pub duplicate_claims: u64,
    /// Distinct facts claimed, snapshot by snapshot.
    pub unique_facts: u64,
    /// Those of them that are in the gold.
    pub correct_facts: u64,
    /// Facts in the gold of eligible documents.
    pub gold_facts: u64,
    /// Correct among unique.
    pub fact_precision: Option<f64>,
    /// Correct among gold.
    pub fact_recall: Option<f64>,
    /// Claims that no reader has reviewed.
    pub unreviewed_claims: u64,
}

pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of claims are far below 2^52"
    )]
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl GroupMeasure {
    /// Adds a root, with what is true there.
    pub fn add(&mut self, root: &RootMeasure, gold: &BTreeSet<&GoldFields>) {
        self.snapshots += 1;
        *self.statuses.entry(root.status.clone()).or_default() += 1;
        *self.served.entry(root.served.clone()).or_default() += 1;
        for (status, count) in &root.nodes {
            *self.nodes.entry(status.clone()).or_default() += count;
        }
        self.claims += root.claims;
        self.reference_valid_claims += root.reference_valid_claims;
        self.supported_claims += root.supported_claims;
        self.withheld_claims += root.withheld_claims;
        let unique = root.facts.len() as u64;
        self.duplicate_claims += root.claims.saturating_sub(unique);
        self.unique_facts += unique;
        let correct = root.facts.iter().filter(|fact| gold.contains(fact));
        self.correct_facts += correct.count() as u64;
        self.gold_facts += gold.len() as u64;
    }

    /// Works the ratios out.
    pub fn close(&mut self) {
        for status in ["VALID", "PARTIAL", "INVALID"] {
            self.statuses.entry(status.to_owned()).or_default();
        }
        self.reference_validity = ratio(self.reference_valid_claims, self.claims);
        self.unsupported_rate = ratio(self.claims - self.supported_claims, self.claims);
        self.unreviewed_claims = self.claims;
        self.fact_precision = ratio(self.correct_facts, self.unique_facts);
        self.fact_recall = ratio(self.correct_facts, self.gold_facts);
    }
}

/// The gold documents of a build's snapshot: those that its reader may use.
pub(crate) fn eligible(run: &RunFile) -> impl Iterator<Item = (&str, u32)> {
    run.snapshot
        .slots
        .iter()
        .filter(|slot| slot.eligible)
        .map(|slot| (slot.doc_id.as_str(), slot.version))
}

/// The record of a root's build.
pub(crate) fn build_of<'c>(cases: &'c [CaseRecord], root: &RootMeasure) -> Option<&'c BuildRecord> {
    let case = cases.iter().find(|case| case.case_id == root.case_id)?;
    let step = case.steps.iter().find(|step| step.step == root.step)?;
    step.builds.iter().find(|build| build.kind == root.kind)
}
