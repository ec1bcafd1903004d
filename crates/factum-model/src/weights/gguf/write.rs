//! The header of a GGUF file, written.

use super::kind::TensorKind;
use super::value::{Array, Value};
use super::{DEFAULT_ALIGNMENT, VERSION};

/// A tensor to be written.
#[derive(Debug, Clone)]
pub(crate) struct TensorPlan {
    /// Its name.
    pub(crate) name: String,
    /// Its dimensions, the row length first.
    pub(crate) dimensions: Vec<u64>,
    /// How its numbers are stored.
    pub(crate) kind: TensorKind,
}

impl TensorPlan {
    /// Bytes of its data, without what aligns the next one.
    pub(crate) fn size(&self) -> u64 {
        self.kind.size(&self.dimensions).unwrap_or(0)
    }
}

/// Collects metadata, then writes a header.
#[derive(Debug, Default)]
pub(crate) struct HeaderWriter {
    count: u64,
    entries: Vec<u8>,
}

impl HeaderWriter {
    /// Adds an entry. Keys are the caller's to keep distinct.
    pub(crate) fn entry(&mut self, key: &str, value: &Value) {
        self.count += 1;
        string(&mut self.entries, key);
        self.entries.extend(value.code().to_le_bytes());
        write_value(&mut self.entries, value);
    }

    /// The whole header, up to where the first tensor's data begins.
    pub(crate) fn finish(self, tensors: &[TensorPlan]) -> Vec<u8> {
        let mut out = Vec::from(*b"GGUF");
        out.extend(VERSION.to_le_bytes());
        out.extend((tensors.len() as u64).to_le_bytes());
        out.extend(self.count.to_le_bytes());
        out.extend(self.entries);
        let mut offset = 0_u64;
        for tensor in tensors {
            string(&mut out, &tensor.name);
            // Two dimensions at most are ever planned.
            #[expect(clippy::cast_possible_truncation, reason = "see above")]
            out.extend((tensor.dimensions.len() as u32).to_le_bytes());
            for dimension in &tensor.dimensions {
                out.extend(dimension.to_le_bytes());
            }
            out.extend(tensor.kind.code().to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset += tensor.size().next_multiple_of(DEFAULT_ALIGNMENT);
        }
        let padding = (out.len() as u64).next_multiple_of(DEFAULT_ALIGNMENT) - out.len() as u64;
        out.extend((0..padding).map(|_| 0));
        out
    }
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::U8(number) => out.extend(number.to_le_bytes()),
        Value::I8(number) => out.extend(number.to_le_bytes()),
        Value::U16(number) => out.extend(number.to_le_bytes()),
        Value::I16(number) => out.extend(number.to_le_bytes()),
        Value::U32(number) => out.extend(number.to_le_bytes()),
        Value::I32(number) => out.extend(number.to_le_bytes()),
        Value::F32(number) => out.extend(number.to_le_bytes()),
        Value::Bool(truth) => out.push(u8::from(*truth)),
        Value::String(text) => string(out, text),
        Value::Array(array) => write_array(out, array),
        Value::U64(number) => out.extend(number.to_le_bytes()),
        Value::I64(number) => out.extend(number.to_le_bytes()),
        Value::F64(number) => out.extend(number.to_le_bytes()),
    }
}

fn write_array(out: &mut Vec<u8>, array: &Array) {
    let code = match array {
        Array::Strings(_) => 8,
        Array::I32(_) => 5,
        Array::Other { code, .. } => *code,
    };
    out.extend(code.to_le_bytes());
    out.extend(array.len().to_le_bytes());
    match array {
        Array::Strings(strings) => {
            for text in strings {
                string(out, text);
            }
        }
        Array::I32(numbers) => out.extend(numbers.iter().flat_map(|number| number.to_le_bytes())),
        Array::Other { bytes, .. } => out.extend(bytes),
    }
}
