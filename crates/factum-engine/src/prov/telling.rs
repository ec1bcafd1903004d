//! Lineage as PROV-O: documents, versions, events and rights here, runs and results in `telling_runs`.
//!
//! Pure. What is told and what is not was decided before; `docs/provenance.md` describes the mapping.

use factum_base::DocumentId;
use oxrdf::Triple;

use super::lineage::{DocumentLineage, Lineage, RightId, RightLineage, SeenEvent};
use super::names::{self, InCase, comment, label, prov, term};
use super::triples::Triples;

/// All that a lineage says, in a fixed order.
pub(super) fn tell(lineage: &Lineage) -> Vec<Triple> {
    let iris = InCase::new(&lineage.case_id);
    let mut telling = Telling {
        lineage,
        iris,
        triples: Triples::default(),
    };
    telling.case();
    for (doc_id, document) in &lineage.documents {
        telling.document(doc_id, document);
    }
    for event in &lineage.events {
        telling.event(event);
    }
    for (id, right) in &lineage.rights {
        telling.right(id, right);
    }
    telling.agents();
    telling.runs();
    telling.results();
    telling.answers();
    telling.quotes();
    telling.triples.sorted()
}

/// Being told.
pub(super) struct Telling<'l> {
    pub(super) lineage: &'l Lineage,
    pub(super) iris: InCase,
    pub(super) triples: Triples,
}

impl Telling<'_> {
    fn case(&mut self) {
        let lineage = self.lineage;
        let mut case = self.triples.about(self.iris.case());
        case.a(&["Entity", "Collection"])
            .ours(&["CaseFile"])
            .text(label(), &lineage.title)
            .text(term("caseId"), lineage.case_id.as_str())
            .time(prov("generatedAtTime"), lineage.created_at);
        for doc_id in lineage.documents.keys() {
            case.is(prov("hadMember"), self.iris.document(doc_id));
        }
        let mut caller = self.triples.about(names::principal(&lineage.caller));
        caller
            .a(&["Agent"])
            .ours(&["Principal"])
            .text(label(), lineage.caller.as_str());
        let mut view = self.triples.about(self.iris.view(&lineage.caller));
        view.a(&["Entity"])
            .ours(&["View"])
            .is(prov("specializationOf"), self.iris.case())
            .is(term("principal"), names::principal(&lineage.caller))
            .number(term("lastEvent"), lineage.last_event);
        if let Some(left_out) = lineage.left_out {
            let (hidden, outlined) = (left_out.hidden, left_out.outlined);
            view.number(term("runsLeftOut"), hidden)
                .number(term("runsInOutline"), outlined);
            if hidden > 0 {
                let note = format!(
                    "Your runs left out, since they rest on documents that you may no longer see: {hidden}."
                );
                view.text(comment(), &note);
            }
            if outlined > 0 {
                let note = format!(
                    "Your runs in outline, since they rest on documents that are withdrawn: {outlined}. What they \
                     were derived from is told, and none of their words."
                );
                view.text(comment(), &note);
            }
        }
    }

    fn document(&mut self, doc_id: &DocumentId, document: &DocumentLineage) {
        let iri = self.iris.document(doc_id);
        self.triples
            .about(iri.clone())
            .a(&["Entity"])
            .ours(&["Document"])
            .text(label(), doc_id.as_str())
            .text(term("documentId"), doc_id.as_str())
            .flag(term("withdrawn"), document.withdrawn);
        let mut previous = None;
        for (number, version) in &document.versions {
            let mut about = self.triples.about(self.iris.version(doc_id, *number));
            about
                .a(&["Entity"])
                .ours(&["DocumentVersion"])
                .text(label(), &format!("{doc_id}, version {number}"))
                .number(term("number"), u64::from(*number))
                .is(prov("specializationOf"), iri.clone())
                .is(
                    prov("wasGeneratedBy"),
                    self.iris.event(version.published.event),
                )
                .time(prov("generatedAtTime"), version.published.at);
            if let Some(digest) = &version.text_sha256 {
                about.text(term("textSha256"), &digest.to_hex());
            }
            if let Some(end) = version.invalidated {
                about
                    .is(prov("wasInvalidatedBy"), self.iris.event(end.event))
                    .time(prov("invalidatedAtTime"), end.at);
            }
            if let Some(previous) = previous {
                about.is(term("supersedes"), self.iris.version(doc_id, previous));
            }
            previous = Some(*number);
        }
    }

    fn event(&mut self, event: &SeenEvent) {
        let number = event.moment.event;
        let what = match (&event.doc_id, event.version) {
            (Some(doc_id), Some(version)) => format!(": {doc_id}, version {version}"),
            (Some(doc_id), None) => format!(": {doc_id}"),
            _ => String::new(),
        };
        let mut about = self.triples.about(self.iris.event(number));
        about
            .a(&["Activity"])
            .ours(&["Event", class_of(event.word)])
            .text(label(), &format!("event {number}, {}{what}", event.word))
            .number(term("number"), number)
            .time(prov("startedAtTime"), event.moment.at)
            .time(prov("endedAtTime"), event.moment.at)
            .is(prov("wasAssociatedWith"), names::principal(&event.by));
        if let Some(doc_id) = &event.doc_id {
            about.is(term("document"), self.iris.document(doc_id));
        }
        if event.whole_case {
            about.is(term("document"), self.iris.case());
        }
        if let Some(principal) = &event.principal {
            about.is(term("principal"), names::principal(principal));
        }
        for principal in [Some(&event.by), event.principal.as_ref()]
            .into_iter()
            .flatten()
        {
            self.triples
                .about(names::principal(principal))
                .a(&["Agent"])
                .ours(&["Principal"])
                .text(label(), principal.as_str());
        }
    }

    fn right(&mut self, id: &RightId, right: &RightLineage) {
        let whole = RightId {
            grant: id.grant,
            part: None,
        };
        let mut about = self.triples.about(self.iris.right(id));
        if *id != whole {
            about.is(prov("specializationOf"), self.iris.right(&whole));
        }
        about
            .a(&["Entity"])
            .ours(&["Right"])
            .is(term("principal"), names::principal(&right.holder))
            .is(prov("wasGeneratedBy"), self.iris.event(id.grant))
            .time(prov("generatedAtTime"), right.granted.at);
        if let Some(doc_id) = &right.doc_id {
            about.is(term("document"), self.iris.document(doc_id));
        }
        if right.whole_case {
            about.is(term("document"), self.iris.case());
        }
        if let Some(end) = right.revoked {
            about
                .is(prov("wasInvalidatedBy"), self.iris.event(end.event))
                .time(prov("invalidatedAtTime"), end.at);
        }
    }
}

/// The class of an event, by its word.
fn class_of(word: &str) -> &'static str {
    match word {
        "published" => "Published",
        "withdrawn" => "Withdrawn",
        "reinstated" => "Reinstated",
        "moved" => "Moved",
        "granted" => "Granted",
        _ => "Revoked",
    }
}
