//! Identities of models, kept while the files that decide them look the same, so that showing a summary reads no
//! model, no record and no recorded run again.
//!
//! The risk: a file that is changed without its size, times or inode changing would leave a wrong identity. On Unix no
//! one can set the time of the last touch, but clocks tick coarsely: so what was touched within the last seconds is
//! not kept, and neither is what changed while it was read. What another build of this program kept is not believed,
//! since the form of an identity may have changed. Whoever can write into the models' folder can write a wrong
//! identity here, as they could replace the models.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use factum_model::ModelIdentity;
use factum_model::pins::Stamp;
use serde::{Deserialize, Serialize};

const FILE: &str = "identities.json";
const MAX_BYTES: u64 = 4 << 20;
/// Beyond this, what is kept begins anew.
const MOST: usize = 256;
/// The coarsest ticks of file systems are two seconds.
const SETTLED: Duration = Duration::from_secs(3);

/// What is kept, in memory and in a file of the models' folder.
#[derive(Debug)]
pub(super) struct Identities {
    folder: PathBuf,
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The program that kept it.
    program: Option<Stamp>,
    models: BTreeMap<String, Known>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// What the files looked like that decide it; none where one was not there.
    files: BTreeMap<PathBuf, Option<Stamp>>,
    identity: ModelIdentity,
}

impl Identities {
    /// Those of a models' folder.
    pub(super) fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            kept: Mutex::default(),
        }
    }

    /// The identity of a name, found out by `read` unless it is kept. `decisive` are the files that it follows from.
    pub(super) fn get<E>(
        &self,
        name: &str,
        now: SystemTime,
        decisive: impl FnOnce() -> Vec<PathBuf>,
        read: impl FnOnce() -> Result<ModelIdentity, E>,
    ) -> Result<ModelIdentity, E> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get_or_insert_with(|| Kept::read(&self.folder));
        if let Some(known) = kept.models.get(name)
            && known.files.iter().all(|(path, stamp)| look(path) == *stamp)
        {
            return Ok(known.identity.clone());
        }
        let files = looks(decisive());
        let identity = read()?;
        let unchanged = files.iter().all(|(path, stamp)| look(path) == *stamp);
        if unchanged && files.values().all(|stamp| is_settled(*stamp, now)) {
            if kept.models.len() >= MOST {
                kept.models.clear();
            }
            let known = Known {
                files,
                identity: identity.clone(),
            };
            kept.models.insert(name.to_owned(), known);
            kept.write(&self.folder);
        }
        Ok(identity)
    }
}

fn look(path: &Path) -> Option<Stamp> {
    Stamp::of(path).ok()
}

fn looks(paths: Vec<PathBuf>) -> BTreeMap<PathBuf, Option<Stamp>> {
    let seen = paths.into_iter().map(|path| {
        let stamp = look(&path);
        (path, stamp)
    });
    seen.collect()
}

/// Nothing happened to it of late. A file from the future is not settled either.
fn is_settled(stamp: Option<Stamp>, now: SystemTime) -> bool {
    let Some(stamp) = stamp else { return true };
    let last = UNIX_EPOCH + Duration::from_nanos(stamp.changed_ns.max(stamp.touched_ns));
    now.duration_since(last).is_ok_and(|since| since >= SETTLED)
}

fn this_program() -> Option<Stamp> {
    Stamp::of(&std::env::current_exe().ok()?).ok()
}

impl Kept {
    /// What this program kept. What can't be read is nothing: it is only kept to save time.
    fn read(folder: &Path) -> Self {
        let program = this_program();
        let mut bytes = Vec::new();
        let read = File::open(folder.join(FILE))
            .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
        let kept: Option<Self> = read.ok().and_then(|_| serde_json::from_slice(&bytes).ok());
        match kept {
            Some(kept) if program.is_some() && kept.program == program => kept,
            _ => Self {
                program,
                models: BTreeMap::new(),
            },
        }
    }

    /// A folder that is not there is not made for this, and one that can't be written only costs time later.
    fn write(&self, folder: &Path) {
        let Ok(text) = serde_json::to_vec(self) else {
            return;
        };
        let file = tempfile::Builder::new()
            .prefix(".writing-")
            .tempfile_in(folder);
        if let Ok(mut file) = file
            && file.write_all(&text).is_ok()
        {
            let _ = file.persist(folder.join(FILE));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use serde_json::json;

    use super::*;

    const LATER: Duration = Duration::from_mins(1);

    struct Desk {
        folder: tempfile::TempDir,
        reads: Cell<u32>,
    }

    impl Desk {
        fn new(text: &str) -> Self {
            let desk = Self {
                folder: tempfile::tempdir().unwrap(),
                reads: Cell::new(0),
            };
            desk.write(text);
            desk
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("outputs.json")
        }

        fn write(&self, text: &str) {
            std::fs::write(self.file(), text).unwrap();
        }

        fn get(&self, identities: &Identities, now: SystemTime) -> String {
            let absent = self.folder.path().join("settings.toml");
            let read = || -> Result<ModelIdentity, Infallible> {
                self.reads.set(self.reads.get() + 1);
                let text = std::fs::read_to_string(self.file()).unwrap();
                let settings = absent.exists();
                let parts = json!({"kind": "canned", "text": text, "settings": settings});
                Ok(ModelIdentity::new(parts))
            };
            let decisive = || vec![self.file(), absent.clone()];
            let Ok(identity) = identities.get("canned:x", now, decisive, read);
            identity.parts()["text"].as_str().unwrap().to_owned()
        }
    }

    #[test]
    fn an_identity_is_read_once_while_its_files_look_the_same_also_by_another_process() {
        let desk = Desk::new("one");
        let later = SystemTime::now() + LATER;
        let identities = Identities::of(desk.folder.path());
        for _ in 0..3 {
            assert_eq!(desk.get(&identities, later), "one");
        }
        assert_eq!(desk.get(&Identities::of(desk.folder.path()), later), "one");
        assert_eq!(desk.reads.get(), 1);
        // A file that was not there decides too.
        std::fs::write(desk.folder.path().join("settings.toml"), "").unwrap();
        desk.get(&identities, later);
        assert_eq!(desk.reads.get(), 2);
    }

    #[test]
    fn a_changed_file_is_read_again_whatever_its_size_and_time_say() {
        let desk = Desk::new("one");
        let later = SystemTime::now() + LATER;
        let identities = Identities::of(desk.folder.path());
        assert_eq!(desk.get(&identities, later), "one");
        let before = std::fs::metadata(desk.file()).unwrap().modified().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        desk.write("two");
        let file = File::options().write(true).open(desk.file()).unwrap();
        file.set_modified(before).unwrap();
        assert_eq!(desk.get(&identities, later), "two");
    }

    #[test]
    fn what_was_touched_a_moment_ago_is_not_kept() {
        let desk = Desk::new("one");
        let identities = Identities::of(desk.folder.path());
        let now = SystemTime::now();
        for _ in 0..2 {
            desk.get(&identities, now);
        }
        assert_eq!(desk.reads.get(), 2);
        desk.get(&identities, now - LATER);
        assert_eq!(desk.reads.get(), 3, "a file from the future is not settled");
    }

    #[test]
    fn what_another_program_kept_or_damage_left_is_not_believed() {
        let desk = Desk::new("one");
        let later = SystemTime::now() + LATER;
        let kept = desk.folder.path().join(FILE);
        desk.get(&Identities::of(desk.folder.path()), later);
        let text = std::fs::read_to_string(&kept).unwrap();
        let mut other: serde_json::Value = serde_json::from_str(&text).unwrap();
        other["program"]["size"] = json!(1);
        for damaged in [other.to_string(), text[..text.len() / 2].to_owned()] {
            std::fs::write(&kept, damaged).unwrap();
            let before = desk.reads.get();
            desk.get(&Identities::of(desk.folder.path()), later);
            assert_eq!(desk.reads.get(), before + 1);
        }
    }
}
