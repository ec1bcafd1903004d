//! Hostile bytes for reading JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| factum_fuzz::read("a.json", bytes));
