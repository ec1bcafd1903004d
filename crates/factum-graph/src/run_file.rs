//! The run file, `factum/run/1`: one build, whole, as it is exported and read back.
//!
//! What the engine writes is these types. What comes from outside goes through [`parse_run_file`],
//! which refuses what a lenient JSON reader would let pass: a key given twice (two readers would see
//! two different runs), a field nobody knows, nesting without end. It does not say that the run is
//! *right*; [`crate::verify`] does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use factum_base::{BodyDigest, CaseId, NodeKey, PrincipalId, canonical_json};
use factum_casefile::{NodeResult, Snapshot};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};
use thiserror::Error;

/// The value of a run file's `format`.
pub const RUN_FORMAT: &str = "factum/run/1";

/// Deepest nesting of arrays and objects accepted. Specs need about ten levels.
pub const MAX_DEPTH: usize = 64;

/// One build of one case file for one principal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFile {
    /// [`RUN_FORMAT`].
    pub format: String,
    /// The run's own name.
    pub run_id: String,
    /// The case file.
    pub case_id: CaseId,
    /// Who the summary was made for.
    pub principal: PrincipalId,
    /// The event number that the snapshot was taken at.
    pub event: u64,
    /// The profile's name.
    pub profile: String,
    /// Nothing earlier was reused.
    pub full: bool,
    /// What the principal could see.
    pub snapshot: Snapshot,
    /// SHA-256 of the snapshot's RFC 8785 text.
    pub snapshot_sha256: BodyDigest,
    /// The root's key.
    pub root: NodeKey,
    /// All nodes, children before parents; the root is last.
    pub nodes: Vec<RunNode>,
    /// Generations that nodes refer to, by digest.
    pub generations: BTreeMap<String, Value>,
    /// How much was done.
    pub counts: RunCounts,
    /// What had become out of date before this run.
    pub invalidation: Invalidation,
    /// How long the build took.
    pub seconds: f64,
}

/// Leaf or reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// Reads a segment of a document.
    Leaf,
    /// Reads the claims of its children.
    Reduction,
}

/// One node of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunNode {
    /// The node's name, which holds slots and never document ids.
    pub name: String,
    /// Leaf or reduction.
    pub kind: NodeKind,
    /// Names of the children in document order, whatever order a generator was given them in; empty
    /// for a leaf.
    pub children: Vec<String>,
    /// The whole spec.
    pub spec: Value,
    /// SHA-256 of the spec's RFC 8785 text.
    pub key: NodeKey,
    /// An earlier result was taken over.
    pub reused: bool,
    /// What it produced.
    pub result: NodeResult,
}

/// How much a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunCounts {
    /// Nodes in all.
    pub nodes: u64,
    /// Nodes made in this run.
    pub recomputed: u64,
    /// Nodes taken over.
    pub reused: u64,
    /// Answers asked of the model.
    pub model_calls: u64,
    /// Recorded answers used instead of a call.
    pub generations_reused: u64,
    /// Tokens that the model produced in this run.
    pub new_tokens: u64,
}

/// What had become out of date before a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invalidation {
    /// Names of the nodes whose key changed or that are new.
    pub nodes: Vec<String>,
    /// The root key of the head before; none for a first build.
    pub previous_root_key: Option<NodeKey>,
    /// The root key that the snapshot demands; the run's root.
    pub current_root_key: NodeKey,
    /// The status of the root before; none for a first build.
    pub previous_status: Option<String>,
    /// The recorded refusal to serve the root before.
    pub serve_refusal: Option<Value>,
}

/// Bytes that are not a run file.
#[derive(Debug, Error)]
pub enum RunFileError {
    /// Not JSON: bad syntax, bad UTF-8, a number too large, or bytes behind the end.
    #[error("not JSON: {0}")]
    Json(serde_json::Error),
    /// An object gives a key twice, so that two readers could see two different runs.
    #[error("the key {0:?} is given twice in one object")]
    DuplicateKey(String),
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// JSON, but of another format.
    #[error("the format is {0:?}, not {RUN_FORMAT:?}")]
    Format(String),
    /// A field is missing, of the wrong type, or has a value that can't be.
    #[error("not a run file: {0}")]
    Shape(serde_json::Error),
    /// A field that the format does not have.
    #[error("unknown field at {0}")]
    UnknownField(String),
}

/// SHA-256 of a snapshot's RFC 8785 text, as `snapshot_sha256` holds it.
///
/// # Errors
/// Never for snapshots made by this workspace; the JSON library's signature allows it.
pub fn snapshot_sha256(snapshot: &Snapshot) -> Result<BodyDigest, serde_json::Error> {
    canonical_json(snapshot).map(|text| BodyDigest::of(text.as_bytes()))
}

/// Reads a run file strictly.
///
/// # Errors
/// See [`RunFileError`].
pub fn parse_run_file(bytes: &[u8]) -> Result<RunFile, RunFileError> {
    let value = parse_strict_json(bytes)?;
    if let Some(format) = value.get("format").and_then(Value::as_str)
        && format != RUN_FORMAT
    {
        return Err(RunFileError::Format(format.chars().take(80).collect()));
    }
    let run = RunFile::deserialize(&value).map_err(RunFileError::Shape)?;
    refuse_unknown_fields(&value, &run)?;
    Ok(run)
}

/// Reads JSON strictly: no key twice in one object, no nesting beyond [`MAX_DEPTH`], nothing behind
/// the end. [`crate::verify::verify_run`] wants its input read this way.
///
/// # Errors
/// [`RunFileError::Json`], [`RunFileError::DuplicateKey`] or [`RunFileError::TooDeep`].
pub fn parse_strict_json(bytes: &[u8]) -> Result<Value, RunFileError> {
    let fault = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let parsed = Strict {
        depth: 0,
        fault: &fault,
    }
    .deserialize(&mut reader)
    .and_then(|value| reader.end().map(|()| value));
    match (parsed, fault.into_inner()) {
        (_, Some(fault)) => Err(fault),
        (Ok(value), None) => Ok(value),
        (Err(error), None) => Err(RunFileError::Json(error)),
    }
}

// The domain's own types are read leniently by serde, so what they dropped is found by writing the
// parsed run again: a field that is not there afterwards was unknown.
fn refuse_unknown_fields(value: &Value, run: &RunFile) -> Result<(), RunFileError> {
    let written = serde_json::to_value(run).map_err(RunFileError::Shape)?;
    match unknown_field(value, &written, "run") {
        Some(place) => Err(RunFileError::UnknownField(place)),
        None => Ok(()),
    }
}

// Fields of a result that are left out when empty, and may be given all the same.
const OPTIONAL: [&str; 4] = ["withheld", "diagnostic", "repairs", "generation"];

fn unknown_field(given: &Value, written: &Value, place: &str) -> Option<String> {
    match (given, written) {
        (Value::Object(given), Value::Object(written)) => {
            given
                .iter()
                .find_map(|(name, value)| match written.get(name) {
                    Some(other) => unknown_field(value, other, &format!("{place}.{name}")),
                    None => (!is_empty_optional(name, value)).then(|| format!("{place}.{name}")),
                })
        }
        (Value::Array(given), Value::Array(written)) => given
            .iter()
            .zip(written)
            .enumerate()
            .find_map(|(n, (a, b))| unknown_field(a, b, &format!("{place}[{n}]"))),
        _ => None,
    }
}

fn is_empty_optional(name: &str, value: &Value) -> bool {
    OPTIONAL.contains(&name) && (value.is_null() || value.as_array().is_some_and(Vec::is_empty))
}

/// Builds a [`Value`] while refusing what `Value`'s own reader lets pass. Faults of its own go into
/// `fault`, since serde's error type can carry only text.
#[derive(Clone, Copy)]
struct Strict<'f> {
    depth: usize,
    fault: &'f RefCell<Option<RunFileError>>,
}

impl Strict<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth < MAX_DEPTH {
            return Ok(Self {
                depth: self.depth + 1,
                ..self
            });
        }
        Err(self.refuse(RunFileError::TooDeep))
    }

    fn refuse<E: serde::de::Error>(self, fault: RunFileError) -> E {
        let error = E::custom(&fault);
        self.fault.replace(Some(fault));
        error
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let below = self.deeper()?;
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(below)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let below = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(self.refuse(RunFileError::DuplicateKey(key.chars().take(80).collect())));
            }
            let value = entries.next_value_seed(below)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
