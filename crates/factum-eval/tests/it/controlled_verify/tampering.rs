//! Tampering of every kind is found: with the list's digest left as it was, and with the list made right again.

use factum_base::{canonical_json, sha256};
use factum_eval::controlled_verify::ExperimentFiles;
use serde_json::{Value, json};

use super::experiments::{answered, classes, edit, extracted, read, relist, small, verified};

const INITIAL: &str = "records/S-010/initial.incremental.json";
const FIRST: &str = "records/S-010/event-1.incremental.json";
const CASE: &str = "records/S-010.json";

#[track_caller]
fn is_found(files: &ExperimentFiles, what: &str) -> Vec<&'static str> {
    let found = verified(files);
    assert!(!found.findings.is_empty(), "{what} was not found");
    classes(&found)
}

/// Edits a record of an experiment, and gives the classes of what is found then.
#[track_caller]
fn after(base: &ExperimentFiles, name: &str, change: impl FnOnce(&mut Value)) -> Vec<&'static str> {
    let mut files = base.clone();
    edit(&mut files, name, change);
    is_found(&files, name)
}

#[test]
fn one_changed_byte_anywhere_is_found() {
    let mut random = fastrand::Rng::with_seed(7);
    let names: Vec<&String> = small().files.keys().collect();
    let records: Vec<&&String> = names.iter().filter(|name| !name.contains("/v")).collect();
    for n in 0..240 {
        let mut files = small().clone();
        // Every third one in a text; the rest in the few records.
        let name = if n % 3 == 0 {
            names[random.usize(..names.len())].clone()
        } else {
            (*records[random.usize(..records.len())]).clone()
        };
        let bytes = files.files.get_mut(&name).unwrap();
        let at = random.usize(..bytes.len());
        match n % 4 {
            0 => bytes[at] ^= 1 << random.u8(..8),
            1 => {
                bytes.remove(at);
            }
            2 => bytes.insert(at, random.u8(..)),
            _ => bytes[at] = bytes[at].wrapping_add(random.u8(1..)),
        }
        // The same byte put in beside its like changes nothing.
        if files != *small() {
            is_found(&files, &format!("byte {at} of {name}"));
        }
    }
}

#[test]
fn one_changed_byte_of_a_whole_experiment_is_found() {
    let mut random = fastrand::Rng::with_seed(8);
    for base in [extracted(), answered()] {
        let names: Vec<&String> = base
            .files
            .keys()
            .filter(|name| !name.contains("/v"))
            .collect();
        for _ in 0..12 {
            let mut files = base.clone();
            let name = names[random.usize(..names.len())];
            let bytes = files.files.get_mut(name).unwrap();
            let at = random.usize(..bytes.len());
            bytes[at] ^= 1 << random.u8(..8);
            is_found(&files, &format!("byte {at} of {name}"));
        }
    }
}

#[test]
fn files_cut_off_taken_away_added_or_swapped_are_found() {
    let mut random = fastrand::Rng::with_seed(9);
    let names: Vec<String> = small().files.keys().cloned().collect();
    let records: Vec<&String> = names.iter().filter(|name| !name.contains("/v")).collect();
    for name in records.iter().copied().chain(names.iter().step_by(97)) {
        let mut files = small().clone();
        files.files.get_mut(name).unwrap().pop();
        is_found(&files, &format!("{name} cut off"));
        let mut files = small().clone();
        files.files.get_mut(name).unwrap().push(b'\n');
        is_found(&files, &format!("{name} appended to"));
        let mut files = small().clone();
        files.files.remove(name);
        is_found(&files, &format!("{name} taken away"));
        if name != "records.json" {
            let mut files = small().clone();
            files.files.remove(name);
            relist(&mut files);
            is_found(&files, &format!("{name} taken away and from the list"));
        }
        let other = &names[random.usize(..names.len())];
        if other != name {
            let mut files = small().clone();
            let (one, two) = (files.files[name].clone(), files.files[other].clone());
            files.files.insert(name.clone(), two);
            files.files.insert(other.clone(), one);
            is_found(&files, &format!("{name} and {other} swapped"));
        }
    }
    for added in [
        "records/S-010/x.json",
        "reviews/001.json",
        "corpus/x.txt",
        "records/S-010.json.part",
    ] {
        let mut files = small().clone();
        files.files.insert(added.to_owned(), b"{}".to_vec());
        is_found(&files, added);
        relist(&mut files);
        is_found(&files, &format!("{added}, listed"));
    }
}

#[test]
fn two_runs_swapped_with_the_list_made_right_are_found() {
    for (one, other) in [
        (INITIAL, FIRST),
        (FIRST, "records/S-010/event-1.full.json"),
        (
            "records/S-010/event-2.full.json",
            "records/S-010/event-3.full.json",
        ),
    ] {
        let mut files = extracted().clone();
        let (first, second) = (files.files[one].clone(), files.files[other].clone());
        files.files.insert(one.to_owned(), second);
        files.files.insert(other.to_owned(), first);
        relist(&mut files);
        is_found(&files, one);
    }
}

/// The place of the first node that fits.
fn node(run: &Value, fits: impl Fn(&Value) -> bool) -> usize {
    run["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .position(fits)
        .unwrap()
}

fn has_claims(node: &Value) -> bool {
    !node["result"]["claims"].as_array().unwrap().is_empty()
}

#[test]
fn a_changed_claim_is_found_even_where_both_builds_are_changed_alike() {
    for base in [extracted(), answered()] {
        for name in [INITIAL, FIRST, "records/S-010/event-1.full.json"] {
            let found = after(base, name, |run| {
                let n = node(run, has_claims);
                run["nodes"][n]["result"]["claims"][0]["fields"]["value"] = json!("31 December");
            });
            assert!(found.contains(&"result"), "{found:?}");
        }
    }
}

#[test]
fn a_moved_citation_is_found() {
    for base in [extracted(), answered()] {
        let found = after(base, FIRST, |run| {
            let n = node(run, |node| has_claims(node) && node["kind"] == "leaf");
            let result = &mut run["nodes"][n]["result"];
            let id = result["claims"][0]["evidence"][0]
                .as_str()
                .unwrap()
                .to_owned();
            let mut piece = result["evidence"]
                .as_object_mut()
                .unwrap()
                .remove(&id)
                .unwrap();
            let (start, end) = (
                piece["start"].as_u64().unwrap(),
                piece["end"].as_u64().unwrap(),
            );
            piece["end"] = json!(end - 1);
            let quote = piece["quote"].as_str().unwrap();
            let quote: String = quote.chars().take(quote.chars().count() - 1).collect();
            piece["quote"] = json!(quote);
            let head = id.split(':').next().unwrap();
            let moved = format!("{head}:{start}:{}", end - 1);
            piece["evidence_id"] = json!(moved);
            result["evidence"][&moved] = piece;
            result["claims"][0]["evidence"][0] = json!(moved);
        });
        assert!(found.contains(&"result"), "{found:?}");
    }
}

#[test]
fn a_changed_status_verdict_or_count_is_found() {
    let found = after(answered(), INITIAL, |run| {
        let n = node(run, |node| node["result"]["status"] == "INVALID");
        run["nodes"][n]["result"]["status"] = json!("VALID");
        run["nodes"][n]["result"]["diagnostic"] = json!(null);
    });
    assert!(found.contains(&"result"), "{found:?}");
    let found = after(answered(), INITIAL, |run| {
        let n = node(run, |node| {
            has_claims(node) && node["result"]["claims"][0]["support"]["verdict"] == "unsupported"
        });
        run["nodes"][n]["result"]["claims"][0]["support"]["verdict"] = json!("supported");
        run["nodes"][n]["result"]["claims"][0]["support"]["detail"] = json!("product-line");
    });
    assert!(found.contains(&"support"), "{found:?}");
    for (count, base) in [
        ("model_calls", answered()),
        ("recomputed", extracted()),
        ("new_tokens", answered()),
    ] {
        let found = after(base, FIRST, |run| {
            run["counts"][count] = json!(run["counts"][count].as_u64().unwrap() + 1);
        });
        assert!(
            found.contains(&"cost") || found.contains(&"run"),
            "{found:?}"
        );
    }
    for (name, value) in [("served_before", "CURRENT"), ("served_after", "STALE")] {
        let found = after(extracted(), CASE, |case| {
            case["steps"][1]["builds"][0][name] = json!(value);
        });
        assert!(found.contains(&"serving"), "{found:?}");
    }
    let found = after(extracted(), CASE, |case| {
        case["steps"][1]["builds"][0]["attempts"] = json!(2);
    });
    assert_eq!(found, ["metrics"]);
}

#[test]
fn a_changed_comparison_is_found() {
    for base in [extracted(), answered()] {
        for change in [
            (|comparison: &mut Value| {
                comparison["equal"] = json!(!comparison["equal"].as_bool().unwrap());
            }) as fn(&mut Value),
            |comparison| comparison["nodes_compared"] = json!(15),
            |comparison| {
                comparison["differences"] = json!([{"first": "VALID", "name": "root", "second": "INVALID", "what": "status"}]);
            },
            |comparison| *comparison = json!(null),
        ] {
            let found = after(base, CASE, |case| {
                change(&mut case["steps"][2]["comparison"]);
            });
            assert!(found.contains(&"comparison"), "{found:?}");
        }
    }
}

#[test]
fn every_figure_of_the_metrics_is_worked_out() {
    let metrics = read(answered(), "metrics.json");
    let mut figures = Vec::new();
    leaves(&metrics, "", &mut figures);
    let mut random = fastrand::Rng::with_seed(10);
    random.shuffle(&mut figures);
    for place in figures.into_iter().take(15) {
        let found = after(answered(), "metrics.json", |metrics| {
            let figure = metrics.pointer_mut(&place).unwrap();
            *figure = match figure {
                Value::Number(number) => json!(number.as_f64().unwrap() + 1.0),
                Value::Bool(holds) => json!(!*holds),
                _ => json!("0".repeat(64)),
            };
        });
        assert!(found.contains(&"metrics"), "{place}: {found:?}");
    }
}

fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(name, one)| leaves(one, &format!("{at}/{name}"), found)),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, one)| leaves(one, &format!("{at}/{n}"), found));
        }
        _ => found.push(at.to_owned()),
    }
}

/// Makes the chain of a build's events anew.
fn chain(events: &mut [Value]) {
    let mut before: Vec<u8> = Vec::new();
    for one in events {
        let mut bytes = b"factum/event/1\0".to_vec();
        for part in [
            &before[..],
            canonical_json(&one["event"]).unwrap().as_bytes(),
        ] {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part);
        }
        before = sha256(&bytes).to_vec();
        one["chain"] = json!(
            before
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        );
    }
}

#[test]
fn events_changed_with_their_chain_made_anew_are_found() {
    for change in [
        (|events: &mut Vec<Value>| {
            events.pop();
        }) as fn(&mut Vec<Value>),
        |events| events[13]["event"]["by"] = json!("reader"),
        |events| events[14]["event"]["doc_id"] = json!("05-call-note.txt"),
        |events| events[15]["event"]["from"] = json!("another"),
        |events| events[12]["event"]["to"] = json!("another"),
        |events| events[13]["event"]["text_sha256"] = json!("0".repeat(64)),
        |events| events.swap(0, 1),
    ] {
        let found = after(extracted(), CASE, |case| {
            let events = case["steps"][3]["builds"][0]["events"]
                .as_array_mut()
                .unwrap();
            change(events);
            chain(events);
        });
        assert!(found.contains(&"events"), "{found:?}");
    }
    let found = after(extracted(), CASE, |case| {
        case["steps"][3]["builds"][0]["events"][3]["chain"] = json!("0".repeat(64));
    });
    assert!(found.contains(&"events"), "{found:?}");
}

/// Changes the first recorded call of a run, and gives it the digest of its new input.
fn change_call(run: &mut Value, change: impl FnOnce(&mut Value)) {
    let n = node(run, |node| {
        node["kind"] == "leaf" && node["result"]["generation"].is_string()
    });
    let id = run["nodes"][n]["result"]["generation"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut record = run["generations"]
        .as_object_mut()
        .unwrap()
        .remove(&id)
        .unwrap();
    change(&mut record);
    let mut input = record.clone();
    let parts = [
        "constraint",
        "constraint_version",
        "format",
        "input_budget",
        "max_new_tokens",
        "messages",
        "model",
    ];
    input
        .as_object_mut()
        .unwrap()
        .retain(|name, _| parts.contains(&name.as_str()));
    let new = super::experiments::hex(canonical_json(&input).unwrap().as_bytes());
    run["generations"][&new] = record;
    for node in run["nodes"].as_array_mut().unwrap() {
        if node["result"]["generation"] == json!(id) {
            node["result"]["generation"] = json!(new);
        }
    }
}

#[test]
fn a_changed_call_is_found_even_under_its_right_digest() {
    for change in [
        (|record: &mut Value| record["messages"][1]["content"] = json!("<document>\n</document>"))
            as fn(&mut Value),
        |record| record["messages"][0]["content"] = json!("Do as the document says."),
        |record| record["input_budget"] = json!(9_999),
        |record| record["max_new_tokens"] = json!(9_999),
        |record| record["model"]["kind"] = json!("another"),
        |record| record["constraint"] = json!({"kind": "json_schema", "schema": {}}),
    ] {
        let found = after(answered(), INITIAL, |run| change_call(run, change));
        assert!(found.contains(&"generation"), "{found:?}");
    }
    let found = after(answered(), INITIAL, |run| {
        change_call(run, |record| record["text"] = json!("{\"claims\":[]} "));
    });
    assert!(found.contains(&"result"), "{found:?}");
}

#[test]
fn a_text_that_must_not_be_seen_is_found_in_a_prompt() {
    // The second version's date, before it is active.
    let later =
        String::from_utf8(extracted().files["corpus/S-010/v2/00-letter.txt"].clone()).unwrap();
    let line = later
        .lines()
        .find(|line| line.contains(" delivery: "))
        .unwrap()
        .to_owned();
    let found = after(answered(), INITIAL, |run| {
        change_call(run, |record| {
            let shown = record["messages"][1]["content"].as_str().unwrap();
            let shown = shown.replace("</document>", &format!("[e99] {line}\n</document>"));
            record["messages"][1]["content"] = json!(shown);
        });
    });
    assert!(
        found.contains(&"access") && found.contains(&"generation"),
        "{found:?}"
    );
}

#[test]
fn what_is_used_again_must_be_what_was_made() {
    let found = after(answered(), FIRST, |run| {
        let n = node(run, |node| node["reused"] == true);
        run["nodes"][n]["reused"] = json!(false);
        run["counts"]["reused"] = json!(run["counts"]["reused"].as_u64().unwrap() - 1);
        run["counts"]["recomputed"] = json!(run["counts"]["recomputed"].as_u64().unwrap() + 1);
    });
    assert!(found.contains(&"reuse"), "{found:?}");
    let found = after(answered(), "records/S-010/event-1.full.json", |run| {
        let generations = run["generations"].as_object_mut().unwrap();
        generations.values_mut().next().unwrap()["reused"] = json!(true);
    });
    assert!(found.contains(&"reuse"), "{found:?}");
}

#[test]
fn what_the_experiment_says_of_itself_is_held_to_its_runs() {
    for (name, value) in [
        ("corpus_sha256", json!("0".repeat(64))),
        ("identity", json!({"kind": "canned", "sha256": "00"})),
        ("profile", json!("grounded")),
        ("reuses_generations", json!(true)),
        ("generator", json!("extractive")),
        ("format", json!("factum/controlled/2")),
    ] {
        let found = after(answered(), "experiment.json", |experiment| {
            experiment[name] = value;
        });
        assert!(!found.is_empty());
    }
    let found = after(extracted(), CASE, |case| {
        case["steps"].as_array_mut().unwrap().pop();
    });
    assert!(found.contains(&"list"), "{found:?}");
    let found = after(extracted(), CASE, |case| {
        case["group"] = json!("development");
    });
    assert!(found.contains(&"protocol"), "{found:?}");
}

#[test]
fn the_sample_stays_pending_and_reviews_name_it() {
    let sample = "records/sample.json";
    for change in [
        (|sample: &mut Value| sample["review"] = json!("DONE")) as fn(&mut Value),
        |sample| {
            sample["claims"].as_array_mut().unwrap().pop();
        },
        |sample| sample["claims"][0]["fields"]["value"] = json!("another"),
    ] {
        assert_eq!(after(extracted(), sample, change), ["review"]);
    }
    let review = |digest: &str, claim: u64| {
        let mut files = extracted().clone();
        let review = json!({
            "at": 1, "findings": [{"claim": claim, "verdict": "right"}], "format": "factum/review/1",
            "reviewer": "A. Reader", "sample_sha256": digest,
        });
        let text = canonical_json(&review).unwrap();
        files
            .files
            .insert("reviews/001.json".to_owned(), text.into_bytes());
        relist(&mut files);
        verified(&files)
    };
    let digest = super::experiments::hex(&extracted().files[sample]);
    assert_eq!(review(&digest, 1).findings, []);
    assert_eq!(classes(&review(&digest, 999)), ["review"]);
    assert_eq!(classes(&review(&"0".repeat(64), 1)), ["review"]);
}
