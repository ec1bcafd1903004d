//! What the experiment says it is, and what all its runs share: one model, one text of each transformation.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::corpus::Corpus;
use super::files::ExperimentFiles;
use super::json::{Kind, closed, field, text};
use super::listing::load;
use super::report::{Class, Report};
use super::tree::Tree;

const NAME: &str = "experiment.json";

/// What was run.
#[derive(Default)]
pub(super) struct Experiment {
    pub(super) identity: Value,
    pub(super) profile: String,
    pub(super) reuses_generations: bool,
    pub(super) extractive: bool,
}

impl Experiment {
    pub(super) fn read(files: &ExperimentFiles, corpus: &Corpus, report: &mut Report) -> Self {
        let Some(value) = load(files, NAME, report) else {
            return Self::default();
        };
        let known = [
            ("corpus_sha256", Kind::Digest),
            ("factum", Kind::Text),
            ("format", Kind::Text),
            ("generator", Kind::Text),
            ("identity", Kind::Object),
            ("profile", Kind::Text),
            ("profile_sha256", Kind::Digest),
            ("reuses_generations", Kind::Flag),
        ];
        closed(&value, &known, NAME, report);
        let experiment = Self {
            identity: field(&value, "identity").clone(),
            profile: text(&value, "profile").to_owned(),
            reuses_generations: field(&value, "reuses_generations") == &Value::Bool(true),
            extractive: text(field(&value, "identity"), "kind") == "extractive",
        };
        let mut require = |holds: bool, message: &str| {
            report.require(holds, Class::Experiment, NAME, message);
        };
        require(
            text(&value, "format") == "factum/controlled/1",
            "is of another format",
        );
        let same = text(&value, "corpus_sha256") == corpus.digest;
        require(same, "names another corpus than lies beside it");
        let profile = load(files, "profile.json", report).unwrap_or_default();
        let mut require = |holds: bool, message: &str| {
            report.require(holds, Class::Experiment, NAME, message);
        };
        let digest = super::json::digest(&profile);
        let same = text(&value, "profile_sha256") == digest;
        require(same, "names the digest of another profile");
        let named = text(&profile, "name") == experiment.profile;
        require(named, "names another profile than is recorded");
        let reuses = match experiment.profile.as_str() {
            "controlled" => Some(false),
            "grounded" => Some(true),
            _ => None,
        };
        require(
            reuses.is_some(),
            "names a profile that the experiment does not have",
        );
        let fits = reuses.is_none_or(|reuses| reuses == experiment.reuses_generations);
        require(fits, "says of reused generations what its profile does not");
        let generator = text(&value, "generator");
        let named = if experiment.extractive {
            generator == "extractive" && experiment.identity == json!({"kind": "extractive"})
        } else {
            !generator.is_empty() && generator != "extractive"
        };
        require(named, "names another generator than its identity is of");
        experiment
    }
}

/// What is collected over all runs.
#[derive(Default)]
pub(super) struct Shared {
    /// Records of runs that steps name.
    pub(super) run_files: BTreeSet<String>,
    run_ids: BTreeSet<(String, String)>,
    /// By whether a model is asked, whether it is a leaf's, and whether the exercise's prompt is in it.
    transformations: BTreeMap<(bool, bool, bool), Value>,
    /// Answers by kind of build and digest of the input, without what differs from export to export.
    answers: BTreeMap<(String, String), String>,
}

impl Shared {
    /// A run's id is its own among the runs of one workspace.
    pub(super) fn enter_run(&mut self, kind: &str, run: &Value, place: &str, report: &mut Report) {
        let id = text(run, "run_id");
        let numbered = id.strip_prefix("run-").is_some_and(|number| {
            number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        report.require(
            numbered,
            Class::Experiment,
            place,
            "has an id that no run has",
        );
        let new = self.run_ids.insert((kind.to_owned(), id.to_owned()));
        report.require(
            new,
            Class::Experiment,
            place,
            "has the id of another run of its kind",
        );
    }

    /// A run's transformations are those of all runs, but for the exercise's second step.
    pub(super) fn enter_tree(
        &mut self,
        tree: &Tree<'_>,
        (asked, exercise): (bool, bool),
        report: &mut Report,
    ) {
        for node in &tree.nodes {
            let own = field(node.spec, "transformation");
            // Leaves are the same before the exercise's change and after it.
            let place = (asked, node.is_leaf, exercise && !node.is_leaf);
            let known = self
                .transformations
                .entry(place)
                .or_insert_with(|| own.clone());
            if known != own {
                let message = "is another transformation than that of the other runs";
                report.add(Class::Experiment, format!("{}.spec", node.place), message);
            }
        }
    }

    /// The same input has one recorded answer in a workspace.
    pub(super) fn enter_answer(
        &mut self,
        kind: &str,
        digest: &str,
        record: &Value,
        place: &str,
        report: &mut Report,
    ) {
        let mut answer = record.clone();
        if let Some(map) = answer.as_object_mut() {
            map.remove("reused");
        }
        let answer = super::json::digest(&answer);
        let entry = (kind.to_owned(), digest.to_owned());
        let known = self.answers.entry(entry).or_insert_with(|| answer.clone());
        report.require(
            *known == answer,
            Class::Reuse,
            place,
            "is another answer than an earlier run recorded for the same input",
        );
    }

    /// Checks the transformations themselves.
    pub(super) fn close(&self, experiment: &Experiment, report: &mut Report) {
        for ((asked, is_leaf, exercise), transformation) in &self.transformations {
            let place = format!(
                "transformation of {}",
                if *is_leaf { "leaves" } else { "reductions" }
            );
            check_generator(*asked, *is_leaf, transformation, experiment, &place, report);
            let profile = field(transformation, "profile");
            let named = text(profile, "name") == experiment.profile;
            report.require(named, Class::Experiment, &place, "is of another profile");
            if experiment.profile == "controlled" {
                check_controlled(*asked, *is_leaf, transformation, &place, report);
            }
            if !exercise {
                continue;
            }
            if let Some(before) = self.transformations.get(&(*asked, *is_leaf, false)) {
                let only = differs_only_in_instructions(before, transformation);
                let message = "differs, in the exercise, in more or less than its instructions";
                report.require(only, Class::Experiment, &place, message);
            }
        }
    }
}

fn check_generator(
    asked: bool,
    is_leaf: bool,
    transformation: &Value,
    experiment: &Experiment,
    place: &str,
    report: &mut Report,
) {
    let generator = field(transformation, "generator");
    let by_rules = text(generator, "kind") == "extractive" && generator.get("model").is_none();
    let by_model = *generator == json!({"kind": "model", "model": experiment.identity});
    // Under the grounded profile reductions fold, and ask nobody.
    let folds = asked && !is_leaf && experiment.profile == "grounded";
    let right = if asked && !folds { by_model } else { by_rules };
    report.require(
        right,
        Class::Experiment,
        place,
        "has another generator than the experiment says",
    );
}

/// What the definition fixes of the profile `controlled`.
fn check_controlled(
    asked: bool,
    is_leaf: bool,
    transformation: &Value,
    place: &str,
    report: &mut Report,
) {
    let claim = field(field(transformation, "profile"), "claim");
    let mut wanted = vec![
        (field(claim, "max_claims").clone(), json!(4)),
        (field(claim, "max_evidence").clone(), json!(4)),
        (
            field(field(transformation, "support"), "policy").clone(),
            json!("flag"),
        ),
    ];
    let fields = field(claim, "fields");
    for name in ["subject", "value"] {
        wanted.push((field(field(fields, name), "max_chars").clone(), json!(120)));
    }
    let choices = field(field(fields, "field"), "one_of").clone();
    wanted.push((choices, json!(["delivery", "status", "quantity", "site"])));
    if is_leaf {
        let rule = field(field(transformation, "segmentation"), "rule");
        wanted.push((field(rule, "whole").clone(), json!(true)));
    } else {
        wanted.push((
            field(transformation, "children").clone(),
            json!("key-order"),
        ));
    }
    if asked {
        let most = if is_leaf { 2048 } else { 3072 };
        let mode = field(field(transformation, "decoding"), "mode").clone();
        wanted.extend([
            (field(transformation, "input_tokens").clone(), json!(most)),
            (field(transformation, "new_tokens").clone(), json!(384)),
            (mode, json!("free")),
        ]);
    }
    let right = wanted.iter().all(|(found, wanted)| found == wanted);
    report.require(
        right,
        Class::Experiment,
        place,
        "has other limits than the definition",
    );
}

/// Whether two transformations are the same but for the text of the prompt, or where rules work, the written
/// form of a limit.
fn differs_only_in_instructions(before: &Value, after: &Value) -> bool {
    let strip = |value: &Value| {
        let mut value = value.clone();
        for path in ["/prompt/text", "/profile/extraction/node_claims"] {
            if let Some(place) = value.pointer_mut(path) {
                *place = Value::Null;
            }
        }
        value
    };
    before != after && strip(before) == strip(after)
}
