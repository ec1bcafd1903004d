//! Progress bars for people, and Ctrl-C.

use std::sync::Arc;

use factum_engine::build::{StopFlag, Watcher};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows progress where a person watches, and stops on Ctrl-C.
pub(crate) struct Terminal {
    bar: ProgressBar,
    stop: Arc<StopFlag>,
}

impl Terminal {
    /// Starts to listen for Ctrl-C.
    pub(crate) fn new(what: &'static str) -> Self {
        // indicatif draws nothing where stderr is not a terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) =
            ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {per_sec} {eta} left")
        {
            bar.set_style(style);
        }
        bar.set_message(what);
        let stop = Arc::new(StopFlag::default());
        let raised = Arc::clone(&stop);
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                raised.raise();
            }
        });
        Self { bar, stop }
    }
}

impl Watcher for Terminal {
    fn progress(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.bar.set_position(done);
        if done == all {
            self.bar.finish_and_clear();
        }
    }

    fn stop(&self) -> bool {
        self.stop.is_raised()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
