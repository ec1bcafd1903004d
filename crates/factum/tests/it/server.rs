//! An OpenAI-compatible server that says what a test tells it, and remembers what it was sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// What is said to a request.
pub(crate) enum Say {
    /// This message.
    Message(Value),
    /// Nothing, for as long as the client waits.
    Nothing,
}

/// These words.
pub(crate) fn words(text: &str) -> Say {
    Say::Message(json!({"role": "assistant", "content": text}))
}

/// A call of a tool.
pub(crate) fn call(tool: &str, arguments: &Value) -> Say {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let calls = json!([{"id": "call_0", "type": "function", "function": function}]);
    Say::Message(json!({"role": "assistant", "content": null, "tool_calls": calls}))
}

type Script = dyn Fn(usize, &Value) -> Say + Send + Sync;

/// A server. Its threads end with the test's process.
pub(crate) struct Server {
    /// Where it is.
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts one. The script gets the number of the request, from 0, and its body.
    pub(crate) fn start(script: impl Fn(usize, &Value) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, script): (_, Arc<Script>) = (Arc::clone(&seen), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, script) = (Arc::clone(&kept), Arc::clone(&script));
                std::thread::spawn(move || answer(stream.unwrap(), &kept, &*script));
            }
        });
        Self { url, seen }
    }

    /// The requests so far, head and body.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until so many requests have come.
    pub(crate) fn wait_for(&self, requests: usize) {
        for _ in 0..6_000 {
            if self.seen.lock().unwrap().len() >= requests {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("request {requests} did not come");
    }
}

/// The body of a request as it was seen.
pub(crate) fn body(request: &str) -> Value {
    serde_json::from_str(&request[request.find("\r\n\r\n").unwrap() + 4..]).unwrap()
}

fn answer(mut stream: TcpStream, seen: &Mutex<Vec<String>>, script: &Script) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while matches!(reader.read_line(&mut head), Ok(read) if read > 2) {}
    let length = head.lines().find_map(|line| {
        let line = line.to_lowercase();
        line.strip_prefix("content-length: ")?.parse().ok()
    });
    let mut bytes = vec![0; length.unwrap_or(0)];
    // A client that was killed is gone in the middle of anything.
    if reader.read_exact(&mut bytes).is_err() || head.is_empty() {
        return;
    }
    let request = head + &String::from_utf8(bytes).unwrap();
    let asked = body(&request);
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(request);
        seen.len() - 1
    };
    let message = match script(number, &asked) {
        Say::Message(message) => message,
        Say::Nothing => {
            let _ = reader.read(&mut [0]);
            return;
        }
    };
    let reason = if message.get("tool_calls").is_some() {
        "tool_calls"
    } else {
        "stop"
    };
    let reply = json!({
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
        "system_fingerprint": "fp-1",
    })
    .to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{reply}",
        reply.len()
    );
}
