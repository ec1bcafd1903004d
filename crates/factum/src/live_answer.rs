//! What a model is writing, word by word, under the question. It goes again once the answer is whole: only then is it known
//! what it rests on. Drawn only where a person watches.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use factum_model::chat::ChatSink;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text::clean;

/// Lines of an answer that are shown while it is written; of a longer one, the end.
const LINES: usize = 12;

/// An answer on its way.
pub(crate) struct LiveAnswer {
    bar: ProgressBar,
    said: Mutex<String>,
}

impl LiveAnswer {
    /// Shows that something is looked for.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.set_message("looking");
        bar.enable_steady_tick(Duration::from_millis(120));
        Self {
            bar,
            said: Mutex::default(),
        }
    }

    /// Shows how far the reading of passages is.
    pub(crate) fn preparing(&self, done: u64, all: u64) {
        let message = format!("reading what passages mean: {done} of {all}, once");
        self.bar.set_message(message);
    }

    fn change(&self, change: impl FnOnce(&mut String)) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut said);
        let (rows, columns) = console::Term::stderr().size();
        let most = LINES.min(usize::from(rows).saturating_sub(2)).max(1);
        self.bar.set_message(last_lines(
            &said,
            usize::from(columns).saturating_sub(4),
            most,
        ));
    }
}

impl ChatSink for LiveAnswer {
    fn text(&self, piece: &str) {
        self.change(|said| said.push_str(piece));
    }

    fn restart(&self) {
        self.change(String::clear);
    }
}

impl Drop for LiveAnswer {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The last lines of a text that is broken between words, where they are no wider than `width` columns.
fn last_lines(text: &str, width: usize, most: usize) -> String {
    let lines: Vec<String> = text
        .lines()
        .flat_map(|line| {
            let line = clean(line);
            let broken = textwrap::wrap(&line, width.max(10));
            broken.into_iter().map(Cow::into_owned).collect::<Vec<_>>()
        })
        .collect();
    let from = lines.len().saturating_sub(most);
    lines[from..].join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_the_end_is_shown() {
        let text = "The hose under the sink burst.\nIt was replaced.";
        assert_eq!(
            last_lines(text, 14, 9),
            "The hose under\n  the sink\n  burst.\n  It was\n  replaced."
        );
        assert_eq!(last_lines(text, 14, 1), "replaced.");
        assert_eq!(last_lines("", 14, 9), "");
    }

    #[test]
    fn text_without_spaces_breaks_at_the_width_of_its_characters() {
        assert_eq!(
            last_lines("水道管が破裂した", 10, 9),
            "水道管が破\n  裂した"
        );
        assert_eq!(last_lines("\u{1b}[2J", 20, 9), "\\u{1b}[2J");
    }
}
