//! Weights: what a model's files must hold, whether they do, and Safetensors turned into GGUF bit for bit.
//!
//! Every file here may be hostile: headers are bounded, weights are streamed, and a file that is not
//! exactly what its configuration says is refused with typed [`Finding`]s. Nothing here runs a model, knows
//! how files are fetched or touches the network.
//!
//! - [`check_model`] says what is wrong with a Safetensors folder or a GGUF file.
//! - [`convert`] writes a checked Safetensors folder as one BF16 GGUF file. Matrices are copied bit for bit
//!   (for the Llama family the rows of the query and key matrices change places, as llama.cpp's rotary
//!   embedding wants them). Vectors, that is norms and biases, are stored as F32, since llama.cpp computes
//!   with them in F32; every BF16 number is an F32 number, so nothing is lost. Sentence models (BERT) hold F32 and
//!   keep it.

mod bf16;
mod chat_template;
mod check;
mod config;
mod convert;
mod expected;
pub mod gguf;
mod pre_tokenizer;
mod report;
mod rope_rows;
mod safetensors_dir;
mod sentence;
mod tokenizer;
mod wordpiece;

pub use check::{check_gguf_header, check_model};
pub use config::{Family, ModelConfig};
pub use convert::{CONVERTER_VERSION, ConvertError, ConvertedModel, convert, converted};
pub use report::{
    CheckError, CheckFacts, CheckReport, Finding, TemplateDigest, TemplateText, TokenizerData,
    TokenizerDigest,
};
pub(crate) use safetensors_dir::read_bounded;
pub use safetensors_dir::source_files;
#[cfg(feature = "local")]
pub(crate) use sentence::{GGUF_ARCHITECTURE, SentenceConfig};
pub use tokenizer::{NORMALIZER_KEY, Normalizer, TokenizerError};
