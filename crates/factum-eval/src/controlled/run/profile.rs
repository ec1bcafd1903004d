//! The experiment's two profiles, and the exercise's change to them.

use std::path::Path;

use factum_casefile::Profile;
use factum_engine::EngineError;

use super::super::folder::{io, write_whole};
use super::RunError;

const GROUNDED: &str = include_str!("../../../profiles/grounded.toml");
const EXERCISE: &str = include_str!("../../../profiles/exercise.toml");
const GROUNDED_BASE: &str = "grounded-base";

/// How the experiment is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentProfile {
    /// The published protocol: nodes reused only, no constraint on decoding, unsupported claims flagged.
    Controlled,
    /// The product's best: decoding held to the sources, unsupported claims withheld, generations reused,
    /// reductions folded.
    Grounded,
}

impl ExperimentProfile {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Controlled => "controlled",
            Self::Grounded => "grounded",
        }
    }

    /// The profile itself, before the exercise.
    pub(super) fn loaded(self) -> Result<Profile, EngineError> {
        Ok(Profile::load(self.word(), &|name| self.text(name, false))?)
    }

    /// The text of a profile by name, where the experiment has one of its own.
    fn text(self, name: &str, exercise: bool) -> Option<String> {
        let (base, extended) = match self {
            Self::Controlled => ("controlled", false),
            Self::Grounded => (GROUNDED_BASE, true),
        };
        if name == GROUNDED_BASE && extended {
            return Some(GROUNDED.to_owned());
        }
        if name != self.word() || !(exercise || extended) {
            return None;
        }
        let change = if exercise { EXERCISE } else { "" };
        Some(format!("extends = \"{base}\"\n{change}"))
    }

    /// Puts the profile where a workspace finds it, with the exercise's change or without.
    pub(super) fn put(self, folder: &Path, exercise: bool) -> Result<(), RunError> {
        for name in [GROUNDED_BASE, self.word()] {
            let path = folder.join(format!("{name}.toml"));
            match self.text(name, exercise) {
                Some(text) => write_whole(&path, text.as_bytes())?,
                None if path.exists() => {
                    std::fs::remove_file(&path)
                        .map_err(|error| RunError::from(io(&path, error)))?;
                }
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_profiles_load_with_the_exercise_s_change_and_without()
    -> Result<(), factum_casefile::ProfileError> {
        for profile in [ExperimentProfile::Controlled, ExperimentProfile::Grounded] {
            let before = Profile::load(profile.word(), &|name| profile.text(name, false))?;
            let after = Profile::load(profile.word(), &|name| profile.text(name, true))?;
            let (before, after) = (before.model.unwrap(), after.model.unwrap());
            assert_eq!(before.leaf_prompt, after.leaf_prompt);
            assert_ne!(before.reduction_prompt, after.reduction_prompt);
        }
        Ok(())
    }
}
