//! A sentence model in this process: one thread that owns llama.cpp's context, and one text at a time.
//!
//! A text is alone in its batch, so its vector depends on nothing but itself and the settings: company would change
//! the shapes that are computed with, and with them the last bits. Texts are tokenized without special tokens, so no
//! text can spell one.

use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{LlamaContextParams, LlamaPoolingType};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use tokio::sync::oneshot;

use super::{backend, engine};
use crate::embedder::Embedder;
use crate::error::ModelError;
use crate::generator::{BoxFuture, Control};
use crate::identity::ModelIdentity;
use crate::local_identity::{EmbedderOptions, embedder_identity};
use crate::weights::gguf::{Header, Value, read_header};
use crate::weights::{
    GGUF_ARCHITECTURE, NORMALIZER_KEY, Normalizer, SentenceConfig, check_gguf_header,
};

/// Longest text that any model is given, in tokens.
const MOST_TOKENS: u64 = 8192;

/// A sentence model in this process.
pub struct LocalEmbedder {
    identity: ModelIdentity,
    dimensions: usize,
    reader: Arc<Reader>,
    /// None only while it is dropped.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

struct Job {
    texts: Vec<String>,
    control: Control,
    reply: oneshot::Sender<Result<Vec<Vec<f32>>, ModelError>>,
}

/// What a file says that is needed before llama.cpp opens it.
struct Stated {
    config: SentenceConfig,
    unaccents: bool,
}

impl LocalEmbedder {
    /// Reads the model, and blocks while it does.
    ///
    /// # Errors
    /// [`ModelError::Engine`]: the file is no sentence model, is not what it must be, or llama.cpp does not take it.
    pub fn load(options: &EmbedderOptions) -> Result<Self, ModelError> {
        if !(1..=512).contains(&options.threads) {
            return Err(engine(&"threads must be 1 to 512"));
        }
        let stated = stated(&options.gguf)?;
        let backend = backend()?;
        let params = LlamaModelParams::default().with_n_gpu_layers(options.gpu_layers);
        let model = LlamaModel::load_from_file(backend, &options.gguf, &params)
            .map_err(|error| engine(&format!("{}: {error}", options.gguf.display())))?;
        let size = |number: u64| usize::try_from(number).map_err(|error| engine(&error));
        let (dimensions, max_tokens) = (
            size(stated.config.hidden)?,
            size(stated.config.max_tokens.min(MOST_TOKENS))?,
        );
        if usize::try_from(model.n_embd()) != Ok(dimensions) {
            return Err(engine(&"llama.cpp reads another vector length"));
        }
        let reader = Arc::new(Reader {
            model,
            max_tokens,
            unaccents: stated.unaccents,
        });
        let reading = Arc::clone(&reader);
        let threads = i32::try_from(options.threads).map_err(|error| engine(&error))?;
        let (jobs, inbox) = mpsc::channel();
        let (ready, loaded) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("factum-embedder".to_owned())
            .spawn(move || match Worker::new(backend, &reading, threads) {
                Ok(worker) if ready.send(Ok(())).is_ok() => worker.run(&inbox),
                Ok(_) => {}
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            })
            .map_err(|error| engine(&error))?;
        loaded
            .recv()
            .map_err(|_| engine(&"the engine's thread ended while it started"))??;
        Ok(Self {
            identity: embedder_identity(options),
            dimensions,
            reader,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Tokens of a text that are read, the two around it included.
    pub fn max_tokens(&self) -> usize {
        self.reader.max_tokens
    }

    /// The tokens that a text is read as.
    pub fn tokens(&self, text: &str) -> Vec<i32> {
        let tokens = self.reader.tokens(text).into_iter();
        tokens.map(|token| token.0).collect()
    }
}

impl Embedder for LocalEmbedder {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        control: &'a Control,
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let job = Job {
                texts: texts.to_vec(),
                control: control.clone(),
                reply,
            };
            let ended = || engine(&"the engine's thread ended");
            let jobs = self.jobs.as_ref().ok_or_else(ended)?;
            jobs.send(job).map_err(|_| ended())?;
            answer.await.map_err(|_| ended())?
        })
    }
}

impl Debug for LocalEmbedder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEmbedder")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Drop for LocalEmbedder {
    fn drop(&mut self) {
        // The thread ends once no one can ask it anything.
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn stated(path: &Path) -> Result<Stated, ModelError> {
    let named = |what: &dyn fmt::Display| engine(&format!("{}: {what}", path.display()));
    let file = File::open(path).map_err(|error| named(&error))?;
    let length = file.metadata().map_err(|error| named(&error))?.len();
    let header = read_header(BufReader::new(file)).map_err(|error| named(&error))?;
    if header.text("general.architecture") != Some(GGUF_ARCHITECTURE) {
        return Err(named(
            &"no sentence model, which has the architecture \"bert\"",
        ));
    }
    let report = check_gguf_header(&header, "the file", length);
    if let Some(finding) = report.findings.first() {
        return Err(named(finding));
    }
    Ok(Stated {
        config: SentenceConfig::of_header(&header, report.facts.vocabulary)
            .map_err(|finding| named(&finding))?,
        unaccents: unaccents(&header),
    })
}

/// Whether the tokenizer takes accents away. Files that were not converted here may say nothing of it; then it does
/// where it writes all in lower case, and that it does unless something else is said.
fn unaccents(header: &Header) -> bool {
    if header.text(NORMALIZER_KEY).is_some() {
        return Normalizer::stated(header) == Normalizer::Unaccented;
    }
    let said = |key: &str| match header.entries.get(key) {
        Some(Value::Bool(said)) => Some(*said),
        _ => None,
    };
    said("tokenizer.ggml.normalizer.strip_accents")
        .or_else(|| said("tokenizer.ggml.normalizer.lowercase"))
        .unwrap_or(true)
}

/// How a text becomes tokens.
struct Reader {
    model: LlamaModel,
    max_tokens: usize,
    unaccents: bool,
}

struct Worker<'model> {
    reader: &'model Reader,
    context: LlamaContext<'model>,
    batch: LlamaBatch<'static>,
}

impl<'model> Worker<'model> {
    fn new(
        backend: &LlamaBackend,
        reader: &'model Reader,
        threads: i32,
    ) -> Result<Self, ModelError> {
        let tokens = u32::try_from(reader.max_tokens).map_err(|error| engine(&error))?;
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(tokens))
            .with_n_seq_max(1)
            .with_n_batch(tokens)
            .with_n_ubatch(tokens)
            .with_n_threads(threads)
            .with_n_threads_batch(threads)
            .with_flash_attention_policy(llama_cpp_sys_2::LLAMA_FLASH_ATTN_TYPE_DISABLED)
            .with_embeddings(true)
            .with_pooling_type(LlamaPoolingType::Mean)
            .with_no_perf(true);
        let context = reader
            .model
            .new_context(backend, params)
            .map_err(|error| engine(&error))?;
        if context.n_ctx() < tokens || context.n_ubatch() < tokens {
            return Err(engine(&"llama.cpp changed the sizes that it was given"));
        }
        Ok(Self {
            reader,
            context,
            batch: LlamaBatch::new(reader.max_tokens, 1),
        })
    }

    fn run(mut self, jobs: &mpsc::Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            let made = self.work(&job);
            // A caller who has gone need not be told.
            let _ = job.reply.send(made);
        }
    }

    fn work(&mut self, job: &Job) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut out = Vec::with_capacity(job.texts.len());
        for (place, text) in job.texts.iter().enumerate() {
            let gone = job.control.cancel.is_cancelled() || job.reply.is_closed();
            if gone || !job.control.admits_blocking(place) {
                return Err(ModelError::Cancelled);
            }
            out.push(self.vector(text)?);
        }
        Ok(out)
    }

    fn vector(&mut self, text: &str) -> Result<Vec<f32>, ModelError> {
        let tokens = self.reader.tokens(text);
        self.batch.clear();
        for (place, token) in (0..).zip(tokens) {
            self.batch
                .add(token, place, &[0], true)
                .map_err(|error| engine(&error))?;
        }
        self.context
            .encode(&mut self.batch)
            .map_err(|error| engine(&error))?;
        let mean = self
            .context
            .embeddings_seq_ith(0)
            .map_err(|error| engine(&error))?;
        unit(mean)
    }
}

impl Reader {
    /// The tokens of a text between the two that stand around every one. What is too long is cut.
    fn tokens(&self, text: &str) -> Vec<LlamaToken> {
        let text = if self.unaccents {
            unaccented(text).into()
        } else {
            Cow::Borrowed(text)
        };
        let vocabulary = self.model.vocab();
        let mut tokens = vocabulary.tokenize(text.as_bytes(), true, false);
        if tokens.len() > self.max_tokens
            && let Some(last) = tokens.last().copied()
        {
            tokens.truncate(self.max_tokens - 1);
            tokens.push(last);
        }
        tokens
    }
}

/// A text as BERT's tokenizer sees it: see [`Normalizer::Unaccented`].
fn unaccented(text: &str) -> String {
    let categories = CodePointMapData::<GeneralCategory>::new();
    let nfd = DecomposingNormalizerBorrowed::new_nfd();
    let kept = nfd.normalize_iter(text.chars().filter(|c| !is_control(*c)));
    kept.filter(|c| categories.get(*c) != GeneralCategory::NonspacingMark)
        .collect()
}

fn is_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\t' | '\n' | '\r')
}

/// The vector in its direction with length one.
fn unit(vector: &[f32]) -> Result<Vec<f32>, ModelError> {
    let squares: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    let length = squares.sqrt();
    if !length.is_finite() || length <= 0.0 {
        return Err(engine(&"the model gave a vector without a direction"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "vectors are kept so")]
    let scaled = |x: &f32| (f64::from(*x) / length) as f32;
    Ok(vector.iter().map(scaled).collect())
}
