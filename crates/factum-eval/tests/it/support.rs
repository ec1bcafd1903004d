//! Fixtures and runs for tests.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use factum_eval::fixture::BadFixture;
use factum_eval::outcome::{Outcome, Output};
use factum_eval::provider::{Provider, Stub};
use factum_eval::run::{Choice, Loaded, Progress, RunOptions, files, load, run};
use factum_eval::{Fixture, Report, Summary};

pub(crate) fn read(name: &str, text: &str) -> Result<Fixture, BadFixture> {
    Fixture::from_bytes(Path::new(name), text.as_bytes())
}

/// A fixture of two lines, with more keys behind the source.
pub(crate) fn lines(more: &str) -> Fixture {
    let text = format!(
        r#"{{"source": {{"lines": [
            {{"id": "l1", "speaker": "Ann", "start": 0, "end": 9, "text": "I open the gate of the mill."}},
            {{"id": "l2", "speaker": "Bo", "start": 10, "end": 19, "text": "I count the sacks of flour."}}
        ]}}, {more}}}"#
    );
    read("two-lines.json", &text).unwrap()
}

pub(crate) fn outcome(fixture: &Fixture, summary: &str) -> Outcome {
    let summary = Summary::from_json(summary.as_bytes()).unwrap();
    let output = Output {
        summary: Ok(summary),
        cached: false,
        seconds: 0.0,
    };
    Outcome::of(fixture, 1, output, false)
}

/// The fixtures of the repository.
pub(crate) fn ours() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

pub(crate) fn loaded(paths: &[PathBuf]) -> Loaded {
    load(&files(paths).unwrap(), &Choice::default(), 2).unwrap()
}

pub(crate) fn options() -> RunOptions {
    RunOptions {
        jobs: 2,
        repeats: 1,
        seed: 1,
        gates: Vec::new(),
        baseline: None,
        allow_unmeasured: false,
        check_expected: true,
        cache: None,
        profile: None,
        commit: Some("abc".to_owned()),
        at: 0,
    }
}

/// Keeps warnings, never stops.
#[derive(Default)]
pub(crate) struct Quiet(pub(crate) Mutex<Vec<String>>);

impl Progress for Quiet {
    fn progress(&self, _: usize, _: usize) {}

    fn stop(&self) -> bool {
        false
    }

    fn warn(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

pub(crate) fn run_by(loaded: &Loaded, provider: &dyn Provider, options: &RunOptions) -> Report {
    run(loaded, provider, options, &Quiet::default()).unwrap()
}

/// A report of the repository's fixtures with their stubs.
pub(crate) fn stub_report() -> Report {
    run_by(&loaded(&[ours()]), &Stub, &options())
}
