//! A plain forward pass of BERT in 64-bit floats over the Safetensors, for llama.cpp's vectors to be held against.

#![expect(clippy::cast_precision_loss, reason = "lengths are small")]

use crate::tiny_sentence::{HEADS, HIDDEN, LAYERS, TinySentence};

/// What is computed otherwise than the model was trained for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Nothing.
    Nothing,
    /// The first token's vector stands for all.
    FirstToken,
    /// Tokens see only what stands before them.
    Causal,
    /// Queries and keys have changed places in the second layer.
    Swapped,
}

/// The vector of a text of these tokens, of unit length.
pub(crate) fn vector(model: &TinySentence, tokens: &[usize], wrong: Wrong) -> Vec<f64> {
    let pass = Pass { model, wrong };
    let rows = |name: &str| pass.numbers(&format!("embeddings.{name}.weight"));
    let (words, places, kinds) = (
        rows("word_embeddings"),
        rows("position_embeddings"),
        rows("token_type_embeddings"),
    );
    let mut states: Vec<Vec<f64>> = tokens
        .iter()
        .enumerate()
        .map(|(place, token)| {
            let sum = (0..HIDDEN)
                .map(|j| words[token * HIDDEN + j] + places[place * HIDDEN + j] + kinds[j])
                .collect();
            pass.normed("embeddings.LayerNorm", sum)
        })
        .collect();
    for layer in 0..LAYERS {
        states = pass.layer(layer, &states);
    }
    let count = if wrong == Wrong::FirstToken {
        1
    } else {
        states.len()
    };
    let mean: Vec<f64> = (0..HIDDEN)
        .map(|j| states[..count].iter().map(|state| state[j]).sum::<f64>() / count as f64)
        .collect();
    let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
    mean.into_iter().map(|x| x / length).collect()
}

struct Pass<'m> {
    model: &'m TinySentence,
    wrong: Wrong,
}

impl Pass<'_> {
    fn numbers(&self, name: &str) -> Vec<f64> {
        self.model
            .numbers(name)
            .into_iter()
            .map(f64::from)
            .collect()
    }

    fn normed(&self, name: &str, state: Vec<f64>) -> Vec<f64> {
        let (weights, biases) = (
            self.numbers(&format!("{name}.weight")),
            self.numbers(&format!("{name}.bias")),
        );
        let count = state.len() as f64;
        let mean = state.iter().sum::<f64>() / count;
        let spread = state.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let scale = (spread + 1e-12).sqrt();
        let numbers = state.into_iter().zip(weights).zip(biases);
        numbers
            .map(|((x, w), b)| (x - mean) / scale * w + b)
            .collect()
    }

    fn linear(&self, name: &str, state: &[f64]) -> Vec<f64> {
        let weights = self.numbers(&format!("{name}.weight"));
        let biases = self.numbers(&format!("{name}.bias"));
        let rows = weights.chunks_exact(state.len()).zip(biases);
        rows.map(|(row, bias)| row.iter().zip(state).map(|(a, b)| a * b).sum::<f64>() + bias)
            .collect()
    }

    fn layer(&self, layer: usize, states: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let name = |rest: &str| format!("encoder.layer.{layer}.{rest}");
        let all = |part: &str| -> Vec<Vec<f64>> {
            let part = name(&format!("attention.self.{part}"));
            states.iter().map(|x| self.linear(&part, x)).collect()
        };
        let (mut queries, mut keys, values) = (all("query"), all("key"), all("value"));
        if self.wrong == Wrong::Swapped && layer == 1 {
            std::mem::swap(&mut queries, &mut keys);
        }
        let mixed = self.attended(&queries, &keys, &values);
        let added = |a: Vec<f64>, b: &[f64]| a.iter().zip(b).map(|(x, y)| x + y).collect();
        mixed
            .iter()
            .zip(states)
            .map(|(mixed, state)| {
                let out = self.linear(&name("attention.output.dense"), mixed);
                let state: Vec<f64> =
                    self.normed(&name("attention.output.LayerNorm"), added(out, state));
                let wide = self.linear(&name("intermediate.dense"), &state);
                let wide: Vec<f64> = wide.into_iter().map(gelu).collect();
                let out = self.linear(&name("output.dense"), &wide);
                self.normed(&name("output.LayerNorm"), added(out, &state))
            })
            .collect()
    }

    fn attended(
        &self,
        queries: &[Vec<f64>],
        keys: &[Vec<f64>],
        values: &[Vec<f64>],
    ) -> Vec<Vec<f64>> {
        let width = HIDDEN / HEADS;
        let mut out = Vec::new();
        for (place, query) in queries.iter().enumerate() {
            let seen = if self.wrong == Wrong::Causal {
                place + 1
            } else {
                keys.len()
            };
            let mut mixed = vec![0.0; HIDDEN];
            for head in 0..HEADS {
                let part = head * width..(head + 1) * width;
                let scores: Vec<f64> = keys[..seen]
                    .iter()
                    .map(|key| {
                        let pairs = query[part.clone()].iter().zip(&key[part.clone()]);
                        pairs.map(|(a, b)| a * b).sum::<f64>() / (width as f64).sqrt()
                    })
                    .collect();
                let most = scores.iter().copied().fold(f64::MIN, f64::max);
                let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
                let sum: f64 = weights.iter().sum();
                for (weight, value) in weights.iter().zip(values) {
                    for j in part.clone() {
                        mixed[j] += weight / sum * value[j];
                    }
                }
            }
            out.push(mixed);
        }
        out
    }
}

/// The exact one, by the error function; llama.cpp computes an approximation.
fn gelu(x: f64) -> f64 {
    x * 0.5 * (1.0 + erf(x / std::f64::consts::SQRT_2))
}

/// M. Abramowitz and I. Stegun, 7.1.26: right to seven digits.
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let series = [
        1.061_405_429,
        -1.453_152_027,
        1.421_413_741,
        -0.284_496_736,
        0.254_829_592,
    ];
    let sum = series.iter().fold(0.0, |sum, c| (sum + c) * t);
    x.signum() * (1.0 - sum * (-x * x).exp())
}
