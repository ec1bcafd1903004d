//! How the numbers of a tensor are stored.

use std::fmt;

/// A storage type of GGUF: its code, its name, and how many bytes a block of numbers takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorKind {
    code: u32,
    name: &'static str,
    block: u64,
    bytes: u64,
}

/// Code, name, numbers a block, bytes a block.
const KINDS: &[(u32, &str, u64, u64)] = &[
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (9, "Q8_1", 32, 36),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
];

impl TensorKind {
    /// 32-bit floats.
    pub const F32: Self = Self::at(0);
    /// The upper half of a 32-bit float.
    pub const BF16: Self = Self::at(28);

    const fn at(place: usize) -> Self {
        let (code, name, block, bytes) = KINDS[place];
        Self {
            code,
            name,
            block,
            bytes,
        }
    }

    /// The type with this code.
    pub fn from_code(code: u32) -> Option<Self> {
        let place = KINDS.iter().position(|kind| kind.0 == code)?;
        Some(Self::at(place))
    }

    /// Its code in a file.
    pub const fn code(self) -> u32 {
        self.code
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Bytes that a tensor of these dimensions takes; none where rows don't divide into blocks, or where
    /// the size is no number of 64 bits.
    pub fn size(self, dimensions: &[u64]) -> Option<u64> {
        let row = dimensions.first().copied().unwrap_or(1);
        if !row.is_multiple_of(self.block) {
            return None;
        }
        let numbers = dimensions
            .iter()
            .try_fold(1_u64, |product, &dimension| product.checked_mul(dimension))?;
        (numbers / self.block).checked_mul(self.bytes)
    }
}

impl fmt::Display for TensorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_types_are_what_they_say() {
        assert_eq!(TensorKind::F32.name(), "F32");
        assert_eq!(TensorKind::BF16.name(), "BF16");
        assert_eq!(TensorKind::BF16.code(), 30);
    }

    #[test]
    fn a_row_that_does_not_divide_into_blocks_has_no_size() {
        let q4 = TensorKind::from_code(3).unwrap();
        assert_eq!(q4.size(&[64, 2]), Some(80));
        assert_eq!(q4.size(&[63, 2]), None);
        assert_eq!(TensorKind::F32.size(&[u64::MAX, 2]), None);
    }
}
