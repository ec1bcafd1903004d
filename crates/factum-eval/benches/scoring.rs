//! Reading and scoring fixtures with their stubs: how long it takes, and that it grows with fixtures and lines as they do.

use std::fmt::{self, Display};
use std::path::PathBuf;

use divan::Bencher;
use factum_eval::provider::Stub;
use factum_eval::run::{Choice, Progress, RunOptions, files, load, run};
use serde_json::json;

fn main() {
    divan::main();
}

/// How much there is.
#[derive(Debug, Clone, Copy)]
struct Size {
    fixtures: usize,
    lines: usize,
}

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} fixtures of {} lines", self.fixtures, self.lines)
    }
}

const SIZES: [Size; 4] = [
    Size {
        fixtures: 250,
        lines: 200,
    },
    Size {
        fixtures: 1_000,
        lines: 200,
    },
    Size {
        fixtures: 250,
        lines: 800,
    },
    Size {
        fixtures: 1_000,
        lines: 50,
    },
];

const SPEAKERS: [&str; 4] = ["Keeper", "Mara", "Osk", "Tilde"];
const WORDS: [&str; 16] = [
    "ferry", "lantern", "mill", "bridge", "ledger", "harbour", "letter", "invoice", "gate",
    "river", "tower", "sack", "rope", "signal", "cellar", "witness",
];

fn line(fixture: usize, n: usize) -> String {
    let word = |k: usize| WORDS[(fixture * 7 + n * 13 + k * 5) % WORDS.len()];
    format!(
        "I take the {} from the {} and carry it past the {}, number {n}, before the {} closes.",
        word(0),
        word(1),
        word(2),
        word(3)
    )
}

/// Ten events, five forbidden claims, and a beat for every tenth line.
fn fixture(number: usize, lines: usize) -> String {
    let source: Vec<_> = (0..lines)
        .map(|n| {
            json!({
                "id": format!("l{n}"), "speaker": SPEAKERS[n % 4], "start": n * 10, "end": n * 10 + 9, "text": line(number, n),
            })
        })
        .collect();
    let events: Vec<_> = (0..10)
        .map(|n| {
            json!({
                "id": format!("event-{n}"),
                "mentions": [[format!("number {}", n * 10), format!("nr. {}", n * 10)], ["carry", "bring"]],
                "actor": SPEAKERS[n * 10 % 4],
                "order": n,
                "evidence": [format!("l{}", n * 10)],
            })
        })
        .collect();
    let forbidden: Vec<_> = (0..5)
        .map(|n| json!({"id": format!("never-{n}"), "mentions": [[format!("dragon {n}"), "wyvern"], ["entered"]], "why": "None came."}))
        .collect();
    let beats: Vec<_> = (0..lines / 10)
        .map(|n| {
            let at = n * 10;
            json!({
                "text": format!("{}: {}", SPEAKERS[at % 4], line(number, at)),
                "t_start": at * 10, "t_end": at * 10 + 9, "speaker": SPEAKERS[at % 4], "evidence": [format!("l{at}")],
            })
        })
        .collect();
    json!({
        "name": format!("fixture-{number}"),
        "source": {"lines": source},
        "events": events,
        "forbidden": forbidden,
        "stub": {"beats": beats},
        "expected": {"precision": 1},
    })
    .to_string()
}

struct Unwatched;

impl Progress for Unwatched {
    fn progress(&self, _: usize, _: usize) {}

    fn stop(&self) -> bool {
        false
    }

    fn warn(&self, _: &str) {}
}

fn options() -> RunOptions {
    RunOptions {
        jobs: 2,
        repeats: 1,
        seed: 1,
        gates: Vec::new(),
        baseline: None,
        allow_unmeasured: false,
        check_expected: true,
        cache: None,
        profile: None,
        commit: None,
        at: 0,
    }
}

/// From files on disk to a report, on two threads.
#[divan::bench(args = SIZES, sample_count = 5, sample_size = 1)]
fn fixtures_to_report(bencher: Bencher<'_, '_>, size: Size) {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..size.fixtures {
        let file = folder.path().join(format!("{number:04}.json"));
        std::fs::write(file, fixture(number, size.lines)).expect("written");
    }
    let paths: Vec<PathBuf> = vec![folder.path().to_owned()];
    bencher.bench_local(|| {
        let files = files(&paths).expect("files");
        let loaded = load(&files, &Choice::default(), 2).expect("loaded");
        assert!(loaded.bad.is_empty(), "{:?}", loaded.bad.first());
        let report = run(&loaded, &Stub, &options(), &Unwatched).expect("a report");
        assert_eq!(report.exit_code, 0, "{:?}", report.fixtures[0].mismatches);
        report
    });
}
