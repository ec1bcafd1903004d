//! The arguments of `factum eval`.

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use factum_eval::ScoreName;
use factum_eval::gates::{Gate, GateOn, Side};
use factum_eval::score_name::Better;

#[derive(Subcommand)]
pub(crate) enum EvalCommand {
    /// Score summaries of fixtures, and stop where a gate fails
    #[command(after_help = "Examples: factum eval run fixtures\n          \
        factum eval run fixtures --provider extractive --fail-under-precision 1 --html report.html\n          \
        factum eval run fixtures --provider 'command:python3 summarise.py' --fail-on-regression last.json\n\
        Exit codes: 0 passed, 6 a gate failed or measured nothing, 1 a fixture gave no output, 3 a file is no fixture.")]
    Run(Box<RunArgs>),
    /// Compare two runs fixture by fixture
    #[command(
        after_help = "Examples: factum eval diff before.json after.json\n          \
        factum eval diff history.jsonl#1 history.jsonl"
    )]
    Diff {
        /// A report of `eval run --json`, or a history: its last record, or with #N its Nth
        before: String,
        /// Another
        after: String,
        /// The seed of bootstrap intervals
        #[arg(long, default_value_t = SEED)]
        seed: u64,
    },
    /// Print the JSON Schema of fixtures
    #[command(after_help = "Example: factum eval schema > fixture.schema.json")]
    Schema,
    /// Hold the support check against public data with people's verdicts
    #[command(after_help = "Example: factum eval support --data ../shared/data")]
    Support {
        /// The folder with frank/valid.jsonl and qmsum/val; FACTUM_DATA otherwise, or ../shared/data
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// The seed of bootstrap intervals
        #[arg(long, default_value_t = SEED)]
        seed: u64,
    },
}

impl EvalCommand {
    /// Whether a local model may run in this process.
    #[cfg(all(feature = "local", unix))]
    pub(crate) fn computes(&self) -> bool {
        matches!(self, Self::Run(args) if args.provider.starts_with("local"))
    }
}

/// Any number will do, as long as it stays the same.
pub(super) const SEED: u64 = 20_240_229;

#[derive(Args)]
pub(crate) struct RunArgs {
    /// Fixtures, and folders of them (JSON or YAML)
    #[arg(required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// Where summaries come from: stub, stored:PATH, 'command:PROGRAM ARGS', extractive, local, local:MODEL,
    /// openai:URL,MODEL, replay:FILE, canned:FILE
    #[arg(long, default_value = "stub")]
    pub(super) provider: String,
    /// The profile, by name or file; otherwise session for transcripts and narrative for documents
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) profile: Option<String>,
    /// Only fixtures with this tag; may be given again
    #[arg(long)]
    pub(super) tag: Vec<String>,
    /// Only fixtures whose name holds this; may be given again
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Vec<String>,
    /// Only the Nth of M parts of the fixtures
    #[arg(long, value_name = "N/M", value_parser = shard)]
    pub(super) shard: Option<(usize, usize)>,
    /// Summarise each fixture so often
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repeats: u32,
    /// Summarise so many at once; the number of processors otherwise
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) jobs: Option<u16>,
    /// Longest time for one summary, in seconds
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) timeout: u64,
    /// Most bytes that a program may print
    #[arg(long, default_value_t = 8 * 1024 * 1024, value_parser = clap::value_parser!(u64).range(1..=1_073_741_824))]
    pub(super) max_output: u64,
    /// Keep outputs in this folder; in the user's cache folder otherwise
    #[arg(long, value_name = "DIR")]
    pub(super) cache: Option<PathBuf>,
    /// Keep no outputs, and use none that are kept
    #[arg(long, conflicts_with = "cache")]
    pub(super) no_cache: bool,
    /// Make every output anew, and keep it
    #[arg(long, conflicts_with = "no_cache")]
    pub(super) refresh: bool,
    /// The seed of bootstrap intervals
    #[arg(long, default_value_t = SEED)]
    pub(super) seed: u64,
    /// The revision of what is evaluated; that of the git repository here otherwise
    #[arg(long)]
    pub(super) commit: Option<String>,
    #[command(flatten)]
    pub(super) reports: ReportArgs,
    #[command(flatten)]
    pub(super) gates: GateArgs,
}

#[derive(Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct ReportArgs {
    /// Write the report as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    /// Write JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// Write Markdown, for a pull request
    #[arg(long, value_name = "FILE")]
    pub(super) markdown: Option<PathBuf>,
    /// Write one HTML page that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Append a record of the run to this file
    #[arg(long, value_name = "FILE")]
    pub(super) history: Option<PathBuf>,
}

/// Gates: an option for each score, made from their list.
pub(crate) struct GateArgs {
    pub(super) gates: Vec<Gate>,
    pub(super) baseline: Option<String>,
    pub(super) tolerance: f64,
    pub(super) allow_unmeasured: bool,
}

const BASELINE: &str = "fail-on-regression";
const TOLERANCE: &str = "regression-tolerance";
const ALLOW: &str = "allow-unmeasured";

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text
        .split_once('/')
        .and_then(|(n, of)| Some((n.parse().ok()?, of.parse().ok()?)));
    parts
        .filter(|&(n, of): &(usize, usize)| n >= 1 && n <= of)
        .ok_or_else(|| "expected N/M, such as 1/4".to_owned())
}

fn bound(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|bound: &f64| bound.is_finite())
        .ok_or_else(|| "expected a number".to_owned())
}

/// A bound on a score: a number that the score can have, or the gate could not fail, or not hold.
fn bound_on(score: ScoreName) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let (least, most) = score.range();
        let bound = bound(text)?;
        if (least..=most).contains(&bound) {
            return Ok(bound);
        }
        Err(if score == ScoreName::Length {
            "expected a number of 0 or more".to_owned()
        } else {
            format!("{score} is between {least} and {most}")
        })
    }
}

/// A gate that may be asked for.
struct GateOption {
    score: ScoreName,
    on: GateOn,
    side: Side,
    /// Its option.
    name: String,
}

/// The gates there are.
fn options() -> &'static [GateOption] {
    static ALL: OnceLock<Vec<GateOption>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        for score in ScoreName::ALL {
            for side in [Side::Under, Side::Over] {
                if side == Side::Over && score.better() == Better::Higher {
                    continue;
                }
                for on in [GateOn::Mean, GateOn::Any] {
                    let any = if on == GateOn::Any { "any-" } else { "" };
                    let word = if side == Side::Under { "under" } else { "over" };
                    let name = format!("fail-{any}{word}-{}", score.option());
                    all.push(GateOption {
                        score,
                        on,
                        side,
                        name,
                    });
                }
            }
        }
        all
    })
}

impl Args for GateArgs {
    fn augment_args(command: Command) -> Command {
        let mut command = command.next_help_heading(
            "Gates (a score that equals its bound holds; fixtures without an output count as the worst value)",
        );
        for option in options() {
            let (score, on, side) = (option.score, option.on, option.side);
            let what = if on == GateOn::Any {
                "any fixture's"
            } else {
                "the mean"
            };
            let word = if side == Side::Under { "under" } else { "over" };
            command = command.arg(
                Arg::new(option.name.as_str())
                    .long(option.name.as_str())
                    .value_name("X")
                    .value_parser(bound_on(score))
                    .allow_negative_numbers(true)
                    .help(format!("Fail where {what} {score} is {word} X")),
            );
        }
        command
            .arg(
                Arg::new(BASELINE)
                    .long(BASELINE)
                    .value_name("BASELINE")
                    .help("Fail where a mean is worse than in this report or history, over the fixtures of both"),
            )
            .arg(
                Arg::new(TOLERANCE)
                    .long(TOLERANCE)
                    .value_name("X")
                    .value_parser(bound)
                    .default_value("0.0005")
                    .help("How much worse is still no regression"),
            )
            .arg(
                Arg::new(ALLOW)
                    .long(ALLOW)
                    .action(clap::ArgAction::SetTrue)
                    .help("A gate with nothing to measure, or no fixture at all, is no failure"),
            )
            .next_help_heading(None)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for GateArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let gates = options().iter().filter_map(|option| {
            Some(Gate {
                score: option.score,
                on: option.on,
                side: option.side,
                bound: *matches.get_one::<f64>(&option.name)?,
            })
        });
        Ok(Self {
            gates: gates.collect(),
            baseline: matches.get_one::<String>(BASELINE).cloned(),
            tolerance: matches.get_one::<f64>(TOLERANCE).copied().unwrap_or(0.0),
            allow_unmeasured: matches.get_flag(ALLOW),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
