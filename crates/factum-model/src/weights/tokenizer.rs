//! A tokenizer out of `tokenizer.json` and `tokenizer_config.json`, as a GGUF file describes it.
//!
//! Only byte-level BPE is understood, and of that only what llama.cpp does too. Everything else in the files is
//! refused, so that a converted tokenizer gives the tokens of the original. One thing stays outside of
//! GGUF: the [`Normalizer`], which whoever tokenizes has to apply to the text first.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;
use thiserror::Error;

use super::chat_template::{MAX_TEXT_BYTES, TemplateField, chat_template};
use super::gguf::{Array, Header, Value};
use super::pre_tokenizer::{PreTokenizer, recognise};
use super::report::{TemplateDigest, TokenizerDigest};
use super::safetensors_dir::read_bounded;

/// The tokenizer's file.
pub(crate) const TOKENIZER_FILE: &str = "tokenizer.json";
/// The file with the special tokens' roles and, often, the chat template.
pub(crate) const TOKENIZER_CONFIG_FILE: &str = "tokenizer_config.json";
pub(super) const MAX_TOKENIZER_BYTES: u64 = 128 << 20;

/// What has to be done to a text before llama.cpp tokenizes it, since llama.cpp does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalizer {
    /// Nothing.
    None,
    /// Unicode's canonical composition. Qwen2's tokenizer has it.
    Nfc,
    /// Canonical decomposition without marks that take no place of their own, and without control characters: what
    /// BERT's tokenizer does where it takes accents away. llama.cpp's own way leaves only the first letter of a
    /// Korean syllable, and takes the vowels of Hindi away too.
    Unaccented,
}

/// Where a converted file says what its tokenizer's normalizer is.
/// Where a GGUF file that was converted here names its normalizer.
pub const NORMALIZER_KEY: &str = "factum.normalizer";

impl Normalizer {
    /// What a GGUF file says; nothing has to be done where it says nothing.
    pub fn stated(header: &Header) -> Self {
        match header.text(NORMALIZER_KEY) {
            Some("nfc") => Self::Nfc,
            Some("unaccented") => Self::Unaccented,
            _ => Self::None,
        }
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Nfc => "nfc",
            Self::Unaccented => "unaccented",
        }
    }
}

/// Why a tokenizer can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TokenizerError {
    /// A file that it needs can't be read.
    #[error("{file} can't be read: {message}")]
    File {
        /// Which.
        file: &'static str,
        /// Why.
        message: String,
    },
    /// It is no byte-level BPE, or has an option that llama.cpp has no counterpart for.
    #[error("{part} is {found}, which has no counterpart in GGUF")]
    Unsupported {
        /// What part of it.
        part: &'static str,
        /// What that says, cut.
        found: String,
    },
    /// Text is split in a way that is not on the list.
    #[error("text is split in a way that llama.cpp has no name for: {0}")]
    PreTokenizer(String),
    /// Two tokens have one id, or one has an id outside of the vocabulary.
    #[error(
        "token {token:?} has id {id}, which is taken or beyond the {size} rows of the embedding"
    )]
    Id {
        /// The token.
        token: String,
        /// Its id.
        id: u64,
        /// Rows of the embedding.
        size: u64,
    },
    /// A merge of tokens that are not in the vocabulary.
    #[error("merge {0:?} makes or uses a token that is not in the vocabulary")]
    Merge(String),
    /// A special token that is not in the vocabulary.
    #[error("{role} is {token:?}, which is not in the vocabulary")]
    Special {
        /// What it is for.
        role: &'static str,
        /// The token.
        token: String,
    },
    /// The two files contradict each other about what is put before a text.
    #[error("tokenizer_config.json and tokenizer.json differ on {0}")]
    Contradiction(&'static str),
}

/// A tokenizer that GGUF can describe.
#[derive(Debug)]
pub(crate) struct Tokenizer {
    tokens: Vec<String>,
    types: Vec<i32>,
    merges: Vec<String>,
    special: Vec<(&'static str, u32)>,
    add_bos: bool,
    /// How text is split.
    pub(crate) pre: PreTokenizer,
    /// What is done to a text first.
    pub(crate) normalizer: Normalizer,
    /// The chat template.
    pub(crate) template: Option<String>,
    /// The digest of the tokenizer's file.
    pub(crate) digest: TokenizerDigest,
}

/// The parts that every `tokenizer.json` has.
#[derive(Deserialize)]
pub(super) struct RawTokenizer<M> {
    #[serde(default)]
    pub(super) added_tokens: Vec<AddedToken>,
    #[serde(default)]
    pub(super) normalizer: Json,
    #[serde(default)]
    pub(super) pre_tokenizer: Json,
    #[serde(default)]
    pub(super) post_processor: Json,
    pub(super) model: M,
}

#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the file's form, not ours")]
pub(super) struct AddedToken {
    pub(super) id: u64,
    pub(super) content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    pub(super) special: bool,
}

#[derive(Deserialize)]
struct RawModel {
    #[serde(rename = "type")]
    kind: Option<String>,
    dropout: Option<f64>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    fuse_unk: bool,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    vocab: BTreeMap<String, u64>,
    merges: Vec<Merge>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Joined(String),
    Pair(String, String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TokenField {
    Text(String),
    Object { content: String },
}

impl TokenField {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Object { content: text } => text,
        }
    }
}

#[derive(Default, Deserialize)]
struct RawConfig {
    bos_token: Option<TokenField>,
    eos_token: Option<TokenField>,
    pad_token: Option<TokenField>,
    unk_token: Option<TokenField>,
    add_bos_token: Option<bool>,
    add_eos_token: Option<bool>,
    chat_template: Option<TemplateField>,
}

/// GGUF's types of tokens.
pub(super) mod token_type {
    pub(crate) const NORMAL: i32 = 1;
    pub(crate) const CONTROL: i32 = 3;
    pub(crate) const USER_DEFINED: i32 = 4;
    pub(crate) const UNUSED: i32 = 5;
}

/// Tokens that end a turn.
const END_OF_TURN: [&str; 2] = ["<|im_end|>", "<|eot_id|>"];

impl Tokenizer {
    /// Reads the tokenizer of a folder for an embedding of so many rows.
    pub(crate) fn read(dir: &Path, rows: u64) -> Result<Self, TokenizerError> {
        let bytes = read_file(dir, TOKENIZER_FILE, MAX_TOKENIZER_BYTES)?;
        let raw: RawTokenizer<RawModel> =
            serde_json::from_slice(&bytes).map_err(|e| bad_file(TOKENIZER_FILE, &e))?;
        let config: RawConfig = if dir.join(TOKENIZER_CONFIG_FILE).exists() {
            let bytes = read_file(dir, TOKENIZER_CONFIG_FILE, MAX_TEXT_BYTES)?;
            serde_json::from_slice(&bytes).map_err(|e| bad_file(TOKENIZER_CONFIG_FILE, &e))?
        } else {
            RawConfig::default()
        };
        Self::build(&raw, config, dir, rows, TokenizerDigest::of(&bytes))
    }

    fn build(
        raw: &RawTokenizer<RawModel>,
        config: RawConfig,
        dir: &Path,
        rows: u64,
        digest: TokenizerDigest,
    ) -> Result<Self, TokenizerError> {
        refuse_options(&raw.model)?;
        let Some(pre) = recognise(&raw.pre_tokenizer) else {
            return Err(TokenizerError::PreTokenizer(cut(&raw.pre_tokenizer)));
        };
        if pre.ignore_merges != raw.model.ignore_merges {
            let found = raw.model.ignore_merges.to_string();
            return Err(unsupported("ignore_merges", found));
        }
        let normalizer = normalizer(&raw.normalizer)?;
        let merges = merges(&raw.model)?;
        let (tokens, types) = vocabulary(raw, rows)?;
        let before = token_before_text(&raw.post_processor)?;
        let special = special_tokens(&tokens, &config)?;
        let add_bos = match &before {
            None => false,
            Some(token) if config.bos_token.as_ref().is_some_and(|t| t.text() == token) => true,
            Some(token) => return Err(unsupported("post_processor", token.clone())),
        };
        if config.add_bos_token.is_some_and(|said| said != add_bos) {
            return Err(TokenizerError::Contradiction("add_bos_token"));
        }
        if config.add_eos_token == Some(true) {
            return Err(TokenizerError::Contradiction("add_eos_token"));
        }
        Ok(Self {
            tokens,
            types,
            merges,
            special,
            add_bos,
            pre,
            normalizer,
            template: chat_template(dir, config.chat_template),
            digest,
        })
    }

    /// The digest of the chat template.
    pub(crate) fn template_digest(&self) -> Option<TemplateDigest> {
        let template = self.template.as_ref()?;
        Some(TemplateDigest::of(template.as_bytes()))
    }

    /// The entries that describe it in GGUF.
    pub(crate) fn into_entries(self) -> Vec<(String, Value)> {
        let mut out = vec![
            (NORMALIZER_KEY.to_owned(), text(self.normalizer.word())),
            ("tokenizer.ggml.model".to_owned(), text("gpt2")),
            ("tokenizer.ggml.pre".to_owned(), text(self.pre.name)),
            (
                "tokenizer.ggml.tokens".to_owned(),
                Value::Array(Array::Strings(self.tokens)),
            ),
            (
                "tokenizer.ggml.token_type".to_owned(),
                Value::Array(Array::I32(self.types)),
            ),
            (
                "tokenizer.ggml.merges".to_owned(),
                Value::Array(Array::Strings(self.merges)),
            ),
        ];
        for (role, id) in self.special {
            out.push((format!("tokenizer.ggml.{role}_token_id"), Value::U32(id)));
        }
        let add_bos = Value::Bool(self.add_bos);
        out.push(("tokenizer.ggml.add_bos_token".to_owned(), add_bos));
        if let Some(template) = self.template {
            out.push((
                "tokenizer.chat_template".to_owned(),
                Value::String(template),
            ));
        }
        out
    }
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

pub(super) fn read_file(
    dir: &Path,
    file: &'static str,
    most: u64,
) -> Result<Vec<u8>, TokenizerError> {
    read_bounded(&dir.join(file), most).map_err(|error| bad_file(file, &error))
}

pub(super) fn bad_file(file: &'static str, error: &impl ToString) -> TokenizerError {
    let message = error.to_string();
    TokenizerError::File { file, message }
}

pub(super) fn unsupported(part: &'static str, found: impl Into<String>) -> TokenizerError {
    let found = found.into();
    TokenizerError::Unsupported { part, found }
}

pub(super) fn cut(value: &Json) -> String {
    value.to_string().chars().take(400).collect()
}

fn refuse_options(model: &RawModel) -> Result<(), TokenizerError> {
    let kind = model.kind.as_deref().unwrap_or("BPE");
    if kind != "BPE" {
        return Err(unsupported("the model's type", kind));
    }
    if let Some(dropout) = model.dropout.filter(|&dropout| dropout != 0.0) {
        return Err(unsupported("dropout", dropout.to_string()));
    }
    let affixes = [&model.continuing_subword_prefix, &model.end_of_word_suffix];
    for affix in affixes.into_iter().flatten() {
        if !affix.is_empty() {
            return Err(unsupported("an affix", affix.as_str()));
        }
    }
    if model.byte_fallback {
        return Err(unsupported("byte_fallback", "true"));
    }
    if model.fuse_unk {
        return Err(unsupported("fuse_unk", "true"));
    }
    Ok(())
}

fn normalizer(description: &Json) -> Result<Normalizer, TokenizerError> {
    if description.is_null() {
        return Ok(Normalizer::None);
    }
    let only_type = description.as_object().is_some_and(|map| map.len() == 1);
    if only_type && description.get("type").and_then(Json::as_str) == Some("NFC") {
        return Ok(Normalizer::Nfc);
    }
    Err(unsupported("the normalizer", cut(description)))
}

fn merges(model: &RawModel) -> Result<Vec<String>, TokenizerError> {
    let mut out = Vec::new();
    for merge in &model.merges {
        let joined = match merge {
            Merge::Joined(joined) => joined.clone(),
            Merge::Pair(left, right) => format!("{left} {right}"),
        };
        // A half with a space in it could not be told from two halves.
        let known = joined.split_once(' ').is_some_and(|(left, right)| {
            [left, right, &format!("{left}{right}")]
                .iter()
                .all(|token| model.vocab.contains_key(*token))
        });
        if !known || joined.matches(' ').count() != 1 {
            return Err(TokenizerError::Merge(joined));
        }
        out.push(joined);
    }
    Ok(out)
}

/// Tokens and their types by id. Rows of the embedding that have no token get names that no text gives.
fn vocabulary(
    raw: &RawTokenizer<RawModel>,
    rows: u64,
) -> Result<(Vec<String>, Vec<i32>), TokenizerError> {
    let mut by_id: BTreeMap<u64, (&str, i32)> = BTreeMap::new();
    for (token, &id) in &raw.model.vocab {
        let taken = by_id.insert(id, (token, token_type::NORMAL)).is_some();
        if taken || id >= rows {
            return Err(bad_id(token, id, rows));
        }
    }
    for added in &raw.added_tokens {
        if added.single_word || added.lstrip || added.rstrip {
            return Err(unsupported("an added token", added.content.as_str()));
        }
        let same = by_id
            .get(&added.id)
            .is_none_or(|(token, _)| *token == added.content);
        let elsewhere = raw
            .model
            .vocab
            .get(&added.content)
            .is_some_and(|&id| id != added.id);
        if !same || elsewhere || added.id >= rows {
            return Err(bad_id(&added.content, added.id, rows));
        }
        // llama.cpp takes user-defined tokens out of any text, control tokens only where it is told to. What
        // looks like a control token is one, whatever the file says, so that no document can spell it.
        let control = added.special || looks_like_control(&added.content);
        let kind = if control {
            token_type::CONTROL
        } else {
            token_type::USER_DEFINED
        };
        by_id.insert(added.id, (&added.content, kind));
    }
    let named = (0..rows).map(|id| match by_id.get(&id) {
        Some((token, kind)) => ((*token).to_owned(), *kind),
        None => (format!("[PAD{id}]"), token_type::UNUSED),
    });
    Ok(named.unzip())
}

fn looks_like_control(token: &str) -> bool {
    token.starts_with("<|") && token.ends_with("|>")
}

fn bad_id(token: &str, id: u64, size: u64) -> TokenizerError {
    let token = token.to_owned();
    TokenizerError::Id { token, id, size }
}

/// The token that the tokenizer puts before every text, if it does.
fn token_before_text(processor: &Json) -> Result<Option<String>, TokenizerError> {
    match processor.get("type").and_then(Json::as_str) {
        None if processor.is_null() => Ok(None),
        Some("ByteLevel") => Ok(None),
        Some("Sequence") => {
            let steps = processor.get("processors").and_then(Json::as_array);
            let mut before = None;
            for step in steps.into_iter().flatten() {
                before = token_before_text(step)?.or(before);
            }
            Ok(before)
        }
        Some("TemplateProcessing") => {
            let pieces = processor.get("single").and_then(Json::as_array);
            match pieces.map(Vec::as_slice).unwrap_or_default() {
                [sequence] if sequence.get("Sequence").is_some() => Ok(None),
                [special, sequence] if sequence.get("Sequence").is_some() => {
                    let id = special.pointer("/SpecialToken/id").and_then(Json::as_str);
                    id.map(|id| Some(id.to_owned()))
                        .ok_or_else(|| unsupported("post_processor", cut(processor)))
                }
                _ => Err(unsupported("post_processor", cut(processor))),
            }
        }
        _ => Err(unsupported("post_processor", cut(processor))),
    }
}

fn special_tokens(
    tokens: &[String],
    config: &RawConfig,
) -> Result<Vec<(&'static str, u32)>, TokenizerError> {
    let find = |token: &str| {
        let place = tokens.iter().position(|one| one == token)?;
        u32::try_from(place).ok()
    };
    let roles = [
        ("bos", &config.bos_token),
        ("eos", &config.eos_token),
        ("unknown", &config.unk_token),
        ("padding", &config.pad_token),
    ];
    let mut out = Vec::new();
    for (role, field) in roles {
        let Some(field) = field else { continue };
        let Some(id) = find(field.text()) else {
            let token = field.text().to_owned();
            return Err(TokenizerError::Special { role, token });
        };
        out.push((role, id));
    }
    if let Some(id) = END_OF_TURN.into_iter().find_map(find) {
        out.push(("eot", id));
    }
    Ok(out)
}
