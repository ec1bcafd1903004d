//! Short words for the tests of the pure part.

use std::collections::BTreeSet;

use factum_ask::compaction::{Form, Live, Passage};
use factum_ask::ledger::{Citation, Ledger, Record};
use factum_ask::message::{
    History, Message, Outcome, Part, Ref, Response, Source, ToolCall, ToolReturn,
};
use factum_base::TextDigest;
use factum_casefile::{Evidence, EvidenceId};

pub(crate) const COMPACT: Form = Form {
    compact: true,
    several: false,
};
pub(crate) const WHOLE: Form = Form {
    compact: false,
    several: false,
};

/// Evidence of document NAME.
pub(crate) fn id(name: &str) -> EvidenceId {
    format!("{name}@1:0:4").parse().unwrap()
}

pub(crate) fn a_ref(capability: &str, name: &str) -> Ref {
    Ref::new(capability, id(name))
}

pub(crate) fn quote(name: &str) -> String {
    format!("the words of {name}")
}

pub(crate) fn citation(name: &str) -> Citation {
    let id = id(name);
    let sha = TextDigest::of(name.as_bytes());
    Citation::of(
        &Evidence::cite(&id.doc_id, 1, sha, id.span, &quote(name)),
        None,
    )
}

pub(crate) fn cited(capability: &str, names: &[&str]) -> Vec<(Ref, Citation)> {
    names
        .iter()
        .map(|name| (a_ref(capability, name), citation(name)))
        .collect()
}

/// A record whose question is 1.
pub(crate) fn record() -> Record {
    let mut record = Record::default();
    record.begin(1).unwrap();
    record
}

/// Declares without a search.
pub(crate) fn declare(record: &mut Record, names: &[&str], epoch: u64) {
    let ids: Vec<EvidenceId> = names.iter().map(|name| id(name)).collect();
    let horizon = record.evidence_epoch();
    record
        .declare(&ids, &BTreeSet::new(), epoch, horizon)
        .unwrap();
}

/// A ledger of these capabilities.
pub(crate) fn ledger(names: &[&str]) -> Ledger {
    Ledger::new(names.iter().map(|name| (*name).to_owned()))
}

/// A ledger of these capabilities whose question is 1.
pub(crate) fn asked(names: &[&str]) -> Ledger {
    let mut ledger = ledger(names);
    ledger.begin(&long(1)).unwrap();
    ledger
}

/// A settled history of so many messages.
pub(crate) fn long(count: usize) -> History {
    History::restored(vec![response("."); count])
}

pub(crate) fn question(text: &str) -> Message {
    Message::Request(vec![Part::Question {
        text: text.to_owned(),
    }])
}

pub(crate) fn response(text: &str) -> Message {
    Message::Response(Response {
        text: text.to_owned(),
        ..Response::default()
    })
}

pub(crate) fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        tool: tool.to_owned(),
        arguments: "{}".to_owned(),
    }
}

pub(crate) fn calls(all: &[(&str, &str)]) -> Message {
    Message::Response(Response {
        calls: all.iter().map(|(id, tool)| call(id, tool)).collect(),
        ..Response::default()
    })
}

pub(crate) fn part(call_id: &str, tool: &str, outcome: Outcome) -> Part {
    Part::Return(ToolReturn {
        call_id: call_id.to_owned(),
        tool: tool.to_owned(),
        outcome,
    })
}

pub(crate) fn found(capability: &str, names: &[&str]) -> Outcome {
    Outcome::Found {
        refs: names.iter().map(|name| a_ref(capability, name)).collect(),
    }
}

pub(crate) fn returned(call_id: &str, tool: &str, outcome: Outcome) -> Message {
    Message::Request(vec![part(call_id, tool, outcome)])
}

/// Everything of these documents may be shown.
pub(crate) fn live(capability: &str, names: &[&str]) -> Live {
    let mut live = Live::default();
    for name in names {
        let one = a_ref(capability, name);
        live.sources.insert(Source { ..one.source() });
        live.passages.insert(
            one,
            Passage {
                title: (*name).to_owned(),
                text: quote(name),
            },
        );
    }
    live
}
