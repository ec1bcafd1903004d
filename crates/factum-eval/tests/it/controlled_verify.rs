//! The independent check of an experiment's records: honest records are clean, and tampering is found.

mod clean;
mod experiments;
mod hostile;
mod independence;
mod tampering;
