//! What a check found, in types.

use std::fmt::Display;
use std::io;

use factum_base::Digest;
use thiserror::Error;

use super::gguf::GgufError;
use super::tokenizer::TokenizerError;
use crate::pins::FileDigest;

/// What [`TokenizerDigest`] is a digest of.
#[derive(Debug)]
pub enum TokenizerData {}

/// SHA-256 of `tokenizer.json`, or of what a GGUF file says of its tokenizer: its `tokenizer.*` entries but
/// for the chat template, in order of their keys, each as its bytes stand in the file.
pub type TokenizerDigest = Digest<TokenizerData>;

/// What [`TemplateDigest`] is a digest of.
#[derive(Debug)]
pub enum TemplateText {}

/// SHA-256 of a chat template's text.
pub type TemplateDigest = Digest<TemplateText>;

/// Something that is wrong with a model's files.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Finding {
    /// A tensor that the configuration asks for is not there.
    #[error("tensor {name} is missing")]
    MissingTensor {
        /// Its name.
        name: String,
    },
    /// A tensor is there that the configuration does not know.
    #[error("tensor {name} is not one of this model's")]
    ExtraTensor {
        /// Its name.
        name: String,
    },
    /// A tensor has another shape than the configuration says.
    #[error("tensor {name} has shape {found:?}; {expected:?} was expected")]
    WrongShape {
        /// Its name.
        name: String,
        /// As the configuration has it.
        expected: Vec<u64>,
        /// As it is.
        found: Vec<u64>,
    },
    /// A tensor's numbers have another type than the configuration says.
    #[error("tensor {name} holds {found} numbers; {expected} was expected")]
    WrongType {
        /// Its name.
        name: String,
        /// As the configuration has it.
        expected: String,
        /// As it is.
        found: String,
    },
    /// The configuration says that the output head is the embedding, and it is not.
    #[error("the output head is not the embedding, as the configuration says it is")]
    UntiedHead,
    /// A file is shorter than its own header says.
    #[error(
        "{file} is truncated: it has {found} bytes, and its header asks for at least {expected}"
    )]
    TruncatedFile {
        /// Which.
        file: String,
        /// As its header has it.
        expected: u64,
        /// As it is.
        found: u64,
    },
    /// A file goes on after its data.
    #[error(
        "{file} goes on after its data: it has {found} bytes, and its header asks for {expected}"
    )]
    TrailingBytes {
        /// Which.
        file: String,
        /// As its header has it.
        expected: u64,
        /// As it is.
        found: u64,
    },
    /// A file's header can't be read.
    #[error("{file} has no readable header: {message}")]
    BadHeader {
        /// Which.
        file: String,
        /// Why.
        message: String,
    },
    /// A file that a model needs is not there.
    #[error("{file} is missing")]
    MissingFile {
        /// Which.
        file: String,
    },
    /// The index of the shards does not say what the shards hold.
    #[error("the index of the shards and the shards differ: {message}")]
    BadIndex {
        /// How.
        message: String,
    },
    /// The configuration can't be read.
    #[error("the configuration can't be read: {message}")]
    BadConfig {
        /// Why.
        message: String,
    },
    /// The configuration asks for what is not understood here.
    #[error("the configuration has {field} = {found}, which is not supported")]
    Unsupported {
        /// Which field.
        field: String,
        /// What it says.
        found: String,
    },
    /// Two parts of a model contradict each other.
    #[error("{field} is {found}; {expected} was expected")]
    ConfigMismatch {
        /// What they differ in.
        field: String,
        /// What one says.
        expected: String,
        /// What the other says.
        found: String,
    },
    /// The tokenizer can't be used as it is.
    #[error("the tokenizer can't be used: {0}")]
    Tokenizer(TokenizerError),
    /// The tokenizer is not the pinned one.
    #[error("the tokenizer's digest is {found}; {expected} is pinned")]
    TokenizerDigest {
        /// As pinned.
        expected: TokenizerDigest,
        /// As it is.
        found: TokenizerDigest,
    },
    /// The chat template is not the pinned one.
    #[error("the chat template's digest is {}; {expected} is pinned", found.map_or_else(|| "missing".to_owned(), |digest| digest.to_hex()))]
    TemplateDigest {
        /// As pinned.
        expected: TemplateDigest,
        /// As it is; none where there is no template.
        found: Option<TemplateDigest>,
    },
    /// There is no chat template.
    #[error("there is no chat template")]
    MissingTemplate,
    /// A file is not the pinned one.
    #[error("{file} has digest {found}; {expected} is pinned")]
    FileDigest {
        /// Which.
        file: String,
        /// As pinned or recorded.
        expected: FileDigest,
        /// As it is.
        found: FileDigest,
    },
}

impl Finding {
    pub(crate) fn unsupported(field: &str, found: impl Display) -> Self {
        Self::Unsupported {
            field: field.to_owned(),
            found: found.to_string(),
        }
    }

    pub(crate) fn mismatch(field: &str, expected: impl Display, found: impl Display) -> Self {
        Self::ConfigMismatch {
            field: field.to_owned(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}

/// What a check saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckFacts {
    /// The architecture, as GGUF names it.
    pub architecture: Option<String>,
    /// How many tensors there are.
    pub tensors: u64,
    /// How many numbers they hold.
    pub parameters: u64,
    /// Types of numbers, with how many tensors have them, by name.
    pub kinds: Vec<(String, u64)>,
    /// Bytes of the weights.
    pub bytes: u64,
    /// Tokens of the vocabulary.
    pub vocabulary: u64,
    /// Longest context that the model was made for.
    pub context_length: u64,
    /// Whether the output head is the embedding.
    pub tied: bool,
    /// How text is split before merges are applied, as llama.cpp names it.
    pub pre_tokenizer: Option<String>,
    /// The tokenizer.
    pub tokenizer: Option<TokenizerDigest>,
    /// The chat template.
    pub template: Option<TemplateDigest>,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// What is wrong; nothing where the model loads.
    pub findings: Vec<Finding>,
    /// What was seen.
    pub facts: CheckFacts,
}

impl CheckReport {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Holds what was seen to what is pinned.
    pub fn expect(&mut self, tokenizer: Option<TokenizerDigest>, template: Option<TemplateDigest>) {
        if let (Some(expected), Some(found)) = (tokenizer, self.facts.tokenizer)
            && expected != found
        {
            self.findings
                .push(Finding::TokenizerDigest { expected, found });
        }
        if let Some(expected) = template
            && self.facts.template != Some(expected)
        {
            let found = self.facts.template;
            self.findings
                .push(Finding::TemplateDigest { expected, found });
        }
    }
}

/// Why a check could not be made.
#[derive(Debug, Error)]
pub enum CheckError {
    /// A file could not be read.
    #[error("{file} can't be read: {source}")]
    Read {
        /// Which.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The call was cancelled.
    #[error("stopped before the check was done")]
    Cancelled,
}

impl CheckError {
    pub(crate) fn read(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let file = path.display().to_string();
        move |source| Self::Read { file, source }
    }
}

/// A header that can't be read is a finding about the file; a disk that can't be read is an error.
pub(crate) fn header_finding(file: &str, error: &GgufError) -> Finding {
    Finding::BadHeader {
        file: file.to_owned(),
        message: error.to_string(),
    }
}
