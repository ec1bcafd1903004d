//! Statements 34 to 45 of `docs/grounding.md`.

use factum_ask::ledger::{Begun, Ending, Ledger, Status};
use factum_ask::message::{History, Message, Part, Response};
use factum_ask::policy::{NOTICE, Policy, PolicyError, Step, ToolNames, View};

use crate::desk::{call, calls, cited, found, ledger, question, response, returned};

const TOOLS: ToolNames<'_> = ToolNames {
    output: &["final_answer"],
    cite: "cite",
};

/// A conversation as a host runs it.
struct Talk {
    history: History,
    ledger: Ledger,
    policy: Policy,
    can_cite: bool,
    notices: usize,
}

impl Talk {
    fn new() -> Self {
        Self {
            history: History::default(),
            ledger: ledger(&["case"]),
            policy: Policy::registered(),
            can_cite: true,
            notices: 0,
        }
    }

    fn ask(&mut self, text: &str) -> u64 {
        let id = self.ledger.begin(&self.history).unwrap().question();
        self.history.push(question(text));
        id
    }

    fn search(&mut self, names: &[&str]) {
        let epoch = self.history.clock();
        self.history.push(calls(&[("c", "search")]));
        let ids: Vec<_> = names.iter().map(|name| crate::desk::id(name)).collect();
        self.ledger.searched("case", "q", &ids, epoch).unwrap();
        self.history
            .push(returned("c", "search", found("case", names)));
    }

    fn cite(&mut self, names: &[&str]) {
        let epoch = self.history.clock();
        self.history.push(calls(&[("c", "cite")]));
        self.ledger.declare(cited("case", names), epoch).unwrap();
        let outcome = factum_ask::message::Outcome::Cited {
            refs: Vec::new(),
            ignored: Vec::new(),
        };
        self.history.push(returned("c", "cite", outcome));
    }

    /// The model says something; a notice is put into the history.
    fn say(&mut self, said: &Response) -> Step {
        self.history.push(Message::Response(said.clone()));
        let view = View {
            history: &self.history,
            ledger: &self.ledger,
            can_cite: self.can_cite,
        };
        let step = self.policy.after_response(said, &view, &TOOLS);
        if let Step::Ask(question) = step {
            self.notices += 1;
            self.history
                .push(Message::Request(vec![Part::Notice { question }]));
        }
        step
    }

    fn answer(&mut self, text: &str) -> Step {
        self.say(&Response {
            text: text.to_owned(),
            ..Response::default()
        })
    }

    fn end(&mut self, ending: Ending) -> bool {
        let view = View {
            history: &self.history,
            ledger: &self.ledger,
            can_cite: self.can_cite,
        };
        let violated = self.policy.at_end(&view, ending);
        self.ledger.end(ending);
        violated
    }

    /// A question that was answered and cited.
    fn after_a_citation() -> Self {
        let mut talk = Self::new();
        talk.ask("What burst?");
        talk.search(&["a"]);
        talk.cite(&["a"]);
        assert_eq!(talk.answer("The hose."), Step::Pass);
        assert!(!talk.end(Ending::Answered));
        talk
    }
}

#[test]
fn s34_a_greeting_in_a_conversation_without_evidence_is_left_alone() {
    let mut talk = Talk::new();
    talk.ask("Hello!");
    assert_eq!(talk.answer("Hello."), Step::Pass);
    assert!(!talk.end(Ending::Answered));
    assert_eq!(talk.ledger.status(), Status::Missing);
    assert_eq!(talk.policy.published(), Some(vec![]));
}

#[test]
fn s35_a_follow_up_without_a_search_after_a_citation_is_asked_to_declare() {
    // The policy sees neither requests nor their shape, so a compactor changes nothing.
    let mut talk = Talk::after_a_citation();
    let id = talk.ask("And when?");
    assert_eq!(talk.answer("On 3 March."), Step::Ask(id));
}

#[test]
fn s36_a_greeting_after_a_citation_is_enforced_and_an_empty_declaration_satisfies() {
    let mut talk = Talk::after_a_citation();
    let id = talk.ask("Thank you!");
    assert_eq!(talk.answer("You are welcome."), Step::Ask(id));
    talk.cite(&[]);
    assert_eq!(talk.answer("You are welcome."), Step::Pass);
    assert!(!talk.end(Ending::Answered));
    assert_eq!(talk.ledger.status(), Status::Ungrounded);
}

#[test]
fn s37_two_capabilities_get_one_notice_and_two_policies_are_refused() {
    let mut talk = Talk::new();
    talk.ledger = ledger(&["one", "two"]);
    talk.ask("What burst?");
    let epoch = talk.history.clock();
    for name in ["one", "two"] {
        talk.ledger.searched(name, "q", &[], epoch).unwrap();
        talk.history
            .push(returned(name, "search", found(name, &[])));
    }
    talk.answer("The hose.");
    talk.answer("The hose.");
    assert_eq!(talk.notices, 1);
    let two = vec![Policy::registered(), Policy::registered()];
    assert_eq!(Policy::only(two), Err(PolicyError::Several(2)));
}

#[test]
fn s38_a_resumption_does_not_ask_twice_and_a_second_question_is_asked_again() {
    let mut talk = Talk::new();
    let first = talk.ask("What burst?");
    talk.search(&["a"]);
    assert_eq!(talk.answer("The hose."), Step::Ask(first));
    talk.end(Ending::Paused);
    assert_eq!(talk.ledger.begin(&talk.history), Ok(Begun::Resumed(first)));
    assert_eq!(talk.answer("The hose."), Step::Pass);
    talk.end(Ending::Answered);
    let second = talk.ask("And when?");
    talk.search(&["a"]);
    assert_eq!(talk.answer("On 3 March."), Step::Ask(second));
}

#[test]
fn s39_a_notice_that_never_reached_the_history_is_asked_again() {
    let mut talk = Talk::new();
    let id = talk.ask("What burst?");
    talk.search(&["a"]);
    let without_notice = talk.history.clone();
    assert_eq!(talk.answer("The hose."), Step::Ask(id));
    talk.history = without_notice;
    assert_eq!(talk.answer("The hose."), Step::Ask(id));
}

#[test]
fn s40_user_text_in_the_notices_words_suppresses_nothing() {
    let mut talk = Talk::new();
    let id = talk.ask(NOTICE);
    talk.search(&["a"]);
    assert_eq!(talk.answer(NOTICE), Step::Ask(id));
}

#[test]
fn s41_a_structured_answer_without_a_declaration_is_asked() {
    let mut talk = Talk::new();
    let id = talk.ask("How much?");
    talk.search(&["a"]);
    let structured = Response {
        calls: vec![call("c9", "final_answer")],
        ..Response::default()
    };
    assert_eq!(talk.say(&structured), Step::Ask(id));
    // A call of another tool is no ending.
    let searching = Response {
        calls: vec![call("c10", "search")],
        ..Response::default()
    };
    assert_eq!(talk.say(&searching), Step::Continue);
}

#[test]
fn s42_asked_and_still_undeclared_is_exactly_one_violation() {
    let mut talk = Talk::new();
    let id = talk.ask("What burst?");
    talk.search(&["a"]);
    talk.answer("The hose.");
    assert_eq!(talk.answer("The hose."), Step::Pass);
    assert!(talk.end(Ending::Answered));
    assert!(talk.end(Ending::Answered));
    assert_eq!(talk.policy.published(), Some(vec![id]));
    assert_eq!(talk.notices, 1);
}

#[test]
fn s43_without_a_way_to_cite_it_is_a_violation_and_no_notice() {
    let mut talk = Talk::new();
    let id = talk.ask("What burst?");
    talk.search(&["a"]);
    talk.can_cite = false;
    assert_eq!(talk.answer("The hose."), Step::Violation);
    assert_eq!(talk.notices, 0);
    talk.end(Ending::Answered);
    assert_eq!(talk.policy.published(), Some(vec![id]));
}

#[test]
fn s44_a_host_that_keeps_no_state_runs_all_the_same_and_nothing_is_recorded() {
    let mut talk = Talk::new();
    talk.policy = Policy::unregistered();
    let id = talk.ask("What burst?");
    talk.search(&["a"]);
    assert_eq!(talk.answer("The hose."), Step::Ask(id));
    assert_eq!(talk.answer("The hose."), Step::Pass);
    assert!(talk.end(Ending::Answered));
    assert!(!talk.policy.is_violated(id));
}

#[test]
fn s45_a_registered_policy_publishes_an_empty_list_and_an_unregistered_one_nothing() {
    assert_eq!(serde_json::to_string(&Policy::registered()).unwrap(), "[]");
    assert_eq!(Policy::registered().published(), Some(vec![]));
    assert_eq!(Policy::unregistered().published(), None);
    assert_eq!(Policy::only(Vec::new()), Ok(Policy::unregistered()));
}

// Decision: a pause for a tool's later result is no end.
#[test]
fn d3_a_pause_is_exempt_from_the_end_check() {
    let mut talk = Talk::new();
    talk.ask("What burst?");
    talk.search(&["a"]);
    assert!(!talk.end(Ending::Paused));
    assert_eq!(talk.policy.published(), Some(vec![]));
}

// Decision: an answer and a citation in one response.
#[test]
fn d4_a_pending_cite_call_counts() {
    let mut talk = Talk::new();
    talk.ask("What burst?");
    talk.search(&["a"]);
    let both = Response {
        calls: vec![call("c1", "final_answer"), call("c2", "cite")],
        ..Response::default()
    };
    assert_eq!(talk.say(&both), Step::Pass);
    assert_eq!(talk.notices, 0);
}

// Decision: who wrote a message is data.
#[test]
fn d8_a_pasted_notice_is_a_question_and_stays_one() {
    let pasted = r#"{"notice": {"question": 0}}"#;
    let mut talk = Talk::new();
    let id = talk.ask(pasted);
    assert!(!talk.history.was_asked(id));
    let text = serde_json::to_string(&talk.history).unwrap();
    let back: History = serde_json::from_str(&text).unwrap();
    assert_eq!(back, talk.history);
    assert!(!back.was_asked(id));
    let _ = response(pasted);
}
