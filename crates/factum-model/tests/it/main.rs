//! Integration tests, one module a topic.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod canned;
mod collect;
mod fake_server;
mod grounded;
#[cfg(feature = "local")]
mod local;
mod openai_answers;
mod openai_check;
mod openai_faults;
mod openai_real;
mod openai_tls;
mod replay;
