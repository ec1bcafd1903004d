//! Recorded generations as a generator: the same inputs get the answers that were recorded for them.
