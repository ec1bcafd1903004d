//! One case file: its steps in the protocol's order, each step's builds, and their comparison.

use std::collections::BTreeMap;

use serde_json::Value;

use super::build::{self, Checked, Earlier, Place};
use super::comparison::{compare, roots_equal};
use super::corpus::Corpus;
use super::experiment::{Experiment, Shared};
use super::files::ExperimentFiles;
use super::json::{Kind, closed, field, list, text};
use super::listing::{self, Listed};
use super::measures::Measured;
use super::protocol::{Step, steps};
use super::report::{Class, Report};
use super::tree::Tree;

/// What checking a case file needs.
pub(super) struct Context<'c> {
    pub(super) files: &'c ExperimentFiles,
    pub(super) listed: &'c Listed,
    pub(super) corpus: &'c Corpus,
    pub(super) experiment: &'c Experiment,
}

/// Checks a case file's record.
pub(super) fn check(
    context: &Context<'_>,
    name: &str,
    shared: &mut Shared,
    measured: &mut Measured,
    report: &mut Report,
) {
    let Some(record) = listing::load(context.files, name, report) else {
        return;
    };
    report.total.cases += 1;
    let known = [
        ("case_id", Kind::Text),
        ("format", Kind::Text),
        ("group", Kind::Text),
        ("steps", Kind::List),
    ];
    closed(&record, &known, name, report);
    let id = text(&record, "case_id");
    let right = text(&record, "format") == "factum/controlled-case/1"
        && format!("records/{id}.json") == name;
    report.require(
        right,
        Class::Protocol,
        name,
        "is of another format or another case file than its name says",
    );
    let Some(corpus) = context.corpus.cases.get(id) else {
        return report.add(
            Class::Protocol,
            name,
            "is of a case file that the corpus does not have",
        );
    };
    let same = corpus.group == text(&record, "group");
    report.require(
        same,
        Class::Protocol,
        name,
        "is of another group than the corpus says",
    );
    let protocol = steps(id, &corpus.group);
    let recorded = list(&record, "steps");
    if recorded.is_empty() || recorded.len() > protocol.len() {
        report.add(
            Class::Protocol,
            name,
            "has no steps, or more than the protocol",
        );
    }
    let mut earlier: BTreeMap<&str, Earlier> = BTreeMap::new();
    for (one, step) in recorded.iter().zip(protocol) {
        let place = format!("{name} {}", step.word());
        let known = [
            ("builds", Kind::List),
            ("comparison", Kind::Any),
            ("step", Kind::Text),
        ];
        closed(one, &known, &place, report);
        let right = text(one, "step") == step.word();
        report.require(
            right,
            Class::Protocol,
            &place,
            "is not the step that the protocol has there",
        );
        report.total.steps += 1;
        measured.steps += 1;
        let at = Place {
            case_id: id,
            corpus,
            step,
            kind: "",
        };
        let builds = check_builds(
            one,
            at,
            &place,
            context,
            (&mut earlier, shared),
            measured,
            report,
        );
        check_pair(one, at, &builds, &place, measured, report);
    }
}

type Builds = BTreeMap<&'static str, Checked>;

fn check_builds(
    one: &Value,
    at: Place<'_>,
    place: &str,
    context: &Context<'_>,
    (earlier, shared): (&mut BTreeMap<&str, Earlier>, &mut Shared),
    measured: &mut Measured,
    report: &mut Report,
) -> Builds {
    let kinds = at.step.kinds(context.experiment.extractive);
    let recorded = list(one, "builds");
    let found: Vec<&str> = recorded.iter().map(|build| text(build, "kind")).collect();
    report.require(
        found == kinds,
        Class::Protocol,
        place,
        "has other builds than the protocol",
    );
    let mut builds = Builds::new();
    for (record, &kind) in recorded.iter().zip(kinds) {
        let at = Place { kind, ..at };
        let own = earlier.entry(kind).or_default();
        if let Some(checked) = build::check(record, at, context, own, shared, report) {
            measured.enter_root(&checked, at);
            builds.insert(kind, checked);
        }
    }
    builds
}

/// The incremental build against the full one: keys are the same whatever the model, and the recorded comparison is
/// the one that comes out.
fn check_pair(
    one: &Value,
    at: Place<'_>,
    builds: &Builds,
    place: &str,
    measured: &mut Measured,
    report: &mut Report,
) {
    let recorded = field(one, "comparison");
    let (Some(incremental), full) = (builds.get("incremental"), builds.get("full")) else {
        return;
    };
    measured.enter_cost(at.step, &incremental.cost, full.map(|full| &full.cost));
    let Some(full) = full else {
        let none = recorded.is_null();
        return report.require(
            none,
            Class::Comparison,
            place,
            "compares what was not built twice",
        );
    };
    report.total.comparisons += 1;
    let first = Tree::read(&incremental.run, &incremental.file);
    let second = Tree::read(&full.run, &full.file);
    let wanted = compare(&first, &second);
    report.require(
        *recorded == wanted,
        Class::Comparison,
        place,
        "records another comparison than its two runs give",
    );
    for node in &first.nodes {
        let other = second.nodes.iter().find(|other| other.name == node.name);
        let same = other.is_some_and(|other| other.key == node.key);
        report.require(
            same,
            Class::Key,
            &node.place,
            "has another key than in the full build of the step",
        );
    }
    if !recorded.is_null() {
        let roots = roots_equal(&first, &second);
        measured.enter_pair(at, &wanted, roots, &incremental.cost, &full.cost);
    }
}

/// Whether a step is of the exercise; for counting.
pub(super) const fn part(step: Step) -> usize {
    match step {
        Step::Initial => 0,
        Step::Corrected | Step::Withdrawn | Step::Revoked => 1,
        Step::ExerciseDate | Step::ExercisePrompt => 3,
    }
}
