//! The report: every measure by group, beside the published figures.

use std::collections::BTreeMap;

use factum_base::BodyDigest;
use serde::Serialize;
use serde_json::Value;

use super::corpus::{Corpus, Group};
use super::folder::{Experiment, Folder};
use super::gold::Gold;
use super::measure::{Costs, GroupMeasure, Metrics, Pair, build_of, eligible, metrics};
use super::protocol::{Kind, Part, Selection};
use super::published::{COSTS, GROUPS, PublishedCost, PublishedGroup};
use super::review::{ReviewState, review_state};
use super::run::RunError;

/// The report, `factum/experiment/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What was run.
    pub generator: String,
    /// All of the generator that can change an answer.
    pub identity: Value,
    /// How.
    pub profile: String,
    /// The digest of the corpus's list.
    pub corpus_sha256: BodyDigest,
    /// Steps of the whole protocol, and those recorded.
    pub steps: Steps,
    /// What is measured, by group.
    pub groups: BTreeMap<String, GroupMeasure>,
    /// What it cost.
    pub costs: Costs,
    /// Incremental against full.
    pub comparisons: Comparisons,
    /// The digest of all that is not of the exercise.
    pub main_sha256: BodyDigest,
    /// The digest of the list of records: kept elsewhere, it binds them.
    pub records_sha256: BodyDigest,
    /// The reader's review.
    pub review: ReviewState,
    /// The published figures.
    pub published: Published,
}

/// How much of the protocol is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Steps {
    /// In the whole protocol.
    pub all: u64,
    /// Recorded.
    pub recorded: u64,
    /// Runs that were begun for them and not finished.
    pub interrupted_runs: u64,
}

/// Incremental against full.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparisons {
    /// Steps built in both ways.
    pub pairs: u64,
    /// Those that agree in key, status, claims and tokens of every node.
    pub equal: u64,
    /// Those that agree in status and claims of the root.
    pub roots_equal: u64,
    /// Each pair.
    pub list: Vec<Pair>,
}

/// The published figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// Of which model.
    pub model: &'static str,
    /// By group.
    pub groups: Vec<PublishedGroup>,
    /// Costs.
    pub costs: Vec<PublishedCost>,
    /// Pairs, all of which were equal.
    pub pairs: u64,
}

/// Makes the report of a folder.
///
/// # Errors
/// A record or the gold can't be read, or the gold does not know a case file.
pub fn report(folder: &Folder, gold: &Gold) -> Result<Report, RunError> {
    let experiment = folder.experiment()?;
    let found = metrics(folder)?;
    let corpus = Corpus::read(&folder.corpus())?;
    let steps: u64 = corpus
        .cases
        .iter()
        .map(|case| Selection::default().steps(case).len() as u64)
        .sum();
    let recorded = folder
        .cases()?
        .iter()
        .map(|case| case.steps.len() as u64)
        .sum();
    Ok(Report {
        groups: groups(folder, &experiment, &found, gold)?,
        steps: Steps {
            all: steps,
            recorded,
            interrupted_runs: found.interrupted,
        },
        generator: experiment.generator,
        identity: experiment.identity,
        profile: experiment.profile,
        corpus_sha256: experiment.corpus_sha256,
        costs: found.costs,
        comparisons: Comparisons {
            pairs: found.pairs.len() as u64,
            equal: found.pairs.iter().filter(|pair| pair.equal).count() as u64,
            roots_equal: found.pairs.iter().filter(|pair| pair.roots_equal).count() as u64,
            list: found.pairs,
        },
        main_sha256: found.main_sha256,
        records_sha256: folder.digest()?,
        review: review_state(folder)?,
        published: Published {
            model: "Qwen2.5-1.5B-Instruct, BF16, one RTX 3090, another corpus and other prompts",
            groups: GROUPS.to_vec(),
            costs: COSTS.to_vec(),
            pairs: 62,
        },
    })
}

/// The group that a root belongs to. Roots of the exercise belong to none.
fn group_name(group: Group, part: Part, kind: Kind, extractive: bool) -> Option<String> {
    let snapshot = match (group, part) {
        (_, Part::Exercise) => return None,
        (Group::Development, Part::Initial) => "development-initial",
        (Group::Test, Part::Initial) => "test-initial",
        (_, Part::Events) => "test-events",
    };
    let kind = match (part, kind) {
        (_, Kind::Extraction) => "extraction",
        (Part::Initial, _) if extractive => "extraction",
        (Part::Initial, _) => "model",
        (_, kind) => kind.word(),
    };
    Some(format!("{snapshot}/{kind}"))
}

fn groups(
    folder: &Folder,
    experiment: &Experiment,
    found: &Metrics,
    gold: &Gold,
) -> Result<BTreeMap<String, GroupMeasure>, RunError> {
    let extractive = experiment.identity["kind"] == "extractive";
    let cases = folder.cases()?;
    let mut groups: BTreeMap<String, GroupMeasure> = BTreeMap::new();
    for root in &found.roots {
        let Some(name) = group_name(root.group, root.step.part(), root.kind, extractive) else {
            continue;
        };
        let Some(build) = build_of(&cases, root) else {
            continue;
        };
        let run = folder.run(build)?;
        let known = gold.of(&root.case_id, eligible(&run));
        let known = known.ok_or_else(|| RunError::NotEnough {
            case_id: root.case_id.clone(),
            what: "gold for all of its versions".to_owned(),
        })?;
        groups.entry(name.clone()).or_default().add(root, &known);
        // By extraction an incremental build is the baseline itself.
        if extractive && name == "test-events/incremental" {
            groups
                .entry("test-events/extraction".to_owned())
                .or_default()
                .add(root, &known);
        }
    }
    for group in groups.values_mut() {
        group.close();
    }
    Ok(groups)
}
