//! Serving, and one edit served again, on a real database of 2,000 documents.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use divan::Bencher;
use factum_base::{CaseId, PrincipalId};
use factum_engine::build::{BuildOptions, Unwatched};
use factum_engine::extract::{salience, sentences};
use factum_engine::scale::file;
use factum_engine::transformation::Generator;
use factum_engine::{OWNER, Workspace};
use tokio::runtime::Runtime;

fn main() {
    divan::main();
}

const DOCUMENTS: u64 = 2_000;
const OPTIONS: BuildOptions = BuildOptions {
    full: false,
    generator: Generator::Extractive,
};

struct Desk {
    runtime: Runtime,
    workspace: Workspace,
    owner: PrincipalId,
    case: CaseId,
    _folder: tempfile::TempDir,
}

fn desk() -> Desk {
    let runtime = Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let (owner, case) = (
        PrincipalId::new(OWNER).expect("an id"),
        CaseId::new("case").expect("an id"),
    );
    let workspace = runtime.block_on(async {
        let workspace = Workspace::init(folder.path(), Arc::new(|| 0))
            .await
            .expect("a workspace");
        workspace
            .new_case(&owner, &case, None, "narrative")
            .await
            .expect("a case file");
        let files: Vec<_> = (0..DOCUMENTS)
            .map(|n| file(n, n).expect("a document"))
            .collect();
        workspace
            .add(&owner, &case, &files, None)
            .await
            .expect("published");
        workspace
            .build(&case, &owner, OPTIONS, &Unwatched)
            .await
            .expect("built");
        workspace
    });
    Desk {
        runtime,
        workspace,
        owner,
        case,
        _folder: folder,
    }
}

#[divan::bench]
fn serve(bencher: Bencher<'_, '_>) {
    let desk = desk();
    bencher.bench_local(|| {
        desk.runtime
            .block_on(desk.workspace.serve(&desk.case, &desk.owner, None))
            .expect("served")
    });
}

#[divan::bench(sample_count = 30)]
fn edit_build_and_serve(bencher: Bencher<'_, '_>) {
    let desk = desk();
    let text = AtomicU64::new(DOCUMENTS);
    bencher.bench_local(|| {
        desk.runtime.block_on(async {
            let (id, _) = file(700, 700).expect("a document");
            let (_, edited) = file(700, text.fetch_add(1, Ordering::Relaxed)).expect("a document");
            desk.workspace
                .add(&desk.owner, &desk.case, &[(id, edited)], None)
                .await
                .expect("published");
            desk.workspace
                .build(&desk.case, &desk.owner, OPTIONS, &Unwatched)
                .await
                .expect("built");
            desk.workspace
                .serve(&desk.case, &desk.owner, None)
                .await
                .expect("served")
        })
    });
}

#[divan::bench]
fn salient_sentences_of_a_document(bencher: Bencher<'_, '_>) {
    let (_, document) = file(3, 3).expect("a document");
    bencher.bench_local(|| {
        let found = sentences::sentences(&document.layer.text);
        salience::salience(&document.layer.text, &found)
    });
}
