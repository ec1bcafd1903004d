//! The check shares nothing with what it checks.

use std::path::Path;

#[test]
fn the_check_uses_nothing_of_what_builds_compares_or_measures() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![source.join("controlled_verify.rs")];
    for entry in std::fs::read_dir(source.join("controlled_verify")).unwrap() {
        files.push(entry.unwrap().path());
    }
    assert!(files.len() > 20);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            for crate_name in line.split(|c: char| !c.is_alphanumeric() && c != '_') {
                let ours = crate_name.starts_with("factum_");
                let allowed = ["factum_base", "factum_graph"].contains(&crate_name);
                assert!(!ours || allowed, "{}: {line}", file.display());
            }
            let of_graph = line.contains("factum_graph");
            let verifier = line.contains("factum_graph::verify::");
            assert!(!of_graph || verifier, "{}: {line}", file.display());
            let of_this_crate = line.contains("crate::") || line.contains("controlled::");
            assert!(!of_this_crate, "{}: {line}", file.display());
            // Above the module itself there is only the crate.
            assert!(!line.contains("super::super"), "{}: {line}", file.display());
        }
    }
}
