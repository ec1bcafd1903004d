//! Against a server that runs: `FACTUM_TEST_OPENAI=URL,MODEL cargo test -p factum-model real -- --ignored
//! --nocapture`.

use factum_model::openai::{ConstraintMode, OpenAiGenerator, TokenCounting, check};
use factum_model::{
    Constraint, Control, FieldShape, FieldValue, GroundedSchema, ModelError, Source, StopReason,
};

use crate::collect::{ask, ask_all, request};
use crate::fake_server::options;

#[tokio::test]
#[ignore = "needs a server: FACTUM_TEST_OPENAI=URL,MODEL"]
async fn a_real_server_is_checked_and_answers() {
    let place = std::env::var("FACTUM_TEST_OPENAI").unwrap();
    let (url, model) = place.split_once(',').unwrap();
    let mut options = options(url);
    options.model = model.to_owned();
    options.deadline = std::time::Duration::from_mins(2);
    options.silence = options.deadline;
    let report = check(&options).await.unwrap();
    println!("{}", serde_json::to_string_pretty(&report).unwrap());
    assert!(report.listed.works());
    options.mode = report.recommended_mode.unwrap();
    options.tokens = match report.recommended_counting.as_str() {
        "llama_cpp" => TokenCounting::LlamaCpp,
        "vllm" => TokenCounting::Vllm,
        _ => TokenCounting::Bound,
    };
    let generator = OpenAiGenerator::new(&options).unwrap();

    let mut cited = request(
        "[e1] A hose burst at 09:10.\n[e2] The pump stopped.\nList the facts as JSON: {\"claims\":[{\"evidence\":[..],\"statement\":..}]}",
    );
    cited.max_new_tokens = 200;
    cited.constraint = Constraint::Grounded(GroundedSchema {
        items_key: "claims".to_owned(),
        max_items: 2,
        fields: vec![FieldShape {
            name: "statement".to_owned(),
            optional: false,
            max_chars: 80,
            value: FieldValue::Free,
        }],
        citations_key: "evidence".to_owned(),
        max_citations: 1,
        sources: ["e1", "e2"]
            .map(|id| Source {
                id: id.to_owned(),
                text: "x".to_owned(),
            })
            .to_vec(),
    });
    let requests = [cited.clone(), request("Name a colour."), cited.clone()];
    let outcomes = ask_all(&generator, &requests, &Control::default()).await;
    for outcome in &outcomes {
        println!("{outcome:?}");
        assert!(outcome.is_ok());
    }
    let first = outcomes[0].as_ref().unwrap();
    assert_eq!(first.text, outcomes[2].as_ref().unwrap().text);
    if options.mode == ConstraintMode::JsonSchema && first.stop == StopReason::End {
        let value: serde_json::Value = serde_json::from_str(&first.text).unwrap();
        for claim in value["claims"].as_array().unwrap() {
            assert!(["e1", "e2"].contains(&claim["evidence"][0].as_str().unwrap()));
        }
    }
    let mut over = request("Why?");
    over.input_budget = 1;
    assert!(matches!(
        ask(&generator, over).await,
        Err(ModelError::OverBudget { .. })
    ));
}
