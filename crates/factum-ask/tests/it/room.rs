//! A workspace in a temporary folder, for the tests that need documents.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_engine::publish::ReadFile;
use factum_engine::retrieve::{Hit, SearchIn};
use factum_engine::{OWNER, Workspace};
use factum_ingest::Limits;

pub(crate) struct Room {
    pub(crate) workspace: Workspace,
    pub(crate) owner: PrincipalId,
    pub(crate) folder: tempfile::TempDir,
}

pub(crate) fn who(name: &str) -> PrincipalId {
    PrincipalId::new(name).unwrap()
}

pub(crate) fn doc(name: &str) -> DocumentId {
    DocumentId::new(name).unwrap()
}

pub(crate) fn case(name: &str) -> CaseId {
    CaseId::new(name).unwrap()
}

pub(crate) fn read(name: &str, text: &str) -> ReadFile {
    ReadFile::read(
        Path::new(name),
        text.as_bytes().to_vec(),
        &Limits::default(),
    )
    .unwrap()
}

impl Room {
    /// A workspace with these case files.
    pub(crate) async fn new(cases: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ticks = AtomicI64::new(1_700_000_000_000);
        let clock = Arc::new(move || ticks.fetch_add(1, Ordering::Relaxed));
        let workspace = Workspace::init(folder.path(), clock).await.unwrap();
        let owner = who(OWNER);
        for name in cases {
            workspace
                .new_case(&owner, &case(name), None, "narrative")
                .await
                .unwrap();
        }
        Self {
            workspace,
            owner,
            folder,
        }
    }

    pub(crate) async fn publish(&self, of: &str, name: &str, text: &str) {
        self.publish_all(of, &[(name.to_owned(), text.to_owned())])
            .await;
    }

    pub(crate) async fn publish_all(&self, of: &str, files: &[(String, String)]) {
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| (doc(name), read(name, text)))
            .collect();
        self.workspace
            .add(&self.owner, &case(of), &files, None)
            .await
            .unwrap();
    }

    pub(crate) async fn search(
        &self,
        principal: &str,
        of: &str,
        question: &str,
        limit: usize,
    ) -> Vec<Hit> {
        let cases = [SearchIn {
            case: case(of),
            documents: BTreeSet::new(),
        }];
        self.workspace
            .search(&who(principal), &cases, question, limit)
            .await
            .unwrap()
    }

    pub(crate) async fn quotes(&self, principal: &str, of: &str, question: &str) -> Vec<String> {
        let hits = self.search(principal, of, question, 10).await;
        hits.into_iter().map(|hit| hit.evidence.quote).collect()
    }
}
