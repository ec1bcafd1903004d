//! Models in this process, by llama.cpp.
//!
//! [`LocalGenerator::load`] reads a GGUF file and starts one thread that owns all of llama.cpp's state.
//! Prompts come from the model's own chat template, in which contents are never read as special tokens;
//! decoding is greedy; what is computed for a request depends on nothing but the request and
//! [`LocalOptions`], so batches and kept prefixes change no answer. Tests hold that bit for bit.
//!
//! Its threads wait for one another by OpenMP, which spins unless the environment says
//! `OMP_WAIT_POLICY=passive`, and then collapses where cores are shared (measured: seven times slower on two
//! cores with a load of five). That is read when the program is loaded, before `main`, so a program has to be
//! started with it, or start itself again. llama.cpp's own threads, without
//! OpenMP, always spin.
//!
//! It knows nothing of where models come from, or of what the answers are for.

mod context;
mod decoder;
mod embedder;
mod grounded;
mod prefixes;
mod template;
mod vocabulary;
mod worker;

use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llguidance::ParserFactory;
use tokio::sync::mpsc::unbounded_channel;

use crate::error::ModelError;
use crate::generator::{
    BoxFuture, Capabilities, ConstraintKind, Control, GenerationSink, Generator, TokenCount,
};
use crate::identity::ModelIdentity;
use crate::local_identity::{LocalOptions, local_identity};
use crate::request::{GenerationRequest, Message};
use crate::weights::GGUF_ARCHITECTURE;
use context::Context;
pub use embedder::LocalEmbedder;
use vocabulary::Vocabulary;
use worker::{Event, Job, Worker};
pub use worker::{Logits, Traced};

/// Most sequences decoded together.
const MOST_SEQUENCES: u32 = 64;

/// A model in this process.
pub struct LocalGenerator {
    identity: ModelIdentity,
    vocabulary: Arc<Vocabulary>,
    memory: Memory,
    prefix_bytes: Arc<AtomicU64>,
    sequences: usize,
    /// None only while it is dropped.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// Bytes that a model takes, apart from llama.cpp's scratch buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Its weights.
    pub weights: u64,
    /// Keys and values of all sequences. They do not grow.
    pub sequences: u64,
    /// Kept prefixes: at most four.
    pub prefixes: u64,
}

impl Memory {
    /// All of it.
    pub const fn total(&self) -> u64 {
        self.weights + self.sequences + self.prefixes
    }
}

impl LocalGenerator {
    /// Reads the model. Takes seconds for a large one, and blocks.
    ///
    /// # Errors
    /// [`ModelError::Engine`]: settings out of bounds, or a file that llama.cpp does not take.
    pub fn load(options: LocalOptions) -> Result<Self, ModelError> {
        Self::load_with(options, true)
    }

    /// As [`Self::load`], but computes every prompt whole: no answer may differ, and only time does.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_without_prefixes(options: LocalOptions) -> Result<Self, ModelError> {
        Self::load_with(options, false)
    }

    fn load_with(options: LocalOptions, keep_prefixes: bool) -> Result<Self, ModelError> {
        check(&options)?;
        let backend = backend()?;
        let params = LlamaModelParams::default().with_n_gpu_layers(options.gpu_layers);
        let model = LlamaModel::load_from_file(backend, &options.gguf, &params)
            .map_err(|error| engine(&format!("{}: {error}", options.gguf.display())))?;
        if model.is_recurrent() || model.is_hybrid() {
            return Err(engine(&"recurrent models are not supported"));
        }
        if architecture(&model) == GGUF_ARCHITECTURE {
            return Err(engine(
                &"a sentence model makes vectors and writes no text; name it with --embeddings",
            ));
        }
        let model = Arc::new(model);
        let vocabulary = Arc::new(Vocabulary::new(Arc::clone(&model))?);
        let memory = Memory {
            weights: model.size(),
            sequences: sequence_bytes(&model, &options),
            prefixes: 0,
        };
        let prefix_bytes = Arc::new(AtomicU64::new(0));
        let identity = local_identity(&options);
        let sequences = options.sequences as usize;
        let (jobs, inbox) = mpsc::channel();
        let (ready, loaded) = mpsc::channel();
        let setup = Setup {
            model,
            vocabulary: Arc::clone(&vocabulary),
            options,
            keep_prefixes,
            memory,
            prefix_bytes: Arc::clone(&prefix_bytes),
        };
        let thread = std::thread::Builder::new()
            .name("factum-local".to_owned())
            .spawn(move || setup.work(backend, &ready, &inbox))
            .map_err(|error| engine(&error))?;
        loaded
            .recv()
            .map_err(|_| engine(&"the engine's thread ended while it started"))??;
        Ok(Self {
            identity,
            vocabulary,
            memory,
            prefix_bytes,
            sequences,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// What it takes now.
    pub fn memory(&self) -> Memory {
        Memory {
            prefixes: self.prefix_bytes.load(Ordering::Relaxed),
            ..self.memory
        }
    }

    /// As [`Generator::generate`], with a digest over the logits of each answer: for tests that hold two
    /// runs against each other bit for bit.
    pub async fn generate_traced(
        &self,
        requests: &[GenerationRequest],
        control: &Control,
    ) -> Vec<Result<Traced, ModelError>> {
        let mut outcomes = vec![Err(engine(&"no outcome")); requests.len()];
        self.ask(requests, control, true, &mut |event| {
            if let Event::Finished(request, outcome) = event {
                outcomes[request] = outcome;
            }
        })
        .await;
        outcomes
    }

    async fn ask(
        &self,
        requests: &[GenerationRequest],
        control: &Control,
        traced: bool,
        tell: &mut (dyn FnMut(Event) + Send),
    ) {
        let (events, mut inbox) = unbounded_channel();
        let job = Job {
            requests: requests.to_vec(),
            control: control.clone(),
            traced,
            events,
        };
        let mut open = vec![true; requests.len()];
        let sent = self
            .jobs
            .as_ref()
            .is_some_and(|jobs| jobs.send(job).is_ok());
        while sent && let Some(event) = inbox.recv().await {
            if let Event::Finished(request, _) = &event {
                open[*request] = false;
            }
            tell(event);
        }
        for (request, _) in open.iter().enumerate().filter(|(_, open)| **open) {
            let lost = Err(engine(&"the engine's thread ended"));
            tell(Event::Finished(request, lost));
        }
    }
}

impl Generator for LocalGenerator {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            constraints: vec![ConstraintKind::JsonSchema, ConstraintKind::Grounded],
            parallel: self.sequences,
        }
    }

    fn count_tokens<'a>(
        &'a self,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<TokenCount, ModelError>> {
        let counted = self.vocabulary.prompt(messages).map(|prompt| TokenCount {
            tokens: u32::try_from(prompt.len()).unwrap_or(u32::MAX),
            exact: true,
        });
        Box::pin(std::future::ready(counted))
    }

    fn generate<'a>(
        &'a self,
        requests: &'a [GenerationRequest],
        control: &'a Control,
        sink: &'a dyn GenerationSink,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.ask(requests, control, false, &mut |event| match event {
                Event::Finished(request, outcome) => {
                    sink.finished(request, outcome.map(|traced| traced.generation));
                }
                Event::Token(request, bytes) => {
                    sink.tokens(1);
                    sink.piece(request, &bytes);
                }
            })
            .await;
        })
    }
}

impl Debug for LocalGenerator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalGenerator")
            .field("identity", &self.identity)
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}

impl Drop for LocalGenerator {
    fn drop(&mut self) {
        // The thread ends once no one can ask it anything; the model must not outlive this.
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread starts from.
struct Setup {
    model: Arc<LlamaModel>,
    vocabulary: Arc<Vocabulary>,
    options: LocalOptions,
    keep_prefixes: bool,
    memory: Memory,
    prefix_bytes: Arc<AtomicU64>,
}

impl Setup {
    fn work(
        self,
        backend: &LlamaBackend,
        ready: &mpsc::Sender<Result<(), ModelError>>,
        jobs: &mpsc::Receiver<Job>,
    ) {
        let made = Context::new(backend, &self.model, &self.options).and_then(|context| {
            let mut schemas = ParserFactory::new_simple(self.vocabulary.environment())
                .map_err(|error| engine(&error))?;
            schemas.quiet();
            Ok((context, schemas))
        });
        let (context, schemas) = match made {
            Ok(made) => made,
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
        if ready.send(Ok(())).is_err() {
            return;
        }
        Worker {
            context,
            vocabulary: self.vocabulary,
            schemas,
            keep_prefixes: self.keep_prefixes,
            context_tokens: self.options.sequence_tokens() as usize,
            device: if self.options.gpu_layers == 0 {
                "cpu"
            } else {
                "gpu"
            },
            memory: self.memory,
            prefix_bytes: self.prefix_bytes,
            sequences: self.options.sequences as usize,
        }
        .run(jobs);
    }
}

/// llama.cpp's own start, once in a process; its chatter is not passed on. For programs that use llama.cpp beside a
/// [`LocalGenerator`].
///
/// # Errors
/// It could not be started.
pub fn backend() -> Result<&'static LlamaBackend, ModelError> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    BACKEND
        .get_or_init(|| {
            let mut backend = LlamaBackend::init().map_err(|error| error.to_string())?;
            backend.void_logs();
            Ok(backend)
        })
        .as_ref()
        .map_err(engine)
}

fn check(options: &LocalOptions) -> Result<(), ModelError> {
    let wrong = if !options.gguf.is_file() {
        format!("there is no file {}", options.gguf.display())
    } else if !(1..=MOST_SEQUENCES).contains(&options.sequences) {
        format!("sequences must be 1 to {MOST_SEQUENCES}")
    } else if !(1..=512).contains(&options.threads) {
        "threads must be 1 to 512".to_owned()
    } else if options.batch_tokens < 64 || options.batch_tokens > options.sequence_tokens() {
        "batch_tokens must be at least 64 and no more than context_tokens".to_owned()
    } else if options.context_tokens > 1 << 20 {
        "context_tokens must be at most 1048576".to_owned()
    } else {
        return Ok(());
    };
    Err(engine(&wrong))
}

fn architecture(model: &LlamaModel) -> String {
    model
        .meta_val_str("general.architecture")
        .unwrap_or_default()
}

/// Keys and values in 16 bits, of all layers and sequences.
fn sequence_bytes(model: &LlamaModel, options: &LocalOptions) -> u64 {
    let architecture = architecture(model);
    let length = |of: &str| -> Option<u64> {
        let key = format!("{architecture}.attention.{of}_length");
        model.meta_val_str(&key).ok()?.parse().ok()
    };
    let even = u64::from(model.n_embd().unsigned_abs()) / u64::from(model.n_head().max(1));
    let widths = length("key").unwrap_or(even) + length("value").unwrap_or(even);
    let tokens = u64::from(options.sequence_tokens()) * u64::from(options.sequences);
    2 * tokens * u64::from(model.n_layer()) * u64::from(model.n_head_kv()) * widths
}

fn engine(error: &impl ToString) -> ModelError {
    ModelError::Engine(error.to_string())
}
