//! Progress bars for people, and Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use factum_engine::build::{StopFlag, Watcher};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows progress where a person watches, and stops on Ctrl-C.
pub(crate) struct Terminal {
    bar: ProgressBar,
    what: &'static str,
    /// Tokens that a model wrote, since when.
    tokens: AtomicU64,
    begun: Instant,
    stop: Arc<StopFlag>,
}

impl Terminal {
    /// Starts to listen for requests to stop.
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
            if crate::signals::asked_to_stop().await {
                raised.raise();
            }
        });
        Self {
            bar,
            what,
            tokens: AtomicU64::new(0),
            begun: Instant::now(),
            stop,
        }
    }

    /// The flag that a request to stop raises.
    pub(crate) fn stop_flag(&self) -> Arc<StopFlag> {
        Arc::clone(&self.stop)
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

    fn tokens(&self, new: u64) {
        let all = self.tokens.fetch_add(new, Ordering::Relaxed) + new;
        let millis = self.begun.elapsed().as_millis().max(1);
        if all > 0 {
            let per_second = u128::from(all) * 1000 / millis;
            self.bar
                .set_message(format!("{}, {per_second} tokens/s", self.what));
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
