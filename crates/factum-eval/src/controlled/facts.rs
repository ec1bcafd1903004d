//! The experiment's facts, and the one grammar that states them: a line of its own, `Product P-10-00 delivery: 18 October.`
//!
//! This is the grammar of the experiment's definition, written apart from the profile's rule, so that what is
//! measured is not measured by what made it.

use serde::{Deserialize, Serialize};

/// The four fields of a fact.
pub const FIELDS: [&str; 4] = ["delivery", "status", "quantity", "site"];

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// The product, `P-CC-DD`.
    pub subject: String,
    /// One of [`FIELDS`].
    pub field: String,
    /// Its value.
    pub value: String,
}

impl Fact {
    /// A fact.
    pub fn new(subject: &str, field: &str, value: &str) -> Self {
        Self {
            subject: subject.to_owned(),
            field: field.to_owned(),
            value: value.to_owned(),
        }
    }

    /// The line that states it.
    pub fn line(&self) -> String {
        format!("Product {} {}: {}.", self.subject, self.field, self.value)
    }
}

/// The fact that a whole line states, if it states one.
pub fn fact_of_line(line: &str) -> Option<Fact> {
    let rest = line.strip_prefix("Product ")?.strip_suffix('.')?;
    let (subject, rest) = rest.split_once(' ')?;
    let (field, value) = rest.split_once(": ")?;
    let length = value.chars().count();
    let well_formed = is_product(subject)
        && FIELDS.contains(&field)
        && (1..=120).contains(&length)
        && !value.contains(['\r', '\n']);
    well_formed.then(|| Fact::new(subject, field, value))
}

fn is_product(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 7
        && text.starts_with("P-")
        && bytes[4] == b'-'
        && [2, 3, 5, 6].iter().all(|&n| bytes[n].is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_affirmative_line_states_a_fact() {
        let fact = Fact::new("P-10-00", "delivery", "18 October");
        assert_eq!(
            fact_of_line("Product P-10-00 delivery: 18 October."),
            Some(fact.clone())
        );
        assert_eq!(fact_of_line(&fact.line()), Some(fact));
        for other in [
            "",
            "Product P-10-00 delivery: 18 October",
            "\"Product P-10-00 delivery: 18 October.\"",
            "Product P-10-00 colour: red.",
            "Product P-1-000 delivery: 18 October.",
            "Product P-10-00 delivery: .",
            "Product P-10-00 delivery on 2 October is no longer planned.",
            " Product P-10-00 delivery: 18 October.",
        ] {
            assert_eq!(fact_of_line(other), None, "{other}");
        }
    }
}
