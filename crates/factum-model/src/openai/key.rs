//! An API key: read from the environment or a file, sent in one header, and shown nowhere.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::header::{self, HeaderName, HeaderValue};
use thiserror::Error;

use super::OpenAiError;

// A key this long is no word that an answer could hold by chance; `EMPTY` and `ollama` are.
const SECRET_LENGTH: usize = 20;
// So much of a key is taken for the key.
const BEGINNING: usize = 8;

/// A secret. There is no way to print it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Arc<str>);

/// Why there is no key. Nothing here holds any of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The environment has no such variable, or it is not text.
    #[error("the environment variable {0} is not set, or not text")]
    NoVariable(String),
    /// The file can't be read.
    #[error("the key file {path} can't be read: {message}")]
    NoFile {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// Empty.
    #[error("the key is empty")]
    Empty,
    /// It has characters other than visible ASCII, or quotation marks or backslashes, which are written in
    /// more than one way.
    #[error("the key has characters other than visible ASCII, or quotation marks or backslashes")]
    Characters,
}

impl ApiKey {
    /// The value of the environment variable `name`.
    pub fn from_environment(name: &str) -> Result<Self, KeyError> {
        let value = std::env::var(name).map_err(|_| KeyError::NoVariable(name.to_owned()))?;
        Self::new(&value)
    }

    /// The content of a file, without white space around it.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let content = std::fs::read(path).map_err(|error| KeyError::NoFile {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
        let content = String::from_utf8(content).map_err(|_| KeyError::Characters)?;
        Self::new(&content)
    }

    /// A key that was read elsewhere.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        if !text.bytes().all(plain) {
            return Err(KeyError::Characters);
        }
        Ok(Self(text.into()))
    }

    /// The header that it goes in: as a bearer token, or alone in a header of its own.
    pub(super) fn header(
        &self,
        own: Option<&str>,
    ) -> Result<(HeaderName, HeaderValue), OpenAiError> {
        let (name, value) = match own {
            None => (header::AUTHORIZATION, format!("Bearer {}", self.0)),
            Some(own) => (own_header(own)?, self.0.to_string()),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| KeyError::Characters)?;
        value.set_sensitive(true);
        Ok((name, value))
    }

    // A server may repeat the key in what it says of a refused request, and what it says may be cut in
    // the middle of the key: so its beginning is looked for, and as much taken out as agrees with it.
    pub(super) fn redact(&self, text: String) -> String {
        let beginning = &self.0[..self.0.len().min(BEGINNING)];
        if !text.contains(beginning) {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(beginning) {
            out.push_str(&rest[..at]);
            out.push_str("[key]");
            let pairs = rest[at..].bytes().zip(self.0.bytes());
            let same = pairs.take_while(|(said, key)| said == key).count();
            rest = &rest[at + same..];
        }
        out.push_str(rest);
        out
    }

    // Whether an answer repeats the key, so that keeping the answer would keep the key.
    pub(super) fn is_given_away_by(&self, text: &str) -> bool {
        self.0.len() >= SECRET_LENGTH && text.contains(&*self.0)
    }
}

// A header that steers the exchange itself must not be overwritten with a key.
fn own_header(name: &str) -> Result<HeaderName, OpenAiError> {
    const STEERING: [HeaderName; 8] = [
        header::ACCEPT,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::HOST,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::USER_AGENT,
    ];
    HeaderName::try_from(name)
        .ok()
        .filter(|name| !STEERING.contains(name))
        .ok_or_else(|| OpenAiError::KeyHeader(name.chars().take(80).collect()))
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_from_a_file_without_its_line_end_and_is_not_printed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "sk-visible-123\r\n").unwrap();
        let key = ApiKey::from_file(&path).unwrap();
        let (name, value) = key.header(None).unwrap();
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("authorization", &b"Bearer sk-visible-123"[..])
        );
        assert!(!format!("{key:?} {value:?}").contains("visible"));
        assert_eq!(key.redact("bad sk-visible-123!".into()), "bad [key]!");
        assert_eq!(key.redact("bad sk-visible-".into()), "bad [key]");
        assert_eq!(key.redact("sk-visible-1ä sk-visib".into()), "[key]ä [key]");
        assert_eq!(key.redact("sk-vis".into()), "sk-vis");
    }

    #[test]
    fn a_key_may_go_alone_in_a_header_of_its_own_that_steers_nothing() {
        let key = ApiKey::new("sk-visible-123").unwrap();
        let (name, value) = key.header(Some("Api-Key")).unwrap();
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("api-key", &b"sk-visible-123"[..])
        );
        assert!(!format!("{value:?}").contains("visible"));
        for wrong in ["", "two words", "Host", "content-length", "a\r\nb"] {
            let refused = key.header(Some(wrong));
            assert!(matches!(refused, Err(OpenAiError::KeyHeader(_))), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_without_showing_it() {
        assert_eq!(ApiKey::new(" \n"), Err(KeyError::Empty));
        for text in ["two words", "läuft", "line\nline", "a\"b", "a\\b"] {
            assert_eq!(ApiKey::new(text), Err(KeyError::Characters));
        }
        let missing = ApiKey::from_environment("FACTUM_TEST_NO_SUCH_KEY").unwrap_err();
        assert_eq!(
            missing,
            KeyError::NoVariable("FACTUM_TEST_NO_SUCH_KEY".into())
        );
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            ApiKey::from_file(&folder.path().join("none")),
            Err(KeyError::NoFile { .. })
        ));
    }
}
