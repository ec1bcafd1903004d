//! A workspace of its own for each test, and the program run in it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub(crate) const FACTUM: &str = env!("CARGO_BIN_EXE_factum");

/// The case file that most tests use.
pub(crate) const CASE: &str = "wd";

/// Three short documents of two sentences each; every sentence becomes a claim of the root.
pub(crate) const LETTERS: [(&str, &str); 3] = [
    (
        "a.txt",
        "The hose under the sink burst on 3 March 2026. The kitchen floor was soaked through by the evening.\n",
    ),
    (
        "b.txt",
        "The insurer received the claim on 5 March 2026. An expert will visit the house next week.\n",
    ),
    (
        "c.txt",
        "The repair costs 4,200 euros including the floor. The plumber starts on 9 April 2026.\n",
    ),
];

/// A folder with a workspace in it. The documents are in its folder `in`.
pub(crate) struct Workspace {
    folder: TempDir,
}

impl Workspace {
    /// A folder without a workspace.
    pub(crate) fn bare() -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        Self { folder }
    }

    /// A workspace without case files.
    pub(crate) fn new() -> Self {
        let workspace = Self::bare();
        workspace.factum("init").ok();
        workspace
    }

    /// A workspace whose case file [`CASE`] follows the folder `in` with these documents.
    pub(crate) fn with<N: AsRef<str>, T: AsRef<[u8]>>(documents: &[(N, T)]) -> Self {
        Self::with_profile("narrative", documents)
    }

    /// The same under a profile.
    pub(crate) fn with_profile<N: AsRef<str>, T: AsRef<[u8]>>(
        profile: &str,
        documents: &[(N, T)],
    ) -> Self {
        let workspace = Self::new();
        workspace
            .factum(&format!("case new {CASE} --profile {profile}"))
            .ok();
        for (name, text) in documents {
            workspace.write(name.as_ref(), text);
        }
        workspace.sync();
        workspace
    }

    /// The three letters, synced and built.
    pub(crate) fn built() -> Self {
        let workspace = Self::with(&LETTERS);
        workspace.build();
        workspace
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A path in the folder.
    pub(crate) fn at(&self, inside: &str) -> PathBuf {
        self.path().join(inside)
    }

    /// The database file.
    pub(crate) fn database(&self) -> PathBuf {
        self.at(".factum/factum.db")
    }

    /// Writes a file of the folder `in`.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.at("in").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Removes a file of the folder `in`.
    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.at("in").join(name)).unwrap();
    }

    /// Writes a profile of the user's own.
    pub(crate) fn profile(&self, name: &str, toml: &str) {
        std::fs::write(
            self.at(".factum/profiles").join(format!("{name}.toml")),
            toml,
        )
        .unwrap();
    }

    /// Runs a command line, cut at white space.
    pub(crate) fn factum(&self, line: &str) -> Ran {
        self.run(line.split_whitespace())
    }

    /// Runs a command with these arguments.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ran {
        let mut command = Command::new(FACTUM);
        command.args(arguments);
        self.finish(command)
    }

    /// Runs any prepared command in the folder, and gives up on it after two minutes.
    pub(crate) fn finish(&self, command: Command) -> Ran {
        self.finish_within(2, command)
    }

    /// Runs a prepared command in the workspace, for at most so many minutes.
    pub(crate) fn finish_within(&self, minutes: u64, mut command: Command) -> Ran {
        command.current_dir(self.path());
        let line = format!("{command:?}");
        let output = assert_cmd::Command::from_std(command)
            .timeout(std::time::Duration::from_mins(minutes))
            .output()
            .unwrap();
        Ran {
            line,
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Syncs the case file with the folder `in`, and gives the report.
    pub(crate) fn sync(&self) -> Value {
        self.factum(&format!("sync {CASE} in --json")).ok().json()
    }

    /// Builds the owner's summary, and gives the report.
    pub(crate) fn build(&self) -> Value {
        self.factum(&format!("build {CASE} --json")).ok().json()
    }

    /// The owner's summary, which must be current.
    pub(crate) fn show(&self) -> Value {
        self.factum(&format!("show {CASE} --json")).ok().json()
    }

    /// Number of the latest event.
    pub(crate) fn last_event(&self) -> u64 {
        let history = self.factum(&format!("history {CASE} --json")).ok().json();
        history["events"]
            .as_array()
            .unwrap()
            .last()
            .map_or(0, |event| event["number"].as_u64().unwrap())
    }

    /// Everything that tells whether a command changed something.
    pub(crate) fn state(&self) -> String {
        let mut state = String::new();
        let cases = self.factum("status --json").ok().json();
        for case in cases["cases"].as_array().unwrap() {
            let id = case["case_id"].as_str().unwrap();
            for command in ["status", "history"] {
                let _ = writeln!(state, "{}", self.run([command, id, "--json"]).ok().stdout);
            }
        }
        state
    }

    /// Does something that must leave everything as it is.
    pub(crate) fn unchanged<R>(&self, what: impl FnOnce() -> R) -> R {
        let before = self.state();
        let result = what();
        assert_eq!(before, self.state());
        result
    }
}

/// A command that ended.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) line: String,
    /// The exit code; none where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Asserts the exit code. No exit code makes a panic right.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }

    /// Asserts that all went well.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.exits(0)
    }

    /// Asserts an error with this exit code, a message with this text, and a hint.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, text: &str) -> Self {
        let ran = self.exits(code);
        assert!(ran.stderr.starts_with("factum: "), "{ran:#?}");
        assert!(ran.stderr.contains(text), "{text:?} is not in {ran:#?}");
        assert!(ran.stderr.contains("\nhint: "), "no hint in {ran:#?}");
        ran
    }

    /// stdout as the one JSON document that it must be.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// All that was printed.
    pub(crate) fn everything(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }
}

/// The strings of an array.
#[track_caller]
pub(crate) fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap().to_owned())
        .collect()
}

/// How the claims of a summary read.
#[track_caller]
pub(crate) fn claims(summary: &Value) -> Vec<String> {
    summary["claims"]
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| claim["text"].as_str().unwrap().to_owned())
        .collect()
}

/// Asserts the format's name and that each of these keys (words) is there.
#[track_caller]
pub(crate) fn assert_format(value: &Value, format: &str, keys: &str) {
    assert_eq!(value["format"], format, "{value:#}");
    assert_keys(value, keys);
}

/// Asserts that each of these keys (words) is there.
#[track_caller]
pub(crate) fn assert_keys(value: &Value, keys: &str) {
    for key in keys.split_whitespace() {
        assert!(value.get(key).is_some(), "there is no {key} in {value:#}");
    }
}

/// A generator of numbers that look random and are the same in every run (SplitMix64).
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// A text of so many paragraphs, each of one sentence with its number.
pub(crate) fn paragraphs(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        let _ = write!(
            text,
            "The wall of room {n} was measured and found to be wet all over.\n\n"
        );
        text
    })
}

/// Many small documents, each with a fact of its own.
pub(crate) fn many(count: usize) -> Vec<(String, String)> {
    (0..count)
        .map(|n| {
            let text = format!(
                "Report number {n} was written in room {}. The water stood {} millimetres high there.\n\n\
                 The owner of flat {n} was told on the same day.\n",
                n * 7 % 50,
                n * 13 % 90
            );
            (format!("report-{n:04}.txt"), text)
        })
        .collect()
}

/// Runs a Python program on the database file, for damage that no command does.
#[track_caller]
pub(crate) fn python(program: &str, database: &Path, arguments: &[&str]) -> String {
    let output = Command::new("python3")
        .args(["-c", program])
        .arg(database)
        .args(arguments)
        .output()
        .expect("these tests need python3");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
