//! Statements 1 to 24 of `docs/grounding.md`.

use std::collections::BTreeSet;

use factum_ask::ledger::{Begun, Ending, Ledger, LedgerError, Record, Status};
use factum_ask::message::Outcome;

use crate::desk::{
    asked, calls, cited, declare, id, ledger, long, question, record, response, returned,
};

fn status_of(record: &Record) -> Status {
    let mut value = serde_json::json!({"case": {"record": record, "citations": {}, "filter": [], "searches": []}});
    let ledger: Ledger = serde_json::from_value(value.take()).unwrap();
    ledger.status()
}

#[test]
fn s01_a_fresh_record_has_no_question_and_refuses_a_declaration() {
    let mut fresh = Record::default();
    assert_eq!(fresh.question(), None);
    let refused = fresh.declare(&[id("a")], &BTreeSet::new(), 3, None);
    assert_eq!(refused, Err(LedgerError::NoQuestion));
    assert_eq!(fresh, Record::default());
    assert_eq!(fresh.outcome(3), Err(LedgerError::NoQuestion));
}

#[test]
fn s02_the_status_over_no_records_or_a_fresh_one_is_missing() {
    assert_eq!(ledger(&[]).status(), Status::Missing);
    assert_eq!(ledger(&["case"]).status(), Status::Missing);
}

#[test]
fn s03_refs_ground_and_no_refs_unground() {
    let mut grounded = record();
    declare(&mut grounded, &["a"], 3);
    assert_eq!(status_of(&grounded), Status::Grounded);
    let mut ungrounded = record();
    declare(&mut ungrounded, &[], 3);
    assert_eq!(status_of(&ungrounded), Status::Ungrounded);
}

#[test]
fn s04_declaring_at_the_evidence_epoch_is_missing_and_later_is_grounded() {
    let mut record = record();
    record.outcome(3).unwrap();
    declare(&mut record, &["a"], 3);
    assert_eq!(status_of(&record), Status::Missing);
    declare(&mut record, &["a"], 5);
    assert_eq!(status_of(&record), Status::Grounded);
}

#[test]
fn s05_another_records_later_evidence_makes_a_grounded_question_missing() {
    let mut ledger = asked(&["one", "two"]);
    ledger.declare(cited("one", &["a"]), 3).unwrap();
    assert_eq!(ledger.status(), Status::Grounded);
    ledger.outcome("two", 4).unwrap();
    assert_eq!(ledger.status(), Status::Missing);
}

#[test]
fn s06_an_empty_declaration_without_evidence_between_narrows_nothing() {
    let mut ledger = asked(&["case"]);
    ledger.declare(cited("case", &["a"]), 3).unwrap();
    ledger.declare(Vec::new(), 5).unwrap();
    assert_eq!(ledger.status(), Status::Grounded);
    assert_eq!(ledger.declared().len(), 1);
}

#[test]
fn s07_evidence_between_two_declarations_leaves_only_the_later_refs() {
    let mut record = record();
    declare(&mut record, &["a"], 3);
    record.outcome(4).unwrap();
    declare(&mut record, &["b"], 5);
    assert_eq!(record.declaration().unwrap().refs, [id("b")]);
    assert_eq!(status_of(&record), Status::Grounded);
}

#[test]
fn s08_evidence_and_then_an_empty_declaration_is_ungrounded() {
    let mut record = record();
    declare(&mut record, &["a"], 3);
    record.outcome(4).unwrap();
    declare(&mut record, &[], 5);
    assert_eq!(status_of(&record), Status::Ungrounded);
}

#[test]
fn s09_empty_and_then_refs_without_newer_evidence_is_grounded() {
    let mut record = record();
    declare(&mut record, &[], 3);
    declare(&mut record, &["a"], 5);
    assert_eq!(status_of(&record), Status::Grounded);
}

#[test]
fn s10_a_ref_declared_again_is_there_once() {
    let mut record = record();
    declare(&mut record, &["a", "a"], 3);
    declare(&mut record, &["a", "b"], 5);
    assert_eq!(record.declaration().unwrap().refs, [id("a"), id("b")]);
}

#[test]
fn s11_a_declaration_at_the_evidence_epoch_stands_until_it_is_confirmed() {
    let mut record = record();
    record.outcome(5).unwrap();
    declare(&mut record, &["a"], 5);
    declare(&mut record, &[], 7);
    assert_eq!(status_of(&record), Status::Grounded);
    assert_eq!(record.declaration().unwrap().refs, [id("a")]);
}

#[test]
fn s12_a_replaced_declarations_refs_stay_cited_occurrences() {
    let mut record = record();
    declare(&mut record, &["a"], 3);
    record.outcome(4).unwrap();
    declare(&mut record, &["b"], 5);
    let known: Vec<_> = record.occurrences().map(|(id, _)| id.clone()).collect();
    assert_eq!(known, [id("a"), id("b")]);
}

#[test]
fn s13_an_item_keeps_all_questions_that_cited_it_and_those_that_retrieved_it() {
    let mut ledger = ledger(&["case"]);
    ledger.begin(&long(2)).unwrap();
    ledger.searched("case", "hose", &[id("a")], 3).unwrap();
    ledger.declare(cited("case", &["a"]), 5).unwrap();
    ledger.end(Ending::Answered);
    ledger.begin(&long(8)).unwrap();
    ledger.declare(cited("case", &["a"]), 9).unwrap();
    let state = ledger.capability("case").unwrap();
    let (_, occurrence) = state.record.occurrences().next().unwrap();
    assert_eq!(occurrence.cited_in, BTreeSet::from([2, 8]));
    assert_eq!(occurrence.retrieved_in, BTreeSet::from([2]));
}

#[test]
fn s14_two_capabilities_that_cite_one_id_stay_separate() {
    let mut ledger = asked(&["one", "two"]);
    let both = [cited("one", &["a"]), cited("two", &["a"])].concat();
    ledger.declare(both, 3).unwrap();
    assert_eq!(ledger.declared().len(), 2);
    let displays: BTreeSet<u32> = ledger
        .capabilities()
        .flat_map(|(_, state)| state.citations.values().map(|one| one.display))
        .collect();
    assert_eq!(displays, BTreeSet::from([1, 2]));
}

#[test]
fn s15_a_json_round_trip_keeps_equality_and_status() {
    let mut ledger = asked(&["one", "two"]);
    ledger
        .searched("one", "hose", &[id("a"), id("b")], 3)
        .unwrap();
    ledger.declare(cited("one", &["a"]), 5).unwrap();
    let text = serde_json::to_string(&ledger).unwrap();
    let back: Ledger = serde_json::from_str(&text).unwrap();
    assert_eq!(back, ledger);
    assert_eq!(back.status(), Status::Grounded);
    assert!(
        !text.contains("grounded"),
        "the status is derived, never kept"
    );
}

#[test]
fn s16_a_moment_before_a_recorded_one_is_refused_and_changes_nothing() {
    let mut record = record();
    assert!(matches!(
        record.outcome(0),
        Err(LedgerError::Regression { epoch: 0, least: 1 })
    ));
    record.outcome(5).unwrap();
    declare(&mut record, &["a"], 7);
    let before = record.clone();
    for epoch in [0, 1, 5, 6] {
        assert!(record.outcome(epoch).is_err());
        assert!(
            record
                .declare(&[id("b")], &BTreeSet::new(), epoch, Some(5))
                .is_err()
        );
        assert_eq!(record, before);
    }
    record.outcome(7).unwrap();
    declare(&mut record, &["a"], 7);
}

#[test]
fn s17_a_question_that_does_not_come_after_the_previous_one_is_refused() {
    let mut record = record();
    let before = record.clone();
    for id in [0, 1] {
        let refused = record.begin(id);
        assert!(matches!(
            refused,
            Err(LedgerError::QuestionRegression { previous: 1, .. })
        ));
        assert_eq!(record, before);
    }
}

#[test]
fn s18_a_new_question_may_lie_below_the_previous_ones_epochs() {
    let mut record = record();
    record.outcome(9).unwrap();
    declare(&mut record, &["a"], 11);
    record.end(Ending::Answered);
    record.begin(4).unwrap();
    record.outcome(5).unwrap();
}

#[test]
fn s19_an_earlier_questions_declaration_never_grounds_a_later_one() {
    let mut ledger = asked(&["one", "two"]);
    ledger.declare(cited("one", &["a"]), 30).unwrap();
    assert_eq!(ledger.status(), Status::Grounded);
    ledger.end(Ending::Answered);
    ledger.begin(&long(5)).unwrap();
    assert_eq!(ledger.status(), Status::Missing);
    assert_eq!(ledger.declared(), []);
}

#[test]
fn s20_unanswered_calls_without_a_question_under_way_are_an_error() {
    let mut history = long(2);
    history.push(calls(&[("c1", "search"), ("c2", "read")]));
    history.push(returned(
        "c1",
        "search",
        Outcome::Found { refs: Vec::new() },
    ));
    let mut ledger = ledger(&["case"]);
    let before = ledger.clone();
    assert_eq!(ledger.begin(&history), Err(LedgerError::UnansweredCalls(1)));
    assert_eq!(ledger, before);
}

#[test]
fn s21_a_seeded_default_record_is_no_resumption() {
    let seeded = r#"{"case": {"record": {"occurrences": {}, "question": null, "in_progress": false,
        "evidence_epoch": null, "declaration": null}, "citations": {}, "filter": [], "searches": []}}"#;
    let mut ledger: Ledger = serde_json::from_str(seeded).unwrap();
    assert_eq!(ledger.begin(&long(3)), Ok(Begun::Question(3)));
}

#[test]
fn s22_a_structured_answer_that_ends_in_a_tool_return_closes_its_question() {
    let mut history = long(0);
    history.push(question("How much?"));
    history.push(calls(&[("c1", "final_answer")]));
    let mut ledger = ledger(&["case"]);
    history.push(returned(
        "c1",
        "final_answer",
        Outcome::Executed {
            succeeded: true,
            printed: false,
        },
    ));
    assert_eq!(ledger.begin(&history), Ok(Begun::Question(3)));
}

#[test]
fn s23_a_run_without_a_prompt_on_a_settled_history_starts_a_question() {
    let mut history = long(0);
    history.push(question("How much?"));
    history.push(response("4,200 euros."));
    let mut ledger = ledger(&["case"]);
    ledger.begin(&long(0)).unwrap();
    ledger.end(Ending::Answered);
    assert_eq!(ledger.begin(&history), Ok(Begun::Question(2)));
}

#[test]
fn s24_two_capabilities_agree_on_the_question() {
    let mut ledger = ledger(&["one", "two"]);
    ledger.begin(&long(7)).unwrap();
    let ids: Vec<_> = ledger
        .capabilities()
        .map(|(_, state)| state.record.question())
        .collect();
    assert_eq!(ids, [Some(7), Some(7)]);
    // Gone on with, both keep it, whatever came meanwhile.
    ledger.end(Ending::Paused);
    assert_eq!(ledger.begin(&long(12)), Ok(Begun::Resumed(7)));
    let ids: Vec<_> = ledger
        .capabilities()
        .map(|(_, state)| state.record.question())
        .collect();
    assert_eq!(ids, [Some(7), Some(7)]);
}

// Decision: the merge test looks at the evidence of all capabilities.
#[test]
fn d1_another_capabilitys_evidence_keeps_an_empty_declaration_from_merging() {
    let mut ledger = asked(&["one", "two"]);
    ledger.declare(cited("one", &["a"]), 5).unwrap();
    ledger.outcome("two", 6).unwrap();
    ledger.declare(Vec::new(), 7).unwrap();
    assert_eq!(ledger.status(), Status::Ungrounded);
}

// Decision: an errored run goes back to the state before its question.
#[test]
fn d7_after_an_error_the_kept_state_makes_the_next_prompt_a_new_question() {
    let before = asked(&["case"]);
    let mut settled = before.clone();
    settled.end(Ending::Answered);
    let kept = settled.clone();
    settled.begin(&long(5)).unwrap();
    settled.outcome("case", 6).unwrap();
    settled.end(Ending::Failed);
    assert!(settled.in_progress());
    let mut again = kept;
    assert_eq!(again.begin(&long(5)), Ok(Begun::Question(5)));
}
