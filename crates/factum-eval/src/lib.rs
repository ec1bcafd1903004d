//! Evaluation: what a summary says and must not say, and the controlled experiment.
//!
//! The crate knows nothing of terminals or HTTP: the command line calls it and shows what it returns.

pub mod audit;
pub mod bootstrap;
pub mod cache;
pub mod controlled;
pub mod controlled_verify;
pub mod fixture;
pub mod folded;
pub mod gates;
pub mod located;
pub mod measured;
pub mod outcome;
pub mod paired;
pub mod provider;
pub mod reading;
pub mod report;
pub mod run;
pub mod score_name;
pub mod scorers;
pub mod source;
pub mod study;
pub mod summary;

pub use fixture::{BadFixture, Fixture};
pub use gates::Verdict;
pub use report::Report;
pub use score_name::ScoreName;
pub use summary::Summary;
