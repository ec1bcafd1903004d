//! What a build is asked for, what it tells while it runs, and what it reports.

use std::sync::atomic::{AtomicBool, Ordering};

use factum_base::NodeKey;
use factum_casefile::NodeStatus;
use serde::{Deserialize, Serialize};

use crate::transformation::Generator;

/// How a build is wanted.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Reuse nothing.
    pub full: bool,
    /// What makes the claims.
    pub generator: Generator,
}

/// Someone who watches a build and may stop it.
pub trait Watcher: Send + Sync {
    /// So many of so many nodes are made.
    fn progress(&self, done: u64, all: u64);
    /// A model wrote so many more tokens.
    fn tokens(&self, new: u64) {
        let _ = new;
    }
    /// The build should stop at the next safe point.
    fn stop(&self) -> bool;
}

/// Watches nothing, stops never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;
impl Watcher for Unwatched {
    fn progress(&self, _: u64, _: u64) {}
    fn stop(&self) -> bool {
        false
    }
}

/// A flag that stops a build.
#[derive(Debug, Default)]
pub struct StopFlag(AtomicBool);
impl StopFlag {
    /// Asks for a stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// A stop was asked for.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a build counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Nodes of the tree.
    pub nodes: u64,
    /// Made in this run.
    pub recomputed: u64,
    /// Taken from earlier runs.
    pub reused: u64,
    /// Answers asked of a model.
    pub model_calls: u64,
    /// Recorded model answers used again.
    pub generations_reused: u64,
    /// Tokens that models wrote.
    pub new_tokens: u64,
}

/// What a build found out of date.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Invalidation {
    /// Names of the nodes whose keys the previous tree did not have. Left out above 1,000.
    pub nodes: Vec<String>,
    /// How many they are.
    pub node_count: u64,
    /// The root before.
    pub previous_root_key: Option<NodeKey>,
    /// The root now.
    pub current_root_key: Option<NodeKey>,
    /// The previous root's node status.
    pub previous_status: Option<NodeStatus>,
    /// How asking for the old root was refused; absent where it was still current.
    pub serve_refusal: Option<serde_json::Value>,
}

/// A finished build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuildReport {
    /// The run.
    pub run_id: String,
    /// The root's status.
    pub status: NodeStatus,
    /// The root's key.
    pub root: NodeKey,
    /// The snapshot's event.
    pub event: u64,
    /// What was made and what reused.
    pub counts: Counts,
    /// What was out of date.
    pub invalidation: Invalidation,
    /// How long planning took, in seconds.
    pub plan_seconds: f64,
    /// How long all took, in seconds.
    pub seconds: f64,
}
