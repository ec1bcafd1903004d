//! Profiles that were read once are kept, with the spec contexts made from them, for as long as their
//! files say the same: compiling their patterns would cost more than serving a summary.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use factum_base::PrincipalId;
use factum_casefile::Profile;
use factum_graph::SpecContext;

use crate::error::EngineError;
use crate::transformation::{Generator, spec_context};

#[derive(Default)]
pub(crate) struct ProfileShelf {
    read: Mutex<HashMap<String, Arc<Shelved>>>,
}

pub(crate) struct Shelved {
    pub(crate) profile: Arc<Profile>,
    /// Every file that was asked for, with what it said.
    sources: Vec<(String, Option<String>)>,
    /// By principal and the generator's whole identity.
    contexts: Mutex<HashMap<(PrincipalId, String), Arc<SpecContext>>>,
}

impl ProfileShelf {
    pub(crate) fn load(&self, folder: &Path, name: &str) -> Result<Arc<Shelved>, EngineError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shelved) = read.get(name)
            && shelved
                .sources
                .iter()
                .all(|(name, text)| find(folder, name) == *text)
        {
            return Ok(Arc::clone(shelved));
        }
        let sources = RefCell::new(Vec::new());
        let profile = Profile::load(name, &|name| {
            let text = find(folder, name);
            sources.borrow_mut().push((name.to_owned(), text.clone()));
            text
        })?;
        let shelved = Arc::new(Shelved {
            profile: Arc::new(profile),
            sources: sources.into_inner(),
            contexts: Mutex::default(),
        });
        read.insert(name.to_owned(), Arc::clone(&shelved));
        Ok(shelved)
    }
}

impl Shelved {
    pub(crate) fn context(
        &self,
        principal: &PrincipalId,
        generator: &Generator,
    ) -> Result<Arc<SpecContext>, EngineError> {
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (principal.clone(), generator.identity().to_string());
        if let Some(context) = contexts.get(&key) {
            return Ok(Arc::clone(context));
        }
        let context = Arc::new(spec_context(principal, &self.profile, generator)?);
        contexts.insert(key, Arc::clone(&context));
        Ok(context)
    }
}

fn find(folder: &Path, name: &str) -> Option<String> {
    let plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    plain
        .then(|| std::fs::read_to_string(folder.join(format!("{name}.toml"))).ok())
        .flatten()
}
