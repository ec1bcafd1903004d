//! The reader's review. The sample is fixed beforehand: all root claims of the first case file for testing, at
//! the start and after each event. The computed sample says PENDING for ever; what a reader found is recorded apart and
//! names the sample by its digest.

use std::collections::BTreeSet;

use factum_base::{BodyDigest, canonical_json};
use serde::{Deserialize, Serialize};

use super::corpus::Corpus;
use super::folder::{CaseRecord, Folder, FolderError, case_name};
use super::measure::root_of;
use super::protocol::{Kind, Part, REVIEW_CASE, Selection};
use super::run::RunError;

/// The value of a sample's `format`.
pub const SAMPLE_FORMAT: &str = "factum/review-sample/1";
/// The value of a review's `format`.
pub const REVIEW_FORMAT: &str = "factum/review/1";
const SAMPLE: &str = "records/sample.json";

/// What a reader is asked to review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// [`SAMPLE_FORMAT`].
    pub format: String,
    /// The case file.
    pub case_id: String,
    /// Always `PENDING`: a review is another file.
    pub review: String,
    /// The claims.
    pub claims: Vec<SampleClaim>,
}

/// One claim of the sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleClaim {
    /// Its number, from 1.
    pub number: u64,
    /// The step whose root it is of.
    pub step: String,
    /// Its fields.
    pub fields: std::collections::BTreeMap<String, String>,
    /// What it cites: evidence id and quote.
    pub evidence: Vec<(String, String)>,
}

/// What a reader found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// [`REVIEW_FORMAT`].
    pub format: String,
    /// The digest of the sample.
    pub sample_sha256: BodyDigest,
    /// Who read.
    pub reviewer: String,
    /// When it was recorded, in Unix milliseconds.
    pub at: i64,
    /// What was found.
    pub findings: Vec<ReviewFinding>,
}

/// What a reader found of one claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewFinding {
    /// The claim's number in the sample.
    pub claim: u64,
    /// The reader's verdict.
    pub verdict: ReviewVerdict,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A reader's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReviewVerdict {
    /// The passages say it.
    Right,
    /// They do not.
    Wrong,
    /// It can't be told.
    Unclear,
}

/// Where the review stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewState {
    /// The digest of the sample, once it is there.
    pub sample_sha256: Option<BodyDigest>,
    /// What the sample says of itself, once it is there.
    pub sample: Option<String>,
    /// Claims in the sample.
    pub claims: u64,
    /// Reviews that are of this sample.
    pub reviews: Vec<ReviewLine>,
}

/// A review in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewLine {
    /// Its record.
    pub file: String,
    /// Who read.
    pub reviewer: String,
    /// Claims found right, wrong, unclear.
    pub right: u64,
    /// Wrong.
    pub wrong: u64,
    /// Unclear.
    pub unclear: u64,
}

/// Records the sample once all its steps are there.
pub(super) fn record_sample(folder: &Folder, corpus: &Corpus) -> Result<(), RunError> {
    if folder.has(SAMPLE) {
        return Ok(());
    }
    let case = corpus.cases.iter().find(|case| case.case_id == REVIEW_CASE);
    let record: Option<CaseRecord> = folder.record(&case_name(REVIEW_CASE))?;
    let (Some(case), Some(record)) = (case, record) else {
        return Ok(());
    };
    let mut claims = Vec::new();
    let wanted = Selection::default().steps(case);
    for step in wanted.iter().filter(|step| step.part() != Part::Exercise) {
        let found = record.steps.iter().find(|known| known.step == *step);
        let build = found.and_then(|found| {
            found
                .builds
                .iter()
                .find(|build| build.kind == Kind::Incremental)
        });
        let Some(build) = build else { return Ok(()) };
        let run = folder.run(build)?;
        let Some(root) = root_of(&run) else { continue };
        for claim in &root.result.claims {
            let evidence = claim.evidence.iter().filter_map(|id| {
                let one = root.result.evidence.get(id)?;
                Some((id.to_string(), one.quote.clone()))
            });
            claims.push(SampleClaim {
                number: claims.len() as u64 + 1,
                step: step.word().to_owned(),
                fields: claim.fields.clone(),
                evidence: evidence.collect(),
            });
        }
    }
    let sample = Sample {
        format: SAMPLE_FORMAT.to_owned(),
        case_id: REVIEW_CASE.to_owned(),
        review: "PENDING".to_owned(),
        claims,
    };
    Ok(folder.put(&[(SAMPLE.to_owned(), canonical_json(&sample)?)])?)
}

/// Where the review stands.
///
/// # Errors
/// A record can't be read.
pub fn review_state(folder: &Folder) -> Result<ReviewState, FolderError> {
    let digest = folder.files().get(SAMPLE).copied();
    let sample: Option<Sample> = folder.record(SAMPLE)?;
    let mut reviews = Vec::new();
    for name in folder
        .files()
        .into_keys()
        .filter(|name| name.starts_with("reviews/"))
    {
        let Some(review) = folder.record::<Review>(&name)? else {
            continue;
        };
        if Some(review.sample_sha256) != digest {
            continue;
        }
        let count = |verdict| {
            review
                .findings
                .iter()
                .filter(|one| one.verdict == verdict)
                .count() as u64
        };
        reviews.push(ReviewLine {
            file: name,
            right: count(ReviewVerdict::Right),
            wrong: count(ReviewVerdict::Wrong),
            unclear: count(ReviewVerdict::Unclear),
            reviewer: review.reviewer,
        });
    }
    Ok(ReviewState {
        sample_sha256: digest,
        claims: sample
            .as_ref()
            .map_or(0, |sample| sample.claims.len() as u64),
        sample: sample.map(|sample| sample.review),
        reviews,
    })
}

/// The sample, for a reader.
///
/// # Errors
/// A record can't be read.
pub fn sample(folder: &Folder) -> Result<Option<Sample>, FolderError> {
    folder.record(SAMPLE)
}

/// Records what a reader found, apart from the sample. The name of the record.
///
/// # Errors
/// There is no sample yet, or a finding is of no claim in it, or of one twice.
pub fn record_review(
    folder: &Folder,
    reviewer: &str,
    at: i64,
    findings: Vec<ReviewFinding>,
) -> Result<String, FolderError> {
    let path = folder.path().join(SAMPLE);
    let wrong = |message: String| FolderError::Malformed {
        path: path.clone(),
        message,
    };
    let digest = folder.files().get(SAMPLE).copied();
    let (Some(sample), Some(sample_sha256)) = (sample(folder)?, digest) else {
        return Err(wrong(
            "there is no sample yet: the steps of its case file are not all recorded".to_owned(),
        ));
    };
    let mut seen = BTreeSet::new();
    for finding in &findings {
        if !(1..=sample.claims.len() as u64).contains(&finding.claim) || !seen.insert(finding.claim)
        {
            return Err(FolderError::Findings(finding.claim));
        }
    }
    let review = Review {
        format: REVIEW_FORMAT.to_owned(),
        sample_sha256,
        reviewer: reviewer.to_owned(),
        at,
        findings,
    };
    let number = folder
        .files()
        .keys()
        .filter(|name| name.starts_with("reviews/"))
        .count()
        + 1;
    let name = format!("reviews/{number:03}.json");
    folder.put(&[(name.clone(), canonical_json(&review)?)])?;
    Ok(name)
}
