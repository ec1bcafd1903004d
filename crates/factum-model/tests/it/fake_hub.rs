//! A server under the test's control that answers as the hub does, or not.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How a file is given.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Whole, or from where it was asked for.
    Whole(Vec<u8>),
    /// With its whole length stated, and the connection closed after so many bytes.
    Short(Vec<u8>, usize),
    /// Without a length.
    NoLength(Vec<u8>),
    /// Some bytes, then silence.
    Silent(Vec<u8>),
    /// A range that was not asked for.
    WrongRange(Vec<u8>),
    /// A redirect to another path.
    Moved(String),
    /// A status.
    Status(u16),
}

/// A request: its path, and where it asked to begin.
pub(crate) type Asked = (String, Option<u64>);

pub(crate) struct FakeHub {
    pub(crate) url: String,
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl FakeHub {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers: Arc<Mutex<BTreeMap<String, Answer>>> = Arc::default();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (their_answers, their_asked) = (Arc::clone(&answers), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, asked) = (Arc::clone(&their_answers), Arc::clone(&their_asked));
                thread::spawn(move || serve(stream, &answers, &asked));
            }
        });
        Self {
            url,
            answers,
            asked,
        }
    }

    pub(crate) fn answer(&self, path: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, answers: &Mutex<BTreeMap<String, Answer>>, asked: &Mutex<Vec<Asked>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let path = first.split(' ').nth(1).unwrap().to_owned();
    let mut from = None;
    for line in lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
    {
        let line = line.to_ascii_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().ok();
        }
    }
    asked.lock().unwrap().push((path.clone(), from));
    let answer = answers.lock().unwrap().get(&path).cloned();
    // The other side may be gone already.
    let _ = send(stream, answer.unwrap_or(Answer::Status(404)), from);
}

fn send(mut to: TcpStream, answer: Answer, from: Option<u64>) -> std::io::Result<()> {
    let begin = usize::try_from(from.unwrap_or(0)).unwrap();
    match answer {
        Answer::Whole(bytes) if from.is_some() => {
            let (length, total) = (bytes.len() - begin, bytes.len());
            write!(
                to,
                "HTTP/1.1 206 Partial Content\r\nContent-Length: {length}\r\n\
                 Content-Range: bytes {begin}-{}/{total}\r\nConnection: close\r\n\r\n",
                total - 1
            )?;
            to.write_all(&bytes[begin..])
        }
        Answer::Whole(bytes) => {
            let length = bytes.len();
            write!(
                to,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            )?;
            to.write_all(&bytes)
        }
        Answer::Short(bytes, end) => {
            let length = bytes.len();
            write!(
                to,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            )?;
            to.write_all(&bytes[..end])
        }
        Answer::NoLength(bytes) => {
            write!(to, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            to.write_all(&bytes)
        }
        Answer::Silent(bytes) => {
            write!(to, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
            to.write_all(&bytes)?;
            to.flush()?;
            thread::sleep(Duration::from_secs(20));
            Ok(())
        }
        Answer::WrongRange(bytes) => {
            let length = bytes.len();
            write!(
                to,
                "HTTP/1.1 206 Partial Content\r\nContent-Length: {length}\r\n\
                 Content-Range: bytes 0-{}/{length}\r\nConnection: close\r\n\r\n",
                length - 1
            )?;
            to.write_all(&bytes)
        }
        Answer::Moved(path) => write!(
            to,
            "HTTP/1.1 302 Found\r\nLocation: {path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ),
        Answer::Status(status) => write!(
            to,
            "HTTP/1.1 {status} No\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret"
        ),
    }
}
