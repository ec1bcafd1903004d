//! Our engine against the plain loop of the same binding, on one machine in one run: the same model, the
//! same prompts, greedy, the same most tokens.
//!
//! `FACTUM_TEST_MODEL=model.gguf OMP_WAIT_POLICY=passive cargo bench -p factum-model --features local`

mod common;

use std::num::NonZeroU32;
use std::path::Path;

use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;

use common::{CONTEXT, Clock, NEW_TOKENS, NODES, ours, report, requests};

/// The whole prompt each time, one sequence, the best token of all.
fn plain(path: &Path) {
    let mut backend = LlamaBackend::init().expect("llama.cpp starts");
    backend.void_logs();
    let model =
        LlamaModel::load_from_file(&backend, path, &LlamaModelParams::default()).expect("a model");
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(CONTEXT))
        .with_n_batch(CONTEXT)
        .with_n_threads(2)
        .with_n_threads_batch(2);
    let mut context = model.new_context(&backend, params).expect("a context");
    let mut batch = LlamaBatch::new(CONTEXT as usize, 1);
    let (mut prompt, mut new) = (0, 0);
    let clock = Clock::start();
    for request in requests(false) {
        let text = format!(
            "<|im_start|>system\n{}<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
            request.messages[0].content, request.messages[1].content
        );
        let tokens = model.vocab().tokenize(text.as_bytes(), false, true);
        context.clear_kv_cache();
        batch.clear();
        let most = i32::try_from(tokens.len()).expect("a short prompt") - 1;
        for (position, token) in (0..).zip(&tokens) {
            let last = position == most;
            batch.add(*token, position, &[0], last).expect("room");
        }
        context.decode(&mut batch).expect("a prompt");
        prompt += tokens.len();
        for position in
            (i32::try_from(tokens.len()).expect("a short prompt")..).take(NEW_TOKENS as usize)
        {
            let logits = context.get_logits_ith(-1);
            let best = (0..)
                .zip(logits)
                .fold((0, f32::MIN), |best, (token, logit)| {
                    if *logit > best.1 {
                        (token, *logit)
                    } else {
                        best
                    }
                });
            new += 1;
            if model.vocab().is_eog(LlamaToken(best.0)) {
                break;
            }
            batch.clear();
            batch
                .add(LlamaToken(best.0), position, &[0], true)
                .expect("room");
            context.decode(&mut batch).expect("a token");
        }
    }
    report("plain loop of the binding", prompt, new, &clock);
}

fn main() {
    let Some(path) = std::env::var_os("FACTUM_TEST_MODEL") else {
        println!("skipped: FACTUM_TEST_MODEL names no model");
        return;
    };
    let path = Path::new(&path);
    println!("{NODES} nodes, at most {NEW_TOKENS} new tokens each, 2 threads");
    plain(path);
    for (sequences, prefixes) in [
        (1, false),
        (1, true),
        (2, true),
        (4, false),
        (4, true),
        (8, true),
    ] {
        ours(path, sequences, prefixes, false);
    }
    for (sequences, prefixes) in [(1, false), (1, true), (4, true), (8, true)] {
        ours(path, sequences, prefixes, true);
    }
}
