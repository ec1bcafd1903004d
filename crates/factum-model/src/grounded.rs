//! The grammar of a [`GroundedSchema`], as a machine over bytes.
//!
//! It accepts exactly the compact JSON texts that the schema allows, ids and substrings included, and no
//! state of it is a dead end: from each, some text leads to the end. A decoder asks it which tokens may come
//! next; a checker asks it about a whole text. It knows nothing of tokens, models or files.
//!
//! A general grammar engine could hold the same rules, but not say how a reply can be brought to its end
//! within so many tokens; this machine knows where its items end.

mod free;
mod substrings;

use serde_json::Value;

use crate::constraint::{FieldValue, GroundedSchema};
use crate::error::ModelError;
use free::FreeState;
use substrings::{SubstringState, Substrings};

/// What closes a reply after a whole item.
pub const CLOSE_LIST: &[u8] = b"]}";
/// What closes a reply after the last field's value that an item needs.
pub const CLOSE_VALUE: &[u8] = b"\"}]}";

/// A schema, ready to be held against bytes.
#[derive(Debug)]
pub struct GroundedMachine {
    /// `{"claims":[`
    open: Vec<u8>,
    /// `{"evidence":["`
    item_open: Vec<u8>,
    /// Each with its closing quote, so that none is a prefix of another.
    ids: Vec<Vec<u8>>,
    fields: Vec<Field>,
    max_items: u32,
    max_citations: u32,
    /// For each source, whether an item can have it as its first citation.
    leads: Vec<bool>,
}

#[derive(Debug)]
struct Field {
    /// `"name":"`
    key: Vec<u8>,
    optional: bool,
    value: FieldRule,
}

#[derive(Debug)]
enum FieldRule {
    Free {
        max_chars: u32,
    },
    OneOf(Vec<Vec<u8>>),
    /// One for each source.
    Substring(Vec<Substrings>),
}

/// How far a text has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroundedState {
    place: Place,
    /// Whole items so far.
    items: u32,
    /// Citations of this item so far.
    cited: u32,
    first: u32,
    last: u32,
    /// The next field that may come.
    field: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// So many bytes into `{"claims":[`.
    Open(u32),
    ListStart,
    NextItem,
    /// So many bytes into `{"evidence":["`.
    ItemOpen(u32),
    Id(Choice),
    AfterId,
    NextId,
    /// After the citations, or after a value.
    AfterValue,
    Key(Choice),
    Free(FreeState),
    OneOf(Choice),
    Substring(SubstringState),
    AfterItem,
    CloseList,
    Done,
}

/// Some of several words, all of which begin with the first `depth` bytes of word `like`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    like: u32,
    depth: u32,
}

impl Choice {
    /// Nothing has been written.
    const ALL: Self = Self { like: 0, depth: 0 };
}

impl GroundedMachine {
    /// The machine of `schema`.
    ///
    /// # Errors
    /// [`ModelError::BadConstraint`]: ids or keys that are not distinct or not as their types say, or limits of zero.
    pub fn new(schema: &GroundedSchema) -> Result<Self, ModelError> {
        check(schema)?;
        let mut fields = Vec::new();
        for shape in &schema.fields {
            let value = match &shape.value {
                FieldValue::Free => FieldRule::Free {
                    max_chars: shape.max_chars,
                },
                FieldValue::OneOf(values) => FieldRule::OneOf(
                    values
                        .iter()
                        .map(|value| quoted(value).map(|text| text[1..].to_vec()))
                        .collect::<Result<_, _>>()?,
                ),
                FieldValue::Substring => FieldRule::Substring(
                    schema
                        .sources
                        .iter()
                        .map(|source| Substrings::new(&source.text, shape.max_chars))
                        .collect(),
                ),
            };
            fields.push(Field {
                key: [quoted(&shape.name)?.as_slice(), b":\""].concat(),
                optional: shape.optional,
                value,
            });
        }
        let leads = (0..schema.sources.len())
            .map(|source| {
                fields
                    .iter()
                    .all(|field| field.optional || field.has_value(source))
            })
            .collect();
        Ok(Self {
            open: [b"{", quoted(&schema.items_key)?.as_slice(), b":["].concat(),
            item_open: [b"{", quoted(&schema.citations_key)?.as_slice(), b":[\""].concat(),
            ids: schema
                .sources
                .iter()
                .map(|source| [source.id.as_bytes(), b"\""].concat())
                .collect(),
            fields,
            max_items: schema.max_items,
            max_citations: schema.max_citations,
            leads,
        })
    }

    /// Before the first byte.
    pub const fn start(&self) -> GroundedState {
        GroundedState {
            place: Place::Open(0),
            items: 0,
            cited: 0,
            first: 0,
            last: 0,
            field: 0,
        }
    }

    /// The shortest text of all: an empty list.
    pub fn shortest(&self) -> Vec<u8> {
        [self.open.as_slice(), CLOSE_LIST].concat()
    }

    /// Whether `text` is what the schema allows, byte for byte.
    pub fn accepts(&self, text: &[u8]) -> bool {
        let mut state = self.start();
        for byte in text {
            let Some(next) = self.step(state, *byte) else {
                return false;
            };
            state = next;
        }
        state.is_done()
    }

    /// The state after one more byte; none where that byte is not allowed.
    pub fn step(&self, state: GroundedState, byte: u8) -> Option<GroundedState> {
        let place = match state.place {
            Place::Open(at) => along(&self.open, at, byte, Place::Open, Place::ListStart)?,
            Place::ListStart | Place::NextItem => self.item_start(state, byte)?,
            Place::ItemOpen(at) => {
                let after = Place::Id(Choice::ALL);
                along(&self.item_open, at, byte, Place::ItemOpen, after)?
            }
            Place::Id(choice) => return self.id_byte(state, choice, byte),
            Place::AfterId => match byte {
                b']' => Place::AfterValue,
                b',' if self.may_cite_more(state) => Place::NextId,
                _ => return None,
            },
            Place::NextId if byte == b'"' => Place::Id(Choice::ALL),
            Place::AfterValue => return self.after_value(state, byte),
            Place::Key(choice) => return self.key_byte(state, choice, byte),
            Place::Free(_) | Place::OneOf(_) | Place::Substring(_) => {
                self.value_byte(state, byte)?
            }
            Place::AfterItem => match byte {
                b']' => Place::CloseList,
                b',' if state.items < self.max_items => Place::NextItem,
                _ => return None,
            },
            Place::CloseList if byte == b'}' => Place::Done,
            Place::NextId | Place::CloseList | Place::Done => return None,
        };
        Some(GroundedState { place, ..state })
    }

    /// Whether [`CLOSE_VALUE`] may follow: in a value that can end here, with no needed field to come.
    pub fn can_close_value(&self, state: GroundedState) -> bool {
        let value = matches!(
            state.place,
            Place::Free(_) | Place::OneOf(_) | Place::Substring(_)
        );
        value
            && self.needed_from(state.field).is_none()
            && self.value_byte(state, b'"') == Some(Place::AfterValue)
    }

    fn item_start(&self, state: GroundedState, byte: u8) -> Option<Place> {
        match byte {
            b']' if state.place == Place::ListStart => Some(Place::CloseList),
            b'{' if state.items < self.max_items && self.leads.contains(&true) => {
                Some(Place::ItemOpen(1))
            }
            _ => None,
        }
    }

    fn id_byte(&self, state: GroundedState, choice: Choice, byte: u8) -> Option<GroundedState> {
        let allowed = self
            .ids
            .iter()
            .enumerate()
            .filter(|(source, _)| self.may_cite(state, *source));
        let next = narrowed(allowed, &self.ids, choice, byte)?;
        let id = &self.ids[next.like as usize];
        if next.depth as usize != id.len() {
            return Some(GroundedState {
                place: Place::Id(next),
                ..state
            });
        }
        Some(GroundedState {
            place: Place::AfterId,
            cited: state.cited + 1,
            first: if state.cited == 0 {
                next.like
            } else {
                state.first
            },
            last: next.like,
            field: 0,
            ..state
        })
    }

    /// The first citation is free, as long as its text has a value for every field that needs one. The
    /// others come in the order of the sources, so that none comes twice.
    fn may_cite(&self, state: GroundedState, source: usize) -> bool {
        match state.cited {
            0 => self.leads[source],
            1 => source != state.first as usize,
            _ => source != state.first as usize && source > state.last as usize,
        }
    }

    fn may_cite_more(&self, state: GroundedState) -> bool {
        state.cited < self.max_citations
            && (0..self.ids.len()).any(|source| self.may_cite(state, source))
    }

    fn after_value(&self, state: GroundedState, byte: u8) -> Option<GroundedState> {
        match byte {
            b'}' if self.needed_from(state.field).is_none() => Some(GroundedState {
                place: Place::AfterItem,
                items: state.items + 1,
                cited: 0,
                first: 0,
                last: 0,
                field: 0,
            }),
            b',' => {
                let (like, _) = self.keys(state).next()?;
                let like = u32::try_from(like).ok()?;
                Some(GroundedState {
                    place: Place::Key(Choice { like, depth: 0 }),
                    ..state
                })
            }
            _ => None,
        }
    }

    /// The first field from here on that must come.
    fn needed_from(&self, field: u32) -> Option<usize> {
        (field as usize..self.fields.len()).find(|at| !self.fields[*at].optional)
    }

    /// The fields that may come now: none is passed over that must come.
    fn keys(&self, state: GroundedState) -> impl Iterator<Item = (usize, &Vec<u8>)> {
        let end = self
            .needed_from(state.field)
            .map_or(self.fields.len(), |needed| needed + 1);
        (state.field as usize..end)
            .filter(move |at| self.fields[*at].has_value(state.first as usize))
            .map(|at| (at, &self.fields[at].key))
    }

    fn key_byte(&self, state: GroundedState, choice: Choice, byte: u8) -> Option<GroundedState> {
        let like = &self.fields[choice.like as usize].key;
        let depth = choice.depth as usize;
        let (at, key) = self.keys(state).find(|(_, key)| {
            key.get(depth) == Some(&byte) && key.get(..depth) == like.get(..depth)
        })?;
        let next = u32::try_from(at).ok()?;
        if depth + 1 != key.len() {
            return Some(GroundedState {
                place: Place::Key(Choice {
                    like: next,
                    depth: choice.depth + 1,
                }),
                ..state
            });
        }
        let place = match &self.fields[at].value {
            FieldRule::Free { .. } => Place::Free(FreeState::START),
            FieldRule::OneOf(_) => Place::OneOf(Choice::ALL),
            FieldRule::Substring(texts) => Place::Substring(texts[state.first as usize].start()),
        };
        Some(GroundedState {
            place,
            field: next + 1,
            ..state
        })
    }

    fn value_byte(&self, state: GroundedState, byte: u8) -> Option<Place> {
        let field = self.fields.get((state.field as usize).checked_sub(1)?)?;
        match (state.place, &field.value) {
            (Place::Free(free), FieldRule::Free { max_chars }) => {
                if byte == b'"' && free.may_end() {
                    return Some(Place::AfterValue);
                }
                free.step(byte, *max_chars).map(Place::Free)
            }
            (Place::OneOf(choice), FieldRule::OneOf(values)) => {
                let next = narrowed(values.iter().enumerate(), values, choice, byte)?;
                if next.depth as usize == values[next.like as usize].len() {
                    return Some(Place::AfterValue);
                }
                Some(Place::OneOf(next))
            }
            (Place::Substring(part), FieldRule::Substring(texts)) => {
                let text = texts.get(state.first as usize)?;
                if byte == b'"' && text.may_end(part) {
                    return Some(Place::AfterValue);
                }
                text.step(part, byte).map(Place::Substring)
            }
            _ => None,
        }
    }
}

impl Field {
    fn has_value(&self, source: usize) -> bool {
        match &self.value {
            FieldRule::Free { .. } => true,
            FieldRule::OneOf(values) => !values.is_empty(),
            FieldRule::Substring(texts) => texts.get(source).is_some_and(|text| !text.is_empty()),
        }
    }
}

impl GroundedState {
    /// The text is whole.
    pub fn is_done(self) -> bool {
        self.place == Place::Done
    }

    /// Just after a whole item.
    pub fn is_item_end(self) -> bool {
        self.place == Place::AfterItem
    }

    /// Before an item's first byte.
    pub fn is_item_start(self) -> bool {
        matches!(self.place, Place::ListStart | Place::NextItem)
    }
}

/// One byte further in `text`: `inside` of it, or what comes `after` it.
fn along(text: &[u8], at: u32, byte: u8, inside: fn(u32) -> Place, after: Place) -> Option<Place> {
    if text.get(at as usize) != Some(&byte) {
        return None;
    }
    let next = at + 1;
    Some(if next as usize == text.len() {
        after
    } else {
        inside(next)
    })
}

/// The words of `allowed` that still fit after one more byte.
fn narrowed<'a>(
    mut allowed: impl Iterator<Item = (usize, &'a Vec<u8>)>,
    words: &[Vec<u8>],
    choice: Choice,
    byte: u8,
) -> Option<Choice> {
    let depth = choice.depth as usize;
    let read = words.get(choice.like as usize)?.get(..depth)?;
    let (like, _) =
        allowed.find(|(_, word)| word.get(depth) == Some(&byte) && word.starts_with(read))?;
    Some(Choice {
        like: u32::try_from(like).ok()?,
        depth: choice.depth + 1,
    })
}

fn quoted(text: &str) -> Result<Vec<u8>, ModelError> {
    serde_json::to_vec(&Value::from(text)).map_err(|error| bad(error.to_string()))
}

fn bad(message: impl Into<String>) -> ModelError {
    ModelError::BadConstraint(message.into())
}

fn check(schema: &GroundedSchema) -> Result<(), ModelError> {
    if schema.max_citations == 0 {
        return Err(bad("an item must be allowed a citation"));
    }
    let mut ids: Vec<&str> = schema.sources.iter().map(|s| s.id.as_str()).collect();
    for id in &ids {
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(bad(format!(
                "source id {id:?} is not ASCII letters and digits"
            )));
        }
    }
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(bad("two sources have the same id"));
    }
    let mut keys: Vec<&str> = schema.fields.iter().map(|f| f.name.as_str()).collect();
    keys.push(&schema.citations_key);
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(bad("two keys of an item are the same"));
    }
    for field in &schema.fields {
        if field.max_chars == 0 {
            return Err(bad(format!("field {:?} may hold nothing", field.name)));
        }
        if field.value == FieldValue::OneOf(Vec::new()) && !field.optional {
            return Err(bad(format!(
                "field {:?} has no value to choose",
                field.name
            )));
        }
    }
    Ok(())
}
