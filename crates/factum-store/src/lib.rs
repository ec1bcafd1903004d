//! The repository: everything Factum keeps, over sqlx's `Any` driver.
//!
//! SQLite is the embedded default (WAL, synchronous FULL); the SQL is the same for PostgreSQL, only the
//! DDL differs. All reads and writes go through a [`Tx`], so that a decision and what it is based on
//! come from one transaction; serving's one question is a statement of its own. Records carry digests that are checked when they are read.
//!
//! It knows nothing of models, prompts, files or what a summary says.

mod access;
mod cases;
mod conversations;
mod documents;
mod error;
mod generations;
mod pages;
mod repository;
mod rows;
mod runs;
mod search;
mod serving;
mod texts;
mod vectors;

pub use access::{CaseAccess, DocAccess, Effective};
pub use cases::CaseRow;
pub use conversations::{ConversationRow, StoredConversation};
pub use documents::{DocumentRow, NewVersion, PrincipalDocument, VersionRow};
pub use error::StoreError;
pub use generations::StoredGeneration;
pub use pages::StoredResult;
pub use repository::{Repository, SCHEMA_VERSION, Sizes, Tx};
pub use runs::{Built, Head, NewRun, RunRow};
pub use search::{Findable, FindableText, FoundPassage, IndexedText};
pub use serving::ServingRow;
pub use texts::BlobKind;
pub use vectors::{EmbedderDigest, PassageDigest};
