//! The body of a chat completion request, as it goes over the wire.

use std::collections::BTreeMap;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{ConstraintMode, LimitField};
use crate::chat::{ChatMessage, ChatRequest, ToolSpec};
use crate::constraint::{Constraint, GroundedSchema};
use crate::request::GenerationRequest;

/// The version of what is sent and of how replies are read. It is part of the identity.
pub(super) const PROTOCOL: &str = "1";

/// A request's body, whether of one answer or of a conversation: greedy, one answer, streamed.
#[derive(Serialize)]
struct Body<'a, M> {
    model: &'a str,
    messages: M,
    temperature: u8,
    seed: u8,
    n: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
}

impl<'a, M> Body<'a, M> {
    fn new(model: &'a str, messages: M, limit: LimitField, max_new_tokens: u32) -> Self {
        let limited = |field| (limit == field).then_some(max_new_tokens);
        Self {
            model,
            messages,
            temperature: 0,
            seed: 0,
            n: 1,
            max_tokens: limited(LimitField::MaxTokens),
            max_completion_tokens: limited(LimitField::MaxCompletionTokens),
            stream: true,
            stream_options: StreamOptions {
                include_usage: true,
            },
            response_format: None,
            tools: Vec::new(),
        }
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonSchema { json_schema: NamedSchema<'a> },
    JsonObject,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: OrderedSchema<'a>,
}

/// The JSON of a request: greedy, one answer, streamed, no tools.
pub(super) fn chat_body(
    model: &str,
    mode: ConstraintMode,
    limit: LimitField,
    request: &GenerationRequest,
) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Body {
        response_format: response_format(mode, &request.constraint),
        ..Body::new(model, &request.messages, limit, request.max_new_tokens)
    })
}

/// The JSON of a conversation's request: greedy, one answer, streamed, with the tools that may be called.
pub(super) fn tool_body(
    model: &str,
    limit: LimitField,
    request: &ChatRequest,
) -> Result<Vec<u8>, serde_json::Error> {
    let tool = |tool: &ToolSpec| {
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.parameters}})
    };
    let messages: Vec<Value> = request.messages.iter().map(wire_message).collect();
    serde_json::to_vec(&Body {
        tools: request.tools.iter().map(tool).collect(),
        ..Body::new(model, messages, limit, request.max_new_tokens)
    })
}

fn wire_message(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::System(text) => json!({"role": "system", "content": text}),
        ChatMessage::User(text) => json!({"role": "user", "content": text}),
        ChatMessage::Tool { call_id, text } => {
            json!({"role": "tool", "tool_call_id": call_id, "content": text})
        }
        ChatMessage::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        ChatMessage::Assistant { text, calls } => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| {
                    json!({"id": call.id, "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments}})
                })
                .collect();
            json!({"role": "assistant", "content": text, "tool_calls": calls})
        }
    }
}

fn response_format(mode: ConstraintMode, constraint: &Constraint) -> Option<ResponseFormat<'_>> {
    let schema = match constraint {
        Constraint::None => return None,
        Constraint::JsonSchema(schema) => OrderedSchema {
            schema: schema.clone(),
            order: BTreeMap::new(),
        },
        Constraint::Grounded(grounded) => OrderedSchema::of(grounded),
    };
    match mode {
        ConstraintMode::JsonSchema => Some(ResponseFormat::JsonSchema {
            json_schema: NamedSchema {
                name: "answer",
                strict: true,
                schema,
            },
        }),
        ConstraintMode::JsonObject => Some(ResponseFormat::JsonObject),
        ConstraintMode::Plain => None,
    }
}

/// A schema that is written with an item's keys in their own order. Servers make grammars that follow the
/// order of `properties`, and a citation has to be written before the value that it supports.
struct OrderedSchema<'a> {
    schema: Value,
    order: BTreeMap<&'a str, usize>,
}

impl<'a> OrderedSchema<'a> {
    fn of(grounded: &'a GroundedSchema) -> Self {
        let fields = grounded.fields.iter().map(|field| field.name.as_str());
        let keys = std::iter::once(grounded.citations_key.as_str()).chain(fields);
        Self {
            schema: grounded.json_schema(),
            order: keys.enumerate().map(|(place, key)| (key, place)).collect(),
        }
    }
}

impl Serialize for OrderedSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Ordered {
            value: &self.schema,
            order: &self.order,
        }
        .serialize(serializer)
    }
}

struct Ordered<'a> {
    value: &'a Value,
    order: &'a BTreeMap<&'a str, usize>,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inner = |value| Ordered {
            value,
            order: self.order,
        };
        match self.value {
            Value::Object(map) => {
                let place = |key: &String| *self.order.get(key.as_str()).unwrap_or(&usize::MAX);
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|(key, _)| place(key));
                let mut out = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    out.serialize_entry(key, &inner(value))?;
                }
                out.end()
            }
            Value::Array(items) => {
                let mut out = serializer.serialize_seq(Some(items.len()))?;
                for value in items {
                    out.serialize_element(&inner(value))?;
                }
                out.end()
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::{FieldShape, FieldValue, Source};
    use crate::request::{Message, Role};

    fn request(constraint: Constraint) -> GenerationRequest {
        GenerationRequest {
            messages: vec![Message::new(Role::User, "Ä \"quoted\"")],
            constraint,
            input_budget: 100,
            max_new_tokens: 9,
        }
    }

    fn field(name: &str) -> FieldShape {
        FieldShape {
            name: name.to_owned(),
            optional: false,
            max_chars: 5,
            value: FieldValue::Substring,
        }
    }

    fn body(mode: ConstraintMode, constraint: Constraint) -> String {
        let limit = LimitField::MaxTokens;
        String::from_utf8(chat_body("m", mode, limit, &request(constraint)).unwrap()).unwrap()
    }

    const PLAIN: &str = r#"{"model":"m","messages":[{"role":"user","content":"Ä \"quoted\""}],"temperature":0,"seed":0,"n":1,"max_tokens":9,"stream":true,"stream_options":{"include_usage":true}"#;

    #[test]
    fn a_schema_keeps_the_order_in_which_an_item_is_to_be_written() {
        let grounded = GroundedSchema {
            items_key: "claims".to_owned(),
            max_items: 2,
            fields: vec![field("value"), field("a_note")],
            citations_key: "evidence".to_owned(),
            max_citations: 1,
            sources: vec![Source {
                id: "e1".to_owned(),
                text: "A hose.".to_owned(),
            }],
        };
        let expected = r#","response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"type":"object","properties":{"claims":{"type":"array","items":{"type":"object","properties":{"evidence":{"type":"array","items":{"type":"string","enum":["e1"]},"minItems":1,"maxItems":1},"value":{"type":"string","minLength":1,"maxLength":5},"a_note":{"type":"string","minLength":1,"maxLength":5}},"required":["evidence","value","a_note"],"additionalProperties":false},"maxItems":2}},"required":["claims"],"additionalProperties":false}}}}"#;
        assert_eq!(
            body(ConstraintMode::JsonSchema, Constraint::Grounded(grounded)),
            format!("{PLAIN}{expected}")
        );
    }

    #[test]
    fn the_most_new_tokens_are_called_as_the_server_wants_it() {
        let limit = LimitField::MaxCompletionTokens;
        let plain = request(Constraint::None);
        let body = chat_body("m", ConstraintMode::Plain, limit, &plain).unwrap();
        let expected = PLAIN.replace("max_tokens", "max_completion_tokens") + "}";
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }

    #[test]
    fn the_mode_decides_what_of_a_constraint_is_sent() {
        let schema = || Constraint::JsonSchema(serde_json::json!({"type": "object"}));
        assert_eq!(
            body(ConstraintMode::JsonObject, schema()),
            format!(r#"{PLAIN},"response_format":{{"type":"json_object"}}}}"#)
        );
        assert_eq!(body(ConstraintMode::Plain, schema()), format!("{PLAIN}}}"));
        for mode in [
            ConstraintMode::JsonSchema,
            ConstraintMode::JsonObject,
            ConstraintMode::Plain,
        ] {
            assert_eq!(body(mode, Constraint::None), format!("{PLAIN}}}"));
        }
    }
}
