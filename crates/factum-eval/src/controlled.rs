//! The controlled experiment: a corpus with known facts, built incrementally and in full by any generator.
