//! A `WordPiece` tokenizer out of `tokenizer.json`, as a GGUF file describes it.
//!
//! GGUF marks where a word begins (U+2581 before the piece) where the original marks where it goes on (`##`). Only
//! what llama.cpp does too is understood. Two things differ, and a test shows them: a word of more than
//! `max_input_chars_per_word` characters is read in pieces, where the original gives it up; and accents have to be
//! taken away before ([`Normalizer::Unaccented`]).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::gguf::{Array, Value};
use super::report::TokenizerDigest;
use super::tokenizer::{
    MAX_TOKENIZER_BYTES, NORMALIZER_KEY, Normalizer, RawTokenizer, TOKENIZER_FILE, TokenizerError,
    bad_file, cut, read_file, token_type, unsupported,
};

/// What stands before a piece that begins a word.
const BEGINS: char = '\u{2581}';
/// What stands before a piece that goes on with one.
const GOES_ON: &str = "##";

/// Special tokens: their names in GGUF and in the vocabulary.
const SPECIAL: [(&str, &str); 7] = [
    ("bos", "[CLS]"),
    ("cls", "[CLS]"),
    ("eos", "[SEP]"),
    // GGUF spells it so.
    ("seperator", "[SEP]"),
    ("unknown", "[UNK]"),
    ("padding", "[PAD]"),
    ("mask", "[MASK]"),
];

/// A tokenizer that GGUF can describe.
#[derive(Debug)]
pub(crate) struct WordPiece {
    tokens: Vec<String>,
    types: Vec<i32>,
    special: Vec<(&'static str, u32)>,
    lowercase: bool,
    strip_accents: bool,
    /// The digest of the tokenizer's file.
    pub(crate) digest: TokenizerDigest,
}

type Raw = RawTokenizer<RawModel>;

#[derive(Deserialize)]
struct RawModel {
    #[serde(rename = "type")]
    kind: Option<String>,
    unk_token: String,
    continuing_subword_prefix: String,
    max_input_chars_per_word: u64,
    vocab: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNormalizer {
    #[serde(rename = "type")]
    kind: String,
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: Option<bool>,
    lowercase: bool,
}

impl WordPiece {
    /// Reads the tokenizer of a folder for an embedding of so many rows.
    pub(crate) fn read(dir: &Path, rows: u64) -> Result<Self, TokenizerError> {
        let bytes = read_file(dir, TOKENIZER_FILE, MAX_TOKENIZER_BYTES)?;
        let raw: Raw = serde_json::from_slice(&bytes).map_err(|e| bad_file(TOKENIZER_FILE, &e))?;
        refuse_what_differs(&raw)?;
        let normalizer: RawNormalizer = serde_json::from_value(raw.normalizer.clone())
            .map_err(|_| unsupported("the normalizer", cut(&raw.normalizer)))?;
        if normalizer.kind != "BertNormalizer"
            || !normalizer.clean_text
            || !normalizer.handle_chinese_chars
        {
            return Err(unsupported("the normalizer", cut(&raw.normalizer)));
        }
        let special = special_tokens(&raw)?;
        let (tokens, types) = pieces(&raw, rows)?;
        Ok(Self {
            tokens,
            types,
            special,
            lowercase: normalizer.lowercase,
            strip_accents: normalizer.strip_accents.unwrap_or(normalizer.lowercase),
            digest: TokenizerDigest::of(&bytes),
        })
    }

    /// What is done to a text first.
    pub(crate) const fn normalizer(&self) -> Normalizer {
        if self.strip_accents {
            Normalizer::Unaccented
        } else {
            Normalizer::None
        }
    }

    /// The entries that describe it in GGUF.
    pub(crate) fn into_entries(self) -> Vec<(String, Value)> {
        let text = |text: &str| Value::String(text.to_owned());
        let normalizer = self.normalizer();
        let mut out = vec![
            (NORMALIZER_KEY.to_owned(), text(normalizer.word())),
            ("tokenizer.ggml.model".to_owned(), text("bert")),
            (
                "tokenizer.ggml.tokens".to_owned(),
                Value::Array(Array::Strings(self.tokens)),
            ),
            (
                "tokenizer.ggml.token_type".to_owned(),
                Value::Array(Array::I32(self.types)),
            ),
        ];
        for (role, id) in self.special {
            out.push((format!("tokenizer.ggml.{role}_token_id"), Value::U32(id)));
        }
        for (key, truth) in [
            ("add_bos_token", true),
            ("add_sep_token", true),
            ("normalizer.lowercase", self.lowercase),
            // Done before llama.cpp reads a text: its own way takes too much away.
            ("normalizer.strip_accents", false),
        ] {
            out.push((format!("tokenizer.ggml.{key}"), Value::Bool(truth)));
        }
        out
    }
}

fn refuse_what_differs(raw: &Raw) -> Result<(), TokenizerError> {
    let model = &raw.model;
    let kind = model.kind.as_deref().unwrap_or("WordPiece");
    if kind != "WordPiece" {
        return Err(unsupported("the model's type", kind));
    }
    if model.continuing_subword_prefix != GOES_ON {
        let found = model.continuing_subword_prefix.as_str();
        return Err(unsupported("continuing_subword_prefix", found));
    }
    if model.unk_token != "[UNK]" {
        return Err(unsupported("unk_token", model.unk_token.as_str()));
    }
    // Fewer would make more of a difference than long numbers and links do.
    if model.max_input_chars_per_word < 100 {
        let found = model.max_input_chars_per_word.to_string();
        return Err(unsupported("max_input_chars_per_word", found));
    }
    if raw.pre_tokenizer != json!({"type": "BertPreTokenizer"}) {
        return Err(TokenizerError::PreTokenizer(cut(&raw.pre_tokenizer)));
    }
    hold_around(raw)
}

/// `[CLS]` before every text and `[SEP]` behind it.
fn hold_around(raw: &Raw) -> Result<(), TokenizerError> {
    let processor = &raw.post_processor;
    let wrong = || unsupported("post_processor", cut(processor));
    let id = |token: &str| raw.model.vocab.get(token).copied();
    let (cls, sep) = (id("[CLS]"), id("[SEP]"));
    match processor.get("type").and_then(Json::as_str) {
        Some("BertProcessing") => {
            let held = processor["cls"] == json!(["[CLS]", cls])
                && processor["sep"] == json!(["[SEP]", sep]);
            held.then_some(()).ok_or_else(wrong)
        }
        Some("TemplateProcessing") => {
            let special = |name: &str| json!({"SpecialToken": {"id": name, "type_id": 0}});
            let single = json!([special("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]")]);
            let ids = |name: &str| processor["special_tokens"][name]["ids"].clone();
            let held = processor["single"] == single
                && ids("[CLS]") == json!([cls])
                && ids("[SEP]") == json!([sep]);
            held.then_some(()).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

fn special_tokens(raw: &Raw) -> Result<Vec<(&'static str, u32)>, TokenizerError> {
    let find = |(role, token): (&'static str, &str)| {
        let id = raw.model.vocab.get(token).copied();
        let id = id.and_then(|id| u32::try_from(id).ok());
        id.map(|id| (role, id))
            .ok_or_else(|| TokenizerError::Special {
                role,
                token: token.to_owned(),
            })
    };
    SPECIAL.into_iter().map(find).collect()
}

/// The pieces as GGUF writes them, and their types, by id. Every row of the embedding has one.
fn pieces(raw: &Raw, rows: u64) -> Result<(Vec<String>, Vec<i32>), TokenizerError> {
    let bad_id = |token: &str, id: u64| TokenizerError::Id {
        token: token.to_owned(),
        id,
        size: rows,
    };
    let mut by_id: BTreeMap<u64, &str> = BTreeMap::new();
    for (token, &id) in &raw.model.vocab {
        if id >= rows || by_id.insert(id, token).is_some() {
            return Err(bad_id(token, id));
        }
    }
    for added in &raw.added_tokens {
        let known = raw.model.vocab.get(&added.content) == Some(&added.id);
        let one_of_ours = SPECIAL.iter().any(|(_, token)| *token == added.content);
        if !known || !added.special || !one_of_ours {
            return Err(unsupported("an added token", added.content.as_str()));
        }
    }
    // The ids are below `rows` and differ, so as many as rows are all of them.
    if by_id.len() as u64 != rows {
        return Err(bad_id("(a row without a token)", by_id.len() as u64));
    }
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let (mut tokens, mut types) = (Vec::new(), Vec::new());
    for (id, token) in by_id {
        let control = SPECIAL.iter().any(|(_, special)| *special == token);
        let piece = match token.strip_prefix(GOES_ON) {
            _ if control => token.to_owned(),
            // Alone it is a word of its own.
            Some(rest) if !rest.is_empty() => rest.to_owned(),
            _ => format!("{BEGINS}{token}"),
        };
        if seen.insert(piece.clone(), id).is_some() {
            return Err(bad_id(token, id));
        }
        tokens.push(piece);
        types.push(if control {
            token_type::CONTROL
        } else {
            token_type::NORMAL
        });
    }
    Ok((tokens, types))
}
