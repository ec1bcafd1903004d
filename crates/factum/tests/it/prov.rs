//! Provenance as others' tools read it: Python's rdflib and prov load both forms, and SPARQL finds the documents.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::support::{CASE, FACTUM, LETTERS, Workspace, assert_format};

const CORRECTED: &str = "The hose under the sink burst on 4 March 2026. The kitchen floor was soaked through by the evening.\n";

/// Builds with a model whose outputs quote the hose, and otherwise say nothing.
fn build_canned(workspace: &Workspace) {
    build_canned_with(workspace, "{\"claims\":[]}");
}

/// The same with what the model says of the insurer's letter.
fn build_canned_with(workspace: &Workspace, insurer: &str) {
    let answer = json!({"claims": [{
        "evidence": ["e1"],
        "statement": "The hose under the sink burst.",
    }]});
    let outputs = json!({"outputs": [
        {"contains": "hose", "text": answer.to_string()},
        {"contains": "insurer", "text": insurer},
        {"contains": "", "text": "{\"claims\":[]}"},
    ]});
    std::fs::write(workspace.at("canned.json"), outputs.to_string()).unwrap();
    let mut command = Command::new(FACTUM);
    command.args(["build", CASE, "--generator", "canned:canned.json"]);
    command.env("FACTUM_MODELS", workspace.at("models"));
    workspace.finish(command).ok();
}

/// A model's run, a correction (event 4), a run, a withdrawal of `c.txt` (event 5), a run, a model's run.
fn eventful() -> Workspace {
    let workspace = Workspace::with(&LETTERS);
    build_canned(&workspace);
    workspace.write("a.txt", CORRECTED);
    workspace.sync();
    workspace.build();
    workspace.factum("withdraw wd c.txt").ok();
    workspace.build();
    build_canned(&workspace);
    workspace
}

/// The things of a class in a JSON-LD document.
fn of_class<'d>(document: &'d Value, class: &str) -> Vec<&'d Value> {
    let things = document["@graph"].as_array().unwrap();
    let is = |thing: &&Value| {
        thing["@type"]
            .as_array()
            .unwrap()
            .iter()
            .any(|name| name == class)
    };
    things.iter().filter(is).collect()
}

/// A folder with rdflib and prov, fetched once; none, with the reason printed, where they can't be had.
fn python_libraries() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
            let ready = parent.join("python-rdflib-7.6.0-prov-3.2.3");
            if ready.exists() {
                return Some(ready);
            }
            let fresh = tempfile::tempdir_in(parent).unwrap();
            let pip = Command::new("python3")
                .args([
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--target",
                ])
                .arg(fresh.path())
                .args(["rdflib==7.6.0", "prov==3.2.3"])
                .output();
            match pip {
                Ok(output) if output.status.success() => {
                    let fresh = fresh.keep();
                    // Another test process may have been faster.
                    if std::fs::rename(&fresh, &ready).is_err() {
                        std::fs::remove_dir_all(&fresh).unwrap();
                    }
                    Some(ready)
                }
                Ok(output) => {
                    let why = String::from_utf8_lossy(&output.stderr).into_owned();
                    println!("skipped: rdflib and prov can't be installed: {why}");
                    None
                }
                Err(error) => {
                    println!("skipped: there is no python3: {error}");
                    None
                }
            }
        })
        .as_deref()
}

/// Runs a Python program with the libraries and gives what it prints as JSON.
#[track_caller]
fn python(libraries: &Path, program: &str, arguments: &[&str]) -> Value {
    let output = Command::new("python3")
        .env("PYTHONPATH", libraries)
        .args(["-c", program])
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

const QUERY: &str = r"
import json, sys, rdflib
path, form, query = sys.argv[1:]
rows = rdflib.Graph().parse(path, format=form).query(query)
print(json.dumps(sorted([str(value) if value is not None else None for value in row] for row in rows)))
";

const LOAD: &str = r#"
import collections, json, sys
from prov.model import ProvDocument
document = ProvDocument.deserialize(sys.argv[1], format="rdf", rdf_format=sys.argv[2])
print(json.dumps(collections.Counter(type(record).__name__ for record in document.get_records())))
"#;

const PREFIXES: &str = "PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX factum: <urn:factum:terms:> \
     PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> ";

/// What was exported, in both forms.
struct Exported {
    files: [(PathBuf, &'static str); 2],
    libraries: &'static Path,
}

impl Exported {
    fn of(workspace: &Workspace, what: &str, libraries: &'static Path) -> Self {
        let files = [("jsonld", "json-ld"), ("turtle", "turtle")].map(|(format, name)| {
            let line = ["export", "prov", what, "--format", format];
            let path = workspace.at(&format!("prov.{format}"));
            std::fs::write(&path, workspace.run(line).ok().stdout).unwrap();
            (path, name)
        });
        Self { files, libraries }
    }

    /// Asks both forms, which must give the same rows, and gives them with their columns joined.
    #[track_caller]
    fn ask(&self, query: &str) -> Vec<String> {
        let query = format!("{PREFIXES}{query}");
        let [json, turtle] = self.files.each_ref().map(|(path, form)| {
            python(
                self.libraries,
                QUERY,
                &[path.to_str().unwrap(), form, &query],
            )
        });
        assert_eq!(json, turtle);
        let rows: Vec<Vec<Option<String>>> = serde_json::from_value(json).unwrap();
        rows.into_iter()
            .map(|row| row.into_iter().flatten().collect::<Vec<_>>().join(" "))
            .collect()
    }
}

const PAGE: &str = include_str!("../../../../docs/provenance.md");

/// The queries that the documentation shows, in order: sources, the withdrawn letter, citations.
fn shown() -> [&'static str; 3] {
    let blocks: Vec<&str> = PAGE
        .split("```sparql\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect();
    blocks.try_into().unwrap()
}

#[test]
fn sparql_finds_the_documents_that_each_summary_was_derived_from() {
    let Some(libraries) = python_libraries() else {
        return;
    };
    let workspace = eventful();
    let case = Exported::of(&workspace, CASE, libraries);
    let [sources, rested, _] = shown();
    assert_eq!(
        case.ask(sources),
        [
            "run-000001 a.txt 1",
            "run-000001 b.txt 1",
            "run-000001 c.txt 1",
            "run-000002 a.txt 2",
            "run-000002 b.txt 1",
            "run-000002 c.txt 1",
            "run-000003 a.txt 2",
            "run-000003 b.txt 1",
            "run-000004 a.txt 2",
            "run-000004 b.txt 1",
        ]
    );
    assert_eq!(case.ask(rested), ["run-000001 4", "run-000002 5"]);
    let ends = "SELECT ?label ?event WHERE { ?thing prov:wasInvalidatedBy ?by ; \
        prov:invalidatedAtTime ?time ; rdfs:label ?label . ?by prov:endedAtTime ?time ; factum:number ?event }";
    assert_eq!(
        case.ask(ends),
        [
            "a.txt, version 1 4",
            "c.txt, version 1 5",
            "summary for local, made by run-000001 4",
            "summary for local, made by run-000002 5",
        ]
    );
    // One run: the same answer, and what was not asked for is not there.
    let run = Exported::of(&workspace, "run-000003", libraries);
    assert_eq!(
        run.ask(sources),
        ["run-000003 a.txt 2", "run-000003 b.txt 1"]
    );
}

#[test]
fn a_model_s_claim_leads_to_its_quote_and_its_call() {
    let Some(libraries) = python_libraries() else {
        return;
    };
    let workspace = eventful();
    let run = Exported::of(&workspace, "run-000004", libraries);
    let [.., citations] = shown();
    assert_eq!(
        run.ask(citations),
        [
            "The hose under the sink burst. The hose under the sink burst on 4 March 2026. a.txt, version 2"
        ]
    );
    assert_eq!(
        run.ask("SELECT ?verdict ?method WHERE { ?c a factum:Claim ; factum:verdict ?verdict ; factum:method ?method }"),
        ["supported quoted"]
    );
    let calls = "SELECT ?model ?read WHERE { ?call a factum:ModelCall ; prov:used ?used ; \
        factum:build/rdfs:label 'run-000004' ; prov:wasAssociatedWith ?agent . \
        ?agent a factum:Model, prov:SoftwareAgent ; factum:kind ?model ; \
        prov:actedOnBehalfOf/rdfs:label 'local' . ?used rdfs:label ?read }";
    // What b.txt says had been asked in the first run, and its answer was used again.
    assert_eq!(run.ask(calls), ["canned a.txt, version 2"]);
    let answered = "SELECT ?read ?asked WHERE { ?leaf a factum:Leaf ; prov:wasDerivedFrom ?v, ?answer . \
        ?v rdfs:label ?read . ?answer a factum:Answer ; prov:wasGeneratedBy/factum:build/rdfs:label ?asked }";
    assert_eq!(
        run.ask(answered),
        ["a.txt, version 2 run-000004", "b.txt, version 1 run-000001"]
    );
}

#[test]
fn the_prov_library_reads_both_forms_alike() {
    let Some(libraries) = python_libraries() else {
        return;
    };
    let workspace = eventful();
    let case = Exported::of(&workspace, CASE, libraries);
    let [json, turtle] = case
        .files
        .each_ref()
        .map(|(path, form)| python(libraries, LOAD, &[path.to_str().unwrap(), form]));
    assert_eq!(json, turtle);
    for (kind, count) in [
        ("ProvInvalidation", 4),
        // The owner, extraction, the model.
        ("ProvAgent", 3),
        // Of `a.txt` two versions, of the others one, and the view of the case file.
        ("ProvSpecialization", 5),
    ] {
        assert_eq!(json[kind], count, "{kind} in {json}");
    }
    for kind in [
        "ProvEntity",
        "ProvActivity",
        "ProvDerivation",
        "ProvUsage",
        "ProvGeneration",
        "ProvAssociation",
    ] {
        assert!(json[kind].as_u64().unwrap() >= 5, "{kind} in {json}");
    }
}

#[test]
fn hostile_names_and_quotes_reach_other_tools_as_they_are() {
    let Some(libraries) = python_libraries() else {
        return;
    };
    let name = "we\"ird> .#<x>?%3E 'é' \\ 日.txt";
    let text =
        "The \"hose\" \u{200f}burst\u{200e} at <b>5 o'clock</b> \\n on 3 March 2026 & 'ran' on.\n";
    let workspace = Workspace::new();
    workspace
        .run(["case", "new", CASE, "--title", "A \"title\"> with\ttab"])
        .ok();
    workspace.write(name, text);
    workspace.sync();
    workspace.build();
    let case = Exported::of(&workspace, CASE, libraries);
    assert_eq!(
        case.ask("SELECT ?id WHERE { ?d a factum:Document ; factum:documentId ?id }"),
        [name]
    );
    assert_eq!(
        case.ask("SELECT ?quote WHERE { ?q a factum:Quote ; prov:value ?quote }"),
        [text.trim_end()]
    );
    assert_eq!(
        case.ask("SELECT ?title WHERE { ?c a factum:CaseFile ; rdfs:label ?title }"),
        ["A \"title\"> with\ttab"]
    );
}

#[test]
fn a_run_over_a_withdrawn_document_is_refused_and_told_only_in_outline_with_its_case() {
    let workspace = eventful();
    workspace
        .factum("export prov run-000001")
        .fails(7, "may no longer see");
    workspace.factum("export prov run-000003").ok();
    let exported = workspace.factum("export prov wd").ok();
    let document = exported.json();
    assert_format(&document, "factum/prov/1", "@context @graph");
    let view = of_class(&document, "factum:View");
    assert_eq!(view[0]["factum:runsInOutline"][0]["@value"], "2");
    assert_eq!(view[0]["factum:runsLeftOut"][0]["@value"], "0");
    assert_eq!(of_class(&document, "factum:Build").len(), 4);
    // Nothing that the withdrawn letter says, and nothing of what was made with it.
    for word in ["4,200", "plumber", "3 March"] {
        assert!(!exported.stdout.contains(word), "{word}");
    }
    assert!(exported.stdout.contains("4 March"));
    let turtle = workspace.factum("export prov wd --format turtle").ok();
    assert!(!turtle.stdout.contains("plumber") && turtle.stdout.contains("4 March"));
}

#[test]
fn a_child_whose_output_broke_a_rule_is_no_source() {
    let workspace = Workspace::with(&LETTERS);
    build_canned_with(&workspace, "no JSON at all");
    let document = workspace.factum("export prov run-000001").ok().json();
    let leaves = of_class(&document, "factum:Leaf");
    let invalid: Vec<&Value> = leaves
        .into_iter()
        .filter(|leaf| leaf["factum:status"][0]["@value"] == "INVALID")
        .collect();
    assert_eq!(invalid.len(), 1);
    let sources = invalid[0]["prov:wasDerivedFrom"].as_array().unwrap();
    let letter = json!({"@id": "urn:factum:case:wd:document:b.txt:version:1"});
    assert!(sources.contains(&letter), "{sources:?}");
    let summary = of_class(&document, "factum:Summary")[0];
    assert_eq!(summary["factum:status"][0]["@value"], "PARTIAL");
    assert_eq!(
        summary["factum:nothingFrom"],
        json!([{"@id": invalid[0]["@id"]}])
    );
    let read = summary["prov:wasDerivedFrom"].as_array().unwrap();
    assert!(!read.contains(&json!({"@id": invalid[0]["@id"]})));
    assert!(
        !workspace
            .factum("export prov wd")
            .ok()
            .stdout
            .contains("no JSON at all")
    );
}

#[test]
fn a_full_build_s_results_are_its_own() {
    let workspace = Workspace::built();
    workspace.build();
    workspace.factum("build wd --full").ok();
    let document = workspace.factum("export prov wd").ok().json();
    let builds = of_class(&document, "factum:Build");
    let ids = |build: &Value, name: &str| -> Vec<String> {
        let found = build[name].as_array().unwrap().iter();
        found
            .map(|one| one["@id"].as_str().unwrap().to_owned())
            .collect()
    };
    let summaries: Vec<Vec<String>> = builds
        .iter()
        .map(|build| ids(build, "factum:summary"))
        .collect();
    assert_eq!(summaries[0], summaries[1], "the second build made nothing");
    assert_eq!(ids(builds[1], "prov:used"), summaries[0]);
    assert_ne!(summaries[0], summaries[2]);
    assert!(
        summaries[2][0].contains(":run:run-000003:node:"),
        "{summaries:?}"
    );
    assert_eq!(ids(builds[2], "prov:used").len(), 3, "three versions");
    assert_eq!(of_class(&document, "factum:Summary").len(), 2);
}

#[test]
fn what_is_revoked_from_the_owner_is_not_named_to_it() {
    let workspace = Workspace::built();
    workspace.factum("revoke wd b.txt --from local").ok();
    workspace.build();
    let exported = workspace.factum("export prov wd").ok();
    for word in ["b.txt", "insurer"] {
        assert!(!exported.stdout.contains(word), "{word}");
    }
    let document = exported.json();
    let view = of_class(&document, "factum:View");
    assert_eq!(view[0]["factum:runsLeftOut"][0]["@value"], "1");
    // The revocation itself is told, without its document.
    let revoked = of_class(&document, "factum:Revoked");
    assert_eq!(revoked.len(), 1);
    assert!(revoked[0].get("factum:document").is_none(), "{revoked:?}");
}

#[test]
fn a_reader_s_hidden_sources_are_counted_and_not_named() {
    let workspace = Workspace::with(&LETTERS);
    workspace.factum("grant wd --to broker").ok();
    workspace.factum("build wd --as broker").ok();
    workspace.factum("revoke wd b.txt --from broker").ok();
    workspace.factum("build wd --as broker").ok();
    workspace
        .factum("export prov run-000001 --as broker")
        .fails(7, "may no longer see");
    let exported = workspace.factum("export prov wd --as broker").ok();
    for word in ["b.txt", "insurer", "expert"] {
        assert!(!exported.stdout.contains(word), "{word}");
    }
    let document = exported.json();
    let view = of_class(&document, "factum:View");
    assert_eq!(view[0]["factum:runsLeftOut"][0]["@value"], "1");
    let builds = of_class(&document, "factum:Build");
    let told: Vec<&Value> = builds
        .into_iter()
        .filter(|build| build.get("prov:startedAtTime").is_some())
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    // The owner sees all of the broker's first run, and which event ended it.
    let owners = workspace.factum("export prov run-000001").ok().json();
    let summary = of_class(&owners, "factum:Summary");
    assert_eq!(
        summary[0]["prov:wasInvalidatedBy"][0]["@id"],
        "urn:factum:case:wd:event:5"
    );
    assert_eq!(of_class(&owners, "factum:Revoked").len(), 1);
    workspace
        .factum("export prov wd --as stranger")
        .fails(7, "may not see");
    workspace
        .factum("export prov run-000001 --as stranger")
        .fails(7, "that you may see");
}

#[test]
fn the_command_says_what_it_can_t_do_and_prints_the_same_each_time() {
    let workspace = Workspace::built();
    workspace.factum("export prov nothing").fails(3, "nothing");
    workspace
        .factum("export prov run-999999")
        .fails(3, "run-999999");
    workspace
        .factum("export prov wd --format turtle --json")
        .fails(2, "Turtle is no JSON");
    for line in [
        "export prov wd",
        "export prov wd --format turtle",
        "export prov run-000001",
    ] {
        let twice = [workspace.factum(line).ok(), workspace.factum(line).ok()];
        assert_eq!(twice[0].stdout, twice[1].stdout);
        assert_eq!(twice[0].stderr, "");
    }
    let plain = workspace.factum("export prov wd").ok().stdout;
    assert_eq!(plain, workspace.factum("export prov wd --json").ok().stdout);
    // A case file may be called like a run.
    workspace.factum("case new run-7").ok();
    let document = workspace.factum("export prov run-7").ok().json();
    assert_eq!(of_class(&document, "factum:CaseFile").len(), 1);
    let help = workspace.factum("export prov --help").ok().stdout;
    assert!(help.contains("Example"), "{help}");
}
