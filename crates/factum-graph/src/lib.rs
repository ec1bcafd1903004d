//! The summary graph: how documents become leaves, leaves become reductions and a root, what each
//! node's key covers, which nodes a change touches, and how anyone can check a run.
//!
//! Pure and synchronous. It knows nothing of prompts, storage or async: where an operation needs a page
//! of the kept tree that is not at hand, it says which ([`pages::Missing`]), and the caller fetches it
//! and asks again.

pub mod advance;
pub mod boundaries;
pub mod compare;
pub mod difference;
pub mod pages;
pub mod plan;
pub mod run_file;
pub mod segments;
pub mod spec;
pub mod verify;

pub use advance::{Change, advance};
pub use difference::{Difference, difference};
pub use pages::{Entry, LeafEntry, Missing, NodeEntry, Page, PageCache, Role};
pub use plan::{DocumentInput, Plan, Planner};
pub use segments::{Segment, cut_segments};
pub use spec::{SpecContext, SpecPart};
