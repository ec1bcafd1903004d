//! Pinned models: what is known by name, where its files are, and how they get there.
