//! Hostile bytes for reading bytes to text, with every guess about their encoding.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| factum_fuzz::read("a.txt", bytes));
