//! The use cases: publish, withdraw, grant, build, serve, why, diff, compare, verify.
//!
//! The engine brings the pure crates and the store together. It knows nothing of terminals or HTTP:
//! those call it and show what it returns. The clock comes in from outside.

pub mod answer;
pub mod as_of;
mod asking;
pub mod build;
mod build_report;
pub mod claim_diff;
pub mod conversations;
mod early_cutoff;
pub mod error;
pub mod export;
pub mod extract;
mod fusion;
mod hidden;
pub mod history;
mod keeping;
pub mod ledger;
mod permission;
pub mod places;
pub(crate) mod planning;
mod profile_shelf;
pub mod prompting;
pub mod prov;
pub mod publish;
pub mod retrieve;
pub mod rights;
pub mod scale;
pub mod searching;
pub mod serve;
pub mod status;
pub mod sync;
mod text_cache;
mod todo;
pub mod transformation;
mod vectors;
pub mod verify;
mod verify_stored;
pub mod why;
pub mod workspace;

pub use error::{EngineError, ErrorKind};
pub use workspace::{OWNER, Workspace};
