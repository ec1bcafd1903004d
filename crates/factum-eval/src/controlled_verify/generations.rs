//! The recorded calls of a run: the input of each is what its node must have been shown, its digest is that input's,
//! and nothing stands in it that the reader must not see.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::citations::Held;
use super::experiment::{Experiment, Shared};
use super::facts::{lines, squeezed};
use super::json::{Kind, closed, digest, field, list, number, short, text};
use super::prompts::Given;
use super::report::{Class, Report};
use super::tree::{Node, Tree};

const INPUT: [&str; 7] = [
    "constraint",
    "constraint_version",
    "format",
    "input_budget",
    "max_new_tokens",
    "messages",
    "model",
];
const RECORD: [(&str, Kind); 19] = [
    ("constraint", Kind::Object),
    ("constraint_version", Kind::Text),
    ("device", Kind::Any),
    ("format", Kind::Text),
    ("input_budget", Kind::Count),
    ("max_new_tokens", Kind::Count),
    ("memory_bytes", Kind::Any),
    ("messages", Kind::List),
    ("model", Kind::Object),
    ("new_tokens", Kind::Count),
    ("prompt_tokens", Kind::Count),
    ("retries", Kind::Count),
    ("reused", Kind::Flag),
    ("seconds", Kind::Any),
    ("stop", Kind::Text),
    ("system_fingerprint", Kind::Any),
    ("text", Kind::Text),
    ("token_ids", Kind::Any),
    ("tokens_bounded", Kind::Flag),
];

/// A run whose calls are checked.
pub(super) struct Calls<'c> {
    pub(super) file: &'c str,
    pub(super) kind: &'c str,
    pub(super) experiment: &'c Experiment,
    pub(super) held: &'c Held<'c>,
}

impl Calls<'_> {
    /// Checks the recorded calls of a run, given what each asked node was given.
    pub(super) fn check(
        &self,
        tree: &Tree<'_>,
        given: &BTreeMap<usize, Given>,
        shared: &mut Shared,
        report: &mut Report,
    ) {
        let forbidden = self.forbidden_lines();
        let records = field(tree.run, "generations").as_object();
        for (id, record) in records.into_iter().flatten() {
            report.total.generations += 1;
            let place = format!("{} generations[{}]", self.file, short(id));
            self.check_record(id, record, &place, report);
            check_access(record, &forbidden, &place, report);
            if self.kind == "incremental" {
                shared.enter_answer(self.kind, id, record, &place, report);
            }
            let mut users = tree
                .nodes
                .iter()
                .filter(|node| field(node.result, "generation").as_str() == Some(id));
            let used = users.next().is_some();
            report.require(
                used,
                Class::Generation,
                &place,
                "is an answer that no node names",
            );
        }
        for (n, given) in given {
            if let Some(node) = tree.nodes.get(*n) {
                self.check_input(node, tree, given, report);
            }
        }
    }

    /// The record against its own digest, its budgets, and the experiment's model.
    fn check_record(&self, id: &str, record: &Value, place: &str, report: &mut Report) {
        closed(record, &RECORD, place, report);
        let mut require = |holds: bool, message: &str| {
            report.require(holds, Class::Generation, place, message);
        };
        let input: Map<String, Value> = INPUT
            .into_iter()
            .filter_map(|part| Some((part.to_owned(), record.get(part)?.clone())))
            .collect();
        require(
            digest(&Value::Object(input)) == id,
            "has a digest that is not its input's",
        );
        require(
            field(record, "model") == &self.experiment.identity,
            "is of another model",
        );
        require(
            matches!(text(record, "stop"), "end" | "length"),
            "stopped for no known reason",
        );
        let timed = field(record, "seconds")
            .as_f64()
            .is_some_and(|seconds| seconds >= 0.0);
        require(timed, "took no time that can be");
        // Where a server counted nothing, the counts are bounds, and say nothing of budgets.
        if field(record, "tokens_bounded") != &Value::Bool(true) {
            let fits = number(record, "prompt_tokens") <= number(record, "input_budget");
            require(fits, "has a longer prompt than its budget");
        }
        let ids = field(record, "token_ids");
        let counted = ids.is_null()
            || ids.as_array().is_some_and(|ids| {
                ids.iter().all(Value::is_u64) && ids.len() as u64 == number(record, "new_tokens")
            });
        require(counted, "has another number of tokens than it counts");
        let fresh = self.kind != "full" || field(record, "reused") == &Value::Bool(false);
        report.require(
            fresh,
            Class::Reuse,
            place,
            "is an earlier answer, in a full build",
        );
    }

    /// The input that the node must have been shown.
    fn check_input(&self, node: &Node<'_>, tree: &Tree<'_>, given: &Given, report: &mut Report) {
        let id = text(node.result, "generation");
        let record = field(field(tree.run, "generations"), id);
        let decoding = field(field(node.spec, "transformation"), "decoding");
        let versions = serde_json::json!({"constraint_version": field(decoding, "version")});
        let wanted = given.input(node, &self.experiment.identity, &versions);
        if digest(&wanted) == id {
            return;
        }
        let parts = INPUT
            .into_iter()
            .filter(|part| field(record, part) != field(&wanted, part));
        let parts: Vec<&str> = parts.collect();
        let message = format!(
            "was asked with other {} than its spec and what it reads give",
            parts.join(", ")
        );
        report.add(Class::Generation, &node.place, message);
    }

    /// Lines of texts that the reader may not see now, or not yet, and that no text says that it may see.
    fn forbidden_lines(&self) -> BTreeSet<String> {
        let mut allowed = BTreeSet::new();
        let mut all = BTreeSet::new();
        for document in &self.held.corpus.documents {
            let standing = self
                .held
                .standings
                .iter()
                .find(|known| known.doc_id == document.id);
            for (version, number) in document.versions.iter().zip(1_u64..) {
                let shown = standing.is_some_and(|known| known.eligible && known.version == number);
                let found = lines(version.text.as_deref().unwrap_or(""));
                let found = found.into_iter().map(|line| squeezed(&line.quote));
                if shown {
                    allowed.extend(found);
                } else {
                    all.extend(found);
                }
            }
        }
        all.retain(|line| !allowed.contains(line));
        all
    }
}

/// No line of a prompt is one that must not be seen.
fn check_access(record: &Value, forbidden: &BTreeSet<String>, place: &str, report: &mut Report) {
    for message in list(record, "messages") {
        for line in text(message, "content").lines() {
            // A passage stands behind its short id.
            let words = match line.split_once("] ") {
                Some((id, words)) if id.starts_with("[e") => words,
                _ => line,
            };
            if forbidden.contains(words) {
                report.add(
                    Class::Access,
                    place,
                    "shows a line that its reader must not see",
                );
            }
        }
    }
}
