//! Files of the Hugging Face hub, at a pinned commit.
//!
//! `hf-hub` says where a file is. It does not fetch it: its download names local files after headers that
//! the server sends, can't be stopped, and has no bound; and its newest version brings some two hundred crates. So
//! the bytes come through the HTTP client that it uses, into files that we name. No token is sent: pinned models
//! are public ones.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use hf_hub::api::sync::ApiBuilder;
use hf_hub::{Cache, Repo, RepoType};
use ureq::Agent;
use ureq::http::Response;

use super::catalogue::{PinnedFile, Source};
use super::error::PinError;
use super::pull::{Fetch, PullProgress};

/// Largest file where no size is pinned.
const MAX_FILE_BYTES: u64 = 64 << 30;
const CHUNK: usize = 256 << 10;

/// Fetches the files that are not there yet; those begun go on where they stopped.
pub(super) fn fetch(fetch: &mut Fetch<'_>) -> Result<(), PinError> {
    let Source::Hub { repository, commit } = &fetch.model.source else {
        return Ok(());
    };
    let bad = |file: &str, message: String| PinError::Hub {
        file: file.to_owned(),
        message,
    };
    let mut builder = ApiBuilder::from_cache(Cache::new(fetch.staging.to_owned()));
    if let Some(endpoint) = &fetch.tools.hub_endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    let api = builder
        .with_token(None)
        .build()
        .map_err(|error| bad(repository, error.to_string()))?;
    let place = Repo::with_revision(repository.clone(), RepoType::Model, commit.clone());
    let place = api.repo(place);
    for pinned in &fetch.model.files {
        let target = fetch.staging.join(&pinned.name);
        if target.exists() {
            continue;
        }
        fetch_file(fetch, pinned, &place.url(&pinned.name), &target)?;
    }
    Ok(())
}

fn agent(url: &str, patience: Duration) -> Agent {
    let config = Agent::config_builder()
        .timeout_connect(Some(patience))
        .timeout_recv_response(Some(patience))
        // A redirect must not leave TLS.
        .https_only(url.starts_with("https:"))
        .http_status_as_error(false)
        .accept_encoding("identity")
        .build();
    Agent::new_with_config(config)
}

fn fetch_file(
    fetch: &mut Fetch<'_>,
    pinned: &PinnedFile,
    url: &str,
    target: &Path,
) -> Result<(), PinError> {
    let failed = PinError::file(target);
    std::fs::create_dir_all(target.parent().unwrap_or(fetch.staging)).map_err(&failed)?;
    let part = part_path(target);
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&part)
        .map_err(&failed)?;
    let have = file.metadata().map_err(&failed)?.len();
    let (mut done, total, chunks) = open(fetch, pinned, url, have)?;
    if done == 0 {
        file.set_len(0).map_err(&failed)?;
    }
    loop {
        (fetch.progress)(PullProgress::Fetching {
            file: pinned.name.clone(),
            done,
            total,
        });
        let Some(chunk) = next_chunk(fetch, pinned, &chunks)? else {
            break;
        };
        done += chunk.len() as u64;
        if done > total.unwrap_or(MAX_FILE_BYTES) {
            drop(file);
            std::fs::remove_file(&part).map_err(&failed)?;
            return Err(hub_error(pinned, "it is longer than it is to be"));
        }
        file.write_all(&chunk).map_err(&failed)?;
    }
    finish(pinned, &file, &part, target, done, total)
}

fn finish(
    pinned: &PinnedFile,
    file: &File,
    part: &Path,
    target: &Path,
    done: u64,
    total: Option<u64>,
) -> Result<(), PinError> {
    let failed = PinError::file(target);
    if let Some(total) = total.filter(|&total| total != done) {
        let message =
            format!("it ended after {done} of {total} bytes; the next pull goes on there");
        return Err(hub_error(pinned, message));
    }
    file.sync_all().map_err(&failed)?;
    std::fs::rename(part, target).map_err(&failed)
}

fn part_path(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

fn hub_error(pinned: &PinnedFile, message: impl Into<String>) -> PinError {
    PinError::Hub {
        file: pinned.name.clone(),
        message: message.into(),
    }
}

/// What a response begins with: how many bytes are there already, of how many, and the rest in chunks.
type Opened = (u64, Option<u64>, Receiver<std::io::Result<Vec<u8>>>);

/// Asks for the file from where it stopped. A server that gives all of it anyway is taken at its word.
fn open(fetch: &Fetch<'_>, pinned: &PinnedFile, url: &str, have: u64) -> Result<Opened, PinError> {
    let patience = Duration::from_secs(fetch.tools.hub_patience.max(1));
    let mut request = agent(url, patience).get(url);
    if have > 0 {
        request = request.header("Range", format!("bytes={have}-"));
    }
    let response = request
        .call()
        .map_err(|error| hub_error(pinned, error.to_string()))?;
    let (start, total) = match response.status().as_u16() {
        200 => (0, header(&response, "content-length")),
        206 if have > 0 => (have, Some(range_total(pinned, &response, have)?)),
        // All of it was there but for the last step.
        416 if have > 0 && pinned.size == Some(have) => {
            let (_, receiver) = sync_channel(1);
            return Ok((have, Some(have), receiver));
        }
        status => return Err(hub_error(pinned, format!("status {status}"))),
    };
    if response.headers().contains_key("content-encoding") {
        return Err(hub_error(
            pinned,
            "it came in an encoding that was not asked for",
        ));
    }
    if let (Some(expected), Some(found)) = (pinned.size, total)
        && expected != found
    {
        return Err(PinError::WrongSize {
            file: pinned.name.clone(),
            expected,
            found,
        });
    }
    if total.is_some_and(|total| total > MAX_FILE_BYTES) {
        return Err(hub_error(pinned, "it is larger than any model's file"));
    }
    let total = total.or(pinned.size);
    Ok((start, total, read_aside(response)))
}

fn header<T>(response: &Response<T>, name: &str) -> Option<u64> {
    response.headers().get(name)?.to_str().ok()?.parse().ok()
}

/// The whole size out of `bytes HAVE-LAST/TOTAL`.
fn range_total<T>(pinned: &PinnedFile, response: &Response<T>, have: u64) -> Result<u64, PinError> {
    let range = response.headers().get("content-range");
    let text = range.and_then(|value| value.to_str().ok()).unwrap_or("");
    let total = text
        .strip_prefix(&format!("bytes {have}-"))
        .and_then(|rest| rest.split_once('/'))
        .and_then(|(_, total)| total.parse().ok());
    total.ok_or_else(|| {
        hub_error(
            pinned,
            "it was asked for from its middle, and did not come so",
        )
    })
}

/// Reads the body in a thread, so that a silent server can be given up and a call be cancelled at once. The thread
/// ends with the connection, or when nobody takes its chunks.
fn read_aside(response: Response<ureq::Body>) -> Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = sync_channel(4);
    let mut body = response.into_body().into_reader();
    thread::spawn(move || {
        loop {
            let mut chunk = vec![0; CHUNK];
            let read = body.read(&mut chunk);
            let ended = !matches!(read, Ok(1..));
            let message = read.map(|length| {
                chunk.truncate(length);
                chunk
            });
            if sender.send(message).is_err() || ended {
                break;
            }
        }
    });
    receiver
}

/// The next chunk; none at the end, also at one that came too early: the caller knows how much there is.
fn next_chunk(
    fetch: &Fetch<'_>,
    pinned: &PinnedFile,
    chunks: &Receiver<std::io::Result<Vec<u8>>>,
) -> Result<Option<Vec<u8>>, PinError> {
    let patience = Duration::from_secs(fetch.tools.hub_patience.max(1));
    let since = Instant::now();
    while since.elapsed() < patience {
        if fetch.cancel.is_cancelled() {
            return Err(PinError::Cancelled);
        }
        match chunks.recv_timeout(Duration::from_millis(50)) {
            Ok(Ok(chunk)) if chunk.is_empty() => return Ok(None),
            Ok(Ok(chunk)) => return Ok(Some(chunk)),
            Ok(Err(error)) => return Err(hub_error(pinned, error.to_string())),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    let seconds = patience.as_secs();
    Err(hub_error(pinned, format!("nothing came for {seconds} s")))
}
