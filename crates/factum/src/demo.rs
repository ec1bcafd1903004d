//! The demo: a small case file taken through all that Factum is for, in a screenful or two.
//!
//! It runs the same use cases as the commands, on documents that are part of the program, in a
//! temporary folder unless the user wants to keep it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_engine::build::{BuildOptions, BuildReport, Unwatched};
use factum_engine::claim_diff::SummaryDiff;
use factum_engine::publish::ReadFile;
use factum_engine::serve::Served;
use factum_engine::transformation::Generator;
use factum_engine::{EngineError, OWNER, Workspace};
use factum_ingest::Limits;
use serde_json::{Value, json};

use crate::cli::DemoArgs;
use crate::commands::clock;
use crate::commands::measures::{build_text, verify_text};
use crate::output::Output;
use crate::text::{self, Label, Page};

/// The documents, in reading order.
const DOCUMENTS: [(&str, &str); 12] = [
    (
        "01-first-notice.txt",
        include_str!("../demo/documents/01-first-notice.txt"),
    ),
    (
        "02-acknowledgement.txt",
        include_str!("../demo/documents/02-acknowledgement.txt"),
    ),
    (
        "03-policy-extract.md",
        include_str!("../demo/documents/03-policy-extract.md"),
    ),
    (
        "04-call-transcript.vtt",
        include_str!("../demo/documents/04-call-transcript.vtt"),
    ),
    (
        "05-plumber-note.txt",
        include_str!("../demo/documents/05-plumber-note.txt"),
    ),
    (
        "06-landlord-letter.txt",
        include_str!("../demo/documents/06-landlord-letter.txt"),
    ),
    (
        "07-neighbour-statement.txt",
        include_str!("../demo/documents/07-neighbour-statement.txt"),
    ),
    (
        EXPERT,
        include_str!("../demo/documents/08-expert-report.md"),
    ),
    (
        EMAILS,
        include_str!("../demo/documents/09-email-thread.txt"),
    ),
    (
        "10-invoices.csv",
        include_str!("../demo/documents/10-invoices.csv"),
    ),
    (
        "11-repair-schedule.md",
        include_str!("../demo/documents/11-repair-schedule.md"),
    ),
    (
        "12-settlement-offer.txt",
        include_str!("../demo/documents/12-settlement-offer.txt"),
    ),
];
const EXPERT: &str = "08-expert-report.md";
const EMAILS: &str = "09-email-thread.txt";
const STATEMENT: &str = "07-neighbour-statement.txt";
const CORRECTION: &str = include_str!("../demo/corrections/08-expert-report.md");
const PROFILE: &str = include_str!("../demo/water-damage.toml");

const EXTRACTIVE: BuildOptions = BuildOptions {
    full: false,
    generator: Generator::Extractive,
};

struct Demo<'o> {
    workspace: Workspace,
    owner: PrincipalId,
    broker: PrincipalId,
    case: CaseId,
    output: &'o Output,
    steps: Vec<Value>,
}

/// Runs the demo.
pub(crate) async fn run(args: DemoArgs, output: &Output) -> Result<u8> {
    let temporary = tempfile::Builder::new().prefix("factum-demo-").tempdir()?;
    let folder = args
        .keep
        .clone()
        .unwrap_or_else(|| temporary.path().to_owned());
    let mut demo = Demo::prepare(&folder, output).await?;
    demo.first_summary().await?;
    demo.correction().await?;
    demo.withdrawal().await?;
    demo.revocation().await?;
    let clean = demo.checks().await?;
    demo.ending(args.keep.as_deref());
    output.json_only(
        "factum/demo/1",
        json!({"steps": demo.steps, "verified": clean}),
    );
    demo.workspace.close().await;
    Ok(u8::from(!clean))
}

impl<'o> Demo<'o> {
    async fn prepare(folder: &Path, output: &'o Output) -> Result<Self> {
        let workspace = Workspace::init(folder, clock()).await?;
        let profile = workspace.profiles_folder().join("water-damage.toml");
        std::fs::write(&profile, PROFILE).map_err(|source| EngineError::Io {
            path: profile,
            source,
        })?;
        let owner = PrincipalId::new(OWNER)?;
        let case = CaseId::new("WD-2291")?;
        workspace
            .new_case(
                &owner,
                &case,
                Some("Water damage at 14 Mill Lane"),
                "water-damage",
            )
            .await?;
        let files: Result<Vec<(DocumentId, ReadFile)>> = DOCUMENTS
            .iter()
            .map(|(name, text)| file(name, text))
            .collect();
        workspace.add(&owner, &case, &files?, None).await?;
        let broker = PrincipalId::new("broker")?;
        Ok(Self {
            workspace,
            owner,
            broker,
            case,
            output,
            steps: Vec::new(),
        })
    }

    fn say(&self, line: &str) {
        self.output.note(line);
    }

    fn heading(&self, number: u32, line: &str) {
        self.say(&format!("\n── {number}. {line}"));
    }

    async fn build(&self, principal: &PrincipalId) -> Result<BuildReport> {
        Ok(self
            .workspace
            .build(&self.case, principal, EXTRACTIVE, &Unwatched)
            .await?)
    }

    fn record(&mut self, step: &str, report: &BuildReport) {
        self.steps
            .push(json!({"step": step, "counts": report.counts, "root": report.root}));
    }

    async fn first_summary(&mut self) -> Result<()> {
        self.heading(1, "Twelve documents of a water-damage claim become a summary. Every claim cites its passage.");
        let report = self.build(&self.owner).await?;
        self.record("first", &report);
        self.say(build_text(&report).trim_end());
        self.show(&self.owner, 5).await?;
        self.contradictions().await
    }

    /// Shows the summary, with the passages of the first claims.
    async fn show(&self, principal: &PrincipalId, most: usize) -> Result<()> {
        let Served::Current(mut summary) =
            self.workspace.serve(&self.case, principal, None).await?
        else {
            return Ok(());
        };
        let all = summary.claims.len();
        summary.claims.truncate(most);
        let places = self
            .workspace
            .places(&self.case, principal, summary.evidence.values())
            .await?;
        let text = text::summary(&Page {
            summary: &summary,
            places: &places,
            label: Label::Current,
        });
        self.say(&text.replacen(&format!("{most} claims"), &format!("{all} claims"), 1));
        if all > most {
            self.say(&format!(
                "       (the first {most} of {all} claims; `factum show WD-2291` prints all)"
            ));
        }
        Ok(())
    }

    async fn contradictions(&self) -> Result<()> {
        let Ok(ledger) = self.workspace.ledger(&self.case, &self.owner).await? else {
            return Ok(());
        };
        self.say(&format!(
            "The ledger holds {} facts, and these can't all be true:",
            ledger.facts.len()
        ));
        for contradiction in &ledger.contradictions {
            let values: Vec<String> = contradiction
                .values
                .iter()
                .map(|value| {
                    let docs: Vec<&str> = value
                        .evidence
                        .iter()
                        .map(|id| id.doc_id.as_str().get(..2).unwrap_or(""))
                        .collect();
                    format!("{} (in {})", value.value, docs.join(", "))
                })
                .collect();
            self.say(&format!(
                "  {}: {}",
                contradiction.field,
                values.join(" / ")
            ));
        }
        Ok(())
    }

    async fn refused(&self, principal: &PrincipalId) -> Result<()> {
        match self.workspace.serve(&self.case, principal, None).await? {
            Served::Refused(refusal) => {
                let command = if *principal == self.owner {
                    "factum show WD-2291"
                } else {
                    "factum show WD-2291 --as broker"
                };
                self.say(&format!("$ {command}"));
                self.say(text::refusal(self.case.as_str(), &refusal, Label::Current).trim_end());
            }
            Served::Current(_) => self.say("(still current)"),
        }
        Ok(())
    }

    async fn correction(&mut self) -> Result<()> {
        self.heading(
            2,
            "The expert corrects her report. The old summary is refused, not shown.",
        );
        let corrected = file(EXPERT, CORRECTION)?;
        self.workspace
            .add(&self.owner, &self.case, &[corrected], None)
            .await?;
        self.refused(&self.owner).await?;
        let report = self.build(&self.owner).await?;
        self.record("correction", &report);
        self.say(build_text(&report).trim_end());
        let diff = self.workspace.diff(&self.case, &self.owner, None).await?;
        self.changes(&diff);
        self.contradictions().await
    }

    fn changes(&self, diff: &SummaryDiff) {
        self.say(text::diff(diff).trim_end());
    }

    async fn withdrawal(&mut self) -> Result<()> {
        self.heading(
            3,
            "The neighbour withdraws his statement. What was drawn from it falls with it.",
        );
        self.workspace
            .withdraw(&self.owner, &self.case, &DocumentId::new(STATEMENT)?)
            .await?;
        self.refused(&self.owner).await?;
        let report = self.build(&self.owner).await?;
        self.record("withdrawal", &report);
        self.say(build_text(&report).trim_end());
        self.changes(&self.workspace.diff(&self.case, &self.owner, None).await?);
        self.contradictions().await
    }

    async fn revocation(&mut self) -> Result<()> {
        self.heading(
            4,
            "A broker may see the case file, then loses the internal e-mails.",
        );
        self.workspace
            .grant(&self.owner, &self.case, &[], &self.broker)
            .await?;
        let first = self.build(&self.broker).await?;
        self.record("broker", &first);
        self.say(&format!("For broker: {}", build_text(&first).trim_end()));
        let emails = [DocumentId::new(EMAILS)?];
        self.workspace
            .revoke(&self.owner, &self.case, &emails, &self.broker)
            .await?;
        self.refused(&self.broker).await?;
        let second = self.build(&self.broker).await?;
        self.record("revocation", &second);
        self.say(&format!("For broker: {}", build_text(&second).trim_end()));
        let Served::Current(summary) = self.workspace.serve(&self.case, &self.broker, None).await?
        else {
            return Ok(());
        };
        let named = summary
            .evidence
            .values()
            .any(|one| one.doc_id.as_str() == EMAILS);
        self.say(if named {
            "The broker's summary still cites the e-mails. That must not be."
        } else {
            "Nothing of the e-mails is in the broker's summary; the owner's is as it was."
        });
        match self.workspace.export_run(&first.run_id, &self.broker).await {
            Err(error) => self.say(&format!(
                "The broker's earlier run can no longer be exported: {error}."
            )),
            Ok(_) => self.say("The broker's earlier run can still be exported. That must not be."),
        }
        Ok(())
    }

    async fn checks(&mut self) -> Result<bool> {
        self.heading(
            5,
            "Anyone can check it: against a build that reuses nothing, and with independent code.",
        );
        let incremental = self.build(&self.owner).await?;
        let options = BuildOptions {
            full: true,
            ..EXTRACTIVE
        };
        let full = self
            .workspace
            .build(&self.case, &self.owner, options, &Unwatched)
            .await?;
        let comparison = self
            .workspace
            .compare(&incremental.run_id, &full.run_id, &self.owner)
            .await?;
        self.say(&format!(
            "Incremental and full build: {} in {} nodes.",
            if comparison.equal {
                "equal"
            } else {
                "DIFFERENT"
            },
            comparison.nodes_compared
        ));
        let found = self.workspace.verify_case(&self.case, &self.owner).await?;
        self.say(verify_text(&found).trim_end());
        Ok(comparison.equal && found.findings.is_empty())
    }

    fn ending(&self, kept: Option<&Path>) {
        match kept {
            Some(folder) => self.say(&format!(
                "\nThe workspace is in {}. Try: factum -C {} show WD-2291",
                folder.display(),
                folder.display()
            )),
            None => {
                self.say("\nThe workspace was temporary. Keep one with: factum demo --keep DIR");
            }
        }
    }
}

fn file(name: &str, text: &str) -> Result<(DocumentId, ReadFile)> {
    let path = PathBuf::from(name);
    let read = ReadFile::read(&path, text.as_bytes().to_vec(), &Limits::default())?;
    Ok((DocumentId::new(name)?, read))
}
