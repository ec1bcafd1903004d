//! The domain of case files: documents and their events, what a principal may see at an event, exact
//! evidence, claims and their schemas, and the checks that say whether a claim is supported.
//!
//! Pure and synchronous. It knows nothing of models, prompts, storage, clocks or files.

pub mod claim;
pub mod event;
pub mod evidence;
mod model_settings;
pub mod passages;
pub mod profile;
mod profile_error;
mod rule;
pub mod slot;
pub mod snapshot;
pub mod support;
pub mod terms;

pub use claim::{Claim, ClaimFault, NodeResult, NodeStatus};
pub use event::{Event, EventKind};
pub use evidence::{Evidence, EvidenceFault, EvidenceId};
pub use profile::{Profile, ProfileError};
pub use slot::Slot;
pub use snapshot::{SlotState, Snapshot};
pub use support::{Support, Verdict};
