//! Statements 25 to 33 of `docs/grounding.md`.

use std::time::Duration;

use factum_ask::budget::Offer::{All, CiteOnly, Nothing};
use factum_ask::budget::{Limits, Spent};
use factum_ask::ledger::{CiteJudgement, Named, Status, bare_id, judge};
use factum_ask::message::{Outcome, WhyIgnored};

use crate::desk::{a_ref, asked, citation, cited, found, id};

fn known(name: &str) -> (String, Named) {
    (
        name.to_owned(),
        Named::Evidence(a_ref("case", name), citation(name)),
    )
}

fn unknown(name: &str) -> (String, Named) {
    (name.to_owned(), Named::Not(WhyIgnored::Unknown))
}

#[test]
fn s25_a_fruitless_search_is_an_outcome_and_an_exhausted_budget_is_not() {
    assert!(found("case", &[]).is_evidence());
    assert!(!Outcome::Exhausted.is_evidence());
    let reason = "there is no such tool".to_owned();
    assert!(!Outcome::Refused { reason }.is_evidence());
    let mut ledger = asked(&["case"]);
    ledger.declare(cited("case", &["a"]), 3).unwrap();
    ledger.searched("case", "nothing", &[], 4).unwrap();
    assert_eq!(ledger.status(), Status::Missing);
}

#[test]
fn s26_code_counts_if_it_succeeded_or_printed() {
    let ran = |succeeded, printed| Outcome::Executed { succeeded, printed }.is_evidence();
    assert!(ran(true, false) && ran(false, true) && ran(true, true));
    assert!(!ran(false, false));
}

#[test]
fn s27_an_id_cited_without_a_search_grounds_and_records_no_retrieval() {
    let mut ledger = asked(&["case"]);
    ledger.declare(cited("case", &["a"]), 3).unwrap();
    assert_eq!(ledger.status(), Status::Grounded);
    let state = ledger.capability("case").unwrap();
    let (_, occurrence) = state.record.occurrences().next().unwrap();
    assert!(occurrence.retrieved_in.is_empty());
}

#[test]
fn s28_brackets_come_off_an_id() {
    for raw in [
        "a.txt@1:0:4",
        " [a.txt@1:0:4] ",
        "[`a.txt@1:0:4`]",
        "\"a.txt@1:0:4\"",
    ] {
        assert_eq!(bare_id(raw), "a.txt@1:0:4", "{raw}");
    }
    // A bracket in the middle is part of a name.
    assert_eq!(bare_id("a[1].txt@1:0:4"), "a[1].txt@1:0:4");
}

#[test]
fn s29_where_no_id_resolves_nothing_is_declared_and_the_model_may_try_again() {
    let CiteJudgement::Retry(ignored) = judge(vec![unknown("x"), unknown("y")]) else {
        panic!("declared");
    };
    assert_eq!(ignored.len(), 2);
    assert!(!Outcome::NotCited { ignored }.is_evidence());
    // No id at all is no mistake: it declares that nothing supports the answer.
    assert_eq!(
        judge(Vec::new()),
        CiteJudgement::Declare(Vec::new(), Vec::new())
    );
}

#[test]
fn s30_where_some_ids_resolve_these_are_declared_and_the_others_named() {
    let CiteJudgement::Declare(declared, ignored) =
        judge(vec![known("a"), unknown("x"), known("a")])
    else {
        panic!("not declared");
    };
    assert_eq!(declared.len(), 1);
    assert_eq!(ignored[0].id, "x");
}

#[test]
fn s31_a_citation_registered_again_keeps_its_first_form_and_number() {
    let mut ledger = asked(&["case"]);
    ledger.declare(cited("case", &["a", "b"]), 3).unwrap();
    let mut again = cited("case", &["b", "c"]);
    again[0].1.title = "another title".to_owned();
    ledger.declare(again, 5).unwrap();
    let state = ledger.capability("case").unwrap();
    let shown: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            (
                state.citations[&id(name)].display,
                state.citations[&id(name)].title.as_str(),
            )
        })
        .collect();
    assert_eq!(shown, [(1, "a"), (2, "b"), (3, "c")]);
}

#[test]
fn s32_the_same_query_again_adds_to_what_it_found() {
    let mut ledger = asked(&["case"]);
    ledger
        .searched("case", "hose", &[id("a"), id("b")], 3)
        .unwrap();
    ledger
        .searched("case", "hose", &[id("b"), id("c")], 5)
        .unwrap();
    ledger.searched("case", "floor", &[], 5).unwrap();
    let searches = &ledger.capability("case").unwrap().searches;
    assert_eq!(searches.len(), 2);
    assert_eq!(searches[0].found, [id("a"), id("b"), id("c")]);
}

#[test]
fn s33_after_the_limit_citing_stays_possible_for_two_more_requests() {
    let limits = Limits {
        requests: 3,
        ..Limits::default()
    };
    let mut spent = Spent::default();
    let mut offers = Vec::new();
    for _ in 0..7 {
        let offer = spent.offer(&limits, Duration::ZERO);
        offers.push(offer);
        spent.add(10, offer);
    }
    assert_eq!(
        offers,
        [All, All, All, CiteOnly, CiteOnly, Nothing, Nothing]
    );
    // The same where tokens run out; where time does, nothing more is asked.
    let spent = Spent {
        tokens: limits.total_tokens,
        ..Spent::default()
    };
    assert_eq!(spent.offer(&limits, Duration::ZERO), CiteOnly);
    assert_eq!(spent.offer(&limits, limits.time), Nothing);
}
