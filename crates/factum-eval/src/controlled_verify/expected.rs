//! What a node's result must be: by rules from its document, folded from its children, or read from the recorded
//! answer. The experiment's profiles check claims by the grammar of facts, so verdicts follow too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::answer::{Rules, read};
use super::citations::Held;
use super::facts::stated;
use super::json::{field, list, number, text, texts};
use super::prompts::{Given, Said, said_of};
use super::report::{Class, Report};
use super::tree::{Node, Tree};

/// What a node must have come to.
#[derive(Default)]
pub(super) struct Expected {
    status: &'static str,
    said: Vec<Said>,
    pieces: BTreeMap<String, Value>,
    repairs: Vec<&'static str>,
}

/// Holds a node's result against what it must be. The input that its call must have had, where it was asked.
pub(super) fn check(
    node: &Node<'_>,
    tree: &Tree<'_>,
    held: &Held<'_>,
    report: &mut Report,
) -> Option<Given> {
    let transformation = field(node.spec, "transformation");
    let is_asked = text(field(transformation, "generator"), "kind") == "model";
    let above = status_above(node, tree);
    if node.is_leaf && field(node.spec, "eligible") != &Value::Bool(true) {
        let nothing = Expected {
            status: "INELIGIBLE",
            ..Expected::default()
        };
        nothing.hold(node, report);
        return None;
    }
    let given = if node.is_leaf {
        Given::leaf(node, held)
    } else {
        Given::reduction(node, tree)
    };
    if !is_asked {
        by_rules(node, &given, above, report).hold(node, report);
        return None;
    }
    let Some(id) = field(node.result, "generation").as_str() else {
        check_unasked(node, &given, above, report);
        return None;
    };
    let Some(record) = field(tree.run, "generations").get(id) else {
        report.add(
            Class::Generation,
            &node.place,
            "names an answer that the run does not hold",
        );
        return None;
    };
    by_answer(node, &given, above, record).hold(node, report);
    Some(given)
}

fn status_above(node: &Node<'_>, tree: &Tree<'_>) -> &'static str {
    let mut below = node.children.iter().filter_map(|&n| tree.nodes.get(n));
    let broken = below.any(|child| matches!(text(child.result, "status"), "INVALID" | "PARTIAL"));
    if broken { "PARTIAL" } else { "VALID" }
}

/// Every line that states a fact, or every claim of the children.
fn by_rules(node: &Node<'_>, given: &Given, status: &'static str, report: &mut Report) -> Expected {
    let mut said = given.said.clone();
    if node.is_leaf {
        let mut seen = BTreeSet::new();
        for (id, piece) in &given.pieces {
            let fact = stated(text(piece, "quote")).filter(|fact| seen.insert(fact.clone()));
            said.extend(fact.map(|fields| Said {
                fields,
                evidence: vec![id.clone()],
                salience: None,
            }));
        }
    } else {
        let extraction = field(
            field(field(node.spec, "transformation"), "profile"),
            "extraction",
        );
        let most = number(extraction, "node_claims");
        // No limit of the experiment's profiles is met by 48 facts; one that is was not the protocol's.
        let fits = most == 0 || said.len() as u64 <= most;
        let message =
            "folds more claims than its limit, so that its choice can't be worked out here";
        report.require(fits, Class::Result, &node.place, message);
    }
    Expected {
        status,
        pieces: cited(&said, given),
        said,
        repairs: Vec::new(),
    }
}

fn by_answer(node: &Node<'_>, given: &Given, above: &'static str, record: &Value) -> Expected {
    let transformation = field(node.spec, "transformation");
    let quotes = given.quotes();
    let rules = Rules {
        schema: field(field(transformation, "profile"), "claim"),
        quotes: &quotes,
        grounded: text(field(transformation, "decoding"), "mode") == "grounded",
    };
    let reading = read(text(record, "text"), text(record, "stop"), &rules);
    let Some(claims) = reading.claims else {
        return Expected {
            status: "INVALID",
            repairs: reading.repairs,
            ..Expected::default()
        };
    };
    let said: Vec<Said> = (1_u64..)
        .zip(claims)
        .map(|(rank, (fields, places))| Said {
            fields,
            evidence: places
                .into_iter()
                .filter_map(|n| given.pieces.get(n).map(|(id, _)| id.clone()))
                .collect(),
            salience: Some(1_000_000 / rank),
        })
        .collect();
    Expected {
        status: above,
        pieces: cited(&said, given),
        said,
        repairs: reading.repairs,
    }
}

/// A node that a model would be asked for, and was not: its input was refused for its length, or there was nothing to
/// ask about.
fn check_unasked(node: &Node<'_>, given: &Given, above: &'static str, report: &mut Report) {
    let empty = if node.is_leaf {
        given.pieces.is_empty()
    } else {
        given.said.is_empty()
    };
    let skips = text(field(node.spec, "transformation"), "when_empty") == "skip";
    let status = if skips && empty { above } else { "INVALID" };
    let nothing = Expected {
        status,
        ..Expected::default()
    };
    nothing.hold(node, report);
}

fn cited(said: &[Said], given: &Given) -> BTreeMap<String, Value> {
    let ids: BTreeSet<&String> = said.iter().flat_map(|one| &one.evidence).collect();
    let pieces = given.pieces.iter().filter(|(id, _)| ids.contains(id));
    pieces.cloned().collect()
}

/// Whether the grammar states a claim in one of the quotes it cites.
pub(super) fn is_stated(claim: &Value, evidence: &Value) -> bool {
    let fields = super::prompts::fields_of(claim);
    let pieces = texts(claim, "evidence")
        .into_iter()
        .filter_map(|id| evidence.get(id));
    pieces
        .filter_map(|piece| stated(text(piece, "quote")))
        .any(|fact| fact == fields)
}

impl Expected {
    fn hold(&self, node: &Node<'_>, report: &mut Report) {
        let result = node.result;
        let place = &node.place;
        let mut require = |holds: bool, message: &str| {
            report.require(holds, Class::Result, place, message);
        };
        require(
            text(result, "status") == self.status,
            "has a status that its input does not give",
        );
        let pieces: BTreeMap<String, Value> = field(result, "evidence")
            .as_object()
            .into_iter()
            .flatten()
            .map(|(id, piece)| (id.clone(), piece.clone()))
            .collect();
        require(
            pieces == self.pieces,
            "holds other evidence than its claims cite",
        );
        require(
            texts(result, "repairs") == self.repairs,
            "says of corrections what its answer does not",
        );
        let diagnosed = !field(result, "diagnostic").is_null();
        require(
            diagnosed == (self.status == "INVALID"),
            "is INVALID without a diagnosis, or the other way round",
        );
        let withholds = {
            let policy = field(field(node.spec, "transformation"), "support");
            text(policy, "policy") == "withhold"
        };
        let is_supported = |said: &Said| {
            let quotes = said.evidence.iter().filter_map(|id| self.pieces.get(id));
            quotes
                .filter_map(|piece| stated(text(piece, "quote")))
                .any(|fact| fact == said.fields)
        };
        let (kept, withheld): (Vec<&Said>, Vec<&Said>) = self
            .said
            .iter()
            .partition(|said| !withholds || is_supported(said));
        for (name, wanted) in [("claims", kept), ("withheld", withheld)] {
            let found = list(result, name);
            let same = found.len() == wanted.len()
                && found
                    .iter()
                    .zip(&wanted)
                    .all(|(found, wanted)| is_same(&said_of(found), wanted));
            require(same, "has other claims than its input and its answer give");
        }
        self.hold_salience(node, report);
        for claim in super::citations::all_claims(node) {
            check_support(node, claim, report);
        }
    }

    /// How salient a line is for extraction is not worked out here, only that the claims are ranked.
    fn hold_salience(&self, node: &Node<'_>, report: &mut Report) {
        if self.said.iter().all(|said| said.salience.is_some()) {
            return;
        }
        let ranks: Vec<u64> = (1..=1_000).map(|rank| 1_000_000 / rank).collect();
        let found: Vec<u64> = list(node.result, "claims")
            .iter()
            .map(|claim| number(claim, "salience"))
            .collect();
        let distinct: BTreeSet<&u64> = found.iter().collect();
        let ranked = distinct.len() == found.len() && found.iter().all(|one| ranks.contains(one));
        report.require(
            ranked,
            Class::Result,
            &node.place,
            "has claims that are not ranked",
        );
    }
}

fn is_same(found: &Said, wanted: &Said) -> bool {
    found.fields == wanted.fields
        && found.evidence == wanted.evidence
        && (wanted.salience.is_none() || found.salience == wanted.salience)
}

fn check_support(node: &Node<'_>, claim: &Value, report: &mut Report) {
    let transformation = field(node.spec, "transformation");
    let support = field(claim, "support");
    let holds = is_stated(claim, field(node.result, "evidence"));
    let wanted = if holds { "supported" } else { "unsupported" };
    let rules = list(field(transformation, "profile"), "rules");
    let rule = rules.first().map_or("", |rule| text(rule, "id"));
    let right = text(support, "verdict") == wanted
        && text(support, "method") == "fact-line"
        && field(support, "version") == field(field(transformation, "support"), "version")
        && (!holds || text(support, "detail") == rule);
    let message = "has a claim with a verdict that the grammar of facts does not give";
    report.require(right, Class::Support, &node.place, message);
}
