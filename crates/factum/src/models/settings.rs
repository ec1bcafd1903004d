//! `settings.toml` in the models' folder: how local models are run, and how servers are asked.
//!
//! What is set here is in a model's identity where it can change an answer, so it is fixed by this file and
//! never found out while something is built.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use factum_model::local_identity::{EmbedderOptions, LocalOptions};
use factum_model::openai::{
    ApiKey, CheckReport, ConstraintMode, LimitField, OpenAiOptions, TokenCounting,
};
use serde::{Deserialize, Serialize};

use crate::failure::BadInput;

pub(super) const FILE: &str = "settings.toml";
/// The variable that holds a server's key where the settings name no other.
const KEY_VARIABLE: &str = "FACTUM_API_KEY";

/// All settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    #[serde(default)]
    local: LocalSettings,
    #[serde(default)]
    server: Vec<ServerSettings>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LocalSettings {
    threads: u32,
    context_tokens: u32,
    sequences: u32,
    gpu_layers: u32,
}

impl Default for LocalSettings {
    fn default() -> Self {
        let options = LocalOptions::new("", "");
        Self {
            threads: options.threads,
            context_tokens: options.context_tokens,
            sequences: options.sequences,
            gpu_layers: options.gpu_layers,
        }
    }
}

/// How one model of one server is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    url: String,
    model: String,
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    constraint_mode: Option<ConstraintMode>,
    #[serde(default)]
    count_tokens: Option<Counting>,
    #[serde(default)]
    limit_field: LimitField,
    #[serde(default)]
    key_header: Option<String>,
    #[serde(default)]
    key_variable: Option<String>,
    #[serde(default)]
    key_file: Option<PathBuf>,
    #[serde(default)]
    parallel: Option<usize>,
    #[serde(default)]
    deadline_seconds: Option<u64>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Counting {
    Bound,
    LlamaCpp,
    Vllm,
}

impl Settings {
    /// Reads the settings of a folder; without the file, all is as by default.
    pub(crate) fn load(folder: &Path) -> Result<Self, BadInput> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(BadInput(format!("{}: {error}", path.display()), None)),
        };
        toml::from_str(&text).map_err(|error| {
            let hint =
                "correct the file; `factum model check` shows what a server can do".to_owned();
            BadInput(format!("{}: {error}", path.display()), Some(hint))
        })
    }

    /// Local options with these settings.
    pub(crate) fn local(&self, mut options: LocalOptions) -> LocalOptions {
        options.threads = self.local.threads;
        options.context_tokens = self.local.context_tokens;
        options.sequences = self.local.sequences;
        options.gpu_layers = self.local.gpu_layers;
        options
    }

    /// Options of a sentence model with these settings.
    pub(crate) fn embedder(&self, mut options: EmbedderOptions) -> EmbedderOptions {
        options.threads = self.local.threads;
        options.gpu_layers = self.local.gpu_layers;
        options
    }

    fn server(&self, options: &OpenAiOptions) -> Option<&ServerSettings> {
        self.server.iter().find(|server| {
            server.url.trim_end_matches('/') == options.url.as_str()
                && server.model == options.model
        })
    }

    /// Server options with these settings, and the key where it is wanted.
    pub(crate) fn apply(
        &self,
        mut options: OpenAiOptions,
        with_key: bool,
    ) -> Result<OpenAiOptions, BadInput> {
        let server = self.server(&options);
        if let Some(server) = server {
            options.api_version.clone_from(&server.api_version);
            options.mode = server.constraint_mode.unwrap_or(options.mode);
            options.limit = server.limit_field;
            options.key_header.clone_from(&server.key_header);
            options.tokens = match server.count_tokens {
                Some(Counting::LlamaCpp) => TokenCounting::LlamaCpp,
                Some(Counting::Vllm) => TokenCounting::Vllm,
                Some(Counting::Bound) | None => TokenCounting::Bound,
            };
            options.concurrency = server
                .parallel
                .unwrap_or(options.concurrency)
                .clamp(1, 1024);
            if let Some(seconds) = server.deadline_seconds {
                options.deadline = Duration::from_secs(seconds.max(1));
            }
        }
        if with_key {
            options.key = key(server)?;
        }
        Ok(options)
    }
}

fn key(server: Option<&ServerSettings>) -> Result<Option<ApiKey>, BadInput> {
    let file = server.and_then(|server| server.key_file.as_deref());
    let variable = server.and_then(|server| server.key_variable.as_deref());
    match (file, variable) {
        (Some(file), _) => ApiKey::from_file(file).map(Some).map_err(BadInput::of),
        (None, Some(name)) => ApiKey::from_environment(name)
            .map(Some)
            .map_err(BadInput::of),
        (None, None) if std::env::var_os(KEY_VARIABLE).is_some() => {
            ApiKey::from_environment(KEY_VARIABLE)
                .map(Some)
                .map_err(BadInput::of)
        }
        (None, None) => Ok(None),
    }
}

/// What to write into the settings after a check, as TOML.
pub(crate) fn suggestion(report: &CheckReport) -> Option<String> {
    let mode = report.recommended_mode?;
    let mut out = String::from("[[server]]\n");
    let _ = writeln!(out, "url = {:?}", report.url);
    let _ = writeln!(out, "model = {:?}", report.model);
    let _ = writeln!(out, "constraint_mode = {:?}", mode.word());
    let _ = writeln!(out, "count_tokens = {:?}", report.recommended_counting);
    if report.limit_field != LimitField::default() {
        let _ = writeln!(out, "limit_field = {:?}", report.limit_field.word());
    }
    Some(out)
}
