//! Hostile bytes for reading run files, and hostile JSON for verifying them.
#![no_main]

use factum_graph::run_file::{parse_run_file, parse_strict_json};
use factum_graph::verify::{Sources, verify_run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let run = parse_run_file(bytes);
    let Ok(value) = parse_strict_json(bytes) else {
        assert!(run.is_err(), "no run file is less than strict JSON");
        return;
    };
    if let Ok(run) = run {
        let written = serde_json::to_vec(&run).expect("a run that was read can be written");
        assert!(
            parse_run_file(&written).is_ok(),
            "what was written can be read"
        );
    }
    let text = |_: &str, _: u32| Some("水 text".to_owned());
    let _ = verify_run(
        &value,
        &Sources {
            owner: "local",
            events: None,
            text: &text,
        },
    );
});
