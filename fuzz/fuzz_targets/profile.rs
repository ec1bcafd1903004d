//! Hostile TOML for reading profiles; a profile that loads must be usable.
#![no_main]

use factum_casefile::Profile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let found = Profile::load("mine", &|name| (name == "mine").then(|| text.to_owned()));
    if let Ok(profile) = found {
        for rule in &profile.rules {
            for place in rule.matches("Date of loss: 3 March 2026\r\n日本: 水\r\n") {
                let _ = profile.read(&place.fields);
            }
        }
        // What was read can be written and is the same profile.
        assert!(serde_json::to_string(&profile).is_ok());
    }
});
