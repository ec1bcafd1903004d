//! Inference refuses to run while gold can be read from where it works.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::super::corpus::{CorpusError, read_error};
use super::super::gold::GOLD_FORMAT;

/// Bytes of a file that are looked at for the format's name. Canonical gold has it in its first line, behind the
/// case files; so files are looked through whole up to this size.
const MOST_LOOKED_AT: u64 = 64_000_000;

/// The first file or folder under `folder` that is called gold, or that says it is. Links are followed.
///
/// # Errors
/// The folder can't be read.
pub fn find_gold(folder: &Path) -> Result<Option<PathBuf>, CorpusError> {
    if !folder.exists() {
        return Ok(None);
    }
    for entry in walkdir::WalkDir::new(folder).follow_links(true) {
        // A circle of links, or a file that went away, hides no gold that could be read.
        let Ok(entry) = entry else { continue };
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let called_gold = entry.depth() > 0 && (name == "gold" || name.starts_with("gold."));
        if called_gold || (entry.file_type().is_file() && says_gold(entry.path())?) {
            return Ok(Some(entry.into_path()));
        }
    }
    Ok(None)
}

fn says_gold(path: &Path) -> Result<bool, CorpusError> {
    let is_json = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("json"));
    // Records hold whole prompts, in which a text could speak of gold; only a file's own format counts.
    if !is_json {
        return Ok(false);
    }
    let file = File::open(path).map_err(|error| read_error(path, error))?;
    let mut bytes = Vec::new();
    file.take(MOST_LOOKED_AT)
        .read_to_end(&mut bytes)
        .map_err(|error| read_error(path, error))?;
    let needle = GOLD_FORMAT.as_bytes();
    if !bytes.windows(needle.len()).any(|window| window == needle) {
        return Ok(false);
    }
    let value: Result<serde_json::Value, _> = serde_json::from_slice(&bytes);
    // What claims to be gold and can't be read may still be read by someone else.
    Ok(value.map_or(true, |value| value["format"] == GOLD_FORMAT))
}
