//! The kinds of text layer there are.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a document was read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Media {
    /// Text without markup.
    PlainText,
    /// Markdown; the markup stays in the text layer.
    Markdown,
    /// A web page; the text layer is what a reader would see.
    Html,
    /// Values separated by commas, semicolons, tabs or bars.
    Csv,
    /// JSON, kept as written.
    Json,
    /// WebVTT captions.
    Vtt,
    /// SubRip captions.
    Srt,
}

/// Text that names no [`Media`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a known media type: {0:?}")]
pub struct MediaError(pub String);

impl Media {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::PlainText,
        Self::Markdown,
        Self::Html,
        Self::Csv,
        Self::Json,
        Self::Vtt,
        Self::Srt,
    ];

    /// The media type as the internet writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PlainText => "text/plain",
            Self::Markdown => "text/markdown",
            Self::Html => "text/html",
            Self::Csv => "text/csv",
            Self::Json => "application/json",
            Self::Vtt => "text/vtt",
            Self::Srt => "application/x-subrip",
        }
    }
}

impl fmt::Display for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Media {
    type Err = MediaError;

    fn from_str(text: &str) -> Result<Self, MediaError> {
        Self::ALL
            .into_iter()
            .find(|media| media.as_str() == text)
            .ok_or_else(|| MediaError(text.chars().take(80).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_read_back() {
        for media in Media::ALL {
            assert_eq!(media.as_str().parse::<Media>().unwrap(), media);
        }
        assert!("text/x".parse::<Media>().is_err());
    }
}
