//! Evaluation from outside: fixtures, scores, gates, reports and providers; experiments, and their records tampered with.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod bad_input;
mod cache;
mod controlled_verify;
mod fixtures;
mod gates;
mod paired;
mod providers;
mod reports;
mod scores;
mod support;
