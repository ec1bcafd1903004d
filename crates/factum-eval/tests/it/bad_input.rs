//! Bad files: each is refused with the file and the line, and a fixture that can't fail is bad too.

use std::path::Path;

use factum_eval::fixture::MOST_BYTES;
use factum_eval::provider::Stub;

use crate::support::{loaded, options, read, run_by};

fn message(name: &str, text: &str) -> String {
    read(name, text).unwrap_err().to_string()
}

const SOURCE: &str = r#""source": {"documents": [{"id": "a.txt", "text": "One line.\nTwo."}]}"#;

fn with(more: &str) -> String {
    message("f.json", &format!("{{{SOURCE},\n{more}}}"))
}

#[test]
fn each_fault_names_its_file_line_and_place() {
    for (more, expected) in [
        (r#""evnts": []"#, "f.json:2: unknown key \"evnts\""),
        (
            r#""tags": "x""#,
            "f.json:2: tags: expected a list, found text",
        ),
        (
            "\"tags\":\n [1]",
            "f.json:3: tags[0]: expected text, found a number; put it in quotation marks",
        ),
        (
            r#""events": [{"id": "e", "mentions": [[]]}]"#,
            "events[0].mentions[0]: a group without alternatives",
        ),
        (
            r#""events": [{"id": "e", "mentions": []}]"#,
            "events[0].mentions: no groups",
        ),
        (
            r#""events": [{"id": "e", "mentions": ["gate"]}]"#,
            "a group is a list of alternatives",
        ),
        (
            r#""events": [{"mentions": [["a"]]}]"#,
            "events[0]: \"id\" is missing",
        ),
        (
            "\"events\": [{\"id\": \"e\", \"mentions\": [[\"a\"]],\n\"evidence\": [\"a.txt#1\", \"a.txt#9\"]}]",
            "f.json:3: events[0].evidence[1]: \"a.txt#9\" lies outside its document",
        ),
        (
            r#""events": [{"id": "e", "mentions": [["a"]]}, {"id": "e", "mentions": [["b"]]}]"#,
            "events[1].id: \"e\" is given twice",
        ),
        (
            r#""forbidden": [{"id": "f", "mentions": [["  "]], "why": "w"}]"#,
            "forbidden[0].mentions[0][0]: no text could match",
        ),
        (
            "\"forbidden\": [{\"id\": \"f\", \"mentions\": [[\"a\"]], \"why\": \"w\"}], \"stub\": {\"text\": \"b\"}",
            "f.json:2: forbidden: forbidden claims beside a stub need an expected precision",
        ),
        (
            "\"forbidden\": [{\"id\": \"f\", \"mentions\": [[\"a\"]], \"why\": \"w\"}], \"stub\": {\"text\": \"b\"}, \"expected\": {\"precision\": null}",
            "forbidden claims beside a stub need an expected precision",
        ),
        (
            r#""absent": ["a"], "expected": {"absence": 1}"#,
            "expected scores are those of a stub",
        ),
        (
            r#""stub": {"text": "b"}, "expected": {"coverage": 1}"#,
            "coverage has nothing to measure here",
        ),
        (
            r#""absent": ["a"], "stub": {"text": "b"}, "expected": {"absence": 2}"#,
            "absence lies between 0 and 1",
        ),
        (
            r#""absent": ["a"], "stub": {"text": "b"}, "expected": {"absense": 1}"#,
            "unknown key \"absense\"",
        ),
        (
            r#""absent": ["a"], "stub": {"text": "b"}, "expected": {"absence": NaN}"#,
            "expected a value",
        ),
        (
            r#""absent": ["a"], "stub": {}"#,
            "a summary needs \"text\" or \"beats\"",
        ),
        (
            r#""absent": ["a"], "stub": {"text": "\ud800"}"#,
            "lone surrogate",
        ),
        (r#""name": "x""#, "measures nothing"),
        (r#""name": "x", "name": "y""#, "\"name\" is given twice"),
    ] {
        let found = with(more);
        assert!(found.contains(expected), "{more}\n{found}");
        assert!(found.starts_with("f.json:"), "{found}");
    }
}

#[test]
fn faults_of_yaml_name_their_lines_too() {
    let text = "source:\n  documents:\n    - {id: a.txt, text: A}\nabsent: [x]\nstub: {text: b}\nexpected:\n  absence: .nan\n";
    let found = message("f.yaml", text);
    assert!(
        found.contains("f.yaml:7:") && found.contains("not a finite number"),
        "{found}"
    );
    let found = message(
        "f.yaml",
        &text.replace(".nan", "1").replace("absent:", "absnt:"),
    );
    assert!(found.contains("f.yaml:4: unknown key \"absnt\""), "{found}");
}

#[test]
fn a_bad_source_is_refused() {
    for (source, expected) in [
        ("{}", "either \"lines\" or \"documents\""),
        (r#"{"lines": []}"#, "is empty"),
        (
            r#"{"lines": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]}"#,
            "source.lines[1]: is given twice",
        ),
        (
            r#"{"lines": [{"id": "a", "text": "x", "start": 5, "end": 2}]}"#,
            "ends before it starts",
        ),
        (
            r#"{"lines": [{"id": "a", "text": "x", "start": "soon"}]}"#,
            "expected seconds",
        ),
        (
            r#"{"documents": [{"id": "../a", "text": "x"}]}"#,
            "not a plain relative path",
        ),
        (
            r#"{"documents": [{"id": "a", "text": "x", "version": 0}]}"#,
            "a whole number from 1",
        ),
        (
            r#"{"documents": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]}"#,
            "is given twice",
        ),
    ] {
        let found = message(
            "f.json",
            &format!("{{\"source\": {source}, \"absent\": [\"x\"]}}"),
        );
        assert!(found.contains(expected), "{source}: {found}");
    }
}

#[test]
fn gold_that_may_not_be_cited_is_refused() {
    let text = r#"{"source": {"documents": [
        {"id": "a.txt", "version": 1, "text": "Old."}, {"id": "a.txt", "version": 2, "text": "New."},
        {"id": "b.txt", "text": "Gone.", "withdrawn": true}]},
        "events": [{"id": "e", "mentions": [["x"]], "evidence": ["a.txt@1", "b.txt"]}]}"#;
    let found = message("f.json", text);
    assert!(
        found.contains("not the version that counts, which is 2"),
        "{found}"
    );
    assert!(found.contains("of a withdrawn document"), "{found}");
}

#[test]
fn a_bad_file_does_not_keep_the_others_from_running() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).unwrap();
    write("empty.json", b"");
    write("latin1.json", b"{\"name\": \"caf\xe9\"}");
    write("good.json", br#"{"source": {"lines": [{"id": "a", "text": "x"}]}, "absent": ["y"], "stub": {"text": "x"}, "expected": {"absence": 1}}"#);
    write(
        "twin.json",
        br#"{"name": "good", "source": {"lines": [{"id": "a", "text": "x"}]}, "absent": ["y"]}"#,
    );
    let large = std::fs::File::create(folder.path().join("large.json")).unwrap();
    large.set_len(100 * 1024 * 1024).unwrap();
    let found = loaded(&[folder.path().to_owned()]);
    let report = run_by(&found, &Stub, &options());
    let errors: Vec<(&str, String)> = report
        .fixtures
        .iter()
        .map(|one| (one.name.as_str(), one.errors.join(" ")))
        .collect();
    let of = |name: &str| &errors.iter().find(|one| one.0 == name).unwrap().1;
    assert_eq!(of("good"), "");
    assert!(
        of("empty").contains("empty.json:1: the file is empty"),
        "{errors:?}"
    );
    assert!(of("latin1").contains("not UTF-8"), "{errors:?}");
    assert!(
        of("large").contains(&format!("at most {MOST_BYTES}")),
        "{errors:?}"
    );
    assert!(
        of("twin").contains("the name \"good\" is that of"),
        "{errors:?}"
    );
    assert_eq!(report.exit_code, 3);
    assert!(Path::new(&report.fixtures[0].file).ends_with("good.json"));
}
