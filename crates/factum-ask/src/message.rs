//! The history of a conversation as typed messages. Who wrote a part is data, so that no text can pose as a
//! notice or as a search result; and a history only grows: there is no way to change what was written.
//!
//! It holds what people and models wrote, and *which* evidence was shown. The words of documents are not in
//! it: they are read from the store for each request, under the rights of that moment.

use std::collections::BTreeSet;

use factum_base::DocumentId;
use factum_casefile::EvidenceId;
use serde::{Deserialize, Serialize};

/// Something that can bring evidence into a conversation; here, a case file by its id.
pub type Capability = String;

/// A piece of evidence of one capability. An evidence id alone names nothing: two case files may hold
/// documents of one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ref {
    /// Where it comes from.
    pub capability: Capability,
    /// Which characters of which version of which document.
    pub evidence: EvidenceId,
}

/// A version of a document that words may come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Source {
    /// The case file.
    pub capability: Capability,
    /// The document.
    pub doc_id: DocumentId,
    /// The version.
    pub version: u32,
}

impl Ref {
    /// A ref.
    pub fn new(capability: impl Into<Capability>, evidence: EvidenceId) -> Self {
        Self {
            capability: capability.into(),
            evidence,
        }
    }

    /// The version that it is cut from.
    pub fn source(&self) -> Source {
        Source {
            capability: self.capability.clone(),
            doc_id: self.evidence.doc_id.clone(),
            version: self.evidence.version,
        }
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// What goes to the model, in parts.
    Request(Vec<Part>),
    /// What the model said.
    Response(Response),
}

/// A part of what goes to the model, by who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A person asks.
    Question {
        /// In these words.
        text: String,
    },
    /// The citation policy asks for a declaration. Its wording is not kept: what makes it a notice is this tag.
    Notice {
        /// The question it is about.
        question: u64,
    },
    /// A tool answers.
    Return(ToolReturn),
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReturn {
    /// The call it answers.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A search ran; it may have found nothing.
    Found {
        /// What was found, best first.
        refs: Vec<Ref>,
    },
    /// The passages around a piece of evidence.
    Context {
        /// In the order of the text.
        refs: Vec<Ref>,
    },
    /// Something was declared.
    Cited {
        /// What was registered; none for "nothing supports this".
        refs: Vec<Ref>,
        /// Ids that named nothing, or nothing that may be cited now.
        ignored: Vec<Ignored>,
    },
    /// No id named anything, so nothing was declared; the model may try again.
    NotCited {
        /// What was named.
        ignored: Vec<Ignored>,
    },
    /// Code ran. No tool here does so; other hosts' tools may.
    Executed {
        /// It ended well.
        succeeded: bool,
        /// It printed something.
        printed: bool,
    },
    /// No more calls of this tool are allowed in this question.
    Exhausted,
    /// The call could not be used.
    Refused {
        /// Why, in words for the model.
        reason: String,
    },
}

/// An id that a citation left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    /// As the model wrote it.
    pub id: String,
    /// Why it was left out.
    pub why: WhyIgnored,
}

/// Why an id can't be cited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyIgnored {
    /// It names nothing that this principal could ever have seen.
    Unknown,
    /// The document has another version now.
    Stale,
    /// The document was withdrawn, or is hidden from the principal.
    Ineligible,
}

impl Outcome {
    /// Whether evidence came (or was looked for and did not come), so that what was declared before no longer
    /// covers all there is.
    pub fn is_evidence(&self) -> bool {
        match self {
            Self::Found { .. } | Self::Context { .. } => true,
            Self::Executed { succeeded, printed } => *succeeded || *printed,
            Self::Cited { .. } | Self::NotCited { .. } | Self::Exhausted | Self::Refused { .. } => {
                false
            }
        }
    }

    /// The evidence that it shows.
    pub fn shown(&self) -> &[Ref] {
        match self {
            Self::Found { refs } | Self::Context { refs } => refs,
            _ => &[],
        }
    }
}

/// What a model said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Response {
    /// Its words; may be none.
    pub text: String,
    /// Tools it calls.
    pub calls: Vec<ToolCall>,
    /// Versions whose words were before it when it wrote this. Where one of them may no longer be shown,
    /// neither may this.
    pub sources: BTreeSet<Source>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names the call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments as the model wrote them: JSON, if it kept to the form.
    pub arguments: String,
}

/// All messages so far. It only grows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History(Vec<Message>);

impl History {
    /// A history read back.
    pub fn restored(messages: Vec<Message>) -> Self {
        Self(messages)
    }

    /// Its messages.
    pub fn messages(&self) -> &[Message] {
        &self.0
    }

    /// How many messages there are: the clock that questions and epochs are told by.
    pub fn clock(&self) -> u64 {
        self.0.len() as u64
    }

    /// Adds a message.
    pub fn push(&mut self, message: Message) {
        self.0.push(message);
    }

    /// The messages from a question's first on.
    pub fn since(&self, question: u64) -> &[Message] {
        let from = usize::try_from(question).unwrap_or(usize::MAX);
        self.0.get(from..).unwrap_or_default()
    }

    /// Calls of the last response that no tool has answered.
    pub fn unanswered(&self) -> Vec<&ToolCall> {
        let last = self
            .0
            .iter()
            .rposition(|m| matches!(m, Message::Response(_)));
        let Some(at) = last else { return Vec::new() };
        let Message::Response(response) = &self.0[at] else {
            return Vec::new();
        };
        let answered: BTreeSet<&str> = returns(&self.0[at + 1..])
            .map(|one| one.call_id.as_str())
            .collect();
        response
            .calls
            .iter()
            .filter(|call| !answered.contains(call.id.as_str()))
            .collect()
    }

    /// The policy has asked about this question, and the asking is in the history.
    pub fn was_asked(&self, question: u64) -> bool {
        self.since(question).iter().any(|message| match message {
            Message::Request(parts) => parts
                .iter()
                .any(|part| matches!(part, Part::Notice { question: about } if *about == question)),
            Message::Response(_) => false,
        })
    }

    /// The last message is the policy's.
    pub fn ends_in_notice(&self) -> bool {
        match self.messages().last() {
            Some(Message::Request(parts)) => {
                parts.iter().any(|part| matches!(part, Part::Notice { .. }))
            }
            _ => false,
        }
    }

    /// Evidence came in this question.
    pub fn has_outcome_since(&self, question: u64) -> bool {
        returns(self.since(question)).any(|one| one.outcome.is_evidence())
    }
}

/// All tool returns of messages.
pub fn returns(messages: &[Message]) -> impl Iterator<Item = &ToolReturn> {
    messages
        .iter()
        .filter_map(|message| match message {
            Message::Request(parts) => Some(parts),
            Message::Response(_) => None,
        })
        .flatten()
        .filter_map(|part| match part {
            Part::Return(one) => Some(one),
            _ => None,
        })
}
