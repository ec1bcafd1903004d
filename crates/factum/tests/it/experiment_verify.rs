//! Verification of an experiment's folder by the command.

use crate::support::Workspace;

const RUN: &str = "experiment controlled run --corpus made/inputs --out out --case S-030 --case S-037 --generator extractive";

/// A folder without a workspace, with an experiment in it.
fn experiment() -> Workspace {
    let folder = Workspace::bare();
    folder
        .factum("experiment controlled generate --out made")
        .ok();
    folder.factum(RUN).ok();
    folder
}

#[test]
fn an_experiment_is_verified_without_a_workspace_and_a_changed_byte_is_found() {
    let folder = experiment();
    let found = folder.factum("verify out --json").ok().json();
    assert_eq!(found["format"], "factum/verify/1");
    assert_eq!(found["verdict"], "clean");
    assert_eq!(found["steps"], 4);
    assert_eq!(found["nodes"], 6 * 16);
    assert!(found.get("groups").is_none());
    let told = folder.factum("verify out --gold made/gold").ok();
    assert!(told.stdout.contains("no difference"), "{told:#?}");
    assert!(told.stdout.contains("precision 1.0000"), "{told:#?}");

    let path = folder.at("out/records/S-037/exercise-1.full.json");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
    std::fs::write(&path, bytes).unwrap();
    let found = folder.factum("verify out --json").exits(1).json();
    assert_eq!(found["verdict"], "differences");
    let place = &found["findings"][0];
    assert_eq!(place["class"], "file", "{found}");
    assert_eq!(place["place"], "records/S-037/exercise-1.full.json");
    let told = folder.factum("verify out").exits(1);
    assert!(
        told.stdout.contains("DIFFERENCES") && told.stdout.contains("[file]"),
        "{told:#?}"
    );
}

#[test]
fn gold_goes_with_an_experiment_alone_and_must_be_there() {
    let folder = experiment();
    folder.factum("verify wd --gold made/gold").exits(2);
    folder
        .factum("verify out --gold nowhere")
        .fails(3, "nowhere");
}
