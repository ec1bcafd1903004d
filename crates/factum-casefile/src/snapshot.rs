//! What a principal may see of a case file at an event number, folded from the events alone.
//!
//! This is the plain definition. The store answers the same question from tables kept up to date in
//! the transaction of each event; tests and `verify` hold it against this fold.

use std::collections::BTreeMap;

use factum_base::{DocumentId, PrincipalId, TextDigest};
use serde::{Deserialize, Serialize};

use crate::event::{Event, EventKind};
use crate::slot::Slot;

/// One document as a principal's summary meets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotState {
    /// Order key.
    pub slot: Slot,
    /// The document.
    pub doc_id: DocumentId,
    /// The version that counts for this principal.
    pub version: u32,
    /// Digest of that version's text layer.
    pub text_sha256: TextDigest,
    /// Not withdrawn, as far as the principal could last see.
    pub active: bool,
    /// Active, and the principal may see it. Only then does its text go anywhere.
    pub eligible: bool,
    /// The event that last granted or revoked this document for this principal; 0 for the owner's
    /// standing right.
    pub access_revision: u64,
}

/// All slots of a principal, in slot order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Snapshot {
    /// In slot order. Documents never granted have none.
    pub slots: Vec<SlotState>,
}

#[derive(Clone)]
struct Document {
    slot: Slot,
    version: u32,
    text_sha256: TextDigest,
    active: bool,
    access: Option<Access>,
}

#[derive(Clone)]
struct Access {
    revision: u64,
    /// `Some` once revoked: what the principal last saw. Later versions and withdrawals must not
    /// show through.
    frozen: Option<(u32, TextDigest, bool)>,
}

impl Snapshot {
    /// The snapshot of `principal` after event `at`, from events in order. `owner` may see all unless
    /// it is revoked from it.
    pub fn fold<'e>(
        events: impl IntoIterator<Item = &'e Event>,
        owner: &PrincipalId,
        principal: &PrincipalId,
        at: u64,
    ) -> Self {
        let mut documents: BTreeMap<&DocumentId, Document> = BTreeMap::new();
        let mut whole_case: Option<u64> = (owner == principal).then_some(0);
        for event in events.into_iter().take_while(|event| event.number <= at) {
            apply(event, principal, &mut documents, &mut whole_case);
        }
        let mut slots: Vec<SlotState> = documents
            .into_iter()
            .filter_map(|(id, document)| slot_state(id, document))
            .collect();
        slots.sort_by(|a, b| a.slot.cmp(&b.slot));
        Self { slots }
    }
}

fn apply<'e>(
    event: &'e Event,
    principal: &PrincipalId,
    documents: &mut BTreeMap<&'e DocumentId, Document>,
    whole_case: &mut Option<u64>,
) {
    match &event.kind {
        EventKind::Published {
            doc_id,
            version,
            text_sha256,
            slot,
        } => {
            let new = || Document {
                slot: slot.clone(),
                version: *version,
                text_sha256: *text_sha256,
                active: true,
                access: whole_case.map(|revision| Access {
                    revision,
                    frozen: None,
                }),
            };
            let document = documents.entry(doc_id).or_insert_with(new);
            document.version = *version;
            document.text_sha256 = *text_sha256;
        }
        EventKind::Withdrawn { doc_id, .. } => set_active(documents, doc_id, false),
        EventKind::Reinstated { doc_id } => set_active(documents, doc_id, true),
        EventKind::Moved { doc_id, slot, .. } => {
            if let Some(document) = documents.get_mut(doc_id) {
                document.slot = slot.clone();
            }
        }
        EventKind::Granted { doc_id, to } if to == principal => {
            if doc_id.is_none() {
                *whole_case = Some(event.number);
            }
            for document in concerned(documents, doc_id.as_ref()) {
                document.access = Some(Access {
                    revision: event.number,
                    frozen: None,
                });
            }
        }
        EventKind::Revoked { doc_id, from } if from == principal => {
            if doc_id.is_none() {
                *whole_case = None;
            }
            for document in concerned(documents, doc_id.as_ref()) {
                let seen = (document.version, document.text_sha256, document.active);
                if let Some(access) = &mut document.access {
                    access.revision = event.number;
                    access.frozen.get_or_insert(seen);
                }
            }
        }
        EventKind::Granted { .. } | EventKind::Revoked { .. } => {}
    }
}

fn set_active(documents: &mut BTreeMap<&DocumentId, Document>, doc_id: &DocumentId, active: bool) {
    if let Some(document) = documents.get_mut(doc_id) {
        document.active = active;
    }
}

fn concerned<'a>(
    documents: &'a mut BTreeMap<&DocumentId, Document>,
    only: Option<&'a DocumentId>,
) -> impl Iterator<Item = &'a mut Document> {
    documents
        .iter_mut()
        .filter(move |(id, _)| only.is_none_or(|only| only == **id))
        .map(|(_, d)| d)
}

fn slot_state(doc_id: &DocumentId, document: Document) -> Option<SlotState> {
    let access = document.access?;
    let (version, text_sha256, active) =
        access
            .frozen
            .unwrap_or((document.version, document.text_sha256, document.active));
    Some(SlotState {
        slot: document.slot,
        doc_id: doc_id.clone(),
        version,
        text_sha256,
        active,
        eligible: active && access.frozen.is_none(),
        access_revision: access.revision,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> DocumentId {
        DocumentId::new(text).unwrap()
    }
    fn who(text: &str) -> PrincipalId {
        PrincipalId::new(text).unwrap()
    }
    fn history(kinds: Vec<EventKind>) -> Vec<Event> {
        kinds
            .into_iter()
            .zip(1..)
            .map(|(kind, number)| Event {
                number,
                at: 0,
                by: who("local"),
                kind,
            })
            .collect()
    }
    fn publish(doc: &str, version: u32) -> EventKind {
        EventKind::Published {
            doc_id: id(doc),
            version,
            text_sha256: TextDigest::of(format!("{doc}{version}").as_bytes()),
            slot: Slot::between(None, None, 9)[usize::from(doc.as_bytes()[0] - b'a')].clone(),
        }
    }
    fn grant(doc: Option<&str>) -> EventKind {
        EventKind::Granted {
            doc_id: doc.map(id),
            to: who("ann"),
        }
    }
    fn revoke(doc: Option<&str>) -> EventKind {
        EventKind::Revoked {
            doc_id: doc.map(id),
            from: who("ann"),
        }
    }
    fn states(events: &[Event], principal: &str) -> Vec<(String, u32, bool, bool, u64)> {
        Snapshot::fold(events, &who("local"), &who(principal), u64::MAX)
            .slots
            .into_iter()
            .map(|s| {
                (
                    s.doc_id.to_string(),
                    s.version,
                    s.active,
                    s.eligible,
                    s.access_revision,
                )
            })
            .collect()
    }

    #[test]
    fn never_granted_documents_have_no_slot() {
        let events = history(vec![publish("a", 1), publish("b", 1), grant(Some("b"))]);
        assert_eq!(states(&events, "ann"), [("b".into(), 1, true, true, 3)]);
        assert_eq!(states(&events, "local").len(), 2);
    }

    #[test]
    fn a_whole_case_grant_covers_later_documents() {
        let events = history(vec![publish("a", 1), grant(None), publish("b", 1)]);
        assert_eq!(
            states(&events, "ann"),
            [
                ("a".into(), 1, true, true, 2),
                ("b".into(), 1, true, true, 2)
            ]
        );
    }

    #[test]
    fn a_revoked_slot_keeps_the_last_version_it_saw() {
        let events = history(vec![
            publish("a", 1),
            grant(None),
            revoke(Some("a")),
            publish("a", 2),
            EventKind::Withdrawn {
                doc_id: id("a"),
                file_gone: false,
            },
        ]);
        assert_eq!(states(&events, "ann"), [("a".into(), 1, true, false, 3)]);
    }

    #[test]
    fn the_latest_grant_or_revoke_wins() {
        let events = history(vec![
            publish("a", 1),
            grant(Some("a")),
            revoke(None),
            publish("b", 1),
            grant(Some("a")),
        ]);
        assert_eq!(states(&events, "ann"), [("a".into(), 1, true, true, 5)]);
    }

    #[test]
    fn a_snapshot_can_be_taken_at_any_event() {
        let events = history(vec![publish("a", 1), publish("a", 2)]);
        let then = Snapshot::fold(&events, &who("local"), &who("local"), 1);
        assert_eq!(then.slots[0].version, 1);
    }
}
