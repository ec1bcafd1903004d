//! The list of records: every file is listed, every listed file is there and is the one that its digest names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::files::{ExperimentFiles, FOLDERS, LIST};
use super::json::{self, Kind, closed, is_digest, short};
use super::report::{Class, Report};

/// Digests by the names of the records.
pub(super) type Listed = BTreeMap<String, String>;

/// Reads a record that must be the canonical JSON of its own content.
pub(super) fn load(files: &ExperimentFiles, name: &str, report: &mut Report) -> Option<Value> {
    let Some(bytes) = files.get(name) else {
        report.add(Class::File, name, "is not there");
        return None;
    };
    match json::parse(bytes) {
        Ok(value) => {
            let same = json::canonical(&value).as_bytes() == bytes;
            let message = "is not, byte for byte, the canonical JSON of its own content";
            report.require(same, Class::Canonical, name, message);
            Some(value)
        }
        Err(fault) => {
            report.add(Class::Format, name, format!("is not strict JSON: {fault}"));
            None
        }
    }
}

/// Checks the list against the files.
pub(super) fn check(files: &ExperimentFiles, report: &mut Report) -> Listed {
    for name in &files.strange {
        report.add(
            Class::File,
            name.as_str(),
            "is no plain file that can be read",
        );
    }
    let listed = read(files, report);
    for (name, digest) in &listed {
        if !is_record_name(name) {
            report.add(
                Class::List,
                LIST,
                format!("lists {}, which is no record", short(name)),
            );
        }
        match files.get(name) {
            None => report.add(Class::File, name.as_str(), "is listed, and not there"),
            Some(bytes) => {
                report.total.files += 1;
                let same = json::sha256_hex(bytes) == *digest;
                report.require(
                    same,
                    Class::File,
                    name,
                    "is not the file whose digest is listed",
                );
            }
        }
    }
    for name in [
        "experiment.json",
        "profile.json",
        "corpus/corpus.json",
        "metrics.json",
    ] {
        if !listed.contains_key(name) {
            report.add(Class::List, LIST, format!("does not list {name}"));
        }
    }
    for name in files.files.keys() {
        // The texts of the corpus have a list of their own.
        let is_text = name.starts_with("corpus/") && name != "corpus/corpus.json";
        if name != LIST && !is_text && !listed.contains_key(name) {
            report.add(Class::File, name.as_str(), "is not in the list of records");
        }
    }
    listed
}

fn read(files: &ExperimentFiles, report: &mut Report) -> Listed {
    let Some(value) = load(files, LIST, report) else {
        return Listed::new();
    };
    closed(
        &value,
        &[("files", Kind::Object), ("format", Kind::Text)],
        LIST,
        report,
    );
    let right = json::text(&value, "format") == "factum/controlled-records/1";
    report.require(right, Class::List, LIST, "is of another format");
    let mut listed = Listed::new();
    for (name, digest) in json::field(&value, "files")
        .as_object()
        .into_iter()
        .flatten()
    {
        let digest = digest.as_str().unwrap_or("");
        report.require(
            is_digest(digest),
            Class::List,
            LIST,
            "holds what is no digest",
        );
        listed.insert(name.clone(), digest.to_owned());
    }
    listed
}

fn is_record_name(name: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', '\0'])
    };
    let parts: Vec<&str> = name.split('/').collect();
    let own = match parts.as_slice() {
        ["experiment.json" | "metrics.json" | "profile.json"] | ["corpus", "corpus.json"] => true,
        [folder, file] => {
            FOLDERS[1..].contains(folder) && file.strip_suffix(".json").is_some_and(plain)
        }
        ["records", case, run] => plain(case) && run.strip_suffix(".json").is_some_and(plain),
        _ => false,
    };
    own && parts.iter().all(|part| plain(part))
}

/// The records of case files, in order.
pub(super) fn case_records(listed: &Listed) -> Vec<&str> {
    let is_case = |name: &&str| {
        name.strip_prefix("records/")
            .is_some_and(|rest| !rest.contains('/') && rest != "sample.json")
    };
    listed.keys().map(String::as_str).filter(is_case).collect()
}

/// Every run that is listed must be of a recorded step.
pub(super) fn check_runs_are_of_steps(
    listed: &Listed,
    used: &BTreeSet<String>,
    report: &mut Report,
) {
    for name in listed.keys() {
        let is_run = name.starts_with("records/") && name.matches('/').count() == 2;
        if is_run && !used.contains(name) {
            report.add(Class::List, name.as_str(), "is a run of no recorded step");
        }
    }
}
