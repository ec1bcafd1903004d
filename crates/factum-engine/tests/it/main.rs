//! The use cases on a real database: which nodes ran, and whether incremental equals from scratch.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]

mod hidden_meanwhile;
mod models;
mod random_events;
mod replay;
mod support;
mod work;
