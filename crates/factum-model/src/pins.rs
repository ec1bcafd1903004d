//! Pinned models: what is known by name, where its files are, and how they get there.
//!
//! A model's files live in `<folder>/<name>/`, with a record of what was fetched, from where and with
//! which digests. The folder is an argument everywhere; [`models_folder`] says which one is meant. Nothing here
//! knows what is in the files: that is for [`weights`](crate::weights) to say.
//!
//! A digest is pinned where it is known. Where it is not, the source's commit is, and the first download is
//! trusted: its digests are recorded, and from then on a file that differs is refused.

mod catalogue;
mod digests;
mod error;
mod folder;
#[cfg(feature = "hub")]
mod hub;
mod prepare;
mod pull;
mod pypi;
mod record;
mod registry;

pub use catalogue::{Catalogue, Format, PinnedFile, PinnedModel, Source};
pub(crate) use digests::write_atomically;
pub use digests::{DigestedFile, FileBytes, FileDigest, Stamp, digest_file};
pub use error::{BadCatalogue, PinError};
pub use folder::{NoHome, models_folder};
pub use prepare::{ConvertedFrom, KnownModel, PrepareError, PreparedModel};
pub use pull::{PullProgress, PullTools, Pulled};
pub use record::{Record, RecordedFile};
pub use registry::{ListedModel, Registry, ResolvedModel, State};
