//! The names of things: IRIs made from ids and digests, and the terms that PROV lacks.
//!
//! Whatever came from outside is percent-encoded down to RFC 3986's unreserved characters, so that no id can end
//! an IRI or look like a part of another. It knows nothing of what is said about things.

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_casefile::EvidenceId;
use oxrdf::NamedNode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::lineage::{AgentId, AnswerId, ResultId, RightId};

/// W3C PROV-O.
pub(super) const PROV: &str = "http://www.w3.org/ns/prov#";
/// RDF Schema, for labels.
pub(super) const RDFS: &str = "http://www.w3.org/2000/01/rdf-schema#";
/// XML Schema, for times and numbers.
pub(super) const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
/// RDF itself, for types.
pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
/// What PROV lacks; `docs/provenance.md` lists the terms.
pub(super) const TERMS: &str = "urn:factum:terms:";

/// Prefixes by name.
pub(super) const PREFIXES: [(&str, &str); 4] = [
    ("factum", TERMS),
    ("prov", PROV),
    ("rdfs", RDFS),
    ("xsd", XSD),
];

const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

fn part(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

// Everything handed here is ASCII without a character that IRIs forbid; a property test holds it against
// the library's own check.
fn iri(text: String) -> NamedNode {
    NamedNode::new_unchecked(text)
}

/// A term of PROV-O.
pub(super) fn prov(name: &str) -> NamedNode {
    iri(format!("{PROV}{name}"))
}

/// A term of our own.
pub(super) fn term(name: &str) -> NamedNode {
    iri(format!("{TERMS}{name}"))
}

/// `rdf:type`.
pub(super) fn rdf_type() -> NamedNode {
    iri(format!("{RDF}type"))
}

/// `rdfs:label`.
pub(super) fn label() -> NamedNode {
    iri(format!("{RDFS}label"))
}

/// `rdfs:comment`.
pub(super) fn comment() -> NamedNode {
    iri(format!("{RDFS}comment"))
}

/// A datatype.
pub(super) fn xsd(name: &str) -> NamedNode {
    iri(format!("{XSD}{name}"))
}

/// A person, group or service.
pub(super) fn principal(id: &PrincipalId) -> NamedNode {
    iri(format!("urn:factum:principal:{}", part(id.as_str())))
}

/// A model, or extraction.
pub(super) fn agent(id: &AgentId) -> NamedNode {
    let kind = if id.model { "model" } else { "generator" };
    iri(format!("urn:factum:{kind}:{}", part(&id.digest)))
}

/// A profile with a generator, as it enters keys.
pub(super) fn plan(context: &str) -> NamedNode {
    iri(format!("urn:factum:context:{}", part(context)))
}

/// Names within one case file.
#[derive(Debug, Clone)]
pub(super) struct InCase {
    base: String,
}

impl InCase {
    pub(super) fn new(case_id: &CaseId) -> Self {
        let base = format!("urn:factum:case:{}", part(case_id.as_str()));
        Self { base }
    }

    fn named(&self, rest: &str) -> NamedNode {
        iri(format!("{}:{rest}", self.base))
    }

    pub(super) fn case(&self) -> NamedNode {
        iri(self.base.clone())
    }

    pub(super) fn view(&self, caller: &PrincipalId) -> NamedNode {
        self.named(&format!("view:{}", part(caller.as_str())))
    }

    pub(super) fn document(&self, doc_id: &DocumentId) -> NamedNode {
        self.named(&format!("document:{}", part(doc_id.as_str())))
    }

    pub(super) fn version(&self, doc_id: &DocumentId, version: u32) -> NamedNode {
        self.named(&format!(
            "document:{}:version:{version}",
            part(doc_id.as_str())
        ))
    }

    pub(super) fn quote(&self, id: &EvidenceId) -> NamedNode {
        self.named(&format!(
            "document:{}:version:{}:quote:{}-{}",
            part(id.doc_id.as_str()),
            id.version,
            id.span.start,
            id.span.end
        ))
    }

    pub(super) fn event(&self, number: u64) -> NamedNode {
        self.named(&format!("event:{number}"))
    }

    pub(super) fn right(&self, id: &RightId) -> NamedNode {
        match &id.part {
            None => self.named(&format!("right:{}", id.grant)),
            Some(doc_id) => {
                let doc_id = part(doc_id.as_str());
                self.named(&format!("right:{}:document:{doc_id}", id.grant))
            }
        }
    }

    pub(super) fn run(&self, run_id: &str) -> NamedNode {
        self.named(&format!("run:{}", part(run_id)))
    }

    pub(super) fn association(&self, run_id: &str) -> NamedNode {
        self.named(&format!("run:{}:association", part(run_id)))
    }

    pub(super) fn result(&self, id: &ResultId) -> NamedNode {
        self.named(&format!("run:{}:node:{}", part(&id.run_id), id.key))
    }

    pub(super) fn claim(&self, id: &ResultId, number: usize) -> NamedNode {
        self.named(&format!(
            "run:{}:node:{}:claim:{number}",
            part(&id.run_id),
            id.key
        ))
    }

    pub(super) fn answer(&self, id: &AnswerId) -> NamedNode {
        match &id.run_id {
            Some(run_id) => self.named(&format!("run:{}:answer:{}", part(run_id), id.digest)),
            None => self.named(&format!("answer:{}", id.digest)),
        }
    }

    pub(super) fn call(&self, run_id: &str, id: &AnswerId) -> NamedNode {
        self.named(&format!("run:{}:call:{}", part(run_id), id.digest))
    }
}
