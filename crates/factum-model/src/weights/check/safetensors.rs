//! The strict check of a Safetensors folder: a language model's, or a sentence model's.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use safetensors::Dtype;
use tokio_util::sync::CancellationToken;

use crate::weights::config::{CONFIG_FILE, ModelConfig};
use crate::weights::expected::{EMBEDDING, Expected, HEAD, expected_tensors};
use crate::weights::report::{CheckError, CheckReport, Finding};
use crate::weights::safetensors_dir::{Shards, StoredTensor, open_shards, read_bounded};
use crate::weights::sentence::{
    GGUF_ARCHITECTURE, POSITION_IDS, SentenceConfig, is_sentence_model,
};
use crate::weights::tokenizer::{Normalizer, Tokenizer};
use crate::weights::wordpiece::WordPiece;

const MAX_CONFIG_BYTES: u64 = 1 << 20;
const CHUNK: usize = 1 << 20;

/// A folder that was checked, with what is needed to convert it.
#[derive(Debug)]
pub(crate) struct CheckedDir {
    /// What was found.
    pub(crate) report: CheckReport,
    /// What its small files say, where all of them could be read.
    pub(crate) described: Option<Described>,
    /// The tensors.
    pub(crate) tensors: BTreeMap<String, StoredTensor>,
}

/// What a model is, by its configuration and tokenizer.
#[derive(Debug)]
pub(crate) enum Described {
    /// It writes text.
    Language(ModelConfig, Tokenizer),
    /// It makes vectors of sentences.
    Sentence(SentenceConfig, WordPiece),
}

impl Described {
    /// What has to be done to a text before it is tokenized.
    pub(crate) const fn normalizer(&self) -> Normalizer {
        match self {
            Self::Language(_, tokenizer) => tokenizer.normalizer,
            Self::Sentence(_, tokenizer) => tokenizer.normalizer(),
        }
    }

    /// The tensors that are converted, in the order in which they are written.
    pub(crate) fn tensors(&self) -> Vec<Expected> {
        match self {
            Self::Language(config, _) => expected_tensors(config).collect(),
            Self::Sentence(config, _) => config.tensors(),
        }
    }
}

/// Checks a folder.
pub(crate) fn check_dir(dir: &Path, cancel: &CancellationToken) -> Result<CheckedDir, CheckError> {
    let shards = open_shards(dir)?;
    if is_sentence_model(dir) {
        return Ok(check_sentence_dir(dir, shards));
    }
    let Shards {
        tensors,
        mut findings,
        bytes,
    } = shards;
    let broken = !findings.is_empty();
    let config = match read_config(dir) {
        Ok(config) => Some(config),
        Err(finding) => {
            findings.push(finding);
            None
        }
    };
    let mut tokenizer = None;
    if let Some(config) = &config {
        // With a part that can't be read, all its tensors would be called missing.
        if !broken || !tensors.is_empty() {
            let shape = || vec![config.vocabulary, config.hidden];
            let head = config.tied.then(|| (HEAD, shape(), Dtype::BF16));
            hold_tensors(expected_tensors(config), head, &tensors, &mut findings);
        }
        if config.tied && !broken {
            hold_head(&tensors, cancel, &mut findings)?;
        }
        match Tokenizer::read(dir, config.vocabulary) {
            Ok(read) => tokenizer = Some(read),
            Err(error) => findings.push(Finding::Tokenizer(error)),
        }
    }
    let mut report = CheckReport {
        findings,
        ..CheckReport::default()
    };
    fill_facts(&mut report, &tensors, bytes);
    if let Some(config) = &config {
        let facts = &mut report.facts;
        facts.architecture = Some(config.family.architecture().to_owned());
        facts.vocabulary = config.vocabulary;
        facts.context_length = config.context_length;
        facts.tied = config.tied;
    }
    if let Some(tokenizer) = &tokenizer {
        if tokenizer.template.is_none() {
            report.findings.push(Finding::MissingTemplate);
        }
        report.facts.tokenizer = Some(tokenizer.digest);
        report.facts.template = tokenizer.template_digest();
        report.facts.pre_tokenizer = Some(tokenizer.pre.name.to_owned());
    }
    let described = config.zip(tokenizer);
    Ok(CheckedDir {
        report,
        described: described.map(|(config, tokenizer)| Described::Language(config, tokenizer)),
        tensors,
    })
}

fn check_sentence_dir(dir: &Path, shards: Shards) -> CheckedDir {
    let Shards {
        tensors,
        mut findings,
        bytes,
    } = shards;
    let broken = !findings.is_empty();
    let mut report = CheckReport::default();
    fill_facts(&mut report, &tensors, bytes);
    report.facts.architecture = Some(GGUF_ARCHITECTURE.to_owned());
    let mut described = None;
    match SentenceConfig::read(dir) {
        Ok(config) => {
            report.facts.vocabulary = config.vocabulary;
            report.facts.context_length = config.max_tokens;
            if !broken || !tensors.is_empty() {
                // Parts that are there for other uses of the model have to be what they are called.
                let unused = config.unused().into_iter().map(|(name, shape)| {
                    let counts = name == POSITION_IDS;
                    (name, shape, if counts { Dtype::I64 } else { Dtype::F32 })
                });
                hold_tensors(config.tensors(), unused, &tensors, &mut findings);
            }
            match WordPiece::read(dir, config.vocabulary) {
                Ok(tokenizer) => {
                    report.facts.tokenizer = Some(tokenizer.digest);
                    described = Some(Described::Sentence(config, tokenizer));
                }
                Err(error) => findings.push(Finding::Tokenizer(error)),
            }
        }
        Err(finding) => findings.push(finding),
    }
    report.findings = findings;
    CheckedDir {
        report,
        described,
        tensors,
    }
}

fn hold_tensor(expected: &Expected, tensor: Option<&StoredTensor>, findings: &mut Vec<Finding>) {
    let name = expected.source.clone();
    match tensor {
        Some(tensor) => {
            let dtype = expected.transfer.source_type();
            hold_shape(&name, &expected.shape, dtype, tensor, findings);
        }
        None => findings.push(Finding::MissingTensor { name }),
    }
}

fn read_config(dir: &Path) -> Result<ModelConfig, Finding> {
    let path = dir.join(CONFIG_FILE);
    if !path.is_file() {
        let file = CONFIG_FILE.to_owned();
        return Err(Finding::MissingFile { file });
    }
    let bytes = read_bounded(&path, MAX_CONFIG_BYTES).map_err(|error| Finding::BadConfig {
        message: error.to_string(),
    })?;
    ModelConfig::parse(&bytes)
}

/// Every expected tensor is there with its shape and type, and no other but those that may be there.
fn hold_tensors(
    all: impl IntoIterator<Item = Expected>,
    allowed: impl IntoIterator<Item = (&'static str, Vec<u64>, Dtype)>,
    tensors: &BTreeMap<String, StoredTensor>,
    findings: &mut Vec<Finding>,
) {
    let mut left: BTreeMap<&str, &StoredTensor> =
        tensors.iter().map(|(name, t)| (name.as_str(), t)).collect();
    for expected in all {
        hold_tensor(&expected, left.remove(expected.source.as_str()), findings);
    }
    for (name, shape, dtype) in allowed {
        if let Some(tensor) = left.remove(name) {
            hold_shape(name, &shape, dtype, tensor, findings);
        }
    }
    for name in left.into_keys() {
        let name = name.to_owned();
        findings.push(Finding::ExtraTensor { name });
    }
}

fn hold_shape(
    name: &str,
    shape: &[u64],
    dtype: Dtype,
    tensor: &StoredTensor,
    findings: &mut Vec<Finding>,
) {
    if tensor.shape != shape {
        findings.push(Finding::WrongShape {
            name: name.to_owned(),
            expected: shape.to_vec(),
            found: tensor.shape.clone(),
        });
    }
    if tensor.dtype != dtype {
        findings.push(Finding::WrongType {
            name: name.to_owned(),
            expected: format!("{dtype:?}"),
            found: format!("{:?}", tensor.dtype),
        });
    }
}

/// A head that is there although it is tied has to be the embedding, bit for bit.
fn hold_head(
    tensors: &BTreeMap<String, StoredTensor>,
    cancel: &CancellationToken,
    findings: &mut Vec<Finding>,
) -> Result<(), CheckError> {
    let (Some(head), Some(embedding)) = (tensors.get(HEAD), tensors.get(EMBEDDING)) else {
        return Ok(());
    };
    let open = |tensor: &StoredTensor| tensor.open().map_err(CheckError::read(&tensor.file));
    let (mut left, mut right) = (open(head)?, open(embedding)?);
    let mut rest = embedding.length;
    let mut same = head.length == embedding.length;
    let (mut a, mut b) = (vec![0; CHUNK], vec![0; CHUNK]);
    while same && rest > 0 {
        if cancel.is_cancelled() {
            return Err(CheckError::Cancelled);
        }
        let step = usize::try_from(rest).unwrap_or(CHUNK).min(CHUNK);
        let read: io::Result<()> = left
            .read_exact(&mut a[..step])
            .and_then(|()| right.read_exact(&mut b[..step]));
        read.map_err(CheckError::read(&head.file))?;
        same = a[..step] == b[..step];
        rest -= step as u64;
    }
    if !same {
        findings.push(Finding::UntiedHead);
    }
    Ok(())
}

fn fill_facts(report: &mut CheckReport, tensors: &BTreeMap<String, StoredTensor>, bytes: u64) {
    let facts = &mut report.facts;
    facts.bytes = bytes;
    facts.tensors = tensors.len() as u64;
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for tensor in tensors.values() {
        *kinds.entry(format!("{:?}", tensor.dtype)).or_default() += 1;
        let numbers = tensor.length.saturating_mul(8) / tensor.dtype.bitsize().max(1) as u64;
        facts.parameters = facts.parameters.saturating_add(numbers);
    }
    facts.kinds = kinds.into_iter().collect();
}
