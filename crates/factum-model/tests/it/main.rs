//! Integration tests, one module a topic.

mod check_gguf;
mod check_safetensors;
mod convert;
#[cfg(feature = "local")]
mod converted_tokenizer;
mod fake_hub;
mod pull_hub;
mod pull_wheel;
#[cfg(feature = "local")]
mod reference;
mod registry;
mod tiny_model;
