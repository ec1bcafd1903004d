//! Converted models in llama.cpp: the tokens are the original tokenizer's, the logits those of a plain forward pass.

use std::num::NonZeroU32;
use std::path::Path;

use factum_model::local::backend;
use factum_model::weights::Normalizer;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use proptest::prelude::*;
use tempfile::TempDir;
use tokenizers::{NormalizedString, Normalizer as _, Tokenizer};

use crate::convert::convert_dir;
use crate::reference::{Pairs, logits};
use crate::tiny_model::{Kind, TinyModel};

const KINDS: [Kind; 3] = [Kind::Qwen2, Kind::Llama, Kind::SmolLm];

/// Both sides of a conversion.
struct Pair {
    original: Tokenizer,
    model: LlamaModel,
    normalizer: Normalizer,
    _folder: TempDir,
}

fn load(path: &Path) -> LlamaModel {
    let params = LlamaModelParams::default().with_n_gpu_layers(0);
    LlamaModel::load_from_file(backend().unwrap(), path, &params).unwrap()
}

impl Pair {
    fn new(kind: Kind) -> Self {
        let folder = TinyModel::new(kind, true).write();
        let converted = convert_dir(folder.path()).unwrap();
        Self {
            original: Tokenizer::from_file(folder.path().join("tokenizer.json")).unwrap(),
            model: load(&converted.path),
            normalizer: converted.normalizer,
            _folder: folder,
        }
    }

    fn original(&self, text: &str) -> Vec<i32> {
        let encoding = self.original.encode(text, true).unwrap();
        let ids = encoding.get_ids().iter();
        ids.map(|id| i32::try_from(*id).unwrap()).collect()
    }

    fn converted(&self, text: &str, special: bool) -> Vec<i32> {
        let mut text = NormalizedString::from(text);
        if self.normalizer == Normalizer::Nfc {
            tokenizers::normalizers::NFC.normalize(&mut text).unwrap();
        }
        let text = text.get().as_bytes();
        let tokens = self.model.vocab().tokenize(text, true, special);
        tokens.into_iter().map(|token| token.0).collect()
    }
}

/// Text that splits tokenizers.
const HARD: &[&str] = &[
    "",
    " ",
    "the claim that the hose burst",
    "水漏れの claim がい 漢字かな交じり文、句読点。",
    "中文没有空格 한국어 띄어쓰기 ไทยไม่มีเว้นวรรค العربية עברית हिन्दी",
    "👩🏽‍🚒 fire 🔥🔥 👨‍👩‍👧‍👦 🇩🇪🇯🇵 ❤️ ☃",
    "e\u{301} é n\u{303} a\u{308}\u{323} \u{1100}\u{1161} Å \u{212b} \u{0958}",
    "12 123 1234 12345 1,234.56 3.14e-10 0x1F ²³ ½ Ⅷ ٣٤٥ १२३ 2024-01-02",
    "I'll can't we're it's I'd they've I'm DON'T WE'LL O'Brien 'tis l'eau ’s can’t",
    "line\r\nline\r\n\r\n  indented\n\n\n\ttab \t x\r y \n",
    "  two   three    four\u{a0}nbsp\u{3000}wide\u{2003}em\u{200b}zero\u{85}nel",
    "<|im_end|> <|im_start|>system <|endoftext|><tool_call> <|im_end |> < |im_end|> <|fim|>",
    "a<|im_end|>b <tool_call>x",
    "Straße naïve ﬁ ǅ ß ẞ İstanbul ΌΣΟΣ ﷺ",
    "C++ == != --x; /* */ {\"a\":[1,2]} #!/bin/sh https://x.y/z?q=1&r=2",
    "\u{feff}bom \u{202e}rtl\u{202c} \u{0} nul \u{7f} \u{fffd}",
    "_snake_case camelCase SHOUT x² H₂O №5 §12 ©™ €9,99 £1",
    "end with space ",
    "\n",
    "   ",
    "a\u{308}\u{308}\u{308}\u{308}",
];

#[test]
fn hard_text_gives_the_same_tokens_on_both_sides() {
    for kind in KINDS {
        let pair = Pair::new(kind);
        for text in HARD {
            let (expected, found) = (pair.original(text), pair.converted(text, true));
            assert_eq!(found, expected, "{kind:?}: {text:?}");
        }
        let all = HARD.join("\n");
        assert_eq!(pair.converted(&all, true), pair.original(&all), "{kind:?}");
    }
}

#[test]
fn only_llama_3_begins_every_text_with_a_token() {
    for kind in KINDS {
        let pair = Pair::new(kind);
        let begins = pair.converted("x", true).len() == 2;
        assert_eq!(begins, kind == Kind::Llama, "{kind:?}");
    }
}

#[test]
fn a_document_can_not_spell_a_control_token() {
    for kind in KINDS {
        let pair = Pair::new(kind);
        let spelled = pair.converted("x<|im_end|>\n<|im_start|>system", false);
        let bos = pair.model.vocab().bos();
        let control = spelled
            .into_iter()
            .map(LlamaToken)
            .find(|&token| token != bos && pair.model.vocab().is_control(token));
        assert_eq!(control, None, "{kind:?}");
        let end = pair.model.vocab().eos();
        assert!(pair.model.vocab().is_eog(end));
        assert!(pair.converted("<|im_end|>", true).contains(&end.0));
    }
}

/// Pieces whose order and company decide where text is split.
const PIECES: &[&str] = &[
    "the",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "1",
    "23",
    "水",
    "が",
    "い",
    "é",
    "e\u{301}",
    "'s",
    "'LL",
    "’s",
    "-",
    ".",
    "👩",
    "🏽",
    "\u{200d}",
    "ß",
    "Ⅷ",
    "²",
    "٣",
    "\u{a0}",
    "\u{3000}",
    "_",
    "<|",
    "|>",
    "<|im_end|>",
    "<tool_call>",
    "n't",
    "ing",
    "\u{308}",
    "한",
    "ก",
    "่",
    "Claim",
    "x",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_order_of_pieces_gives_the_same_tokens_on_both_sides(
        texts in prop::collection::vec(prop::collection::vec(0..PIECES.len(), 1..24), 16)
    ) {
        static PAIRS: std::sync::OnceLock<Vec<Pair>> = std::sync::OnceLock::new();
        let pairs = PAIRS.get_or_init(|| KINDS.into_iter().map(Pair::new).collect());
        for pieces in texts {
            let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
            for pair in pairs {
                prop_assert_eq!(pair.converted(&text, true), pair.original(&text), "{:?}", text);
            }
        }
    }
}

fn llama_cpp_logits(path: &Path, tokens: &[usize]) -> Vec<Vec<f64>> {
    let model = load(path);
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(256))
        .with_n_threads(1)
        .with_n_threads_batch(1);
    let mut context = model.new_context(backend().unwrap(), params).unwrap();
    let mut batch = LlamaBatch::new(tokens.len(), 1);
    for (place, &token) in tokens.iter().enumerate() {
        let token = LlamaToken(i32::try_from(token).unwrap());
        batch
            .add(token, i32::try_from(place).unwrap(), &[0], true)
            .unwrap();
    }
    context.decode(&mut batch).unwrap();
    let places = 0..i32::try_from(tokens.len()).unwrap();
    places
        .map(|place| {
            let logits = context.get_logits_ith(place).iter();
            logits.map(|&logit| f64::from(logit)).collect()
        })
        .collect()
}

/// The largest difference of any two logits, measured by the reference's spread.
fn difference(reference: &[Vec<f64>], found: &[Vec<f64>]) -> f64 {
    let spread = reference
        .iter()
        .flatten()
        .fold(0.0_f64, |most, x| most.max(x.abs()));
    let pairs = reference.iter().flatten().zip(found.iter().flatten());
    pairs.fold(0.0_f64, |most, (a, b)| most.max((a - b).abs())) / spread
}

// llama.cpp rounds activations to BF16 and keys and values to F16, so logits agree to about two digits. What a wrong
// rotation, a swapped matrix or a lost bias does is ten times as large.
#[test]
fn converted_models_compute_what_the_original_does() {
    for kind in [Kind::Qwen2, Kind::Llama] {
        for tied in [true, false] {
            let model = TinyModel::new(kind, tied);
            let folder = model.write();
            let converted = convert_dir(folder.path()).unwrap();
            let tokens: Vec<usize> = (0..40).map(|n| n * 37 % 256).collect();
            let found = llama_cpp_logits(&converted.path, &tokens);
            let right = difference(&logits(&model, &tokens, Pairs::Halves), &found);
            let wrong = difference(&logits(&model, &tokens, Pairs::Neighbours), &found);
            eprintln!(
                "{kind:?}, tied {tied}: {right:.4} from the reference, {wrong:.4} from a wrong one"
            );
            assert!(right < 0.03, "{kind:?} {tied}: {right}");
            assert!(wrong > 0.15, "{kind:?} {tied}: {wrong}");
        }
    }
}

#[test]
fn without_its_normalizer_decomposed_text_would_be_read_otherwise() {
    let mut pair = Pair::new(Kind::Qwen2);
    let text = "cafe\u{301}";
    assert_eq!(pair.converted(text, true), pair.original(text));
    pair.normalizer = Normalizer::None;
    assert_ne!(pair.converted(text, true), pair.original(text));
}
