//! The kept tree against the naive oracle: a plan from scratch. Run files, their comparison, and the
//! independent verification against runs made by the planner.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod compare;
mod fixture;
mod kept_tree;
mod run_file;
mod verify;
mod verify_history;
