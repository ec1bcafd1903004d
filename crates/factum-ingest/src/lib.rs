//! A file's bytes in, its text layer and layout out.
//!
//! The *text layer* is the text that everything else quotes; the *layout* says where a span of it
//! came from. [`read_document`] is the one door. It is a pure function: it reads no file, clock,
//! environment or randomness, and the same name and bytes always give the same value. Every byte is
//! taken as hostile, so readers work iteratively, in time and memory that grow with the input only.
//!
//! Nothing here knows case files, storage or models.

mod csv;
mod cue_markup;
mod cues;
mod decode;
mod detect;
mod format;
mod html;
mod html_flow;
mod html_tree;
mod json;
mod layout;
mod legacy;
mod lines;
mod location;
mod media;
mod read;
mod refusal;
mod source;
mod warning;

pub use cues::{Cue, CueTime};
pub use layout::Layout;
pub use location::{Cell, Location};
pub use media::{Media, MediaError};
pub use read::{Encoding, Limits, TextLayer, read_document};
pub use refusal::Refusal;
pub use warning::Warning;
