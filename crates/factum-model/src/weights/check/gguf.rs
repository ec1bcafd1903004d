//! The strict check of a GGUF file: of its header, and of its length.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::weights::config::{Family, ModelConfig};
use crate::weights::expected::{Expected, GGUF_HEAD, expected_tensors};
use crate::weights::gguf::{DEFAULT_ALIGNMENT, GgufError};
use crate::weights::gguf::{Header, TensorInfo, TensorKind, read_header};
use crate::weights::report::{
    CheckError, CheckReport, Finding, TemplateDigest, TokenizerDigest, header_finding,
};
use crate::weights::sentence::{GGUF_ARCHITECTURE, SentenceConfig};

const TEMPLATE: &str = "tokenizer.chat_template";
const TOKENS: &str = "tokenizer.ggml.tokens";
/// Factors of scaled rotary embeddings, which files of the Llama 3 line hold.
const ROPE_FACTORS: &str = "rope_freqs.weight";

pub(super) fn check_file(path: &Path, length: u64) -> Result<CheckReport, CheckError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = File::open(path).map_err(CheckError::read(path))?;
    let header = match read_header(BufReader::new(file)) {
        Ok(header) => header,
        Err(GgufError::Read(error)) => return Err(CheckError::read(path)(error)),
        Err(GgufError::Ends) => {
            let expected = length + 1;
            let finding = Finding::TruncatedFile {
                file: name.into_owned(),
                expected,
                found: length,
            };
            return Ok(CheckReport {
                findings: vec![finding],
                ..CheckReport::default()
            });
        }
        Err(error) => {
            return Ok(CheckReport {
                findings: vec![header_finding(&name, &error)],
                ..CheckReport::default()
            });
        }
    };
    Ok(check_header(&header, &name, length))
}

/// Checks the header of a GGUF file against itself and the file's length. `name` is what findings call the file.
pub fn check_header(header: &Header, name: &str, length: u64) -> CheckReport {
    let mut report = CheckReport::default();
    hold_length(header, name, length, &mut report.findings);
    hold_tokenizer(header, &mut report);
    let facts = &mut report.facts;
    facts.bytes = length;
    facts.tensors = header.tensors.len() as u64;
    facts.tied = !header.tensors.iter().any(|t| t.name == GGUF_HEAD);
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for tensor in &header.tensors {
        *kinds.entry(tensor.kind.name().to_owned()).or_default() += 1;
        let numbers = tensor
            .dimensions
            .iter()
            .fold(1_u64, |a, &b| a.saturating_mul(b));
        facts.parameters = facts.parameters.saturating_add(numbers);
    }
    facts.kinds = kinds.into_iter().collect();
    if is_sentence(header) {
        facts.tied = false;
        facts.architecture = Some(GGUF_ARCHITECTURE.to_owned());
        match SentenceConfig::of_header(header, facts.vocabulary) {
            Ok(config) => {
                facts.context_length = config.max_tokens;
                hold_sentence_tensors(header, &config, &mut report.findings);
            }
            Err(finding) => report.findings.push(finding),
        }
        return report;
    }
    match read_config(header, facts.tied, facts.vocabulary) {
        Ok(config) => {
            facts.architecture = Some(config.family.architecture().to_owned());
            facts.context_length = config.context_length;
            hold_tensors(header, &config, &mut report.findings);
        }
        Err(finding) => report.findings.push(finding),
    }
    report
}

/// A sentence model has no chat template, and other tensors.
fn is_sentence(header: &Header) -> bool {
    header.text("general.architecture") == Some(GGUF_ARCHITECTURE)
}

fn hold_length(header: &Header, name: &str, length: u64, findings: &mut Vec<Finding>) {
    let file = name.to_owned();
    let (expected, found) = (header.end, length);
    if found < expected {
        findings.push(Finding::TruncatedFile {
            file,
            expected,
            found,
        });
        return;
    }
    // Writers may pad the last tensor as they pad the others.
    let alignment = header.number("general.alignment");
    let padded = expected.checked_next_multiple_of(alignment.unwrap_or(DEFAULT_ALIGNMENT).max(1));
    if padded.is_none_or(|padded| found > padded) {
        findings.push(Finding::TrailingBytes {
            file,
            expected,
            found,
        });
    }
}

fn hold_tokenizer(header: &Header, report: &mut CheckReport) {
    let findings = &mut report.findings;
    let missing = |key: &str| Finding::mismatch(key, "an entry of its type", "none");
    let tokens = header.entries.get(TOKENS).and_then(|v| v.as_strings());
    match tokens {
        Some(tokens) => report.facts.vocabulary = tokens.len() as u64,
        None => findings.push(missing(TOKENS)),
    }
    let model = header.text("tokenizer.ggml.model");
    if model.is_none() {
        findings.push(missing("tokenizer.ggml.model"));
    }
    if model == Some("gpt2") {
        let merges = header.entries.get("tokenizer.ggml.merges");
        if merges.and_then(|value| value.as_strings()).is_none() {
            findings.push(missing("tokenizer.ggml.merges"));
        }
        // Without it llama.cpp falls back to splitting that fits hardly any model.
        if header.text("tokenizer.ggml.pre").is_none() {
            findings.push(missing("tokenizer.ggml.pre"));
        }
    }
    if is_sentence(header) {
        hold_sentence_tokenizer(header, findings);
    }
    let size = report.facts.vocabulary;
    for role in [
        "bos",
        "eos",
        "eot",
        "unknown",
        "padding",
        "seperator",
        "cls",
        "mask",
    ] {
        let key = format!("tokenizer.ggml.{role}_token_id");
        if let Some(id) = header.number(&key).filter(|&id| id >= size) {
            findings.push(Finding::mismatch(&key, format!("less than {size}"), id));
        }
    }
    report.facts.pre_tokenizer = header.text("tokenizer.ggml.pre").map(str::to_owned);
    report.facts.tokenizer = tokenizer_digest(header);
    match header.text(TEMPLATE) {
        Some(text) => report.facts.template = Some(TemplateDigest::of(text.as_bytes())),
        None if is_sentence(header) => {}
        None => findings.push(Finding::MissingTemplate),
    }
}

/// llama.cpp ends the process where a token that stands around every text is not there.
fn hold_sentence_tokenizer(header: &Header, findings: &mut Vec<Finding>) {
    let model = "tokenizer.ggml.model";
    if let Some(other) = header.text(model).filter(|model| *model != "bert") {
        findings.push(Finding::mismatch(model, "bert", other));
    }
    for role in ["bos", "seperator", "unknown"] {
        let key = format!("tokenizer.ggml.{role}_token_id");
        if header.number(&key).is_none() {
            findings.push(Finding::mismatch(&key, "a token", "none"));
        }
    }
}

/// See [`TokenizerDigest`].
fn tokenizer_digest(header: &Header) -> Option<TokenizerDigest> {
    header.entries.get(TOKENS)?;
    let mut hasher = Sha256::new();
    for key in header.entries.keys() {
        let counts = key.starts_with("tokenizer.") && key != TEMPLATE;
        if let Some(bytes) = header.raw_entry(key).filter(|_| counts) {
            hasher.update(bytes);
        }
    }
    Some(TokenizerDigest::from_bytes(hasher.finalize().into()))
}

fn read_config(header: &Header, tied: bool, vocabulary: u64) -> Result<ModelConfig, Finding> {
    let architecture = header.text("general.architecture").unwrap_or("nothing");
    let Some(family) = Family::from_architecture(architecture) else {
        return Err(Finding::unsupported("general.architecture", architecture));
    };
    let number = |key: &str| {
        let key = format!("{architecture}.{key}");
        let found = header.number(&key);
        found
            .filter(|&found| found > 0 && found <= 1 << 31)
            .ok_or_else(|| match header.entries.get(&key) {
                Some(value) => {
                    // Some models have a list here, one number for each layer.
                    let shown: String = format!("{value:?}").chars().take(80).collect();
                    Finding::unsupported(&key, shown)
                }
                None => Finding::unsupported(&key, "nothing"),
            })
    };
    let float = |key: &str, default: Option<f64>| {
        let key = format!("{architecture}.{key}");
        let found = match header.entries.get(&key) {
            Some(value) => value.as_f64(),
            None => default,
        };
        found
            .filter(|found| found.is_finite() && *found > 0.0)
            .ok_or_else(|| Finding::unsupported(&key, "no positive number"))
    };
    let (hidden, heads) = (number("embedding_length")?, number("attention.head_count")?);
    let layers = number("block_count")?;
    if layers > 1 << 10 {
        return Err(Finding::unsupported("block_count", layers));
    }
    let head_length = match header.number(&format!("{architecture}.attention.key_length")) {
        Some(length) => length.min(1 << 31),
        None => hidden / heads,
    };
    let kv_heads = match header.number(&format!("{architecture}.attention.head_count_kv")) {
        Some(heads) => heads.min(1 << 31),
        None => heads,
    };
    Ok(ModelConfig {
        family,
        context_length: number("context_length")?,
        hidden,
        layers,
        feed_forward: number("feed_forward_length")?,
        heads,
        kv_heads,
        head_length,
        vocabulary,
        rope_base: float("rope.freq_base", Some(10_000.0))?,
        norm_epsilon: float("attention.layer_norm_rms_epsilon", None)?,
        tied,
    })
}

fn hold_tensors(header: &Header, config: &ModelConfig, findings: &mut Vec<Finding>) {
    let mut left: BTreeMap<&str, &TensorInfo> = header
        .tensors
        .iter()
        .map(|tensor| (tensor.name.as_str(), tensor))
        .collect();
    for expected in expected_tensors(config) {
        hold_tensor(expected, &mut left, findings);
    }
    let optional: BTreeSet<&str> = match config.family {
        Family::Llama => BTreeSet::from([ROPE_FACTORS]),
        Family::Qwen2 => BTreeSet::new(),
    };
    for name in left.into_keys().filter(|name| !optional.contains(name)) {
        let name = name.to_owned();
        findings.push(Finding::ExtraTensor { name });
    }
}

fn hold_sentence_tensors(header: &Header, config: &SentenceConfig, findings: &mut Vec<Finding>) {
    let mut left: BTreeMap<&str, &TensorInfo> = header
        .tensors
        .iter()
        .map(|tensor| (tensor.name.as_str(), tensor))
        .collect();
    for expected in config.tensors() {
        hold_tensor(expected, &mut left, findings);
    }
    for name in left.into_keys() {
        let name = name.to_owned();
        findings.push(Finding::ExtraTensor { name });
    }
}

fn hold_tensor(
    expected: Expected,
    left: &mut BTreeMap<&str, &TensorInfo>,
    findings: &mut Vec<Finding>,
) {
    let Some(tensor) = left.remove(expected.target.as_str()) else {
        let name = expected.target;
        findings.push(Finding::MissingTensor { name });
        return;
    };
    let dimensions = expected.dimensions();
    if tensor.dimensions != dimensions {
        findings.push(Finding::WrongShape {
            name: expected.target.clone(),
            expected: dimensions,
            found: tensor.dimensions.clone(),
        });
    }
    // llama.cpp computes with norms and biases in F32 and takes nothing else.
    if expected.shape.len() == 1 && tensor.kind != TensorKind::F32 {
        findings.push(Finding::WrongType {
            name: expected.target,
            expected: TensorKind::F32.to_string(),
            found: tensor.kind.to_string(),
        });
    }
}
