//! The vocabulary every other crate shares: ids, canonical JSON, digests and code-point spans.
//!
//! Nothing here does I/O, is asynchronous, or knows what a case file is for.

pub mod canonical;
pub mod digest;
pub mod ids;
pub mod span;

pub use canonical::{canonical_json, write_json_string};
pub use digest::{
    AccessFingerprint, BodyDigest, ChainDigest, Digest, NodeKey, SpecPartDigest, TextDigest, sha256,
};
pub use ids::{CaseId, DocumentId, IdError, PrincipalId};
pub use span::{CodePointIndex, Span, SpanError, slice_code_points};
