//! The reader's sample, worked out again, and the reviews that name it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::corpus::Corpus;
use super::files::ExperimentFiles;
use super::json::{Kind, closed, field, list, number, text, texts};
use super::listing::{Listed, load};
use super::measures::{Measured, Root};
use super::protocol::{REVIEWED, steps};
use super::report::{Class, Report};

const SAMPLE: &str = "records/sample.json";

/// Checks the sample and every review.
pub(super) fn check(
    files: &ExperimentFiles,
    listed: &Listed,
    corpus: &Corpus,
    measured: &Measured,
    report: &mut Report,
) {
    let wanted = sample(corpus, measured);
    let mut claims = 0;
    match (wanted, listed.contains_key(SAMPLE)) {
        (Some(_), false) => {
            report.add(
                Class::Review,
                SAMPLE,
                "is not there, although all of its steps are",
            );
        }
        (None, true) => {
            report.add(
                Class::Review,
                SAMPLE,
                "is there, although not all of its steps are",
            );
        }
        (Some(wanted), true) => {
            claims = list(&wanted, "claims").len() as u64;
            let same = load(files, SAMPLE, report).is_some_and(|sample| sample == wanted);
            report.require(
                same,
                Class::Review,
                SAMPLE,
                "is not the sample that its steps give, PENDING",
            );
        }
        (None, false) => {}
    }
    let reviews = listed.keys().filter(|name| name.starts_with("reviews/"));
    for (n, name) in reviews.enumerate() {
        let numbered = *name == format!("reviews/{:03}.json", n + 1);
        report.require(
            numbered,
            Class::Review,
            name,
            "is not numbered one more than the review before",
        );
        if let Some(review) = load(files, name, report) {
            check_review(&review, claims, listed.get(SAMPLE), name, report);
        }
    }
}

/// All root claims of the reviewed case file, at the start and after each event.
fn sample(corpus: &Corpus, measured: &Measured) -> Option<Value> {
    let group = &corpus.cases.get(REVIEWED)?.group;
    let mut claims: Vec<Value> = Vec::new();
    for step in steps(REVIEWED, group)
        .into_iter()
        .filter(|step| !step.is_exercise())
    {
        let is_root = |root: &&Root| {
            root.case_id == REVIEWED && root.step == step && root.kind == "incremental"
        };
        let root = measured.roots.iter().find(is_root)?;
        for claim in &root.claims {
            let evidence: Vec<Value> = texts(claim, "evidence")
                .into_iter()
                .filter_map(|id| Some(json!([id, text(root.evidence.get(id)?, "quote")])))
                .collect();
            claims.push(json!({
                "evidence": evidence,
                "fields": field(claim, "fields"),
                "number": claims.len() + 1,
                "step": step.word(),
            }));
        }
    }
    Some(json!({
        "case_id": REVIEWED,
        "claims": claims,
        "format": "factum/review-sample/1",
        "review": "PENDING",
    }))
}

fn check_review(
    review: &Value,
    claims: u64,
    sample: Option<&String>,
    name: &str,
    report: &mut Report,
) {
    let known = [
        ("at", Kind::Time),
        ("findings", Kind::List),
        ("format", Kind::Text),
        ("reviewer", Kind::Text),
        ("sample_sha256", Kind::Digest),
    ];
    closed(review, &known, name, report);
    let right = text(review, "format") == "factum/review/1";
    report.require(right, Class::Review, name, "is of another format");
    let linked = sample.is_some_and(|digest| digest == text(review, "sample_sha256"));
    report.require(
        linked,
        Class::Review,
        name,
        "is of another sample than lies beside it",
    );
    let mut seen = BTreeSet::new();
    for (n, finding) in list(review, "findings").iter().enumerate() {
        let place = format!("{name} findings[{n}]");
        let mut known = vec![("claim", Kind::Count), ("verdict", Kind::Text)];
        if finding.get("note").is_some() {
            known.push(("note", Kind::Text));
        }
        closed(finding, &known, &place, report);
        let claim = number(finding, "claim");
        let new = (1..=claims).contains(&claim) && seen.insert(claim);
        report.require(
            new,
            Class::Review,
            &place,
            "is of no claim of the sample, or of one twice",
        );
        let verdict = matches!(text(finding, "verdict"), "right" | "wrong" | "unclear");
        report.require(
            verdict,
            Class::Review,
            &place,
            "has a verdict that there is not",
        );
    }
}
