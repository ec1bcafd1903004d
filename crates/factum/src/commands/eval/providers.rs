//! Providers by name.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use factum_engine::build::StopFlag;
use factum_engine::transformation::Generator;
use factum_eval::provider::command::{Limits, Program};
use factum_eval::provider::engine::{Engine, Profiles, Surroundings, own_profile};
use factum_eval::provider::stored::Stored;
use factum_eval::provider::{Provider, Stub};

use super::args::RunArgs;
use super::limit;
use crate::commands::clock;
use crate::failure::{BadInput, Usage};
use crate::models::{Named, Shelf};

/// A provider ready for use.
pub(super) struct Ready {
    pub(super) provider: Box<dyn Provider>,
    /// The profile, as reports show it.
    pub(super) profile: Option<String>,
}

const KNOWN: &str = "stub, stored:PATH, 'command:PROGRAM ARGS', extractive, local[:MODEL], openai:URL,MODEL, replay:FILE and canned:FILE";

pub(super) async fn provider(args: &RunArgs, stop: Arc<StopFlag>) -> Result<Ready> {
    let name = args.provider.as_str();
    let (kind, rest) = name.split_once(':').unwrap_or((name, ""));
    let stopped = Arc::new(move || stop.is_raised());
    let simple: Box<dyn Provider> = match (kind, rest) {
        ("stub", "") => Box::new(Stub),
        ("stored", path) if !path.is_empty() => {
            Box::new(Stored::open(Path::new(path)).map_err(BadInput::of)?)
        }
        ("command", line) if !line.trim().is_empty() => {
            let limits = Limits {
                time: limit(args),
                bytes: args.max_output,
            };
            Box::new(Program::new(line, limits, stopped))
        }
        ("extractive" | "local" | "openai" | "replay" | "canned", _) => {
            return product(args, name, stopped).await;
        }
        _ => {
            let hint = format!("there are {KNOWN}");
            return Err(BadInput(format!("there is no provider {name:?}"), Some(hint)).into());
        }
    };
    if args.profile.is_some() {
        let message = format!("--profile says how Factum summarises; {kind} does not ask it");
        return Err(Usage(message).into());
    }
    Ok(Ready {
        provider: simple,
        profile: None,
    })
}

async fn product(
    args: &RunArgs,
    name: &str,
    stopped: Arc<dyn Fn() -> bool + Send + Sync>,
) -> Result<Ready> {
    let named = Named::parse(name).map_err(|BadInput(message, _)| {
        BadInput(message, Some(format!("providers are {KNOWN}")))
    })?;
    let (profiles, shown) = profiles(args)?;
    let around = Surroundings {
        limit: limit(args),
        clock: clock(),
        runtime: tokio::runtime::Handle::current(),
        stopped,
    };
    let full = named.name();
    let generator = if named == Named::Extractive {
        Generator::Extractive
    } else {
        let shelf = Shelf::open()?;
        tokio::task::spawn_blocking(move || shelf.load(&named)).await??
    };
    let engine = Engine::new(&full, generator, profiles, around)?;
    Ok(Ready {
        provider: Box::new(engine),
        profile: Some(shown),
    })
}

fn profiles(args: &RunArgs) -> Result<(Profiles, String)> {
    match args.profile.as_deref() {
        None => {
            let profiles = Profiles::default();
            let shown = format!("{}/{}", profiles.lines, profiles.documents);
            Ok((profiles, shown))
        }
        Some(path) if Path::new(path).extension().is_some_and(|end| end == "toml") => {
            let profiles = own_profile(Path::new(path))?;
            let shown = profiles.lines.clone();
            Ok((profiles, shown))
        }
        Some(name) => Ok((Profiles::one(name, None), name.to_owned())),
    }
}
