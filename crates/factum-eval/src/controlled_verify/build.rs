//! One build: its run, its events, its nodes, and what serving gave.

use std::collections::{BTreeMap, BTreeSet};

use factum_graph::verify::{Sources, verify_run};
use serde_json::{Value, json};

use super::case::Context;
use super::citations::Held;
use super::corpus::CaseTexts;
use super::cost::{Cost, Made};
use super::experiment::Shared;
use super::generations::Calls;
use super::json::{Kind, closed, field, list, number, text, texts};
use super::protocol::{OWNER, READER, Step, standings};
use super::report::{Class, Report};
use super::tree::Tree;
use super::{events, expected, listing};

/// What earlier builds of the case file in one workspace left.
#[derive(Default)]
pub(super) struct Earlier {
    made: Made,
    /// Results by key.
    results: BTreeMap<String, Value>,
    /// Names and keys of the nodes of the build before.
    names: BTreeMap<String, String>,
    root: Option<(String, String)>,
    events: Vec<Value>,
}

/// Where a build belongs.
#[derive(Clone, Copy)]
pub(super) struct Place<'c> {
    pub(super) case_id: &'c str,
    pub(super) corpus: &'c CaseTexts,
    pub(super) step: Step,
    pub(super) kind: &'c str,
}

/// A build that was checked.
pub(super) struct Checked {
    pub(super) run: Value,
    pub(super) file: String,
    pub(super) cost: Cost,
    pub(super) attempts: u64,
    pub(super) served: String,
}

/// Checks a build.
pub(super) fn check(
    record: &Value,
    at: Place<'_>,
    context: &Context<'_>,
    earlier: &mut Earlier,
    shared: &mut Shared,
    report: &mut Report,
) -> Option<Checked> {
    let file = format!("records/{}/{}.{}.json", at.case_id, at.step.word(), at.kind);
    check_record(record, &file, report);
    let place = format!("records/{}.json {} {}", at.case_id, at.step.word(), at.kind);
    let bare = events::check(
        list(record, "events"),
        &earlier.events,
        at.corpus,
        at.step,
        &place,
        report,
    );
    let listed = context.listed.contains_key(&file);
    report.require(
        listed,
        Class::List,
        &file,
        "is the run of a step, and not in the list of records",
    );
    shared.run_files.insert(file.clone());
    let run = listing::load(context.files, &file, report)?;
    report.total.runs.push(file.clone());
    check_run(&run, &bare, at, context, &file, report);
    shared.enter_run(at.kind, &run, &file, report);
    let tree = Tree::read(&run, &file);
    check_tree(&tree, at, context, shared, report);
    check_reuse(&tree, record, at, earlier, report);
    let known = (&*earlier, context.experiment.reuses_generations);
    check_reused_answers(&tree, record, at, known, report);
    check_serving(&run, record, at, earlier, &file, report);
    let cost = count(&tree, record, at, context, earlier, report);
    for node in &tree.nodes {
        earlier
            .results
            .entry(node.key.to_owned())
            .or_insert_with(|| node.result.clone());
    }
    let names = tree
        .nodes
        .iter()
        .map(|node| (node.name.to_owned(), node.key.to_owned()));
    earlier.names = names.collect();
    let status = tree.root().map_or("", |root| text(root.result, "status"));
    earlier.root = Some((text(&run, "root").to_owned(), status.to_owned()));
    earlier.events = list(record, "events").to_vec();
    Some(Checked {
        file,
        cost,
        attempts: number(record, "attempts"),
        served: text(record, "served_after").to_owned(),
        run,
    })
}

fn check_record(record: &Value, file: &str, report: &mut Report) {
    let known = [
        ("attempts", Kind::Count),
        ("events", Kind::List),
        ("file", Kind::Text),
        ("kind", Kind::Text),
        ("served_after", Kind::Text),
        ("served_before", Kind::Text),
    ];
    closed(record, &known, file, report);
    report.require(
        text(record, "file") == file,
        Class::Protocol,
        file,
        "is recorded under another name",
    );
    report.require(
        number(record, "attempts") > 0,
        Class::Cost,
        file,
        "was made in no attempt",
    );
}

fn check_run(
    run: &Value,
    events: &[Value],
    at: Place<'_>,
    context: &Context<'_>,
    file: &str,
    report: &mut Report,
) {
    let text_of = |doc_id: &str, version: u32| {
        let found = at.corpus.text(doc_id, u64::from(version));
        found.map(str::to_owned)
    };
    let sources = Sources {
        owner: OWNER,
        events: Some(events),
        text: &text_of,
    };
    for finding in verify_run(run, &sources) {
        let class = serde_json::to_value(finding.class).unwrap_or_default();
        let message = format!("{}: {}", class.as_str().unwrap_or("?"), finding.message);
        report.add(Class::Run, format!("{file} {}", finding.place), message);
    }
    let wanted = [
        ("case_id", json!(at.case_id)),
        ("event", json!(events.len())),
        ("full", json!(at.kind == "full")),
        ("principal", json!(READER)),
        ("profile", json!(context.experiment.profile)),
    ];
    for (name, value) in wanted {
        if field(run, name) != &value {
            report.add(
                Class::Protocol,
                file,
                format!("has another {name} than its step demands"),
            );
        }
    }
    let slots = list(field(run, "snapshot"), "slots").iter().map(|slot| {
        json!({
            "access_revision": field(slot, "access_revision"),
            "active": field(slot, "active"),
            "doc_id": field(slot, "doc_id"),
            "eligible": field(slot, "eligible"),
            "version": field(slot, "version"),
        })
    });
    let standings = standings(at.corpus, at.step);
    let wanted = standings.iter().map(|standing| {
        json!({
            "access_revision": standing.access_revision,
            "active": standing.active,
            "doc_id": standing.doc_id,
            "eligible": standing.eligible,
            "version": standing.version,
        })
    });
    let same = slots.eq(wanted);
    report.require(
        same,
        Class::Access,
        file,
        "has a snapshot that is not the protocol's at that step",
    );
}

fn check_tree(
    tree: &Tree<'_>,
    at: Place<'_>,
    context: &Context<'_>,
    shared: &mut Shared,
    report: &mut Report,
) {
    let file = format!("records/{}/{}.{}.json", at.case_id, at.step.word(), at.kind);
    tree.check_form(at.corpus, &file, report);
    tree.check_lists(report);
    let asked = at.kind != "extraction" && !context.experiment.extractive;
    let exercised = at.step == Step::ExercisePrompt;
    shared.enter_tree(tree, (asked, exercised), report);
    let standings = standings(at.corpus, at.step);
    let held = Held {
        corpus: at.corpus,
        standings: &standings,
    };
    held.check(tree, report);
    let mut given = BTreeMap::new();
    for (n, node) in tree.nodes.iter().enumerate() {
        report.total.nodes += 1;
        if let Some(one) = expected::check(node, tree, &held, report) {
            given.insert(n, one);
        }
    }
    let calls = Calls {
        file: &file,
        kind: at.kind,
        experiment: context.experiment,
        held: &held,
    };
    calls.check(tree, &given, shared, report);
}

/// A node is used again exactly where an earlier build made it, and then it is what that build recorded.
fn check_reuse(
    tree: &Tree<'_>,
    record: &Value,
    at: Place<'_>,
    earlier: &Earlier,
    report: &mut Report,
) {
    // What an interrupted attempt made is used again, and not recorded.
    let interrupted = number(record, "attempts") > 1;
    for node in &tree.nodes {
        let known = earlier.results.get(node.key);
        let right = match (at.kind, known) {
            ("full", _) => !node.reused,
            (_, Some(_)) => node.reused,
            (_, None) => !node.reused || interrupted,
        };
        let message = "is used again where no build made it, or made again where one did";
        report.require(right, Class::Reuse, &node.place, message);
        if at.kind != "full" && known.is_some_and(|known| known != node.result) {
            report.add(
                Class::Reuse,
                &node.place,
                "is not what an earlier build recorded under its key",
            );
        }
    }
}

/// An answer is an earlier one where all nodes that hold it are, and a new one where no earlier build has it.
fn check_reused_answers(
    tree: &Tree<'_>,
    record: &Value,
    at: Place<'_>,
    (earlier, reuses_generations): (&Earlier, bool),
    report: &mut Report,
) {
    let known: BTreeSet<&str> = earlier
        .results
        .values()
        .map(|result| text(result, "generation"))
        .collect();
    // What an interrupted attempt asked for is used again; so is what another case file's build did.
    let elsewhere = number(record, "attempts") > 1 || reuses_generations;
    let answers = field(tree.run, "generations").as_object();
    for (id, answer) in answers.into_iter().flatten() {
        let mut holders = tree
            .nodes
            .iter()
            .filter(|node| text(node.result, "generation") == id);
        let reused = field(answer, "reused") == &Value::Bool(true);
        let right = if holders.all(|node| node.reused) {
            reused
        } else {
            !reused || known.contains(id.as_str()) || elsewhere
        };
        let place = format!("{} generations.{id}", at.case_id);
        let message = "says that it is new where it is not, or the other way round";
        report.require(right, Class::Reuse, &place, message);
    }
}

/// What serving gave before and after, and what the build says had become out of date.
fn check_serving(
    run: &Value,
    record: &Value,
    at: Place<'_>,
    earlier: &Earlier,
    file: &str,
    report: &mut Report,
) {
    let tree = Tree::read(run, file);
    let status = tree.root().map_or("", |root| text(root.result, "status"));
    let after = if status == "INVALID" {
        "INVALID"
    } else {
        "CURRENT"
    };
    let right = text(record, "served_after") == after;
    report.require(
        right,
        Class::Serving,
        file,
        "was served afterwards otherwise than its root allows",
    );
    let invalidation = field(run, "invalidation");
    let refusal = field(invalidation, "serve_refusal");
    let refused = refusal
        .get("status")
        .and_then(Value::as_str)
        .unwrap_or("CURRENT");
    let right = text(record, "served_before") == refused;
    report.require(
        right,
        Class::Serving,
        file,
        "records another refusal than its run",
    );
    if number(record, "attempts") != 1 {
        return;
    }
    let before = if earlier.root.is_some() {
        "STALE"
    } else {
        "ABSENT"
    };
    report.require(
        refused == before,
        Class::Serving,
        file,
        "was built where the old summary was not refused as it must be",
    );
    let current = field(refusal, "event") == field(run, "event");
    report.require(
        current,
        Class::Serving,
        file,
        "was refused at another event",
    );
    check_reasons(refusal, at, earlier, file, report);
    let (root, status) = match &earlier.root {
        Some((root, status)) => (json!(root), json!(status)),
        None => (Value::Null, Value::Null),
    };
    let right = *field(invalidation, "previous_root_key") == root
        && *field(invalidation, "previous_status") == status;
    report.require(
        right,
        Class::Serving,
        file,
        "replaces another root than the build before made",
    );
    let named: BTreeSet<&str> = texts(invalidation, "nodes").into_iter().collect();
    let changed = tree.nodes.iter().filter(|node| {
        earlier
            .names
            .get(node.name)
            .is_none_or(|key| key != node.key)
    });
    let changed: BTreeSet<&str> = changed.map(|node| node.name).collect();
    report.require(
        named == changed,
        Class::Serving,
        file,
        "names other nodes as out of date than those whose keys changed",
    );
}

/// Why the old summary was refused: the step's own change, and nothing else.
fn check_reasons(
    refusal: &Value,
    at: Place<'_>,
    earlier: &Earlier,
    file: &str,
    report: &mut Report,
) {
    let id = |n: usize| {
        at.corpus
            .documents
            .get(n)
            .map(|document| document.id.as_str())
    };
    let (kind, doc_id) = match (&earlier.root, at.step) {
        (None, _) | (_, Step::Initial) => ("never-built", None),
        (_, Step::Corrected) => ("published", id(0)),
        (_, Step::ExerciseDate) => ("published", id(11)),
        (_, Step::Withdrawn) => ("withdrawn", id(4)),
        // A hidden document is not named to whom it is hidden from.
        (_, Step::Revoked) => ("access", None),
        (_, Step::ExercisePrompt) => ("profile", None),
    };
    let reasons = list(refusal, "reasons");
    let right = reasons.len() == 1
        && reasons.iter().all(|reason| {
            let is_event = reason
                .get("event")
                .is_none_or(|event| event == field(refusal, "event"));
            text(reason, "kind") == kind && field(reason, "doc_id").as_str() == doc_id && is_event
        });
    let message = "was refused for another reason than the step's change";
    report.require(right, Class::Serving, file, message);
    let built = field(refusal, "built_event").as_u64();
    let before = earlier.root.as_ref().map(|_| earlier.events.len() as u64);
    let message = "was refused as built at another event than the build before";
    report.require(built == before, Class::Serving, file, message);
}

/// The build's cost, held against the run's own counters and against the protocol.
fn count(
    tree: &Tree<'_>,
    record: &Value,
    at: Place<'_>,
    context: &Context<'_>,
    earlier: &mut Earlier,
    report: &mut Report,
) -> Cost {
    let experiment = context.experiment;
    let full = at.kind == "full";
    let cost = if full {
        Made::default().cost(tree, experiment, false)
    } else {
        earlier
            .made
            .cost(tree, experiment, experiment.reuses_generations)
    };
    if at.kind == "extraction" {
        return cost;
    }
    let place = format!("records/{}/{}.{}.json", at.case_id, at.step.word(), at.kind);
    if experiment.profile == "controlled" {
        let (nodes, calls) = at.step.work(full);
        let right = cost.recomputed_nodes == nodes && cost.calls + cost.refused == calls;
        report.require(
            right,
            Class::Protocol,
            &place,
            "made other nodes or calls than the protocol",
        );
    }
    let counts = field(tree.run, "counts");
    let (made, calls) = (number(counts, "recomputed"), number(counts, "model_calls"));
    let once = number(record, "attempts") == 1;
    report.require(
        !once || made == cost.recomputed_nodes,
        Class::Cost,
        &place,
        "counts other new nodes than its keys give",
    );
    let wanted = if experiment.extractive { 0 } else { cost.calls };
    // Under reused generations an answer may be another case file's; then it was no call.
    let right = calls == wanted || (experiment.reuses_generations && !full && calls <= wanted);
    report.require(
        !once || right,
        Class::Cost,
        &place,
        "counts other calls than its keys give",
    );
    let exact = once && cost.repeated == 0 && calls == cost.calls;
    let tokens = !exact || number(counts, "new_tokens") == cost.new_tokens;
    report.require(
        tokens,
        Class::Cost,
        &place,
        "counts other tokens than its answers have",
    );
    cost
}
