//! What is said to a model and what it says, in the form of its chat. Pure.

use factum_model::chat::{ChatCall, ChatMessage};

use crate::compaction::{Request, Shaped, ShapedPart};
use crate::message::ToolCall;
use crate::tools::INSTRUCTIONS;

// Servers give ids that are empty, or the same in every response.
pub(crate) fn own_ids(calls: Vec<ChatCall>, epoch: u64) -> Vec<ToolCall> {
    calls
        .into_iter()
        .enumerate()
        .map(|(number, call)| ToolCall {
            id: format!("call-{epoch}-{number}"),
            tool: call.name,
            arguments: call.arguments,
        })
        .collect()
}

/// The shaped request as the model's messages.
pub(crate) fn wire(request: &Request) -> Vec<ChatMessage> {
    let mut out = vec![ChatMessage::System(INSTRUCTIONS.to_owned())];
    for message in &request.messages {
        match message {
            Shaped::Response { text, calls } => out.push(ChatMessage::Assistant {
                text: text.clone(),
                calls: calls
                    .iter()
                    .map(|call| ChatCall {
                        id: call.id.clone(),
                        name: call.tool.clone(),
                        arguments: call.arguments.clone(),
                    })
                    .collect(),
            }),
            Shaped::Request(parts) => out.extend(parts.iter().map(wire_part)),
        }
    }
    out
}

fn wire_part(part: &ShapedPart) -> ChatMessage {
    match part {
        ShapedPart::Question(text) | ShapedPart::Notice(text) | ShapedPart::Capsule(text) => {
            ChatMessage::User(text.clone())
        }
        ShapedPart::Return {
            call_id,
            text,
            capsule,
            ..
        } => ChatMessage::Tool {
            call_id: call_id.clone(),
            text: match capsule {
                Some(capsule) => format!("{text}\n\n{capsule}"),
                None => text.clone(),
            },
        },
    }
}
