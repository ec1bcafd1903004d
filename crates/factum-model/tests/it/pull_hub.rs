//! Pulling from the hub: whole or not at all, and never on trust where a digest is pinned.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use factum_model::pins::{FileDigest, PinError, PullProgress, PullTools, Pulled, Registry, State};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::fake_hub::{Answer, FakeHub};

const COMMIT: &str = "989aa7980e4cf806f80c7fef2b1adb7bc71aa306";

struct Setup {
    hub: FakeHub,
    folder: TempDir,
    weights: Vec<u8>,
}

impl Setup {
    /// A model of two files: the weights' digest is pinned, the configuration's is not.
    fn new() -> Self {
        let weights: Vec<u8> = (0..700_000_u32).map(|n| (n % 251) as u8).collect();
        let folder = tempfile::tempdir().unwrap();
        let digest = FileDigest::of(&weights);
        let list = format!(
            r#"[[model]]
            name = "tiny"
            family = "qwen2"
            licence = "MIT"
            size = 700000
            format = "safetensors"
            source.hub = {{ repository = "who/tiny", commit = "{COMMIT}" }}
            file = [{{ name = "config.json" }},
                    {{ name = "model.safetensors", sha256 = "{digest}" }}]"#
        );
        fs::write(folder.path().join("models.toml"), list).unwrap();
        let hub = FakeHub::start();
        hub.answer(&path("config.json"), Answer::Whole(b"{}".to_vec()));
        Self {
            hub,
            folder,
            weights,
        }
    }

    fn weights(&self, answer: Answer) -> &Self {
        self.hub.answer(&path("model.safetensors"), answer);
        self
    }

    fn pull_with(
        &self,
        progress: &mut dyn FnMut(PullProgress),
        cancel: &CancellationToken,
    ) -> Result<Pulled, PinError> {
        let tools = PullTools {
            hub_endpoint: Some(self.hub.url.clone()),
            hub_patience: 2,
            ..PullTools::default()
        };
        let registry = Registry::load(self.folder.path()).unwrap();
        registry.pull("tiny", &tools, "2026-01-02T03:04:05Z", progress, cancel)
    }

    fn pull(&self) -> Result<Pulled, PinError> {
        self.pull_with(&mut |_| {}, &CancellationToken::new())
    }

    fn state(&self) -> State {
        let registry = Registry::load(self.folder.path()).unwrap();
        let listed = registry.list();
        listed
            .iter()
            .find(|model| model.name == "tiny")
            .unwrap()
            .state
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("tiny")
    }
}

fn path(file: &str) -> String {
    format!("/who/tiny/resolve/{COMMIT}/{file}")
}

#[test]
fn a_model_comes_whole_and_is_not_fetched_twice() {
    let setup = Setup::new();
    setup.weights(Answer::Whole(setup.weights.clone()));
    assert_eq!(setup.state(), State::Absent);
    let mut last = None;
    let pulled = setup
        .pull_with(
            &mut |progress| last = Some(progress),
            &CancellationToken::new(),
        )
        .unwrap();
    assert!(!pulled.already);
    // What was not pinned was trusted, and this is said.
    assert_eq!(pulled.trusted, ["config.json"]);
    assert!(matches!(last, Some(PullProgress::Verifying { .. })));
    assert_eq!(setup.state(), State::Present);
    let record = fs::read_to_string(setup.home().join("model.json")).unwrap();
    assert!(record.contains("2026-01-02T03:04:05Z") && record.contains(COMMIT));
    let asked = setup.hub.asked().len();
    assert!(setup.pull().unwrap().already);
    assert_eq!(setup.hub.asked().len(), asked);
}

#[test]
fn redirects_are_followed() {
    let setup = Setup::new();
    setup.weights(Answer::Moved("/elsewhere".to_owned()));
    setup
        .hub
        .answer("/elsewhere", Answer::Whole(setup.weights.clone()));
    setup.pull().unwrap();
}

#[test]
fn a_wrong_digest_is_refused_with_both_and_nothing_is_left() {
    let setup = Setup::new();
    let mut wrong = setup.weights.clone();
    wrong[12345] ^= 1;
    setup.weights(Answer::Whole(wrong.clone()));
    let error = setup.pull().unwrap_err();
    let PinError::WrongDigest {
        file,
        expected,
        found,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(file, "model.safetensors");
    assert_eq!(expected, FileDigest::of(&setup.weights));
    assert_eq!(found, FileDigest::of(&wrong));
    assert!(!setup.home().exists());
    // The bad file is gone, so that the next pull fetches it again.
    setup.weights(Answer::Whole(setup.weights.clone()));
    setup.pull().unwrap();
}

#[test]
fn a_truncated_file_is_no_file_and_the_next_pull_goes_on_there() {
    let setup = Setup::new();
    setup.weights(Answer::Short(setup.weights.clone(), 300_000));
    let error = setup.pull().unwrap_err();
    assert!(matches!(error, PinError::Hub { .. }), "{error}");
    assert_eq!(setup.state(), State::Absent);
    setup.weights(Answer::Whole(setup.weights.clone()));
    setup.pull().unwrap();
    let (_, from) = setup.hub.asked().pop().unwrap();
    assert_eq!(from, Some(300_000));
    let fetched = fs::read(setup.home().join("model.safetensors")).unwrap();
    assert_eq!(fetched, setup.weights);
}

#[test]
fn a_truncated_file_without_a_length_is_caught_by_its_digest() {
    let setup = Setup::new();
    setup.weights(Answer::NoLength(setup.weights[..1000].to_vec()));
    assert!(matches!(setup.pull(), Err(PinError::WrongDigest { .. })));
    assert!(!setup.home().exists());
}

#[test]
fn a_server_that_goes_on_elsewhere_is_refused() {
    let setup = Setup::new();
    setup.weights(Answer::Short(setup.weights.clone(), 1000));
    setup.pull().unwrap_err();
    setup.weights(Answer::WrongRange(setup.weights.clone()));
    assert!(matches!(setup.pull(), Err(PinError::Hub { .. })));
    // One that does not know ranges gives all of it.
    setup.weights(Answer::NoLength(setup.weights.clone()));
    setup.pull().unwrap();
}

#[test]
fn a_missing_file_is_named_without_what_the_server_wrote() {
    let setup = Setup::new();
    setup.weights(Answer::Status(404));
    let error = setup.pull().unwrap_err().to_string();
    assert!(
        error.contains("model.safetensors") && error.contains("404"),
        "{error}"
    );
    assert!(!error.contains("secret"));
    assert!(!setup.home().exists());
}

#[test]
fn a_silent_server_is_given_up() {
    let setup = Setup::new();
    setup.weights(Answer::Silent(setup.weights[..1000].to_vec()));
    let since = Instant::now();
    assert!(matches!(setup.pull(), Err(PinError::Hub { .. })));
    assert!(since.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_cancelled_pull_stops_at_once_and_keeps_what_came() {
    let setup = Setup::new();
    setup.weights(Answer::Silent(setup.weights[..1000].to_vec()));
    let cancel = CancellationToken::new();
    let ours = cancel.clone();
    let mut watch = move |progress| {
        if matches!(progress, PullProgress::Fetching { done: 1000, .. }) {
            ours.cancel();
        }
    };
    let since = Instant::now();
    let ended = setup.pull_with(&mut watch, &cancel);
    assert!(matches!(ended, Err(PinError::Cancelled)));
    assert!(since.elapsed() < Duration::from_secs(2));
    setup.weights(Answer::Whole(setup.weights.clone()));
    setup.pull().unwrap();
    assert_eq!(setup.hub.asked().pop().unwrap().1, Some(1000));
}

#[test]
fn an_unreachable_hub_is_an_error() {
    let setup = Setup::new();
    let tools = PullTools {
        hub_endpoint: Some("http://127.0.0.1:9".to_owned()),
        ..PullTools::default()
    };
    let registry = Registry::load(setup.folder.path()).unwrap();
    let ended = registry.pull("tiny", &tools, "", &mut |_| {}, &CancellationToken::new());
    assert!(matches!(ended, Err(PinError::Hub { .. })));
}

#[test]
fn a_file_that_rots_is_refused_and_can_be_pulled_again() {
    let setup = Setup::new();
    setup.weights(Answer::Whole(setup.weights.clone()));
    setup.pull().unwrap();
    let file = setup.home().join("model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    bytes[5] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let registry = Registry::load(setup.folder.path()).unwrap();
    let resolved = registry.resolve("tiny", &CancellationToken::new());
    assert!(matches!(resolved, Err(PinError::WrongDigest { .. })));
    fs::write(&file, b"short").unwrap();
    assert_eq!(setup.state(), State::Damaged);
    let resolved = registry.resolve("tiny", &CancellationToken::new());
    assert!(matches!(resolved, Err(PinError::Damaged { .. })));
    assert!(!setup.pull().unwrap().already);
    assert_eq!(setup.state(), State::Present);
    assert_eq!(fs::read(&file).unwrap(), setup.weights);
    let left: Vec<_> = fs::read_dir(setup.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".fetch"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
