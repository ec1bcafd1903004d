//! Evaluation from outside: experiments are run, and their records looked at and tampered with.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod controlled_verify;
