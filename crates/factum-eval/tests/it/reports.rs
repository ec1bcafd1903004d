//! Reports: what they hold, and that nothing from outside gets out of its place.

use factum_eval::outcome::Outcome;
use factum_eval::provider::Stub;
use factum_eval::report::history::{self, Record};
use factum_eval::report::html::page;
use factum_eval::report::junit::junit;
use factum_eval::report::markdown::markdown;
use factum_eval::run::Loaded;
use factum_eval::{Report, ScoreName};

use crate::support::{loaded, options, ours, read, run_by, stub_report};

const HOSTILE: &str = "<script>alert(1)</script>\"'&|`\u{7}\u{202e}]]>@all";

fn hostile() -> (Report, Loaded) {
    let quoted = serde_json::to_string(HOSTILE).unwrap();
    let text = format!(
        r#"{{"name": "hostile <b>", "description": {quoted}, "source": {{"documents": [{{"id": "a<b>.txt", "text": {quoted}}}]}},
        "events": [{{"id": {quoted}, "mentions": [["never there"]], "actor": {quoted}}}],
        "forbidden": [{{"id": {quoted}, "mentions": [["script"]], "why": {quoted}}}],
        "absent": [{quoted}],
        "stub": {{"beats": [{{"text": {quoted}, "evidence": ["a<b>.txt", {quoted}]}}]}},
        "expected": {{"precision": 1}}}}"#
    );
    let loaded = Loaded {
        fixtures: vec![read("hostile.json", &text).unwrap()],
        bad: vec![read("<i>.json", "{").unwrap_err()],
    };
    let report = run_by(&loaded, &Stub, &options());
    (report, loaded)
}

#[test]
fn text_from_outside_stays_text() {
    let (report, loaded) = hostile();
    let html = page(&report, &loaded.fixtures);
    assert!(!html.contains("<script"), "{html}");
    assert!(html.contains("&lt;"), "it is shown");
    assert!(!html.contains(['\u{7}', '\u{202e}']));
    let xml = junit(&report);
    assert!(!xml.contains("<script") && !xml.contains('\u{7}'), "{xml}");
    let md = markdown(&report);
    assert!(!md.contains("<script") && !md.contains("@all"), "{md}");
}

#[test]
fn the_page_stands_alone() {
    let found = loaded(&[ours()]);
    let html = page(&run_by(&found, &Stub, &options()), &found.fixtures);
    assert!(
        !html.contains("<script")
            && !html.contains("src=")
            && !html.contains("http:")
            && !html.contains("https:")
    );
    assert!(html.contains("mark class=\"forbidden\""));
    assert!(html.contains("mark class=\"event\""));
    // Each link leads to a place on the page.
    for link in html.split("href=\"#").skip(1) {
        let target = link.split('"').next().unwrap();
        assert!(html.contains(&format!("id=\"{target}\"")), "{target}");
    }
}

#[test]
fn junit_keeps_failures_apart_from_errors() {
    let (report, _) = hostile();
    let xml = junit(&report);
    let first = xml.lines().nth(1).unwrap();
    assert!(
        first.contains("tests=\"2\" failures=\"1\" errors=\"1\" skipped=\"0\""),
        "{first}"
    );
    assert_eq!(xml.matches("<failure ").count(), 1);
    assert_eq!(xml.matches("<error ").count(), 1);
}

#[test]
fn a_report_is_read_back_as_it_was_written() {
    let report = stub_report();
    let text = report.to_json().unwrap();
    assert_eq!(Report::from_json(text.as_bytes()).unwrap(), report);
    assert!(Report::from_json(b"{}").is_err());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["format"], "factum/eval/1");
    let one = json["fixtures"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "fabricated-location")
        .unwrap();
    assert_eq!(one["scores"]["precision"], 0.5);
    assert_eq!(one["scores"]["chronology_01"], 1.0);
    assert_eq!(one["scores"]["absence"], serde_json::Value::Null);
    assert_eq!(one["fired"], serde_json::json!(["entered-the-hold"]));
    assert_eq!(one["measures"]["precision"]["score"]["of"], 2);
    assert!(one["errors"].as_array().unwrap().is_empty());
    assert_eq!(json["verdict"], "passed");
}

#[test]
fn a_history_is_only_appended_to_and_each_record_can_be_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    let report = stub_report();
    Record::of(&report).append(&path).unwrap();
    let first = std::fs::read_to_string(&path).unwrap();
    let mut changed = report.clone();
    changed
        .fixtures
        .retain(|one: &Outcome| one.name != "clean-run");
    Record::of(&changed).append(&path).unwrap();
    let both = std::fs::read_to_string(&path).unwrap();
    assert!(both.starts_with(&first));
    assert_eq!(both.lines().count(), 2);
    let name = path.display().to_string();
    let last = history::read(&name).unwrap();
    assert!(!last.scores.fixtures.contains_key("clean-run"));
    let first = history::read(&format!("{name}#1")).unwrap();
    let fabricated = &first.scores.fixtures["fabricated-location"];
    assert!((fabricated.scores[&ScoreName::Precision] - 0.5).abs() < 1e-9);
    assert!(fabricated.fired.contains("entered-the-hold"));
    assert!(history::read(&format!("{name}#3")).is_err());
    // One that was cut off costs only itself.
    let torn = both.trim_end().to_owned() + "\n{\"format\": \"fact";
    std::fs::write(&path, &torn).unwrap();
    Record::of(&report).append(&path).unwrap();
    let name_of_last = format!("{name}#4");
    assert_eq!(
        history::read(&name).unwrap(),
        history::read(&name_of_last).unwrap()
    );
    // What is no history stays as it is.
    for other in ["rubbish\n".to_owned(), report.to_json().unwrap()] {
        std::fs::write(&path, &other).unwrap();
        let error = Record::of(&report).append(&path).unwrap_err();
        assert!(error.to_string().contains("is no history"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
    }
    std::fs::write(&path, "rubbish\n").unwrap();
    assert!(
        history::read(&name)
            .unwrap_err()
            .to_string()
            .contains("neither a report")
    );
}
