//! Small experiments to verify and to tamper with.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use factum_base::{canonical_json, sha256};
use factum_engine::build::Unwatched;
use factum_engine::transformation::Generator;
use factum_eval::controlled::generate::{DEFAULT_SEED, generate, write};
use factum_eval::controlled::protocol::{Part, Selection};
use factum_eval::controlled::run::{ExperimentProfile, RunError, RunOptions, RunSummary, run};
use factum_eval::controlled_verify::{
    ExperimentFiles, ExperimentVerification, read_folder, verify_experiment,
};
use factum_model::canned::CannedGenerator;
use serde_json::{Value, json};

/// Runs an experiment on these case files and reads its records.
pub(super) fn experiment(
    generator: Generator,
    profile: ExperimentProfile,
    cases: &[&str],
    only: Option<Part>,
) -> ExperimentFiles {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("corpus"), &generate(DEFAULT_SEED)).unwrap();
    let out = folder.path().join("out");
    run_into(folder.path(), &out, generator, profile, cases, only).unwrap();
    read_folder(&out).unwrap()
}

/// An experiment that loses answers, and goes on until it lost none: in how many runs, and its records.
pub(super) fn interrupted() -> (u64, ExperimentFiles) {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("corpus"), &generate(DEFAULT_SEED)).unwrap();
    let out = folder.path().join("out");
    // The generator goes on counting its losses, as a server that recovers would.
    let generator = canned_with(vec![
        json!({"contains": "Product P-10-05 ", "error": "timeout", "times": 2}),
        json!({"contains": "<notes>", "error": "unreachable", "times": 1}),
    ]);
    for runs in 1..9 {
        let profile = ExperimentProfile::Controlled;
        let ended = run_into(
            folder.path(),
            &out,
            generator.clone(),
            profile,
            &["S-010"],
            None,
        );
        match ended {
            Ok(_) => return (runs, read_folder(&out).unwrap()),
            Err(RunError::Incomplete { .. }) => {
                let found = verified(&read_folder(&out).unwrap());
                assert_eq!(found.findings, []);
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it never ended");
}

fn run_into(
    folder: &Path,
    out: &Path,
    generator: Generator,
    profile: ExperimentProfile,
    cases: &[&str],
    only: Option<Part>,
) -> Result<RunSummary, RunError> {
    let options = RunOptions {
        corpus: folder.join("corpus").join("inputs"),
        out: out.to_owned(),
        generator,
        profile,
        selection: Selection {
            only,
            cases: cases.iter().map(|case| (*case).to_owned()).collect(),
            ..Selection::default()
        },
        parallel: 1,
        clock: Arc::new(|| 1_800_000_000_000),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(run(options, &Unwatched))
}

/// Extraction: the reviewed case file with its events, and the exercise.
pub(super) fn extracted() -> &'static ExperimentFiles {
    static ONCE: OnceLock<ExperimentFiles> = OnceLock::new();
    ONCE.get_or_init(|| {
        experiment(
            Generator::Extractive,
            ExperimentProfile::Controlled,
            &["S-010", "S-037"],
            None,
        )
    })
}

/// A model that answers well and badly, on the same case files.
pub(super) fn answered() -> &'static ExperimentFiles {
    static ONCE: OnceLock<ExperimentFiles> = OnceLock::new();
    ONCE.get_or_init(|| {
        experiment(
            canned(),
            ExperimentProfile::Controlled,
            &["S-010", "S-037"],
            None,
        )
    })
}

/// One case file, built once: small enough to be verified hundreds of times.
pub(super) fn small() -> &'static ExperimentFiles {
    static ONCE: OnceLock<ExperimentFiles> = OnceLock::new();
    ONCE.get_or_init(|| {
        experiment(
            canned(),
            ExperimentProfile::Controlled,
            &["S-010"],
            Some(Part::Initial),
        )
    })
}

/// Good answers for some documents, and every kind of bad one for others.
pub(super) fn canned() -> Generator {
    canned_with(Vec::new())
}

fn canned_with(losses: Vec<Value>) -> Generator {
    let claim = |evidence: &[&str], subject: &str| json!({"evidence": evidence, "field": "delivery", "subject": subject, "value": "1 May"});
    let answer = |claims: Vec<Value>| json!({"claims": claims}).to_string();
    let mut outputs = losses;
    outputs.extend([
        json!({"contains": "<notes>\n{\"evidence\":[\"e1\"],\"field\":\"delivery\",\"subject\":\"P-10-08\"",
            "text": answer(vec![claim(&["e1"], "P-10-08"); 4])}),
        json!({"contains": "<notes>\n</notes>", "text": "{\"claims\":[]}"}),
        json!({"contains": "P-37-", "text": answer(vec![claim(&["e2", "e1"], "P-37-00")])}),
        json!({"contains": "<notes>", "text": format!("```json\n{}\n```\n", answer(vec![claim(&["e1"], "P-10-00")]))}),
    ]);
    for (document, text) in [
        (
            "P-10-01",
            answer(vec![claim(&["e1"], "x")]).replace('}', ""),
        ),
        ("P-10-02", "{\"claims\":[],\"claims\":[]}".to_owned()),
        ("P-10-03", answer(vec![claim(&["e99"], "P-10-03")])),
        (
            "P-10-05",
            format!("  {}\n", answer(vec![claim(&["e2", "e3"], "P-10-05")])),
        ),
        ("P-10-06", String::new()),
        ("P-10-07", "I see no facts.".to_owned()),
    ] {
        outputs.push(json!({"contains": format!("Product {document} "), "text": text}));
    }
    outputs.push(
        json!({"contains": "Product P-10-09 ", "text": answer(Vec::new()), "stop": "length"}),
    );
    // What the first document really says, cited by its own line.
    let made = generate(DEFAULT_SEED);
    for (path, text) in &made.files {
        let cited = ["/00-", "/08-", "/11-"]
            .iter()
            .any(|name| path.contains(name));
        if !(path.starts_with("S-010/") && cited) {
            continue;
        }
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let fact = (1..).zip(lines).find_map(|(n, line)| {
            let (head, value) = line.strip_suffix('.')?.split_once(" delivery: ")?;
            let subject = head.strip_prefix("Product ")?;
            Some((n, line, json!({"evidence": [format!("e{n}")], "field": "delivery", "subject": subject, "value": value})))
        });
        let (_, line, claim) = fact.unwrap();
        outputs.push(json!({"contains": line, "text": answer(vec![claim])}));
    }
    outputs.push(json!({"contains": "", "text": answer(vec![claim(&["e1"], "P-10-00")])}));
    let bytes = serde_json::to_vec(&json!({"outputs": outputs})).unwrap();
    Generator::model(
        "canned:x",
        Arc::new(CannedGenerator::from_bytes(&bytes).unwrap()),
    )
}

/// Verifies without gold.
pub(super) fn verified(files: &ExperimentFiles) -> ExperimentVerification {
    verify_experiment(files, None)
}

/// The classes of what was found.
pub(super) fn classes(found: &ExperimentVerification) -> Vec<&'static str> {
    let mut classes: Vec<_> = found.findings.iter().map(|one| one.class.word()).collect();
    classes.sort_unstable();
    classes.dedup();
    classes
}

/// A record's content.
pub(super) fn read(files: &ExperimentFiles, name: &str) -> Value {
    serde_json::from_slice(&files.files[name]).unwrap()
}

/// Changes a record and makes the list right again.
pub(super) fn edit(files: &mut ExperimentFiles, name: &str, change: impl FnOnce(&mut Value)) {
    let mut value = read(files, name);
    let before = value.clone();
    change(&mut value);
    assert_ne!(before, value, "nothing was changed");
    let text = canonical_json(&value).unwrap();
    files.files.insert(name.to_owned(), text.into_bytes());
    relist(files);
}

/// Makes the list of records right for the records that are there.
pub(super) fn relist(files: &mut ExperimentFiles) {
    let digests: serde_json::Map<String, Value> = files
        .files
        .iter()
        .filter(|(name, _)| {
            *name != "records.json"
                && (!name.starts_with("corpus/") || *name == "corpus/corpus.json")
        })
        .map(|(name, bytes)| (name.clone(), json!(hex(bytes))))
        .collect();
    let list = json!({"files": digests, "format": "factum/controlled-records/1"});
    let text = canonical_json(&list).unwrap();
    files
        .files
        .insert("records.json".to_owned(), text.into_bytes());
}

/// SHA-256 in hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    sha256(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
