use factum_base::{DocumentId, PrincipalId, TextDigest};
use factum_casefile::{Event, EventKind, Slot, Snapshot};
use factum_graph::run_file::snapshot_sha256;
use factum_graph::verify::{Finding, Sources, verify_event_chain, verify_run};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{OWNER, fixture};

fn chain(events: &[Event]) -> Vec<(Value, String)> {
    let mut before = None;
    let mut links = Vec::new();
    for event in events {
        let link = event.chained(before.as_ref()).unwrap();
        links.push((serde_json::to_value(event).unwrap(), link.to_hex()));
        before = Some(link);
    }
    links
}

#[test]
fn a_changed_lost_or_inserted_event_breaks_the_chain() {
    let links = chain(&fixture().events);
    assert_eq!(verify_event_chain(&links), []);
    for n in 0..links.len() {
        let mut changed = links.clone();
        changed[n].0["at"] = json!(5);
        assert_eq!(
            verify_event_chain(&changed).len(),
            1,
            "a changed event is found where it is"
        );
        let mut changed = links.clone();
        changed[n].1 = TextDigest::of(b"").to_hex();
        assert!(!verify_event_chain(&changed).is_empty());
        if n + 1 < links.len() {
            let mut lost = links.clone();
            lost.remove(n);
            assert!(!verify_event_chain(&lost).is_empty());
            let mut swapped = links.clone();
            swapped.swap(n, n + 1);
            assert!(!verify_event_chain(&swapped).is_empty());
        }
        let mut inserted = links.clone();
        inserted.insert(n, links[n].clone());
        assert!(!verify_event_chain(&inserted).is_empty());
    }
}

fn any_event() -> impl Strategy<Value = EventKind> {
    let doc = (0usize..3).prop_map(|n| DocumentId::new(["a", "b", "c"][n]).unwrap());
    let who = (0usize..2).prop_map(|n| PrincipalId::new([OWNER, "ann"][n]).unwrap());
    let maybe = prop::option::of(doc.clone());
    let slot = (0usize..9).prop_map(|n| Slot::between(None, None, 9)[n].clone());
    prop_oneof![
        3 => (doc.clone(), 1u32..9, slot.clone()).prop_map(|(doc_id, version, slot)| {
            let text_sha256 = TextDigest::of(format!("{doc_id}{version}").as_bytes());
            EventKind::Published { doc_id, version, text_sha256, slot }
        }),
        1 => doc.clone().prop_map(|doc_id| EventKind::Withdrawn { doc_id, file_gone: false }),
        1 => doc.clone().prop_map(|doc_id| EventKind::Reinstated { doc_id }),
        1 => (doc, slot).prop_map(|(doc_id, slot)| EventKind::Moved { doc_id, from: slot.clone(), slot }),
        2 => (maybe.clone(), who.clone()).prop_map(|(doc_id, to)| EventKind::Granted { doc_id, to }),
        2 => (maybe, who).prop_map(|(doc_id, from)| EventKind::Revoked { doc_id, from }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn two_ways_to_fold_the_events_agree(
        kinds in prop::collection::vec(any_event(), 0..25),
        at in 0u64..25,
        principal in prop_oneof![Just(OWNER), Just("ann")],
    ) {
        let by = PrincipalId::new(OWNER).unwrap();
        let who = PrincipalId::new(principal).unwrap();
        let at = at.min(kinds.len() as u64);
        let events: Vec<Event> = kinds
            .into_iter()
            .zip(1..)
            .map(|(kind, number)| Event { number, at: 0, by: by.clone(), kind })
            .collect();
        let snapshot = Snapshot::fold(&events, &by, &who, at);
        let exported: Vec<Value> = events.iter().map(|e| serde_json::to_value(e).unwrap()).collect();
        let run = json!({
            "principal": principal,
            "event": at,
            "snapshot": snapshot,
            "snapshot_sha256": snapshot_sha256(&snapshot).unwrap(),
        });
        let sources = Sources { owner: OWNER, events: Some(&exported), text: &|_, _| None };
        let differing: Vec<Finding> = verify_run(&run, &sources)
            .into_iter()
            .filter(|f| f.message.contains("events give") || f.message.contains("never shown") || f.message.contains("lacks the slot"))
            .collect();
        prop_assert_eq!(differing, []);
    }
}
