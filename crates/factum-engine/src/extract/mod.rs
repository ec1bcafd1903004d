//! Extraction: claims without a model.
//!
//! A leaf's claims are what the profile's rules match, or the most salient sentences of its segment;
//! each is verbatim and cites its own characters. A reduction folds its children's claims together
//! and, where the profile sets a limit, chooses: every document keeps its best claim while they fit,
//! then the next best of each, and so on. Where there are more documents than places, the claims most
//! central among all go first.

pub mod centroid;
mod leaf;
mod reduction;
pub mod salience;
pub mod sentences;

pub use leaf::{LeafInput, extract_leaf};
pub use reduction::{chosen_claims, reduce, status_over};
pub use sentences::{sentence_bounds, sentences};

pub(crate) use leaf::keep;

/// Version of the methods in this module. It is part of every key.
pub const EXTRACTION_VERSION: u32 = 1;
