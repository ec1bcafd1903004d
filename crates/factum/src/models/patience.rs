//! Threads of a local model wait without spinning.
//!
//! The engine computes with OpenMP, whose threads spin while they wait for each other. Where another program
//! uses a core too, they spend their time waiting for one that does not run, and a model becomes many times slower.
//! The setting is read when the program starts, before any of its own code, so it can only be made by starting
//! anew.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

const SETTING: &str = "OMP_WAIT_POLICY";

/// Starts the program anew with patient threads, unless someone has said how they should wait. Where that
/// can't be done, the model only runs slower.
pub(crate) fn wait_without_spinning() {
    if std::env::var_os(SETTING).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    // Comes back only where it failed.
    let _ = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(SETTING, "passive")
        .exec();
}
