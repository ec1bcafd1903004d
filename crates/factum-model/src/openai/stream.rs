//! Chat completions from bytes: server-sent events or one JSON body in, one whole answer or a named
//! fault out. Pure; nothing here knows of networks, retries or keys.
//!
//! What a server adds beyond the fields read here is ignored. What it leaves out is not made up: an
//! answer without a finish reason is no answer.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::chat::ChatCall;

// Of what a server says, no more than this is put into an error or a record.
const SHOWN: usize = 300;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatAnswer {
    /// Its text; may be empty.
    pub text: String,
    /// The limit of new tokens ended it (`length`), rather than the model (`stop`).
    pub length: bool,
    /// Tokens of the prompt, where the server says.
    pub prompt_tokens: Option<u32>,
    /// Tokens of the answer, where the server says.
    pub new_tokens: Option<u32>,
    /// What the server says of its build.
    pub system_fingerprint: Option<String>,
    /// Tools that it calls; only where some were offered.
    pub calls: Vec<ChatCall>,
}

// A response that calls more is cut off as garbage.
const MOST_CALLS: usize = 64;

/// Why bytes are no whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChatFault {
    /// Not JSON, or JSON of another shape.
    #[error("not a chat completion: {0}")]
    Json(String),
    /// The server reports an error inside a reply that began well.
    #[error("the server reports an error: {message}")]
    Server {
        /// What it says.
        message: String,
        /// Its number, where it gives one.
        code: Option<u16>,
    },
    /// It ended without a finish reason.
    #[error("the answer ends without a finish reason")]
    Unfinished,
    /// It ended for a reason other than `stop` and `length`.
    #[error("the finish reason is {0:?}")]
    FinishReason(String),
    /// It calls a tool, though none was offered.
    #[error("the answer calls a tool")]
    ToolCall,
    /// The server puts a refusal in place of an answer.
    #[error("the answer is a refusal: {0}")]
    Refusal(String),
    /// A body with no choice, or a choice other than the first.
    #[error("the reply does not hold exactly the one choice that was asked for")]
    Choices,
    /// More of the answer comes after its end.
    #[error("the answer goes on after its finish reason")]
    AfterEnd,
}

impl ChatFault {
    /// The server gave its whole say, and would say the same again; as opposed to a reply that got lost
    /// or garbled on its way.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Json(_) | Self::Unfinished => false,
            Self::Server { code, .. } => {
                code.is_some_and(|code| (400..500).contains(&code) && code != 429)
            }
            Self::FinishReason(_)
            | Self::ToolCall
            | Self::Refusal(_)
            | Self::Choices
            | Self::AfterEnd => true,
        }
    }
}

/// The beginning of what a server said, on one line.
pub(super) fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let cut: String = text.trim().chars().take(SHOWN).map(plain).collect();
    cut
}

#[derive(Deserialize)]
struct Completion {
    choices: Option<Vec<Choice>>,
    usage: Option<Value>,
    system_fingerprint: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Piece>,
    message: Option<Piece>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Piece {
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Value>,
    function_call: Option<Value>,
}

/// An answer under way.
#[derive(Debug, Default)]
struct Partial {
    text: String,
    pieces: u64,
    finish: Option<String>,
    usage: (Option<u32>, Option<u32>),
    system_fingerprint: Option<String>,
    /// Tools were offered.
    with_tools: bool,
    calls: Vec<ChatCall>,
}

// A call, or a piece of one. Servers that do not stream leave out the index.
#[derive(Deserialize)]
struct CallPiece {
    index: Option<usize>,
    id: Option<String>,
    function: Option<FunctionPiece>,
}

#[derive(Deserialize)]
struct FunctionPiece {
    name: Option<String>,
    // Some servers write an object where the standard has a text.
    arguments: Option<Value>,
}

impl Partial {
    fn call_pieces(&mut self, value: Value) -> Result<(), ChatFault> {
        let pieces: Vec<CallPiece> =
            serde_json::from_value(value).map_err(|error| ChatFault::Json(error.to_string()))?;
        for (place, piece) in pieces.into_iter().enumerate() {
            let at = piece.index.unwrap_or(place);
            if at >= MOST_CALLS {
                return Err(ChatFault::ToolCall);
            }
            if self.calls.len() <= at {
                self.calls.resize_with(at + 1, ChatCall::default);
            }
            let call = &mut self.calls[at];
            call.id.push_str(&piece.id.unwrap_or_default());
            let Some(function) = piece.function else {
                continue;
            };
            call.name.push_str(&function.name.unwrap_or_default());
            match function.arguments {
                Some(Value::String(text)) => call.arguments.push_str(&text),
                Some(Value::Null) | None => {}
                Some(other) => call.arguments.push_str(&other.to_string()),
            }
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<usize, ChatFault> {
        let completion: Completion = match serde_json::from_slice(bytes) {
            Ok(completion) => completion,
            // The answer is whole already; only its usage can be lost.
            Err(_) if self.finish.is_some() => return Ok(0),
            Err(error) => return Err(ChatFault::Json(error.to_string())),
        };
        if let Some(error) = completion.error.filter(|error| !error.is_null())
            && self.finish.is_none()
        {
            return Err(server_error(&error));
        }
        self.notes(
            completion.usage.as_ref(),
            completion.system_fingerprint.as_ref(),
        );
        let choices = completion.choices.unwrap_or_default();
        let count = choices.len();
        for choice in choices {
            if choice.index.unwrap_or(0) != 0 || count > 1 {
                return Err(ChatFault::Choices);
            }
            self.choice(choice)?;
        }
        Ok(count)
    }

    fn notes(&mut self, usage: Option<&Value>, fingerprint: Option<&Value>) {
        let count = |name: &str| {
            let value = usage?.get(name)?.as_u64()?;
            u32::try_from(value).ok()
        };
        self.usage.0 = count("prompt_tokens").or(self.usage.0);
        self.usage.1 = count("completion_tokens").or(self.usage.1);
        if let Some(text) = fingerprint.and_then(Value::as_str) {
            self.system_fingerprint = Some(shown(text));
        }
    }

    fn choice(&mut self, choice: Choice) -> Result<(), ChatFault> {
        for piece in [choice.delta, choice.message].into_iter().flatten() {
            let calls = piece.tool_calls.filter(|calls| is_something(Some(calls)));
            if is_something(piece.function_call.as_ref()) || calls.is_some() && !self.with_tools {
                return Err(ChatFault::ToolCall);
            }
            if let Some(calls) = calls {
                if self.finish.is_some() {
                    return Err(ChatFault::AfterEnd);
                }
                self.call_pieces(calls)?;
            }
            if let Some(refusal) = piece.refusal.filter(|text| !text.is_empty()) {
                return Err(ChatFault::Refusal(shown(&refusal)));
            }
            let content = piece.content.unwrap_or_default();
            if !content.is_empty() {
                if self.finish.is_some() {
                    return Err(ChatFault::AfterEnd);
                }
                self.text.push_str(&content);
                self.pieces += 1;
            }
        }
        // Some servers send an empty reason with each piece.
        let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
        match (reason, &self.finish) {
            (Some(reason), Some(before)) if reason != *before => Err(ChatFault::AfterEnd),
            (Some(reason), _)
                if reason == "stop"
                    || reason == "length"
                    || reason == "tool_calls" && self.with_tools =>
            {
                self.finish = Some(reason);
                Ok(())
            }
            (Some(reason), _) => Err(ChatFault::FinishReason(shown(&reason))),
            (None, _) => Ok(()),
        }
    }

    fn whole(self) -> Result<ChatAnswer, ChatFault> {
        let finish = self.finish.ok_or(ChatFault::Unfinished)?;
        Ok(ChatAnswer {
            text: self.text,
            length: finish == "length",
            prompt_tokens: self.usage.0,
            new_tokens: self.usage.1,
            system_fingerprint: self.system_fingerprint,
            calls: self.calls,
        })
    }
}

fn is_something(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}

fn server_error(error: &Value) -> ChatFault {
    let code = error
        .get("code")
        .or_else(|| error.get("status"))
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok());
    ChatFault::Server {
        message: error_message(error),
        code,
    }
}

// Servers say `{"message": ".."}`, or only a text.
fn error_message(error: &Value) -> String {
    let text = error.get("message").unwrap_or(error);
    text.as_str()
        .map_or_else(|| shown(&text.to_string()), shown)
}

/// What the body of a refusal says: `error.message`, `message`, `detail`, or the body's beginning.
pub(super) fn refusal_message(body: &[u8]) -> String {
    if let Ok(value) = serde_json::from_slice::<Value>(body) {
        for name in ["error", "message", "detail"] {
            if let Some(said) = value.get(name).filter(|said| !said.is_null()) {
                return error_message(said);
            }
        }
    }
    shown(&String::from_utf8_lossy(body))
}

/// Reads one whole JSON body.
///
/// # Errors
/// It is no whole answer.
pub fn parse_chat_body(bytes: &[u8]) -> Result<ChatAnswer, ChatFault> {
    read_chat_body(bytes, false)
}

/// Reads one whole JSON body of a conversation in which tools may be called.
///
/// # Errors
/// It is no whole answer.
pub fn parse_tool_body(bytes: &[u8]) -> Result<ChatAnswer, ChatFault> {
    read_chat_body(bytes, true)
}

fn read_chat_body(bytes: &[u8], with_tools: bool) -> Result<ChatAnswer, ChatFault> {
    let mut partial = Partial {
        with_tools,
        ..Partial::default()
    };
    if partial.take(bytes)? == 0 {
        return Err(ChatFault::Choices);
    }
    partial.whole()
}

/// Reads a whole stream of server-sent events.
///
/// # Errors
/// It is no whole answer.
pub fn parse_chat_stream(bytes: &[u8]) -> Result<ChatAnswer, ChatFault> {
    let mut stream = ChatStream::default();
    stream.push(bytes)?;
    stream.finish()
}

/// Reads a stream of server-sent events piece by piece, however the pieces are cut.
#[derive(Debug, Default)]
pub struct ChatStream {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    after_return: bool,
    past_first_line: bool,
    done: bool,
    partial: Partial,
}

impl ChatStream {
    /// A stream in which tools may be called.
    pub fn with_tools() -> Self {
        let mut stream = Self::default();
        stream.partial.with_tools = true;
        stream
    }

    /// The text so far.
    pub fn text(&self) -> &str {
        &self.partial.text
    }

    /// The next bytes. What comes after `[DONE]` is not read.
    ///
    /// # Errors
    /// This can't become a whole answer any more.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ChatFault> {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if self.done {
                break;
            }
            // A line ends with LF, CR or CR LF, and the two may come in different pieces.
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(rest);
                break;
            };
            self.line.extend_from_slice(&rest[..end]);
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            self.end_of_line()?;
        }
        Ok(())
    }

    /// The finish reason has come: nothing that follows can add to the text.
    pub fn is_whole(&self) -> bool {
        self.partial.finish.is_some()
    }

    /// `[DONE]` has come.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Pieces of text so far; most servers send one for each token.
    pub fn pieces(&self) -> u64 {
        self.partial.pieces
    }

    /// The answer, at the end of the bytes. An event that the end cuts off is not read, as the
    /// standard has it.
    ///
    /// # Errors
    /// [`ChatFault::Unfinished`]
    pub fn finish(self) -> Result<ChatAnswer, ChatFault> {
        self.partial.whole()
    }

    fn end_of_line(&mut self) -> Result<(), ChatFault> {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.past_first_line, true) && line.starts_with(b"\xEF\xBB\xBF")
        {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.end_of_event();
        }
        // Comments start with a colon; `event`, `id` and `retry` say nothing of an answer.
        let Some(value) = line.strip_prefix(b"data") else {
            return Ok(());
        };
        let value = match value {
            [] => value,
            [b':', b' ', value @ ..] | [b':', value @ ..] => value,
            _ => return Ok(()),
        };
        match &mut self.data {
            None => self.data = Some(value.to_vec()),
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
        }
        Ok(())
    }

    fn end_of_event(&mut self) -> Result<(), ChatFault> {
        let Some(data) = self.data.take() else {
            return Ok(());
        };
        match data.trim_ascii() {
            b"" => {}
            b"[DONE]" => self.done = true,
            event => {
                self.partial.take(event)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = "\u{feff}: hello\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"system_fingerprint\":\"b1\"}\n\n\
        event: x\ndata:{\"choices\":[{\"index\":0,\ndata:\"delta\":{\"content\":\"A hose \"},\"finish_reason\":null}]}\r\r\
        data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"bürst.\"}}]}\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":5}}\n\n\
        data: [DONE]\n\ndata: junk\n\n";

    fn good() -> ChatAnswer {
        ChatAnswer {
            text: "A hose bürst.".to_owned(),
            length: false,
            prompt_tokens: Some(12),
            new_tokens: Some(5),
            system_fingerprint: Some("b1".to_owned()),
            calls: Vec::new(),
        }
    }

    fn event(text: &str) -> String {
        format!("data: {text}\n\n")
    }

    fn delta(content: &str, finish: &str) -> String {
        event(&format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":{finish}}}]}}"#
        ))
    }

    #[test]
    fn every_form_of_event_is_read() {
        assert_eq!(parse_chat_stream(GOOD.as_bytes()), Ok(good()));
    }

    #[test]
    fn a_stream_cut_anywhere_before_its_finish_reason_is_no_answer() {
        let finish = GOOD.find("\"stop\"").unwrap();
        for end in 0..GOOD.len() {
            let read = parse_chat_stream(&GOOD.as_bytes()[..end]);
            match read {
                Ok(answer) => {
                    assert!(end > finish, "an answer after {end} bytes");
                    assert_eq!(answer.text, good().text);
                }
                Err(fault) => assert_eq!(fault, ChatFault::Unfinished),
            }
        }
    }

    #[test]
    fn an_empty_answer_is_whole() {
        let answer = parse_chat_stream(delta("", "\"stop\"").as_bytes()).unwrap();
        assert_eq!((answer.text.as_str(), answer.length), ("", false));
        assert_eq!((answer.prompt_tokens, answer.new_tokens), (None, None));
        let body = br#"{"choices":[{"message":{"content":null},"finish_reason":"length"}]}"#;
        let answer = parse_chat_body(body).unwrap();
        assert_eq!((answer.text.as_str(), answer.length), ("", true));
    }

    #[test]
    fn each_fault_has_its_name() {
        let fault = |text: String| parse_chat_stream(text.as_bytes()).unwrap_err();
        assert!(matches!(fault(event("{")), ChatFault::Json(_)));
        assert!(matches!(fault(event("[1]")), ChatFault::Json(_)));
        assert_eq!(fault(delta("a", "null")), ChatFault::Unfinished);
        assert_eq!(
            fault(delta("a", "\"content_filter\"")),
            ChatFault::FinishReason("content_filter".into())
        );
        assert_eq!(
            fault(delta("a", "\"stop\"") + &delta("b", "null")),
            ChatFault::AfterEnd
        );
        assert_eq!(
            fault(event(
                r#"{"choices":[{"index":1,"delta":{"content":"a"}}]}"#
            )),
            ChatFault::Choices
        );
        assert_eq!(
            fault(event(r#"{"choices":[{"delta":{"tool_calls":[{}]}}]}"#)),
            ChatFault::ToolCall
        );
        assert_eq!(
            fault(event(r#"{"choices":[{"delta":{"refusal":"No."}}]}"#)),
            ChatFault::Refusal("No.".into())
        );
        assert_eq!(
            fault(event(r#"{"error":{"message":"out of memory","code":500}}"#)),
            ChatFault::Server {
                message: "out of memory".into(),
                code: Some(500)
            }
        );
        assert_eq!(parse_chat_body(b"{}"), Err(ChatFault::Choices));
        assert_eq!(
            parse_chat_body(br#"{"choices":[{"message":{"content":"a"}}]}"#),
            Err(ChatFault::Unfinished)
        );
    }

    #[test]
    fn calls_are_put_together_from_their_pieces_and_only_where_tools_were_offered() {
        let piece = |calls: &str| {
            event(&format!(
                r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{calls}]}}}}]}}"#
            ))
        };
        let text = piece(
            r#"{"index":0,"id":"c1","type":"function","function":{"name":"search","arguments":""}}"#,
        ) + &piece(r#"{"index":0,"function":{"arguments":"{\"query\":"}}"#)
            + &piece(r#"{"index":1,"id":"c2","function":{"name":"cite","arguments":"{}"}}"#)
            + &piece(r#"{"index":0,"function":{"arguments":"\"hose\"}"}}"#)
            + &event(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#);
        let mut stream = ChatStream::with_tools();
        stream.push(text.as_bytes()).unwrap();
        let calls = stream.finish().unwrap().calls;
        let shown: Vec<_> = calls
            .iter()
            .map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("c1", "search", r#"{"query":"hose"}"#),
                ("c2", "cite", "{}")
            ]
        );
        assert_eq!(parse_chat_stream(text.as_bytes()), Err(ChatFault::ToolCall));
        let body = br#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"cite","arguments":{"evidence_ids":[]}}}]},"finish_reason":"tool_calls"}]}"#;
        assert_eq!(
            parse_tool_body(body).unwrap().calls[0].arguments,
            r#"{"evidence_ids":[]}"#
        );
        assert_eq!(parse_chat_body(body), Err(ChatFault::ToolCall));
        let far = piece(r#"{"index":4000000000,"function":{"name":"x"}}"#);
        assert_eq!(
            ChatStream::with_tools().push(far.as_bytes()),
            Err(ChatFault::ToolCall)
        );
    }

    #[test]
    fn what_follows_a_whole_answer_can_lose_only_its_usage() {
        let garbled = delta("a", "\"stop\"") + &event("{\"usage\":") + &event("{\"error\":1}");
        assert_eq!(parse_chat_stream(garbled.as_bytes()).unwrap().text, "a");
    }

    #[test]
    fn only_what_was_lost_on_its_way_is_asked_for_again() {
        assert!(!ChatFault::Unfinished.is_final());
        assert!(!ChatFault::Json(String::new()).is_final());
        assert!(ChatFault::FinishReason("tool_calls".into()).is_final());
        let server = |code| ChatFault::Server {
            message: String::new(),
            code,
        };
        assert!(!server(None).is_final());
        assert!(!server(Some(503)).is_final());
        assert!(!server(Some(429)).is_final());
        assert!(server(Some(400)).is_final());
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(cuts in proptest::collection::vec(0..GOOD.len(), 0..8)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut stream = ChatStream::default();
            let mut from = 0;
            for cut in cuts {
                stream.push(&GOOD.as_bytes()[from..cut]).unwrap();
                from = cut;
            }
            stream.push(&GOOD.as_bytes()[from..]).unwrap();
            prop_assert!(stream.is_done());
            prop_assert_eq!(stream.finish(), Ok(good()));
        }

        #[test]
        fn arbitrary_bytes_end_in_an_answer_or_a_fault(bytes: Vec<u8>) {
            let _ = parse_chat_stream(&bytes);
            let _ = parse_chat_body(&bytes);
            let _ = parse_tool_body(&bytes);
            let _ = ChatStream::with_tools().push(&bytes);
            let _ = refusal_message(&bytes);
        }

        #[test]
        fn a_damaged_stream_ends_in_an_answer_or_a_fault(at in 0..GOOD.len(), byte: u8) {
            let mut bytes = GOOD.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = parse_chat_stream(&bytes);
        }
    }
}
