//! Outputs from a file, for tests and for trying a pipeline without a model.
