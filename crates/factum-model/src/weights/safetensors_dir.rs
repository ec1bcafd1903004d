//! A folder of Safetensors: the shards' headers, and where each tensor's bytes are.
//!
//! Only headers are kept; weights are read where they are asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::Deserialize;

use super::chat_template::TEMPLATE_FILE;
use super::config::CONFIG_FILE;
use super::report::{CheckError, Finding};
use super::sentence::{LENGTH_FILE, MODULES_FILE, POOLING_FILE};
use super::tokenizer::{TOKENIZER_CONFIG_FILE, TOKENIZER_FILE};

/// The name of the only file of a model in one part.
pub(crate) const SINGLE: &str = "model.safetensors";
/// The name of the list of parts.
pub(crate) const INDEX: &str = "model.safetensors.index.json";
/// Longest list of parts.
const MAX_INDEX_BYTES: u64 = 64 << 20;
/// Longest header, as the format has it.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Where a tensor is, and what.
#[derive(Debug, Clone)]
pub(crate) struct StoredTensor {
    /// Its shape, rows first.
    pub(crate) shape: Vec<u64>,
    /// The type of its numbers.
    pub(crate) dtype: Dtype,
    /// The file that holds it.
    pub(crate) file: PathBuf,
    /// Where its data begins in the file.
    pub(crate) start: u64,
    /// Bytes of its data.
    pub(crate) length: u64,
}

/// The tensors of a folder, and what is wrong with its files.
#[derive(Debug, Default)]
pub(crate) struct Shards {
    /// By name.
    pub(crate) tensors: BTreeMap<String, StoredTensor>,
    /// What is wrong.
    pub(crate) findings: Vec<Finding>,
    /// Bytes of all parts.
    pub(crate) bytes: u64,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The names of the files that hold the weights of a folder, in order.
///
/// # Errors
/// There is none, or the list of parts can't be used; a finding says so.
pub(crate) fn weight_files(dir: &Path) -> Result<Vec<String>, Finding> {
    if !dir.join(INDEX).exists() {
        if dir.join(SINGLE).is_file() {
            return Ok(vec![SINGLE.to_owned()]);
        }
        let file = SINGLE.to_owned();
        return Err(Finding::MissingFile { file });
    }
    let parts: BTreeSet<String> = read_index(dir)?.weight_map.into_values().collect();
    Ok(parts.into_iter().collect())
}

/// The names of all files of a Safetensors folder that can change an answer, in order.
///
/// # Errors
/// There are no weights; a finding says so.
pub fn source_files(dir: &Path) -> Result<Vec<String>, Finding> {
    let mut names = weight_files(dir)?;
    let others = [
        CONFIG_FILE,
        TOKENIZER_FILE,
        TOKENIZER_CONFIG_FILE,
        TEMPLATE_FILE,
        INDEX,
        MODULES_FILE,
        POOLING_FILE,
        LENGTH_FILE,
    ];
    let there = others.into_iter().filter(|name| dir.join(name).is_file());
    names.extend(there.map(str::to_owned));
    names.sort();
    Ok(names)
}

fn read_index(dir: &Path) -> Result<Index, Finding> {
    let bad = |message: String| Finding::BadIndex { message };
    let bytes = read_bounded(&dir.join(INDEX), MAX_INDEX_BYTES).map_err(|e| bad(e.to_string()))?;
    let index: Index = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
    for part in index.weight_map.values() {
        let plain = part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let named = Path::new(part)
            .extension()
            .is_some_and(|extension| extension == "safetensors");
        if !plain || !named {
            return Err(bad(format!("{part:?} is no name of a part")));
        }
    }
    Ok(index)
}

/// A whole file, unless it is longer than `most`.
pub(crate) fn read_bounded(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(std::io::Error::other(format!("longer than {most} bytes")));
    }
    Ok(bytes)
}

/// Reads the headers of all parts.
///
/// # Errors
/// A file can't be read.
pub(crate) fn open_shards(dir: &Path) -> Result<Shards, CheckError> {
    let mut shards = Shards::default();
    let parts = match weight_files(dir) {
        Ok(parts) => parts,
        Err(finding) => {
            shards.findings.push(finding);
            return Ok(shards);
        }
    };
    let mut home: BTreeMap<String, String> = BTreeMap::new();
    for part in parts {
        let path = dir.join(&part);
        if !path.is_file() {
            shards.findings.push(Finding::MissingFile { file: part });
            continue;
        }
        for (name, tensor) in open_part(&path, &part, &mut shards)? {
            if shards.tensors.insert(name.clone(), tensor).is_some() {
                shards.findings.push(Finding::BadIndex {
                    message: format!("{name} is in more than one part"),
                });
            }
            home.insert(name, part.clone());
        }
    }
    if dir.join(INDEX).exists()
        && let Ok(index) = read_index(dir)
    {
        hold_index_to_parts(&index, &home, &mut shards.findings);
    }
    Ok(shards)
}

fn hold_index_to_parts(
    index: &Index,
    home: &BTreeMap<String, String>,
    findings: &mut Vec<Finding>,
) {
    for (name, part) in &index.weight_map {
        if home.get(name) != Some(part) {
            findings.push(Finding::BadIndex {
                message: format!("{name} is not in {part}"),
            });
        }
    }
    for (name, part) in home {
        if !index.weight_map.contains_key(name) {
            findings.push(Finding::BadIndex {
                message: format!("{name} is in {part}, and the index does not know it"),
            });
        }
    }
}

/// Reads the header of a part, holds the file's length to it, and says where its tensors are.
fn open_part(
    path: &Path,
    part: &str,
    shards: &mut Shards,
) -> Result<Vec<(String, StoredTensor)>, CheckError> {
    let mut file = File::open(path).map_err(CheckError::read(path))?;
    let length = file.metadata().map_err(CheckError::read(path))?.len();
    shards.bytes += length;
    let (start, metadata) = match read_part_header(&mut file, length) {
        Ok(header) => header,
        Err(PartError::Read(error)) => return Err(CheckError::read(path)(error)),
        Err(PartError::Ends { expected }) => {
            shards.findings.push(Finding::TruncatedFile {
                file: part.to_owned(),
                expected,
                found: length,
            });
            return Ok(Vec::new());
        }
        Err(PartError::Bad(message)) => {
            shards.findings.push(Finding::BadHeader {
                file: part.to_owned(),
                message,
            });
            return Ok(Vec::new());
        }
    };
    let expected = start.saturating_add(metadata.data_len() as u64);
    let file_name = part.to_owned();
    if length < expected {
        shards.findings.push(Finding::TruncatedFile {
            file: file_name,
            expected,
            found: length,
        });
    } else if length > expected {
        shards.findings.push(Finding::TrailingBytes {
            file: file_name,
            expected,
            found: length,
        });
    }
    let tensors = metadata.tensors().into_iter();
    let placed = tensors.map(|(name, info)| {
        let (from, to) = info.data_offsets;
        let tensor = StoredTensor {
            shape: info.shape.iter().map(|&length| length as u64).collect(),
            dtype: info.dtype,
            file: path.to_owned(),
            start: start.saturating_add(from as u64),
            length: (to - from) as u64,
        };
        (name, tensor)
    });
    let mut out: Vec<_> = placed.collect();
    out.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(out)
}

enum PartError {
    Read(std::io::Error),
    Ends { expected: u64 },
    Bad(String),
}

/// The header, and where the data begins. Bounded by what the file has, not by what it says.
fn read_part_header(source: &mut impl Read, length: u64) -> Result<(u64, Metadata), PartError> {
    let mut first = [0_u8; 8];
    if length < 8 {
        return Err(PartError::Ends { expected: 8 });
    }
    source.read_exact(&mut first).map_err(PartError::Read)?;
    let header = u64::from_le_bytes(first);
    if header > MAX_HEADER_BYTES {
        return Err(PartError::Bad(format!("it would be {header} bytes long")));
    }
    let start = header + 8;
    if start > length {
        return Err(PartError::Ends { expected: start });
    }
    let mut text = Vec::new();
    source
        .take(header)
        .read_to_end(&mut text)
        .map_err(PartError::Read)?;
    let metadata = serde_json::from_slice(&text).map_err(|e| PartError::Bad(e.to_string()))?;
    Ok((start, metadata))
}

impl StoredTensor {
    /// A reader of its data.
    pub(crate) fn open(&self) -> std::io::Result<std::io::Take<File>> {
        let mut file = File::open(&self.file)?;
        file.seek(SeekFrom::Start(self.start))?;
        Ok(file.take(self.length))
    }
}
