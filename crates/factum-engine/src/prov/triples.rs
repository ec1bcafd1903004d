//! A set of triples in a fixed order, and its two written forms. It knows nothing of what they mean.

use oxjsonld::JsonLdSerializer;
use oxrdf::{GraphNameRef, Literal, NamedNode, QuadRef, Term, Triple};
use oxttl::TurtleSerializer;
use serde_json::{Map, Value, json};

use super::ProvenanceError;
use super::names::{PREFIXES, RDF, prov, rdf_type, term, xsd};

/// Triples being gathered.
#[derive(Debug, Default)]
pub(super) struct Triples(Vec<Triple>);

/// What is said of one thing.
pub(super) struct About<'t> {
    triples: &'t mut Triples,
    subject: NamedNode,
}

impl Triples {
    pub(super) fn about(&mut self, subject: NamedNode) -> About<'_> {
        About {
            triples: self,
            subject,
        }
    }

    /// Each triple once: by subject, types first, then by predicate and object.
    pub(super) fn sorted(self) -> Vec<Triple> {
        let types = rdf_type();
        let mut triples = self.0;
        triples.sort_by_cached_key(|triple| {
            (
                // Without its brackets: what belongs to a thing comes behind it.
                triple.subject.to_string().replace('>', ""),
                triple.predicate != types,
                triple.predicate.clone().into_string(),
                triple.object.to_string(),
            )
        });
        triples.dedup();
        triples
    }
}

impl About<'_> {
    /// A statement.
    pub(super) fn is(&mut self, predicate: NamedNode, object: impl Into<Term>) -> &mut Self {
        let triple = Triple::new(self.subject.clone(), predicate, object);
        self.triples.0.push(triple);
        self
    }

    /// Classes of PROV.
    pub(super) fn a(&mut self, classes: &[&str]) -> &mut Self {
        for class in classes {
            self.is(rdf_type(), prov(class));
        }
        self
    }

    /// Classes of our own.
    pub(super) fn ours(&mut self, classes: &[&str]) -> &mut Self {
        for class in classes {
            self.is(rdf_type(), term(class));
        }
        self
    }

    pub(super) fn text(&mut self, predicate: NamedNode, text: &str) -> &mut Self {
        self.is(predicate, Literal::new_simple_literal(text))
    }

    pub(super) fn number(&mut self, predicate: NamedNode, number: u64) -> &mut Self {
        let text = number.to_string();
        self.is(predicate, Literal::new_typed_literal(text, xsd("integer")))
    }

    pub(super) fn flag(&mut self, predicate: NamedNode, flag: bool) -> &mut Self {
        self.is(predicate, Literal::from(flag))
    }

    /// A time; nothing is said where it lies outside the calendar.
    pub(super) fn time(&mut self, predicate: NamedNode, milliseconds: i64) -> &mut Self {
        if let Ok(time) = jiff::Timestamp::from_millisecond(milliseconds) {
            let text = time.to_string();
            self.is(predicate, Literal::new_typed_literal(text, xsd("dateTime")));
        }
        self
    }
}

/// Turtle.
pub(super) fn turtle(triples: &[Triple]) -> Result<String, ProvenanceError> {
    let mut serializer = TurtleSerializer::new();
    for (name, namespace) in PREFIXES {
        serializer = serializer
            .with_prefix(name, namespace)
            .map_err(|error| ProvenanceError(error.to_string()))?;
    }
    let mut writer = serializer.for_writer(Vec::new());
    for triple in triples {
        writer.serialize_triple(triple)?;
    }
    text(writer.finish()?)
}

/// JSON-LD, with the prefixes of its context.
pub(super) fn json_ld(triples: &[Triple]) -> Result<Value, ProvenanceError> {
    let mut serializer = JsonLdSerializer::new();
    for (name, namespace) in PREFIXES {
        serializer = serializer
            .with_prefix(name, namespace)
            .map_err(|error| ProvenanceError(error.to_string()))?;
    }
    let mut writer = serializer.for_writer(Vec::new());
    for triple in triples {
        writer.serialize_quad(QuadRef::new(
            &triple.subject,
            &triple.predicate,
            &triple.object,
            GraphNameRef::DefaultGraph,
        ))?;
    }
    let text = text(writer.finish()?)?;
    let mut document: Value =
        serde_json::from_str(&text).map_err(|error| ProvenanceError(error.to_string()))?;
    if let Some(things) = document.get_mut("@graph").and_then(Value::as_array_mut) {
        for thing in things {
            shorten(thing);
        }
    }
    // Where the document's format name is added, processors must not take it for a statement.
    document["@context"]["format"] = Value::Null;
    Ok(document)
}

fn text(bytes: Vec<u8>) -> Result<String, ProvenanceError> {
    String::from_utf8(bytes).map_err(|error| ProvenanceError(error.to_string()))
}

/// The library writes names in full and types as any other statement: shortens names by the prefixes that
/// stand in the context, and writes `@type`.
fn shorten(thing: &mut Value) {
    let Some(statements) = thing.as_object_mut() else {
        return;
    };
    let types = format!("{RDF}type");
    let mut short = Map::new();
    for (name, mut values) in std::mem::take(statements) {
        let objects = values.as_array_mut().into_iter().flatten();
        if name == types {
            let classes: Vec<String> = objects
                .filter_map(|object| object["@id"].as_str().map(prefixed))
                .collect();
            short.insert("@type".to_owned(), json!(classes));
            continue;
        }
        for object in objects {
            if let Some(Value::String(datatype)) = object.get_mut("@type") {
                *datatype = prefixed(datatype);
            }
        }
        short.insert(prefixed(&name), values);
    }
    *statements = short;
}

fn prefixed(iri: &str) -> String {
    PREFIXES
        .iter()
        .find_map(|(name, namespace)| Some(format!("{name}:{}", iri.strip_prefix(namespace)?)))
        .unwrap_or_else(|| iri.to_owned())
}
