//! Canned outputs: which one answers, how calls are lost, and what the identity stands for.

use factum_model::canned::{CannedError, CannedGenerator};
use factum_model::{Control, Generator, ModelError, StopReason};

use crate::collect::{ask, ask_all, request};

fn canned(outputs: &str) -> CannedGenerator {
    CannedGenerator::from_bytes(format!(r#"{{"outputs":[{outputs}]}}"#).as_bytes()).unwrap()
}

#[tokio::test]
async fn the_first_output_that_fits_the_last_message_answers() {
    let canned = canned(
        r#"{"contains":"Summarise","text":"no"},
           {"contains":"hose","text":"a b c","stop":"length"},
           {"contains":"hose burst","text":"never"},
           {"contains":"pump","text":""}"#,
    );
    let first = ask(&canned, request("A hose burst.")).await.unwrap();
    assert_eq!(
        (first.text.as_str(), first.stop),
        ("a b c", StopReason::Length)
    );
    assert_eq!((first.prompt_tokens, first.new_tokens), (4, 3));
    let second = ask(&canned, request("The pump.")).await.unwrap();
    assert_eq!((second.text.as_str(), second.stop), ("", StopReason::End));
    let none = ask(&canned, request("Why?")).await;
    assert_eq!(none.unwrap_err(), ModelError::NotCanned);
    assert_eq!(canned.calls(), 3);
}

#[tokio::test]
async fn a_call_is_lost_always_or_so_many_times() {
    let canned = canned(
        r#"{"contains":"a","error":"timeout"},
           {"contains":"b","error":"unreachable","times":2},
           {"contains":"","text":"yes"}"#,
    );
    let requests = ["a", "b", "b", "b", "x", "a"].map(request);
    let outcomes = ask_all(&canned, &requests, &Control::default()).await;
    let lost: Vec<bool> = outcomes.iter().map(Result::is_err).collect();
    assert_eq!(lost, [true, true, true, false, false, true]);
    assert!(matches!(outcomes[0], Err(ModelError::Timeout { .. })));
    assert!(matches!(outcomes[1], Err(ModelError::Unreachable { .. })));
    assert_eq!(canned.calls(), 6);
}

#[tokio::test]
async fn what_is_over_its_budget_or_cancelled_is_no_call() {
    let canned = canned(r#"{"contains":"","text":"yes"}"#);
    let mut over = request("one two three");
    over.input_budget = 3;
    assert_eq!(
        ask(&canned, over).await.unwrap_err(),
        ModelError::OverBudget {
            tokens: 4,
            budget: 3
        }
    );
    let control = Control::default();
    control.cancel.cancel();
    let outcomes = ask_all(&canned, &[request("x")], &control).await;
    assert_eq!(outcomes, [Err(ModelError::Cancelled)]);
    assert_eq!(canned.calls(), 0);
}

#[test]
fn the_identity_stands_for_the_answers_and_not_for_the_losses() {
    let whole = canned(r#"{"contains":"a","text":"x","stop":"end"}"#);
    let lossy = canned(r#"{"contains":"a","error":"status"}, {"text":"x", "contains":"a"}"#);
    let other = canned(r#"{"contains":"a","text":"y"}"#);
    assert_eq!(whole.identity(), lossy.identity());
    assert_ne!(whole.identity(), other.identity());
    assert_eq!(whole.identity().kind(), "canned");
}

#[test]
fn a_file_of_another_shape_is_refused() {
    let read = |text: &str| CannedGenerator::from_bytes(text.as_bytes()).unwrap_err();
    for text in [
        "",
        "[]",
        "{}",
        r#"{"outputs":[],"more":1}"#,
        r#"{"outputs":[{"text":"x"}]}"#,
        r#"{"outputs":[{"contains":"","error":"boredom"}]}"#,
    ] {
        assert!(matches!(read(text), CannedError::Json(_)), "{text}");
    }
    for output in [
        r#"{"contains":""}"#,
        r#"{"contains":"","text":"x","error":"timeout"}"#,
        r#"{"contains":"","text":"x","times":1}"#,
        r#"{"contains":"","error":"timeout","stop":"end"}"#,
    ] {
        let text = format!(r#"{{"outputs":[{{"contains":"a","text":"x"}},{output}]}}"#);
        assert_eq!(read(&text), CannedError::Output { place: 1 });
    }
}
