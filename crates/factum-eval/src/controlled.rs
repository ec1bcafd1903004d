//! The controlled experiment: a corpus whose facts are known, built incrementally and in full by any generator.
//!
//! - [`corpus`]: the case files as read from a folder; [`generate`] writes them, [`wording`] says what they say.
//! - [`gold`]: the facts, kept apart from the inputs.
//! - [`protocol`]: which builds are made, in which order.
//! - [`folder`]: how a run's records lie in their folder.
//! - [`run`]: makes the builds.
//! - [`measure`]: what the records say; [`report`]: the tables; [`page`]: the tables as a page.
//!
//! The experiment measures the product by what it exports. It knows nothing of how nodes are made.

pub mod corpus;
mod facts;
pub mod folder;
pub mod generate;
pub mod gold;
pub mod markdown;
pub mod measure;
pub mod page;
mod plots;
pub mod protocol;
pub mod published;
pub mod report;
pub mod review;
pub mod run;
pub mod wording;

pub use facts::{FIELDS, Fact, fact_of_line};
