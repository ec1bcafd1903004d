//! How long a prompt is: by the server's own tokenize route, by its model's tokenizer file, or by a
//! bound that no byte-level tokenizer exceeds.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::transport::Fault;
use crate::request::Message;

/// How prompts are counted. Fixed by configuration, and part of the identity, since it decides which
/// prompts are refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TokenCounting {
    /// [`upper_bound`]. Never exact.
    #[default]
    Bound,
    /// llama.cpp's `/apply-template` and `/tokenize`, beside `/v1`. Exact.
    LlamaCpp,
    /// vLLM's `/tokenize` of messages, beside `/v1`. Exact.
    Vllm,
    /// A `tokenizer.json`, without the chat template: so many more tokens are counted for each message and
    /// for the prompt. Not exact. Needs the feature `tokenizer-file`.
    TokenizerFile {
        /// The file; its digest is part of the identity.
        path: PathBuf,
        /// Tokens that the template puts around each message.
        per_message: u32,
        /// Tokens that the template adds once.
        per_prompt: u32,
    },
}

/// Tokens that [`upper_bound`] allows the template around each message.
pub const BOUND_PER_MESSAGE: u32 = 16;
/// Tokens that [`upper_bound`] allows the template once: a default system message, a date line.
pub const BOUND_PER_PROMPT: u32 = 64;

/// The most tokens that messages can have: one for each UTF-8 byte, and an allowance for the template.
///
/// A byte-level BPE or a SentencePiece model with byte fallback makes no token of less than a byte. The
/// bound does not hold where a tokenizer first normalises a text into a longer one (NFKC does so to some
/// ligatures), or where a template adds more than the allowance; English text has about four bytes a
/// token, so that these stay within it all the same.
pub fn upper_bound(messages: &[Message]) -> u32 {
    let per_message = |message: &Message| {
        let bytes = u32::try_from(message.content.len()).unwrap_or(u32::MAX);
        bytes.saturating_add(BOUND_PER_MESSAGE)
    };
    messages
        .iter()
        .map(per_message)
        .fold(BOUND_PER_PROMPT, u32::saturating_add)
}

#[derive(Deserialize)]
struct Applied {
    prompt: String,
}

#[derive(Deserialize)]
struct Tokenized {
    count: Option<u32>,
    tokens: Option<Vec<Value>>,
}

/// What llama.cpp puts into its template.
pub(super) fn template_body(messages: &[Message]) -> Value {
    json!({"messages": messages})
}

/// The prompt that llama.cpp made of messages.
pub(super) fn read_template(reply: &[u8]) -> Result<String, Fault> {
    serde_json::from_slice::<Applied>(reply)
        .map(|applied| applied.prompt)
        .map_err(|error| Fault::Broken(format!("not a prompt: {error}")))
}

/// What llama.cpp counts: as its own chat route does, with the template's special tokens read as such.
pub(super) fn tokenize_prompt_body(prompt: &str) -> Value {
    json!({"content": prompt, "add_special": true, "parse_special": true})
}

/// What vLLM counts.
pub(super) fn tokenize_messages_body(model: &str, messages: &[Message]) -> Value {
    json!({"model": model, "messages": messages, "add_generation_prompt": true})
}

/// The count in a tokenize route's reply.
pub(super) fn read_count(reply: &[u8]) -> Result<u32, Fault> {
    let reply: Tokenized = serde_json::from_slice(reply)
        .map_err(|error| Fault::Broken(format!("not a count of tokens: {error}")))?;
    let listed = reply.tokens.and_then(|list| u32::try_from(list.len()).ok());
    reply
        .count
        .or(listed)
        .ok_or_else(|| Fault::Broken("not a count of tokens: neither count nor tokens".to_owned()))
}

#[cfg(feature = "tokenizer-file")]
pub(super) use with_file::FileCounter;

#[cfg(feature = "tokenizer-file")]
mod with_file {
    use std::fmt;

    use tokenizers::Tokenizer;

    use crate::request::Message;

    /// A tokenizer from its file.
    pub(in crate::openai) struct FileCounter {
        tokenizer: Tokenizer,
        per_message: u32,
        per_prompt: u32,
    }

    impl FileCounter {
        pub(in crate::openai) fn new(
            bytes: &[u8],
            per_message: u32,
            per_prompt: u32,
        ) -> Result<Self, String> {
            let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| error.to_string())?;
            // A file may ask for cut or padded texts, which would be counted wrongly.
            tokenizer
                .with_truncation(None)
                .map_err(|error| error.to_string())?;
            tokenizer.with_padding(None);
            Ok(Self {
                tokenizer,
                per_message,
                per_prompt,
            })
        }

        pub(in crate::openai) fn count(&self, messages: &[Message]) -> Result<u32, String> {
            let mut tokens = self.per_prompt;
            for message in messages {
                let encoding = self
                    .tokenizer
                    .encode_fast(message.content.as_str(), false)
                    .map_err(|error| error.to_string())?;
                let length = u32::try_from(encoding.len()).unwrap_or(u32::MAX);
                tokens = tokens
                    .saturating_add(length)
                    .saturating_add(self.per_message);
            }
            Ok(tokens)
        }
    }

    impl fmt::Debug for FileCounter {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("FileCounter").finish_non_exhaustive()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Role;

    #[test]
    fn the_bound_counts_bytes_and_allows_for_the_template() {
        let messages = [
            Message::new(Role::System, "Ä!"),
            Message::new(Role::User, ""),
        ];
        assert_eq!(upper_bound(&messages), 64 + (3 + 16) + 16);
        assert_eq!(upper_bound(&[]), 64);
    }

    #[test]
    fn both_servers_counts_are_read_and_others_refused() {
        assert_eq!(read_count(br#"{"tokens":[1,2,3]}"#).unwrap(), 3);
        assert_eq!(
            read_count(br#"{"count":5,"max_model_len":9,"tokens":[]}"#).unwrap(),
            5
        );
        for bad in ["", "{}", r#"{"count":-1}"#, r#"{"count":1e99}"#, "[]"] {
            assert!(matches!(read_count(bad.as_bytes()), Err(Fault::Broken(_))));
        }
        assert_eq!(read_template(br#"{"prompt":"<s>"}"#).unwrap(), "<s>");
        assert!(read_template(br#"{"prompt":1}"#).is_err());
    }
}
