//! Converted sentence models in llama.cpp: the tokens are the original tokenizer's, the vectors those of a plain forward
//! pass. The tests of a real model need `FACTUM_TEST_EMBEDDER`, its folder, and say so where it is absent.

use std::path::{Path, PathBuf};

use factum_model::embedder::Embedder;
use factum_model::local::{LocalEmbedder, LocalGenerator};
use factum_model::local_identity::{EmbedderOptions, LocalOptions};
use factum_model::{Control, ModelError};
use proptest::prelude::*;
use serde::Deserialize;
use tempfile::TempDir;
use tokenizers::Tokenizer;

use crate::convert::convert_dir;
use crate::sentence_reference::{Wrong, vector};
use crate::tiny_model::{Kind, TinyModel};
use crate::tiny_sentence::{MAX_TOKENS, TinySentence};

fn load(gguf: &Path, threads: u32) -> LocalEmbedder {
    LocalEmbedder::load(&EmbedderOptions {
        threads,
        ..EmbedderOptions::new(gguf, "test")
    })
    .unwrap()
}

/// Both sides of a conversion.
struct Pair {
    original: Tokenizer,
    converted: LocalEmbedder,
    _folder: TempDir,
}

impl Pair {
    fn new() -> Self {
        let folder = TinySentence::new().write();
        Self {
            original: original(folder.path()),
            converted: load(&convert_dir(folder.path()).unwrap().path, 1),
            _folder: folder,
        }
    }
}

/// The original tokenizer, cut where the model's texts are, and with texts that can't spell special tokens.
fn original(folder: &Path) -> Tokenizer {
    let mut tokenizer = Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).unwrap();
    tokenizer.set_encode_special_tokens(true);
    tokenizer
}

fn original_tokens(tokenizer: &Tokenizer, text: &str, most: usize) -> Vec<i32> {
    let encoding = tokenizer.encode(text, true).unwrap();
    let mut ids: Vec<i32> = encoding
        .get_ids()
        .iter()
        .map(|id| id.cast_signed())
        .collect();
    if ids.len() > most {
        let last = ids[ids.len() - 1];
        ids.truncate(most - 1);
        ids.push(last);
    }
    ids
}

async fn vectors(embedder: &LocalEmbedder, texts: &[&str]) -> Vec<Vec<f32>> {
    let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
    embedder.embed(&texts, &Control::default()).await.unwrap()
}

fn cosine(a: &[f32], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * y).sum()
}

/// Text that splits tokenizers.
const HARD: &[&str] = &[
    "",
    " ",
    "the claim that the hose burst",
    "The HOSE burst, unbursting; CLAIMABLE damages!",
    "水漏れの claim がい カガ 漢字かな交じり文、句読点。",
    "中文没有空格 한국어 띄어쓰기 각 ไทยไม่มีเว้นวรรค العربية עברית हिन्दी",
    "👩🏽‍🚒 fire 🔥🔥 👨‍👩‍👧‍👦 🇩🇪🇯🇵 ❤️ ☃ 👩",
    "Café CAFÉ cafe\u{301} naïve Straße STRASSE Gebäude ñ ü Ǆ ﬁ ß ẞ İstanbul ΌΣΟΣ ﷺ",
    "e\u{301} é n\u{303} a\u{308}\u{323} \u{1100}\u{1161} \u{1112}\u{1161}\u{11ab} Å \u{212b} \u{0958}",
    "12 123 1234 1,234.56 3.14e-10 0x1F ²³ ½ Ⅷ ٣٤٥ १२३ 2024-01-02",
    "I'll can't we're it's I'd they've O'Brien 'tis l'eau ’s can’t t² H₂O",
    "line\r\nline\r\n\r\n  indented\n\n\n\ttab \t x\r y \n",
    "  two   three\u{a0}nbsp\u{3000}wide\u{2003}em\u{200b}zero\u{85}nel\u{2028}ls",
    "[CLS] [SEP] [MASK] [PAD] [UNK] x[SEP]y [ CLS ] [cls] ##ing ##",
    "C++ == != --x; /* */ {\"a\":[1,2]} #!/bin/sh https://x.y/z?q=1&r=2 a_b",
    "\u{feff}bom \u{202e}rtl\u{202c} \u{0} nul \u{7f} \u{fffd} soft\u{ad}hyphen",
    "“quoted” — dash… № §12 ©™ €9,99 £1 ° x²",
    "end with space ",
    "\n",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx y",
];

#[test]
fn hard_text_is_read_as_the_same_tokens_as_by_the_original() {
    let pair = Pair::new();
    for text in HARD.iter().copied().filter(|text| !text.starts_with("xxx")) {
        let expected = original_tokens(&pair.original, text, MAX_TOKENS);
        assert_eq!(pair.converted.tokens(text), expected, "{text:?}");
    }
}

#[test]
fn a_word_of_more_than_a_hundred_characters_is_read_in_pieces_where_the_original_gives_it_up() {
    let pair = Pair::new();
    let text = HARD.last().unwrap();
    let unknown = 1;
    let (expected, found) = (
        original_tokens(&pair.original, text, MAX_TOKENS),
        pair.converted.tokens(text),
    );
    assert_eq!(expected[1], unknown);
    assert!(!found.contains(&unknown) && found.len() > 100, "{found:?}");
    let shorter = &text[1..];
    let expected = original_tokens(&pair.original, shorter, MAX_TOKENS);
    assert_eq!(pair.converted.tokens(shorter), expected);
}

#[test]
fn a_text_can_not_spell_the_tokens_that_stand_around_it() {
    let pair = Pair::new();
    for text in ["[SEP] and [CLS] [MASK][PAD]", "x [SEP]", "[UNK]"] {
        let tokens = pair.converted.tokens(text);
        let inside = &tokens[1..tokens.len() - 1];
        // [PAD], [CLS], [SEP] and [MASK]; a word that is not known is [UNK] by right.
        assert!(
            inside.iter().all(|token| ![0, 2, 3, 4].contains(token)),
            "{text}: {tokens:?}"
        );
    }
}

#[test]
fn a_text_that_is_too_long_is_read_up_to_where_the_model_reads() {
    let pair = Pair::new();
    let long = "the hose burst ".repeat(400);
    let tokens = pair.converted.tokens(&long);
    assert_eq!(tokens.len(), MAX_TOKENS);
    assert_eq!(tokens, original_tokens(&pair.original, &long, MAX_TOKENS));
    assert_eq!(pair.converted.max_tokens(), MAX_TOKENS);
}

/// Pieces whose order and company decide where text is split.
const PIECES: &[&str] = &[
    "the",
    "Hose",
    " ",
    "  ",
    "\n",
    "\t",
    "1",
    "23",
    "水",
    "が",
    "か\u{3099}",
    "é",
    "e\u{301}",
    "한",
    "각",
    "'s",
    "’",
    "-",
    ".",
    "👩",
    "🏽",
    "\u{200d}",
    "ß",
    "Ⅷ",
    "²",
    "\u{a0}",
    "\u{3000}",
    "_",
    "[",
    "]",
    "[SEP]",
    "##",
    "ing",
    "\u{308}",
    "ก",
    "x",
    "\u{ad}",
    "€",
    "“",
    "İ",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_order_of_pieces_is_read_as_the_same_tokens(
        texts in prop::collection::vec(prop::collection::vec(0..PIECES.len(), 1..24), 16)
    ) {
        static PAIR: std::sync::OnceLock<Pair> = std::sync::OnceLock::new();
        let pair = PAIR.get_or_init(Pair::new);
        for pieces in texts {
            let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
            let expected = original_tokens(&pair.original, &text, MAX_TOKENS);
            prop_assert_eq!(pair.converted.tokens(&text), expected, "{:?}", text);
        }
    }
}

// llama.cpp's gelu is an approximation out of a table of 16-bit floats; what a wrong pooling, a causal mask or a
// swapped matrix does is a hundred times as large.
#[tokio::test]
async fn converted_sentence_models_compute_what_the_original_does() {
    let model = TinySentence::new();
    let folder = model.write();
    let embedder = load(&convert_dir(folder.path()).unwrap().path, 2);
    let texts = ["the hose burst", "x", "", &"water damage, ".repeat(60)];
    for (text, found) in texts.iter().zip(vectors(&embedder, &texts).await) {
        let tokens = embedder.tokens(text).into_iter();
        let tokens: Vec<usize> = tokens.map(|id| usize::try_from(id).unwrap()).collect();
        let away = |wrong| 1.0 - cosine(&found, &vector(&model, &tokens, wrong));
        let right = away(Wrong::Nothing);
        assert!(right < 1e-4, "{text:?}: {right}");
        for wrong in [Wrong::FirstToken, Wrong::Causal, Wrong::Swapped] {
            let wrong_by = away(wrong);
            eprintln!(
                "{} tokens: {right:.2e} from the reference, {wrong_by:.2e} from {wrong:?}",
                tokens.len()
            );
            assert!(
                wrong_by > 20.0 * right.max(1e-6),
                "{wrong:?} {text:?}: {wrong_by}"
            );
        }
        let length: f64 = found.iter().map(|x| f64::from(*x).powi(2)).sum();
        assert!((length - 1.0).abs() < 1e-6);
    }
}

#[tokio::test]
async fn company_order_and_repetition_change_no_bit_of_a_vector() {
    let folder = TinySentence::new().write();
    let embedder = load(&convert_dir(folder.path()).unwrap().path, 2);
    let texts: Vec<&str> = HARD.to_vec();
    let together = vectors(&embedder, &texts).await;
    let backwards: Vec<&str> = texts.iter().rev().copied().collect();
    let mut turned = vectors(&embedder, &backwards).await;
    turned.reverse();
    assert_eq!(together, turned);
    for (text, vector) in texts.iter().zip(&together) {
        assert_eq!(&vectors(&embedder, &[text]).await[0], vector);
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_without_a_vector() {
    let folder = TinySentence::new().write();
    let embedder = load(&convert_dir(folder.path()).unwrap().path, 1);
    let control = Control::default();
    control.cancel.cancel();
    let made = embedder.embed(&["the hose".to_owned()], &control).await;
    assert_eq!(made, Err(ModelError::Cancelled));
    // It goes on working for others.
    assert_eq!(vectors(&embedder, &["the hose"]).await.len(), 1);
}

#[test]
fn a_language_model_is_no_embedder_and_a_sentence_model_writes_nothing() {
    let language = TinyModel::new(Kind::SmolLm, true).write();
    let language = convert_dir(language.path().to_owned().as_path()).unwrap();
    let error = LocalEmbedder::load(&EmbedderOptions::new(&language.path, "test")).unwrap_err();
    assert!(error.to_string().contains("no sentence model"), "{error}");
    let folder = TinySentence::new().write();
    let sentence = convert_dir(folder.path()).unwrap();
    let error = LocalGenerator::load(LocalOptions::new(&sentence.path, "test")).unwrap_err();
    assert!(error.to_string().contains("--embeddings"), "{error}");
    let error = LocalEmbedder::load(&EmbedderOptions::new("nowhere.gguf", "test")).unwrap_err();
    assert!(error.to_string().contains("nowhere.gguf"), "{error}");
}

/// What an independent implementation made of some texts; `minilm_reference.json` says which.
#[derive(Deserialize)]
struct Reference {
    texts: Vec<ReferenceText>,
}

#[derive(Deserialize)]
struct ReferenceText {
    text: String,
    tokens: Vec<i32>,
    vector: Vec<f64>,
}

fn real() -> Option<(PathBuf, TempDir, LocalEmbedder)> {
    let Some(folder) = std::env::var_os("FACTUM_TEST_EMBEDDER") else {
        eprintln!("skipped: FACTUM_TEST_EMBEDDER names no sentence model");
        return None;
    };
    let folder = PathBuf::from(folder);
    let out = tempfile::tempdir().unwrap();
    let sources = crate::convert::sources(&folder);
    let cancel = tokio_util::sync::CancellationToken::new();
    let converted = factum_model::weights::convert(&folder, &sources, out.path(), &cancel).unwrap();
    let embedder = load(&converted.path, 2);
    Some((folder, out, embedder))
}

#[tokio::test]
async fn the_real_sentence_model_gives_the_vectors_of_an_independent_implementation() {
    let Some((_, _out, embedder)) = real() else {
        return;
    };
    let reference: Reference = serde_json::from_str(include_str!("minilm_reference.json")).unwrap();
    for one in reference.texts {
        assert_eq!(embedder.tokens(&one.text), one.tokens, "{:?}", one.text);
        let found = &vectors(&embedder, &[&one.text]).await[0];
        let away = 1.0 - cosine(found, &one.vector);
        eprintln!("{away:.2e} away: {:.60?}", one.text);
        assert!(away < 1e-4, "{away} {:?}", one.text);
    }
}

#[tokio::test]
async fn the_real_sentence_model_reads_hard_text_as_the_original_does() {
    let Some((folder, _out, embedder)) = real() else {
        return;
    };
    let original = original(&folder);
    for text in HARD.iter().copied().filter(|text| !text.starts_with("xxx")) {
        let expected = original_tokens(&original, text, embedder.max_tokens());
        assert_eq!(embedder.tokens(text), expected, "{text:?}");
    }
}

#[tokio::test]
async fn the_real_sentence_model_puts_what_means_the_same_together() {
    let Some((_, _out, embedder)) = real() else {
        return;
    };
    let texts = [
        "The hose under the sink burst.",
        "A water pipe in the kitchen broke.",
        "The invoice is to be paid by Friday.",
    ];
    let made = vectors(&embedder, &texts).await;
    let near = |a: usize, b: usize| {
        let b: Vec<f64> = made[b].iter().map(|x| f64::from(*x)).collect();
        cosine(&made[a], &b)
    };
    assert!(
        near(0, 1) > near(0, 2) + 0.2,
        "{} {}",
        near(0, 1),
        near(0, 2)
    );
}
