//! Tests of the crate from outside.

mod grounded;
#[cfg(feature = "local")]
mod local;
