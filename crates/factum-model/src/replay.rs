//! Recorded generations as a generator: the same inputs get the answers that were recorded for them.
//!
//! It takes the identity of the model that was recorded, so that digests of inputs are the same. What was
//! not recorded is an error that names the digest; nothing is made up. An input that was refused for its
//! length left no generation, so it counts as not recorded here.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use factum_base::sha256;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::error::ModelError;
use crate::generation::Generation;
use crate::generator::{
    BoxFuture, Capabilities, ConstraintKind, Control, GenerationSink, Generator, TokenCount,
    answer_in_turn,
};
use crate::identity::ModelIdentity;
use crate::openai::count::upper_bound;
use crate::record::RecordedGeneration;
use crate::request::{GenerationDigest, GenerationRequest, Message};

/// The `format` of a run file.
const RUN_FORMAT: &str = "factum/run/1";

/// Why a file of recorded generations can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The file can't be read.
    #[error("{path} can't be read: {message}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A run file that is not JSON, or has a record of another shape.
    #[error("not a run file with recorded generations, at {at}: {message}")]
    RunFile {
        /// The path of keys to the fault.
        at: String,
        /// What is wrong.
        message: String,
    },
    /// A run file of another format.
    #[error("the format is {0:?}, not {RUN_FORMAT:?}")]
    Format(String),
    /// A line that is no record.
    #[error("line {line} is no recorded generation, at {at}: {message}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The path of keys to the fault.
        at: String,
        /// What is wrong.
        message: String,
    },
    /// A record's key is no digest.
    #[error("{0:?} is not the digest of a generation's input")]
    Digest(String),
    /// A record's key is not the digest of its input: it was changed by hand.
    #[error("the record for input {0} holds another input")]
    Input(String),
    /// Records of two models: digests of inputs belong to one.
    #[error("the generations are of two models: {first} and {other}")]
    TwoModels {
        /// The first record's identity.
        first: String,
        /// Another one.
        other: String,
    },
    /// Two different answers to one input.
    #[error("two different answers are recorded for input {0}")]
    TwoAnswers(String),
    /// No generation at all, so that there is no model either.
    #[error("no generation is recorded")]
    Empty,
}

#[derive(Deserialize)]
struct RunFile {
    format: String,
    generations: Records,
}

type Records = Entries<RecordedGeneration>;

// An object as its entries: a map would lose a key that is given twice.
struct Entries<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = Entries<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Read(PhantomData))
    }
}

#[derive(Debug)]
struct Answer {
    messages: Vec<Message>,
    generation: Generation,
}

/// Answers from records.
pub struct ReplayGenerator {
    identity: ModelIdentity,
    answers: HashMap<[u8; 32], Answer>,
    // The length of each recorded prompt, by the digest of its messages.
    lengths: HashMap<[u8; 32], TokenCount>,
    calls: AtomicU64,
}

impl ReplayGenerator {
    /// Reads a file: a run file, or JSON lines of records with a `digest` each.
    ///
    /// # Errors
    /// It can't be read or used.
    pub fn open(path: &Path) -> Result<Self, ReplayError> {
        let bytes = std::fs::read(path).map_err(|error| ReplayError::Unreadable {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
        Self::from_bytes(&bytes)
    }

    /// Reads either form: lines, if the first of them is an object with a `digest`.
    ///
    /// # Errors
    /// It can't be used.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReplayError> {
        #[derive(Deserialize)]
        struct Digested {
            #[serde(rename = "digest")]
            _digest: serde::de::IgnoredAny,
        }
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let first = lines.find(|line| !line.trim_ascii().is_empty());
        match first {
            None => Err(ReplayError::Empty),
            Some(line) if serde_json::from_slice::<Digested>(line).is_ok() => {
                Self::from_json_lines(bytes)
            }
            Some(_) => Self::from_run_file(bytes),
        }
    }

    /// Reads the `generations` of a run file. What else is in it is not looked at.
    ///
    /// # Errors
    /// It can't be used.
    pub fn from_run_file(bytes: &[u8]) -> Result<Self, ReplayError> {
        let run: RunFile =
            strict(bytes).map_err(|(at, message)| ReplayError::RunFile { at, message })?;
        if run.format != RUN_FORMAT {
            return Err(ReplayError::Format(run.format.chars().take(80).collect()));
        }
        Self::of(run.generations.0)
    }

    /// Reads records, one a line, each with the `digest` of its input. Empty lines are passed over.
    ///
    /// # Errors
    /// It can't be used.
    pub fn from_json_lines(bytes: &[u8]) -> Result<Self, ReplayError> {
        let mut records = Vec::new();
        for (place, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let record = read_line(line).map_err(|(at, message)| ReplayError::Line {
                line: place + 1,
                at,
                message,
            })?;
            records.push(record);
        }
        Self::of(records)
    }

    fn of(records: Vec<(String, RecordedGeneration)>) -> Result<Self, ReplayError> {
        let identity = records
            .first()
            .map(|(_, record)| record.model.clone())
            .ok_or(ReplayError::Empty)?;
        let mut replay = Self {
            identity,
            answers: HashMap::with_capacity(records.len()),
            lengths: HashMap::with_capacity(records.len()),
            calls: AtomicU64::new(0),
        };
        for (digest, record) in records {
            replay.add(digest, record)?;
        }
        Ok(replay)
    }

    fn add(&mut self, digest: String, record: RecordedGeneration) -> Result<(), ReplayError> {
        if record.model != self.identity {
            return Err(ReplayError::TwoModels {
                first: self.identity.parts().to_string(),
                other: record.model.parts().to_string(),
            });
        }
        let Ok(key) = digest.parse::<GenerationDigest>() else {
            return Err(ReplayError::Digest(digest.chars().take(80).collect()));
        };
        let input = record.input_digest().ok().flatten();
        if input.is_some_and(|input| input != key) {
            return Err(ReplayError::Input(digest));
        }
        let answer = Answer {
            generation: record.generation(),
            messages: record.messages,
        };
        self.lengths.insert(
            digest_of(&answer.messages),
            TokenCount {
                tokens: answer.generation.prompt_tokens,
                exact: !answer.generation.tokens_bounded,
            },
        );
        match self.answers.get(key.as_bytes()) {
            None => {
                self.answers.insert(*key.as_bytes(), answer);
                Ok(())
            }
            Some(before) if same_answer(before, &answer) => Ok(()),
            Some(_) => Err(ReplayError::TwoAnswers(digest)),
        }
    }

    /// How many inputs have answers.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// No input has an answer; never so.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// How many requests were made so far, those without a record included.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn answer(&self, request: &GenerationRequest) -> Result<Generation, ModelError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let digest = request
            .digest(&self.identity)
            .map_err(|error| ModelError::BadConstraint(error.to_string()))?;
        let Some(answer) = self.answers.get(digest.as_bytes()) else {
            return Err(ModelError::NotRecorded {
                digest: digest.to_hex(),
            });
        };
        // The digest covers the messages, so a record with others was changed by hand.
        if answer.messages != request.messages {
            return Err(ModelError::Engine(format!(
                "the record for input {} holds other messages than its digest stands for",
                digest.to_hex()
            )));
        }
        Ok(answer.generation.clone())
    }
}

impl fmt::Debug for ReplayGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayGenerator")
            .field("identity", &self.identity)
            .field("answers", &self.answers.len())
            .finish_non_exhaustive()
    }
}

impl Generator for ReplayGenerator {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    /// Whatever was recorded was recorded under its constraint.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            constraints: vec![ConstraintKind::JsonSchema, ConstraintKind::Grounded],
            parallel: 1,
        }
    }

    /// The recorded length, or [`upper_bound`].
    fn count_tokens<'a>(
        &'a self,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<TokenCount, ModelError>> {
        let bound = TokenCount {
            tokens: upper_bound(messages),
            exact: false,
        };
        let known = self.lengths.get(&digest_of(messages)).copied();
        Box::pin(async move { Ok(known.unwrap_or(bound)) })
    }

    fn generate<'a>(
        &'a self,
        requests: &'a [GenerationRequest],
        control: &'a Control,
        sink: &'a dyn GenerationSink,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            answer_in_turn(requests, control, sink, |request| self.answer(request)).await;
        })
    }
}

// Times and devices may differ between two runs that got the same answer.
fn same_answer(one: &Answer, other: &Answer) -> bool {
    one.messages == other.messages
        && one.generation.text == other.generation.text
        && one.generation.stop == other.generation.stop
        && one.generation.token_ids == other.generation.token_ids
}

fn digest_of(messages: &[Message]) -> [u8; 32] {
    // Texts and words only: this can't fail, and if it did, the bound would be used.
    sha256(&serde_json::to_vec(messages).unwrap_or_default())
}

// The path of keys to a fault, and the fault.
type Fault = (String, String);

fn strict<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| (error.path().to_string(), error.inner().to_string()))?;
    reader
        .end()
        .map_err(|error| ("its end".to_owned(), error.to_string()))?;
    Ok(value)
}

// Two strict types can't share one object in serde, so the digest is taken out by hand.
fn read_line(bytes: &[u8]) -> Result<(String, RecordedGeneration), Fault> {
    let entries: Entries<Value> = strict(bytes)?;
    let mut fields = Map::new();
    for (key, value) in entries.0 {
        if fields.contains_key(&key) {
            return Err((key, "given twice".to_owned()));
        }
        fields.insert(key, value);
    }
    let Some(Value::String(digest)) = fields.remove("digest") else {
        return Err(("digest".to_owned(), "no digest".to_owned()));
    };
    let record = serde_path_to_error::deserialize(Value::Object(fields))
        .map_err(|error| (error.path().to_string(), error.inner().to_string()))?;
    Ok((digest, record))
}
