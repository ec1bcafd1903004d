//! Evaluation: what a summary says and must not say, and the controlled experiment.
//!
//! The crate knows nothing of terminals or HTTP: the command line calls it and shows what it returns.

pub mod audit;
pub mod controlled;
pub mod controlled_verify;
