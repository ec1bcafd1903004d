//! Integration tests, one module a topic.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod canned;
mod check_gguf;
mod check_safetensors;
mod check_sentence;
mod collect;
mod convert;
#[cfg(feature = "local")]
mod converted_sentence;
#[cfg(feature = "local")]
mod converted_tokenizer;
#[cfg(feature = "hub")]
mod fake_hub;
mod fake_server;
mod grounded;
#[cfg(feature = "local")]
mod local;
mod openai_answers;
mod openai_check;
mod openai_faults;
mod openai_real;
mod openai_tls;
#[cfg(feature = "hub")]
mod pull_hub;
mod pull_wheel;
#[cfg(feature = "local")]
mod reference;
mod registry;
mod replay;
#[cfg(feature = "local")]
mod sentence_reference;
mod tiny_model;
mod tiny_sentence;
