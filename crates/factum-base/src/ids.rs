//! Names that come from outside: case files, documents, principals.
//!
//! They are checked once, here, so that no other code meets an empty id or one that could escape a
//! folder or break a line of output.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longest id accepted, in bytes.
pub const MAX_ID_BYTES: usize = 400;

/// Text that can't be an id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdError {
    /// Nothing, or only white space.
    #[error("the {0} is empty")]
    Empty(&'static str),
    /// Longer than [`MAX_ID_BYTES`].
    #[error("the {0} is longer than {MAX_ID_BYTES} bytes")]
    TooLong(&'static str),
    /// Contains a character that is not allowed in it.
    #[error("the {what} {text:?} contains {found:?}, which is not allowed there")]
    Character {
        /// What was being read.
        what: &'static str,
        /// The text.
        text: String,
        /// The character.
        found: char,
    },
    /// A document id with an empty, `.` or `..` part.
    #[error("the document id {0:?} is not a plain relative path")]
    Path(String),
}

macro_rules! id {
    ($(#[$meta:meta])* $name:ident, $what:literal, $check:expr) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks `text`.
            ///
            /// # Errors
            /// See [`IdError`].
            pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                check_common($what, &text)?;
                let check: fn(&str) -> Result<(), IdError> = $check;
                check(&text)?;
                Ok(Self(text))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

fn check_common(what: &'static str, text: &str) -> Result<(), IdError> {
    if text.trim().is_empty() {
        return Err(IdError::Empty(what));
    }
    if text.len() > MAX_ID_BYTES {
        return Err(IdError::TooLong(what));
    }
    // Bidirectional controls would let one id pose as another on screen.
    let bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    match text.chars().find(|&c| bad(c)) {
        Some(found) => Err(IdError::Character {
            what,
            text: text.to_owned(),
            found,
        }),
        None => Ok(()),
    }
}

fn check_no_slash(what: &'static str, text: &str) -> Result<(), IdError> {
    match text.chars().find(|c| matches!(c, '/' | '\\')) {
        Some(found) => Err(IdError::Character {
            what,
            text: text.to_owned(),
            found,
        }),
        None => Ok(()),
    }
}

id!(
    /// Names a case file.
    CaseId,
    "case id",
    |text| check_no_slash("case id", text)
);
id!(
    /// Names a document within its case file: a relative path with `/` between its parts. It is the
    /// document's identity; a title is not.
    DocumentId,
    "document id",
    |text| {
        if text.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(IdError::Path(text.to_owned()));
        }
        Ok(())
    }
);
id!(
    /// The person, group or service that a summary is made for.
    PrincipalId,
    "principal",
    |_| Ok(())
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_escape_or_deceive_are_refused() {
        assert!(DocumentId::new("letters/2026-03-01.txt").is_ok());
        assert!(DocumentId::new("Überweisung 日本 @2.txt").is_ok());
        for bad in [
            "",
            "  ",
            "../x",
            "a//b",
            "/etc",
            "a/./b",
            "a\nb",
            "a\u{202e}b",
        ] {
            assert!(DocumentId::new(bad).is_err(), "{bad:?}");
        }
        assert!(CaseId::new("a/b").is_err());
        assert!(CaseId::new("x".repeat(401)).is_err());
    }
}
