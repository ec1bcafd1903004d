//! The events of a build: exactly those of the protocol, chained, and the same as earlier builds of the workspace had.

use factum_graph::verify::verify_event_chain;
use serde_json::{Value, json};

use super::corpus::CaseTexts;
use super::json::{Kind, closed, field, text};
use super::protocol::{Change, OWNER, READER, Step};
use super::report::{Class, Report};

/// Checks the events recorded with a build. Their bare form, for the verifier of runs.
pub(super) fn check(
    recorded: &[Value],
    before: &[Value],
    corpus: &CaseTexts,
    step: Step,
    place: &str,
    report: &mut Report,
) -> Vec<Value> {
    report.total.events += recorded.len() as u64;
    let mut chained = Vec::with_capacity(recorded.len());
    for (n, one) in recorded.iter().enumerate() {
        let place = format!("{place} events[{n}]");
        closed(
            one,
            &[("chain", Kind::Digest), ("event", Kind::Object)],
            &place,
            report,
        );
        let event = field(one, "event");
        let timed = field(event, "at").as_i64().is_some();
        report.require(timed, Class::Events, &place, "has no time");
        chained.push((event.clone(), text(one, "chain").to_owned()));
    }
    for finding in verify_event_chain(&chained) {
        let message = format!("{:?}: {}", finding.class, finding.message);
        report.add(Class::Events, format!("{place} {}", finding.place), message);
    }
    let grows = recorded.get(..before.len()) == Some(before);
    let message = "does not begin with the events of the build before";
    report.require(grows, Class::Events, place, message);
    let events: Vec<Value> = chained.into_iter().map(|(event, _)| event).collect();
    check_protocol(&events, corpus, step, place, report);
    events
}

fn check_protocol(
    events: &[Value],
    corpus: &CaseTexts,
    step: Step,
    place: &str,
    report: &mut Report,
) {
    let wanted = wanted(corpus, step);
    if events.len() != wanted.len() {
        let message = format!(
            "has {} events, where the protocol has {}",
            events.len(),
            wanted.len()
        );
        report.add(Class::Events, place, message);
    }
    for (n, (event, wanted)) in events.iter().zip(&wanted).enumerate() {
        let mut found = event.clone();
        if let Some(map) = found.as_object_mut() {
            map.remove("at");
            map.remove("slot");
        }
        if found != *wanted {
            let message = "is not the event that the protocol has there";
            report.add(Class::Events, format!("{place} events[{n}]"), message);
        }
    }
    let documents = corpus.documents.len();
    let slots: Vec<&str> = events
        .iter()
        .take(documents)
        .map(|event| text(event, "slot"))
        .collect();
    let ascending = slots.windows(2).all(|pair| pair[0] < pair[1]);
    report.require(
        ascending,
        Class::Events,
        place,
        "publishes documents in another order than that of their slots",
    );
    for (change, event) in step.changes().iter().zip(events.iter().skip(documents + 1)) {
        if let Change::Version(n) = change {
            let stays = slots.get(*n) == Some(&text(event, "slot"));
            report.require(
                stays,
                Class::Events,
                place,
                "moves a document that only got a new version",
            );
        }
    }
}

/// The events of the protocol, without their times and slots.
fn wanted(corpus: &CaseTexts, step: Step) -> Vec<Value> {
    let mut events = Vec::new();
    let published = |n: usize, version: usize, number: usize| {
        let document = corpus.documents.get(n);
        let known = document.and_then(|document| document.versions.get(version - 1));
        json!({
            "by": OWNER,
            "doc_id": document.map(|document| &document.id),
            "event": "published",
            "number": number,
            "text_sha256": known.map(|known| &known.sha256),
            "version": version,
        })
    };
    for n in 0..corpus.documents.len() {
        events.push(published(n, 1, n + 1));
    }
    events.push(json!({"by": OWNER, "event": "granted", "number": events.len() + 1, "to": READER}));
    let id = |n: usize| corpus.documents.get(n).map(|document| &document.id);
    for change in step.changes() {
        let number = events.len() + 1;
        events.push(match *change {
            Change::Version(n) => published(n, 2, number),
            Change::Withdrawal(n) => {
                json!({"by": OWNER, "doc_id": id(n), "event": "withdrawn", "number": number})
            }
            Change::Revocation(n) => json!({
                "by": OWNER, "doc_id": id(n), "event": "revoked", "from": READER, "number": number,
            }),
        });
    }
    events
}
