//! GGUF files: the header, read strictly and within bounds, and a writer for what the converter makes.
//!
//! There are crates for this, but none that bounds what a hostile header makes it allocate, says what is
//! wrong in types, and stays small. The format is one page long.

mod kind;
mod read;
mod value;
mod write;

pub use kind::TensorKind;
pub use read::{GgufError, Header, MAX_HEADER_BYTES, TensorInfo, read_header};
pub use value::{Array, Value};
pub(crate) use write::{HeaderWriter, TensorPlan};

/// Where tensor data is aligned unless the file says otherwise.
pub(crate) const DEFAULT_ALIGNMENT: u64 = 32;
/// The version that is read and written.
pub(crate) const VERSION: u32 = 3;
