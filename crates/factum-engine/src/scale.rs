//! How a case file of a size behaves on this machine: publish, plan, build, one edit, one insertion.
//!
//! The documents are synthetic: made-up sentences from a fixed word list, 1,000 to 7,000 characters,
//! 4,000 on average, the same for the same number.

use std::path::Path;
use std::time::Instant;

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_ingest::Limits;
use serde::Serialize;

use crate::build::{BuildOptions, BuildReport, Unwatched, Watcher};
use crate::error::EngineError;
use crate::publish::ReadFile;
use crate::serve::Served;
use crate::transformation::Generator;
use crate::workspace::{Clock, OWNER, Workspace};

/// What was measured. Times are in the unit of their name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScaleReport {
    /// Documents in the case file.
    pub documents: u64,
    /// Reading and publishing them all.
    pub publish_seconds: f64,
    /// Planning the whole tree from scratch.
    pub plan_seconds: f64,
    /// The first build, planning included.
    pub build_seconds: f64,
    /// Nodes of the tree.
    pub nodes: u64,
    /// One document in the middle edited.
    pub edit: StepReport,
    /// One document inserted in the middle.
    pub insert: StepReport,
    /// UTF-8 bytes of all text layers.
    pub text_bytes: u64,
    /// Originals kept beside their text layers.
    pub original_bytes: u64,
    /// The database file with its log.
    pub store_bytes: u64,
    /// The search index in that file: its postings and spans.
    pub index_bytes: u64,
}

/// One change, built and served again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepReport {
    /// Nodes made again.
    pub nodes_recomputed: u64,
    /// Finding the new tree along the changed path.
    pub plan_seconds: f64,
    /// The whole build, planning and its three durable commits included.
    pub rebuild_seconds: f64,
    /// Median of the reads, in microseconds.
    pub serve_p50_us: u64,
    /// The read that one in a hundred is slower than, in microseconds.
    pub serve_p99_us: u64,
}

const READS: usize = 1_000;
const BATCH: u64 = 1_000;

/// Runs the measurement in a workspace of its own under `folder`.
///
/// # Errors
/// The folder can't be written, or the watcher stops it.
pub async fn measure(
    folder: &Path,
    clock: Clock,
    documents: u64,
    watcher: &dyn Watcher,
) -> Result<ScaleReport, EngineError> {
    let workspace = Workspace::init(folder, clock).await?;
    let owner = PrincipalId::new(OWNER)?;
    let case = CaseId::new("scale")?;
    workspace.new_case(&owner, &case, None, "narrative").await?;
    let started = Instant::now();
    for batch in 0..documents.div_ceil(BATCH) {
        if watcher.stop() {
            return Err(EngineError::Interrupted);
        }
        let files = (batch * BATCH..documents.min((batch + 1) * BATCH))
            .map(|n| file(n, n))
            .collect::<Result<Vec<_>, _>>()?;
        workspace.add(&owner, &case, &files, None).await?;
        watcher.progress(batch * BATCH, documents);
    }
    let publish_seconds = started.elapsed().as_secs_f64();
    let first = build(&workspace, &owner, &case, watcher).await?;
    let middle = documents / 2;
    let (edited, _) = file(middle, middle)?;
    let edit = step(
        &workspace,
        &owner,
        &case,
        (edited, file(middle, documents + 7)?.1),
        None,
    )
    .await?;
    let before = file(middle, middle)?.0;
    let inserted = (DocumentId::new("inserted.txt")?, file(0, documents + 11)?.1);
    let insert = step(&workspace, &owner, &case, inserted, Some(&before)).await?;
    let sizes = workspace.sizes().await?;
    let mut tx = workspace.repository.read().await?;
    let index_bytes = tx.index_bytes().await?;
    tx.close().await?;
    workspace.close().await;
    Ok(ScaleReport {
        documents,
        publish_seconds,
        plan_seconds: first.plan_seconds,
        build_seconds: first.seconds,
        nodes: first.counts.nodes,
        edit,
        insert,
        text_bytes: sizes.text_bytes,
        original_bytes: sizes.original_bytes,
        store_bytes: sizes.store_bytes,
        index_bytes,
    })
}

async fn build(
    workspace: &Workspace,
    owner: &PrincipalId,
    case: &CaseId,
    watcher: &dyn Watcher,
) -> Result<BuildReport, EngineError> {
    let options = BuildOptions {
        full: false,
        generator: Generator::Extractive,
    };
    workspace.build(case, owner, options, watcher).await
}

async fn step(
    workspace: &Workspace,
    owner: &PrincipalId,
    case: &CaseId,
    file: (DocumentId, ReadFile),
    after: Option<&DocumentId>,
) -> Result<StepReport, EngineError> {
    workspace.add(owner, case, &[file], after).await?;
    let report = build(workspace, owner, case, &Unwatched).await?;
    let mut reads = Vec::with_capacity(READS);
    for _ in 0..READS {
        let started = Instant::now();
        let served = workspace.serve(case, owner, None).await?;
        reads.push(u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX));
        if matches!(served, Served::Refused(_)) {
            return Err(EngineError::Worker(
                "a summary just built was refused".to_owned(),
            ));
        }
    }
    reads.sort_unstable();
    Ok(StepReport {
        nodes_recomputed: report.counts.recomputed,
        plan_seconds: report.plan_seconds,
        rebuild_seconds: report.seconds,
        serve_p50_us: reads[READS / 2],
        serve_p99_us: reads[READS * 99 / 100],
    })
}

/// Document number `n` with the text of number `text`.
///
/// # Errors
/// Never; the id is well formed.
pub fn file(n: u64, text: u64) -> Result<(DocumentId, ReadFile), EngineError> {
    let id = format!("{:03}/document-{n:07}.txt", n % 1000);
    let bytes = synthetic_text(text).into_bytes();
    let read = ReadFile::read(Path::new(&id), bytes, &Limits::default())?;
    Ok((DocumentId::new(id)?, read))
}

const SUBJECTS: [&str; 12] = [
    "The insurer",
    "The policyholder",
    "The expert",
    "The plumber",
    "The landlord",
    "The tenant",
    "The contractor",
    "The neighbour",
    "The claims handler",
    "The surveyor",
    "The bank",
    "The court",
];
const VERBS: [&str; 12] = [
    "confirmed",
    "disputed",
    "paid",
    "inspected",
    "repaired",
    "measured",
    "reported",
    "accepted",
    "rejected",
    "postponed",
    "estimated",
    "documented",
];
const OBJECTS: [&str; 16] = [
    "the kitchen floor",
    "the damaged hose",
    "the invoice",
    "the drying equipment",
    "the ceiling below",
    "the settlement offer",
    "the moisture readings",
    "the repair schedule",
    "the cause of the damage",
    "the hall carpet",
    "the base cabinets",
    "the policy excess",
    "the emergency call-out",
    "the screed",
    "the water meter",
    "the second estimate",
];
const PLACES: [&str; 8] = [
    "in the flat on the second floor",
    "at the claims office",
    "after the survey",
    "before the deadline",
    "by registered letter",
    "during the call",
    "without any reservation",
    "for the second time",
];

/// Made-up prose of 1,000 to 7,000 characters.
fn synthetic_text(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    let mut next = move |below: usize| {
        // The SplitMix64 generator: the same texts on every machine.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % below as u64).unwrap_or(0)
    };
    let length = 1_000 + next(6_001);
    let mut text = format!("Document {seed} of the synthetic case file\n\n");
    while text.len() < length {
        let (day, amount) = (1 + next(28), 100 + next(9_900));
        text.push_str(&format!(
            "{} {} {} {} on {day} March 2026, and the sum of EUR {amount}.00 was noted. ",
            SUBJECTS[next(12)],
            VERBS[next(12)],
            OBJECTS[next(16)],
            PLACES[next(8)],
        ));
        if next(6) == 0 {
            text.push_str("\n\n");
        }
    }
    text.truncate(length);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synthetic_documents_average_four_thousand_characters() {
        let total: usize = (0..2_000).map(|n| synthetic_text(n).chars().count()).sum();
        let average = total / 2_000;
        assert!((3_800..4_200).contains(&average), "{average}");
        assert_eq!(synthetic_text(5), synthetic_text(5));
    }
}
