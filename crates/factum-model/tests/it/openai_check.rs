//! What the check finds out about servers of several kinds.

use factum_model::openai::check::{Finding, check};
use factum_model::openai::{CheckReport, ConstraintMode, LimitField};
use tokio::net::TcpListener;

use crate::fake_server::{FakeServer, Step, answer, events, finish, json, options, piece, reply};

fn not_found() -> Vec<Step> {
    reply("404 Not Found", "", r#"{"detail":"Not Found"}"#)
}

fn mode(report: &CheckReport, mode: ConstraintMode) -> &Finding {
    let found = report.modes.iter().find(|found| found.mode == mode);
    &found.unwrap().finding
}

#[tokio::test]
async fn a_server_that_can_do_everything_is_found_so() {
    let server = FakeServer::start(|_, received| match received.path.as_str() {
        "/v1/models" => json(r#"{"object":"list","data":[{"id":"other"},{"id":"tiny"}]}"#),
        "/apply-template" => json(r#"{"prompt":"<s>Hello."}"#),
        "/tokenize" => json(r#"{"tokens":[1,2,3]}"#),
        _ if received.body.contains("json_schema") => answer(r#"{"word": "qx7-heron"}"#),
        _ if received.body.contains("json_object") => answer(r#"{"sea": "wide"}"#),
        _ => answer("The sea is wide."),
    })
    .await;
    let report = check(&server.options()).await.unwrap();
    assert!(report.listed.works());
    assert!(report.modes.iter().all(|found| found.finding.works()));
    assert_eq!(report.recommended_mode, Some(ConstraintMode::JsonSchema));
    assert_eq!(report.reports_usage, Some(true));
    assert_eq!(report.system_fingerprint.as_deref(), Some("fp_1"));
    assert_eq!(report.recommended_counting, "llama_cpp");
    let written = serde_json::to_string(&report).unwrap();
    assert_eq!(
        serde_json::from_str::<CheckReport>(&written).unwrap(),
        report
    );
}

#[tokio::test]
async fn a_server_that_calls_the_most_new_tokens_otherwise_is_found_so() {
    let server = FakeServer::start(|_, received| match received.path.as_str() {
        "/v1/models" => json(r#"{"data":[{"id":"tiny"}]}"#),
        "/tokenize" | "/apply-template" => not_found(),
        _ if received.body.contains("\"max_tokens\"") => reply(
            "400 Bad Request",
            "",
            r#"{"error":{"message":"Use 'max_completion_tokens' instead of 'max_tokens'."}}"#,
        ),
        _ if received.body.contains("json_schema") => answer(r#"{"word": "qx7-heron"}"#),
        _ => answer("{}"),
    })
    .await;
    let report = check(&server.options()).await.unwrap();
    assert_eq!(report.limit_field, LimitField::MaxCompletionTokens);
    assert!(report.modes.iter().all(|found| found.finding.works()));
    let refused = server
        .received()
        .iter()
        .filter(|one| one.body.contains("\"max_tokens\""))
        .count();
    assert_eq!(refused, 1, "once is enough to know");
}

#[tokio::test]
async fn a_schema_that_is_taken_but_not_kept_does_not_work() {
    let server = FakeServer::start(|_, received| match received.path.as_str() {
        "/v1/models" => json(r#"{"data":[]}"#),
        "/tokenize" | "/apply-template" => not_found(),
        _ if received.body.contains("json_object") => {
            reply("400 Bad Request", "", r#"{"error":"no such format"}"#)
        }
        _ => events(&[piece("The sea is wide."), finish("stop")]),
    })
    .await;
    let report = check(&server.options()).await.unwrap();
    assert!(matches!(report.listed, Finding::Differs { .. }));
    assert_eq!(
        mode(&report, ConstraintMode::JsonSchema),
        &Finding::Differs {
            message: "the answer is \"The sea is wide.\"".to_owned()
        }
    );
    assert_eq!(
        mode(&report, ConstraintMode::JsonObject),
        &Finding::Failed {
            kind: "status".to_owned(),
            message: "the server answered with status 400 (1 attempts): no such format".to_owned()
        }
    );
    assert_eq!(report.recommended_mode, Some(ConstraintMode::Plain));
    assert_eq!(report.reports_usage, Some(false));
    assert_eq!(report.recommended_counting, "bound");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_found_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let report = check(&options(&url)).await.unwrap();
    let unreachable = |finding: &Finding| match finding {
        Finding::Failed { kind, .. } => kind == "unreachable",
        _ => false,
    };
    assert!(unreachable(&report.listed));
    assert!(unreachable(&report.counts_as_vllm));
    assert!(report.modes.iter().all(|found| unreachable(&found.finding)));
    assert_eq!(report.recommended_mode, None);
    assert_eq!(report.reports_usage, None);
}
