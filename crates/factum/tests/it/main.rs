//! The command line from outside: every test makes a workspace of its own, runs the program in it, and
//! looks at nothing but exit codes, stdout, stderr and, where damage is done, the database file.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod access;
mod arrows;
mod asking;
mod bad_input;
mod crash;
mod damage;
mod eval;
mod experiment;
mod experiment_verify;
mod journey;
mod known_faults;
#[cfg(feature = "local")]
mod local_model;
mod models;
mod prov;
mod run_file;
mod server;
mod support;
