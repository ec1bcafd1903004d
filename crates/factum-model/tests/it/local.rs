//! The local engine on a real model. Without the environment variable `FACTUM_TEST_MODEL` (a GGUF file),
//! these tests say so and do nothing.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use factum_model::grounded::GroundedMachine;
use factum_model::local::{LocalGenerator, Traced};
use factum_model::local_identity::{LocalOptions, local_identity};
use factum_model::{
    Constraint, Control, FieldShape, FieldValue, Gate, Generation, GenerationRequest,
    GenerationSink, Generator, GroundedSchema, Message, ModelError, Role, Source, StopReason,
};
use serde_json::{Value, json};

/// One at a time: two models that share two cores would only wait for each other.
static TURN: Mutex<()> = Mutex::new(());

fn model() -> Option<(PathBuf, MutexGuard<'static, ()>)> {
    let Some(path) = std::env::var_os("FACTUM_TEST_MODEL") else {
        eprintln!("skipped: FACTUM_TEST_MODEL names no model");
        return None;
    };
    Some((
        PathBuf::from(path),
        TURN.lock().unwrap_or_else(PoisonError::into_inner),
    ))
}

fn options(path: PathBuf, sequences: u32) -> LocalOptions {
    LocalOptions {
        sequences,
        context_tokens: 1024,
        ..LocalOptions::new(path, "test")
    }
}

fn load(path: PathBuf, sequences: u32) -> LocalGenerator {
    LocalGenerator::load(options(path, sequences)).unwrap()
}

const SUBJECTS: [&str; 8] = [
    "The boiler in hall 3",
    "The night guard",
    "A hose on line 2",
    "The supplier",
    "The fire brigade",
    "Pump 7",
    "The insurer",
    "Ms. Okafor",
];
const EVENTS: [&str; 4] = [
    "reported a loss of £1,250.40 on 3 May 2024",
    "was found damaged at 06:15 and repaired the same day",
    "said \"the valve was open\" and left the site",
    "had not been inspected since 2019-11-02",
];

fn passages(number: usize) -> Vec<Source> {
    (0..=number % 3)
        .map(|at| Source {
            id: format!("e{}", at + 1),
            text: format!(
                "{} {}. {} {}.",
                SUBJECTS[(number + at) % 8],
                EVENTS[(number / 8 + at) % 4],
                SUBJECTS[(number * 3 + at + 1) % 8],
                EVENTS[(number + at + 2) % 4],
            ),
        })
        .collect()
}

fn facts(sources: Vec<Source>) -> GroundedSchema {
    let field = |name: &str, max_chars, value| FieldShape {
        name: name.to_owned(),
        optional: false,
        max_chars,
        value,
    };
    GroundedSchema {
        items_key: "claims".to_owned(),
        max_items: 3,
        fields: vec![
            field("subject", 60, FieldValue::Free),
            field("value", 80, FieldValue::Substring),
        ],
        citations_key: "evidence".to_owned(),
        max_citations: 2,
        sources,
    }
}

fn messages(number: usize) -> Vec<Message> {
    let text: String = passages(number)
        .iter()
        .map(|source| format!("[{}] {}\n", source.id, source.text))
        .collect();
    vec![
        Message::new(
            Role::System,
            "You read passages of a case file. List what they say as claims in JSON, and cite the passage of each.",
        ),
        Message::new(Role::User, format!("Passages:\n{text}\nList the claims.")),
    ]
}

fn plain(number: usize, max_new_tokens: u32) -> GenerationRequest {
    GenerationRequest {
        messages: messages(number),
        constraint: Constraint::None,
        input_budget: 800,
        max_new_tokens,
    }
}

fn grounded(number: usize, max_new_tokens: u32) -> GenerationRequest {
    GenerationRequest {
        constraint: Constraint::Grounded(facts(passages(number))),
        ..plain(number, max_new_tokens)
    }
}

/// Some of each kind.
fn mixed(count: usize, max_new_tokens: u32) -> Vec<GenerationRequest> {
    (0..count)
        .map(|number| {
            if number % 2 == 0 {
                plain(number, max_new_tokens)
            } else {
                grounded(number, max_new_tokens)
            }
        })
        .collect()
}

fn traced(generator: &LocalGenerator, requests: &[GenerationRequest]) -> Vec<Traced> {
    run(generator.generate_traced(requests, &Control::default()))
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(future)
}

/// What must not differ: tokens, text, stop, and every bit of every logit.
fn essence(traced: &Traced) -> (String, Option<Vec<u32>>, StopReason, String) {
    (
        traced.generation.text.clone(),
        traced.generation.token_ids.clone(),
        traced.generation.stop,
        traced.logits.unwrap().to_hex(),
    )
}

fn essences(all: &[Traced]) -> Vec<(String, Option<Vec<u32>>, StopReason, String)> {
    all.iter().map(essence).collect()
}

#[derive(Default)]
struct Outcomes(
    Mutex<HashMap<usize, Result<Generation, ModelError>>>,
    Mutex<u64>,
);

impl GenerationSink for Outcomes {
    fn finished(&self, request: usize, outcome: Result<Generation, ModelError>) {
        let again = self.0.lock().unwrap().insert(request, outcome);
        assert!(again.is_none(), "request {request} ended twice");
    }

    fn tokens(&self, new: u64) {
        *self.1.lock().unwrap() += new;
    }
}

fn one(generator: &LocalGenerator, request: GenerationRequest) -> Result<Generation, ModelError> {
    let outcomes = Outcomes::default();
    run(generator.generate(&[request], &Control::default(), &outcomes));
    outcomes.0.into_inner().unwrap().remove(&0).unwrap()
}

#[test]
fn company_changes_no_bit_of_any_logit() {
    let Some((path, _turn)) = model() else { return };
    let generator = load(path, 4);
    let requests = mixed(32, 16);
    let together = essences(&traced(&generator, &requests));
    let reversed: Vec<_> = requests.iter().rev().cloned().collect();
    let mut backwards = essences(&traced(&generator, &reversed));
    backwards.reverse();
    assert!(together == backwards, "another order gave another answer");
    let rotated: Vec<_> = (0..32)
        .map(|at| requests[(at * 7 + 3) % 32].clone())
        .collect();
    for (at, answer) in essences(&traced(&generator, &rotated)).iter().enumerate() {
        assert!(
            *answer == together[(at * 7 + 3) % 32],
            "request {at} in other company"
        );
    }
    for at in [0, 1, 6, 15, 22, 31] {
        let alone = traced(&generator, &requests[at..=at]);
        assert_eq!(essence(&alone[0]), together[at], "request {at} alone");
    }
}

#[test]
fn one_input_gives_one_answer_with_prefixes_kept_or_not_and_in_another_process() {
    let Some((path, _turn)) = model() else { return };
    for sequences in [1, 2] {
        let requests = mixed(4, 20);
        let first = load(path.clone(), sequences);
        let answers = essences(&traced(&first, &requests));
        assert!(first.memory().prefixes > 0);
        assert!(
            answers == essences(&traced(&first, &requests)),
            "after other inputs"
        );
        drop(first);
        let whole =
            LocalGenerator::load_without_prefixes(options(path.clone(), sequences)).unwrap();
        assert!(
            answers == essences(&traced(&whole, &requests)),
            "prefix not kept"
        );
        assert_eq!(whole.memory().prefixes, 0);
        drop(whole);
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "local::answers_for_another_process",
                "--ignored",
                "--nocapture",
            ])
            .env("FACTUM_TEST_SEQUENCES", sequences.to_string())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        for (_, _, _, logits) in &answers {
            assert!(printed.contains(logits.as_str()), "{printed}");
        }
    }
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn answers_for_another_process() {
    let Some(path) = std::env::var_os("FACTUM_TEST_MODEL") else {
        return;
    };
    let sequences = std::env::var("FACTUM_TEST_SEQUENCES")
        .unwrap()
        .parse()
        .unwrap();
    for answer in traced(&load(path.into(), sequences), &mixed(4, 20)) {
        println!("{}", essence(&answer).3);
    }
}

#[test]
fn a_grounded_reply_always_ends_within_its_tokens() {
    let Some((path, _turn)) = model() else { return };
    let generator = load(path, 4);
    for max_new_tokens in [10, 16, 24, 40, 64, 100] {
        let requests: Vec<_> = (0..4)
            .map(|number| grounded(number, max_new_tokens))
            .collect();
        for (number, answer) in traced(&generator, &requests).iter().enumerate() {
            let Generation {
                text,
                stop,
                token_ids,
                new_tokens,
                ..
            } = &answer.generation;
            let machine = GroundedMachine::new(&facts(passages(number))).unwrap();
            assert!(machine.accepts(text.as_bytes()), "{max_new_tokens}: {text}");
            assert_eq!(*stop, StopReason::End);
            assert!(*new_tokens <= max_new_tokens);
            assert_eq!(token_ids.as_ref().unwrap().len(), *new_tokens as usize);
            if max_new_tokens == 100 {
                eprintln!("{text}");
                assert!(text.contains("evidence"), "100 tokens hold a claim: {text}");
            }
        }
    }
    let refusal = one(&generator, grounded(0, 3));
    assert!(
        matches!(refusal, Err(ModelError::BadConstraint(_))),
        "{refusal:?}"
    );
}

#[test]
fn a_schema_holds_a_reply() {
    let Some((path, _turn)) = model() else { return };
    let generator = load(path, 1);
    let schema = json!({
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": ["supported", "unsupported"]},
            "lines": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 9}, "maxItems": 3},
        },
        "required": ["verdict", "lines"],
        "additionalProperties": false,
    });
    let reply = one(
        &generator,
        GenerationRequest {
            constraint: Constraint::JsonSchema(schema),
            ..plain(2, 60)
        },
    )
    .unwrap();
    assert_eq!(reply.stop, StopReason::End);
    let value: Value = serde_json::from_str(&reply.text).unwrap();
    assert!(["supported", "unsupported"].contains(&value["verdict"].as_str().unwrap()));
    assert!(value["lines"].as_array().unwrap().len() <= 3);
    let refusal = one(
        &generator,
        GenerationRequest {
            constraint: Constraint::JsonSchema(json!({"type": "nonsense"})),
            ..plain(2, 60)
        },
    );
    assert!(
        matches!(refusal, Err(ModelError::BadConstraint(_))),
        "{refusal:?}"
    );
}

#[test]
fn lengths_are_counted_and_kept() {
    let Some((path, _turn)) = model() else { return };
    let generator = load(path.clone(), 2);
    assert_eq!(generator.identity(), &local_identity(&options(path, 2)));
    let short = one(&generator, plain(1, 5)).unwrap();
    assert_eq!((short.stop, short.new_tokens), (StopReason::Length, 5));
    let counted = run(generator.count_tokens(&messages(1))).unwrap();
    assert!(counted.exact);
    assert_eq!(counted.tokens, short.prompt_tokens);
    let fits = GenerationRequest {
        input_budget: counted.tokens,
        ..plain(1, 1)
    };
    assert!(one(&generator, fits.clone()).is_ok());
    let over = GenerationRequest {
        input_budget: counted.tokens - 1,
        ..fits
    };
    assert_eq!(
        one(&generator, over),
        Err(ModelError::OverBudget {
            tokens: counted.tokens,
            budget: counted.tokens - 1
        })
    );
    // The context has 1024 tokens: what can't fit beside its answer is refused before it is computed.
    let mut long = GenerationRequest {
        input_budget: u32::MAX,
        ..plain(1, 100)
    };
    long.messages[1].content = "word ".repeat(950);
    assert!(matches!(
        one(&generator, long.clone()),
        Err(ModelError::OverBudget { budget: 924, .. })
    ));
    long.messages[1].content = "word ".repeat(850);
    assert!(one(&generator, long).is_ok());
    let all = GenerationRequest {
        max_new_tokens: u32::MAX,
        ..plain(1, 1)
    };
    assert!(matches!(
        one(&generator, all),
        Err(ModelError::OverBudget { budget: 0, .. })
    ));
    assert!(matches!(
        one(&generator, plain(1, 0)),
        Err(ModelError::BadConstraint(_))
    ));
}

#[test]
fn a_call_can_be_stopped_and_a_late_one_is_late() {
    let Some((path, _turn)) = model() else { return };
    let generator = load(path, 2);
    let requests: Vec<_> = (0..8).map(|number| plain(number, 600)).collect();
    let outcomes = Outcomes::default();
    let control = Control::default();
    let began = Instant::now();
    run(async {
        let stop = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            control.cancel.cancel();
        };
        tokio::join!(generator.generate(&requests, &control, &outcomes), stop);
    });
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    let ended = outcomes.0.into_inner().unwrap();
    assert_eq!(ended.len(), 8);
    assert!(
        ended
            .values()
            .any(|outcome| *outcome == Err(ModelError::Cancelled))
    );
    let outcomes = Outcomes::default();
    let control = Control {
        deadline: Some(Duration::from_millis(300)),
        ..Control::default()
    };
    run(generator.generate(&requests[..2], &control, &outcomes));
    for outcome in outcomes.0.into_inner().unwrap().values() {
        assert_eq!(
            *outcome,
            Err(ModelError::Timeout {
                seconds: 0,
                attempts: 1
            })
        );
    }
    // A call that is let go of leaves the engine free.
    run(async {
        let outcomes = Outcomes::default();
        let gone = Control::default();
        let call = generator.generate(&requests, &gone, &outcomes);
        assert!(
            tokio::time::timeout(Duration::from_millis(100), call)
                .await
                .is_err()
        );
    });
    assert!(one(&generator, plain(0, 4)).is_ok());
}

#[test]
fn what_the_caller_does_not_admit_is_not_begun() {
    let Some((path, _turn)) = model() else { return };
    let generator = load(path, 2);
    let requests: Vec<_> = (0..4).map(|number| plain(number, 4)).collect();
    let outcomes = Outcomes::default();
    let (gate, mut knocks) = Gate::new();
    let control = Control {
        gate: Some(gate),
        ..Control::default()
    };
    run(async {
        let caller = async {
            for _ in 0..4 {
                let knock = knocks.recv().await.unwrap();
                let admitted = knock.request != 2;
                knock.answer(admitted);
            }
        };
        tokio::join!(generator.generate(&requests, &control, &outcomes), caller);
    });
    for (request, outcome) in outcomes.0.into_inner().unwrap() {
        assert_eq!(outcome.is_ok(), request != 2, "{request}: {outcome:?}");
    }
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    assert!(matches!(
        LocalGenerator::load(options(file.clone(), 1)),
        Err(ModelError::Engine(_))
    ));
    std::fs::write(&file, b"GGUF\x03\0\0\0 and nothing that follows from it").unwrap();
    assert!(matches!(
        LocalGenerator::load(options(file.clone(), 1)),
        Err(ModelError::Engine(_))
    ));
    for wrong in [
        LocalOptions {
            threads: 0,
            ..options(file.clone(), 1)
        },
        LocalOptions {
            batch_tokens: 8,
            ..options(file.clone(), 1)
        },
        options(file, 0),
    ] {
        assert!(matches!(
            LocalGenerator::load(wrong),
            Err(ModelError::Engine(_))
        ));
    }
}
