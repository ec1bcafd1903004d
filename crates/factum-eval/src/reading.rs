//! Typed values out of a located tree: every fault is a finding with its line and path, and reading goes on.

use std::fmt;

use serde::Serialize;

use crate::located::{Node, Value};

/// A fault of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The line, from 1.
    pub line: u32,
    /// Where, such as `events[1].mentions[0]`; empty for the whole.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "line {}: {}", self.line, self.message)
        } else {
            write!(f, "line {}: {}: {}", self.line, self.path, self.message)
        }
    }
}

/// Most findings kept of one file.
const MOST_FINDINGS: usize = 50;

/// Collects findings.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(crate) fn add(&mut self, line: u32, path: &str, message: impl Into<String>) {
        if self.0.len() < MOST_FINDINGS {
            self.0.push(Finding {
                line,
                path: path.to_owned(),
                message: message.into(),
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_vec(mut self) -> Vec<Finding> {
        self.0.sort_by_key(|finding| finding.line);
        self.0
    }

    fn expected(&mut self, what: &str, node: &Node, path: &str) {
        let hint = match (&node.value, what) {
            (Value::Number(_) | Value::Bool(_), "text") => "; put it in quotation marks",
            _ => "",
        };
        let message = format!("expected {what}, found {}{hint}", node.value.kind());
        self.add(node.line, path, message);
    }

    /// Text.
    pub(crate) fn text(&mut self, node: &Node, path: &str) -> Option<String> {
        if let Value::Text(text) = &node.value {
            return Some(text.clone());
        }
        self.expected("text", node, path);
        None
    }

    /// Text that says something.
    pub(crate) fn filled(&mut self, node: &Node, path: &str) -> Option<String> {
        let text = self.text(node, path)?;
        if text.trim().is_empty() {
            self.add(node.line, path, "is empty");
            return None;
        }
        Some(text)
    }

    pub(crate) fn number(&mut self, node: &Node, path: &str) -> Option<f64> {
        if let Value::Number(number) = node.value {
            return Some(number);
        }
        self.expected("a number", node, path);
        None
    }

    /// A whole number from 1.
    pub(crate) fn count(&mut self, node: &Node, path: &str) -> Option<u32> {
        let number = self.number(node, path)?;
        if number.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&number) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the range was just checked"
            )]
            return Some(number as u32);
        }
        self.add(node.line, path, "must be a whole number from 1");
        None
    }

    pub(crate) fn truth(&mut self, node: &Node, path: &str) -> Option<bool> {
        if let Value::Bool(truth) = node.value {
            return Some(truth);
        }
        self.expected("true or false", node, path);
        None
    }

    pub(crate) fn list<'n>(&mut self, node: &'n Node, path: &str) -> Option<&'n [Node]> {
        if let Value::List(items) = &node.value {
            return Some(items);
        }
        self.expected("a list", node, path);
        None
    }

    /// Each item of a list by `read`, without those that can't be read.
    pub(crate) fn each<T>(
        &mut self,
        node: &Node,
        path: &str,
        mut read: impl FnMut(&mut Self, &Node, &str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.list(node, path)?;
        Some(
            items
                .iter()
                .enumerate()
                .filter_map(|(place, item)| read(self, item, &format!("{path}[{place}]")))
                .collect(),
        )
    }

    pub(crate) fn texts(&mut self, node: &Node, path: &str) -> Option<Vec<String>> {
        self.each(node, path, |findings, item, path| {
            findings.filled(item, path)
        })
    }

    /// The fields of an object. Keys that are not in `keys` are findings.
    pub(crate) fn map<'n>(
        &mut self,
        node: &'n Node,
        path: &str,
        keys: &[&str],
    ) -> Option<Fields<'n>> {
        let Value::Map(fields) = &node.value else {
            self.expected("an object", node, path);
            return None;
        };
        for field in fields {
            if !keys.contains(&field.key.as_str()) {
                let message = format!("unknown key {:?}; there are {}", field.key, keys.join(", "));
                self.add(field.line, path, message);
            }
        }
        Some(Fields {
            node,
            path: path.to_owned(),
        })
    }
}

/// An object's fields.
pub(crate) struct Fields<'n> {
    node: &'n Node,
    pub(crate) path: String,
}

impl<'n> Fields<'n> {
    pub(crate) fn line(&self) -> u32 {
        self.node.line
    }

    /// A field that is there and is not null.
    pub(crate) fn get(&self, key: &str) -> Option<&'n Node> {
        let Value::Map(fields) = &self.node.value else {
            return None;
        };
        fields
            .iter()
            .find(|field| field.key == key)
            .map(|field| &field.value)
            .filter(|value| value.value != Value::Null)
    }

    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// A field by `read`, where it is there.
    pub(crate) fn optional<T>(
        &self,
        findings: &mut Findings,
        key: &str,
        read: impl FnOnce(&mut Findings, &'n Node, &str) -> Option<T>,
    ) -> Option<T> {
        let node = self.get(key)?;
        read(findings, node, &self.path_of(key))
    }

    /// A field by `read`; a finding where it is absent.
    pub(crate) fn required<T>(
        &self,
        findings: &mut Findings,
        key: &str,
        read: impl FnOnce(&mut Findings, &'n Node, &str) -> Option<T>,
    ) -> Option<T> {
        if self.get(key).is_none() {
            findings.add(self.line(), &self.path, format!("{key:?} is missing"));
            return None;
        }
        self.optional(findings, key, read)
    }
}
