//! llama.cpp's context, with every length checked first: it ends the process where a length is wrong.
//!
//! Each sequence has key and value buffers of its own, so what is in one never moves what is in another.
//! Prompts are computed one sequence at a time, in pieces of a fixed size; answers one token a step for
//! all sequences at once, whether or not each has work. So the shape of the work that a request sees
//! depends on nothing but that request and the settings.

use std::num::NonZeroU32;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{KvCacheType, LlamaContextParams};
use llama_cpp_2::context::session::{LlamaStateSeqFlags, SeqState};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use crate::error::ModelError;
use crate::local_identity::LocalOptions;

/// What an idle sequence is fed: any token would do.
const IDLE_TOKEN: i32 = 0;

/// A context for a fixed number of sequences.
pub(super) struct Context<'model> {
    inner: LlamaContext<'model>,
    batch: LlamaBatch<'static>,
    sequences: usize,
    batch_tokens: usize,
    sequence_tokens: usize,
    vocabulary: i32,
}

impl<'model> Context<'model> {
    pub(super) fn new(
        backend: &LlamaBackend,
        model: &'model LlamaModel,
        options: &LocalOptions,
    ) -> Result<Self, ModelError> {
        let sequence_tokens = options.sequence_tokens();
        let tokens = sequence_tokens.checked_mul(options.sequences);
        let (Some(tokens), Ok(threads)) = (
            tokens.and_then(NonZeroU32::new),
            i32::try_from(options.threads),
        ) else {
            return Err(engine(&"the context would be too large"));
        };
        let params = LlamaContextParams::default()
            .with_n_ctx(Some(tokens))
            .with_n_seq_max(options.sequences)
            .with_kv_unified(false)
            .with_n_batch(options.batch_tokens)
            .with_n_ubatch(options.batch_tokens)
            .with_n_threads(threads)
            .with_n_threads_batch(threads)
            .with_flash_attention_policy(llama_cpp_sys_2::LLAMA_FLASH_ATTN_TYPE_ENABLED)
            .with_type_k(KvCacheType::F16)
            .with_type_v(KvCacheType::F16)
            .with_no_perf(true);
        let inner = model.new_context(backend, params).map_err(|e| engine(&e))?;
        let as_asked = inner.n_ctx() == tokens.get()
            && inner.n_batch() == options.batch_tokens
            && inner.n_ubatch() == options.batch_tokens;
        if !as_asked {
            return Err(engine(&"llama.cpp changed the sizes that it was given"));
        }
        Ok(Self {
            inner,
            batch: LlamaBatch::new(options.batch_tokens as usize, 1),
            sequences: options.sequences as usize,
            batch_tokens: options.batch_tokens as usize,
            sequence_tokens: sequence_tokens as usize,
            vocabulary: model.n_vocab(),
        })
    }

    /// Empties a sequence.
    pub(super) fn clear(&mut self, sequence: usize) -> Result<(), ModelError> {
        let id = u32::try_from(sequence).map_err(|e| engine(&e))?;
        self.inner
            .clear_kv_cache_seq(Some(id), None, None)
            .map_err(|e| engine(&e))?;
        Ok(())
    }

    /// Computes tokens of one sequence from position `from` on, asking `go_on` before each piece. With
    /// `logits`, those after the last token can be read by [`Self::last_logits`].
    pub(super) fn prompt(
        &mut self,
        sequence: usize,
        from: usize,
        tokens: &[i32],
        logits: bool,
        go_on: &mut dyn FnMut() -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        self.check(sequence, from + tokens.len(), tokens)?;
        let mut position = from;
        for piece in tokens.chunks(self.batch_tokens) {
            go_on()?;
            self.batch.clear();
            for token in piece {
                position += 1;
                let last = logits && position == from + tokens.len();
                self.add(sequence, position - 1, *token, last)?;
            }
            self.decode()?;
        }
        Ok(())
    }

    /// The logits after the last token of [`Self::prompt`].
    pub(super) fn last_logits(&self) -> &[f32] {
        self.inner.get_logits_ith(-1)
    }

    /// One step of all sequences. `work` has a position and a token for each of them that is not idle;
    /// an idle one is emptied and fed something. `step_logits(sequence)` gives what came of it.
    pub(super) fn step(&mut self, work: &[Option<(usize, i32)>]) -> Result<(), ModelError> {
        if work.len() != self.sequences {
            return Err(engine(&"a step must have a place for each sequence"));
        }
        self.batch.clear();
        for (sequence, place) in work.iter().enumerate() {
            if place.is_none() {
                self.clear(sequence)?;
            }
            let (position, token) = place.unwrap_or((0, IDLE_TOKEN));
            self.check(sequence, position + 1, &[token])?;
            self.add(sequence, position, token, true)?;
        }
        self.decode()
    }

    /// The logits of a sequence after [`Self::step`].
    pub(super) fn step_logits(&self, sequence: usize) -> Result<&[f32], ModelError> {
        if sequence >= self.sequences {
            return Err(engine(&"there is no such sequence"));
        }
        let at = i32::try_from(sequence).map_err(|e| engine(&e))?;
        Ok(self.inner.get_logits_ith(at))
    }

    /// What a sequence holds.
    pub(super) fn save(&self, sequence: usize) -> Result<SeqState, ModelError> {
        let id = i32::try_from(sequence).map_err(|e| engine(&e))?;
        self.inner
            .state_seq_get(id, LlamaStateSeqFlags::empty())
            .map_err(|e| engine(&e))
    }

    /// Puts what was saved into an empty sequence.
    pub(super) fn restore(&mut self, sequence: usize, state: &SeqState) -> Result<(), ModelError> {
        let id = i32::try_from(sequence).map_err(|e| engine(&e))?;
        self.inner.state_seq_set(state, id).map_err(|e| engine(&e))
    }

    fn check(&self, sequence: usize, end: usize, tokens: &[i32]) -> Result<(), ModelError> {
        let known = tokens
            .iter()
            .all(|token| (0..self.vocabulary).contains(token));
        if sequence >= self.sequences || end > self.sequence_tokens || !known {
            return Err(engine(&"these tokens don't fit the context"));
        }
        Ok(())
    }

    fn add(
        &mut self,
        sequence: usize,
        position: usize,
        token: i32,
        logits: bool,
    ) -> Result<(), ModelError> {
        let id = i32::try_from(sequence).map_err(|e| engine(&e))?;
        let position = i32::try_from(position).map_err(|e| engine(&e))?;
        self.batch
            .add(LlamaToken(token), position, &[id], logits)
            .map_err(|e| engine(&e))
    }

    fn decode(&mut self) -> Result<(), ModelError> {
        self.inner.decode(&mut self.batch).map_err(|e| engine(&e))
    }
}

fn engine(error: &impl ToString) -> ModelError {
    ModelError::Engine(error.to_string())
}
