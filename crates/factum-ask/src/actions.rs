//! Conversations with a model that knows no tool calling: it writes one JSON action at a time, and where its engine
//! can hold it to a schema, it can cite no id that was not before it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use factum_model::chat::{
    ChatCall, ChatMessage, ChatModel, ChatReply, ChatRequest, ChatSink, ToolSpec, Wanted,
};
use factum_model::{
    BoxFuture, Constraint, ConstraintKind, Control, Generation, GenerationRequest, GenerationSink,
    Generator, Message, ModelError, ModelIdentity, Role, StopReason,
};
use serde_json::{Map, Value, json};

/// Asks a [`Generator`] for actions.
#[derive(Debug)]
pub struct ActionModel {
    generator: Arc<dyn Generator>,
}

/// Where the one answer goes, and its words while it is made.
struct Slot<'s> {
    outcome: Mutex<Option<Result<Generation, ModelError>>>,
    heard: Mutex<Heard>,
    sink: &'s dyn ChatSink,
}

/// An action as far as it is written.
#[derive(Default)]
struct Heard {
    bytes: Vec<u8>,
    /// Bytes of words that the sink has.
    said: usize,
}

impl Heard {
    /// The words that are new with these bytes.
    fn add(&mut self, bytes: &[u8]) -> Option<String> {
        self.bytes.extend_from_slice(bytes);
        let words = words_so_far(&self.bytes)?;
        let new = words.get(self.said..)?.to_owned();
        self.said = words.len();
        Some(new)
    }
}

impl GenerationSink for Slot<'_> {
    fn finished(&self, _: usize, outcome: Result<Generation, ModelError>) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    fn piece(&self, _: usize, bytes: &[u8]) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(new) = heard.add(bytes)
            && !new.is_empty()
        {
            self.sink.text(&new);
        }
    }
}

/// The words of an answer whose JSON is not yet whole. None while it is not known to be an answer.
fn words_so_far(bytes: &[u8]) -> Option<String> {
    let whole = match std::str::from_utf8(bytes) {
        Ok(whole) => whole,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
    };
    // What stands at the end may be part of an escape, of at most twelve characters where it is a pair of surrogates.
    let ends = whole.char_indices().rev().map(|(at, _)| at).take(12);
    let action = std::iter::once(whole.len()).chain(ends).find_map(|end| {
        let closed = [r#""}"#, "}", ""].map(|close| whole[..end].to_owned() + close);
        closed
            .iter()
            .find_map(|json| serde_json::from_str::<Map<String, Value>>(json).ok())
    })?;
    let is_answer = action.get("action").and_then(Value::as_str) == Some("answer");
    let text = action.get("text").and_then(Value::as_str)?;
    is_answer.then(|| text.to_owned())
}

impl ActionModel {
    /// A conversation partner that is this generator.
    pub fn new(generator: Arc<dyn Generator>) -> Self {
        Self { generator }
    }

    fn constraint(&self, request: &ChatRequest) -> Constraint {
        if self
            .generator
            .capabilities()
            .holds(ConstraintKind::JsonSchema)
        {
            Constraint::JsonSchema(schema(request))
        } else {
            Constraint::None
        }
    }
}

/// The actions that are possible now, as a JSON Schema.
fn schema(request: &ChatRequest) -> Value {
    let action = |name: &str, properties: Vec<(&str, Value)>| {
        let mut all = Map::new();
        let mut required = vec!["action"];
        all.insert("action".to_owned(), json!({"const": name}));
        for (key, value) in properties {
            all.insert(key.to_owned(), value);
            required.push(key);
        }
        json!({"type": "object", "properties": all, "required": required, "additionalProperties": false})
    };
    let id = json!({"type": "string", "enum": request.citable});
    let ids = if request.citable.is_empty() {
        json!({"type": "array", "maxItems": 0})
    } else {
        json!({"type": "array", "items": id, "maxItems": 8})
    };
    let mut actions = Vec::new();
    let may = |tool: &str| match request.wanted {
        Wanted::Call(only) => tool == only,
        Wanted::Anything => tool == crate::tools::SEARCH || !has_to_look(request),
    };
    if may("answer") {
        let text = json!({"type": "string", "minLength": 1});
        actions.push(action("answer", vec![("text", text)]));
    }
    for tool in request.tools.iter().filter(|tool| may(tool.name)) {
        match tool.name {
            crate::tools::SEARCH => actions.push(action(
                tool.name,
                vec![(
                    "query",
                    json!({"type": "string", "minLength": 1, "maxLength": 200}),
                )],
            )),
            crate::tools::READ if !request.citable.is_empty() => {
                actions.push(action(tool.name, vec![("evidence_id", id.clone())]));
            }
            crate::tools::CITE => {
                actions.push(action(tool.name, vec![("evidence_ids", ids.clone())]));
            }
            _ => {}
        }
    }
    json!({"anyOf": actions})
}

/// Nothing was looked up in this conversation yet, and it can be. Small models answer out of nothing where they may.
fn has_to_look(request: &ChatRequest) -> bool {
    let is_result = |message: &ChatMessage| matches!(message, ChatMessage::Tool { .. });
    let can_search = |tool: &ToolSpec| tool.name == crate::tools::SEARCH;
    request.tools.iter().any(can_search) && !request.messages.iter().any(is_result)
}

fn how_to_act(request: &ChatRequest) -> String {
    let mut text = String::from("\nWrite one JSON object and nothing else, one of:\n");
    for tool in &request.tools {
        let form = match tool.name {
            crate::tools::SEARCH => r#"{"action":"search","query":"..."}"#,
            crate::tools::READ => r#"{"action":"read","evidence_id":"..."}"#,
            _ => r#"{"action":"cite","evidence_ids":["..."]}"#,
        };
        let _ = writeln!(text, "{form}  {}", tool.description);
    }
    text.push_str(r#"{"action":"answer","text":"..."}  The answer."#);
    text
}

/// The conversation as plain messages that take turns.
fn plain(request: &ChatRequest) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::new();
    let mut add = |role: Role, text: String| match out.last_mut() {
        Some(last) if last.role == role => {
            last.content.push_str("\n\n");
            last.content.push_str(&text);
        }
        _ => out.push(Message::new(role, text)),
    };
    for message in &request.messages {
        match message {
            ChatMessage::System(text) => add(Role::System, text.clone() + &how_to_act(request)),
            ChatMessage::User(text) => add(Role::User, text.clone()),
            ChatMessage::Tool { text, .. } => add(Role::User, format!("Result:\n{text}")),
            ChatMessage::Assistant { text, calls } => {
                for call in calls {
                    add(Role::Assistant, written(call));
                }
                if !text.is_empty() {
                    add(
                        Role::Assistant,
                        json!({"action": "answer", "text": text}).to_string(),
                    );
                }
            }
        }
    }
    out
}

fn written(call: &ChatCall) -> String {
    // The name first, as the model is told to write it.
    let mut action = Map::new();
    action.insert("action".to_owned(), json!(call.name));
    action.extend(serde_json::from_str::<Map<String, Value>>(&call.arguments).unwrap_or_default());
    action.insert("action".to_owned(), json!(call.name));
    Value::Object(action).to_string()
}

/// An action as a reply. What is no action is a reply in words: the policy then asks for a citation as of any other.
fn read_action(generation: Generation) -> ChatReply {
    let mut reply = ChatReply {
        text: String::new(),
        calls: Vec::new(),
        length: generation.stop == StopReason::Length,
        prompt_tokens: generation.prompt_tokens,
        new_tokens: generation.new_tokens,
        tokens_bounded: generation.tokens_bounded,
        retries: generation.retries,
    };
    let action = serde_json::from_str::<Map<String, Value>>(generation.text.trim()).ok();
    let Some(mut action) = action else {
        reply.text = generation.text;
        return reply;
    };
    let name = action.remove("action");
    match (
        name.as_ref().and_then(Value::as_str),
        action.get("text").and_then(Value::as_str),
    ) {
        (Some("answer"), Some(text)) => text.clone_into(&mut reply.text),
        (Some(name), _) => reply.calls.push(ChatCall {
            id: String::new(),
            name: name.to_owned(),
            arguments: Value::Object(action).to_string(),
        }),
        (None, _) => reply.text = generation.text,
    }
    reply
}

impl ChatModel for ActionModel {
    fn identity(&self) -> &ModelIdentity {
        self.generator.identity()
    }

    fn respond<'a>(
        &'a self,
        request: &'a ChatRequest,
        control: &'a Control,
        sink: &'a dyn ChatSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let requests = [GenerationRequest {
                messages: plain(request),
                constraint: self.constraint(request),
                input_budget: request.input_budget,
                max_new_tokens: request.max_new_tokens,
            }];
            let slot = Slot {
                outcome: Mutex::default(),
                heard: Mutex::default(),
                sink,
            };
            self.generator.generate(&requests, control, &slot).await;
            let outcome = slot
                .outcome
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner);
            let lost = || ModelError::Engine("the generator gave no answer".to_owned());
            let reply = read_action(outcome.ok_or_else(lost)??);
            let said = slot
                .heard
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)
                .said;
            // A generator that shows no pieces shows it all at once.
            sink.text(reply.text.get(said..).unwrap_or_default());
            Ok(reply)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(citable: &[&str], cite_only: bool) -> ChatRequest {
        ChatRequest {
            messages: vec![
                ChatMessage::System("Rules.".to_owned()),
                ChatMessage::User("When?".to_owned()),
                ChatMessage::Assistant {
                    text: String::new(),
                    calls: vec![ChatCall {
                        id: "c1".to_owned(),
                        name: "search".to_owned(),
                        arguments: r#"{"query":"hose"}"#.to_owned(),
                    }],
                },
                ChatMessage::Tool {
                    call_id: "c1".to_owned(),
                    text: "[a@1:0:4] x".to_owned(),
                },
                ChatMessage::User("Cite.".to_owned()),
            ],
            tools: crate::tools::specs(cite_only),
            wanted: Wanted::Anything,
            citable: citable.iter().map(|id| (*id).to_owned()).collect(),
            input_budget: 1_000,
            max_new_tokens: 100,
        }
    }

    #[test]
    fn only_ids_that_are_before_the_model_can_be_cited() {
        let all = schema(&request(&["a@1:0:4"], false));
        let text = all.to_string();
        assert_eq!(all["anyOf"].as_array().unwrap().len(), 4);
        assert!(text.contains(r#""enum":["a@1:0:4"]"#));
        let none = schema(&request(&[], true));
        assert_eq!(
            none["anyOf"].as_array().unwrap().len(),
            2,
            "answer and cite"
        );
        assert!(none.to_string().contains(r#""maxItems":0"#));
    }

    #[test]
    fn before_anything_was_looked_up_it_can_only_be_looked_up() {
        let mut fresh = request(&[], false);
        fresh.messages.truncate(2);
        let actions = schema(&fresh)["anyOf"].clone();
        assert_eq!(actions.as_array().unwrap().len(), 1);
        assert_eq!(actions[0]["properties"]["action"]["const"], "search");
        // Asked what its answer rests on, it says that and nothing else.
        let mut asked = request(&["a@1:0:4"], false);
        asked.wanted = Wanted::Call(crate::tools::CITE);
        let actions = schema(&asked)["anyOf"].clone();
        assert_eq!(actions.as_array().unwrap().len(), 1);
        assert_eq!(actions[0]["properties"]["action"]["const"], "cite");
        // With nothing left but to cite, there is no looking up.
        let mut late = request(&[], true);
        late.messages.truncate(2);
        assert_eq!(schema(&late)["anyOf"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn an_answer_is_heard_while_it_is_written_and_an_action_never_is() {
        let written = r#"{"action":"answer","text":"It burst – \"on 3 March\" \ud83d\ude00\\."}"#;
        let mut heard = Heard::default();
        let mut said = String::new();
        let mut steps = 0;
        for byte in written.as_bytes() {
            if let Some(new) = heard.add(&[*byte]) {
                steps += usize::from(!new.is_empty());
                said.push_str(&new);
            }
        }
        assert_eq!(said, "It burst – \"on 3 March\" 😀\\.");
        assert!(steps > 20, "{steps}");
        let mut heard = Heard::default();
        for byte in br#"{"action":"search","query":"text","text":"no"}"# {
            assert_eq!(heard.add(&[*byte]), None);
        }
    }

    #[test]
    fn messages_take_turns_and_calls_read_as_the_actions_they_were() {
        let messages = plain(&request(&[], false));
        let roles: Vec<Role> = messages.iter().map(|one| one.role).collect();
        assert_eq!(
            roles,
            [Role::System, Role::User, Role::Assistant, Role::User]
        );
        assert_eq!(messages[2].content, r#"{"action":"search","query":"hose"}"#);
        assert_eq!(messages[3].content, "Result:\n[a@1:0:4] x\n\nCite.");
    }
}
