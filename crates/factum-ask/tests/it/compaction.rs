//! Statements 46 to 61 of `docs/grounding.md`, without 51, 58 and 59 (pictures).

use factum_ask::compaction::{
    CAPSULE_HEADING, CompactionError, Live, Shaped, ShapedPart, needed, shape,
};
use factum_ask::ledger::{Ending, Ledger};
use factum_ask::message::{History, Message, Outcome, Part, Response};

use crate::desk::{
    COMPACT, WHOLE, a_ref, calls, cited, found, ledger, live, part, question, quote, response,
    returned,
};

/// A conversation of questions that search and cite.
struct Talk {
    history: History,
    ledger: Ledger,
}

impl Talk {
    fn new(capabilities: &[&str]) -> Self {
        Self {
            history: History::default(),
            ledger: ledger(capabilities),
        }
    }

    fn ask(&mut self) {
        self.ledger.begin(&self.history).unwrap();
        self.history.push(question("?"));
    }

    fn search(&mut self, capability: &str, names: &[&str]) {
        let epoch = self.history.clock();
        self.history.push(calls(&[("s", "search")]));
        self.ledger.outcome(capability, epoch).unwrap();
        self.history
            .push(returned("s", "search", found(capability, names)));
    }

    fn cite(&mut self, capability: &str, names: &[&str]) {
        let epoch = self.history.clock();
        self.history.push(calls(&[("c", "cite")]));
        self.ledger
            .declare(cited(capability, names), epoch)
            .unwrap();
        let refs = names.iter().map(|name| a_ref(capability, name)).collect();
        let outcome = Outcome::Cited {
            refs,
            ignored: Vec::new(),
        };
        self.history.push(returned("c", "cite", outcome));
    }

    fn end(&mut self) {
        self.history.push(response("So it is."));
        self.ledger.end(Ending::Answered);
    }

    fn whole_question(&mut self, capability: &str, shown: &[&str], cite: &[&str]) {
        self.ask();
        self.search(capability, shown);
        self.cite(capability, cite);
        self.end();
    }

    fn shaped(&self, live: &Live) -> Vec<Shaped> {
        shape(&self.history, &self.ledger, live, COMPACT)
            .unwrap()
            .messages
    }
}

fn capsules(messages: &[Shaped]) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let Shaped::Request(parts) = message else {
            continue;
        };
        for part in parts {
            match part {
                ShapedPart::Capsule(text)
                | ShapedPart::Return {
                    capsule: Some(text),
                    ..
                } => out.push((at, text.clone())),
                _ => {}
            }
        }
    }
    out
}

fn text_at(messages: &[Shaped], at: usize) -> String {
    format!("{:?}", messages[at])
}

#[test]
fn s46_the_first_question_is_unchanged() {
    let mut talk = Talk::new(&["case"]);
    talk.ask();
    talk.search("case", &["a", "b"]);
    let live = live("case", &["a", "b"]);
    let compact = shape(&talk.history, &talk.ledger, &live, COMPACT);
    assert_eq!(compact, shape(&talk.history, &talk.ledger, &live, WHOLE));
}

#[test]
fn s47_the_newest_earlier_evidence_carries_the_capsule_and_others_become_receipts() {
    let mut talk = Talk::new(&["case"]);
    talk.whole_question("case", &["a", "b"], &["a"]);
    talk.whole_question("case", &["c"], &["c"]);
    talk.ask();
    let messages = talk.shaped(&live("case", &["a", "b", "c"]));
    assert_eq!(messages.len(), talk.history.messages().len());
    let capsules = capsules(&messages);
    assert_eq!(capsules.len(), 1);
    assert_eq!(capsules[0].0, 8, "the second question's search result");
    assert!(text_at(&messages, 2).contains("Earlier result of 2 passages"));
    assert!(!text_at(&messages, 2).contains(&quote("a")));
}

#[test]
fn s48_two_results_in_one_message_make_one_capsule_on_the_later() {
    let mut talk = Talk::new(&["case"]);
    talk.ask();
    talk.history
        .push(calls(&[("s1", "search"), ("s2", "search")]));
    talk.ledger.outcome("case", 1).unwrap();
    talk.history.push(Message::Request(vec![
        part("s1", "search", found("case", &["a"])),
        part("s2", "search", found("case", &["b"])),
    ]));
    talk.cite("case", &["a"]);
    talk.end();
    talk.ask();
    let messages = talk.shaped(&live("case", &["a", "b"]));
    assert_eq!(capsules(&messages).len(), 1);
    let Shaped::Request(parts) = &messages[2] else {
        panic!()
    };
    assert!(matches!(
        &parts[0],
        ShapedPart::Return { capsule: None, .. }
    ));
    assert!(matches!(
        &parts[1],
        ShapedPart::Return {
            capsule: Some(_),
            ..
        }
    ));
}

#[test]
fn s49_results_of_the_current_question_are_untouched() {
    let mut talk = Talk::new(&["case"]);
    talk.whole_question("case", &["a"], &["a"]);
    talk.ask();
    talk.search("case", &["b"]);
    let messages = talk.shaped(&live("case", &["a", "b"]));
    assert!(text_at(&messages, 8).contains(&quote("b")));
    assert!(capsules(&messages)[0].1.contains(&quote("a")));
}

#[test]
fn s50_acknowledgements_and_other_tools_messages_survive() {
    let mut talk = Talk::new(&["case"]);
    talk.ask();
    talk.search("case", &["a"]);
    talk.history.push(calls(&[("x", "clock")]));
    let other = Outcome::Refused {
        reason: "It is noon.".to_owned(),
    };
    talk.history.push(returned("x", "clock", other));
    talk.cite("case", &["a"]);
    talk.end();
    talk.ask();
    let live = live("case", &["a"]);
    let (compact, whole) = (
        talk.shaped(&live),
        shape(&talk.history, &talk.ledger, &live, WHOLE)
            .unwrap()
            .messages,
    );
    for at in [4, 6] {
        assert_eq!(compact[at], whole[at]);
    }
    assert!(text_at(&compact, 4).contains("It is noon."));
    assert!(text_at(&compact, 6).contains("rests on 1 passages"));
}

#[test]
fn s52_no_message_becomes_empty() {
    let mut talk = Talk::new(&["case"]);
    talk.whole_question("case", &[], &[]);
    talk.whole_question("case", &["a"], &["a"]);
    talk.ask();
    // Even where nothing may be shown any more.
    for live in [Live::default(), live("case", &["a"])] {
        for message in talk.shaped(&live) {
            let Shaped::Request(parts) = message else {
                continue;
            };
            assert!(!parts.is_empty());
            for part in parts {
                let (ShapedPart::Question(text)
                | ShapedPart::Notice(text)
                | ShapedPart::Capsule(text)
                | ShapedPart::Return { text, .. }) = part;
                assert!(!text.is_empty());
            }
        }
    }
}

#[test]
fn s53_where_nothing_was_cited_there_are_only_receipts() {
    let mut talk = Talk::new(&["case"]);
    talk.whole_question("case", &["a"], &[]);
    talk.ask();
    let messages = talk.shaped(&live("case", &["a"]));
    assert_eq!(capsules(&messages), []);
    assert!(text_at(&messages, 2).contains("Earlier result"));
}

#[test]
fn s54_the_kept_history_stays_as_it_is() {
    let mut talk = Talk::new(&["case"]);
    talk.whole_question("case", &["a"], &["a"]);
    talk.ask();
    let before = serde_json::to_string(&talk.history).unwrap();
    talk.shaped(&live("case", &["a"]));
    assert_eq!(serde_json::to_string(&talk.history).unwrap(), before);
}

#[test]
fn s55_order_is_newest_question_then_capability_then_id_and_each_item_once() {
    let mut talk = Talk::new(&["one", "two"]);
    talk.whole_question("two", &["b", "a", "c"], &["b", "a", "c"]);
    talk.ask();
    talk.cite("two", &["a"]);
    talk.cite("one", &["z"]);
    talk.end();
    talk.ask();
    let mut all = live("two", &["a", "b", "c"]);
    let one = live("one", &["z"]);
    all.passages.extend(one.passages);
    all.sources.extend(one.sources);
    let capsule = capsules(&talk.shaped(&all)).remove(0).1;
    let order: Vec<&str> = ["z", "a", "b", "c"].to_vec();
    let places: Vec<usize> = order
        .iter()
        .map(|name| capsule.find(&format!("[{name}@1:0:4]")).unwrap())
        .collect();
    assert!(places.is_sorted(), "{capsule}");
    assert_eq!(capsule.matches("[a@1:0:4]").count(), 1);
    let (first, second) = capsule.split_once("Group 2").unwrap();
    assert!(first.contains("Group 1") && first.contains("[a@") && second.contains("[b@"));
}

#[test]
fn s56_cited_content_is_whole_and_uncited_content_is_not_there() {
    let mut talk = Talk::new(&["case"]);
    talk.ask();
    talk.search("case", &["a", "b"]);
    let mut long = cited("case", &["a"]);
    long[0].1.quote = "word ".repeat(5_000);
    let epoch = talk.history.clock();
    talk.ledger.declare(long, epoch).unwrap();
    talk.end();
    talk.ask();
    let messages = talk.shaped(&live("case", &["a", "b"]));
    let capsule = &capsules(&messages)[0].1;
    assert!(capsule.contains(&"word ".repeat(5_000)));
    assert!(!format!("{messages:?}").contains(&quote("b")));
}

#[test]
fn s57_a_cited_occurrence_without_its_citation_is_an_error() {
    let mut talk = Talk::new(&["case"]);
    talk.whole_question("case", &["a"], &["a"]);
    talk.ask();
    let mut value = serde_json::to_value(&talk.ledger).unwrap();
    value["case"]["citations"] = serde_json::json!({});
    talk.ledger = serde_json::from_value(value).unwrap();
    let error = shape(&talk.history, &talk.ledger, &live("case", &["a"]), COMPACT).unwrap_err();
    assert_eq!(error, CompactionError::NoCitation(a_ref("case", "a")));
}

#[test]
fn s60_earlier_evidence_of_a_capability_without_its_record_is_refused() {
    let mut talk = Talk::new(&["case"]);
    talk.whole_question("case", &["a"], &["a"]);
    talk.ledger = ledger(&["other"]);
    talk.ledger.begin(&talk.history).unwrap();
    talk.history.push(question("?"));
    for form in [COMPACT, WHOLE] {
        let error = shape(&talk.history, &talk.ledger, &Live::default(), form).unwrap_err();
        assert_eq!(error, CompactionError::NoRecord("case".to_owned()));
    }
}

#[test]
fn s61_the_capsule_is_made_anew_for_each_request() {
    let mut talk = Talk::new(&["case"]);
    talk.whole_question("case", &["a", "b"], &["a"]);
    talk.ask();
    let live = live("case", &["a", "b"]);
    assert!(!capsules(&talk.shaped(&live))[0].1.contains(&quote("b")));
    talk.cite("case", &["b"]);
    talk.end();
    talk.ask();
    assert!(capsules(&talk.shaped(&live))[0].1.contains(&quote("b")));
}

#[test]
fn the_capsule_reads_like_this() {
    let mut talk = Talk::new(&["case"]);
    talk.whole_question("case", &["a"], &["a"]);
    talk.ask();
    let capsule = capsules(&talk.shaped(&live("case", &["a"]))).remove(0).1;
    let expected = format!("{CAPSULE_HEADING}\n\nGroup 1\n\n[a@1:0:4]\na\nthe words of a");
    assert_eq!(capsule, expected);
}

// Decision: what the current question has before it anyway is not said twice.
#[test]
fn d5_the_capsule_leaves_out_what_the_current_question_shows() {
    let mut talk = Talk::new(&["case"]);
    talk.whole_question("case", &["a", "b"], &["a", "b"]);
    talk.ask();
    talk.search("case", &["a"]);
    let messages = talk.shaped(&live("case", &["a", "b"]));
    let capsule = &capsules(&messages)[0].1;
    assert!(capsule.contains("[b@") && !capsule.contains("[a@"));
    assert_eq!(format!("{messages:?}").matches(&quote("a")).count(), 1);
}

// Decision: where no earlier result can carry the capsule, it has a message of its own.
#[test]
fn d6_without_a_carrier_the_capsule_is_a_message_before_the_question() {
    let mut talk = Talk::new(&["case"]);
    talk.ask();
    talk.cite("case", &["a"]);
    talk.end();
    talk.ask();
    let messages = talk.shaped(&live("case", &["a"]));
    assert_eq!(messages.len(), talk.history.messages().len() + 1);
    assert!(
        matches!(&messages[4], Shaped::Request(parts) if matches!(parts[0], ShapedPart::Capsule(_)))
    );
    assert!(
        matches!(&messages[5], Shaped::Request(parts) if matches!(parts[0], ShapedPart::Question(_)))
    );
}

// Decision: what changed, was withdrawn or revoked goes to no model.
#[test]
fn what_may_not_be_shown_is_in_no_part_of_a_request() {
    let mut talk = Talk::new(&["case"]);
    talk.whole_question("case", &["secret", "b"], &["secret", "b"]);
    talk.ask();
    talk.search("case", &["secret", "b"]);
    let source = a_ref("case", "secret").source();
    talk.history.push(Message::Response(Response {
        text: format!("It says: {}", quote("secret")),
        calls: vec![factum_ask::message::ToolCall {
            id: "n".to_owned(),
            tool: quote("secret"),
            arguments: format!("{{\"query\": \"{}\"}}", quote("secret")),
        }],
        sources: [source].into(),
    }));
    talk.history.push(Message::Request(vec![part(
        "n",
        &quote("secret"),
        Outcome::Refused {
            reason: format!("no tool {}", quote("secret")),
        },
    )]));
    for form in [COMPACT, WHOLE] {
        let request = shape(&talk.history, &talk.ledger, &live("case", &["b"]), form).unwrap();
        let all = format!("{:?}", request.messages);
        assert!(!all.contains(&quote("secret")), "{all}");
        assert!(all.contains(&quote("b")));
        assert!(!request.sources.contains(&a_ref("case", "secret").source()));
    }
    // It was asked for, so that a reinstated document is seen again.
    assert!(
        needed(&talk.history, &talk.ledger, COMPACT)
            .refs
            .contains(&a_ref("case", "secret"))
    );
    let _ = Part::Notice { question: 0 };
}
