//! The texts of the experiment, by case file, document and version.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::files::ExperimentFiles;
use super::json::{Kind, closed, list, number, sha256_hex, text};
use super::listing::load;
use super::protocol::DOCUMENTS;
use super::report::{Class, Report};

const NAME: &str = "corpus/corpus.json";

/// The case files by id.
#[derive(Default)]
pub(super) struct Corpus {
    pub(super) cases: BTreeMap<String, CaseTexts>,
    /// The digest of the list's canonical form.
    pub(super) digest: String,
}

/// One case file.
#[derive(Default)]
pub(super) struct CaseTexts {
    pub(super) group: String,
    pub(super) documents: Vec<Document>,
}

/// One document.
pub(super) struct Document {
    pub(super) id: String,
    pub(super) versions: Vec<Version>,
}

/// One version.
pub(super) struct Version {
    pub(super) sha256: String,
    pub(super) text: Option<String>,
}

impl CaseTexts {
    /// A version of a document, from 1.
    pub(super) fn version(&self, doc_id: &str, version: u64) -> Option<&Version> {
        let document = self.documents.iter().find(|known| known.id == doc_id)?;
        let place = usize::try_from(version.checked_sub(1)?).ok()?;
        document.versions.get(place)
    }

    /// Its text.
    pub(super) fn text(&self, doc_id: &str, version: u64) -> Option<&str> {
        self.version(doc_id, version)?.text.as_deref()
    }
}

impl Corpus {
    /// Reads the list and checks every text against it.
    pub(super) fn read(files: &ExperimentFiles, report: &mut Report) -> Self {
        let Some(value) = load(files, NAME, report) else {
            return Self::default();
        };
        let known = [
            ("cases", Kind::List),
            ("format", Kind::Text),
            ("seed", Kind::Count),
        ];
        closed(&value, &known, NAME, report);
        let right = text(&value, "format") == "factum/controlled-corpus/1";
        report.require(right, Class::Corpus, NAME, "is of another format");
        let mut corpus = Self {
            digest: super::json::digest(&value),
            ..Self::default()
        };
        let mut paths = BTreeSet::from([NAME.to_owned()]);
        for case in list(&value, "cases") {
            let id = text(case, "case_id").to_owned();
            let place = format!("{NAME} {id}");
            let known = [
                ("case_id", Kind::Text),
                ("documents", Kind::List),
                ("group", Kind::Text),
            ];
            closed(case, &known, &place, report);
            let read = read_case(case, &place, files, &mut paths, report);
            if corpus.cases.insert(id, read).is_some() {
                report.add(Class::Corpus, place, "is given twice");
            }
        }
        for name in files
            .files
            .keys()
            .filter(|name| name.starts_with("corpus/"))
        {
            if !paths.contains(name) {
                report.add(
                    Class::File,
                    name.as_str(),
                    "is no text that the corpus lists",
                );
            }
        }
        corpus
    }
}

fn read_case(
    case: &Value,
    place: &str,
    files: &ExperimentFiles,
    paths: &mut BTreeSet<String>,
    report: &mut Report,
) -> CaseTexts {
    let mut read = CaseTexts {
        group: text(case, "group").to_owned(),
        documents: Vec::new(),
    };
    let known = matches!(read.group.as_str(), "development" | "test");
    report.require(
        known,
        Class::Corpus,
        place,
        "is for neither development nor testing",
    );
    for document in list(case, "documents") {
        let id = text(document, "doc_id").to_owned();
        let place = format!("{place}/{id}");
        closed(
            document,
            &[("doc_id", Kind::Text), ("versions", Kind::List)],
            &place,
            report,
        );
        if read.documents.iter().any(|known| known.id == id) {
            report.add(Class::Corpus, place.as_str(), "is given twice");
        }
        let versions = list(document, "versions").iter().enumerate();
        let versions = versions
            .map(|(n, version)| read_version(version, n, &place, files, paths, report))
            .collect();
        read.documents.push(Document { id, versions });
    }
    let whole = read.documents.len() == DOCUMENTS
        && read
            .documents
            .iter()
            .all(|document| document.versions.len() == 2);
    report.require(
        whole,
        Class::Corpus,
        place,
        "has not twelve documents of two versions each",
    );
    read
}

fn read_version(
    version: &Value,
    n: usize,
    place: &str,
    files: &ExperimentFiles,
    paths: &mut BTreeSet<String>,
    report: &mut Report,
) -> Version {
    let place = format!("{place}@{}", n + 1);
    let known = [
        ("path", Kind::Text),
        ("sha256", Kind::Digest),
        ("version", Kind::Count),
    ];
    closed(version, &known, &place, report);
    let numbered = number(version, "version") == n as u64 + 1;
    report.require(
        numbered,
        Class::Corpus,
        &place,
        "is not numbered one more than the version before",
    );
    let path = format!("corpus/{}", text(version, "path"));
    let new = paths.insert(path.clone());
    report.require(new, Class::Corpus, &place, "has the path of another text");
    let sha256 = text(version, "sha256").to_owned();
    let bytes = files.get(&path);
    match bytes {
        None => report.add(Class::File, path, "is listed by the corpus, and not there"),
        Some(bytes) => {
            report.total.texts += 1;
            let same = sha256_hex(bytes) == sha256;
            report.require(
                same,
                Class::File,
                &path,
                "is not the text whose digest the corpus lists",
            );
        }
    }
    let read = bytes.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
    if bytes.is_some() && read.is_none() {
        report.add(Class::Corpus, place, "is not UTF-8");
    }
    Version { sha256, text: read }
}
