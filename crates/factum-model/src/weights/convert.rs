//! A checked Safetensors folder, written as one GGUF file: BF16, or F32 for a sentence model.
//!
//! The file's name holds the digest of the sources and the converter's version, so a file that is there is the
//! one that would be made. A small record beside it holds its digest.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::bf16::widen;
use super::check::{Described, check_dir};
use super::config::ModelConfig;
use super::expected::{Expected, Transfer};
use super::gguf::{HeaderWriter, TensorKind, TensorPlan, Value};
use super::report::{CheckError, Finding};
use super::rope_rows::permute_head;
use super::safetensors_dir::StoredTensor;
use super::sentence::{GGUF_ARCHITECTURE, POOLING_FILE};
use super::tokenizer::Normalizer;
use crate::pins::{DigestedFile, FileDigest, Stamp};

/// The version of what this module writes. It is part of a converted file's name, and belongs into the identity
/// of a model that was converted.
pub const CONVERTER_VERSION: &str = "1";

/// GGUF's code for files whose matrices are BF16.
const FILE_TYPE_BF16: u32 = 32;
/// GGUF's code for files whose numbers are F32.
const FILE_TYPE_F32: u32 = 0;
const CHUNK: usize = 1 << 20;
const ALIGNMENT: u64 = super::gguf::DEFAULT_ALIGNMENT;

/// Why there is no converted file.
#[derive(Debug, Error)]
pub enum ConvertError {
    /// The folder is not what it must be.
    #[error("the model can't be converted: {}", list(findings))]
    Refused {
        /// Why.
        findings: Vec<Finding>,
    },
    /// The folder could not be checked.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A file could not be read or written.
    #[error("{file}: {source}")]
    File {
        /// Which.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The call was cancelled; nothing was left behind.
    #[error("stopped before the conversion was done")]
    Cancelled,
}

fn list(findings: &[Finding]) -> String {
    let shown: Vec<String> = findings.iter().take(5).map(ToString::to_string).collect();
    let more = findings.len().saturating_sub(5);
    if more > 0 {
        format!("{} (and {more} more)", shown.join("; "))
    } else {
        shown.join("; ")
    }
}

/// A model that llama.cpp reads, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedModel {
    /// The GGUF file.
    pub path: PathBuf,
    /// Its digest.
    pub sha256: FileDigest,
    /// The digest over the names and digests of the sources.
    pub source: FileDigest,
    /// What has to be done to a text before it is tokenized.
    pub normalizer: Normalizer,
    /// Whether the file was there already.
    pub reused: bool,
}

/// What is kept beside a converted file.
#[derive(Serialize, Deserialize)]
struct Note {
    sha256: FileDigest,
    stamp: Stamp,
}

/// Converts the Safetensors folder `dir`, whose files have these digests, into a file in `out`. If it is there
/// already, it is not made again.
///
/// # Errors
/// The folder is not exactly what its configuration says, files can't be read or written, or the call was
/// cancelled.
pub fn convert(
    dir: &Path,
    sources: &[DigestedFile],
    out: &Path,
    cancel: &CancellationToken,
) -> Result<ConvertedModel, ConvertError> {
    let (path, source) = converted_path(sources, out);
    let checked = check_dir(dir, cancel)?;
    let findings = checked.report.findings.clone();
    let (Some(described), true) = (checked.described, findings.is_empty()) else {
        return Err(ConvertError::Refused { findings });
    };
    let normalizer = described.normalizer();
    if let Some(sha256) = kept(&path) {
        return Ok(ConvertedModel {
            path,
            sha256,
            source,
            normalizer,
            reused: true,
        });
    }
    std::fs::create_dir_all(out).map_err(in_file(out))?;
    let sha256 = write_file(described, &checked.tensors, source, &path, cancel)?;
    Ok(ConvertedModel {
        path,
        sha256,
        source,
        normalizer,
        reused: false,
    })
}

/// The digests of the file that was made of these sources, and of the sources, if it is there as it was made.
pub fn converted(sources: &[DigestedFile], out: &Path) -> Option<(FileDigest, FileDigest)> {
    let (path, source) = converted_path(sources, out);
    kept(&path).map(|sha256| (sha256, source))
}

fn converted_path(sources: &[DigestedFile], out: &Path) -> (PathBuf, FileDigest) {
    let source = source_digest(sources);
    let sentence = sources.iter().any(|file| file.name == POOLING_FILE);
    let kind = if sentence { "f32" } else { "bf16" };
    let name = format!("{kind}-{}-{CONVERTER_VERSION}.gguf", &source.to_hex()[..16]);
    (out.join(name), source)
}

/// The digest over the sources' names and digests, in order of their names.
fn source_digest(sources: &[DigestedFile]) -> FileDigest {
    let mut lines: Vec<String> = sources
        .iter()
        .map(|file| format!("{}  {}\n", file.sha256, file.name))
        .collect();
    lines.sort();
    FileDigest::of(lines.concat().as_bytes())
}

fn note_path(path: &Path) -> PathBuf {
    path.with_extension("gguf.json")
}

/// The digest of a converted file that is there, unless it was touched since it was written.
fn kept(path: &Path) -> Option<FileDigest> {
    let note: Note = serde_json::from_slice(&std::fs::read(note_path(path)).ok()?).ok()?;
    let stamp = Stamp::of(path).ok()?;
    (stamp == note.stamp).then_some(note.sha256)
}

fn in_file(path: &Path) -> impl Fn(io::Error) -> ConvertError {
    let file = path.display().to_string();
    move |source| ConvertError::File {
        file: file.clone(),
        source,
    }
}

fn write_file(
    described: Described,
    tensors: &BTreeMap<String, StoredTensor>,
    source: FileDigest,
    path: &Path,
    cancel: &CancellationToken,
) -> Result<FileDigest, ConvertError> {
    let out = path.parent().unwrap_or(Path::new("."));
    let failed = in_file(path);
    let temporary = tempfile::Builder::new()
        .prefix(".converting-")
        .tempfile_in(out)
        .map_err(&failed)?;
    let plan = described.tensors();
    let header = header(described, source, &plan);
    let mut sink = Sink {
        file: BufWriter::with_capacity(CHUNK, temporary.as_file()),
        hasher: Sha256::new(),
        written: 0,
    };
    sink.put(&header).map_err(&failed)?;
    for expected in &plan {
        if cancel.is_cancelled() {
            return Err(ConvertError::Cancelled);
        }
        let Some(tensor) = tensors.get(&expected.source) else {
            let name = expected.source.clone();
            let findings = vec![Finding::MissingTensor { name }];
            return Err(ConvertError::Refused { findings });
        };
        transfer(expected, tensor, &mut sink, cancel)?;
        sink.align().map_err(&failed)?;
    }
    let sha256 = sink.finish().map_err(&failed)?;
    temporary.as_file().sync_all().map_err(&failed)?;
    temporary
        .persist(path)
        .map_err(|error| failed(error.error))?;
    write_note(path, sha256).map_err(&failed)?;
    Ok(sha256)
}

fn write_note(path: &Path, sha256: FileDigest) -> io::Result<()> {
    let stamp = Stamp::of(path)?;
    let text = serde_json::to_vec(&Note { sha256, stamp }).map_err(io::Error::other)?;
    crate::pins::write_atomically(&note_path(path), &text)
}

fn header(described: Described, source: FileDigest, plan: &[Expected]) -> Vec<u8> {
    let (architecture, file_type, parts) = match described {
        Described::Language(config, tokenizer) => {
            let mut parts = language_entries(&config);
            parts.extend(tokenizer.into_entries());
            (config.family.architecture(), FILE_TYPE_BF16, parts)
        }
        Described::Sentence(config, tokenizer) => {
            let mut parts = config.entries();
            parts.extend(tokenizer.into_entries());
            (GGUF_ARCHITECTURE, FILE_TYPE_F32, parts)
        }
    };
    let mut writer = HeaderWriter::default();
    let text = |text: &str| Value::String(text.to_owned());
    writer.entry("general.architecture", &text(architecture));
    writer.entry("general.type", &text("model"));
    writer.entry("general.file_type", &Value::U32(file_type));
    writer.entry("factum.converter", &text(CONVERTER_VERSION));
    writer.entry("factum.source", &text(&source.to_hex()));
    for (key, value) in parts {
        writer.entry(&key, &value);
    }
    let tensors: Vec<TensorPlan> = plan.iter().map(planned).collect();
    writer.finish(&tensors)
}

fn language_entries(config: &ModelConfig) -> Vec<(String, Value)> {
    let architecture = config.family.architecture();
    // The configuration holds every one of these far below 2^32.
    let number = |value: u64| Value::U32(u32::try_from(value).unwrap_or(u32::MAX));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "GGUF has these as 32-bit floats"
    )]
    let float = |value: f64| Value::F32(value as f32);
    let fields = [
        ("vocab_size", number(config.vocabulary)),
        ("context_length", number(config.context_length)),
        ("embedding_length", number(config.hidden)),
        ("block_count", number(config.layers)),
        ("feed_forward_length", number(config.feed_forward)),
        ("attention.head_count", number(config.heads)),
        ("attention.head_count_kv", number(config.kv_heads)),
        ("attention.key_length", number(config.head_length)),
        ("attention.value_length", number(config.head_length)),
        ("rope.dimension_count", number(config.head_length)),
        ("rope.freq_base", float(config.rope_base)),
        (
            "attention.layer_norm_rms_epsilon",
            float(config.norm_epsilon),
        ),
    ];
    let named = |(field, value)| (format!("{architecture}.{field}"), value);
    fields.into_iter().map(named).collect()
}

fn planned(expected: &Expected) -> TensorPlan {
    TensorPlan {
        name: expected.target.clone(),
        dimensions: expected.dimensions(),
        kind: match expected.transfer {
            Transfer::Widened | Transfer::Floats => TensorKind::F32,
            Transfer::Copied | Transfer::Rows { .. } => TensorKind::BF16,
        },
    }
}

fn transfer(
    expected: &Expected,
    tensor: &StoredTensor,
    sink: &mut Sink<'_>,
    cancel: &CancellationToken,
) -> Result<(), ConvertError> {
    let from = in_file(&tensor.file);
    let mut source = tensor.open().map_err(&from)?;
    let rows = expected.shape.first().copied().unwrap_or(1).max(1);
    // A head at a time where rows move, else as much as is convenient; a head is a few hundred rows.
    let step = match expected.transfer {
        Transfer::Rows { heads } => tensor.length / heads.max(1),
        Transfer::Copied | Transfer::Widened | Transfer::Floats => CHUNK as u64,
    };
    let row_bytes = usize::try_from(tensor.length / rows).unwrap_or(0);
    let mut rest = tensor.length;
    while rest > 0 {
        if cancel.is_cancelled() {
            return Err(ConvertError::Cancelled);
        }
        let mut chunk = Vec::new();
        let wanted = step.clamp(1, rest);
        let read = (&mut source).take(wanted).read_to_end(&mut chunk);
        if read.map_err(&from)? as u64 != wanted {
            return Err(from(io::ErrorKind::UnexpectedEof.into()));
        }
        rest -= wanted;
        let chunk = match expected.transfer {
            Transfer::Copied | Transfer::Floats => chunk,
            Transfer::Widened => widen(&chunk),
            Transfer::Rows { .. } => permute_head(&chunk, row_bytes),
        };
        sink.put(&chunk).map_err(&from)?;
    }
    Ok(())
}

/// Writes and digests at once.
struct Sink<'a> {
    file: BufWriter<&'a File>,
    hasher: Sha256,
    written: u64,
}

impl Sink<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn align(&mut self) -> io::Result<()> {
        let padding = self.written.next_multiple_of(ALIGNMENT) - self.written;
        let zeros: Vec<u8> = (0..padding).map(|_| 0).collect();
        self.put(&zeros)
    }

    fn finish(mut self) -> io::Result<FileDigest> {
        self.file.flush()?;
        Ok(FileDigest::from_bytes(self.hasher.finalize().into()))
    }
}
