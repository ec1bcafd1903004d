//! What a server can do wrong: each fault is typed, bounded in time and size, and costs no other request.

use std::time::{Duration, Instant};

use factum_model::openai::{ApiKey, OpenAiGenerator, OpenAiOptions, TokenCounting};
use factum_model::{Control, Gate, Generation, ModelError};
use tokio::net::TcpListener;

use crate::collect::{ask, ask_all, request};
use crate::fake_server::{
    FakeServer, Step, answer, chunk, events, finish, json, options, piece, reply, stream_head,
};

const SOON: Duration = Duration::from_secs(8);

async fn outcome(options: &OpenAiOptions) -> Result<Generation, ModelError> {
    let begun = Instant::now();
    let generator = OpenAiGenerator::new(options).unwrap();
    let outcome = ask(&generator, request("Why?")).await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    outcome
}

async fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/v1", listener.local_addr().unwrap())
}

fn unavailable() -> Vec<Step> {
    reply("503 Service Unavailable", "", "overloaded\n\n")
}

// As events, but it ends without a finish reason, in the middle of a chunk.
fn half_a_stream() -> Vec<Step> {
    let mut half = chunk(&format!("data: {}\n\n", piece("A ho")));
    half.truncate(half.len() - 4);
    vec![stream_head(), Step::Send(half), Step::Close]
}

#[tokio::test]
async fn a_refused_connection_is_tried_again_and_named() {
    let error = outcome(&options(&closed_port().await)).await.unwrap_err();
    let ModelError::Unreachable { message, attempts } = error else {
        panic!("{error}");
    };
    assert_eq!(attempts, 3);
    assert!(message.to_lowercase().contains("refused"), "{message}");
}

#[tokio::test]
async fn a_server_that_is_busy_once_is_asked_again() {
    let server = FakeServer::start(|number, _| match number {
        0 => reply("429 Too Many Requests", "retry-after: 1\r\n", "{}"),
        _ => answer("A hose."),
    })
    .await;
    let begun = Instant::now();
    let generation = outcome(&server.options()).await.unwrap();
    assert_eq!(
        (generation.text.as_str(), generation.retries),
        ("A hose.", 1)
    );
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "Retry-After is honoured"
    );
    let received = server.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].body, received[1].body);
}

#[tokio::test]
async fn a_named_wait_beyond_the_deadline_is_not_begun() {
    let busy = reply(
        "429 Too Many Requests",
        "retry-after: 86400\r\n",
        "slow down",
    );
    let server = FakeServer::always(busy).await;
    assert_eq!(
        outcome(&server.options()).await.unwrap_err(),
        ModelError::Status {
            status: 429,
            message: "slow down".to_owned(),
            attempts: 1
        }
    );
}

#[tokio::test]
async fn a_server_that_fails_every_time_is_given_up() {
    let broken = reply(
        "500 Internal Server Error",
        "content-type: application/json\r\n",
        r#"{"error":{"message":"out of memory","type":"server_error"}}"#,
    );
    let server = FakeServer::always(broken).await;
    assert_eq!(
        outcome(&server.options()).await.unwrap_err(),
        ModelError::Status {
            status: 500,
            message: "out of memory".to_owned(),
            attempts: 3
        }
    );
    assert_eq!(server.requests(), 3);
}

#[tokio::test]
async fn a_refusal_is_not_asked_again() {
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "404 Not Found",
        "422 X",
    ] {
        let server = FakeServer::always(reply(status, "retry-after: 0\r\n", "no")).await;
        let error = outcome(&server.options()).await.unwrap_err();
        assert!(
            matches!(error, ModelError::Status { attempts: 1, .. }),
            "{error}"
        );
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = FakeServer::always(answer("stolen")).await;
    let location = format!(
        "location: http://{}/v1/chat/completions\r\n",
        target.address
    );
    for status in ["301 Moved Permanently", "307 Temporary Redirect"] {
        let server = FakeServer::always(reply(status, &location, "")).await;
        let error = outcome(&server.options()).await.unwrap_err();
        assert!(
            matches!(
                error,
                ModelError::Status {
                    attempts: 1,
                    status: 301 | 307,
                    ..
                }
            ),
            "{error}"
        );
    }
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn half_a_stream_is_no_answer() {
    let server = FakeServer::always(half_a_stream()).await;
    let error = outcome(&server.options()).await.unwrap_err();
    let ModelError::BadReply { message, attempts } = error else {
        panic!("{error}");
    };
    assert!(message.contains("broke off"), "{message}");
    assert_eq!((attempts, server.requests()), (3, 3));
}

#[tokio::test]
async fn a_stream_that_ends_without_a_finish_reason_is_no_answer() {
    for last in ["[DONE]", r#"{"choices":[]}"#] {
        let server = FakeServer::always(events(&[piece("A hose."), last.to_owned()])).await;
        assert_eq!(
            outcome(&server.options()).await.unwrap_err(),
            ModelError::BadReply {
                message: "the answer ends without a finish reason".to_owned(),
                attempts: 3
            }
        );
    }
}

#[tokio::test]
async fn half_a_stream_is_asked_for_again() {
    let server = FakeServer::start(|number, _| match number {
        0 => half_a_stream(),
        _ => answer("A hose."),
    })
    .await;
    let generation = outcome(&server.options()).await.unwrap();
    assert_eq!(
        (generation.text.as_str(), generation.retries),
        ("A hose.", 1)
    );
}

#[tokio::test]
async fn invalid_json_is_no_answer() {
    for steps in [
        json(r#"{"choices":[{"#),
        json("<html>"),
        reply("200 OK", "content-type: text/html\r\n", "<html>"),
        events(&["{\"choices\"".to_owned()]),
        vec![Step::Send(b"SSH-2.0-x\r\n".to_vec()), Step::Close],
        vec![Step::Close],
    ] {
        let server = FakeServer::always(steps).await;
        let error = outcome(&server.options()).await.unwrap_err();
        assert!(
            matches!(
                error,
                ModelError::BadReply { attempts: 3, .. }
                    | ModelError::Unreachable { attempts: 3, .. }
            ),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn another_finish_reason_is_no_answer_and_not_asked_again() {
    for reason in ["tool_calls", "content_filter", "abort"] {
        let server = FakeServer::always(events(&[piece("A"), finish(reason)])).await;
        assert_eq!(
            outcome(&server.options()).await.unwrap_err(),
            ModelError::BadReply {
                message: format!("the finish reason is \"{reason}\""),
                attempts: 1
            }
        );
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn a_reply_of_fifty_megabytes_is_not_read_to_its_end() {
    let megabyte = vec![b' '; 1024 * 1024];
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 52428800\r\n\r\n";
    let server = FakeServer::always(vec![
        Step::Send(head.as_bytes().to_vec()),
        Step::Repeat(megabyte.clone(), 50),
    ])
    .await;
    let limit = (256 + 64) * 1024;
    assert_eq!(
        outcome(&server.options()).await.unwrap_err(),
        ModelError::TooLarge { limit }
    );
    // The server could not get rid of all of it, and was asked once.
    server.wait_for_gone(1).await;
    assert_eq!(server.requests(), 1);

    let endless = FakeServer::always(vec![
        stream_head(),
        Step::Repeat(
            chunk(&format!("data: {}\n\n", piece(&"x".repeat(1000)))),
            50_000,
        ),
    ])
    .await;
    assert_eq!(
        outcome(&endless.options()).await.unwrap_err(),
        ModelError::TooLarge { limit }
    );
}

#[tokio::test]
async fn a_slow_body_ends_with_the_deadline() {
    let body = format!("data: {}\n\n", piece(&"x".repeat(10_000)));
    let server = FakeServer::always(vec![
        stream_head(),
        Step::Drip(chunk(&body), Duration::from_millis(5)),
    ])
    .await;
    let mut options = server.options();
    options.deadline = Duration::from_millis(300);
    assert_eq!(
        outcome(&options).await.unwrap_err(),
        ModelError::Timeout {
            seconds: 1,
            attempts: 1
        }
    );
    server.wait_for_gone(1).await;
}

#[tokio::test]
async fn a_server_that_hangs_is_asked_again_and_given_up() {
    for steps in [vec![Step::Hang], vec![stream_head(), Step::Hang]] {
        let server = FakeServer::always(steps).await;
        let mut options = server.options();
        options.silence = Duration::from_millis(60);
        let error = outcome(&options).await.unwrap_err();
        assert!(
            matches!(error, ModelError::Timeout { attempts: 3, .. }),
            "{error}"
        );
        server.wait_for_gone(3).await;
    }
}

#[tokio::test]
async fn the_callers_deadline_covers_all_attempts() {
    let server = FakeServer::always(unavailable()).await;
    let mut options = server.options();
    options.retries = 1_000_000;
    options.first_wait = Duration::from_millis(40);
    let control = Control {
        deadline: Some(Duration::from_millis(400)),
        ..Control::default()
    };
    let begun = Instant::now();
    let generator = OpenAiGenerator::new(&options).unwrap();
    let outcomes = ask_all(&generator, &[request("Why?")], &control).await;
    assert!(begun.elapsed() < SOON);
    assert!(outcomes[0].is_err());
    assert!(server.requests() < 30);
}

#[tokio::test]
async fn a_cancelled_call_ends_soon_and_hands_over_every_request() {
    let server = FakeServer::start(|number, _| match number {
        0 => answer("A hose."),
        _ => vec![stream_head(), Step::Hang],
    })
    .await;
    let mut options = server.options();
    options.concurrency = 2;
    let generator = OpenAiGenerator::new(&options).unwrap();
    let control = Control::default();
    let cancel = control.cancel.clone();
    let requests = vec![request("Why?"); 6];
    let begun = Instant::now();
    let (outcomes, ()) = tokio::join!(ask_all(&generator, &requests, &control), async {
        while server.requests() < 3 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        cancel.cancel();
    });
    assert!(begun.elapsed() < SOON);
    let whole = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let cancelled = outcomes
        .iter()
        .filter(|outcome| **outcome == Err(ModelError::Cancelled))
        .count();
    assert_eq!((whole, cancelled), (1, 5));
    assert_eq!(server.requests(), 3, "nothing is begun after the end");
    server.wait_for_gone(2).await;
}

#[tokio::test]
async fn what_the_caller_does_not_admit_is_not_sent_and_not_sent_again() {
    let server = FakeServer::start(|_, received| {
        if received.body.contains("again") {
            unavailable()
        } else {
            answer("A hose.")
        }
    })
    .await;
    let mut options = server.options();
    options.tokens = TokenCounting::Bound;
    options.concurrency = 1;
    let generator = OpenAiGenerator::new(&options).unwrap();
    let (gate, mut knocks) = Gate::new();
    let control = Control {
        gate: Some(gate),
        ..Control::default()
    };
    let requests = ["never", "again", "once"].map(request);
    let caller = async {
        let mut asked = Vec::new();
        while asked.len() < 4 {
            let knock = knocks.recv().await.unwrap();
            asked.push(knock.request);
            // The second attempt of the second request is not admitted.
            let admitted = knock.request > 0 && asked != [0, 1, 1];
            knock.answer(admitted);
        }
        asked
    };
    let (outcomes, asked) = tokio::join!(ask_all(&generator, &requests, &control), caller);
    assert_eq!(asked, [0, 1, 1, 2]);
    assert_eq!(outcomes[0], Err(ModelError::Cancelled));
    assert_eq!(outcomes[1], Err(ModelError::Cancelled));
    assert_eq!(outcomes[2].as_ref().unwrap().text, "A hose.");
    let sent: Vec<bool> = server
        .received()
        .iter()
        .map(|one| one.body.contains("never"))
        .collect();
    assert_eq!(sent, [false, false]);
}

#[tokio::test]
async fn one_lost_request_does_not_stop_the_others() {
    let server = FakeServer::start(|_, received| {
        if received.body.contains("LOSE") {
            unavailable()
        } else if received.body.contains("HANG") {
            vec![Step::Hang]
        } else {
            answer("A hose.")
        }
    })
    .await;
    let mut options = server.options();
    options.silence = Duration::from_millis(100);
    options.concurrency = 2;
    let requests = ["a", "LOSE", "b", "HANG", "c"].map(request);
    let generator = OpenAiGenerator::new(&options).unwrap();
    let outcomes = ask_all(&generator, &requests, &Control::default()).await;
    assert!(matches!(
        outcomes[1],
        Err(ModelError::Status { status: 503, .. })
    ));
    assert!(matches!(outcomes[3], Err(ModelError::Timeout { .. })));
    for place in [0, 2, 4] {
        assert_eq!(outcomes[place].as_ref().unwrap().text, "A hose.");
    }
}

#[tokio::test]
async fn a_lost_count_is_an_error_of_its_kind() {
    let server = FakeServer::always(unavailable()).await;
    let mut options = server.options();
    options.tokens = TokenCounting::Vllm;
    let error = outcome(&options).await.unwrap_err();
    assert!(matches!(
        error,
        ModelError::Status {
            status: 503,
            attempts: 3,
            ..
        }
    ));
    assert!(server.received().iter().all(|one| one.path == "/tokenize"));
}

#[tokio::test]
async fn the_key_is_in_no_error_and_no_record() {
    const KEY: &str = "sk-5up3r53cr3t-0123456789";
    // The server repeats the key wherever it can.
    let echo = |text: &str| text.replace("KEY", KEY);
    let body = |text: &str| echo(text).into_bytes();
    let replies: Vec<Vec<Step>> = vec![
        reply(
            "401 Unauthorized",
            "",
            &echo(r#"{"error":{"message":"bad key KEY"}}"#),
        ),
        reply("503 Unavailable", "", &echo("Bearer KEY")),
        // What is shown of a reply is cut within the key.
        reply(
            "503 Unavailable",
            "",
            &echo(&format!("{}KEY", "x".repeat(280))),
        ),
        reply(
            "302 Found",
            &echo("location: http://KEY/\r\n"),
            &echo("KEY"),
        ),
        json(&echo(r#"{"choices":"KEY"}"#)),
        events(&[echo(r#"{"error":{"message":"KEY"}}"#)]),
        events(&[finish(KEY)]),
        events(&[echo(r#"{"choices":[{"delta":{"refusal":"KEY"}}]}"#)]),
        answer(KEY),
        reply("200 OK", &echo("content-type: KEY\r\n"), "x"),
        vec![Step::Send(body("HTTP/1.1 KEY\r\n\r\n")), Step::Close],
        vec![Step::Close],
        events(&[piece("A hose.").replace("fp_1", KEY), finish("stop")]),
    ];
    for steps in replies {
        let server = FakeServer::always(steps).await;
        let mut options = server.options();
        options.key = Some(ApiKey::new(KEY).unwrap());
        options.retries = 0;
        let generator = OpenAiGenerator::new(&options).unwrap();
        let outcome = ask(&generator, request("Why?")).await;
        let said = match &outcome {
            Ok(generation) => serde_json::to_string(generation).unwrap(),
            Err(error) => format!("{error}"),
        };
        let all = format!("{said} {outcome:?} {options:?} {generator:?}");
        assert!(!all.contains("5up3r53cr3t"), "{all}");
        let report = factum_model::openai::check(&options).await.unwrap();
        let report = serde_json::to_string(&report).unwrap();
        assert!(!report.contains("5up3r53cr3t"), "{report}");
        let sent = server.received();
        assert!(sent[0].header("authorization").unwrap().contains(KEY));
    }
}
