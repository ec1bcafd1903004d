//! BF16 numbers as F32 numbers.

/// Widens little-endian BF16 to little-endian F32. A BF16 number is the upper half of an F32 number, so this
/// is exact, infinities and every NaN included.
pub(crate) fn widen(bytes: &[u8]) -> Vec<u8> {
    bytes
        .chunks_exact(2)
        .flat_map(|pair| [0, 0, pair[0], pair[1]])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bf16_number_keeps_its_bits() {
        for bits in 0..=u16::MAX {
            let wide = widen(&bits.to_le_bytes());
            let number = f32::from_le_bytes(wide.try_into().unwrap());
            assert_eq!(number.to_bits(), u32::from(bits) << 16);
        }
    }
}
