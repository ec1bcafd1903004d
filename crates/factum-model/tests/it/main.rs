//! Integration tests, one module a topic.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod check_gguf;
mod check_safetensors;
mod convert;
#[cfg(feature = "local")]
mod converted_tokenizer;
#[cfg(feature = "hub")]
mod fake_hub;
#[cfg(feature = "hub")]
mod pull_hub;
mod pull_wheel;
#[cfg(feature = "local")]
mod reference;
mod registry;
mod tiny_model;
