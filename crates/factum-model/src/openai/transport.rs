//! One exchange with a server over HTTP/1.1: bounded in time between bytes and in size, no redirects
//! followed, no cookies, no proxies. It knows no chat.
//!
//! Certificates are checked against the system's roots; `SSL_CERT_FILE` and `SSL_CERT_DIR` choose others.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls::crypto::ring;

use super::stream::{refusal_message, shown};

// Of the body of a refusal, no more is read.
const REFUSAL_BYTES: u64 = 16 * 1024;
const IDLE: Duration = Duration::from_secs(30);

/// Why one exchange gave nothing.
#[derive(Debug)]
pub(super) enum Fault {
    /// No connection, or none that lasted until an answer began.
    Unreachable(String),
    /// Nothing came for too long.
    Silence,
    /// The certificate is not accepted.
    Certificate(String),
    /// A status other than success.
    Status {
        status: u16,
        message: String,
        retry_after: Option<String>,
    },
    /// The reply broke off, or is garbled.
    Broken(String),
    /// The reply came whole, and is not what can be used.
    Unusable(String),
    /// The reply is longer than it may be.
    TooLarge { limit: u64 },
}

/// A client of one server.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    key: Option<(HeaderName, HeaderValue)>,
    silence: Duration,
}

/// Limits of an exchange that do not depend on what is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For a connection.
    pub(super) connect: Duration,
    /// Between any two pieces of a reply, and before the first.
    pub(super) silence: Duration,
}

/// A reply with a status of success, whose body is still to come.
#[derive(Debug)]
pub(super) struct Reply {
    /// What the body is, in lower case; empty where it is not said.
    pub(super) content_type: String,
    body: Incoming,
    silence: Duration,
    left: u64,
    limit: u64,
}

impl Transport {
    /// A client; it connects to nothing yet.
    pub(super) fn new(
        https: bool,
        key: Option<(HeaderName, HeaderValue)>,
        patience: Patience,
    ) -> io::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(patience.connect));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(https)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(Self {
            client,
            key,
            silence: patience.silence,
        })
    }

    /// Asks, and waits until the reply begins. Of its body no more than `limit` bytes will be read.
    pub(super) async fn send(
        &self,
        method: Method,
        uri: &Uri,
        body: Bytes,
        limit: u64,
    ) -> Result<Reply, Fault> {
        let request = self.request(method, uri, body)?;
        let response = tokio::time::timeout(self.silence, self.client.request(request))
            .await
            .map_err(|_| Fault::Silence)?
            .map_err(|error| connection_fault(&error))?;
        let (status, retry_after) = (response.status(), header(&response, &RETRY_AFTER));
        if status.is_success() {
            return Ok(Reply::new(response, self.silence, limit));
        }
        // What a refusal says is a courtesy: it is shown as far as it comes.
        let mut refusal = Reply::new(response, self.silence, REFUSAL_BYTES);
        let mut said = Vec::new();
        while let Ok(Some(piece)) = refusal.piece().await {
            said.extend_from_slice(&piece);
        }
        Err(Fault::Status {
            status: status.as_u16(),
            message: refusal_message(&said),
            retry_after,
        })
    }

    fn request(
        &self,
        method: Method,
        uri: &Uri,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, Fault> {
        let mut request = Request::builder()
            .method(method)
            .uri(uri.clone())
            .header(ACCEPT, "text/event-stream, application/json")
            .header(USER_AGENT, concat!("factum/", env!("CARGO_PKG_VERSION")));
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some((name, value)) = &self.key {
            request = request.header(name, value.clone());
        }
        request
            .body(Full::new(body))
            .map_err(|error| Fault::Unusable(error.to_string()))
    }
}

impl Reply {
    fn new(response: Response<Incoming>, silence: Duration, limit: u64) -> Self {
        Self {
            content_type: header(&response, &CONTENT_TYPE)
                .unwrap_or_default()
                .to_ascii_lowercase(),
            body: response.into_body(),
            silence,
            left: limit,
            limit,
        }
    }

    /// The next piece of the body; none at its end.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let frame = tokio::time::timeout(self.silence, self.body.frame())
                .await
                .map_err(|_| Fault::Silence)?;
            let data = match frame {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(Fault::Broken(format!(
                        "the reply broke off: {}",
                        chain(&error)
                    )));
                }
                Some(Ok(frame)) => frame.into_data(),
            };
            // Trailers are no data.
            if let Ok(data) = data {
                self.left = self
                    .left
                    .checked_sub(data.len() as u64)
                    .ok_or(Fault::TooLarge { limit: self.limit })?;
                return Ok(Some(data));
            }
        }
    }

    /// The whole body.
    pub(super) async fn whole(&mut self) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    /// Waits less long for what is still to come.
    pub(super) fn hurry(&mut self, silence: Duration) {
        self.silence = self.silence.min(silence);
    }
}

// The system's roots are read only where they are needed: a machine may have none and a local server.
fn tls(https: bool) -> io::Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let builder = if https {
        builder.with_native_roots()?
    } else {
        builder.with_root_certificates(rustls::RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}

fn header(response: &Response<Incoming>, name: &hyper::header::HeaderName) -> Option<String> {
    let value = response.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

fn connection_fault(error: &(dyn StdError + 'static)) -> Fault {
    match tls_error(error) {
        Some(rustls::Error::InvalidCertificate(reason)) => Fault::Certificate(reason.to_string()),
        Some(error @ rustls::Error::NoCertificatesPresented) => {
            Fault::Certificate(error.to_string())
        }
        _ => Fault::Unreachable(chain(error)),
    }
}

// An `io::Error` hides what it wraps from `source`.
fn tls_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .map(|inner| inner as &'a (dyn StdError + 'static));
        next = wrapped.or_else(|| error.source());
    }
    None
}

// An error and its causes, without repeating what a cause says again.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    shown(&text)
}
