//! Hostile bytes as a fixture, in JSON and YAML, and as a provider's output; what is read can be scored.
#![no_main]

use std::path::Path;

use factum_eval::{Fixture, Summary, scorers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let summary = Summary::from_json(bytes);
    for name in ["f.json", "f.yaml"] {
        let Ok(fixture) = Fixture::from_bytes(Path::new(name), bytes) else {
            continue;
        };
        if let Some(stub) = &fixture.stub {
            let _ = scorers::score(&fixture, stub);
        }
        if let Ok(summary) = &summary {
            let _ = scorers::score(&fixture, summary);
        }
    }
});
