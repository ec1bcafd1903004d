//! The files of an experiment's folder, as bytes. All else works on these.

use std::collections::BTreeMap;
use std::path::Path;

/// The list of records.
pub(super) const LIST: &str = "records.json";
/// Folders in which every file is a record or a text.
pub(super) const FOLDERS: [&str; 3] = ["corpus", "records", "reviews"];
const ALONE: [&str; 4] = [LIST, "experiment.json", "metrics.json", "profile.json"];
/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 29;
const DEEPEST: usize = 8;

/// The files of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExperimentFiles {
    /// Bytes by path under the folder, with `/` between its parts.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What is in the folder and is no plain file of a plain name: links, devices, files too large to read.
    pub strange: Vec<String>,
}

/// Whether a folder holds an experiment.
pub fn is_experiment(folder: &Path) -> bool {
    folder.join(LIST).is_file()
}

/// Reads the files that an experiment consists of. Workspaces under `work/` are scaffolding and not read.
///
/// # Errors
/// A file or folder can't be read.
pub fn read_folder(folder: &Path) -> std::io::Result<ExperimentFiles> {
    let mut found = ExperimentFiles::default();
    for name in ALONE {
        if folder.join(name).symlink_metadata().is_ok() {
            read_one(&folder.join(name), name.to_owned(), 0, &mut found)?;
        }
    }
    for name in FOLDERS {
        if folder.join(name).symlink_metadata().is_ok() {
            read_one(&folder.join(name), name.to_owned(), 0, &mut found)?;
        }
    }
    Ok(found)
}

fn read_one(
    path: &Path,
    name: String,
    depth: usize,
    found: &mut ExperimentFiles,
) -> std::io::Result<()> {
    // Links are not followed: what they lead to is not the experiment's.
    let kind = path.symlink_metadata()?;
    if kind.is_dir() && depth < DEEPEST {
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            match entry.file_name().into_string() {
                Ok(inside) => {
                    read_one(&entry.path(), format!("{name}/{inside}"), depth + 1, found)?;
                }
                Err(inside) => found
                    .strange
                    .push(format!("{name}/{}", inside.to_string_lossy())),
            }
        }
    } else if kind.is_file() && kind.len() <= LARGEST {
        found.files.insert(name, std::fs::read(path)?);
    } else {
        found.strange.push(name);
    }
    Ok(())
}

impl ExperimentFiles {
    /// The bytes of a file.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }
}
