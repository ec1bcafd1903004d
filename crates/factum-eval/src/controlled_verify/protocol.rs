//! The protocol as the experiment's definition has it: steps, builds, who sees what, and the counts that must come
//! out.

use super::corpus::{CaseTexts, Corpus};
use super::experiment::Experiment;
use super::measures::Measured;
use super::report::{Class, Report};

/// Documents of a case file.
pub(super) const DOCUMENTS: usize = 12;
/// Who the summaries are made for.
pub(super) const READER: &str = "reader";
/// Who owns the case files.
pub(super) const OWNER: &str = "local";
/// The case file whose claims a reader reviews.
pub(super) const REVIEWED: &str = "S-010";
const EXERCISED: &str = "S-037";
/// Leaves, groups of four, and the root.
const NODES: u64 = 16;

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Step {
    Initial,
    Corrected,
    Withdrawn,
    Revoked,
    ExerciseDate,
    ExercisePrompt,
}

use Step::{Corrected, ExerciseDate, ExercisePrompt, Initial, Revoked, Withdrawn};

impl Step {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Initial => "initial",
            Corrected => "event-1",
            Withdrawn => "event-2",
            Revoked => "event-3",
            ExerciseDate => "exercise-1",
            ExercisePrompt => "exercise-2",
        }
    }

    pub(super) const fn is_exercise(self) -> bool {
        matches!(self, ExerciseDate | ExercisePrompt)
    }

    /// The kinds of builds, in order.
    pub(super) fn kinds(self, extractive: bool) -> &'static [&'static str] {
        match (self, extractive) {
            (Initial, true) => &["incremental"],
            (Initial, false) => &["incremental", "extraction"],
            (Corrected | Withdrawn | Revoked, false) => &["incremental", "full", "extraction"],
            _ => &["incremental", "full"],
        }
    }

    /// The changes that went before a build of this step.
    pub(super) const fn changes(self) -> &'static [Change] {
        const DATE: Change = Change::Version(0);
        const WITHDRAWAL: Change = Change::Withdrawal(4);
        match self {
            Initial => &[],
            Corrected => &[DATE],
            Withdrawn => &[DATE, WITHDRAWAL],
            Revoked => &[DATE, WITHDRAWAL, Change::Revocation(8)],
            ExerciseDate | ExercisePrompt => &[Change::Version(11)],
        }
    }

    /// Nodes made and calls asked for by a build of this kind.
    pub(super) const fn work(self, full: bool) -> (u64, u64) {
        match (self, full) {
            (Withdrawn, true) => (NODES, 15),
            (Revoked, true) => (NODES, 14),
            (Initial, _) | (_, true) => (NODES, NODES),
            (Corrected | ExerciseDate, _) => (3, 3),
            // The leaf without a text is made, and nobody is asked for it.
            (Withdrawn | Revoked, _) => (3, 2),
            (ExercisePrompt, _) => (4, 4),
        }
    }
}

/// What happens to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Version(usize),
    Withdrawal(usize),
    Revocation(usize),
}

/// The whole protocol of a case file.
pub(super) fn steps(case_id: &str, group: &str) -> Vec<Step> {
    let mut steps = vec![Initial];
    if group == "test" {
        steps.extend([Corrected, Withdrawn, Revoked]);
    }
    if case_id == EXERCISED {
        steps.extend([ExerciseDate, ExercisePrompt]);
    }
    steps
}

/// How a document stands for the reader at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing<'c> {
    pub(super) doc_id: &'c str,
    pub(super) version: u64,
    pub(super) active: bool,
    pub(super) eligible: bool,
    pub(super) access_revision: u64,
}

/// How the documents stand at a step, in order.
pub(super) fn standings(texts: &CaseTexts, step: Step) -> Vec<Standing<'_>> {
    let granted = texts.documents.len() as u64 + 1;
    let mut standings: Vec<Standing<'_>> = texts
        .documents
        .iter()
        .map(|document| Standing {
            doc_id: &document.id,
            version: 1,
            active: true,
            eligible: true,
            access_revision: granted,
        })
        .collect();
    for (change, number) in step.changes().iter().zip(granted + 1..) {
        let (Change::Version(n) | Change::Withdrawal(n) | Change::Revocation(n)) = *change;
        let Some(standing) = standings.get_mut(n) else {
            continue;
        };
        match change {
            Change::Version(_) => standing.version = 2,
            Change::Withdrawal(_) => (standing.active, standing.eligible) = (false, false),
            Change::Revocation(_) => {
                (standing.eligible, standing.access_revision) = (false, number);
            }
        }
    }
    standings
}

/// The counts that must come out whatever the model, once every step is recorded: 480, 140, 900 and 39 calls for the
/// corpus of the definition.
pub(super) fn check_totals(
    corpus: &Corpus,
    experiment: &Experiment,
    measured: &Measured,
    report: &mut Report,
) {
    let mut wanted = [0_u64; 4];
    let mut all = 0;
    for (id, case) in &corpus.cases {
        for step in steps(id, &case.group) {
            all += 1;
            let (incremental, full) = (step.work(false).1, step.work(true).1);
            match step {
                Initial => wanted[0] += incremental,
                Corrected | Withdrawn | Revoked => {
                    wanted[1] += incremental;
                    wanted[2] += full;
                }
                ExerciseDate | ExercisePrompt => wanted[3] += incremental + full,
            }
        }
    }
    if experiment.profile != "controlled" || all != measured.steps {
        return;
    }
    let names = ["initial", "incremental", "full", "exercise"];
    for ((name, wanted), cost) in names.into_iter().zip(wanted).zip(&measured.costs) {
        let found = cost.calls + cost.refused;
        if found != wanted {
            let message = format!("{found} calls, where the protocol makes {wanted}");
            report.add(Class::Protocol, format!("costs of {name}"), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_the_definition_come_out() {
        let events = [Corrected, Withdrawn, Revoked];
        let sum = |full: bool| events.iter().map(|step| step.work(full).1).sum::<u64>();
        assert_eq!(
            (30 * Initial.work(false).1, 20 * sum(false), 20 * sum(true)),
            (480, 140, 900)
        );
        let exercise = [ExerciseDate, ExercisePrompt];
        let both = |step: &Step| step.work(false).1 + step.work(true).1;
        assert_eq!(exercise.iter().map(both).sum::<u64>(), 39);
    }
}
