//! The table in `docs/grounding.md` names a test for each statement, and each of these tests exists.

use std::collections::BTreeMap;

const TABLE: &str = include_str!("../../../../docs/grounding.md");
const TESTS: [&str; 4] = [
    include_str!("ledger.rs"),
    include_str!("citing.rs"),
    include_str!("policy.rs"),
    include_str!("compaction.rs"),
];

fn rows() -> BTreeMap<u32, String> {
    TABLE
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
            let number = cells.next()?.parse().ok()?;
            let test = cells.next_back().filter(|cell| !cell.is_empty());
            Some((
                number,
                test.or_else(|| cells.next_back())?
                    .trim_matches('`')
                    .to_owned(),
            ))
        })
        .collect()
}

#[test]
fn every_statement_has_its_test() {
    let rows = rows();
    for number in (1..=61).filter(|n| ![51, 58, 59].contains(n)) {
        let test = rows
            .get(&number)
            .unwrap_or_else(|| panic!("no row for {number}"));
        assert!(
            test.starts_with(&format!("s{number:02}_")),
            "{number}: {test}"
        );
        let there = TESTS
            .iter()
            .any(|file| file.contains(&format!("#[test]\nfn {test}()")));
        assert!(there, "{test} does not exist");
    }
    assert_eq!(rows.len(), 58);
}

#[test]
fn every_decision_has_its_test() {
    for decision in ["d1_", "d3_", "d4_", "d5_", "d6_", "d7_", "d8_"] {
        assert!(
            TESTS
                .iter()
                .any(|file| file.contains(&format!("#[test]\nfn {decision}"))),
            "{decision}"
        );
    }
}
