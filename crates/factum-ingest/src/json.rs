//! JSON: the text stays as written, the layout knows which value a span is in.
//!
//! The reader here checks the grammar (RFC 8259) with a stack of its own, so depth can't overflow the
//! program's, and notes where values are. Values themselves are never built.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use factum_base::Span;

use crate::lines::LineStarts;
use crate::location::Location;
use crate::warning::Warning;

/// Most values whose places are kept; behind these a location has lines only.
const MOST_NODES: usize = 1 << 20;
/// A pointer longer than this helps nobody.
const DEEPEST_POINTER: usize = 64;
const LONGEST_POINTER: usize = 2000;

/// The values of a JSON text, in the order in which they start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tree {
    lines: LineStarts,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Node {
    /// First code point and one past the last.
    start: u32,
    end: u32,
    parent: u32,
    step: Step,
}

/// How a value is reached from its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Step {
    Root,
    Index(u32),
    /// Byte range of the key in the text, quotes included.
    Key(u32, u32),
}

const NO_NODE: u32 = u32::MAX;

/// A checked JSON text.
pub(crate) struct Report {
    pub(crate) tree: Tree,
    pub(crate) lone_surrogates: u32,
    pub(crate) depth: u32,
    /// Line of the first error, and what it is.
    pub(crate) error: Option<(u32, &'static str)>,
}

/// Checks a text and notes its values.
pub(crate) fn read(text: &str) -> Report {
    let mut scanner = Scanner::new(text, MOST_NODES);
    let error = scanner.run().err();
    let lines = LineStarts::new(text);
    scanner.close_all();
    Report {
        error: error.map(|problem| (lines.line_of(scanner.point), problem)),
        lone_surrogates: scanner.lone_surrogates,
        depth: scanner.depth,
        tree: Tree {
            lines,
            nodes: scanner.nodes,
        },
    }
}

/// The text is JSON.
pub(crate) fn is_valid(text: &str) -> bool {
    Scanner::new(text, 0).run().is_ok()
}

impl Report {
    pub(crate) fn warnings(&self, max_depth: u32) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if let Some((line, problem)) = self.error {
            warnings.push(Warning::InvalidJson {
                line,
                problem: problem.to_owned(),
            });
        }
        if self.lone_surrogates > 0 {
            warnings.push(Warning::LoneSurrogate {
                count: self.lone_surrogates,
            });
        }
        if self.depth > max_depth {
            warnings.push(Warning::DeepNesting { depth: self.depth });
        }
        warnings
    }
}

/// An array or object that is not closed yet.
struct Open {
    node: u32,
    is_object: bool,
    /// Values so far.
    count: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// `at` in code points.
    point: u32,
    nodes: Vec<Node>,
    most_nodes: usize,
    open: Vec<Open>,
    key: Option<(u32, u32)>,
    lone_surrogates: u32,
    depth: u32,
}

type Checked = Result<(), &'static str>;

impl<'a> Scanner<'a> {
    fn new(text: &'a str, most_nodes: usize) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
            point: 0,
            nodes: Vec::new(),
            most_nodes,
            open: Vec::new(),
            key: None,
            lone_surrogates: 0,
            depth: 0,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn step(&mut self) {
        if let Some(byte) = self.peek() {
            self.point += u32::from(byte & 0xc0 != 0x80);
            self.at += 1;
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.step();
        }
    }

    fn run(&mut self) -> Checked {
        let mut expect = Expect::Value;
        loop {
            self.skip_space();
            let Some(byte) = self.peek() else {
                return Err("the text ends too early");
            };
            expect = match (expect, byte) {
                (Expect::ValueOrEnd, b']') | (Expect::KeyOrEnd, b'}') => self.close(),
                (Expect::Value | Expect::ValueOrEnd, _) => self.value(byte)?,
                (Expect::Key | Expect::KeyOrEnd, b'"') => self.key()?,
                (Expect::Key | Expect::KeyOrEnd, _) => return Err("a key in quotes is expected"),
                (Expect::CommaOrEnd, _) => self.after_value(byte)?,
            };
            if self.open.is_empty() {
                self.skip_space();
                return if self.peek().is_none() {
                    Ok(())
                } else {
                    Err("text follows the value")
                };
            }
        }
    }

    fn after_value(&mut self, byte: u8) -> Result<Expect, &'static str> {
        let is_object = self.open.last().is_some_and(|open| open.is_object);
        match (byte, is_object) {
            (b',', _) => {
                self.step();
                Ok(if is_object {
                    Expect::Key
                } else {
                    Expect::Value
                })
            }
            (b']', false) | (b'}', true) => Ok(self.close()),
            _ => Err("a comma or the closing bracket is expected"),
        }
    }

    fn value(&mut self, byte: u8) -> Result<Expect, &'static str> {
        let node = self.begin();
        match byte {
            b'[' | b'{' => {
                self.step();
                let is_object = byte == b'{';
                self.open.push(Open {
                    node,
                    is_object,
                    count: 0,
                });
                self.depth = self
                    .depth
                    .max(u32::try_from(self.open.len()).unwrap_or(u32::MAX));
                return Ok(if is_object {
                    Expect::KeyOrEnd
                } else {
                    Expect::ValueOrEnd
                });
            }
            b'"' => self.string()?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return Err("a value is expected"),
        }
        self.end(node);
        Ok(Expect::CommaOrEnd)
    }

    /// Notes where a value starts.
    fn begin(&mut self) -> u32 {
        let key = self.key.take();
        let (parent, step) = match self.open.last_mut() {
            None => (NO_NODE, Step::Root),
            Some(open) => {
                let index = open.count;
                open.count = open.count.saturating_add(1);
                (
                    open.node,
                    key.map_or(Step::Index(index), |(start, end)| Step::Key(start, end)),
                )
            }
        };
        if self.nodes.len() >= self.most_nodes {
            return NO_NODE;
        }
        self.nodes.push(Node {
            start: self.point,
            end: self.point,
            parent,
            step,
        });
        narrow(self.nodes.len() - 1)
    }

    fn end(&mut self, node: u32) {
        let end = self.point;
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.end = end;
        }
    }

    fn close(&mut self) -> Expect {
        self.step();
        if let Some(open) = self.open.pop() {
            self.end(open.node);
        }
        Expect::CommaOrEnd
    }

    /// After an error: what is open reaches to where reading stopped.
    fn close_all(&mut self) {
        while let Some(open) = self.open.pop() {
            self.end(open.node);
        }
    }

    fn key(&mut self) -> Result<Expect, &'static str> {
        let start = self.at;
        self.string()?;
        self.key = Some((narrow(start), narrow(self.at)));
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err("a colon is expected after the key");
        }
        self.step();
        Ok(Expect::Value)
    }

    fn word(&mut self, word: &[u8]) -> Checked {
        if !self.bytes[self.at..].starts_with(word) {
            return Err("a value is expected");
        }
        for _ in word {
            self.step();
        }
        Ok(())
    }

    fn digits(&mut self) -> Checked {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err("a digit is expected");
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.step();
        }
        Ok(())
    }

    fn number(&mut self) -> Checked {
        if self.peek() == Some(b'-') {
            self.step();
        }
        if self.peek() == Some(b'0') {
            self.step();
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.step();
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.step();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.step();
            }
            self.digits()?;
        }
        Ok(())
    }

    fn string(&mut self) -> Checked {
        self.step();
        loop {
            match self.peek() {
                None => return Err("a string is not closed"),
                Some(b'"') => {
                    self.step();
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(0..=0x1f) => return Err("a control character in a string"),
                Some(_) => self.step(),
            }
        }
    }

    fn escape(&mut self) -> Checked {
        self.step();
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.step();
                Ok(())
            }
            Some(b'u') => {
                let unit = self
                    .hex(self.at + 1)
                    .ok_or("an escape is not four hex digits")?;
                (0..5).for_each(|_| self.step());
                let followed = self.bytes[self.at..].starts_with(b"\\u")
                    && self
                        .hex(self.at + 2)
                        .is_some_and(|low| (0xdc00..0xe000).contains(&low));
                match unit {
                    0xd800..0xdc00 if followed => (0..6).for_each(|_| self.step()),
                    0xd800..0xe000 => self.lone_surrogates = self.lone_surrogates.saturating_add(1),
                    _ => {}
                }
                Ok(())
            }
            _ => Err("an unknown escape"),
        }
    }

    fn hex(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at..at + 4)?;
        digits.iter().try_fold(0, |value, &digit| {
            Some(value * 16 + char::from(digit).to_digit(16)?)
        })
    }
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Tree {
    pub(crate) fn locate(&self, text: &str, span: Span) -> Location {
        let (first, last) = self.lines.lines_of(span);
        Location::Json {
            first,
            last,
            pointer: self.pointer(text, span),
        }
    }

    /// RFC 6901 pointer to the innermost value that holds the span.
    fn pointer(&self, text: &str, span: Span) -> Option<String> {
        let found = self
            .nodes
            .partition_point(|node| node.start <= span.start)
            .checked_sub(1)?;
        // Behind the last place kept nothing is known.
        if self.nodes.len() >= MOST_NODES && found + 1 == self.nodes.len() {
            return None;
        }
        let end = span.end.max(span.start.saturating_add(1));
        let mut node = self.nodes.get(found)?;
        while node.end < end {
            node = self.parent(node)?;
        }
        let mut steps = Vec::new();
        loop {
            match node.step {
                Step::Root => break,
                Step::Index(index) => steps.push(index.to_string()),
                Step::Key(start, end) => steps.push(key_text(text, start as usize..end as usize)),
            }
            if steps.len() > DEEPEST_POINTER {
                return None;
            }
            node = self.parent(node)?;
        }
        let mut pointer = String::new();
        for step in steps.iter().rev() {
            pointer.push('/');
            pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        }
        (pointer.len() <= LONGEST_POINTER).then_some(pointer)
    }

    fn parent(&self, node: &Node) -> Option<&Node> {
        // Parents come first; holding to it keeps a damaged layout from leading in circles.
        self.nodes
            .get(node.parent as usize)
            .filter(|parent| parent.start < node.start)
    }
}

fn key_text(text: &str, range: Range<usize>) -> String {
    let raw = text.get(range).unwrap_or("");
    if raw.len() > LONGEST_POINTER {
        return raw.to_owned();
    }
    // A key with half a surrogate pair has no text of its own; its spelling has to do.
    serde_json::from_str(raw).unwrap_or_else(|_| raw.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str, wanted: &str) -> String {
        let byte = text.find(wanted).unwrap();
        let start = narrow(text[..byte].chars().count());
        let span = Span::new(start, start + narrow(wanted.chars().count()));
        read(text).tree.locate(text, span).to_string()
    }

    #[test]
    fn a_span_is_located_by_line_and_pointer() {
        let text = "{\"ä/b\": [1,\n {\"n~\": \"Müller\"}], \"c\": null}";
        assert_eq!(at(text, "üll"), "line 2, /ä~1b/1/n~0");
        assert_eq!(at(text, "null"), "line 2, /c");
        assert_eq!(at(text, "1,\n "), "lines 1–2, /ä~1b");
        assert_eq!(at(text, "\"c\""), "line 2");
    }

    #[test]
    fn lone_surrogates_are_counted_and_pairs_are_not() {
        let report = read(r#"["\ud83d\ude00", "\ud800 x", "\udc00", "\ud800\ud800\udc00"]"#);
        assert_eq!(report.lone_surrogates, 3);
        assert_eq!(report.error, None);
    }

    #[test]
    fn errors_name_their_line() {
        assert_eq!(
            read("{\"a\":\n 1,\n}").error,
            Some((3, "a key in quotes is expected"))
        );
        assert!(!is_valid("[1] x"));
        assert!(!is_valid("[01]"));
        assert!(is_valid(" [1e400, -0.5E-3, true, \"\\u0000\"] "));
    }

    #[test]
    fn deep_nesting_does_not_recurse() {
        let text = "[".repeat(300_000) + &"]".repeat(300_000);
        let report = read(&text);
        assert_eq!((report.depth, report.error), (300_000, None));
        assert_eq!(
            report.warnings(512),
            [Warning::DeepNesting { depth: 300_000 }]
        );
        assert_eq!(at(&text, "[]"), "line 1");
    }

    proptest! {
        #[test]
        fn validity_agrees_with_serde_json(text in r#"[\[\]{}:,"\\u0-9a-fA-Entrue .é-]{0,24}"#) {
            let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(is_valid(&text), theirs, "{:?}", text);
        }
    }
}
