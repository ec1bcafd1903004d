//! What is sent to a server, and what is made of its good answers.

use std::time::{Duration, Instant};

use factum_model::openai::{
    ApiKey, ConstraintMode, LimitField, OpenAiError, OpenAiGenerator, OpenAiOptions, TokenCounting,
};
use factum_model::{
    Constraint, ConstraintKind, Control, Generator, Message, ModelError, Role, StopReason,
};
use serde_json::json;

use crate::collect::{Collect, ask, ask_all, request};
use crate::fake_server::{
    FakeServer, Step, answer, chunk, events, finish, json, piece, stream_head, usage,
};

fn generator(options: &OpenAiOptions) -> OpenAiGenerator {
    OpenAiGenerator::new(options).unwrap()
}

#[tokio::test]
async fn a_streamed_answer_is_put_together() {
    let server = FakeServer::always(events(&[
        piece("A ho"),
        piece("se bürst."),
        finish("stop"),
        usage(),
        "[DONE]".to_owned(),
    ]))
    .await;
    let sink = Collect::default();
    let generator = generator(&server.options());
    generator
        .generate(&[request("Why?")], &Control::default(), &sink)
        .await;
    assert_eq!(sink.tokens.into_inner(), 2);
    let generation = ask(&generator, request("Why?")).await.unwrap();
    assert_eq!(generation.text, "A hose bürst.");
    assert_eq!(generation.stop, StopReason::End);
    assert_eq!((generation.prompt_tokens, generation.new_tokens), (31, 3));
    assert!(!generation.tokens_bounded);
    assert_eq!(generation.system_fingerprint.as_deref(), Some("fp_1"));
    assert_eq!((generation.token_ids, generation.retries), (None, 0));
    assert!(generation.seconds > 0.0);
}

#[tokio::test]
async fn the_key_goes_alone_in_the_header_that_the_server_wants() {
    let server = FakeServer::always(answer("{}")).await;
    let mut options = server.options();
    options.key = Some(ApiKey::new("sk-test").unwrap());
    options.key_header = Some("api-key".to_owned());
    let keyless = server.options().identity().unwrap();
    assert_eq!(options.identity().unwrap(), keyless);
    ask(&generator(&options), request("Why?")).await.unwrap();
    let received = server.received().remove(0);
    assert_eq!(received.header("api-key"), Some("sk-test"));
    assert_eq!(received.header("authorization"), None);
    options.key_header = Some("content-length".to_owned());
    assert!(matches!(
        OpenAiGenerator::new(&options),
        Err(OpenAiError::KeyHeader(_))
    ));
}

#[tokio::test]
async fn the_request_is_exactly_this() {
    let server = FakeServer::always(answer("{}")).await;
    let mut options = server.options();
    options.key = Some(ApiKey::new("sk-test").unwrap());
    options.api_version = Some("2024-10-21".to_owned());
    let mut request = request("Why?");
    request.constraint = Constraint::JsonSchema(json!({"type": "object"}));
    ask(&generator(&options), request).await.unwrap();
    let received = server.received().remove(0);
    assert_eq!(received.method, "POST");
    assert_eq!(received.path, "/v1/chat/completions?api-version=2024-10-21");
    assert_eq!(received.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(received.header("content-type"), Some("application/json"));
    assert_eq!(
        received.header("accept"),
        Some("text/event-stream, application/json")
    );
    assert_eq!(
        received.body,
        r#"{"model":"tiny","messages":[{"role":"system","content":"Summarise."},{"role":"user","content":"Why?"}],"temperature":0,"seed":0,"n":1,"max_tokens":64,"stream":true,"stream_options":{"include_usage":true},"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"type":"object"}}}}"#
    );
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"A hose."},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":64},"system_fingerprint":"fp_2"}"#;
    for steps in [
        json(body),
        crate::fake_server::reply("200 OK", "", body),
        vec![
            Step::Send(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n".to_vec()),
            Step::Send(body.as_bytes().to_vec()),
            Step::Close,
        ],
    ] {
        let server = FakeServer::always(steps).await;
        let generation = ask(&generator(&server.options()), request("Why?"))
            .await
            .unwrap();
        assert_eq!(generation.text, "A hose.");
        assert_eq!(generation.stop, StopReason::Length);
        assert_eq!((generation.prompt_tokens, generation.new_tokens), (9, 64));
        assert_eq!(generation.system_fingerprint.as_deref(), Some("fp_2"));
    }
}

#[tokio::test]
async fn an_empty_answer_is_whole_and_not_asked_for_again() {
    let server = FakeServer::always(events(&[finish("stop"), "[DONE]".to_owned()])).await;
    let generation = ask(&generator(&server.options()), request("Why?"))
        .await
        .unwrap();
    assert_eq!(generation.text, "");
    assert_eq!(generation.stop, StopReason::End);
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn without_usage_the_counts_are_bounds_and_say_so() {
    let server = FakeServer::always(events(&[piece("Ä!"), finish("stop")])).await;
    let generation = ask(&generator(&server.options()), request("Why?"))
        .await
        .unwrap();
    assert_eq!(generation.new_tokens, 3);
    assert_eq!(generation.prompt_tokens, 64 + (10 + 16) + (4 + 16));
    assert!(generation.tokens_bounded);
}

#[tokio::test]
async fn what_comes_after_a_whole_answer_is_not_waited_for() {
    // The finish reason came; then the server breaks off, or never ends.
    for last in [Step::Close, Step::Hang] {
        let server = FakeServer::always(vec![
            stream_head(),
            Step::Send(chunk(&format!("data: {}\n\n", piece("A hose.")))),
            Step::Send(chunk(&format!("data: {}\n\n", finish("stop")))),
            last,
        ])
        .await;
        let begun = Instant::now();
        let generation = ask(&generator(&server.options()), request("Why?"))
            .await
            .unwrap();
        assert!(begun.elapsed() < server.options().silence);
        assert_eq!(generation.text, "A hose.");
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = FakeServer::always(answer("A hose.")).await;
    let mut options = server.options();
    options.concurrency = 1;
    let requests = vec![request("Why?"); 5];
    let outcomes = ask_all(&generator(&options), &requests, &Control::default()).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!((server.requests(), server.connections()), (5, 1));
}

#[tokio::test]
async fn concurrency_is_bounded_and_used() {
    let server = FakeServer::start(|_, _| {
        let mut steps = vec![Step::Wait(Duration::from_millis(30))];
        steps.extend(answer("A hose."));
        steps
    })
    .await;
    let mut options = server.options();
    options.concurrency = 3;
    let generator = generator(&options);
    assert_eq!(generator.capabilities().parallel, 3);
    let requests = vec![request("Why?"); 12];
    let outcomes = ask_all(&generator, &requests, &Control::default()).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(server.most_at_once(), 3);
}

#[tokio::test]
async fn nothing_is_sent_that_is_over_its_budget() {
    let server = FakeServer::always(answer("A hose.")).await;
    let mut over = request("Why?");
    over.input_budget = 109;
    let outcome = ask(&generator(&server.options()), over).await;
    assert_eq!(
        outcome.unwrap_err(),
        ModelError::OverBudget {
            tokens: 110,
            budget: 109
        }
    );
    assert_eq!((server.requests(), server.connections()), (0, 0));
}

#[tokio::test]
async fn llama_cpp_counts_the_prompt_in_its_own_template() {
    let server = FakeServer::start(|_, received| match received.path.as_str() {
        "/apply-template" => json(r#"{"prompt":"<|im_start|>Why?"}"#),
        "/tokenize" => json(r#"{"tokens":[1,2,3,4,5]}"#),
        _ => answer("A hose."),
    })
    .await;
    let mut options = server.options();
    options.tokens = TokenCounting::LlamaCpp;
    let generator = generator(&options);
    let messages = [Message::new(Role::User, "Why?")];
    let count = generator.count_tokens(&messages).await.unwrap();
    assert_eq!((count.tokens, count.exact), (5, true));
    let received = server.received();
    assert_eq!(
        received[0].body,
        r#"{"messages":[{"role":"user","content":"Why?"}]}"#
    );
    assert_eq!(
        received[1].body,
        r#"{"content":"<|im_start|>Why?","add_special":true,"parse_special":true}"#
    );
    let mut over = request("Why?");
    over.input_budget = 4;
    let outcome = ask(&generator, over).await;
    assert!(matches!(
        outcome,
        Err(ModelError::OverBudget {
            tokens: 5,
            budget: 4
        })
    ));
    let asked = server.received();
    assert!(asked.iter().all(|received| !received.path.contains("chat")));
}

#[tokio::test]
async fn vllm_counts_messages() {
    let server = FakeServer::always(json(r#"{"count":7,"max_model_len":100,"tokens":[]}"#)).await;
    let mut options = server.options();
    options.tokens = TokenCounting::Vllm;
    let messages = [Message::new(Role::User, "Why?")];
    let count = generator(&options).count_tokens(&messages).await.unwrap();
    assert_eq!((count.tokens, count.exact), (7, true));
    assert_eq!(
        server.received()[0].body,
        r#"{"model":"tiny","messages":[{"role":"user","content":"Why?"}],"add_generation_prompt":true}"#
    );
}

#[tokio::test]
async fn a_template_that_refuses_is_named() {
    let server = FakeServer::always(crate::fake_server::reply(
        "400 Bad Request",
        "",
        r#"{"error":{"message":"roles must alternate"}}"#,
    ))
    .await;
    let mut options = server.options();
    options.tokens = TokenCounting::LlamaCpp;
    let outcome = ask(&generator(&options), request("Why?")).await;
    assert_eq!(
        outcome.unwrap_err(),
        ModelError::Template("roles must alternate".to_owned())
    );
}

#[test]
fn the_identity_holds_all_that_can_change_an_answer_and_nothing_secret() {
    let mut options = crate::fake_server::options("http://Example.org:80/v1/");
    options.key = Some(ApiKey::new("sk-secret").unwrap());
    let identity = options.identity().unwrap();
    assert_eq!(
        identity.canonical().unwrap(),
        r#"{"api_version":null,"constraint_mode":"json_schema","kind":"openai","model":"tiny","protocol":"1","settings":{"n":1,"seed":0,"stream":true,"temperature":0},"token_counting":{"method":"bound","per_message":16,"per_prompt":64},"url":"http://example.org/v1"}"#
    );
    assert_eq!(generator(&options).identity(), &identity);
    let changes: [fn(&mut OpenAiOptions); 6] = [
        |options| options.url = "http://example.org/v2".parse().unwrap(),
        |options| options.model.push('2'),
        |options| options.api_version = Some("1".to_owned()),
        |options| options.mode = ConstraintMode::Plain,
        |options| options.tokens = TokenCounting::Vllm,
        |options| options.limit = LimitField::MaxCompletionTokens,
    ];
    for change in changes {
        let mut other = options.clone();
        change(&mut other);
        assert_ne!(other.identity().unwrap(), identity);
    }
    let mut same = options.clone();
    same.key = None;
    same.concurrency = 1;
    same.retries = 0;
    assert_eq!(same.identity().unwrap(), identity);
}

#[test]
fn only_the_mode_with_a_schema_holds_an_answer_to_it() {
    let mut options = crate::fake_server::options("http://127.0.0.1:1/v1");
    let holds = |options: &OpenAiOptions| {
        let capabilities = generator(options).capabilities();
        (
            capabilities.holds(ConstraintKind::JsonSchema),
            capabilities.holds(ConstraintKind::Grounded),
        )
    };
    assert_eq!(holds(&options), (true, false));
    options.mode = ConstraintMode::Plain;
    assert_eq!(holds(&options), (false, false));
}

#[test]
fn options_that_cannot_be_sent_are_refused() {
    let mut options = crate::fake_server::options("http://127.0.0.1:1/v1");
    options.model = String::new();
    assert_eq!(options.identity(), Err(OpenAiError::Model));
    options.model = "m".to_owned();
    options.api_version = Some("1&key=2".to_owned());
    assert_eq!(
        OpenAiGenerator::new(&options).unwrap_err(),
        OpenAiError::ApiVersion
    );
}

// Knows two words, and asks for texts to be cut to one token.
const TOKENIZER: &str = r#"{"version":"1.0","truncation":{"direction":"Right","max_length":1,"strategy":"LongestFirst","stride":0},"padding":null,"added_tokens":[],"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,"model":{"type":"WordLevel","vocab":{"a":0,"hose":1,"?":2},"unk_token":"?"}}"#;

fn with_tokenizer(content: &str) -> (tempfile::TempDir, OpenAiOptions) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, content).unwrap();
    let mut options = crate::fake_server::options("http://127.0.0.1:1/v1");
    options.tokens = TokenCounting::TokenizerFile {
        path,
        per_message: 5,
        per_prompt: 3,
    };
    (folder, options)
}

#[test]
fn a_tokenizers_file_is_known_by_its_content_and_not_by_its_place() {
    let (folder, gone) = with_tokenizer(TOKENIZER);
    drop(folder);
    assert!(gone.identity().is_err());
    let (_one, one) = with_tokenizer(TOKENIZER);
    let (_same, same) = with_tokenizer(TOKENIZER);
    let (_other, other) = with_tokenizer("{}");
    assert_eq!(one.identity(), same.identity());
    assert_ne!(one.identity(), other.identity());
}

#[cfg(not(feature = "tokenizer-file"))]
#[test]
fn a_build_without_tokenizers_says_how_to_get_them() {
    let (_folder, options) = with_tokenizer(TOKENIZER);
    let error = OpenAiGenerator::new(&options).unwrap_err();
    assert_eq!(error, OpenAiError::NoTokenizers);
    assert!(error.to_string().contains("--features tokenizer-file"));
}

#[cfg(feature = "tokenizer-file")]
#[tokio::test]
async fn a_tokenizers_file_counts_whole_texts_and_allows_for_the_template() {
    let (_folder, options) = with_tokenizer(TOKENIZER);
    let messages = [
        Message::new(Role::System, "a hose a hose"),
        Message::new(Role::User, "burst"),
    ];
    let count = generator(&options).count_tokens(&messages).await.unwrap();
    assert_eq!((count.tokens, count.exact), (3 + (4 + 5) + (1 + 5), false));
    let (_other, other) = with_tokenizer("{}");
    assert!(matches!(
        OpenAiGenerator::new(&other),
        Err(factum_model::openai::OpenAiError::Tokenizer { .. })
    ));
}
