//! Where a server is: one base URL, read strictly, and the routes under it.
//!
//! The URL is part of a model's identity, so there is one way to write it, and nothing secret in it.

use std::fmt;
use std::str::FromStr;

use hyper::Uri;
use thiserror::Error;
use url::Url;

/// A server's base URL, such as `http://127.0.0.1:8080/v1`, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseUrl(String);

/// Text that is not a base URL. None of it holds the text, which may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UrlError {
    /// Neither `http://` nor `https://` at its beginning.
    #[error("a server's URL starts with http:// or https://")]
    Scheme,
    /// White space, control characters or backslashes, which readers of URLs disagree on.
    #[error("the server's URL has white space, control characters or backslashes")]
    Characters,
    /// A user name or password.
    #[error("the server's URL may hold no user name or password: give the key apart")]
    Credentials,
    /// A query.
    #[error("the server's URL may have no query: give the API version apart")]
    Query,
    /// A fragment.
    #[error("the server's URL may have no fragment")]
    Fragment,
    /// Not a URL otherwise.
    #[error("not a server's URL: {0}")]
    Syntax(url::ParseError),
    /// A URL that can't be asked for.
    #[error("the server's URL can't be used in a request")]
    Unusable,
}

impl BaseUrl {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Encrypted.
    pub fn is_https(&self) -> bool {
        self.0.starts_with("https://")
    }

    // The servers' own routes (`/tokenize`) are beside `/v1`, not under it.
    fn root(&self) -> &str {
        self.0.strip_suffix("/v1").unwrap_or(&self.0)
    }
}

impl FromStr for BaseUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let lower = text.to_ascii_lowercase();
        let rest = lower
            .strip_prefix("http://")
            .or_else(|| lower.strip_prefix("https://"))
            .ok_or(UrlError::Scheme)?;
        let doubtful = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
        if text.contains(doubtful) {
            return Err(UrlError::Characters);
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
        if authority.is_empty() {
            return Err(UrlError::Syntax(url::ParseError::EmptyHost));
        }
        if authority.contains('@') {
            return Err(UrlError::Credentials);
        }
        if text.contains('?') {
            return Err(UrlError::Query);
        }
        if text.contains('#') {
            return Err(UrlError::Fragment);
        }
        let url = Url::parse(text).map_err(UrlError::Syntax)?;
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The routes that are asked.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    /// Chat completions.
    pub(super) chat: Uri,
    /// The list of models.
    pub(super) models: Uri,
    /// Tokens of a text (llama.cpp) or of messages (vLLM).
    pub(super) tokenize: Uri,
    /// Messages in the chat template (llama.cpp).
    pub(super) apply_template: Uri,
}

impl Routes {
    pub(super) fn new(base: &BaseUrl, api_version: Option<&str>) -> Result<Self, UrlError> {
        let query =
            api_version.map_or_else(String::new, |version| format!("?api-version={version}"));
        let uri = |base: &str, path: &str| -> Result<Uri, UrlError> {
            format!("{base}{path}{query}")
                .parse()
                .map_err(|_| UrlError::Unusable)
        };
        Ok(Self {
            chat: uri(base.as_str(), "/chat/completions")?,
            models: uri(base.as_str(), "/models")?,
            tokenize: uri(base.root(), "/tokenize")?,
            apply_template: uri(base.root(), "/apply-template")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_place_is_written_in_one_way() {
        for text in [
            "http://example.org/v1",
            "HTTP://Example.ORG:80/v1/",
            "http://example.org/x/../v1//",
        ] {
            let url: BaseUrl = text.parse().unwrap();
            assert_eq!(url.as_str(), "http://example.org/v1");
            assert!(!url.is_https());
        }
    }

    #[test]
    fn what_is_no_plain_base_url_is_refused_by_its_reason() {
        let cases = [
            ("ftp://example.org/v1", UrlError::Scheme),
            ("example.org/v1", UrlError::Scheme),
            ("http:example.org", UrlError::Scheme),
            ("", UrlError::Scheme),
            ("http://user:secret@example.org/v1", UrlError::Credentials),
            ("https://@example.org/v1", UrlError::Credentials),
            ("http://example.org/v1?key=secret", UrlError::Query),
            ("http://example.org/v1?", UrlError::Query),
            ("http://example.org/v1#a", UrlError::Fragment),
            ("http://exam\tple.org/v1", UrlError::Characters),
            ("http://example.org\\v1", UrlError::Characters),
            ("http:///v1", UrlError::Syntax(url::ParseError::EmptyHost)),
            (
                "http://example.org:99999",
                UrlError::Syntax(url::ParseError::InvalidPort),
            ),
        ];
        for (text, error) in cases {
            assert_eq!(text.parse::<BaseUrl>(), Err(error), "{text}");
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn the_servers_own_routes_are_beside_the_version() {
        let base: BaseUrl = "http://[::1]:8080/llm/v1".parse().unwrap();
        let routes = Routes::new(&base, Some("2024-10-21")).unwrap();
        assert_eq!(
            routes.chat.to_string(),
            "http://[::1]:8080/llm/v1/chat/completions?api-version=2024-10-21"
        );
        assert_eq!(
            routes.tokenize.to_string(),
            "http://[::1]:8080/llm/tokenize?api-version=2024-10-21"
        );
    }

    proptest! {
        #[test]
        fn a_base_url_that_was_read_reads_the_same_again(text in "https?://[ -~]{0,40}") {
            if let Ok(url) = text.parse::<BaseUrl>() {
                prop_assert_eq!(url.as_str().parse::<BaseUrl>(), Ok(url.clone()));
                let _ = Routes::new(&url, None);
            }
        }
    }
}
