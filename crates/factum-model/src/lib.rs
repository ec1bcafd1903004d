//! Language models behind one trait: messages in, whole generations out, and nothing about case files.
//!
//! A [`Generator`] states its [`ModelIdentity`], which enters node keys and generation digests: two
//! generators with one identity must give one answer to one request, as far as their engine can.
//! An [`Embedder`] makes vectors of texts, under the same rule.
//! Decoding may be bound by a [`Constraint`], so that an answer can't cite what it was not given.

pub mod canned;
pub mod chat;
pub mod constraint;
pub mod embedder;
pub mod error;
pub mod gate;
pub mod generation;
pub mod generator;
pub mod grounded;
pub mod identity;
#[cfg(feature = "local")]
pub mod local;
pub mod local_identity;
pub mod openai;
pub mod pins;
pub mod record;
pub mod replay;
pub mod request;
pub mod weights;

pub use constraint::{Constraint, FieldShape, FieldValue, GroundedSchema, Source};
pub use embedder::Embedder;
pub use error::ModelError;
pub use gate::{Gate, Knock, Knocks};
pub use generation::{Generation, StopReason};
pub use generator::{
    BoxFuture, Capabilities, ConstraintKind, Control, GenerationSink, Generator, TokenCount,
};
pub use identity::ModelIdentity;
pub use record::RecordedGeneration;
pub use request::{GenerationDigest, GenerationRequest, Message, Role};
