//! What a stranger can check with twenty lines of any language: nothing here uses Factum's own code,
//! only SHA-256, RFC 8785 and code points.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::support::{Workspace, strings};

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

fn key_of(spec: &Value) -> String {
    sha256(&serde_json_canonicalizer::to_vec(spec).unwrap())
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap_or_else(|| panic!("{value}"))).unwrap()
}

/// `text[start..end]` by code points.
fn cut(text: &str, start: usize, end: usize) -> String {
    text.chars().skip(start).take(end - start).collect()
}

/// The texts of `export texts`, each held against its digest.
fn texts(exported: &Value) -> BTreeMap<(String, u64), String> {
    let mut texts = BTreeMap::new();
    for one in exported["versions"].as_array().unwrap() {
        let text = one["text"].as_str().unwrap();
        assert_eq!(one["text_sha256"], sha256(text.as_bytes()));
        let id = (
            one["doc_id"].as_str().unwrap().to_owned(),
            one["version"].as_u64().unwrap(),
        );
        assert!(
            texts.insert(id, text.to_owned()).is_none(),
            "a version is given twice"
        );
    }
    texts
}

fn assert_no_float_and_ascii_keys(value: &Value) {
    match value {
        Value::Number(number) => assert!(number.is_u64() || number.is_i64(), "{number}"),
        Value::Array(list) => list.iter().for_each(assert_no_float_and_ascii_keys),
        Value::Object(fields) => {
            for (key, value) in fields {
                assert!(key.is_ascii(), "{key}");
                assert_no_float_and_ascii_keys(value);
            }
        }
        _ => {}
    }
}

/// Holds a run against its texts; gives the number of quotes that were checked.
fn check_run(run: &Value, texts: &BTreeMap<(String, u64), String>) -> usize {
    assert_eq!(run["format"], "factum/run/1");
    assert_eq!(run["snapshot_sha256"], key_of(&run["snapshot"]));
    let slots = run["snapshot"]["slots"].as_array().unwrap();
    let order: Vec<&str> = slots
        .iter()
        .map(|slot| slot["slot"].as_str().unwrap())
        .collect();
    assert!(order.is_sorted(), "slots stand in order");
    let eligible: BTreeSet<(&str, u64)> = slots
        .iter()
        .filter(|slot| slot["eligible"] == true)
        .map(|slot| {
            (
                slot["doc_id"].as_str().unwrap(),
                slot["version"].as_u64().unwrap(),
            )
        })
        .collect();
    let nodes = run["nodes"].as_array().unwrap();
    let mut keys: BTreeMap<&str, &str> = BTreeMap::new();
    let mut quotes = 0;
    for node in nodes {
        let name = node["name"].as_str().unwrap();
        let spec = &node["spec"];
        assert_no_float_and_ascii_keys(spec);
        assert_eq!(node["key"], key_of(spec), "{name}");
        assert_eq!(spec["principal"], run["principal"], "{name}");
        let children = strings(&node["children"]);
        if node["kind"] == "leaf" {
            assert!(children.is_empty(), "{name}");
            assert!(spec.get("children_keys").is_none(), "{name}");
            check_leaf(node, slots);
        } else {
            // Children come before their parents, and their keys are in the parent's spec, sorted.
            let mut own: Vec<&str> = children
                .iter()
                .map(|child| {
                    *keys
                        .get(child.as_str())
                        .unwrap_or_else(|| panic!("{child} comes late"))
                })
                .collect();
            own.sort_unstable();
            assert_eq!(strings(&spec["children_keys"]), own, "{name}");
        }
        assert!(
            keys.insert(name, node["key"].as_str().unwrap()).is_none(),
            "{name} comes twice"
        );
        quotes += check_result(node, texts, &eligible);
    }
    let root = nodes.last().unwrap();
    assert_eq!(root["key"], run["root"]);
    assert_eq!(root["name"], "root");
    // Every node but the root is some node's child, once.
    let children: Vec<String> = nodes
        .iter()
        .flat_map(|node| strings(&node["children"]))
        .collect();
    assert_eq!(children.len(), nodes.len() - 1);
    assert_eq!(
        children.iter().collect::<BTreeSet<_>>().len(),
        children.len()
    );
    let counts = &run["counts"];
    let made = nodes.iter().filter(|node| node["reused"] == false).count();
    assert_eq!(number(&counts["nodes"]), nodes.len());
    assert_eq!(number(&counts["recomputed"]), made);
    assert_eq!(number(&counts["reused"]), nodes.len() - made);
    assert_eq!(run["invalidation"]["current_root_key"], run["root"]);
    quotes
}

fn check_leaf(node: &Value, slots: &[Value]) {
    let spec = &node["spec"];
    let slot = slots
        .iter()
        .find(|slot| slot["doc_id"] == spec["doc_id"])
        .unwrap();
    for field in [
        "version",
        "text_sha256",
        "active",
        "eligible",
        "access_revision",
    ] {
        assert_eq!(spec[field], slot[field], "{field} of {}", node["name"]);
    }
}

fn check_result(
    node: &Value,
    texts: &BTreeMap<(String, u64), String>,
    eligible: &BTreeSet<(&str, u64)>,
) -> usize {
    let (spec, result) = (&node["spec"], &node["result"]);
    let evidence = result["evidence"].as_object().unwrap();
    if spec["eligible"] == false {
        assert_eq!(result["status"], "INELIGIBLE");
        assert!(evidence.is_empty() && result["claims"].as_array().unwrap().is_empty());
    }
    for (id, one) in evidence {
        let doc_id = one["doc_id"].as_str().unwrap();
        let version = one["version"].as_u64().unwrap();
        let (start, end) = (number(&one["start"]), number(&one["end"]));
        assert_eq!(id, &format!("{doc_id}@{version}:{start}:{end}"));
        assert_eq!(one["evidence_id"], id.as_str());
        assert!(
            eligible.contains(&(doc_id, version)),
            "{id} is not in the snapshot"
        );
        let text = &texts[&(doc_id.to_owned(), version)];
        assert!(start < end && end <= text.chars().count(), "{id}");
        assert_eq!(one["quote"], cut(text, start, end), "{id}");
        assert_eq!(one["text_sha256"], sha256(text.as_bytes()), "{id}");
        if node["kind"] == "leaf" {
            assert_eq!(spec["doc_id"], doc_id);
            let segment = &spec["segment"];
            assert!(
                number(&segment["start"]) <= start && end <= number(&segment["end"]),
                "{id}"
            );
        }
    }
    for claim in result["claims"].as_array().unwrap() {
        let ids = strings(&claim["evidence"]);
        assert!(!ids.is_empty());
        assert_eq!(
            ids.iter().collect::<BTreeSet<_>>().len(),
            ids.len(),
            "cited twice"
        );
        assert!(ids.iter().all(|id| evidence.contains_key(id)), "{claim}");
        let verdict = claim["support"]["verdict"].as_str().unwrap();
        assert!(
            ["supported", "unsupported", "unchecked"].contains(&verdict),
            "{verdict}"
        );
    }
    evidence.len()
}

/// Texts that go wrong where bytes, UTF-16 units or graphemes are counted for code points.
fn scripts() -> Vec<(&'static str, Vec<u8>)> {
    let utf16: Vec<u8> = [0xfeff_u16]
        .into_iter()
        .chain(
            "Der Gutachter war am Montag im Keller. Die Wand war bis 𝟙 m Höhe nass.".encode_utf16(),
        )
        .flat_map(u16::to_le_bytes)
        .collect();
    let mut list: Vec<(&str, Vec<u8>)> = [
        ("ja.txt", "浴室の水道管が破裂した。台所の床は完全に水浸しになった。𠮷野さんは保険会社に連絡した。\n"),
        ("zh.md", "# 报告\n\n水管在三月三日破裂。厨房的地板全部被水浸泡。保险公司将支付修理费用。\n"),
        ("ko.txt", "주방 수도관이 터졌습니다. 바닥이 모두 젖었습니다.\n"),
        ("emoji.md", "👩‍🔧 The plumber 🇩🇪 came on Monday 🎉🎉. She fixed the pipe 👨‍👩‍👧‍👦 before noon 👍🏽.\n"),
        ("nfd.txt", "Cafe\u{301} Zoe\u{308} flooded on Monday. The cafe\u{301} owner cal\u{323}\u{307}led a plumber.\n"),
        ("marks.txt", "นี่คือรายงานความเสียหายจากน้ำ หมวดหนึ่ง\nहिन्दी में लिखी गई रिपोर्ट यहाँ है। पानी रसोई तक पहुँच गया था।\n"),
        ("crlf.txt", "The first line ends here.\r\nThe second line,\r\nwhich goes on, ends here.\r\n\r\nThe third stands alone.\r\n"),
        ("soft.txt", "Die Ver\u{ad}si\u{ad}che\u{ad}rung zahlt den Scha\u{ad}den am Bo\u{ad}den. Der Be\u{ad}scheid kommt spä\u{ad}ter.\n"),
        ("rtl.txt", "انفجر الأنبوب يوم الاثنين. وصل السباك في المساء.\n"),
        ("zero.txt", "The zero\u{200b}width space\u{feff} and the \u{2060}joiner stay. So does the line\u{2028}separator here.\n"),
        ("page.html", "<p>Die K&uuml;che &amp; das Bad waren na&szlig;. &#x1F4A7; &Uuml;berall stand Wasser.</p>"),
        ("call.vtt", "WEBVTT\n\n00:01.000 --> 00:04.000\n<v Anna>Das Wasser 💧 kam von oben herab.\n\n00:05.000 --> 00:08.000\n<v Bo>Wir haben sofort den Haupthahn zugedreht.\n"),
        ("table.csv", "Posten,Betrag\nTrocknung 💨,\"1.200,00 €\"\nBodenbelag,\"3.400,00 €\"\n"),
        ("data.json", "{\"note\": \"Der Zähler stand auf 4711 — gemessen am Dienstag.\", \"who\": \"Zoe\\u0308\"}\n"),
    ]
    .map(|(name, text)| (name, text.as_bytes().to_vec()))
    .into();
    list.push(("utf16.txt", utf16));
    // No UTF-8, and no mark: the encoding is found by looking.
    list.push((
        "latin.txt",
        b"Die K\xfcche war na\xdf. Das Wasser lief \xfcber die Treppe hinab.\n".to_vec(),
    ));
    list
}

#[test]
fn keys_and_quotes_can_be_recomputed_in_every_script() {
    for profile in ["narrative", "facts", "session", "controlled"] {
        let workspace = Workspace::with_profile(profile, &scripts());
        workspace.build();
        let run = workspace.factum("export run run-000001").ok().json();
        let texts = texts(&workspace.factum("export texts wd").ok().json());
        assert_eq!(texts.len(), scripts().len());
        let quotes = check_run(&run, &texts);
        assert!(
            profile == "controlled" || quotes > 2 * scripts().len(),
            "{profile}: {quotes}"
        );
        workspace.factum("verify").ok();
    }
}

#[test]
fn texts_stay_as_they_were_written() {
    let workspace = Workspace::with(&scripts());
    let texts = texts(&workspace.factum("export texts wd").ok().json());
    for (name, bytes) in scripts() {
        let text = &texts[&(name.to_owned(), 1)];
        let media = name.rsplit_once('.').unwrap().1;
        if media == "txt" && !["utf16.txt", "latin.txt"].contains(&name) {
            assert_eq!(text.as_bytes(), bytes, "{name}");
        }
    }
    assert!(texts[&("utf16.txt".to_owned(), 1)].ends_with("bis 𝟙 m Höhe nass."));
    assert!(texts[&("latin.txt".to_owned(), 1)].starts_with("Die Küche war naß."));
}

/// A text of many paragraphs in several scripts.
fn long_text(paragraphs: usize) -> String {
    let sentences = [
        "Das Wasser stand in der Küche und lief unter den Türen hindurch in den Flur.",
        "浴室の水道管が破裂して、台所の床は完全に水浸しになった。",
        "The plumber 👩‍🔧 found the hose and closed the valve at once.",
        "Cafe\u{301} Zoe\u{308} was closed for the whole of the week.",
    ];
    (0..paragraphs).fold(String::new(), |mut text, n| {
        for (m, sentence) in sentences.iter().enumerate() {
            let _ = write!(text, "{sentence} ({n}/{m}) ");
        }
        text.push_str("\r\n\r\n");
        text
    })
}

#[test]
fn long_documents_are_cut_into_segments_that_can_be_recomputed() {
    let workspace = Workspace::new();
    workspace.profile(
        "short",
        "extends = \"narrative\"\n[segments]\nmin_chars = 200\nmax_chars = 700\n",
    );
    workspace.factum("case new wd --profile short").ok();
    workspace.write("long.txt", long_text(60));
    workspace.write("medium.txt", long_text(6));
    workspace.write("small.txt", long_text(1));
    workspace.sync();
    workspace.build();
    let run = workspace.factum("export run run-000001").ok().json();
    let all = texts(&workspace.factum("export texts wd").ok().json());
    check_run(&run, &all);
    // The segments of a document cover it without gap or overlap.
    let nodes = run["nodes"].as_array().unwrap();
    for ((doc_id, _), text) in &all {
        let mut at = 0;
        let mut segments = 0;
        for leaf in nodes
            .iter()
            .filter(|node| node["spec"]["doc_id"] == doc_id.as_str())
        {
            assert_eq!(number(&leaf["spec"]["segment"]["start"]), at);
            at = number(&leaf["spec"]["segment"]["end"]);
            segments += 1;
        }
        assert_eq!(at, text.chars().count(), "{doc_id}");
        assert!(doc_id != "long.txt" || segments > 12, "{segments}");
    }
    // An edit in the middle leaves most segments alone, except that their versions are new.
    workspace.write(
        "long.txt",
        long_text(60).replacen("closed the valve", "shut the valve", 30),
    );
    workspace.sync();
    workspace.build();
    let run = workspace.factum("export run run-000002").ok().json();
    let all = texts(&workspace.factum("export texts wd").ok().json());
    assert_eq!(all.len(), 4);
    check_run(&run, &all);
    workspace.factum("verify").ok();
}

#[test]
fn runs_of_a_changing_case_can_be_recomputed_by_all_who_may_read_them() {
    let documents = crate::support::many(30);
    let workspace = Workspace::with(&documents);
    workspace.build();
    workspace.write(
        "report-0004.txt",
        "Der Bericht 4 wurde ersetzt. 👍🏽 Alles ist trocken.\n",
    );
    workspace.remove("report-0010.txt");
    workspace.sync();
    workspace.build();
    workspace.factum("build wd --full").ok();
    workspace.factum("grant wd --to broker").ok();
    workspace
        .factum("revoke wd report-0020.txt --from broker")
        .ok();
    workspace.factum("build wd --as broker").ok();
    let own = texts(&workspace.factum("export texts wd").ok().json());
    for run in ["run-000002", "run-000003"] {
        check_run(
            &workspace.factum(&format!("export run {run}")).ok().json(),
            &own,
        );
    }
    let brokers = texts(&workspace.factum("export texts wd --as broker").ok().json());
    assert_eq!(own.len() - brokers.len(), 1);
    let run = workspace
        .factum("export run run-000004 --as broker")
        .ok()
        .json();
    check_run(&run, &brokers);
    let hidden = run["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["result"]["status"] == "INELIGIBLE");
    assert_eq!(hidden.count(), 2);
}

#[test]
fn the_controlled_profile_orders_children_by_key_and_groups_by_four() {
    let documents: Vec<(String, String)> = (0..9)
        .map(|n| {
            (
                format!("p-{n}.txt"),
                format!("Product P-10-0{n} quantity: {n} boxes.\nProduct P-10-0{n} site: 日本.\n"),
            )
        })
        .collect();
    let workspace = Workspace::with_profile("controlled", &documents);
    workspace.build();
    let run = workspace.factum("export run run-000001").ok().json();
    let all = texts(&workspace.factum("export texts wd").ok().json());
    assert_eq!(check_run(&run, &all), 3 * 18);
    let nodes = run["nodes"].as_array().unwrap();
    let fans: Vec<usize> = nodes
        .iter()
        .filter(|node| node["kind"] == "reduction")
        .map(|node| node["children"].as_array().unwrap().len())
        .collect();
    assert_eq!(fans, [4, 4, 1, 3]);
}
