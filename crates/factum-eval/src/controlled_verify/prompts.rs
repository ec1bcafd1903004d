//! What a model must have been shown at a node: worked out again from the node's own document, or from what its
//! children hand on.

use std::collections::BTreeMap;

use factum_base::write_json_string;
use serde_json::{Map, Value, json};

use super::citations::Held;
use super::facts::{Fields, lines, squeezed};
use super::json::{field, list, number, text, texts};
use super::tree::{Node, Tree};

/// A claim before its support is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) fields: Fields,
    pub(super) evidence: Vec<String>,
    /// `None` where it can't be worked out here.
    pub(super) salience: Option<u64>,
}

/// What a node reads.
#[derive(Default)]
pub(super) struct Given {
    /// Claims of its children; none for a leaf.
    pub(super) said: Vec<Said>,
    /// What it may cite, in order.
    pub(super) pieces: Vec<(String, Value)>,
}

impl Given {
    /// The lines of a leaf's document.
    pub(super) fn leaf(node: &Node<'_>, held: &Held<'_>) -> Self {
        let (doc_id, version) = (text(node.spec, "doc_id"), number(node.spec, "version"));
        let sha256 = text(node.spec, "text_sha256");
        let words = held.corpus.text(doc_id, version).unwrap_or("");
        let pieces = lines(words).into_iter().map(|line| {
            (
                line.id(doc_id, version),
                line.evidence(doc_id, version, sha256),
            )
        });
        Self {
            said: Vec::new(),
            pieces: pieces.collect(),
        }
    }

    /// What children hand on, in the order of their keys: each fact once, with all that it rests on as far as the
    /// schema allows. INVALID children hand on nothing.
    pub(super) fn reduction(node: &Node<'_>, tree: &Tree<'_>) -> Self {
        let schema = field(
            field(field(node.spec, "transformation"), "profile"),
            "claim",
        );
        let most = usize::try_from(number(schema, "max_evidence")).unwrap_or(0);
        let mut children: Vec<&Node<'_>> = node
            .children
            .iter()
            .filter_map(|&n| tree.nodes.get(n))
            .collect();
        children.sort_by_key(|child| child.key);
        children.retain(|child| text(child.result, "status") != "INVALID");
        let mut given = Self::default();
        for claim in children
            .iter()
            .flat_map(|child| list(child.result, "claims"))
        {
            let said = said_of(claim);
            match given
                .said
                .iter_mut()
                .find(|known| known.fields == said.fields)
            {
                None => given.said.push(said),
                Some(known) => {
                    known.salience = known.salience.max(said.salience);
                    for id in said.evidence {
                        if known.evidence.len() < most && !known.evidence.contains(&id) {
                            known.evidence.push(id);
                        }
                    }
                }
            }
        }
        for id in given.said.iter().flat_map(|said| &said.evidence) {
            if given.pieces.iter().any(|(known, _)| known == id) {
                continue;
            }
            let mut found = children
                .iter()
                .filter_map(|child| field(child.result, "evidence").get(id.as_str()));
            if let Some(piece) = found.next() {
                given.pieces.push((id.clone(), piece.clone()));
            }
        }
        given
    }

    /// The quotes, in order.
    pub(super) fn quotes(&self) -> Vec<&str> {
        self.pieces
            .iter()
            .map(|(_, piece)| text(piece, "quote"))
            .collect()
    }

    /// The input of a call, as its digest is taken over.
    pub(super) fn input(&self, node: &Node<'_>, model: &Value, versions: &Value) -> Value {
        let transformation = field(node.spec, "transformation");
        let shown = if node.is_leaf {
            format!("<document>\n{}</document>", self.passages())
        } else {
            format!(
                "<notes>\n{}</notes>\n<passages>\n{}</passages>",
                self.notes(),
                self.passages()
            )
        };
        json!({
            "constraint": self.constraint(transformation),
            "constraint_version": field(versions, "constraint_version"),
            "format": "factum/generation-input/1",
            "input_budget": field(transformation, "input_tokens"),
            "max_new_tokens": field(transformation, "new_tokens"),
            "messages": [
                {"content": field(field(transformation, "prompt"), "text"), "role": "system"},
                {"content": shown, "role": "user"},
            ],
            "model": model,
        })
    }

    fn passages(&self) -> String {
        let passages = (1..).zip(self.quotes());
        passages
            .map(|(n, quote)| format!("[e{n}] {}\n", squeezed(quote)))
            .collect()
    }

    fn notes(&self) -> String {
        let mut out = String::new();
        for said in &self.said {
            let cited = said.evidence.iter().filter_map(|id| {
                let place = self.pieces.iter().position(|(known, _)| known == id)?;
                Some(format!("\"e{}\"", place + 1))
            });
            out.push_str(&format!(
                "{{\"evidence\":[{}]",
                cited.collect::<Vec<_>>().join(",")
            ));
            for (name, value) in &said.fields {
                out.push(',');
                write_json_string(&mut out, name);
                out.push(':');
                write_json_string(&mut out, value);
            }
            out.push_str("}\n");
        }
        out
    }

    /// What decoding was held to.
    fn constraint(&self, transformation: &Value) -> Value {
        if text(field(transformation, "decoding"), "mode") != "grounded" {
            return json!({"kind": "none"});
        }
        let claim = field(field(transformation, "profile"), "claim");
        let rules: Map<String, Value> = field(claim, "fields")
            .as_object()
            .cloned()
            .unwrap_or_default();
        let rules: BTreeMap<String, Value> = rules.into_iter().collect();
        let fields: Vec<Value> = rules
            .iter()
            .map(|(name, rule)| {
                let value = if !texts(rule, "one_of").is_empty() {
                    json!({"one_of": field(rule, "one_of")})
                } else if field(rule, "from_quote") == &Value::Bool(true) {
                    json!("substring")
                } else {
                    json!("free")
                };
                json!({
                    "max_chars": field(rule, "max_chars"),
                    "name": name,
                    "optional": field(rule, "optional"),
                    "value": value,
                })
            })
            .collect();
        let sources = (1..).zip(self.quotes());
        let sources: Vec<Value> = sources
            .map(|(n, quote)| json!({"id": format!("e{n}"), "text": quote}))
            .collect();
        json!({
            "kind": "grounded",
            "schema": {
                "citations_key": "evidence",
                "fields": fields,
                "items_key": "claims",
                "max_citations": field(claim, "max_evidence"),
                "max_items": field(claim, "max_claims"),
                "sources": sources,
            },
        })
    }
}

/// A recorded claim without its verdict.
pub(super) fn said_of(claim: &Value) -> Said {
    Said {
        fields: fields_of(claim),
        evidence: texts(claim, "evidence")
            .into_iter()
            .map(str::to_owned)
            .collect(),
        salience: field(claim, "salience").as_u64(),
    }
}

/// A claim's fields.
pub(super) fn fields_of(claim: &Value) -> Fields {
    let fields = field(claim, "fields").as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}
