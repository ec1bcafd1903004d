//! Digests of files, and the memory that saves hashing gigabytes again.
//!
//! A file is taken to be unchanged while its size, its two times of change and its inode are. On Unix the second of
//! them can't be set by hand; elsewhere, whoever can set a file's times can get around that. `verify` hashes for
//! real.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use factum_base::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::error::PinError;

/// What [`FileDigest`] is a digest of.
#[derive(Debug)]
pub enum FileBytes {}

/// SHA-256 of a file.
pub type FileDigest = Digest<FileBytes>;

/// What a file looked like when it was hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamp {
    /// Its bytes.
    pub size: u64,
    /// When it was changed: nanoseconds since 1970.
    pub changed_ns: u64,
    /// When anything of it was changed, its name and times included: nanoseconds since 1970; 0 where that is not
    /// known.
    #[serde(default)]
    pub touched_ns: u64,
    /// Its inode; 0 where there is none.
    pub inode: u64,
}

impl Stamp {
    /// The stamp of a file as it is now.
    ///
    /// # Errors
    /// The file can't be seen.
    pub fn of(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|metadata| Self::from_metadata(&metadata))
    }

    fn from_metadata(metadata: &Metadata) -> Self {
        let changed = metadata.modified().ok();
        let since = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            size: metadata.len(),
            changed_ns: since.map_or(0, |since| {
                u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
            }),
            touched_ns: touched_ns(metadata),
            inode: inode(metadata),
        }
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

#[cfg(unix)]
fn touched_ns(metadata: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let nanoseconds =
        i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec());
    u64::try_from(nanoseconds).unwrap_or(0)
}

#[cfg(not(unix))]
fn touched_ns(_: &Metadata) -> u64 {
    0
}

/// A file and its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestedFile {
    /// Its name in the model.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its digest.
    pub sha256: FileDigest,
    /// Its bytes.
    pub size: u64,
}

/// Hashes a file. The stamp is taken from the open file before reading, so that a change meanwhile shows.
///
/// # Errors
/// The file can't be read, or the call was cancelled.
pub fn digest_file(
    path: &Path,
    cancel: &CancellationToken,
) -> Result<(FileDigest, Stamp), PinError> {
    let failed = PinError::file(path);
    let mut file = File::open(path).map_err(&failed)?;
    let stamp = Stamp::from_metadata(&file.metadata().map_err(&failed)?);
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        if cancel.is_cancelled() {
            return Err(PinError::Cancelled);
        }
        let read = file.read(&mut chunk).map_err(&failed)?;
        if read == 0 {
            break;
        }
        hasher.update(&chunk[..read]);
    }
    Ok((FileDigest::from_bytes(hasher.finalize().into()), stamp))
}

/// Writes a file whole or not at all.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".writing-")
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

const MEMORY_FILE: &str = "digests.json";
const MAX_MEMORY_BYTES: u64 = 16 << 20;
/// Beyond this, the memory begins anew: it is only a cache.
const MAX_REMEMBERED: usize = 4096;

/// Digests of files that were given by path.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Memory(BTreeMap<String, Remembered>);

#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    sha256: FileDigest,
    stamp: Stamp,
}

impl Memory {
    /// What is remembered in a folder. A memory that can't be read is none: it is only a cache.
    pub(super) fn read(folder: &Path) -> Self {
        let mut bytes = Vec::new();
        let read = File::open(folder.join(MEMORY_FILE))
            .and_then(|file| file.take(MAX_MEMORY_BYTES).read_to_end(&mut bytes));
        match read {
            Ok(_) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(_) => Self::default(),
        }
    }

    /// The digest of a file, hashed unless it is remembered as it is. Says whether it was hashed.
    pub(super) fn digest(
        &mut self,
        path: &Path,
        cancel: &CancellationToken,
    ) -> Result<(FileDigest, Stamp, bool), PinError> {
        let failed = PinError::file(path);
        let absolute = std::fs::canonicalize(path).map_err(&failed)?;
        let now = Stamp::of(&absolute).map_err(&failed)?;
        // A path that is not Unicode is hashed every time rather than confused with another.
        let key = absolute.to_str().map(str::to_owned);
        if let Some(known) = key.as_ref().and_then(|key| self.0.get(key))
            && known.stamp == now
        {
            return Ok((known.sha256, now, false));
        }
        let (sha256, stamp) = digest_file(&absolute, cancel)?;
        if self.0.len() >= MAX_REMEMBERED {
            self.0.clear();
        }
        if let Some(key) = key {
            self.0.insert(key, Remembered { sha256, stamp });
        }
        Ok((sha256, stamp, true))
    }

    /// Keeps what is remembered. A folder that can't be written only costs time later.
    pub(super) fn write(&self, folder: &Path) {
        let Ok(text) = serde_json::to_vec_pretty(self) else {
            return;
        };
        if std::fs::create_dir_all(folder).is_ok() {
            let _ = write_atomically(&folder.join(MEMORY_FILE), &text);
        }
    }
}
