//! The harness from outside: fixtures, scores, gates, reports and providers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod bad_input;
mod cache;
mod fixtures;
mod gates;
mod paired;
mod providers;
mod reports;
mod scores;
mod support;
