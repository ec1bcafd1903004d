//! The product itself: the source is published in a workspace of its own, built, and served.
//!
//! So what is evaluated is what a user would see, with the product's segmentation, prompts, checks and refusals.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use factum_base::{CaseId, DocumentId, PrincipalId, Span};
use factum_casefile::{Claim, EvidenceId, Profile};
use factum_engine::build::{BuildOptions, Watcher};
use factum_engine::publish::ReadFile;
use factum_engine::serve::Served;
use factum_engine::transformation::{Generator, ModelShelf, spec_context};
use factum_engine::workspace::Clock;
use factum_engine::{EngineError, OWNER, Workspace};
use factum_ingest::{Encoding, Layout, Media, TextLayer};
use factum_model::ModelIdentity;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::fixture::Fixture;
use crate::provider::command::Stopped;
use crate::provider::{Provider, ProviderError};
use crate::source::{Documents, Line, Lines, Source};
use crate::summary::{Beat, Summary};

const TRANSCRIPT: &str = "transcript.txt";

/// The product with a generator.
pub struct Engine {
    name: String,
    generator: Generator,
    profiles: Profiles,
    limit: Duration,
    clock: Clock,
    runtime: Handle,
    stopped: Stopped,
}

/// The profiles under which sources are summarised.
#[derive(Debug, Clone)]
pub struct Profiles {
    /// Of transcripts.
    pub lines: String,
    /// Of documents.
    pub documents: String,
    /// A profile of the user's own: its name and file. Both names above may be its name.
    pub own: Option<(String, String)>,
}

impl Default for Profiles {
    fn default() -> Self {
        Self {
            lines: "session".to_owned(),
            documents: "narrative".to_owned(),
            own: None,
        }
    }
}

impl Profiles {
    /// One profile for all sources.
    pub fn one(name: &str, own: Option<String>) -> Self {
        Self {
            lines: name.to_owned(),
            documents: name.to_owned(),
            own: own.map(|text| (name.to_owned(), text)),
        }
    }

    fn of(&self, source: &Source) -> &str {
        match source {
            Source::Lines(_) => &self.lines,
            Source::Documents(_) => &self.documents,
        }
    }

    /// Reads a profile as a workspace would.
    ///
    /// # Errors
    /// There is none of that name, or it can't be used.
    pub fn load(&self, name: &str) -> Result<Profile, EngineError> {
        let own = |wanted: &str| {
            let (name, text) = self.own.as_ref()?;
            (name == wanted).then(|| text.clone())
        };
        Ok(Profile::load(name, &own)?)
    }
}

/// What the product needs from outside.
pub struct Surroundings {
    /// Longest time for one fixture.
    pub limit: Duration,
    /// The clock.
    pub clock: Clock,
    /// Where the product's work runs. Summaries are asked for from threads outside it.
    pub runtime: Handle,
    /// Whether the run was stopped.
    pub stopped: Stopped,
}

impl Engine {
    /// The product with a generator, under these profiles.
    ///
    /// # Errors
    /// A profile can't be used, or not with this generator.
    pub fn new(
        name: &str,
        generator: Generator,
        profiles: Profiles,
        around: Surroundings,
    ) -> Result<Self, EngineError> {
        let engine = Self {
            name: name.to_owned(),
            generator,
            profiles,
            limit: around.limit,
            clock: around.clock,
            runtime: around.runtime,
            stopped: around.stopped,
        };
        engine.contexts()?;
        Ok(engine)
    }

    /// The digests of all of profile, prompts, model and versions that can change an answer.
    fn contexts(&self) -> Result<[String; 2], EngineError> {
        let principal = PrincipalId::new(OWNER)?;
        let digest = |name: &str| -> Result<String, EngineError> {
            let profile = self.profiles.load(name)?;
            Ok(spec_context(&principal, &profile, &self.generator)?
                .digest()
                .to_string())
        };
        Ok([
            digest(&self.profiles.lines)?,
            digest(&self.profiles.documents)?,
        ])
    }

    async fn build(&self, fixture: &Fixture) -> Result<Summary, ProviderError> {
        let folder = tempfile::Builder::new()
            .prefix("factum-eval-")
            .tempdir()
            .map_err(|error| ProviderError::Engine(error.to_string()))?;
        let workspace = Workspace::init(folder.path(), Arc::clone(&self.clock))
            .await
            .map_err(engine_error)?
            .with_models(Arc::new(OneModel(self.generator.clone())));
        let served = self.build_in(&workspace, fixture).await;
        workspace.close().await;
        served
    }

    async fn build_in(
        &self,
        workspace: &Workspace,
        fixture: &Fixture,
    ) -> Result<Summary, ProviderError> {
        let owner = PrincipalId::new(OWNER).map_err(engine_error)?;
        let case = CaseId::new("fixture").map_err(engine_error)?;
        if let Some((name, text)) = &self.profiles.own {
            let path = workspace.profiles_folder().join(format!("{name}.toml"));
            std::fs::write(path, text).map_err(|error| ProviderError::Engine(error.to_string()))?;
        }
        let profile = self.profiles.of(&fixture.source);
        workspace
            .new_case(&owner, &case, None, profile)
            .await
            .map_err(engine_error)?;
        publish(workspace, &owner, &case, &fixture.source)
            .await
            .map_err(engine_error)?;
        let options = BuildOptions {
            full: false,
            generator: self.generator.clone(),
        };
        workspace
            .build(&case, &owner, options, &Stop(&self.stopped))
            .await
            .map_err(engine_error)?;
        match workspace
            .serve(&case, &owner, Some(self.generator.name()))
            .await
            .map_err(engine_error)?
        {
            Served::Current(summary) => Ok(beats_of(&fixture.source, &summary.claims)),
            Served::Refused(refusal) => {
                let reasons: Vec<&str> = refusal
                    .reasons
                    .iter()
                    .map(|reason| reason.message.as_str())
                    .collect();
                Err(ProviderError::Engine(format!(
                    "the summary was refused as {}: {}",
                    refusal.status.word(),
                    reasons.join("; ")
                )))
            }
        }
    }
}

fn engine_error(error: impl Into<EngineError>) -> ProviderError {
    match error.into() {
        EngineError::Interrupted => ProviderError::Stopped,
        other => ProviderError::Engine(other.to_string()),
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Provider for Engine {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> Value {
        let contexts = self.contexts().unwrap_or_default();
        json!({"kind": "engine", "generator": self.name, "contexts": contexts})
    }

    fn is_costly(&self) -> bool {
        true
    }

    fn parallel(&self) -> usize {
        match &self.generator {
            Generator::Extractive => usize::MAX,
            Generator::Model(model) => model
                .engine
                .as_ref()
                .map_or(1, |engine| engine.capabilities().parallel.max(1)),
        }
    }

    fn summarise(&self, fixture: &Fixture, _: u32) -> Result<Summary, ProviderError> {
        let seconds = self.limit.as_secs();
        // A timer must be made within the runtime.
        let work = async { tokio::time::timeout(self.limit, self.build(fixture)).await };
        self.runtime.block_on(work).unwrap_or_else(|_| {
            let message = format!("no summary within {seconds} s");
            Err(ProviderError::Engine(message))
        })
    }
}

struct Stop<'s>(&'s Stopped);

impl Watcher for Stop<'_> {
    fn progress(&self, _: u64, _: u64) {}

    fn stop(&self) -> bool {
        (self.0)()
    }
}

/// A shelf with one model, whose identity serving asks for.
struct OneModel(Generator);

impl ModelShelf for OneModel {
    fn identity(&self, name: &str) -> Result<ModelIdentity, String> {
        match &self.0 {
            Generator::Model(model) if model.name == name => Ok(model.identity.clone()),
            _ => Err(format!("there is no model {name:?}")),
        }
    }
}

/// Publishes a source as its history: old versions first, then what counts, then what was withdrawn.
async fn publish(
    workspace: &Workspace,
    owner: &PrincipalId,
    case: &CaseId,
    source: &Source,
) -> Result<(), EngineError> {
    match source {
        Source::Lines(lines) => {
            let files = [(
                DocumentId::new(TRANSCRIPT)?,
                plain(&transcript(lines).text)?,
            )];
            workspace.add(owner, case, &files, None).await?;
        }
        Source::Documents(documents) => {
            publish_documents(workspace, owner, case, documents).await?;
        }
    }
    Ok(())
}

async fn publish_documents(
    workspace: &Workspace,
    owner: &PrincipalId,
    case: &CaseId,
    documents: &Documents,
) -> Result<(), EngineError> {
    let mut all: Vec<_> = documents.all().iter().collect();
    all.sort_by_key(|document| document.version);
    for document in &all {
        let files = [(
            DocumentId::new(document.id.as_str())?,
            plain(&document.text)?,
        )];
        workspace.add(owner, case, &files, None).await?;
    }
    for document in all.iter().filter(|document| document.withdrawn) {
        let id = DocumentId::new(document.id.as_str())?;
        workspace.withdraw(owner, case, &id).await?;
    }
    Ok(())
}

/// A text layer as it stands, whatever it looks like: evidence in fixtures counts its characters.
fn plain(text: &str) -> Result<ReadFile, EngineError> {
    let layout = Layout::derive(Media::PlainText, text)
        .ok_or_else(|| EngineError::Worker("plain text has no layout".to_owned()))?;
    Ok(ReadFile {
        layer: TextLayer {
            media: Media::PlainText,
            text: text.to_owned(),
            layout,
            encoding: Encoding {
                name: "UTF-8".to_owned(),
                bom: false,
                detected: false,
            },
            warnings: Vec::new(),
        },
        original: None,
    })
}

/// A transcript as one text with the place of each line in it.
struct Transcript {
    text: String,
    spans: Vec<Span>,
}

fn transcript(lines: &Lines) -> Transcript {
    let mut out = Transcript {
        text: String::new(),
        spans: Vec::with_capacity(lines.all().len()),
    };
    let mut at = 0_u32;
    for line in lines.all() {
        let said = line.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = match &line.speaker {
            Some(speaker) => format!("{speaker}: {said}\n"),
            None => format!("{said}\n"),
        };
        let length = u32::try_from(shown.chars().count()).unwrap_or(u32::MAX);
        out.spans.push(Span::new(at, at.saturating_add(length)));
        at = at.saturating_add(length);
        out.text.push_str(&shown);
    }
    out
}

fn beats_of(source: &Source, claims: &[(String, Claim)]) -> Summary {
    let spans = match source {
        Source::Lines(lines) => Some((lines, transcript(lines).spans)),
        Source::Documents(_) => None,
    };
    let beats = claims
        .iter()
        .map(|(text, claim)| match &spans {
            Some((lines, spans)) => beat_of_lines(lines, spans, text, claim),
            None => Beat {
                text: text.clone(),
                evidence: claim.evidence.iter().map(ToString::to_string).collect(),
                ..Beat::default()
            },
        })
        .collect();
    Summary::of_beats(beats)
}

fn beat_of_lines(lines: &Lines, spans: &[Span], text: &str, claim: &Claim) -> Beat {
    let overlaps =
        |span: &Span, id: &EvidenceId| span.start < id.span.end && id.span.start < span.end;
    let cited: Vec<&Line> = lines
        .all()
        .iter()
        .zip(spans)
        .filter(|(_, span)| claim.evidence.iter().any(|id| overlaps(span, id)))
        .map(|(line, _)| line)
        .collect();
    Beat {
        text: text.to_owned(),
        evidence: cited.iter().map(|line| line.id.clone()).collect(),
        speaker: claim.fields.get("speaker").cloned(),
        t_start: cited.first().and_then(|line| line.start),
        t_end: cited.last().and_then(|line| line.end),
    }
}

/// A profile's file: its name is that of the profile.
///
/// # Errors
/// It can't be read, or is no profile.
pub fn own_profile(path: &std::path::Path) -> Result<Profiles, EngineError> {
    let text = std::fs::read_to_string(path).map_err(|error| EngineError::Io {
        path: PathBuf::from(path),
        source: error,
    })?;
    let name = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let profiles = Profiles::one(&name, Some(text));
    profiles.load(&name)?;
    Ok(profiles)
}
