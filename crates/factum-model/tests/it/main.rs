//! Tests of the crate from outside.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod grounded;
#[cfg(feature = "local")]
mod local;
