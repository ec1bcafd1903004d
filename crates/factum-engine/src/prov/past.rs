//! What events say of documents, versions, rights and summaries, with nothing in it that the caller may not see.
//!
//! Pure: events in, lineage out. It knows nothing of runs, models or the store.

use std::collections::{BTreeMap, HashMap};

use factum_base::{DocumentId, PrincipalId};
use factum_casefile::{Event, EventKind, SlotState, Snapshot};

use super::lineage::{DocumentLineage, Moment, RightId, RightLineage, SeenEvent, VersionLineage};

/// What a caller may know of a document that it has a slot for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sight {
    /// Its text too.
    Whole,
    /// Its name; it is withdrawn, and its text goes to no one.
    Named,
    /// That something is there, without a name.
    Hidden,
}

/// Who looks, and what it may see. Documents that it has no slot for are absent.
pub(super) struct Eyes<'a> {
    pub(super) caller: &'a PrincipalId,
    pub(super) owner: &'a PrincipalId,
    pub(super) sights: &'a HashMap<DocumentId, Sight>,
}

impl Eyes<'_> {
    fn named(&self, doc_id: &DocumentId) -> bool {
        matches!(self.sights.get(doc_id), Some(Sight::Whole | Sight::Named))
    }

    /// An event as the caller may know of it; the same ones as in its `history`.
    pub(super) fn see(&self, event: &Event) -> Option<SeenEvent> {
        let principal = event.kind.principal();
        if principal.is_some_and(|who| who != self.caller) && self.caller != self.owner {
            return None;
        }
        let doc_id = event.kind.doc_id();
        let shown = doc_id.filter(|doc_id| self.named(doc_id));
        if let Some(doc_id) = doc_id
            && shown.is_none()
        {
            let moved = matches!(event.kind, EventKind::Moved { .. });
            let known = self.sights.contains_key(doc_id) || self.caller == self.owner;
            if !known || !(principal.is_some() || moved) {
                return None;
            }
        }
        let version = match &event.kind {
            EventKind::Published { version, .. } => Some(*version),
            _ => None,
        };
        Some(SeenEvent {
            moment: Moment::of(event),
            word: event.kind.word(),
            by: event.by.clone(),
            doc_id: shown.cloned(),
            version,
            principal: principal.cloned(),
            whole_case: doc_id.is_none(),
        })
    }

    /// The documents that may be named, with their versions.
    pub(super) fn documents(&self, events: &[Event]) -> BTreeMap<DocumentId, DocumentLineage> {
        let mut documents: BTreeMap<DocumentId, DocumentLineage> = BTreeMap::new();
        for event in events {
            let Some(doc_id) = event.kind.doc_id().filter(|doc_id| self.named(doc_id)) else {
                continue;
            };
            let document = documents
                .entry(doc_id.clone())
                .or_insert_with(|| DocumentLineage {
                    withdrawn: false,
                    versions: BTreeMap::new(),
                });
            match &event.kind {
                EventKind::Published {
                    version,
                    text_sha256,
                    ..
                } => {
                    let whole = self.sights.get(doc_id) == Some(&Sight::Whole);
                    let published = VersionLineage {
                        published: Moment::of(event),
                        invalidated: None,
                        text_sha256: whole.then_some(*text_sha256),
                    };
                    document.versions.insert(*version, published);
                }
                EventKind::Withdrawn { .. } => document.withdrawn = true,
                EventKind::Reinstated { .. } => document.withdrawn = false,
                _ => continue,
            }
            settle(document, Moment::of(event));
        }
        documents
    }

    /// The rights that grants made, and how each ended. A right to the whole case file goes on where one document
    /// is revoked; only its part over that document ends.
    pub(super) fn rights(&self, events: &[Event]) -> BTreeMap<RightId, RightLineage> {
        // With the document granted, which may be one that is not named.
        let mut rights: BTreeMap<RightId, (RightLineage, Option<&DocumentId>)> = BTreeMap::new();
        for event in events {
            let Some(seen) = self.see(event) else {
                continue;
            };
            match &event.kind {
                EventKind::Granted { doc_id, to } => {
                    let id = RightId {
                        grant: event.number,
                        part: None,
                    };
                    let right = RightLineage {
                        holder: to.clone(),
                        doc_id: seen.doc_id,
                        whole_case: seen.whole_case,
                        granted: seen.moment,
                        revoked: None,
                    };
                    rights.insert(id, (right, doc_id.as_ref()));
                }
                EventKind::Revoked { doc_id, from } => {
                    let mut parts = Vec::new();
                    for (id, (right, of)) in &mut rights {
                        if right.holder != *from || right.revoked.is_some() {
                            continue;
                        }
                        if doc_id.is_none() || doc_id.as_ref() == *of {
                            right.revoked = Some(seen.moment);
                        } else if let (true, Some(shown)) = (right.whole_case, &seen.doc_id) {
                            let id = RightId {
                                grant: id.grant,
                                part: Some(shown.clone()),
                            };
                            let part = RightLineage {
                                doc_id: Some(shown.clone()),
                                whole_case: false,
                                revoked: Some(seen.moment),
                                ..right.clone()
                            };
                            parts.push((id, (part, doc_id.as_ref())));
                        }
                    }
                    for (id, part) in parts {
                        rights.entry(id).or_insert(part);
                    }
                }
                _ => {}
            }
        }
        rights
            .into_iter()
            .map(|(id, (right, _))| (id, right))
            .collect()
    }
}

/// Brings the versions up to date after an event: the latest counts, unless the document is withdrawn. A
/// version that counts again after all was never invalidated for good, so only the last end stands.
fn settle(document: &mut DocumentLineage, moment: Moment) {
    let latest = document.versions.keys().next_back().copied();
    let withdrawn = document.withdrawn;
    for (number, version) in &mut document.versions {
        if Some(*number) == latest && !withdrawn {
            version.invalidated = None;
        } else {
            version.invalidated.get_or_insert(moment);
        }
    }
}

/// How each document stood for a principal, from event to event.
pub(super) struct Standing {
    documents: Vec<Vec<(u64, Option<SlotState>)>>,
}

impl Standing {
    pub(super) fn of(events: &[Event], owner: &PrincipalId, principal: &PrincipalId) -> Self {
        let concerns = |event: &&Event| event.kind.principal().is_none_or(|who| who == principal);
        let (whole, single): (Vec<&Event>, Vec<&Event>) = events
            .iter()
            .filter(concerns)
            .partition(|event| event.kind.doc_id().is_none());
        let mut of_document: BTreeMap<&DocumentId, Vec<&Event>> = BTreeMap::new();
        for event in single {
            if let Some(doc_id) = event.kind.doc_id() {
                of_document.entry(doc_id).or_default().push(event);
            }
        }
        let documents = of_document
            .into_values()
            .map(|mut own| {
                own.extend(&whole);
                own.sort_by_key(|event| event.number);
                own.iter()
                    .map(|last| {
                        let until = own.iter().copied();
                        let mut then = Snapshot::fold(until, owner, principal, last.number);
                        (last.number, then.slots.pop())
                    })
                    .collect()
            })
            .collect();
        Self { documents }
    }

    /// The events since which the snapshot differs from the one after `event`, oldest first; empty where it is
    /// as it was then.
    pub(super) fn stale_since(&self, event: u64) -> Vec<u64> {
        // By event: how many more documents differ after it than before it.
        let mut turns: BTreeMap<u64, i64> = BTreeMap::new();
        for document in &self.documents {
            let (before, after) = document.split_at(document.partition_point(|(n, _)| *n <= event));
            let then = before.last().and_then(|(_, state)| state.as_ref());
            let (mut was, mut differed) = (then, false);
            for (number, state) in after {
                let (state, differs) = (state.as_ref(), state.as_ref() != then);
                if state != was {
                    let turn = i64::from(differs) - i64::from(differed);
                    *turns.entry(*number).or_default() += turn;
                }
                (was, differed) = (state, differs);
            }
        }
        let (mut differing, mut stretch) = (0, Vec::new());
        for (number, turn) in turns {
            differing += turn;
            if differing == 0 {
                stretch.clear();
            } else {
                stretch.push(number);
            }
        }
        stretch
    }
}
