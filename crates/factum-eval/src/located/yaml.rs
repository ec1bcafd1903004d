//! YAML with lines: one document, no aliases, no tags, keys that are text.
//!
//! Plain scalars are read by the core schema of YAML 1.2: `no` is text, `.nan` is refused.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::{Field, MOST_DEPTH, Node, SyntaxError, Value, push_field};

/// Reads one YAML document.
///
/// # Errors
/// The text is no YAML, or uses what is refused here.
pub fn read_yaml(text: &str) -> Result<Node, SyntaxError> {
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            SyntaxError::new(line_number(error.marker().line()), error.info().to_owned())
        })?;
        let line = line_of(span);
        let done = match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    return Err(SyntaxError::new(
                        line,
                        "a fixture's file holds one document",
                    ));
                }
                None
            }
            Event::Alias(_) => {
                return Err(SyntaxError::new(line, "an alias; write the value out"));
            }
            Event::Scalar(text, style, _, tag) => {
                refuse_tag(tag.is_some(), line)?;
                Some(scalar(&text, style, line)?)
            }
            Event::SequenceStart(_, tag) => {
                refuse_tag(tag.is_some(), line)?;
                open.push(Open::list(line));
                None
            }
            Event::MappingStart(_, tag) => {
                refuse_tag(tag.is_some(), line)?;
                open.push(Open::map(line));
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(Open::close),
            _ => None,
        };
        if open.len() > MOST_DEPTH {
            return Err(SyntaxError::new(
                line,
                format!("nested more than {MOST_DEPTH} deep"),
            ));
        }
        if let Some(node) = done {
            match open.last_mut() {
                Some(above) => above.take(node)?,
                None => root = Some(node),
            }
        }
    }
    match root {
        Some(node) if node.value != Value::Null => Ok(node),
        _ => Err(SyntaxError::new(1, "the file is empty")),
    }
}

fn line_of(span: Span) -> u32 {
    line_number(span.start.line())
}

fn line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX).max(1)
}

fn refuse_tag(tagged: bool, line: u32) -> Result<(), SyntaxError> {
    if tagged {
        return Err(SyntaxError::new(line, "a tag; write the plain value"));
    }
    Ok(())
}

struct Open {
    line: u32,
    items: Vec<Node>,
    /// None: a list.
    fields: Option<Vec<Field>>,
    key: Option<(String, u32)>,
}

impl Open {
    fn list(line: u32) -> Self {
        Self {
            line,
            items: Vec::new(),
            fields: None,
            key: None,
        }
    }

    fn map(line: u32) -> Self {
        Self {
            fields: Some(Vec::new()),
            ..Self::list(line)
        }
    }

    fn take(&mut self, node: Node) -> Result<(), SyntaxError> {
        let Some(fields) = &mut self.fields else {
            self.items.push(node);
            return Ok(());
        };
        match self.key.take() {
            Some((key, line)) => push_field(
                fields,
                Field {
                    key,
                    line,
                    value: node,
                },
            ),
            None => match node.value {
                Value::Text(key) => {
                    self.key = Some((key, node.line));
                    Ok(())
                }
                other => Err(SyntaxError::new(
                    node.line,
                    format!("a key must be text, not {}", other.kind()),
                )),
            },
        }
    }

    fn close(self) -> Node {
        Node {
            line: self.line,
            value: match self.fields {
                Some(fields) => Value::Map(fields),
                None => Value::List(self.items),
            },
        }
    }
}

fn scalar(text: &str, style: ScalarStyle, line: u32) -> Result<Node, SyntaxError> {
    let value = if style == ScalarStyle::Plain {
        plain(text, line)?
    } else {
        Value::Text(text.to_owned())
    };
    Ok(Node { line, value })
}

fn plain(text: &str, line: u32) -> Result<Value, SyntaxError> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let word = text.trim_start_matches(['-', '+']).to_ascii_lowercase();
            if matches!(word.as_str(), ".nan" | ".inf") {
                return Err(SyntaxError::new(
                    line,
                    format!("{text} is not a finite number"),
                ));
            }
            let numeric = text.contains(|c: char| c.is_ascii_digit())
                && text
                    .chars()
                    .all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'));
            match text.parse::<f64>() {
                Ok(number) if numeric && number.is_finite() => Value::Number(number),
                Ok(_) if numeric => {
                    return Err(SyntaxError::new(
                        line,
                        format!("{text} is not a finite number"),
                    ));
                }
                _ => Value::Text(text.to_owned()),
            }
        }
    })
}
