//! A plain forward pass in 64-bit floats over the Safetensors, for llama.cpp's logits to be held against.

#![expect(
    clippy::cast_precision_loss,
    reason = "lengths and positions are small"
)]

use crate::tiny_model::{HEAD_LENGTH, HEADS, HIDDEN, KV_HEADS, LAYERS, TinyModel, WIDE};

/// Which numbers of a head are rotated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pairs {
    /// `j` and `j + half`, as these models were trained.
    Halves,
    /// `2 j` and `2 j + 1`, which is wrong for them.
    Neighbours,
}

/// The logits after each of `tokens`.
pub(crate) fn logits(model: &TinyModel, tokens: &[usize], pairs: Pairs) -> Vec<Vec<f64>> {
    let embedding = numbers(model, "model.embed_tokens.weight");
    let mut states: Vec<Vec<f64>> = tokens
        .iter()
        .map(|token| embedding[token * HIDDEN..(token + 1) * HIDDEN].to_vec())
        .collect();
    for layer in 0..LAYERS {
        attend(model, layer, &mut states, pairs);
        for state in &mut states {
            feed_forward(model, layer, state);
        }
    }
    let norm = numbers(model, "model.norm.weight");
    let head = if model.tensors.contains_key("lm_head.weight") {
        numbers(model, "lm_head.weight")
    } else {
        embedding
    };
    states
        .iter()
        .map(|state| times(&head, &normed(state, &norm)))
        .collect()
}

fn numbers(model: &TinyModel, name: &str) -> Vec<f64> {
    let pairs = model.tensors[name].data.chunks_exact(2);
    pairs
        .map(|pair| {
            f64::from(f32::from_bits(
                u32::from(u16::from_le_bytes([pair[0], pair[1]])) << 16,
            ))
        })
        .collect()
}

/// A matrix of rows of the vector's length, times the vector.
fn times(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    matrix
        .chunks_exact(vector.len())
        .map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
        .collect()
}

fn normed(state: &[f64], weights: &[f64]) -> Vec<f64> {
    let mean: f64 = state.iter().map(|x| x * x).sum::<f64>() / state.len() as f64;
    let scale = 1.0 / (mean + 1e-6).sqrt();
    state
        .iter()
        .zip(weights)
        .map(|(x, w)| x * scale * w)
        .collect()
}

fn projected(model: &TinyModel, layer: usize, part: &str, state: &[f64]) -> Vec<f64> {
    let name = format!("model.layers.{layer}.self_attn.{part}_proj");
    let mut out = times(&numbers(model, &format!("{name}.weight")), state);
    let bias = format!("{name}.bias");
    if model.tensors.contains_key(&bias) {
        for (x, b) in out.iter_mut().zip(numbers(model, &bias)) {
            *x += b;
        }
    }
    out
}

fn rotated(mut vector: Vec<f64>, position: usize, pairs: Pairs) -> Vec<f64> {
    let half = HEAD_LENGTH / 2;
    for head in vector.chunks_exact_mut(HEAD_LENGTH) {
        for j in 0..half {
            let exponent = 2.0 * j as f64 / HEAD_LENGTH as f64;
            let angle = position as f64 / 10_000_f64.powf(exponent);
            let (a, b) = match pairs {
                Pairs::Halves => (j, j + half),
                Pairs::Neighbours => (2 * j, 2 * j + 1),
            };
            let (x, y) = (head[a], head[b]);
            head[a] = x * angle.cos() - y * angle.sin();
            head[b] = x * angle.sin() + y * angle.cos();
        }
    }
    vector
}

fn attend(model: &TinyModel, layer: usize, states: &mut [Vec<f64>], pairs: Pairs) {
    let norm = numbers(
        model,
        &format!("model.layers.{layer}.input_layernorm.weight"),
    );
    let inputs: Vec<Vec<f64>> = states.iter().map(|state| normed(state, &norm)).collect();
    let project = |part: &str| -> Vec<Vec<f64>> {
        let vectors = inputs.iter().map(|x| projected(model, layer, part, x));
        vectors.collect()
    };
    let rotate = |vectors: Vec<Vec<f64>>| -> Vec<Vec<f64>> {
        let placed = vectors.into_iter().enumerate();
        placed.map(|(p, x)| rotated(x, p, pairs)).collect()
    };
    let (queries, keys, values) = (rotate(project("q")), rotate(project("k")), project("v"));
    let output = numbers(
        model,
        &format!("model.layers.{layer}.self_attn.o_proj.weight"),
    );
    for (position, state) in states.iter_mut().enumerate() {
        let mut mixed = vec![0.0; HEADS * HEAD_LENGTH];
        for head in 0..HEADS {
            let shared = head * KV_HEADS / HEADS * HEAD_LENGTH;
            let query = &queries[position][head * HEAD_LENGTH..(head + 1) * HEAD_LENGTH];
            let scores: Vec<f64> = keys[..=position]
                .iter()
                .map(|key| {
                    let key = &key[shared..shared + HEAD_LENGTH];
                    let product: f64 = query.iter().zip(key).map(|(a, b)| a * b).sum();
                    product / (HEAD_LENGTH as f64).sqrt()
                })
                .collect();
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for (weight, value) in weights.iter().zip(&values) {
                for j in 0..HEAD_LENGTH {
                    mixed[head * HEAD_LENGTH + j] += weight / sum * value[shared + j];
                }
            }
        }
        for (x, y) in state.iter_mut().zip(times(&output, &mixed)) {
            *x += y;
        }
    }
}

fn feed_forward(model: &TinyModel, layer: usize, state: &mut [f64]) {
    let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
    let input = normed(state, &numbers(model, &name("post_attention_layernorm")));
    let gate = times(&numbers(model, &name("mlp.gate_proj")), &input);
    let up = times(&numbers(model, &name("mlp.up_proj")), &input);
    let inner: Vec<f64> = gate
        .iter()
        .zip(&up)
        .map(|(g, u)| g / (1.0 + (-g).exp()) * u)
        .collect();
    assert_eq!(inner.len(), WIDE);
    let down = times(&numbers(model, &name("mlp.down_proj")), &inner);
    for (x, y) in state.iter_mut().zip(down) {
        *x += y;
    }
}
