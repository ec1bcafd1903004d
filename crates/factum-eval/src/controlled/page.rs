//! The report as one page that stands alone: tables, plots, and what they do not say. Everything is escaped by the
//! library that writes the page.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::markdown::{named_costs, shown_ratio, shown_statuses};
use super::measure::GroupMeasure;
use super::plots::{BLUE, GREY, ORANGE, Series, beside, stacked};
use super::report::Report;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}\
table{border-collapse:collapse;font-size:.9rem;display:block;overflow-x:auto}th,td{border:1px solid #ccc;padding:.25rem .5rem;text-align:right}\
th:first-child,td:first-child{text-align:left}caption{text-align:left;font-weight:600;padding:.5rem 0}tr.published td{color:#555;font-style:italic}\
svg{max-width:100%;height:auto}.note{color:#444}code{overflow-wrap:anywhere}";

/// The page.
pub fn page(report: &Report) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { "Controlled experiment: " (report.generator) ", " (report.profile) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Controlled experiment" }
                p {
                    "Generator " code { (report.generator) } ", profile " code { (report.profile) } ", corpus "
                    code { (report.corpus_sha256) } ". " (report.steps.recorded) " of " (report.steps.all) " steps recorded."
                }
                p.note {
                    "VALID describes the structure of an output. It never vouches for truth. Support is measured by the experiment's own \
                     grammar, apart from the product's check and from gold. The published figures are of " (report.published.model) "."
                }
                (groups(report))
                (costs(report))
                (plots(report))
                (pairs(report))
                (review(report))
            }
        }
    }
    .into_string()
}

fn groups(report: &Report) -> Markup {
    html! {
        table {
            caption { "Root claims by group" }
            thead {
                tr {
                    th { "group" } th { "roots" } th { "VALID / PARTIAL / INVALID" } th { "claims" } th { "valid citations" }
                    th { "unsupported" } th { "withheld" } th { "precision" } th { "recall" } th { "duplicates" }
                }
            }
            tbody {
                @for (name, group) in &report.groups {
                    tr {
                        td { (name) } td { (group.snapshots) } td { (shown_statuses(group)) } td { (group.claims) }
                        td { (shown_ratio(group.reference_validity)) } td { (shown_ratio(group.unsupported_rate)) }
                        td { (group.withheld_claims) } td { (shown_ratio(group.fact_precision)) }
                        td { (shown_ratio(group.fact_recall)) } td { (group.duplicate_claims) }
                    }
                    @for row in report.published.groups.iter().filter(|row| row.group == name) {
                        tr.published {
                            td { "published" } td { (row.snapshots) } td { (row.statuses.map(|n| n.to_string()).join(" / ")) }
                            td { (row.claims) } td {} td { (format!("{:.3}", row.unsupported_rate)) } td {}
                            td { (format!("{:.3}", row.fact_precision)) } td { (format!("{:.4}", row.fact_recall)) } td {}
                        }
                    }
                }
            }
        }
    }
}

fn costs(report: &Report) -> Markup {
    html! {
        table {
            caption { "Costs" }
            thead {
                tr {
                    th { "builds" } th { "calls" } th { "nodes made" } th { "generations reused" } th { "new tokens" }
                    th { "seconds" } th { "seconds of the generator" } th { "published calls" }
                }
            }
            tbody {
                @for (name, cost) in named_costs(report) {
                    tr {
                        td { (name) } td { (cost.calls) } td { (cost.recomputed_nodes) } td { (cost.generations_reused) }
                        td { (cost.new_tokens) } td { (format!("{:.1}", cost.seconds)) }
                        td { (format!("{:.1}", cost.generation_seconds)) }
                        td {
                            @for row in report.published.costs.iter().filter(|row| row.builds == name) { (row.calls) }
                        }
                    }
                }
            }
        }
        p.note { "Builds of several case files run at the same time, so seconds of builds overlap. Calls leave out recorded answers used again." }
    }
}

fn plots(report: &Report) -> Markup {
    let list = &report.comparisons.list;
    let each = |of: &dyn Fn(&super::measure::Pair) -> u64| -> Vec<f64> {
        list.iter().map(|pair| number(of(pair))).collect()
    };
    let two = |incremental: Vec<f64>, full: Vec<f64>| {
        [
            Series {
                name: "incremental",
                colour: BLUE,
                values: incremental,
            },
            Series {
                name: "full",
                colour: ORANGE,
                values: full,
            },
        ]
    };
    let calls = two(
        each(&|pair| pair.incremental.calls),
        each(&|pair| pair.full.calls),
    );
    let tokens = two(
        each(&|pair| pair.incremental.new_tokens),
        each(&|pair| pair.full.new_tokens),
    );
    let rows: Vec<String> = report.groups.keys().cloned().collect();
    let of = |name: &'static str, colour, value: &dyn Fn(&GroupMeasure) -> u64| Series {
        name,
        colour,
        values: report
            .groups
            .values()
            .map(|group| number(value(group)))
            .collect(),
    };
    let status = |word: &'static str| {
        move |group: &GroupMeasure| group.statuses.get(word).copied().unwrap_or(0)
    };
    let statuses = [
        of("VALID", BLUE, &status("VALID")),
        of("PARTIAL", ORANGE, &status("PARTIAL")),
        of("INVALID", GREY, &status("INVALID")),
    ];
    let support = [
        of("a cited line states it", BLUE, &|group| {
            group.supported_claims
        }),
        of("no cited line states it", ORANGE, &|group| {
            group.claims - group.supported_claims
        }),
        of("withheld", GREY, &|group| group.withheld_claims),
    ];
    html! {
        h2 { "Plots" }
        (PreEscaped(beside("Calls for each event", "event", "calls", &calls)))
        @if tokens.iter().any(|one| one.values.iter().any(|value| *value > 0.0)) {
            (PreEscaped(beside("New tokens for each event", "event", "tokens", &tokens)))
        } @else {
            p.note { "This generator writes no tokens." }
        }
        (PreEscaped(stacked("Status of the roots", "roots", &rows, &statuses)))
        (PreEscaped(stacked("Support of the root claims", "claims", &rows, &support)))
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn number(count: u64) -> f64 {
    count as f64
}

fn pairs(report: &Report) -> Markup {
    let found = &report.comparisons;
    html! {
        h2 { "Incremental against full" }
        p {
            (found.equal) " of " (found.pairs) " pairs are equal in key, status, claims and tokens of every node; "
            (found.roots_equal) " in status and claims of the root."
        }
        @if found.equal < found.pairs {
            table {
                thead { tr { th { "case file" } th { "step" } th { "differences" } th { "roots" } } }
                tbody {
                    @for pair in found.list.iter().filter(|pair| !pair.equal) {
                        tr {
                            td { (pair.case_id) } td { (pair.step.word()) } td { (pair.differences) }
                            td { @if pair.roots_equal { "equal" } @else { "different" } }
                        }
                    }
                }
            }
        }
        p.note {
            "The digest of all that is not of the exercise: " code { (report.main_sha256) } ". The digest of all records: "
            code { (report.records_sha256) } "; kept elsewhere, it binds them."
        }
    }
}

fn review(report: &Report) -> Markup {
    let review = &report.review;
    html! {
        h2 { "Reader's review" }
        @match &review.sample_sha256 {
            None => p { "The sample is not there yet." },
            Some(digest) => {
                p {
                    "The sample of " (review.claims) " claims " code { (digest) } " says "
                    (review.sample.as_deref().unwrap_or("nothing")) "."
                }
                @for line in &review.reviews {
                    p { (line.file) " by " (line.reviewer) ": " (line.right) " right, " (line.wrong) " wrong, " (line.unclear) " unclear." }
                }
            }
        }
    }
}
