//! The trait that every source of vectors implements: a text in, its meaning as a point on the unit sphere out.

use std::fmt::Debug;

use crate::error::ModelError;
use crate::generator::{BoxFuture, Control};
use crate::identity::ModelIdentity;

/// What makes vectors of texts.
pub trait Embedder: Send + Sync + Debug {
    /// All of it that can change a vector. Two embedders of one identity give one text the same vector, as far as
    /// their engine can.
    fn identity(&self) -> &ModelIdentity;

    /// Numbers of a vector.
    fn dimensions(&self) -> usize;

    /// A vector of unit length for each text, in their order. What is made together changes no vector. A text that is
    /// longer than what the model reads is read up to there.
    ///
    /// A cancelled call ends soon, with [`ModelError::Cancelled`] and no vector.
    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        control: &'a Control,
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>>;
}
