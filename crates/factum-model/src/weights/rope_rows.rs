//! The rows of query and key matrices in the order that llama.cpp's rotary embedding wants.
//!
//! The Llama family's Safetensors keep the two halves of a head apart: numbers `j` and `j + half` are
//! rotated together. llama.cpp's `llama` architecture rotates neighbours: `2 j` and `2 j + 1`. Queries and keys
//! are moved in the same way, so their products are the same. The Qwen2 architecture keeps halves in
//! both, and nothing moves.

/// For each row of a head in GGUF, the row of the head in Safetensors that it is.
pub(crate) fn source_row(row: usize, head_length: usize) -> usize {
    let half = head_length / 2;
    row % 2 * half + row / 2
}

/// Puts the rows of one head, each of `row_bytes` bytes, in that order.
pub(crate) fn permute_head(head: &[u8], row_bytes: usize) -> Vec<u8> {
    if row_bytes == 0 {
        return Vec::new();
    }
    let rows: Vec<&[u8]> = head.chunks_exact(row_bytes).collect();
    (0..rows.len())
        .flat_map(|row| rows[source_row(row, rows.len())])
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotate(pairs: impl Fn(usize) -> (usize, usize), head: &[f64], position: f64) -> Vec<f64> {
        let mut out = head.to_vec();
        let half = head.len() / 2;
        for j in 0..half {
            let exponent =
                f64::from(u32::try_from(j).unwrap()) / f64::from(u32::try_from(half).unwrap());
            let angle = position / 10_000_f64.powf(exponent);
            let (a, b) = pairs(j);
            out[a] = head[a] * angle.cos() - head[b] * angle.sin();
            out[b] = head[a] * angle.sin() + head[b] * angle.cos();
        }
        out
    }

    fn product(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(x, y)| x * y).sum()
    }

    // The reference is the rotation itself, in both conventions.
    #[test]
    fn rotated_products_are_the_same_in_both_orders() {
        let length = 16;
        let query: Vec<f64> = (0..length).map(|i| f64::from(i * 7 % 11) - 5.0).collect();
        let key: Vec<f64> = (0..length).map(|i| f64::from(i * 5 % 13) - 6.0).collect();
        let moved = |head: &[f64]| -> Vec<f64> {
            (0..head.len())
                .map(|row| head[source_row(row, head.len())])
                .collect()
        };
        let half = query.len() / 2;
        let halves = |j: usize| (j, j + half);
        let neighbours = |j: usize| (2 * j, 2 * j + 1);
        for (p, q) in [(0.0, 0.0), (3.0, 1.0), (100.0, 37.0)] {
            let expected = product(&rotate(halves, &query, p), &rotate(halves, &key, q));
            let found = product(
                &rotate(neighbours, &moved(&query), p),
                &rotate(neighbours, &moved(&key), q),
            );
            assert!((expected - found).abs() < 1e-9, "{expected} {found}");
            let unmoved = product(&rotate(neighbours, &query, p), &rotate(neighbours, &key, q));
            if p > 0.0 {
                assert!((expected - unmoved).abs() > 1e-3, "the order matters");
            }
        }
    }

    #[test]
    fn halves_become_neighbours() {
        let head: Vec<u8> = vec![0, 0, 1, 1, 2, 2, 3, 3];
        assert_eq!(permute_head(&head, 2), vec![0, 0, 2, 2, 1, 1, 3, 3]);
    }
}
