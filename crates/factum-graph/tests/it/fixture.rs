//! A small run with everything in it: long, withdrawn and revoked documents, a leaf that failed, claims
//! that were withheld, and a principal who is not the owner.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use factum_base::{CaseId, DocumentId, NodeKey, PrincipalId, Span, TextDigest};
use factum_casefile::claim::{Claim, Fields};
use factum_casefile::profile::{Segments, Tree};
use factum_casefile::support::Method;
use factum_casefile::{
    Event, EventKind, Evidence, EvidenceId, NodeResult, NodeStatus, Slot, Snapshot, Support,
    Verdict,
};
use factum_graph::run_file::{
    Invalidation, NodeKind, RUN_FORMAT, RunCounts, RunFile, RunNode, snapshot_sha256,
};
use factum_graph::{
    DocumentInput, Entry, LeafEntry, Page, Planner, SpecContext, SpecPart, cut_segments,
};
use serde_json::{Value, json};

pub(crate) const OWNER: &str = "local";

/// A run with what it can be held against.
pub(crate) struct Fixture {
    pub(crate) run: RunFile,
    pub(crate) events: Vec<Event>,
    pub(crate) texts: BTreeMap<(String, u32), String>,
}

impl Fixture {
    pub(crate) fn json(&self) -> Value {
        serde_json::to_value(&self.run).unwrap()
    }

    pub(crate) fn events_json(&self) -> Vec<Value> {
        self.events
            .iter()
            .map(|event| serde_json::to_value(event).unwrap())
            .collect()
    }
}

fn text_of(document: &str, version: u32) -> String {
    let mut text = format!("Kopf von {document}, Fassung {version} — 水漏れ 👩‍💧.\n\n");
    let paragraphs = if document == "d/long.txt" { 9 } else { 1 };
    for n in 0..paragraphs {
        let _ = write!(
            text,
            "Product {document} delivery: {} Oktober é.\n\n",
            10 + n + version
        );
        text += "Nothing else was said on that day, nor on any day before it was said.\n\n";
    }
    text
}

fn history() -> (Vec<Event>, BTreeMap<(String, u32), String>) {
    let slots = Slot::between(None, None, 6);
    let names = [
        "a.txt",
        "b.txt",
        "c \"c\".txt",
        "d/long.txt",
        "e.txt",
        "f@1:2.txt",
    ];
    let mut texts = BTreeMap::new();
    let mut publish = |n: usize, version: u32| {
        let text = text_of(names[n], version);
        let text_sha256 = TextDigest::of(text.as_bytes());
        texts.insert((names[n].to_owned(), version), text);
        let slot = slots[n].clone();
        EventKind::Published {
            doc_id: DocumentId::new(names[n]).unwrap(),
            version,
            text_sha256,
            slot,
        }
    };
    let id = |n: usize| DocumentId::new(names[n]).unwrap();
    let ann = PrincipalId::new("ann").unwrap();
    let kinds = vec![
        publish(0, 1),
        publish(1, 1),
        EventKind::Granted {
            doc_id: None,
            to: ann.clone(),
        },
        publish(2, 1),
        publish(3, 1),
        publish(4, 1),
        publish(5, 1),
        publish(0, 2),
        EventKind::Withdrawn {
            doc_id: id(1),
            file_gone: true,
        },
        EventKind::Revoked {
            doc_id: Some(id(2)),
            from: ann,
        },
        publish(2, 2),
        EventKind::Granted {
            doc_id: Some(id(5)),
            to: PrincipalId::new("ann").unwrap(),
        },
    ];
    let by = PrincipalId::new(OWNER).unwrap();
    let events = kinds
        .into_iter()
        .zip(1..)
        .map(|(kind, number)| Event {
            number,
            at: 1_700_000_000_000,
            by: by.clone(),
            kind,
        })
        .collect();
    (events, texts)
}

pub(crate) fn fixture() -> &'static Fixture {
    static MADE: LazyLock<Fixture> = LazyLock::new(make);
    &MADE
}

fn make() -> Fixture {
    let (events, texts) = history();
    let principal = PrincipalId::new("ann").unwrap();
    let snapshot = Snapshot::fold(&events, &PrincipalId::new(OWNER).unwrap(), &principal, 12);
    let part =
        |role: &str| SpecPart::new(&json!({"generator": role, "rules": ["delivery"]})).unwrap();
    let context = SpecContext {
        principal: principal.clone(),
        leaf: part("leaf"),
        reduction: part("reduction"),
    };
    let tree: Tree = serde_json::from_value(json!({"kind": "stable", "min": 2, "max": 3})).unwrap();
    let rule = Segments {
        whole: false,
        min_chars: 64,
        max_chars: 300,
    };
    let documents: Vec<DocumentInput> = snapshot
        .slots
        .iter()
        .map(|state| {
            let text = &texts[&(state.doc_id.to_string(), state.version)];
            DocumentInput {
                state: state.clone(),
                segments: cut_segments(text, &rule),
            }
        })
        .collect();
    let plan = Planner {
        context: &context,
        tree: &tree,
    }
    .plan(&documents);
    let mut made = Made {
        context: &context,
        texts: &texts,
        nodes: Vec::new(),
    };
    let names: BTreeMap<NodeKey, String> = plan
        .pages
        .iter()
        .map(|(key, page)| (*key, page.name()))
        .collect();
    for (key, page) in &plan.pages {
        made.add_page(*key, page, &names);
    }
    let run = run_file(principal, snapshot, plan.root, made.nodes);
    Fixture { run, events, texts }
}

fn run_file(
    principal: PrincipalId,
    snapshot: Snapshot,
    root: NodeKey,
    mut nodes: Vec<RunNode>,
) -> RunFile {
    nodes[0].reused = true;
    let count = nodes.len() as u64;
    let generation = TextDigest::of(b"input").to_hex();
    nodes.last_mut().unwrap().result.generation = Some(generation.clone());
    RunFile {
        format: RUN_FORMAT.to_owned(),
        run_id: "r-1".to_owned(),
        case_id: CaseId::new("case").unwrap(),
        principal,
        event: 12,
        profile: "facts".to_owned(),
        full: false,
        snapshot_sha256: snapshot_sha256(&snapshot).unwrap(),
        snapshot,
        root,
        generations: BTreeMap::from([(generation, json!({"text": "{}", "seconds": 1.5}))]),
        counts: RunCounts {
            nodes: count,
            recomputed: count - 1,
            reused: 1,
            model_calls: 1,
            generations_reused: 0,
            new_tokens: 17,
        },
        invalidation: Invalidation {
            nodes: nodes.iter().map(|node| node.name.clone()).collect(),
            previous_root_key: Some(NodeKey::of(b"before")),
            current_root_key: root,
            previous_status: Some("VALID".to_owned()),
            serve_refusal: Some(json!({"status": "STALE", "reasons": []})),
        },
        nodes,
        seconds: 0.25,
    }
}

struct Made<'a> {
    context: &'a SpecContext,
    texts: &'a BTreeMap<(String, u32), String>,
    nodes: Vec<RunNode>,
}

impl Made<'_> {
    fn add_page(&mut self, key: NodeKey, page: &Page, names: &BTreeMap<NodeKey, String>) {
        let mut children = Vec::new();
        for entry in &page.entries {
            match entry {
                Entry::Leaf(leaf) => {
                    children.push(leaf.name());
                    self.add_leaf(leaf);
                }
                Entry::Node(node) => children.push(names[&node.key].clone()),
            }
        }
        let below: Vec<&NodeResult> = children
            .iter()
            .map(|name| &self.nodes.iter().find(|n| n.name == *name).unwrap().result)
            .collect();
        let result = reduce(&below);
        self.nodes.push(RunNode {
            name: page.name(),
            kind: NodeKind::Reduction,
            children,
            spec: serde_json::from_str(&page.spec(self.context)).unwrap(),
            key,
            reused: false,
            result,
        });
    }

    fn add_leaf(&mut self, leaf: &LeafEntry) {
        let result = match leaf.segment {
            None => NodeResult::empty(NodeStatus::Ineligible),
            Some(_) if leaf.state.doc_id.as_str() == "e.txt" => NodeResult {
                diagnostic: Some("the output is no JSON".to_owned()),
                ..NodeResult::empty(NodeStatus::Invalid)
            },
            Some(span) => self.read(leaf, span),
        };
        let spec = self.context.leaf_spec(&leaf.state, leaf.segment);
        self.nodes.push(RunNode {
            name: leaf.name(),
            kind: NodeKind::Leaf,
            children: Vec::new(),
            spec: serde_json::from_str(&spec).unwrap(),
            key: leaf.key,
            reused: false,
            result,
        });
    }

    // One claim for each line: fact lines as such, the first other line withheld, the rest verbatim.
    fn read(&self, leaf: &LeafEntry, segment: Span) -> NodeResult {
        let state = &leaf.state;
        let text = &self.texts[&(state.doc_id.to_string(), state.version)];
        let mut result = NodeResult::empty(NodeStatus::Valid);
        let mut start = 0;
        for line in text.split('\n') {
            let length = u32::try_from(line.chars().count()).unwrap();
            let span = Span::new(start, start + length);
            start += length + 1;
            if line.is_empty() || !span.is_within(segment) {
                continue;
            }
            let evidence =
                Evidence::cite(&state.doc_id, state.version, state.text_sha256, span, line);
            let id = evidence.evidence_id.clone();
            result.evidence.insert(id.clone(), evidence);
            if let Some((_, value)) = line.split_once("delivery: ") {
                let fields = [("field", "delivery"), ("value", value)];
                result
                    .claims
                    .push(claim(&fields, id, Verdict::Supported, Method::FactLine));
            } else if result.withheld.is_empty() {
                let fields = [("statement", "made up")];
                result
                    .withheld
                    .push(claim(&fields, id, Verdict::Unsupported, Method::None));
            } else {
                let fields = [("statement", line)];
                result
                    .claims
                    .push(claim(&fields, id, Verdict::Supported, Method::Verbatim));
            }
        }
        result
    }
}

fn claim(fields: &[(&str, &str)], id: EvidenceId, verdict: Verdict, method: Method) -> Claim {
    let fields: Fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let support = Support {
        verdict,
        method,
        version: 1,
        detail: String::new(),
    };
    Claim {
        fields,
        evidence: vec![id],
        support,
        salience: 1,
    }
}

fn reduce(children: &[&NodeResult]) -> NodeResult {
    let incomplete = children
        .iter()
        .any(|c| matches!(c.status, NodeStatus::Invalid | NodeStatus::Partial));
    let status = if incomplete {
        NodeStatus::Partial
    } else {
        NodeStatus::Valid
    };
    let mut result = NodeResult::empty(status);
    for child in children {
        for claim in child.claims.iter().take(2) {
            for id in &claim.evidence {
                result
                    .evidence
                    .insert(id.clone(), child.evidence[id].clone());
            }
            result.claims.push(claim.clone());
        }
    }
    result
}
