//! The values of a GGUF file's metadata.

/// A metadata value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// 8 bits.
    U8(u8),
    /// 8 bits, signed.
    I8(i8),
    /// 16 bits.
    U16(u16),
    /// 16 bits, signed.
    I16(i16),
    /// 32 bits.
    U32(u32),
    /// 32 bits, signed.
    I32(i32),
    /// A float.
    F32(f32),
    /// A truth value.
    Bool(bool),
    /// Text.
    String(String),
    /// Many of one type.
    Array(Array),
    /// 64 bits.
    U64(u64),
    /// 64 bits, signed.
    I64(i64),
    /// A float of 64 bits.
    F64(f64),
}

/// An array of metadata values.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    /// Texts.
    Strings(Vec<String>),
    /// Signed 32-bit integers, which is what token types are.
    I32(Vec<i32>),
    /// Numbers of another type: the type's code, how many there are, and their bytes.
    Other {
        /// The code of the type.
        code: u32,
        /// How many.
        count: u64,
        /// As they stand in the file.
        bytes: Vec<u8>,
    },
}

impl Array {
    /// How many values there are.
    pub fn len(&self) -> u64 {
        match self {
            Self::Strings(strings) => strings.len() as u64,
            Self::I32(numbers) => numbers.len() as u64,
            Self::Other { count, .. } => *count,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Value {
    /// The number, where it is a whole one that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(number) => Some(u64::from(number)),
            Self::U16(number) => Some(u64::from(number)),
            Self::U32(number) => Some(u64::from(number)),
            Self::U64(number) => Some(number),
            Self::I8(number) => u64::try_from(number).ok(),
            Self::I16(number) => u64::try_from(number).ok(),
            Self::I32(number) => u64::try_from(number).ok(),
            Self::I64(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    /// The number, where it is a float.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::F32(number) => Some(f64::from(number)),
            Self::F64(number) => Some(number),
            _ => None,
        }
    }

    /// The text, where it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The texts, where it is an array of them.
    pub fn as_strings(&self) -> Option<&[String]> {
        match self {
            Self::Array(Array::Strings(strings)) => Some(strings),
            _ => None,
        }
    }

    /// The code of its type in a file.
    pub const fn code(&self) -> u32 {
        match self {
            Self::U8(_) => 0,
            Self::I8(_) => 1,
            Self::U16(_) => 2,
            Self::I16(_) => 3,
            Self::U32(_) => 4,
            Self::I32(_) => 5,
            Self::F32(_) => 6,
            Self::Bool(_) => 7,
            Self::String(_) => 8,
            Self::Array(_) => 9,
            Self::U64(_) => 10,
            Self::I64(_) => 11,
            Self::F64(_) => 12,
        }
    }
}
