//! The use cases on a real database: which nodes ran, and whether incremental equals from scratch.

mod random_events;
mod replay;
mod support;
mod work;
