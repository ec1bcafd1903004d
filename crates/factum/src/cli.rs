//! The arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Cited summaries that know when they are no longer true.
#[derive(Parser)]
#[command(name = "factum", version, about, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// Work on the workspace in DIR, or in the nearest folder above it
    #[arg(short = 'C', value_name = "DIR", global = true, default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Act for this principal; `local` is the owner
    #[arg(
        long = "as",
        value_name = "PRINCIPAL",
        global = true,
        default_value = "local"
    )]
    pub(crate) principal: String,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed or different, 2 usage, 3 bad input, 4 refused as stale or absent, \
5 refused as invalid, 6 gate failed, 7 not permitted, 130 interrupted.";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// See the product work on a small case file, in a folder of its own
    #[command(after_help = "Example: factum demo")]
    Demo(DemoArgs),
    /// Make a workspace in the current folder
    #[command(after_help = "Example: factum init")]
    Init,
    /// Make case files
    Case {
        #[command(subcommand)]
        command: CaseCommand,
    },
    /// Publish files as documents of a case file
    #[command(after_help = "Example: factum add WD-2291 letter.txt report.md")]
    Add(AddArgs),
    /// Make a case file follow a folder: new and changed files are published, removed ones withdrawn
    #[command(after_help = "Example: factum sync WD-2291 ./incoming")]
    Sync {
        /// The case file
        case: String,
        /// The folder; a document's id is its path in it
        folder: PathBuf,
    },
    /// Withdraw a document: it no longer counts, and its text goes to no one
    #[command(after_help = "Example: factum withdraw WD-2291 statement.txt")]
    Withdraw {
        /// The case file
        case: String,
        /// The document
        doc: String,
    },
    /// Let a withdrawn document count again
    #[command(after_help = "Example: factum reinstate WD-2291 statement.txt")]
    Reinstate {
        /// The case file
        case: String,
        /// The document
        doc: String,
    },
    /// Let a principal see documents, or the whole case file with all later documents
    #[command(after_help = "Example: factum grant WD-2291 --to broker")]
    Grant {
        /// The case file
        case: String,
        /// The documents; none for the whole case file
        docs: Vec<String>,
        /// The principal
        #[arg(long, value_name = "PRINCIPAL")]
        to: String,
    },
    /// Hide documents, or the whole case file, from a principal
    #[command(after_help = "Example: factum revoke WD-2291 09-email-thread.txt --from broker")]
    Revoke {
        /// The case file
        case: String,
        /// The documents; none for the whole case file
        docs: Vec<String>,
        /// The principal
        #[arg(long, value_name = "PRINCIPAL")]
        from: String,
    },
    /// List a case file's events and runs
    #[command(after_help = "Example: factum history WD-2291")]
    History {
        /// The case file
        case: String,
    },
    /// Build the summary: only what a change touched is made again
    #[command(after_help = "Example: factum build WD-2291")]
    Build {
        /// The case file
        case: String,
        /// Reuse nothing
        #[arg(long)]
        full: bool,
        /// What makes the claims: extractive, local, local:MODEL, openai:URL,MODEL, replay:FILE or canned:FILE
        #[arg(long, default_value = "extractive")]
        generator: String,
    },
    /// Show the summary with its citations, or refuse it because it is no longer true
    #[command(after_help = "Example: factum show WD-2291 --as-of 2026-03-31")]
    Show {
        /// The case file
        case: String,
        /// Show what was current after this event or at this date (UTC), as history
        #[arg(long, value_name = "EVENT|DATE")]
        as_of: Option<String>,
        /// How to print it
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
        /// Show what this generator made; the newest build otherwise
        #[arg(long)]
        generator: Option<String>,
    },
    /// List the case files, or the documents of one and how its summary stands
    #[command(after_help = "Example: factum status WD-2291")]
    Status {
        /// The case file
        case: Option<String>,
    },
    /// Say why the summary is stale and what a build would make again
    #[command(after_help = "Example: factum why WD-2291")]
    Why {
        /// The case file
        case: String,
    },
    /// Show which claims were added, removed, changed or moved between two runs, and why
    #[command(after_help = "Example: factum diff WD-2291")]
    Diff {
        /// The case file
        case: String,
        /// The earlier and the later run; without them, the last two that differ
        #[arg(num_args = 2, value_names = ["RUN", "RUN"])]
        runs: Vec<String>,
    },
    /// List every supported fact of every document, with contradictions
    #[command(after_help = "Example: factum ledger WD-2291")]
    Ledger {
        /// The case file
        case: String,
    },
    /// Compare two runs node by node; exit code 1 where they differ
    #[command(after_help = "Example: factum compare run-000003 run-000004")]
    Compare {
        /// A run
        first: String,
        /// Another run
        second: String,
    },
    /// Check what is stored with code that shares nothing with the builder; exit code 1 on a difference
    #[command(after_help = "Examples: factum verify WD-2291\n          \
        factum verify ./experiment --gold ./corpus/gold")]
    Verify {
        /// A case file, a run, or the folder of an experiment; without it, all case files
        what: Option<String>,
        /// Gold, to work out an experiment's precision and recall
        #[arg(long, value_name = "DIR")]
        gold: Option<PathBuf>,
    },
    /// Ask a question, or hold a conversation, and see what each answer rests on
    #[command(
        after_help = "Examples: factum ask WD-2291 \"When did the hose burst?\"\n          factum ask WD-2291"
    )]
    Ask(crate::commands::ask::AskArgs),
    /// List, show, resume and delete your conversations
    Conversation {
        #[command(subcommand)]
        command: crate::commands::ask::ConversationCommand,
    },
    /// Audit a run: whether citations hold, what support checks say, and what is right and missing by gold
    #[command(after_help = "Example: factum audit run-000001 --gold gold.json")]
    Audit {
        /// The run
        run: String,
        /// What is true: a factum/gold/1 file, or a folder with gold.json
        #[arg(long, value_name = "FILE")]
        gold: Option<PathBuf>,
    },
    /// Export runs, texts and provenance
    Export {
        #[command(subcommand)]
        command: ExportCommand,
    },
    /// List, fetch and check language models
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// Evaluate summaries, Factum's or any other's: what they say, and what they must not say
    Eval {
        #[command(subcommand)]
        command: crate::commands::eval::EvalCommand,
    },
    /// Measure
    Experiment {
        #[command(subcommand)]
        command: ExperimentCommand,
    },
}

impl Command {
    /// Whether a local model may run in this process.
    #[cfg(all(feature = "local", unix))]
    pub(crate) fn computes(&self) -> bool {
        let generator = match self {
            Self::Build { generator, .. } => generator,
            Self::Experiment {
                command:
                    ExperimentCommand::Controlled {
                        command: ControlledCommand::Run(arguments),
                    },
            } => &arguments.generator,
            Self::Eval { command } => return command.computes(),
            Self::Ask(arguments) => return arguments.computes(),
            Self::Conversation { command } => return command.computes(),
            _ => return false,
        };
        generator.starts_with("local")
    }
}

#[derive(Subcommand)]
pub(crate) enum CaseCommand {
    /// Make a case file
    #[command(
        after_help = "Example: factum case new WD-2291 --title \"Water damage\" --profile facts"
    )]
    New {
        /// Its id
        case: String,
        /// Its title
        #[arg(long)]
        title: Option<String>,
        /// Its profile: narrative, facts, session, controlled, or one of yours in .factum/profiles
        #[arg(long, default_value = "narrative")]
        profile: String,
    },
}

#[derive(Args)]
pub(crate) struct AddArgs {
    /// The case file
    pub(crate) case: String,
    /// The files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The document's id, for one file; the file's name otherwise
    #[arg(long, value_name = "DOC")]
    pub(crate) as_doc: Option<String>,
    /// Place new documents after this one; at the end otherwise
    #[arg(long, value_name = "DOC")]
    pub(crate) after: Option<String>,
}

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Keep the workspace in this folder, which must not hold one yet
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum ModelCommand {
    /// List the models known by name, and which of them are here
    #[command(after_help = "Example: factum model list")]
    List,
    /// Fetch a model and verify its files
    #[command(after_help = "Example: factum model pull smollm2-135m-instruct")]
    Pull {
        /// Its name
        name: String,
    },
    /// Check a model strictly: every tensor, shape, type and digest; or find out what a server can do
    #[command(
        after_help = "Examples: factum model check smollm2-135m-instruct\n          \
        factum model check openai:http://127.0.0.1:8080/v1,my-model"
    )]
    Check {
        /// Its name, a .gguf file, a folder with Safetensors, or openai:URL,MODEL
        name: String,
    },
}

#[derive(Subcommand)]
pub(crate) enum ExportCommand {
    /// A run with every node, spec, key and result (factum/run/1)
    #[command(after_help = "Example: factum export run run-000001 > run.json")]
    Run {
        /// The run
        run: String,
    },
    /// Every version's text that you may see (factum/texts/1)
    #[command(after_help = "Example: factum export texts WD-2291 > texts.json")]
    Texts {
        /// The case file
        case: String,
    },
    /// What was derived from what, by whom and until when, as W3C PROV-O for other tools
    #[command(
        after_help = "Examples: factum export prov WD-2291 > wd-2291.jsonld\n          \
        factum export prov run-000001 --format turtle > run.ttl"
    )]
    Prov {
        /// A case file (its whole history) or a run
        what: String,
        /// How to write it
        #[arg(long, value_enum, default_value_t = ProvFormat::Jsonld)]
        format: ProvFormat,
    },
}

#[derive(Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Size a case file: seconds to publish, plan and build, and for one edit and one insertion
    #[command(after_help = "Example: factum experiment scale --documents 10000")]
    Scale {
        /// How many synthetic documents
        #[arg(long, value_parser = clap::value_parser!(u64).range(3..=10_000_000))]
        documents: u64,
        /// Make the workspace in this folder and keep it; in a temporary one otherwise
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
    },
    /// What incremental building saves, whether it equals a full rebuild, and how many claims their citations support
    Controlled {
        #[command(subcommand)]
        command: ControlledCommand,
    },
}

#[derive(Subcommand)]
pub(crate) enum ControlledCommand {
    /// Write the corpus, DIR/inputs, and what is true of it, DIR/gold
    #[command(after_help = "Example: factum experiment controlled generate --out corpus")]
    Generate {
        /// The folder
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// What it is made from
        #[arg(long, default_value_t = factum_eval::controlled::generate::DEFAULT_SEED)]
        seed: u64,
    },
    /// Make and record the builds; run it again to go on where it was stopped
    #[command(
        after_help = "Example: factum experiment controlled run --corpus corpus/inputs --out experiment"
    )]
    Run(ControlledRunArgs),
    /// Every measure by group, costs and comparisons, beside the published figures
    #[command(
        after_help = "Example: factum experiment controlled report experiment --gold corpus/gold --html > report.html"
    )]
    Report(ControlledReportArgs),
    /// Record what a reader found of the sample, or print the sample
    #[command(
        after_help = "Examples: factum experiment controlled review experiment > sample.json\n          \
        factum experiment controlled review experiment --reviewer \"A. Reader\" --findings findings.json"
    )]
    Review {
        /// The experiment's folder
        out: PathBuf,
        /// Who read
        #[arg(long, requires = "findings")]
        reviewer: Option<String>,
        /// A JSON list of {claim, verdict: right|wrong|unclear, note}
        #[arg(long, value_name = "FILE", requires = "reviewer")]
        findings: Option<PathBuf>,
    },
}

#[derive(Args)]
pub(crate) struct ControlledRunArgs {
    /// The corpus: the folder of its corpus.json
    #[arg(long, value_name = "DIR")]
    pub(crate) corpus: PathBuf,
    /// Where the records go
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// What makes the claims: extractive, local, local:MODEL, openai:URL,MODEL, replay:FILE or canned:FILE
    #[arg(long, default_value = "extractive")]
    pub(crate) generator: String,
    /// `controlled` follows the published protocol; `grounded` is the product at its best
    #[arg(long, value_enum, default_value_t = ControlledProfile::Controlled)]
    pub(crate) profile: ControlledProfile,
    /// Only this part of the protocol, and what it rests on
    #[arg(long, value_enum)]
    pub(crate) only: Option<ControlledPart>,
    /// Only these case files
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    pub(crate) case: Vec<String>,
    /// At most so many events of a case file
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(crate) events: u8,
    /// Case files built at the same time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) parallel: u8,
}

#[derive(Args)]
pub(crate) struct ControlledReportArgs {
    /// The experiment's folder
    pub(crate) out: PathBuf,
    /// What is true: DIR/gold, or its file
    #[arg(long, value_name = "DIR")]
    pub(crate) gold: PathBuf,
    /// As Markdown
    #[arg(long, conflicts_with = "html")]
    pub(crate) md: bool,
    /// As one page with plots
    #[arg(long)]
    pub(crate) html: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ControlledProfile {
    /// The published protocol
    Controlled,
    /// Grounded decoding, support check, withholding, generation reuse, folded reductions
    Grounded,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ControlledPart {
    /// The first builds
    Initial,
    /// Three events in every case file for testing
    Events,
    /// The exercise on one case file
    Exercise,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProvFormat {
    /// JSON-LD
    Jsonld,
    /// Turtle, which people can read too
    Turtle,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a terminal
    Text,
    /// Markdown
    Md,
    /// A page that stands alone
    Html,
}
