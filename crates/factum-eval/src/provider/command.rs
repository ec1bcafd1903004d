//! Any program: the source on its stdin, a summary as JSON on its stdout.
//!
//! It has a time and a length. One that hangs, floods or dies is ended with all that it started, and costs only its
//! own fixture.

use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use factum_base::BodyDigest;
use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::provider::{Provider, ProviderError, source_json};
use crate::summary::Summary;

/// Kept of what a program says on stderr.
const MOST_STDERR: usize = 2_000;
/// How often a run that may be stopped looks whether it was.
const LOOK: Duration = Duration::from_millis(50);

/// Whether the run was stopped.
pub type Stopped = Arc<dyn Fn() -> bool + Send + Sync>;

/// A program.
pub struct Program {
    name: String,
    command: String,
    limits: Limits,
    stopped: Stopped,
}

/// What a program may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time.
    pub time: Duration,
    /// Most bytes of output.
    pub bytes: u64,
}

impl Program {
    /// A command line, run by the shell.
    pub fn new(command: &str, limits: Limits, stopped: Stopped) -> Self {
        Self {
            name: format!("command:{command}"),
            command: command.to_owned(),
            limits,
            stopped,
        }
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl Provider for Program {
    fn name(&self) -> &str {
        &self.name
    }

    /// The command line with the bytes of all files that its words name.
    fn identity(&self) -> Value {
        let files: Vec<Value> = self
            .command
            .split_whitespace()
            .filter_map(file_of)
            .filter_map(|path| {
                let bytes = std::fs::read(&path).ok()?;
                let digest = BodyDigest::of(&bytes).to_hex();
                Some(json!({"path": path.display().to_string(), "sha256": digest}))
            })
            .collect();
        json!({"kind": "command", "command": self.command, "files": files})
    }

    fn is_costly(&self) -> bool {
        true
    }

    fn summarise(&self, fixture: &Fixture, repeat: u32) -> Result<Summary, ProviderError> {
        let input = source_json(fixture).to_string() + "\n";
        let output = run(&self.command, input, repeat, self.limits, &self.stopped)?;
        Summary::from_json(&output).map_err(ProviderError::NoSummary)
    }
}

/// A word of a command line as a file: itself, or a program on the path.
fn file_of(word: &str) -> Option<PathBuf> {
    let word = word.trim_matches(['"', '\'']);
    let plain = Path::new(word);
    if plain.is_file() {
        return Some(plain.to_owned());
    }
    if word.contains('/') {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(word))
        .find(|found| found.is_file())
}

fn run(
    command: &str,
    input: String,
    repeat: u32,
    limits: Limits,
    stopped: &Stopped,
) -> Result<Vec<u8>, ProviderError> {
    let mut running = Running::start(command, repeat)?;
    running.feed(input);
    let stderr = running.listen();
    let output = running.read(limits.bytes);
    let until = Instant::now() + limits.time;
    let timed_out = || ProviderError::TimedOut {
        seconds: limits.time.as_secs(),
    };
    let output = loop {
        match output.recv_timeout(LOOK) {
            Ok(Ok(output)) => break output,
            Ok(Err(error)) => return Err(error),
            Err(RecvTimeoutError::Disconnected) => break Vec::new(),
            Err(RecvTimeoutError::Timeout) if stopped() => return Err(ProviderError::Stopped),
            Err(RecvTimeoutError::Timeout) if Instant::now() >= until => return Err(timed_out()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    let status = running.wait(until).ok_or_else(timed_out)?;
    if status.success() {
        return Ok(output);
    }
    // What was said before the end may still be on its way.
    std::thread::sleep(Duration::from_millis(20));
    let said = stderr.lock().map(|said| said.clone()).unwrap_or_default();
    Err(ProviderError::Failed {
        status: status.to_string(),
        stderr: printable(&String::from_utf8_lossy(&said)),
    })
}

fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().map(shown).collect()
}

/// A running program. It and all that it started are ended when this is dropped.
struct Running {
    child: Child,
    ended: bool,
}

impl Running {
    fn start(command: &str, repeat: u32) -> Result<Self, ProviderError> {
        let mut shell = if cfg!(windows) {
            let mut shell = Command::new("cmd");
            shell.arg("/C");
            shell
        } else {
            let mut shell = Command::new("sh");
            shell.arg("-c");
            shell
        };
        shell
            .arg(command)
            .env("FACTUM_EVAL_REPEAT", repeat.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A group of its own, so that what it starts can be ended with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        let child = shell.spawn().map_err(ProviderError::Start)?;
        Ok(Self {
            child,
            ended: false,
        })
    }

    /// Writes the input. A program that does not read it, or not to its end, is none of our business.
    fn feed(&mut self, input: String) {
        if let Some(mut stdin) = self.child.stdin.take() {
            std::thread::spawn(move || {
                let _ = stdin.write_all(input.as_bytes());
            });
        }
    }

    /// Keeps the end of what it says, and lets it say as much as it likes.
    fn listen(&mut self) -> Arc<Mutex<Vec<u8>>> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        if let Some(mut stderr) = self.child.stderr.take() {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = stderr.read(&mut buffer) {
                    let Ok(mut kept) = kept.lock() else { return };
                    kept.extend_from_slice(&buffer[..read]);
                    let surplus = kept.len().saturating_sub(MOST_STDERR);
                    kept.drain(..surplus);
                }
            });
        }
        kept
    }

    /// Reads the output in a thread of its own, which ends with the program.
    fn read(&mut self, limit: u64) -> Receiver<Result<Vec<u8>, ProviderError>> {
        let (sender, receiver) = channel();
        if let Some(stdout) = self.child.stdout.take() {
            std::thread::spawn(move || {
                let mut output = Vec::new();
                let read = stdout.take(limit + 1).read_to_end(&mut output);
                let outcome = match read {
                    Err(error) => Err(ProviderError::Start(error)),
                    Ok(_) if output.len() as u64 > limit => Err(ProviderError::TooLong { limit }),
                    Ok(_) => Ok(output),
                };
                let _ = sender.send(outcome);
            });
        }
        receiver
    }

    /// Waits for the end; none where it does not come in time.
    fn wait(&mut self, until: Instant) -> Option<ExitStatus> {
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                self.ended = true;
                return Some(status);
            }
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Once it was waited for, its number may be someone else's.
        if self.ended {
            return;
        }
        #[cfg(unix)]
        if let Some(group) = i32::try_from(self.child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
