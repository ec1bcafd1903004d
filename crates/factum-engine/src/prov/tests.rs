//! Tests of provenance as pure code: the golden file, hostile input, staleness against the plain definition.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use factum_base::{BodyDigest, CaseId, DocumentId, NodeKey, PrincipalId, Span, TextDigest};
use factum_casefile::{Event, EventKind, EvidenceId, NodeStatus, Slot, Snapshot};
use oxjsonld::JsonLdParser;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Term, Triple};
use oxttl::TurtleParser;
use proptest::prelude::*;

use super::lineage::*;
use super::past::{Eyes, Sight, Standing};
use super::telling::tell;
use super::{Provenance, triples};

fn doc(text: &str) -> DocumentId {
    DocumentId::new(text).unwrap()
}

fn who(text: &str) -> PrincipalId {
    PrincipalId::new(text).unwrap()
}

fn slots() -> Vec<Slot> {
    Slot::between(None, None, 9)
}

fn history(kinds: Vec<EventKind>) -> Vec<Event> {
    kinds
        .into_iter()
        .zip(1..)
        .map(|(kind, number)| Event {
            number,
            at: 1_700_000_000_000 + 1000 * i64::try_from(number).unwrap(),
            by: who("local"),
            kind,
        })
        .collect()
}

fn publish(name: &str, version: u32, slot: usize) -> EventKind {
    EventKind::Published {
        doc_id: doc(name),
        version,
        text_sha256: TextDigest::of(format!("{name}{version}").as_bytes()),
        slot: slots()[slot].clone(),
    }
}

fn withdraw(name: &str) -> EventKind {
    EventKind::Withdrawn {
        doc_id: doc(name),
        file_gone: false,
    }
}

fn result(run_id: &str, key: &str) -> ResultId {
    ResultId {
        run_id: run_id.to_owned(),
        key: NodeKey::of(key.as_bytes()),
    }
}

fn leaf(name: &str, version: u32, answer: Option<AnswerId>) -> ResultLineage {
    ResultLineage {
        source: Source::Leaf {
            doc_id: doc(name),
            version,
            segment: Some(Span::new(0, 40)),
        },
        status: NodeStatus::Valid,
        counts: Some((1, 0)),
        answer,
        summary: None,
    }
}

/// Lineage of events alone, as the owner sees it.
fn lineage_of(events: &[Event], case: &str, title: &str) -> Lineage {
    let sights: HashMap<DocumentId, Sight> =
        Snapshot::fold(events, &who("local"), &who("local"), 99)
            .slots
            .into_iter()
            .map(|slot| {
                let sight = if slot.eligible {
                    Sight::Whole
                } else {
                    Sight::Named
                };
                (slot.doc_id, sight)
            })
            .collect();
    let owner = who("local");
    let eyes = Eyes {
        caller: &owner,
        owner: &owner,
        sights: &sights,
    };
    Lineage {
        case_id: CaseId::new(case).unwrap(),
        title: title.to_owned(),
        created_at: 1_700_000_000_000,
        caller: owner.clone(),
        last_event: events.len() as u64,
        left_out: Some(LeftOut {
            hidden: 1,
            outlined: 0,
        }),
        documents: eyes.documents(events),
        events: events.iter().filter_map(|event| eyes.see(event)).collect(),
        rights: eyes.rights(events),
        agents: BTreeMap::new(),
        runs: Vec::new(),
        results: BTreeMap::new(),
        answers: BTreeMap::new(),
        quotes: BTreeMap::new(),
    }
}

/// A model, known to the lineage under this name.
fn model(lineage: &mut Lineage, generator: &str) -> AgentId {
    let agent = AgentId {
        model: true,
        digest: BodyDigest::of(b"model").to_hex(),
    };
    let about = AgentLineage {
        names: BTreeSet::from([generator.to_owned()]),
        kind: "canned".to_owned(),
        identity: "{\"kind\":\"canned\"}".to_owned(),
    };
    lineage.agents.insert(agent.clone(), about);
    agent
}

/// Its answer in the first run.
fn answer(lineage: &mut Lineage, agent: &AgentId, read: &Used) -> AnswerId {
    let id = AnswerId {
        run_id: Some("run-000001".to_owned()),
        digest: BodyDigest::of(b"request"),
    };
    let about = AnswerLineage {
        agent: agent.clone(),
        stop: "end".to_owned(),
        prompt_tokens: 120,
        new_tokens: 30,
        seconds: 1.5,
        retries: 0,
        used: BTreeSet::from([read.clone()]),
    };
    lineage.answers.insert(id.clone(), about);
    id
}

/// A summary with one claim, which ended with the second event, where there is one.
fn summary(
    lineage: &Lineage,
    agent: &AgentId,
    claim: &str,
    evidence: EvidenceId,
) -> SummaryLineage {
    let claim = ClaimLineage {
        text: claim.to_owned(),
        verdict: "supported".to_owned(),
        method: "quoted".to_owned(),
        evidence: vec![evidence],
    };
    let mut moments = lineage.events.iter().map(|event| event.moment);
    SummaryLineage {
        principal: lineage.caller.clone(),
        agent: agent.clone(),
        finished_at: Some(1_700_000_002_000),
        stale: moments.find(|moment| moment.event > 1),
        claims: vec![claim],
    }
}

/// One run over one document by a model, with one claim, told in words of the caller's choice.
fn with_run(lineage: &mut Lineage, name: &str, claim: &str, quote: &str, generator: &str) {
    let agent = model(lineage, generator);
    let read = Used::Version(doc(name), 1);
    let answer = answer(lineage, &agent, &read);
    let evidence = EvidenceId {
        doc_id: doc(name),
        version: 1,
        span: Span::new(3, 17),
    };
    lineage.quotes.insert(evidence.clone(), quote.to_owned());
    let (below, root) = (result("run-000001", "leaf"), result("run-000001", "root"));
    let told = ResultLineage {
        source: Source::Reduction {
            role: "root",
            children: vec![below.clone()],
            invalid: Vec::new(),
        },
        status: NodeStatus::Valid,
        counts: Some((1, 0)),
        answer: None,
        summary: Some(summary(lineage, &agent, claim, evidence)),
    };
    lineage.results.insert(root.clone(), told);
    lineage.results.insert(below, leaf(name, 1, Some(answer)));
    lineage.runs.push(RunLineage {
        run_id: "run-000001".to_owned(),
        principal: lineage.caller.clone(),
        event: 1,
        profile: "narrative".to_owned(),
        context: BodyDigest::of(b"context").to_hex(),
        full: false,
        started_at: 1_700_000_001_500,
        finished_at: 1_700_000_002_000,
        agent,
        summary: root,
        outline: false,
        used: BTreeSet::from([read]),
    });
}

fn from_turtle(text: &str) -> BTreeSet<String> {
    TurtleParser::new()
        .for_slice(text)
        .map(|triple| triple.unwrap().to_string())
        .collect()
}

fn from_json_ld(text: &str) -> BTreeSet<String> {
    JsonLdParser::new()
        .for_slice(text)
        .map(|quad| {
            let quad = quad.unwrap();
            assert_eq!(quad.graph_name, GraphName::DefaultGraph);
            Triple::new(quad.subject, quad.predicate, quad.object).to_string()
        })
        .collect()
}

/// Both forms say exactly the triples, and every name is an IRI.
fn assert_reads_back(told: &[Triple]) {
    let expected: BTreeSet<String> = told.iter().map(ToString::to_string).collect();
    assert_eq!(from_turtle(&triples::turtle(told).unwrap()), expected);
    let mut json = triples::json_ld(told).unwrap();
    assert_eq!(from_json_ld(&json.to_string()), expected);
    json["format"] = serde_json::json!("factum/prov/1");
    assert_eq!(
        from_json_ld(&json.to_string()),
        expected,
        "the format's name is no statement"
    );
    for triple in told {
        let NamedOrBlankNode::NamedNode(subject) = &triple.subject else {
            panic!("{triple}");
        };
        let mut names = vec![subject, &triple.predicate];
        if let Term::NamedNode(object) = &triple.object {
            names.push(object);
        }
        for name in names {
            NamedNode::new(name.as_str()).unwrap();
            assert!(name.as_str().is_ascii(), "{name}");
        }
    }
}

#[test]
fn a_small_case_told_in_turtle() {
    let events = history(vec![
        publish("letters/first letter.txt", 1, 0),
        publish("letters/first letter.txt", 2, 0),
        publish("memo.txt", 1, 1),
        withdraw("memo.txt"),
        EventKind::Granted {
            doc_id: None,
            to: who("broker"),
        },
        EventKind::Revoked {
            doc_id: Some(doc("letters/first letter.txt")),
            from: who("broker"),
        },
    ]);
    let mut lineage = lineage_of(&events, "wd 1", "Water damage");
    with_run(
        &mut lineage,
        "letters/first letter.txt",
        "The hose burst.",
        "hose \"burst\"",
        "canned:answers.json",
    );
    let told = tell(&lineage);
    assert_reads_back(&told);
    insta::assert_snapshot!(triples::turtle(&told).unwrap());
}

#[test]
fn the_order_is_fixed_and_nothing_is_said_twice() {
    let mut lineage = lineage_of(&history(vec![publish("a", 1, 0)]), "wd", "Title");
    with_run(&mut lineage, "a", "claim", "quote", "canned:x");
    let told = Provenance::of(&lineage);
    assert_eq!(told, Provenance::of(&lineage));
    let texts: Vec<String> = told.triples.iter().map(ToString::to_string).collect();
    let distinct: BTreeSet<&String> = texts.iter().collect();
    assert_eq!(distinct.len(), told.len());
}

#[test]
fn a_version_that_counts_again_is_not_invalidated() {
    let back = EventKind::Reinstated { doc_id: doc("a") };
    let events = history(vec![publish("a", 1, 0), withdraw("a"), back]);
    let lineage = lineage_of(&events, "wd", "Title");
    assert_eq!(lineage.documents[&doc("a")].versions[&1].invalidated, None);
    let gone = history(vec![publish("a", 1, 0), publish("a", 2, 0), withdraw("a")]);
    let versions = &lineage_of(&gone, "wd", "Title").documents[&doc("a")].versions;
    let end = |version: u32| versions[&version].invalidated.map(|moment| moment.event);
    assert_eq!((end(1), end(2)), (Some(2), Some(3)));
    assert_eq!(
        versions[&2].text_sha256, None,
        "a withdrawn text's digest is not told"
    );
}

#[test]
fn a_revocation_ends_the_right_or_its_part() {
    let grant = |name: Option<&str>| EventKind::Granted {
        doc_id: name.map(doc),
        to: who("broker"),
    };
    let revoke = |name: Option<&str>| EventKind::Revoked {
        doc_id: name.map(doc),
        from: who("broker"),
    };
    let ends = |kinds: Vec<EventKind>| -> Vec<(u64, bool, Option<u64>)> {
        lineage_of(&history(kinds), "wd", "Title")
            .rights
            .into_iter()
            .map(|(id, right)| {
                (
                    id.grant,
                    id.part.is_some(),
                    right.revoked.map(|end| end.event),
                )
            })
            .collect()
    };
    let a = || publish("a", 1, 0);
    assert_eq!(
        ends(vec![a(), grant(Some("a")), revoke(Some("a"))]),
        [(2, false, Some(3))]
    );
    assert_eq!(
        ends(vec![a(), grant(None), revoke(Some("a")), revoke(None)]),
        [(2, false, Some(4)), (2, true, Some(3))]
    );
    assert_eq!(
        ends(vec![a(), grant(Some("a")), revoke(None), grant(None)]),
        [(2, false, Some(3)), (4, false, None)]
    );
}

/// Text meant to break out of its place.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "\"",
        "'''",
        "\"\"\"",
        "\\",
        "\n",
        "\r",
        "\t",
        "\u{0}",
        "\u{7f}",
        "\u{85}",
        "\u{202e}",
        "\u{200f}",
        "\u{2028}",
        "\u{feff}",
        "\u{fffe}",
        "\u{10ffff}",
        ">",
        "<",
        "> .",
        "@en",
        "^^<x>",
        "{",
        "}",
        "%",
        "%3E",
        "#",
        "?",
        ":",
        "/a",
        "@id",
        "_:b",
        " ",
        "é",
        "日",
        "👍🏽",
        "a",
        "\u{301}",
        "`",
        "|",
        "^",
    ]);
    prop::collection::vec(pieces, 1..8).prop_map(|pieces| pieces.concat())
}

/// The same as an id: without what ids refuse.
fn hostile_id() -> impl Strategy<Value = String> {
    let refused = |c: char| c.is_control() || matches!(c, '/' | '\\' | '\u{2028}' | '\u{202e}');
    hostile().prop_map(move |text| {
        let kept: String = text.chars().filter(|c| !refused(*c)).collect();
        format!("{kept}x")
    })
}

proptest! {
    #[test]
    fn hostile_text_breaks_no_syntax(
        name in hostile_id(), case in hostile_id(), other in hostile_id(), title in hostile(), quote in hostile(),
        claim in hostile(), generator in hostile(),
    ) {
        let granted = EventKind::Granted { doc_id: Some(doc(&name)), to: who(&other) };
        let events = history(vec![publish(&name, 1, 0), granted]);
        let mut lineage = lineage_of(&events, &case, &title);
        with_run(&mut lineage, &name, &claim, &quote, &generator);
        let told = tell(&lineage);
        assert_reads_back(&told);
        // A term said with these very texts is there.
        let said = |text: &str| told.iter().any(|triple| matches!(&triple.object, Term::Literal(l) if l.value() == text));
        prop_assert!(said(&name) && said(&title) && said(&quote) && said(&claim) && said(&generator) && said(&other));
    }

    #[test]
    fn different_ids_have_different_names(a in hostile_id(), b in hostile_id()) {
        let (a, b) = (doc(&a), doc(&b));
        let iris = super::names::InCase::new(&CaseId::new("wd").unwrap());
        prop_assert_eq!(a == b, iris.document(&a) == iris.document(&b));
        // No document's name is another thing's.
        prop_assert!(iris.version(&a, 1) != iris.document(&b));
    }

    #[test]
    fn staleness_is_that_of_the_snapshots(steps in prop::collection::vec((0u8..7, 0usize..3), 1..24), at in 0u64..24) {
        let (owner, ann) = (who("local"), who("ann"));
        let names = ["a", "b", "c"];
        let mut versions = [0u32; 3];
        let mut kinds = Vec::new();
        for (step, n) in steps {
            let doc_id = doc(names[n]);
            kinds.push(match step {
                0 | 1 => { versions[n] += 1; publish(names[n], versions[n], n) }
                2 => withdraw(names[n]),
                3 => EventKind::Reinstated { doc_id },
                4 => EventKind::Granted { doc_id: (n > 0).then_some(doc_id), to: ann.clone() },
                5 => EventKind::Revoked { doc_id: (n > 0).then_some(doc_id), from: ann.clone() },
                _ => EventKind::Granted { doc_id: None, to: who("someone else") },
            });
        }
        let events = history(kinds);
        for principal in [&owner, &ann] {
            let fold = |n: u64| Snapshot::fold(&events, &owner, principal, n);
            let last = events.len() as u64;
            let same = (at..=last).rev().find(|n| fold(*n) == fold(at));
            let plain = same.filter(|n| *n < last).map(|n| n + 1);
            let found = Standing::of(&events, &owner, principal).stale_since(at);
            prop_assert_eq!(found.first().copied(), plain);
        }
    }
}
