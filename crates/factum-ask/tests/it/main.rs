//! What the crate does, one module a topic.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod asking;
mod changes;
mod citing;
mod compaction;
mod desk;
mod documented;
mod embedder;
mod interleavings;
mod ledger;
mod meaning;
mod policy;
mod qmsum;
#[cfg(feature = "local")]
mod qmsum_meaning;
mod room;
mod search;
mod server;
