//! The report as Markdown, which is also what a terminal is shown.

use super::measure::{Cost, GroupMeasure};
use super::report::Report;

/// A ratio, or `n/a` where there is none.
pub(crate) fn shown_ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "n/a".to_owned(), |value| format!("{value:.4}"))
}

/// The costs with their names, in order.
pub(crate) fn named_costs(report: &Report) -> [(&'static str, &Cost); 4] {
    let costs = &report.costs;
    [
        ("initial", &costs.initial),
        ("incremental", &costs.incremental),
        ("full", &costs.full),
        ("exercise", &costs.exercise),
    ]
}

/// VALID / PARTIAL / INVALID.
pub(crate) fn shown_statuses(group: &GroupMeasure) -> String {
    ["VALID", "PARTIAL", "INVALID"]
        .map(|status| group.statuses.get(status).copied().unwrap_or(0).to_string())
        .join(" / ")
}

/// The report as Markdown.
pub fn markdown(report: &Report) -> String {
    let mut out = format!(
        "# Controlled experiment\n\nGenerator `{}`, profile `{}`, corpus `{}`.\n{} of {} steps recorded{}.\n\n",
        report.generator,
        report.profile,
        report.corpus_sha256.short(),
        report.steps.recorded,
        report.steps.all,
        match report.steps.interrupted_runs {
            0 => String::new(),
            n => format!("; {n} runs were interrupted and gone on with"),
        }
    );
    groups(report, &mut out);
    costs(report, &mut out);
    let found = &report.comparisons;
    out.push_str(&format!(
        "\n{} of {} pairs of incremental and full builds are equal in key, status, claims and tokens of every node; {} in status \
         and claims of the root.\n",
        found.equal, found.pairs, found.roots_equal
    ));
    for pair in found.list.iter().filter(|pair| !pair.equal) {
        out.push_str(&format!(
            "- {} {}: {} differences, roots {}\n",
            pair.case_id,
            pair.step.word(),
            pair.differences,
            if pair.roots_equal {
                "equal"
            } else {
                "different"
            }
        ));
    }
    review(report, &mut out);
    out.push_str(&format!(
        "\nRecords {}: keep this digest elsewhere, and it binds them.\n",
        report.records_sha256
    ));
    out.push_str(
        "\nVALID describes the structure of an output. It never vouches for truth. Support is measured by the experiment's own grammar, apart \
         from the product's check and from gold. The published figures are of another model, corpus and prompts.\n",
    );
    out
}

fn groups(report: &Report, out: &mut String) {
    out.push_str(
        "| group | roots | VALID / PARTIAL / INVALID | claims | valid citations | unsupported | withheld | precision | recall | duplicates |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, group) in &report.groups {
        out.push_str(&format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            group.snapshots,
            shown_statuses(group),
            group.claims,
            shown_ratio(group.reference_validity),
            shown_ratio(group.unsupported_rate),
            group.withheld_claims,
            shown_ratio(group.fact_precision),
            shown_ratio(group.fact_recall),
            group.duplicate_claims,
        ));
        for row in report
            .published
            .groups
            .iter()
            .filter(|row| row.group == name)
        {
            out.push_str(&format!(
                "| *published* | {} | {} | {} | | {:.3} | | {:.3} | {:.4} | |\n",
                row.snapshots,
                row.statuses.map(|count| count.to_string()).join(" / "),
                row.claims,
                row.unsupported_rate,
                row.fact_precision,
                row.fact_recall,
            ));
        }
    }
}

fn costs(report: &Report, out: &mut String) {
    out.push_str(
        "\n| builds | calls | nodes made | generations reused | new tokens | seconds | seconds of the generator | published calls / tokens / seconds |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for (name, cost) in named_costs(report) {
        let published = report.published.costs.iter().find(|row| row.builds == name);
        let shown =
            |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        out.push_str(&format!(
            "| {name} | {} | {} | {} | {} | {:.1} | {:.1} | {} |\n",
            cost.calls,
            cost.recomputed_nodes,
            cost.generations_reused,
            cost.new_tokens,
            cost.seconds,
            cost.generation_seconds,
            published.map_or_else(String::new, |row| format!(
                "{} / {} / {}",
                row.calls,
                shown(row.new_tokens),
                shown(row.seconds)
            )),
        ));
    }
    let all: u64 = named_costs(report).iter().map(|(_, cost)| cost.calls).sum();
    out.push_str(&format!("| all | {all} | | | | | | 1559 |\n"));
}

fn review(report: &Report, out: &mut String) {
    let review = &report.review;
    let Some(digest) = &review.sample_sha256 else {
        out.push_str("\nThe sample for a reader's review is not there yet.\n");
        return;
    };
    out.push_str(&format!(
        "\nReader's review: the sample of {} claims ({}) says {}.\n",
        review.claims,
        digest.short(),
        review.sample.as_deref().unwrap_or("nothing")
    ));
    for line in &review.reviews {
        out.push_str(&format!(
            "- {} by {}: {} right, {} wrong, {} unclear\n",
            line.file,
            line.reviewer.escape_debug(),
            line.right,
            line.wrong,
            line.unclear
        ));
    }
}
