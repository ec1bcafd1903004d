//! Why a profile can't be used.

use thiserror::Error;

/// A profile that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// Not TOML, a key nobody knows, or a value of the wrong type. The text names it.
    #[error("profile {name:?}: {message}")]
    Malformed {
        /// The profile.
        name: String,
        /// What the reader said, with line and key.
        message: String,
    },
    /// A rule's regular expression does not compile.
    #[error("profile {name:?}, rule {rule:?}: the pattern does not compile: {message}")]
    Pattern {
        /// The profile.
        name: String,
        /// The rule's id.
        rule: String,
        /// What the regular expression library said.
        message: String,
    },
    /// A part names a claim field that the schema lacks.
    #[error(
        "profile {name:?}: {place} names the field {field:?}, which [claim.fields] does not have"
    )]
    UnknownField {
        /// The profile.
        name: String,
        /// Where.
        place: String,
        /// The field.
        field: String,
    },
    /// A value outside its range.
    #[error("profile {name:?}: {message}")]
    Range {
        /// The profile.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// No such profile.
    #[error("there is no profile {name:?}; there are {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Profiles that extend each other in a circle, or too deep.
    #[error("profile {name:?} extends itself, or more than eight others")]
    Circle {
        /// The profile.
        name: String,
    },
}
