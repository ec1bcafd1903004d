//! Which folder models live in.

use std::ffi::OsString;
use std::path::PathBuf;

use thiserror::Error;

/// The environment names no folder: no `FACTUM_MODELS`, and no home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there is no folder for models: set FACTUM_MODELS")]
pub struct NoHome;

/// `FACTUM_MODELS`, else `factum/models` in the platform's folder for data.
///
/// # Errors
/// The environment says neither.
pub fn models_folder(get: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, NoHome> {
    let folder = |name: &str| {
        get(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(folder) = folder("FACTUM_MODELS") {
        return Ok(folder);
    }
    let data = if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        // A relative XDG_DATA_HOME is to be ignored, as its standard says.
        folder("XDG_DATA_HOME")
            .filter(|data| data.is_absolute())
            .or_else(|| folder("HOME").map(|home| home.join(".local/share")))
    };
    data.map(|data| data.join("factum").join("models"))
        .ok_or(NoHome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_comes_first_and_an_empty_one_does_not_count() {
        let named = |name: &str| match name {
            "FACTUM_MODELS" => Some("/models".into()),
            _ => Some("/home/ada".into()),
        };
        assert_eq!(models_folder(named), Ok(PathBuf::from("/models")));
        let empty = |name: &str| match name {
            "FACTUM_MODELS" => Some(OsString::new()),
            "HOME" | "LOCALAPPDATA" => Some("/home/ada".into()),
            _ => None,
        };
        let found = models_folder(empty).unwrap();
        assert!(found.starts_with("/home/ada") && found.ends_with("factum/models"));
        assert_eq!(models_folder(|_| None), Err(NoHome));
    }
}
