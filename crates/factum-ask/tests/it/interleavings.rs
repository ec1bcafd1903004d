//! Whatever the order of searches, citations, pauses, errors and resumptions: what must always hold.

use std::collections::BTreeSet;

use factum_ask::compaction::{Live, shape};
use factum_ask::ledger::{Ending, Ledger, Status};
use factum_ask::message::{History, Message, Outcome, Part, Response};
use factum_ask::policy::{Policy, Step, ToolNames, View};
use proptest::prelude::*;

use crate::desk::{COMPACT, a_ref, calls, cited, found, id, ledger, question, returned};

#[derive(Debug, Clone)]
enum Act {
    Search(usize, Vec<usize>),
    Cite(usize, Vec<usize>),
    CiteNothing,
    Answer,
    Pause,
    Fail,
}

const CAPABILITIES: [&str; 2] = ["one", "two"];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const TOOLS: ToolNames<'_> = ToolNames {
    output: &[],
    cite: "cite",
};

fn act() -> impl Strategy<Value = Act> {
    let names = || prop::collection::vec(0..NAMES.len(), 0..3);
    prop_oneof![
        3 => (0usize..2, names()).prop_map(|(of, names)| Act::Search(of, names)),
        3 => (0usize..2, prop::collection::vec(0..NAMES.len(), 1..3)).prop_map(|(of, names)| Act::Cite(of, names)),
        1 => Just(Act::CiteNothing),
        3 => Just(Act::Answer),
        1 => Just(Act::Pause),
        1 => Just(Act::Fail),
    ]
}

fn of(names: &[usize]) -> Vec<&'static str> {
    names.iter().map(|at| NAMES[*at]).collect()
}

/// A model of what should be so, kept beside the real thing in another way.
#[derive(Debug, Clone, Default)]
struct Expected {
    /// Evidence came after, or together with, the last declaration.
    newer_evidence: bool,
    declared_any: bool,
    /// What was declared since evidence last came, or with it.
    since_evidence: BTreeSet<(String, String)>,
}

struct Run {
    history: History,
    ledger: Ledger,
    policy: Policy,
    before: (History, Ledger, Policy),
    notices: std::collections::BTreeMap<u64, usize>,
    expected: Expected,
}

impl Run {
    fn new() -> Self {
        let fresh = (
            History::default(),
            ledger(&CAPABILITIES),
            Policy::registered(),
        );
        Self {
            history: fresh.0.clone(),
            ledger: fresh.1.clone(),
            policy: fresh.2.clone(),
            before: fresh,
            notices: std::collections::BTreeMap::new(),
            expected: Expected::default(),
        }
    }

    fn ensure_question(&mut self) {
        if self.ledger.in_progress() {
            self.ledger.begin(&self.history).unwrap();
            return;
        }
        self.before = (
            self.history.clone(),
            self.ledger.clone(),
            self.policy.clone(),
        );
        let begun = self.ledger.begin(&self.history).unwrap();
        // A rolled back question's id may come again; its notices went with it.
        self.notices.remove(&begun.question());
        self.history.push(question("?"));
        self.expected = Expected::default();
    }

    fn answer(&mut self) {
        let said = Response::default();
        self.history.push(Message::Response(said.clone()));
        let view = View {
            history: &self.history,
            ledger: &self.ledger,
            can_cite: true,
        };
        if let Step::Ask(question) = self.policy.after_response(&said, &view, &TOOLS) {
            *self.notices.entry(question).or_default() += 1;
            self.history
                .push(Message::Request(vec![Part::Notice { question }]));
            return;
        }
        let view = View {
            history: &self.history,
            ledger: &self.ledger,
            can_cite: true,
        };
        self.policy.at_end(&view, Ending::Answered);
        self.ledger.end(Ending::Answered);
    }

    fn declare(&mut self, declared: Vec<(factum_ask::message::Ref, factum_ask::ledger::Citation)>) {
        let epoch = self.history.clock();
        let before: BTreeSet<_> = self.ledger.declared().into_iter().collect();
        let was_current = self.ledger.status() != Status::Missing;
        self.history.push(calls(&[("c", "cite")]));
        for (one, _) in &declared {
            let key = (one.capability.clone(), one.evidence.to_string());
            self.expected.since_evidence.insert(key);
        }
        self.ledger.declare(declared, epoch).unwrap();
        self.expected.newer_evidence = false;
        self.expected.declared_any = true;
        self.history.push(returned(
            "c",
            "cite",
            Outcome::Cited {
                refs: Vec::new(),
                ignored: Vec::new(),
            },
        ));
        let after: BTreeSet<_> = self.ledger.declared().into_iter().collect();
        if was_current {
            assert!(before.is_subset(&after), "a declaration narrowed");
        }
    }

    fn act(&mut self, act: &Act) {
        self.ensure_question();
        match act {
            Act::Search(which, names) => {
                let (capability, names) = (CAPABILITIES[*which], of(names));
                let epoch = self.history.clock();
                self.history.push(calls(&[("s", "search")]));
                let ids: Vec<_> = names.iter().map(|name| id(name)).collect();
                self.ledger.searched(capability, "q", &ids, epoch).unwrap();
                self.history
                    .push(returned("s", "search", found(capability, &names)));
                self.expected.newer_evidence = true;
                self.expected.since_evidence.clear();
            }
            Act::Cite(which, names) => self.declare(cited(CAPABILITIES[*which], &of(names))),
            Act::CiteNothing => self.declare(Vec::new()),
            Act::Answer => self.answer(),
            Act::Pause => self.ledger.end(Ending::Paused),
            Act::Fail => {
                (self.history, self.ledger, self.policy) = self.before.clone();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_happens_the_ledger_keeps_its_promises(acts in prop::collection::vec(act(), 1..40)) {
        let mut run = Run::new();
        let mut written: Vec<String> = Vec::new();
        for act in &acts {
            run.act(act);
            let status = run.ledger.status();
            // Never grounded while newer evidence is undeclared.
            if run.ledger.in_progress() {
                if run.expected.newer_evidence || !run.expected.declared_any {
                    prop_assert_eq!(status, Status::Missing);
                } else {
                    let grounded = !run.expected.since_evidence.is_empty();
                    prop_assert_eq!(status, if grounded { Status::Grounded } else { Status::Ungrounded });
                }
            }
            // A question is asked at most once.
            prop_assert!(run.notices.values().all(|count| *count <= 1));
            // The history only grows, but for a failed question that goes whole.
            let now: Vec<String> = run.history.messages().iter().map(|m| serde_json::to_string(m).unwrap()).collect();
            let common = written.len().min(now.len());
            prop_assert_eq!(&written[..common], &now[..common]);
            if !matches!(act, Act::Fail) {
                prop_assert!(now.len() >= written.len());
            }
            written = now;
            // Violations are of questions that were asked.
            let violations = run.policy.published().unwrap();
            prop_assert!(violations.iter().all(|id| *id < run.history.clock()));
            // A request can always be made, and shaping leaves history and ledger alone.
            let kept = (run.history.clone(), run.ledger.clone());
            let request = shape(&run.history, &run.ledger, &Live::default(), COMPACT).unwrap();
            prop_assert!(request.sources.is_empty());
            prop_assert_eq!(kept, (run.history.clone(), run.ledger.clone()));
        }
        let back: Ledger = serde_json::from_str(&serde_json::to_string(&run.ledger).unwrap()).unwrap();
        prop_assert_eq!(back.status(), run.ledger.status());
        let _ = a_ref("one", "a");
    }
}
