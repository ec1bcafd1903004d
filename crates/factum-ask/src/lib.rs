//! Questions over case files, and answers that declare what they rest on.
//!
//! [`ledger`], [`policy`], [`compaction`], [`budget`], [`message`], [`extractive`] and [`answer`] are pure: they
//! decide, and do nothing. [`run`] does: it searches, asks models and writes the record, through the engine.
//! The crate knows nothing of terminals or HTTP pages: the command line calls it and shows what it returns.

mod access;
pub mod actions;
pub mod answer;
pub mod budget;
pub mod compaction;
mod conversation;
mod error;
pub mod extractive;
pub mod ledger;
pub mod message;
pub mod policy;
mod progress;
mod reading;
pub mod run;
pub mod tools;
mod wire;

pub use actions::ActionModel;
pub use answer::Answer;
pub use conversation::{Beginning, Conversation};
pub use error::AskError;
pub use reading::{AnswerStanding, Exchange};
pub use run::{Answerer, Asking, Embeddings};
