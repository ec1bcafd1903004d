//! The arrows between the crates, read from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// Which crates each crate may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("factum-base", &[]),
    ("factum-casefile", &["factum-base"]),
    ("factum-graph", &["factum-base", "factum-casefile"]),
    ("factum-ingest", &["factum-base", "factum-casefile"]),
    ("factum-model", &["factum-base"]),
    (
        "factum-store",
        &["factum-base", "factum-casefile", "factum-graph"],
    ),
    (
        "factum-engine",
        &[
            "factum-base",
            "factum-casefile",
            "factum-graph",
            "factum-ingest",
            "factum-model",
            "factum-store",
        ],
    ),
    (
        "factum-ask",
        &[
            "factum-base",
            "factum-casefile",
            "factum-engine",
            "factum-graph",
            "factum-ingest",
            "factum-model",
            "factum-store",
        ],
    ),
    (
        "factum-eval",
        &[
            "factum-base",
            "factum-casefile",
            "factum-engine",
            "factum-graph",
            "factum-ingest",
            "factum-model",
            "factum-store",
        ],
    ),
    (
        "factum",
        &[
            "factum-ask",
            "factum-base",
            "factum-casefile",
            "factum-engine",
            "factum-eval",
            "factum-graph",
            "factum-ingest",
            "factum-model",
            "factum-store",
        ],
    ),
];

/// Crates without any I/O or asynchrony.
const PURE: &[&str] = &["factum-base", "factum-casefile", "factum-graph"];

fn packages() -> BTreeMap<String, Package> {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .unwrap();
    metadata
        .packages
        .into_iter()
        .map(|package| (package.name.to_string(), package))
        .collect()
}

/// What a package depends on outside its tests, optional or not.
fn dependencies(package: &Package) -> BTreeSet<&str> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind != DependencyKind::Development)
        .map(|dependency| dependency.name.as_str())
        .collect()
}

#[test]
fn crates_depend_only_on_those_below_them() {
    let packages = packages();
    let known: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = packages.keys().map(String::as_str).collect();
    assert_eq!(
        found, known,
        "a crate without a place in the table of arrows"
    );
    for (name, allowed) in ARROWS {
        let used: BTreeSet<&str> = dependencies(&packages[*name])
            .into_iter()
            .filter(|dependency| dependency.starts_with("factum"))
            .collect();
        let wrong: Vec<&&str> = used.iter().filter(|one| !allowed.contains(one)).collect();
        assert!(wrong.is_empty(), "{name} must not depend on {wrong:?}");
    }
}

#[test]
fn tests_of_a_crate_look_no_further_up_than_the_crate_itself() {
    for (name, package) in &packages() {
        let allowed = ARROWS.iter().find(|(known, _)| known == name).unwrap().1;
        for dependency in &package.dependencies {
            if dependency.name.starts_with("factum") {
                assert!(
                    allowed.contains(&dependency.name.as_str()),
                    "{name} must not depend on {}, not even in tests",
                    dependency.name
                );
            }
        }
    }
}

#[test]
fn pure_crates_have_no_runtime_and_no_database() {
    let packages = packages();
    for name in PURE {
        for banned in [
            "tokio",
            "sqlx",
            "async-trait",
            "futures",
            "reqwest",
            "walkdir",
            "tempfile",
        ] {
            assert!(
                !dependencies(&packages[*name]).contains(banned),
                "{name} must not depend on {banned}"
            );
        }
    }
}

#[test]
fn only_the_binary_knows_the_terminal() {
    for (name, package) in &packages() {
        for banned in ["anyhow", "clap", "indicatif"] {
            let used = dependencies(package).contains(banned);
            assert!(
                !used || name == "factum",
                "{name} must not depend on {banned}"
            );
        }
    }
}

#[test]
fn only_the_store_knows_the_database() {
    for (name, package) in &packages() {
        let used = dependencies(package).contains("sqlx");
        assert!(
            !used || name == "factum-store",
            "{name} must not depend on sqlx"
        );
    }
}

#[test]
fn a_directory_is_called_like_its_crate() {
    for (name, package) in &packages() {
        let folder = package.manifest_path.parent().unwrap().file_name().unwrap();
        assert_eq!(folder, name.as_str());
    }
}
