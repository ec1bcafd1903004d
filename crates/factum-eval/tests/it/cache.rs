//! The cache: outputs are reused by all that could change them, and a run that was stopped goes on.

use std::sync::atomic::{AtomicU32, Ordering};

use factum_eval::cache::Cache;
use factum_eval::provider::{Provider, ProviderError};
use factum_eval::run::Loaded;
use factum_eval::{Fixture, Summary};
use serde_json::{Value, json};

use crate::support::{lines, options, run_by};

/// Counts its calls; fails while `failing`.
struct Counting {
    calls: AtomicU32,
    identity: Value,
    failing: bool,
}

impl Counting {
    fn new(identity: &str) -> Self {
        Self {
            calls: AtomicU32::new(0),
            identity: json!({"kind": "counting", "model": identity}),
            failing: false,
        }
    }
}

impl Provider for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn identity(&self) -> Value {
        self.identity.clone()
    }

    fn is_costly(&self) -> bool {
        true
    }

    fn summarise(&self, _: &Fixture, repeat: u32) -> Result<Summary, ProviderError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if self.failing && call > 0 {
            return Err(ProviderError::Engine("down".to_owned()));
        }
        Ok(Summary {
            text: format!("Summary {repeat}."),
            beats: None,
        })
    }
}

fn two() -> Loaded {
    let one = lines(r#""absent": ["x"]"#);
    let mut other = lines(r#""absent": ["x"]"#);
    "other".clone_into(&mut other.name);
    Loaded {
        fixtures: vec![one, other],
        bad: Vec::new(),
    }
}

#[test]
fn outputs_are_reused_and_hits_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options();
    options.cache = Some(Cache::new(folder.path().join("c"), false));
    options.repeats = 3;
    let provider = Counting::new("m");
    let first = run_by(&two(), &provider, &options);
    assert_eq!(
        provider.calls.load(Ordering::Relaxed),
        6,
        "each repeat is its own"
    );
    let cache = first.cache.unwrap();
    assert_eq!((cache.hits, cache.misses), (0, 6));
    let second = run_by(&two(), &provider, &options);
    assert_eq!(provider.calls.load(Ordering::Relaxed), 6);
    let cache = second.cache.unwrap();
    assert_eq!((cache.hits, cache.misses), (6, 0));
    assert!(second.fixtures.iter().all(|one| one.cached));
    assert_eq!(second.fixtures[1].summary, first.fixtures[1].summary);
    options.cache = Some(Cache::new(folder.path().join("c"), true));
    run_by(&two(), &provider, &options);
    assert_eq!(
        provider.calls.load(Ordering::Relaxed),
        12,
        "refresh asks again"
    );
}

#[test]
fn whatever_could_change_an_output_is_in_its_key() {
    let fixture = lines(r#""absent": ["x"]"#);
    let provider = Counting::new("m");
    let base = Cache::key(&fixture, &provider, 1).unwrap();
    assert_eq!(Cache::key(&fixture, &provider, 1).unwrap(), base);
    assert_ne!(Cache::key(&fixture, &provider, 2).unwrap(), base);
    assert_ne!(Cache::key(&fixture, &Counting::new("n"), 1).unwrap(), base);
    // What the fixture expects is not given to the provider, so it is not in the key.
    let expects = lines(r#""absent": ["x", "y"]"#);
    assert_eq!(Cache::key(&expects, &provider, 1).unwrap(), base);
    let text = |version: &str| {
        format!(
            r#"{{"name": "n", "source": {{"documents": [{{"id": "a", "version": 1, "text": "{version}"}},
            {{"id": "a", "version": 2, "text": "Now."}}]}}, "absent": ["x"]}}"#
        )
    };
    let of = |version: &str| {
        let fixture = crate::support::read("n.json", &text(version)).unwrap();
        Cache::key(&fixture, &provider, 1).unwrap()
    };
    assert_ne!(
        of("Then."),
        of("Before."),
        "an old version is part of what the product is given"
    );
}

#[test]
fn a_run_that_broke_off_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options();
    options.jobs = 1;
    options.cache = Some(Cache::new(folder.path().to_owned(), false));
    let mut provider = Counting::new("m");
    provider.failing = true;
    let broken = run_by(&two(), &provider, &options);
    assert_eq!(broken.exit_code, 1);
    assert_eq!(
        broken
            .fixtures
            .iter()
            .filter(|one| one.errors.is_empty())
            .count(),
        1
    );
    let whole = Counting::new("m");
    let report = run_by(&two(), &whole, &options);
    assert_eq!(
        whole.calls.load(Ordering::Relaxed),
        1,
        "an error is not kept, an output is"
    );
    assert_eq!(report.exit_code, 0);
}

#[test]
fn a_damaged_file_is_a_miss() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().to_owned(), false);
    let summary = Summary {
        text: "A.".to_owned(),
        beats: None,
    };
    cache.put("abcd", &summary, 1.0).unwrap();
    assert_eq!(cache.get("abcd"), Some((summary, 1.0)));
    let path = folder.path().join("ab").join("abcd.json");
    std::fs::copy(&path, folder.path().join("ab").join("abce.json")).unwrap();
    assert_eq!(cache.get("abce"), None, "a file is not another key's");
    std::fs::write(path, "{").unwrap();
    assert_eq!(cache.get("abcd"), None);
}
