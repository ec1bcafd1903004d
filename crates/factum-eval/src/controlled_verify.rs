//! The independent check of a controlled experiment's records.
//!
//! It works from bytes: the list of records, the records, the texts. Everything that follows from them is worked
//! out again (events, keys, citations, prompts, answers, extraction, comparisons, metrics, the review's sample) and
//! held against what is recorded. A fault in what built, compared or measured must not hide itself here, so nothing
//! of those is used: only canonical JSON and SHA-256 of `factum-base`, and the verifier of single runs, which is as
//! independent. A test holds this module's sources to that.
//!
//! What it can't check is told in `docs/experiment-verification.md`.

mod answer;
mod build;
mod case;
mod citations;
mod comparison;
mod corpus;
mod cost;
mod events;
mod expected;
mod experiment;
mod facts;
mod files;
mod generations;
mod gold;
mod json;
mod listing;
mod measures;
mod prompts;
mod protocol;
mod report;
mod review;
mod tree;

pub use files::{ExperimentFiles, is_experiment, read_folder};
pub use gold::GoldGroup;
pub use report::{Class, ExperimentVerification, Finding};

use report::Report;

/// Verifies an experiment from its files. With the bytes of a gold file, precision and recall are worked out too.
/// Any bytes are accepted, and none make it panic.
pub fn verify_experiment(files: &ExperimentFiles, gold: Option<&[u8]>) -> ExperimentVerification {
    let mut report = Report::default();
    let listed = listing::check(files, &mut report);
    let corpus = corpus::Corpus::read(files, &mut report);
    let experiment = experiment::Experiment::read(files, &corpus, &mut report);
    let mut measured = measures::Measured::default();
    let mut shared = experiment::Shared::default();
    for name in listing::case_records(&listed) {
        let context = case::Context {
            files,
            listed: &listed,
            corpus: &corpus,
            experiment: &experiment,
        };
        case::check(&context, name, &mut shared, &mut measured, &mut report);
    }
    shared.close(&experiment, &mut report);
    listing::check_runs_are_of_steps(&listed, &shared.run_files, &mut report);
    protocol::check_totals(&corpus, &experiment, &measured, &mut report);
    measures::check(files, &measured, &mut report);
    review::check(files, &listed, &corpus, &measured, &mut report);
    let groups = gold.map(|bytes| gold::groups(bytes, &experiment, &measured, &mut report));
    report.close(groups)
}
