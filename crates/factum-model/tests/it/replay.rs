//! Replay: recorded answers come back for the same inputs, and only for them.

use std::collections::BTreeMap;

use factum_model::replay::{ReplayError, ReplayGenerator};
use factum_model::{
    Control, Generation, GenerationRequest, Generator, ModelError, ModelIdentity,
    RecordedGeneration, StopReason,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::collect::{ask, ask_all, request};

fn model() -> ModelIdentity {
    ModelIdentity::new(json!({"kind": "local", "model": "tiny"}))
}

fn generation(text: &str) -> Generation {
    Generation {
        text: text.to_owned(),
        token_ids: Some(vec![1, 2]),
        stop: StopReason::End,
        prompt_tokens: 17,
        new_tokens: 2,
        tokens_bounded: false,
        seconds: 0.5,
        device: Some("cpu".to_owned()),
        memory_bytes: Some(1024),
        system_fingerprint: None,
        retries: 0,
    }
}

fn digest(request: &GenerationRequest) -> String {
    request.digest(&model()).unwrap().to_hex()
}

fn record(request: &GenerationRequest, text: &str) -> Value {
    let record = RecordedGeneration::new(&model(), request.clone(), generation(text));
    serde_json::to_value(record).unwrap()
}

fn run_file(records: &[(String, Value)]) -> Value {
    let generations: BTreeMap<&String, &Value> = records.iter().map(|(d, r)| (d, r)).collect();
    json!({"format": "factum/run/1", "run_id": "r", "nodes": [{"any": 1.5}], "generations": generations})
}

fn line(request: &GenerationRequest, text: &str) -> Value {
    let mut record = record(request, text);
    record["digest"] = digest(request).into();
    record
}

#[tokio::test]
async fn both_forms_answer_the_same_inputs() {
    let (a, b) = (request("a"), request("b"));
    let records = [
        (digest(&a), record(&a, "one")),
        (digest(&b), record(&b, "two")),
    ];
    let run = run_file(&records);
    let lines = format!("{}\n\n{}\n", line(&a, "one"), line(&b, "two"));
    let folder = tempfile::tempdir().unwrap();
    for content in [
        run.to_string(),
        serde_json::to_string_pretty(&run).unwrap(),
        lines,
    ] {
        let path = folder.path().join("recorded");
        std::fs::write(&path, content).unwrap();
        let replay = ReplayGenerator::open(&path).unwrap();
        assert_eq!(replay.identity(), &model());
        assert_eq!(replay.len(), 2);
        let requests = [b.clone(), request("c"), a.clone()];
        let outcomes = ask_all(&replay, &requests, &Control::default()).await;
        assert_eq!(outcomes[0], Ok(generation("two")));
        assert_eq!(
            outcomes[1],
            Err(ModelError::NotRecorded {
                digest: digest(&request("c"))
            })
        );
        assert_eq!(outcomes[2], Ok(generation("one")));
        assert_eq!(replay.calls(), 3);
        let known = replay.count_tokens(&a.messages).await.unwrap();
        assert_eq!((known.tokens, known.exact), (17, true));
        let unknown = replay.count_tokens(&request("c").messages).await.unwrap();
        assert!(!unknown.exact);
    }
}

#[tokio::test]
async fn a_changed_setting_is_another_input() {
    let a = request("a");
    let replay = ReplayGenerator::from_json_lines(line(&a, "one").to_string().as_bytes()).unwrap();
    let mut other = a.clone();
    other.max_new_tokens += 1;
    assert!(matches!(
        ask(&replay, other).await,
        Err(ModelError::NotRecorded { .. })
    ));
}

#[test]
fn a_record_whose_input_was_changed_is_refused() {
    let a = request("a");
    let changes: [fn(&mut Value); 3] = [
        |record| record["messages"][1]["content"] = "b".into(),
        |record| record["max_new_tokens"] = 7.into(),
        |record| record["model"]["model"] = "other".into(),
    ];
    for change in changes {
        let mut other = line(&a, "one");
        change(&mut other);
        let error = ReplayGenerator::from_json_lines(other.to_string().as_bytes()).unwrap_err();
        assert!(matches!(error, ReplayError::Input(_)), "{error}");
    }
}

#[test]
fn generations_of_two_models_are_refused_and_both_are_named() {
    let a = request("a");
    let mut other = line(&request("b"), "two");
    other["model"]["model"] = "large".into();
    let lines = format!("{}\n{other}", line(&a, "one"));
    let error = ReplayGenerator::from_bytes(lines.as_bytes()).unwrap_err();
    assert!(matches!(error, ReplayError::TwoModels { .. }));
    let said = error.to_string();
    assert!(said.contains("tiny") && said.contains("large"), "{said}");
}

#[test]
fn one_input_has_one_answer() {
    let a = request("a");
    let mut again = line(&a, "one");
    again["seconds"] = json!(9.0);
    again["reused"] = json!(true);
    let same = format!("{}\n{again}", line(&a, "one"));
    assert_eq!(
        ReplayGenerator::from_bytes(same.as_bytes()).unwrap().len(),
        1
    );
    let differs = format!("{}\n{}", line(&a, "one"), line(&a, "two"));
    assert_eq!(
        ReplayGenerator::from_bytes(differs.as_bytes()).unwrap_err(),
        ReplayError::TwoAnswers(digest(&a))
    );
    // A map would keep only the last of two entries with one key.
    let (key, one, two) = (digest(&a), record(&a, "one"), record(&a, "two"));
    let twice =
        format!(r#"{{"format":"factum/run/1","generations":{{"{key}":{one},"{key}":{two}}}}}"#);
    assert_eq!(
        ReplayGenerator::from_bytes(twice.as_bytes()).unwrap_err(),
        ReplayError::TwoAnswers(key)
    );
}

#[test]
fn a_fault_is_named_with_its_place() {
    let a = request("a");
    let mut broken = line(&a, "one");
    broken["messages"][1]["role"] = "wizard".into();
    let lines = format!("{}\n\n{broken}\n", line(&a, "one"));
    let error = ReplayGenerator::from_bytes(lines.as_bytes()).unwrap_err();
    let ReplayError::Line {
        line: number, at, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((*number, at.as_str()), (3, "messages[1].role"));

    let mut more = record(&a, "one");
    more["surprise"] = json!(1);
    let run = run_file(&[(digest(&a), more)]).to_string();
    let error = ReplayGenerator::from_bytes(run.as_bytes()).unwrap_err();
    let ReplayError::RunFile { at, message } = &error else {
        panic!("{error}");
    };
    assert!(
        at.starts_with(&format!("generations.{}", digest(&a))),
        "{at}"
    );
    assert!(message.contains("surprise"), "{message}");

    let text = line(&a, "one").to_string();
    let twice = text.replacen('{', r#"{"text":"x","#, 1);
    assert!(matches!(
        ReplayGenerator::from_bytes(twice.as_bytes()),
        Err(ReplayError::Line { line: 1, .. })
    ));
}

#[test]
fn what_holds_no_generations_is_refused() {
    let read = |text: &str| ReplayGenerator::from_bytes(text.as_bytes()).unwrap_err();
    assert_eq!(read(" \n"), ReplayError::Empty);
    assert_eq!(
        read(r#"{"format":"factum/run/1","generations":{}}"#),
        ReplayError::Empty
    );
    assert_eq!(
        read(r#"{"format":"factum/run/2","generations":{}}"#),
        ReplayError::Format("factum/run/2".to_owned())
    );
    assert!(matches!(read("junk"), ReplayError::RunFile { .. }));
    assert!(matches!(
        read(r#"{"format":"factum/run/1","generations":{}} more"#),
        ReplayError::RunFile { .. }
    ));
    let a = request("a");
    let run = run_file(&[("abc".to_owned(), record(&a, "one"))]).to_string();
    assert_eq!(read(&run), ReplayError::Digest("abc".to_owned()));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_and_do_not_panic(bytes: Vec<u8>) {
        prop_assert!(ReplayGenerator::from_bytes(&bytes).is_err());
        prop_assert!(ReplayGenerator::from_json_lines(&bytes).is_err());
    }
}
