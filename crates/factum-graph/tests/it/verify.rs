use std::collections::BTreeSet;

use factum_base::{NodeKey, canonical_json, sha256};
use factum_graph::verify::{Finding, FindingClass, Sources, verify_event_chain, verify_run};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{Fixture, OWNER, fixture};

fn verify(fixture: &Fixture, run: &Value) -> Vec<Finding> {
    let events = fixture.events_json();
    let text = |doc: &str, version: u32| fixture.texts.get(&(doc.to_owned(), version)).cloned();
    verify_run(
        run,
        &Sources {
            owner: OWNER,
            events: Some(&events),
            text: &text,
        },
    )
}

fn classes(findings: &[Finding]) -> BTreeSet<FindingClass> {
    findings.iter().map(|finding| finding.class).collect()
}

#[test]
fn a_planned_run_verifies_without_findings() {
    let fixture = fixture();
    assert_eq!(verify(fixture, &fixture.json()), []);
    let names: Vec<&str> = fixture.run.nodes.iter().map(|n| n.name.as_str()).collect();
    for prefix in ["leaf", "part", "document", "group", "root"] {
        assert!(
            names.iter().any(|name| name.starts_with(prefix)),
            "{names:?} has no {prefix}"
        );
    }
}

#[test]
fn texts_the_principal_may_not_see_are_never_asked_for() {
    let fixture = fixture();
    let text = |doc: &str, version: u32| {
        let may = fixture
            .run
            .snapshot
            .slots
            .iter()
            .any(|s| s.eligible && s.doc_id.as_str() == doc && s.version == version);
        assert!(may, "{doc} {version}");
        fixture.texts.get(&(doc.to_owned(), version)).cloned()
    };
    let findings = verify_run(
        &fixture.json(),
        &Sources {
            owner: OWNER,
            events: None,
            text: &text,
        },
    );
    assert_eq!(findings, []);
}

#[test]
fn a_missing_text_is_a_finding() {
    let fixture = fixture();
    let sources = Sources {
        owner: OWNER,
        events: None,
        text: &|_, _| None,
    };
    assert_eq!(
        classes(&verify_run(&fixture.json(), &sources)),
        [FindingClass::Text].into()
    );
}

type Mutation = (&'static str, fn(&mut Value));

fn flip(value: &mut Value) {
    *value = match value.take() {
        Value::String(text) => json!(format!("{text}x")),
        Value::Number(number) => json!(number.as_u64().unwrap_or(0) + 1),
        Value::Bool(flag) => json!(!flag),
        Value::Null => json!({"start": 0, "end": 1}),
        Value::Object(map) if map.contains_key("end") => Value::Null,
        _ => json!("other"),
    };
}

fn first_piece(node: &mut Value) -> Option<&mut Value> {
    node["result"]["evidence"]
        .as_object_mut()?
        .values_mut()
        .next()
}

fn first_claim(node: &mut Value) -> Option<&mut Value> {
    node["result"]["claims"].get_mut(0)
}

fn piece_mutations() -> Vec<Mutation> {
    vec![
        ("quote", |n| {
            if let Some(p) = first_piece(n) {
                flip(&mut p["quote"]);
            }
        }),
        ("start", |n| {
            if let Some(p) = first_piece(n) {
                flip(&mut p["start"]);
            }
        }),
        ("end", |n| {
            if let Some(p) = first_piece(n) {
                flip(&mut p["end"]);
            }
        }),
        ("float", |n| {
            if let Some(p) = first_piece(n) {
                p["end"] = json!(1.5);
            }
        }),
        ("negative", |n| {
            if let Some(p) = first_piece(n) {
                p["start"] = json!(-1);
            }
        }),
        ("doc", |n| {
            if let Some(p) = first_piece(n) {
                flip(&mut p["doc_id"]);
            }
        }),
        ("version", |n| {
            if let Some(p) = first_piece(n) {
                flip(&mut p["version"]);
            }
        }),
        ("text", |n| {
            if let Some(p) = first_piece(n) {
                flip(&mut p["text_sha256"]);
            }
        }),
        ("id", |n| {
            if let Some(p) = first_piece(n) {
                flip(&mut p["evidence_id"]);
            }
        }),
        ("map id", |n| {
            let map = n["result"]["evidence"].as_object_mut().unwrap();
            if let Some((id, piece)) = map.iter().next().map(|(k, v)| (k.clone(), v.clone())) {
                map.remove(&id);
                map.insert(format!("{id}0"), piece);
            }
        }),
        ("lost", |n| n["result"]["evidence"] = json!({})),
        ("cites nothing", |n| {
            if let Some(c) = first_claim(n) {
                c["evidence"] = json!([]);
            }
        }),
        ("cites twice", |n| {
            if let Some(c) = first_claim(n) {
                let id = c["evidence"][0].clone();
                c["evidence"].as_array_mut().unwrap().push(id);
            }
        }),
        ("cites others'", |n| {
            if let Some(c) = first_claim(n) {
                c["evidence"] = json!(["a.txt@2:0:1"]);
            }
        }),
        ("verdict", |n| {
            if let Some(c) = first_claim(n) {
                // A model's claim may be unsupported by the fact lines, and only the rules could tell.
                let by_rules = c["support"]["method"] == "fact-line";
                let other = if by_rules { "unchecked" } else { "unsupported" };
                c["support"]["verdict"] = json!(other);
            }
        }),
        ("withheld though supported", |n| {
            let claims = n["result"]["claims"].clone();
            if claims != json!([]) {
                n["result"]["withheld"] = claims;
            }
        }),
    ]
}

fn node_mutations() -> Vec<Mutation> {
    vec![
        ("key", |n| n["key"] = json!(NodeKey::of(b"other"))),
        ("name", |n| flip(&mut n["name"])),
        ("kind", |n| {
            n["kind"] = json!(if n["kind"] == "leaf" {
                "reduction"
            } else {
                "leaf"
            });
        }),
        ("reused", |n| flip(&mut n["reused"])),
        ("order", |n| n["children"].as_array_mut().unwrap().reverse()),
        ("child lost", |n| {
            drop(n["children"].as_array_mut().unwrap().pop());
        }),
        ("child twice", |n| {
            let children = n["children"].as_array_mut().unwrap();
            children.extend(children.first().cloned());
        }),
        ("own child", |n| {
            let name = n["name"].clone();
            n["children"].as_array_mut().unwrap().push(name);
        }),
        ("no result", |n| n["result"] = Value::Null),
        ("extra field", |n| n["result"]["text"] = json!("smuggled")),
        ("VALID", |n| n["result"]["status"] = json!("VALID")),
        ("PARTIAL", |n| n["result"]["status"] = json!("PARTIAL")),
        ("INVALID", |n| n["result"]["status"] = json!("INVALID")),
        ("INELIGIBLE", |n| {
            n["result"]["status"] = json!("INELIGIBLE");
        }),
        ("unknown status", |n| n["result"]["status"] = json!("valid")),
        ("diagnostic", |n| {
            let old = n["result"]["diagnostic"].is_null();
            n["result"]["diagnostic"] = if old { json!("x") } else { Value::Null };
        }),
        ("generation", |n| {
            n["result"]["generation"] = json!(NodeKey::of(b"unknown"));
        }),
    ]
}

#[test]
fn every_mutation_of_every_node_is_found() {
    let fixture = fixture();
    let run = fixture.json();
    for n in 0..fixture.run.nodes.len() {
        for (what, mutate) in node_mutations().into_iter().chain(piece_mutations()) {
            let mut changed = run.clone();
            mutate(&mut changed["nodes"][n]);
            if changed != run {
                let findings = verify(fixture, &changed);
                assert!(
                    !findings.is_empty(),
                    "{what} of {}",
                    fixture.run.nodes[n].name
                );
            }
        }
        for field in run["nodes"][n]["spec"].as_object().unwrap().keys() {
            let mut changed = run.clone();
            flip(&mut changed["nodes"][n]["spec"][field]);
            let found = classes(&verify(fixture, &changed));
            assert!(
                found.contains(&FindingClass::Key),
                "spec.{field} of node {n}: {found:?}"
            );
        }
        let mut changed = run.clone();
        changed["nodes"].as_array_mut().unwrap().remove(n);
        assert!(!verify(fixture, &changed).is_empty(), "node {n} lost");
    }
}

/// Makes all keys, children's keys and fingerprints of a changed run agree again, as a forger would.
fn forge(run: &mut Value) {
    let tagged = |tag: &str, parts: &[Vec<u8>]| {
        let mut bytes = [tag.as_bytes(), &[0]].concat();
        for part in parts {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part);
        }
        sha256(&bytes).to_vec()
    };
    let to_hex = |bytes: &[u8]| NodeKey::from_slice(bytes).unwrap().to_hex();
    let mut done: Vec<(String, String, Vec<u8>)> = Vec::new();
    for node in run["nodes"].as_array_mut().unwrap() {
        let spec = node["spec"].clone();
        let access = if node["kind"] == "leaf" {
            let flag = |name: &str| u8::from(spec[name].as_bool().unwrap());
            let revision = spec["access_revision"]
                .as_u64()
                .unwrap()
                .to_be_bytes()
                .to_vec();
            let id = spec["doc_id"].as_str().unwrap().as_bytes().to_vec();
            tagged(
                "factum/access/document/1",
                &[id, vec![flag("active"), flag("eligible")], revision],
            )
        } else {
            let children: Vec<_> = node["children"]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| {
                    done.iter()
                        .find(|d| d.0 == name.as_str().unwrap())
                        .unwrap()
                        .clone()
                })
                .collect();
            let mut keys: Vec<&str> = children.iter().map(|c| c.1.as_str()).collect();
            keys.sort_unstable();
            node["spec"]["children_keys"] = json!(keys);
            let parts: Vec<Vec<u8>> = children.iter().map(|c| c.2.clone()).collect();
            let access = tagged("factum/access/node/1", &parts);
            node["spec"]["access_fingerprint"] = json!(to_hex(&access));
            access
        };
        let key = to_hex(&sha256(canonical_json(&node["spec"]).unwrap().as_bytes()));
        node["key"] = json!(key);
        done.push((node["name"].as_str().unwrap().to_owned(), key, access));
    }
    let root = json!(done.last().unwrap().1);
    run["root"] = root.clone();
    run["invalidation"]["current_root_key"] = root;
    let digest = NodeKey::of(canonical_json(&run["snapshot"]).unwrap().as_bytes());
    run["snapshot_sha256"] = json!(digest);
}

#[test]
fn a_forged_leaf_is_found_though_all_keys_agree() {
    let fixture = fixture();
    let run = fixture.json();
    let mut same = run.clone();
    forge(&mut same);
    assert_eq!(same, run, "forging nothing changes nothing");
    for n in 0..fixture.run.nodes.len() {
        if run["nodes"][n]["kind"] != "leaf" {
            continue;
        }
        let fields = [
            "doc_id",
            "version",
            "text_sha256",
            "active",
            "eligible",
            "access_revision",
            "slot",
            "principal",
            "segment",
            "transformation",
        ];
        for field in fields {
            let mut changed = run.clone();
            let value = &mut changed["nodes"][n]["spec"][field];
            if field == "transformation" {
                value["generator"] = json!("other");
            } else {
                flip(value);
            }
            forge(&mut changed);
            let found = classes(&verify(fixture, &changed));
            assert!(
                !found.is_empty() && !found.contains(&FindingClass::Key),
                "{field}: {found:?}"
            );
        }
    }
}

#[test]
fn a_snapshot_that_the_events_do_not_give_is_found_though_all_else_agrees() {
    let fixture = fixture();
    let run = fixture.json();
    for n in 0..fixture.run.snapshot.slots.len() {
        let slot = run["snapshot"]["slots"][n]["slot"].clone();
        for field in [
            "version",
            "active",
            "eligible",
            "access_revision",
            "text_sha256",
        ] {
            let mut changed = run.clone();
            flip(&mut changed["snapshot"]["slots"][n][field]);
            let value = changed["snapshot"]["slots"][n][field].clone();
            for node in changed["nodes"].as_array_mut().unwrap() {
                if node["spec"]["slot"] == slot {
                    node["spec"][field] = value.clone();
                }
            }
            forge(&mut changed);
            let events = classes(&verify(fixture, &changed));
            let wanted = [FindingClass::Version, FindingClass::Access];
            assert!(
                wanted.iter().any(|class| events.contains(class)),
                "{field}: {events:?}"
            );
        }
        let mut changed = run.clone();
        changed["snapshot"]["slots"]
            .as_array_mut()
            .unwrap()
            .remove(n);
        forge(&mut changed);
        assert!(classes(&verify(fixture, &changed)).contains(&FindingClass::Snapshot));
    }
}

/// Pointers to every text, number and flag that `verify` claims to check.
fn checked_scalars(value: &Value, at: &str, out: &mut Vec<String>) {
    let unchecked = |at: &str| {
        let ends = [
            "run_id",
            "case_id",
            "profile",
            "seconds",
            "model_calls",
            "new_tokens",
            "generations_reused",
            "previous_root_key",
            "previous_status",
            "salience",
            "support/version",
            "support/detail",
            "diagnostic",
        ];
        ends.iter().any(|end| at.ends_with(&format!("/{end}")))
            || ["/generations/", "/invalidation/serve_refusal"]
                .iter()
                .any(|p| at.starts_with(p))
            || (at.contains("/withheld/") && at.contains("/fields/"))
    };
    match value {
        Value::Object(map) => {
            for (name, item) in map {
                let name = name.replace('~', "~0").replace('/', "~1");
                checked_scalars(item, &format!("{at}/{name}"), out);
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                checked_scalars(item, &format!("{at}/{n}"), out);
            }
        }
        Value::Null => {}
        _ if unchecked(at) => {}
        _ => out.push(at.to_owned()),
    }
}

/// Replaces one character of a text, one digit of a number, or a flag.
fn replace_one(value: &mut Value, at: prop::sample::Index, by: char, digit: u64) {
    *value = match &*value {
        Value::String(text) if text.is_empty() => json!(by.to_string()),
        Value::String(text) => {
            let mut chars: Vec<char> = text.chars().collect();
            let n = at.index(chars.len());
            chars[n] = by;
            json!(chars.into_iter().collect::<String>())
        }
        Value::Number(number) => {
            let old = number.as_u64().unwrap();
            let place = 10u64.pow(u32::try_from(at.index(old.to_string().len())).unwrap());
            json!(old - (old / place % 10) * place + digit * place)
        }
        Value::Bool(flag) => json!(!flag),
        other => other.clone(),
    };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]
    #[test]
    fn any_one_changed_character_is_found_unless_listed_as_unchecked(
        pick in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        by in prop_oneof![proptest::char::range('0', '9'), proptest::char::range('a', 'f'), any::<char>()],
        digit in 0u64..10,
    ) {
        let fixture = fixture();
        let run = fixture.json();
        let mut pointers = Vec::new();
        checked_scalars(&run, "", &mut pointers);
        let pointer = &pointers[pick.index(pointers.len())];
        let mut changed = run.clone();
        replace_one(changed.pointer_mut(pointer).unwrap(), at, by, digit);
        if changed != run {
            prop_assert!(!verify(fixture, &changed).is_empty(), "{}: {}", pointer, changed.pointer(pointer).unwrap());
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,9}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,9}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn all_pointers(value: &Value, at: String, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, item) in map {
                let name = name.replace('~', "~0").replace('/', "~1");
                all_pointers(item, format!("{at}/{name}"), out);
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                all_pointers(item, format!("{at}/{n}"), out);
            }
        }
        _ => {}
    }
    out.push(at);
}

proptest! {
    #[test]
    fn no_json_makes_verification_panic(
        value in any_json(),
        graft in any_json(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let fixture = fixture();
        let text = |_: &str, _: u32| Some("水".to_owned());
        let events = [graft.clone(), value.clone()];
        let sources = Sources { owner: OWNER, events: Some(&events), text: &text };
        prop_assert!(!verify_run(&value, &sources).is_empty());
        let mut run = fixture.json();
        for pick in picks {
            let mut pointers = Vec::new();
            all_pointers(&run, String::new(), &mut pointers);
            let pointer = &pointers[pick.index(pointers.len())];
            *run.pointer_mut(pointer).unwrap() = graft.clone();
        }
        let _ = verify(fixture, &run);
        let _ = verify_event_chain(&[(value, String::new()), (graft, "0".repeat(64))]);
    }
}

#[test]
fn great_depth_is_a_finding() {
    let mut value = json!(1);
    for _ in 0..500 {
        value = json!([value]);
    }
    let fixture = fixture();
    assert_eq!(
        classes(&verify(fixture, &value)),
        [FindingClass::Format].into()
    );
    let found = verify_event_chain(&[(value, String::new())]);
    assert_eq!(classes(&found), [FindingClass::EventChain].into());
}

#[test]
fn integers_that_json_numbers_can_not_tell_apart_are_refused_in_specs() {
    let fixture = fixture();
    let mut run = fixture.json();
    for node in run["nodes"].as_array_mut().unwrap() {
        if node["kind"] == "leaf" {
            node["spec"]["transformation"]["seed"] = json!(9_007_199_254_740_993_u64);
        }
    }
    forge(&mut run);
    assert_eq!(
        classes(&verify(fixture, &run)),
        [FindingClass::Format].into()
    );
}
