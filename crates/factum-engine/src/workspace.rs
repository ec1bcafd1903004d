//! A workspace: a folder with a `.factum` folder that holds the database and the user's profiles.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use factum_base::{CaseId, PrincipalId};
use factum_casefile::Profile;
use factum_graph::SpecContext;
use factum_store::Repository;

use crate::error::EngineError;
use crate::permission::{permitted, require_owner};
use crate::profile_shelf::ProfileShelf;
use crate::text_cache::TextCache;
use crate::transformation::{Generator, Model, ModelShelf, NoModels};
use crate::vectors::VectorCache;

/// The principal that owns every workspace: it alone may change one.
pub const OWNER: &str = "local";

const FOLDER: &str = ".factum";
const DATABASE: &str = "factum.db";

/// Milliseconds since 1970-01-01T00:00:00Z.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// An open workspace.
#[derive(Clone)]
pub struct Workspace {
    pub(crate) repository: Repository,
    pub(crate) clock: Clock,
    folder: PathBuf,
    profiles: Arc<ProfileShelf>,
    pub(crate) texts: Arc<TextCache>,
    pub(crate) vectors: Arc<VectorCache>,
    models: Arc<dyn ModelShelf>,
}

impl Workspace {
    /// Makes a workspace in `folder`, which is made too where it is absent.
    ///
    /// # Errors
    /// There is one already, or the folder can't be written.
    pub async fn init(folder: &Path, clock: Clock) -> Result<Self, EngineError> {
        let own = folder.join(FOLDER);
        if own.join(DATABASE).exists() {
            return Err(EngineError::WorkspaceExists(folder.to_owned()));
        }
        let profiles = own.join("profiles");
        std::fs::create_dir_all(&profiles).map_err(|e| EngineError::io(&profiles, e))?;
        let repository = Repository::create(&own.join(DATABASE)).await?;
        Ok(Self {
            repository,
            clock,
            folder: folder.to_owned(),
            profiles: Arc::default(),
            texts: Arc::default(),
            vectors: Arc::default(),
            models: Arc::new(NoModels),
        })
    }

    /// Opens the workspace of `folder` or of the nearest folder above it.
    ///
    /// # Errors
    /// There is none, or its database can't be used.
    pub async fn open(folder: &Path, clock: Clock) -> Result<Self, EngineError> {
        let start = std::path::absolute(folder).map_err(|e| EngineError::io(folder, e))?;
        let found = start
            .ancestors()
            .find(|above| above.join(FOLDER).join(DATABASE).exists());
        let folder = found.ok_or_else(|| EngineError::NoWorkspace(start.clone()))?;
        let repository = Repository::open(&folder.join(FOLDER).join(DATABASE)).await?;
        Ok(Self {
            repository,
            clock,
            folder: folder.to_owned(),
            profiles: Arc::default(),
            texts: Arc::default(),
            vectors: Arc::default(),
            models: Arc::new(NoModels),
        })
    }

    /// The same workspace, which finds the identities of models on this shelf.
    #[must_use]
    pub fn with_models(mut self, models: Arc<dyn ModelShelf>) -> Self {
        self.models = models;
        self
    }

    /// The generator of that name, with no model loaded.
    ///
    /// # Errors
    /// There is none of that name here.
    pub fn generator(&self, name: &str) -> Result<Generator, EngineError> {
        if name == Generator::EXTRACTIVE {
            return Ok(Generator::Extractive);
        }
        let identity =
            self.models
                .identity(name)
                .map_err(|message| EngineError::UnknownGenerator {
                    name: name.to_owned(),
                    message,
                })?;
        Ok(Generator::Model(Arc::new(Model {
            name: name.to_owned(),
            identity,
            engine: None,
        })))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where all that is kept is kept.
    pub(crate) fn own_folder(&self) -> PathBuf {
        self.folder.join(FOLDER)
    }

    /// Where the user's own profiles are.
    pub fn profiles_folder(&self) -> PathBuf {
        self.own_folder().join("profiles")
    }

    /// The time now.
    pub fn now(&self) -> i64 {
        (self.clock)()
    }

    /// Sizes on disk.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn sizes(&self) -> Result<factum_store::Sizes, EngineError> {
        self.repository.checkpoint().await?;
        Ok(self.repository.sizes().await?)
    }

    /// Closes the database.
    pub async fn close(self) {
        self.repository.close().await;
    }

    /// Loads a profile by name: the user's own first, then the built-in ones.
    ///
    /// # Errors
    /// There is none of that name, or it can't be used.
    pub fn profile(&self, name: &str) -> Result<Arc<Profile>, EngineError> {
        Ok(self
            .profiles
            .load(&self.profiles_folder(), name)?
            .profile
            .clone())
    }

    /// The spec context of a principal under a profile and generator.
    ///
    /// # Errors
    /// The profile can't be used.
    pub(crate) fn spec_context(
        &self,
        principal: &PrincipalId,
        profile: &str,
        generator: &Generator,
    ) -> Result<Arc<SpecContext>, EngineError> {
        self.profiles
            .load(&self.profiles_folder(), profile)?
            .context(principal, generator)
    }

    /// Whether the caller may change this workspace; ask before reading what it wants to put there.
    ///
    /// # Errors
    /// It may not.
    pub fn check_may_change(&self, caller: &PrincipalId) -> Result<(), EngineError> {
        require_owner(caller)
    }

    /// Whether the caller may build this case file: ask before loading what that needs.
    ///
    /// # Errors
    /// The case file is unknown or hidden, or its profile can't be used.
    pub async fn check_may_build(
        &self,
        case_id: &CaseId,
        principal: &PrincipalId,
    ) -> Result<(), EngineError> {
        let mut tx = self.repository.read().await?;
        let permitted = permitted(&mut tx, case_id, principal).await;
        tx.close().await?;
        self.profile(&permitted?.case.profile).map(|_| ())
    }

    /// Makes a case file.
    ///
    /// # Errors
    /// The caller is not the owner, the id is taken, or the profile can't be used.
    pub async fn new_case(
        &self,
        caller: &PrincipalId,
        case_id: &CaseId,
        title: Option<&str>,
        profile: &str,
    ) -> Result<(), EngineError> {
        require_owner(caller)?;
        self.profile(profile)?;
        let mut tx = self.repository.write().await?;
        if tx.case(case_id).await?.is_some() {
            return Err(EngineError::CaseExists(case_id.clone()));
        }
        tx.insert_case(
            case_id,
            title.unwrap_or(case_id.as_str()),
            profile,
            self.now(),
        )
        .await?;
        Ok(tx.commit().await?)
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}
