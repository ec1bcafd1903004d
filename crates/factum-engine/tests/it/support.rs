//! A workspace in a temporary folder, with a clock that ticks by one millisecond a look.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_engine::build::{BuildOptions, BuildReport, Unwatched};
use factum_engine::publish::ReadFile;
use factum_engine::serve::{Refusal, Served, Summary};
use factum_engine::transformation::Generator;
use factum_engine::{OWNER, Workspace};
use factum_ingest::Limits;

pub(crate) struct Desk {
    pub(crate) workspace: Workspace,
    pub(crate) case: CaseId,
    pub(crate) owner: PrincipalId,
    _folder: tempfile::TempDir,
}

pub(crate) fn who(name: &str) -> PrincipalId {
    PrincipalId::new(name).unwrap()
}

pub(crate) fn doc(name: &str) -> DocumentId {
    DocumentId::new(name).unwrap()
}

impl Desk {
    /// A workspace with one case file. `profile_toml` is written as the profile `mine`.
    pub(crate) async fn new(profile: &str, profile_toml: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ticks = AtomicI64::new(1_700_000_000_000);
        let clock = Arc::new(move || ticks.fetch_add(1, Ordering::Relaxed));
        let workspace = Workspace::init(folder.path(), clock).await.unwrap();
        if let Some(text) = profile_toml {
            std::fs::write(workspace.profiles_folder().join("mine.toml"), text).unwrap();
        }
        let (case, owner) = (CaseId::new("case").unwrap(), who(OWNER));
        workspace
            .new_case(&owner, &case, None, profile)
            .await
            .unwrap();
        Self {
            workspace,
            case,
            owner,
            _folder: folder,
        }
    }

    pub(crate) async fn publish(&self, name: &str, text: &str) {
        let read = ReadFile::read(
            Path::new(name),
            text.as_bytes().to_vec(),
            &Limits::default(),
        )
        .unwrap();
        self.workspace
            .add(&self.owner, &self.case, &[(doc(name), read)], None)
            .await
            .unwrap();
    }

    pub(crate) async fn build(&self, principal: &PrincipalId, full: bool) -> BuildReport {
        let options = BuildOptions {
            full,
            generator: Generator::Extractive,
        };
        self.workspace
            .build(&self.case, principal, options, &Unwatched)
            .await
            .unwrap()
    }

    pub(crate) async fn served(&self, principal: &PrincipalId) -> Served {
        self.workspace
            .serve(&self.case, principal, None)
            .await
            .unwrap()
    }

    pub(crate) async fn summary(&self, principal: &PrincipalId) -> Summary {
        match self.served(principal).await {
            Served::Current(summary) => *summary,
            Served::Refused(refusal) => panic!("refused: {refusal:?}"),
        }
    }

    pub(crate) async fn refusal(&self, principal: &PrincipalId) -> Refusal {
        match self.served(principal).await {
            Served::Refused(refusal) => refusal,
            Served::Current(_) => panic!("served as current"),
        }
    }

    /// The newest run equals one that reuses nothing, and independent verification finds no fault.
    pub(crate) async fn check_against_full(&self, principal: &PrincipalId) {
        let incremental = self.build(principal, false).await;
        let full = self.build(principal, true).await;
        assert_eq!(
            full.counts.recomputed, full.counts.nodes,
            "a full build reuses nothing"
        );
        let comparison = self
            .workspace
            .compare(&incremental.run_id, &full.run_id, principal)
            .await
            .unwrap();
        assert!(comparison.equal, "{:?}", comparison.differences);
        assert_eq!(comparison.nodes_compared as u64, full.counts.nodes);
    }
}
