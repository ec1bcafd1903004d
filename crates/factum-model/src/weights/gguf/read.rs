//! The header of a GGUF file, read strictly and within bounds.
//!
//! What is allocated is bounded by what is there to read, never by a number that the file states. The file's
//! length is an argument, so that a header can say of itself whether all its tensors fit.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::ops::Range;

use thiserror::Error;

use super::kind::TensorKind;
use super::value::{Array, Value};
use super::{DEFAULT_ALIGNMENT, VERSION};

/// Longest header that is read. The largest vocabularies take about 20 MB.
pub const MAX_HEADER_BYTES: u64 = 64 << 20;
const MAX_ENTRIES: u64 = 1 << 16;
const MAX_TENSORS: u64 = 1 << 16;
const MAX_NAME_BYTES: u64 = 1 << 10;
const MAX_DIMENSIONS: u32 = 4;

/// Why a header can't be read.
#[derive(Debug, Error)]
pub enum GgufError {
    /// The file could not be read.
    #[error("can't be read: {0}")]
    Read(#[from] io::Error),
    /// The file ends within its header.
    #[error("ends within its header")]
    Ends,
    /// The header is longer than any that is needed.
    #[error("has a header longer than {MAX_HEADER_BYTES} bytes")]
    TooLong,
    /// It does not begin as a GGUF file does.
    #[error("is not a GGUF file")]
    Magic,
    /// Another version of the format, or another byte order.
    #[error("is GGUF version {0}; version {VERSION} in little-endian order is read")]
    Version(u32),
    /// More entries, tensors or dimensions than a model has.
    #[error("has {found} {what}; at most {most} are read")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many it states.
        found: u64,
        /// How many are read.
        most: u64,
    },
    /// A name or text that is not UTF-8, or too long a name.
    #[error("has a name or text that is not UTF-8 or too long, at byte {0}")]
    Text(u64),
    /// A type that is not known.
    #[error("uses type {code} for {name}, which is not known")]
    Type {
        /// The code of the type.
        code: u32,
        /// What has it.
        name: String,
    },
    /// Something is there twice.
    #[error("has {0} twice")]
    Twice(String),
    /// A truth value that is neither.
    #[error("has a truth value that is neither true nor false, for {0}")]
    Bool(String),
    /// An alignment that is no power of two.
    #[error("states an alignment of {0}")]
    Alignment(u64),
    /// A tensor whose size or place is impossible.
    #[error("has tensor {0} of an impossible size or at an impossible place")]
    Tensor(String),
    /// Tensors that don't lie one after the other as the format demands.
    #[error("has tensor {name} at offset {found}; {expected} was expected")]
    Offset {
        /// Which.
        name: String,
        /// Where it ought to be.
        expected: u64,
        /// Where it says it is.
        found: u64,
    },
}

/// A tensor as a header describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name.
    pub name: String,
    /// Its dimensions, the row length first, as GGUF has them.
    pub dimensions: Vec<u64>,
    /// How its numbers are stored.
    pub kind: TensorKind,
    /// Where its data begins, counted from the start of the data.
    pub offset: u64,
    /// Bytes of its data.
    pub size: u64,
}

/// A whole header.
#[derive(Debug, Clone)]
pub struct Header {
    /// The metadata.
    pub entries: BTreeMap<String, Value>,
    /// The tensors, in the file's order.
    pub tensors: Vec<TensorInfo>,
    /// Where the data begins in the file.
    pub data_start: u64,
    /// Where the last tensor ends in the file: a shorter file is truncated.
    pub end: u64,
    bytes: Vec<u8>,
    places: BTreeMap<String, Range<usize>>,
}

impl Header {
    /// The bytes of an entry as they stand in the file: key, type, value.
    pub fn raw_entry(&self, key: &str) -> Option<&[u8]> {
        self.bytes.get(self.places.get(key)?.clone())
    }

    /// A whole number of the metadata.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.entries.get(key)?.as_u64()
    }

    /// A text of the metadata.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.entries.get(key)?.as_str()
    }
}

/// Reads the header of a GGUF file from its beginning.
///
/// # Errors
/// What is there is no header of a GGUF file of version 3, or exceeds the bounds.
pub fn read_header(source: impl Read) -> Result<Header, GgufError> {
    let mut cursor = Cursor {
        source: source.take(MAX_HEADER_BYTES),
        bytes: Vec::new(),
    };
    if cursor.array::<4>()? != *b"GGUF" {
        return Err(GgufError::Magic);
    }
    let version = cursor.u32()?;
    if version != VERSION {
        return Err(GgufError::Version(version));
    }
    let tensor_count = bounded(cursor.u64()?, MAX_TENSORS, "tensors")?;
    let entry_count = bounded(cursor.u64()?, MAX_ENTRIES, "entries")?;
    let mut entries = BTreeMap::new();
    let mut places = BTreeMap::new();
    for _ in 0..entry_count {
        let start = cursor.bytes.len();
        let key = cursor.name()?;
        let code = cursor.u32()?;
        let value = cursor.value(code, &key)?;
        places.insert(key.clone(), start..cursor.bytes.len());
        if entries.insert(key.clone(), value).is_some() {
            return Err(GgufError::Twice(key));
        }
    }
    let alignment = match entries.get("general.alignment") {
        None => DEFAULT_ALIGNMENT,
        Some(value) => {
            let stated = value.as_u64().unwrap_or(0);
            if !stated.is_power_of_two() || !(8..=1 << 16).contains(&stated) {
                return Err(GgufError::Alignment(stated));
            }
            stated
        }
    };
    let mut tensors = Vec::new();
    for _ in 0..tensor_count {
        tensors.push(cursor.tensor()?);
    }
    let data_length = check_layout(&tensors, alignment)?;
    let data_start = (cursor.bytes.len() as u64).next_multiple_of(alignment);
    let Some(end) = data_start.checked_add(data_length) else {
        return Err(GgufError::Tensor("at the end".to_owned()));
    };
    Ok(Header {
        entries,
        tensors,
        data_start,
        end,
        bytes: cursor.bytes,
        places,
    })
}

/// Tensors have distinct names and lie one after the other, each aligned. Gives where the last one ends.
fn check_layout(tensors: &[TensorInfo], alignment: u64) -> Result<u64, GgufError> {
    let mut names = BTreeSet::new();
    let mut next = 0_u64;
    let mut end = 0_u64;
    for tensor in tensors {
        if !names.insert(tensor.name.as_str()) {
            return Err(GgufError::Twice(tensor.name.clone()));
        }
        if tensor.offset != next {
            return Err(GgufError::Offset {
                name: tensor.name.clone(),
                expected: next,
                found: tensor.offset,
            });
        }
        let impossible = || GgufError::Tensor(tensor.name.clone());
        end = next.checked_add(tensor.size).ok_or_else(impossible)?;
        next = end
            .checked_next_multiple_of(alignment)
            .ok_or_else(impossible)?;
    }
    Ok(end)
}

fn bounded(found: u64, most: u64, what: &'static str) -> Result<u64, GgufError> {
    if found > most {
        return Err(GgufError::TooMany { what, found, most });
    }
    Ok(found)
}

/// What has been read so far is kept: digests over entries are taken from it.
struct Cursor<R> {
    source: io::Take<R>,
    bytes: Vec<u8>,
}

impl<R: Read> Cursor<R> {
    /// Reads `length` bytes; the buffer grows only by what is really there.
    fn take(&mut self, length: u64) -> Result<&[u8], GgufError> {
        let start = self.bytes.len();
        let limit = self.source.limit();
        if length > limit {
            return Err(GgufError::TooLong);
        }
        let read = (&mut self.source)
            .take(length)
            .read_to_end(&mut self.bytes)?;
        if (read as u64) < length {
            return Err(GgufError::Ends);
        }
        Ok(&self.bytes[start..])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let taken = self.take(N as u64)?;
        taken.try_into().map_err(|_| GgufError::Ends)
    }

    fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn string(&mut self) -> Result<String, GgufError> {
        let length = self.u64()?;
        let place = self.bytes.len() as u64;
        let taken = self.take(length)?;
        match std::str::from_utf8(taken) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(GgufError::Text(place)),
        }
    }

    fn name(&mut self) -> Result<String, GgufError> {
        let length = self.u64()?;
        let place = self.bytes.len() as u64;
        if length > MAX_NAME_BYTES {
            return Err(GgufError::Text(place));
        }
        let taken = self.take(length)?;
        match std::str::from_utf8(taken) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(GgufError::Text(place)),
        }
    }

    fn value(&mut self, code: u32, name: &str) -> Result<Value, GgufError> {
        Ok(match code {
            0 => Value::U8(u8::from_le_bytes(self.array()?)),
            1 => Value::I8(i8::from_le_bytes(self.array()?)),
            2 => Value::U16(u16::from_le_bytes(self.array()?)),
            3 => Value::I16(i16::from_le_bytes(self.array()?)),
            4 => Value::U32(self.u32()?),
            5 => Value::I32(i32::from_le_bytes(self.array()?)),
            6 => Value::F32(f32::from_le_bytes(self.array()?)),
            7 => match self.array::<1>()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                _ => return Err(GgufError::Bool(name.to_owned())),
            },
            8 => Value::String(self.string()?),
            9 => Value::Array(self.values(name)?),
            10 => Value::U64(self.u64()?),
            11 => Value::I64(i64::from_le_bytes(self.array()?)),
            12 => Value::F64(f64::from_le_bytes(self.array()?)),
            _ => return Err(unknown_type(code, name)),
        })
    }

    /// Arrays of arrays are not read: no model's metadata has them, and they could nest without end.
    fn values(&mut self, name: &str) -> Result<Array, GgufError> {
        let code = self.u32()?;
        let count = self.u64()?;
        let width = match code {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            8 => {
                let mut strings = Vec::new();
                for _ in 0..count {
                    strings.push(self.string()?);
                }
                return Ok(Array::Strings(strings));
            }
            _ => return Err(unknown_type(code, name)),
        };
        let length = count.checked_mul(width).ok_or(GgufError::TooLong)?;
        let bytes = self.take(length)?;
        if code == 5 {
            let numbers = bytes
                .chunks_exact(4)
                .map(|four| i32::from_le_bytes([four[0], four[1], four[2], four[3]]))
                .collect();
            return Ok(Array::I32(numbers));
        }
        Ok(Array::Other {
            code,
            count,
            bytes: bytes.to_vec(),
        })
    }

    fn tensor(&mut self) -> Result<TensorInfo, GgufError> {
        let name = self.name()?;
        let count = self.u32()?;
        if count == 0 || count > MAX_DIMENSIONS {
            return Err(GgufError::TooMany {
                what: "dimensions",
                found: u64::from(count),
                most: u64::from(MAX_DIMENSIONS),
            });
        }
        let mut dimensions = Vec::new();
        for _ in 0..count {
            dimensions.push(self.u64()?);
        }
        let code = self.u32()?;
        let offset = self.u64()?;
        let Some(kind) = TensorKind::from_code(code) else {
            return Err(unknown_type(code, &name));
        };
        let Some(size) = kind.size(&dimensions) else {
            return Err(GgufError::Tensor(name));
        };
        Ok(TensorInfo {
            name,
            dimensions,
            kind,
            offset,
            size,
        })
    }
}

fn unknown_type(code: u32, name: &str) -> GgufError {
    GgufError::Type {
        code,
        name: name.to_owned(),
    }
}
