//! Questions over case files, and answers that declare what they rest on.
//!
//! [`ledger`], [`policy`], [`compaction`], [`budget`] and [`message`] are pure: they decide, and do nothing.
//! The crate knows nothing of terminals or HTTP pages: the command line calls it and shows what it returns.

pub mod budget;
pub mod compaction;
pub mod ledger;
pub mod message;
pub mod policy;
