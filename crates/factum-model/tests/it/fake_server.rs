//! An HTTP server that does what a test tells it, byte by byte, and remembers what it was sent.
//!
//! Written by hand on sockets, since no HTTP library lets a test break off half way through a chunk.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use factum_model::openai::{BaseUrl, OpenAiOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// What the server does about a request, one step after another.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends the same bytes so many times.
    Repeat(Vec<u8>, usize),
    /// Sends bytes one by one, with a wait before each.
    Drip(Vec<u8>, Duration),
    /// Waits.
    Wait(Duration),
    /// Does nothing until the client is gone.
    Hang,
    /// Closes the connection. Without it, the next request is read from the same connection.
    Close,
}

type Script = dyn Fn(usize, &Received) -> Vec<Step> + Send + Sync;

#[derive(Default)]
struct Seen {
    received: Mutex<Vec<Received>>,
    connections: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
    gone: AtomicUsize,
}

/// The server; it ends with the test.
pub(crate) struct FakeServer {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeServer {
    /// Serves; `script` gets the number of the request, from 0, and the request.
    pub(crate) async fn start(
        script: impl Fn(usize, &Received) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self::serve(None, Arc::new(script)).await
    }

    /// Serves over TLS.
    pub(crate) async fn start_tls(
        tls: TlsAcceptor,
        script: impl Fn(usize, &Received) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self::serve(Some(tls), Arc::new(script)).await
    }

    /// Serves the same to everyone.
    pub(crate) async fn always(steps: Vec<Step>) -> Self {
        Self::start(move |_, _| steps.clone()).await
    }

    async fn serve(tls: Option<TlsAcceptor>, script: Arc<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let Ok((socket, _)) = listener.accept().await else {
                    return;
                };
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let (seen, script, tls) = (Arc::clone(&shared), Arc::clone(&script), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => talk(socket, &seen, &*script).await,
                        Some(tls) => {
                            if let Ok(socket) = tls.accept(socket).await {
                                talk(socket, &seen, &*script).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            address,
            seen,
            task,
        }
    }

    /// Options for this server that give up soon.
    pub(crate) fn options(&self) -> OpenAiOptions {
        options(&format!("http://{}/v1", self.address))
    }

    /// All that was received.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.seen.received.lock().unwrap().clone()
    }

    /// How many requests were received.
    pub(crate) fn requests(&self) -> usize {
        self.seen.received.lock().unwrap().len()
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// Most requests that were worked on at one time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.seen.most.load(Ordering::SeqCst)
    }

    /// Waits until so many clients have gone while the server hung or sent.
    pub(crate) async fn wait_for_gone(&self, count: usize) {
        let gone = async {
            while self.seen.gone.load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone)
            .await
            .expect("the client goes");
    }
}

/// Options that give up soon.
pub(crate) fn options(url: &str) -> OpenAiOptions {
    let mut options = OpenAiOptions::new(url.parse::<BaseUrl>().unwrap(), "tiny");
    options.deadline = Duration::from_secs(20);
    options.retries = 2;
    options.first_wait = Duration::from_millis(5);
    options.connect = Duration::from_secs(5);
    options.silence = Duration::from_secs(10);
    options
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin>(mut socket: S, seen: &Seen, script: &Script) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut socket, &mut buffer).await {
        let number = {
            let mut received = seen.received.lock().unwrap();
            received.push(request.clone());
            received.len() - 1
        };
        let now = seen.now.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most.fetch_max(now, Ordering::SeqCst);
        let open = act(&mut socket, seen, script(number, &request)).await;
        seen.now.fetch_sub(1, Ordering::SeqCst);
        if !open {
            return;
        }
    }
}

// Whether the connection is still open.
async fn act<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut S,
    seen: &Seen,
    steps: Vec<Step>,
) -> bool {
    for step in steps {
        let sent = match step {
            Step::Send(bytes) => send(socket, &bytes, 1).await,
            Step::Repeat(bytes, times) => send(socket, &bytes, times).await,
            Step::Drip(bytes, wait) => drip(socket, &bytes, wait).await,
            Step::Wait(time) => {
                tokio::time::sleep(time).await;
                true
            }
            Step::Hang => {
                let mut byte = [0];
                while matches!(socket.read(&mut byte).await, Ok(1)) {}
                false
            }
            Step::Close => {
                let _ = socket.shutdown().await;
                return false;
            }
        };
        if !sent {
            seen.gone.fetch_add(1, Ordering::SeqCst);
            return false;
        }
    }
    true
}

async fn send<S: AsyncWrite + Unpin>(socket: &mut S, bytes: &[u8], times: usize) -> bool {
    for _ in 0..times {
        if socket.write_all(bytes).await.is_err() {
            return false;
        }
    }
    socket.flush().await.is_ok()
}

async fn drip<S: AsyncWrite + Unpin>(socket: &mut S, bytes: &[u8], wait: Duration) -> bool {
    for byte in bytes {
        tokio::time::sleep(wait).await;
        if !send(socket, &[*byte], 1).await {
            return false;
        }
    }
    true
}

async fn read_request<S: AsyncRead + Unpin>(
    socket: &mut S,
    buffer: &mut Vec<u8>,
) -> Option<Received> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse::<usize>().unwrap());
    while buffer.len() < end + 4 + length {
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = buffer[end + 4..end + 4 + length].to_vec();
    buffer.drain(..end + 4 + length);
    Some(Received {
        method,
        path,
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}

/// A whole reply with its length.
pub(crate) fn reply(status: &str, headers: &str, body: &str) -> Vec<Step> {
    vec![Step::Send(
        format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes(),
    )]
}

/// A JSON reply.
pub(crate) fn json(body: &str) -> Vec<Step> {
    reply("200 OK", "content-type: application/json\r\n", body)
}

/// The head of a stream of events in chunks.
pub(crate) fn stream_head() -> Step {
    Step::Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec(),
    )
}

/// One chunk.
pub(crate) fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// A streamed reply, each event in a chunk of its own.
pub(crate) fn events(events: &[String]) -> Vec<Step> {
    let mut steps = vec![stream_head()];
    for event in events {
        steps.push(Step::Send(chunk(&format!("data: {event}\n\n"))));
    }
    steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
    steps
}

/// An event with a piece of text.
pub(crate) fn piece(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!(
        r#"{{"id":"c1","object":"chat.completion.chunk","system_fingerprint":"fp_1","choices":[{{"index":0,"delta":{{"content":{text}}},"finish_reason":null}}]}}"#
    )
}

/// An event with a finish reason.
pub(crate) fn finish(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

/// An event with usage counts.
pub(crate) fn usage() -> String {
    r#"{"choices":[],"usage":{"prompt_tokens":31,"completion_tokens":3,"total_tokens":34}}"#
        .to_owned()
}

/// A good streamed answer.
pub(crate) fn answer(text: &str) -> Vec<Step> {
    events(&[piece(text), finish("stop"), usage(), "[DONE]".to_owned()])
}
