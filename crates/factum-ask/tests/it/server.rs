//! An OpenAI-compatible server that says what a test tells it, and remembers every request.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use factum_ask::run::Answerer;
use factum_casefile::EvidenceId;
use factum_model::openai::{OpenAiGenerator, OpenAiOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the server does about a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A good response: words, and calls with their arguments.
    Response(String, Vec<(String, Value)>),
    /// A status with a body.
    Status(u16, String),
    /// These bytes as a stream of events.
    Stream(String),
    /// Nothing, until the client goes.
    Hang,
}

pub(crate) fn say(text: &str) -> Reply {
    Reply::Response(text.to_owned(), Vec::new())
}

pub(crate) fn call(tool: &str, arguments: Value) -> Reply {
    both("", tool, arguments)
}

pub(crate) fn both(text: &str, tool: &str, arguments: Value) -> Reply {
    Reply::Response(text.to_owned(), vec![(tool.to_owned(), arguments)])
}

pub(crate) fn search(query: &str) -> Reply {
    call("search", json!({"query": query}))
}

pub(crate) fn cite(ids: &[String]) -> Reply {
    call("cite", json!({"evidence_ids": ids}))
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().unwrap()
    }

    /// What the last message says.
    pub(crate) fn last(&self) -> &str {
        self.messages().last().unwrap()["content"].as_str().unwrap()
    }

    /// Who it is from.
    pub(crate) fn last_role(&self) -> &str {
        self.messages().last().unwrap()["role"].as_str().unwrap()
    }

    /// All evidence ids in brackets in the last message.
    pub(crate) fn ids(&self) -> Vec<String> {
        let parts = self
            .last()
            .split('[')
            .skip(1)
            .filter_map(|part| part.split(']').next());
        parts
            .filter(|id| {
                id.rsplit('/')
                    .next()
                    .is_some_and(|id| id.parse::<EvidenceId>().is_ok())
            })
            .map(str::to_owned)
            .collect()
    }

    /// Names of the tools that are offered.
    pub(crate) fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().cloned().unwrap_or_default();
        tools
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

type Script = dyn Fn(usize, &Asked) -> Reply + Send + Sync;

pub(crate) struct Server {
    address: std::net::SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Serves; the script gets the number of the request, from 0.
    pub(crate) async fn start(
        script: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, script): (_, Arc<Script>) = (Arc::clone(&asked), Arc::new(script));
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                tokio::spawn(async move { talk(socket, &seen, &*script).await });
            }
        });
        Self {
            address,
            asked,
            task,
        }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// What answers by this server, and gives up soon.
    pub(crate) fn answerer(&self) -> Answerer {
        let url = format!("http://{}/v1", self.address).parse().unwrap();
        let mut options = OpenAiOptions::new(url, "tiny");
        options.deadline = Duration::from_secs(3);
        options.retries = 2;
        options.first_wait = Duration::from_millis(2);
        options.silence = Duration::from_secs(2);
        Answerer::Model {
            name: "openai:tiny".to_owned(),
            model: Arc::new(OpenAiGenerator::new(&options).unwrap()),
        }
    }
}

async fn talk(mut socket: TcpStream, seen: &Mutex<Vec<Asked>>, script: &Script) {
    let mut buffer = Vec::new();
    while let Some(text) = read_request(&mut socket, &mut buffer).await {
        let body = serde_json::from_str(&text).unwrap();
        let asked = Asked { text, body };
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(asked.clone());
            seen.len() - 1
        };
        let bytes = match script(number, &asked) {
            Reply::Response(text, calls) => http(200, "text/event-stream", &events(&text, &calls)),
            Reply::Status(status, body) => http(status, "application/json", &body),
            Reply::Stream(body) => http(200, "text/event-stream", &body),
            Reply::Hang => {
                let mut byte = [0];
                while matches!(socket.read(&mut byte).await, Ok(1)) {}
                return;
            }
        };
        if socket.write_all(bytes.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<String> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
    let length: usize = head
        .split("content-length:")
        .nth(1)?
        .lines()
        .next()?
        .trim()
        .parse()
        .ok()?;
    while buffer.len() < end + length {
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(buffer[end..end + length].to_vec()).unwrap();
    buffer.drain(..end + length);
    Some(body)
}

fn http(status: u16, content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A streamed response, its words and arguments in two pieces each.
fn events(text: &str, calls: &[(String, Value)]) -> String {
    let mut out = String::new();
    let mut event = |value: Value| out.push_str(&format!("data: {value}\n\n"));
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let half = text
        .char_indices()
        .nth(text.chars().count() / 2)
        .map_or(0, |(at, _)| at);
    for piece in [&text[..half], &text[half..]] {
        event(delta(json!({"content": piece})));
    }
    for (index, (name, arguments)) in calls.iter().enumerate() {
        // Every call has the same id, as some servers have it.
        event(delta(
            json!({"tool_calls": [{"index": index, "id": "call_0", "type": "function", "function": {"name": name, "arguments": ""}}]}),
        ));
        let written = arguments
            .as_str()
            .map_or_else(|| arguments.to_string(), str::to_owned);
        event(delta(
            json!({"tool_calls": [{"index": index, "function": {"arguments": written}}]}),
        ));
    }
    let reason = if calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
    event(json!({"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 7}}));
    out.push_str("data: [DONE]\n\n");
    out
}
