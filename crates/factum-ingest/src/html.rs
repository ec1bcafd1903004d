//! Web pages: the text layer is what a reader of the page sees.
//!
//! html5gum cuts the page into tags and text; this module follows its position, so that every
//! stretch of text keeps its place, and turns tags into structure.

use std::convert::Infallible;
use std::ops::Range;

use html5gum::{Emitter, Error, State, Tokenizer};

use crate::decode::Decoded;
use crate::html_flow::{Flow, FlowPiece};
use crate::html_tree::{Open, Role, Tree, Unseen, is_machinery, is_preformatted, is_void, role};
use crate::layout::{Layout, Piece};
use crate::media::Media;
use crate::read::{Limits, TextLayer};
use crate::refusal::Refusal;
use crate::source::{SourceCursor, Unit};
use crate::warning::Warning;

/// Reads a decoded page.
pub(crate) fn read(bytes: &[u8], decoded: &Decoded, limits: &Limits) -> Result<TextLayer, Refusal> {
    let most_pieces = limits.max_pieces as usize;
    let mut page = Page::new(&decoded.text, most_pieces);
    let Ok(()) = Tokenizer::new_with_emitter(decoded.text.as_str(), &mut page).finish();
    let pieces = place(bytes, decoded, &page.flow.pieces, most_pieces);
    let Some(pieces) = pieces.filter(|_| !page.flow.overflowed) else {
        let what = "pieces of page layout".to_owned();
        return Err(Refusal::LimitExceeded {
            what,
            limit: limits.max_pieces.into(),
        });
    };
    let mut warnings = decoded.warnings.clone();
    warnings.extend(page.warnings(limits));
    Ok(TextLayer {
        media: Media::Html,
        text: page.flow.text,
        layout: Layout::of_page(pieces),
        encoding: decoded.encoding.clone(),
        warnings,
    })
}

/// Finds the bytes of each piece, cutting it where the width of characters changes. `None` if that
/// makes too many.
fn place(
    bytes: &[u8],
    decoded: &Decoded,
    written: &[FlowPiece],
    most_pieces: usize,
) -> Option<Vec<Piece>> {
    let mut cursor = SourceCursor::new(bytes, decoded);
    let mut pieces = Vec::with_capacity(written.len());
    for piece in written {
        if piece.rewritten {
            let start = cursor.start_of(piece.decoded.start);
            let end = cursor.end_of(piece.decoded.end);
            pieces.push(Piece {
                start: piece.start,
                length: piece.length,
                start_byte: narrow(piece.start_byte),
                source: narrow(start),
                source_length: narrow(end.saturating_sub(start)),
                unit: Unit::Whole,
            });
            continue;
        }
        let mut start = piece.start;
        cursor.parts(piece.decoded.clone(), |part, source, unit| {
            let text = decoded.text.get(part.clone()).unwrap_or("");
            let length = narrow(text.chars().count());
            pieces.push(Piece {
                start,
                length,
                start_byte: narrow(piece.start_byte + (part.start - piece.decoded.start)),
                source: narrow(source.start),
                source_length: narrow(source.len()),
                unit,
            });
            start = start.saturating_add(length);
        });
        if pieces.len() > most_pieces {
            return None;
        }
    }
    Some(pieces)
}

fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

#[derive(Debug, Default, PartialEq, Eq)]
enum TagKind {
    #[default]
    Start,
    End,
}

/// The tag being read.
#[derive(Debug, Default)]
struct Tag {
    name: Vec<u8>,
    kind: TagKind,
    self_closing: bool,
    attribute: Vec<u8>,
    value: Vec<u8>,
    has_hidden: bool,
    has_open: bool,
    /// There is a style, and whether it hides.
    style: Option<bool>,
}

impl Tag {
    fn finish_attribute(&mut self) {
        match self.attribute.as_slice() {
            b"hidden" => self.has_hidden = true,
            b"open" => self.has_open = true,
            // Of attributes given twice the first counts.
            b"style" if self.style.is_none() => self.style = Some(hides(&self.value)),
            _ => {}
        }
        self.attribute.clear();
        self.value.clear();
    }
}

/// A style attribute that keeps its element from being shown.
fn hides(style: &[u8]) -> bool {
    style
        .to_ascii_lowercase()
        .split(|&byte| byte == b';')
        .any(|declaration| {
            let Some(colon) = declaration.iter().position(|&byte| byte == b':') else {
                return false;
            };
            let value = declaration[colon + 1..].trim_ascii();
            let value = value
                .split(|&byte| byte == b'!')
                .next()
                .unwrap_or(value)
                .trim_ascii();
            match declaration[..colon].trim_ascii() {
                b"display" => value == b"none",
                b"visibility" => matches!(value, b"hidden" | b"collapse"),
                _ => false,
            }
        })
}

/// Takes what the tokenizer finds and writes the page's text.
struct Page<'a> {
    source: &'a str,
    flow: Flow,
    tree: Tree,
    tag: Tag,
    last_start: Vec<u8>,
    /// The first bytes of a character whose rest is still to come.
    carry: Vec<u8>,
    /// Where the tokenizer is in `source`.
    position: usize,
    /// Where the next text must come from, if nothing was left out in between.
    expected: usize,
    deepest: usize,
    hidden_elements: u32,
    /// The outermost hidden element that is open has been counted.
    hidden_counted: bool,
}

impl<'a> Page<'a> {
    fn new(source: &'a str, most_pieces: usize) -> Self {
        Self {
            source,
            flow: Flow::new(most_pieces),
            tree: Tree::new(),
            tag: Tag::default(),
            last_start: Vec::new(),
            carry: Vec::new(),
            position: 0,
            expected: 0,
            deepest: 0,
            hidden_elements: 0,
            hidden_counted: false,
        }
    }

    fn warnings(&self, limits: &Limits) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if self.hidden_elements > 0 {
            warnings.push(Warning::HiddenContent {
                elements: self.hidden_elements,
            });
        }
        if self.deepest > limits.max_depth as usize {
            warnings.push(Warning::DeepNesting {
                depth: narrow(self.deepest),
            });
        }
        warnings
    }

    /// The stretch of the page that text just emitted came from, and whether the page has other text
    /// there (an entity, a line end written as CR LF).
    fn origin(&mut self, text: &str) -> (Range<usize>, bool) {
        let bytes = self.source.as_bytes();
        let end = self.position.min(bytes.len());
        let mut start = self.expected.min(end);
        // The tokenizer passes over the LF of a CR LF that it has already given as a line end.
        if start > 0 && bytes.get(start - 1..=start) == Some(b"\r\n") && start < end {
            start += 1;
        }
        self.expected = end;
        if bytes.get(start..end) == Some(text.as_bytes()) {
            return (start..end, false);
        }
        let ends_in_crlf =
            text.ends_with('\n') && bytes.get(end.saturating_sub(1)..=end) == Some(b"\r\n");
        (start..end + usize::from(ends_in_crlf), true)
    }

    fn text(&mut self, text: &[u8]) {
        // The tokenizer sometimes hands out a character in two parts.
        self.carry.extend_from_slice(text);
        let carry = std::mem::take(&mut self.carry);
        let text = match std::str::from_utf8(&carry) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                self.carry = carry;
                return;
            }
            Err(_) => return,
        };
        let (origin, rewritten) = self.origin(text);
        if self.tree.is_unseen() {
            if self.tree.is_hidden_text() && !self.hidden_counted && !text.trim().is_empty() {
                self.hidden_counted = true;
                self.hidden_elements = self.hidden_elements.saturating_add(1);
            }
        } else if self.tree.is_preformatted() {
            self.flow.push_preformatted(text, origin, rewritten);
        } else {
            self.flow.push(text, &origin, rewritten);
        }
    }

    fn start_tag(&mut self) -> Option<State> {
        let tag = std::mem::take(&mut self.tag);
        let name = tag.name.as_slice();
        let foreign = self.tree.is_foreign();
        let role = match role(name) {
            // A list within a list belongs to its item.
            Role::Paragraph if matches!(name, b"ul" | b"ol") && self.tree.is_in_item() => {
                Role::Line
            }
            role => role,
        };
        if foreign && role != Role::Inline {
            // A block can't be in a drawing: the drawing was not closed.
            self.close_foreign();
        }
        if is_void(name) {
            self.void_tag(name, role);
        } else if name == b"head" || matches!(name, b"html" | b"body") && self.tree.is_open(name) {
            // Nothing of these shows; what is in a head is hidden by its own names.
        } else if !(tag.self_closing && (foreign || matches!(name, b"svg" | b"math"))) {
            self.open_element(&tag, role);
        }
        self.last_start.clear();
        self.last_start.extend_from_slice(name);
        if self.tree.is_foreign() {
            None
        } else {
            next_state(name)
        }
    }

    fn void_tag(&mut self, name: &[u8], role: Role) {
        let was_seen = !self.tree.is_unseen();
        self.close(|tree, closed| tree.close_implied(name, role, closed));
        if was_seen && name == b"br" {
            self.flow.line_break();
        } else if was_seen {
            self.flow.enter(role);
        }
    }

    fn open_element(&mut self, tag: &Tag, role: Role) {
        let name = tag.name.as_slice();
        let hidden =
            tag.has_hidden || tag.style == Some(true) || (name == b"dialog" && !tag.has_open);
        let unseen = match (is_machinery(name), hidden) {
            (true, _) => Some(Unseen::Machinery),
            (false, true) => Some(Unseen::Hidden),
            (false, false) => None,
        };
        self.close(|tree, closed| tree.start(name, role, unseen, closed));
        if unseen == Some(Unseen::Hidden) && self.tree.hidden_depth() == 1 {
            self.hidden_counted = false;
        }
        self.deepest = self.deepest.max(self.tree.depth());
        if !self.tree.is_unseen() {
            self.flow.enter(role);
            if is_preformatted(name) {
                self.flow.enter_preformatted();
            }
        }
    }

    fn end_tag(&mut self) {
        let name = std::mem::take(&mut self.tag.name);
        let known = self.close(|tree, closed| tree.end(&name, closed));
        if !known && !self.tree.is_unseen() {
            match name.as_slice() {
                b"br" => self.flow.line_break(),
                b"p" => self.flow.enter(Role::Paragraph),
                _ => {}
            }
        }
        self.tag = Tag::default();
    }

    fn close_foreign(&mut self) {
        for name in [&b"svg"[..], b"math"] {
            while self.tree.is_foreign() && self.tree.is_open(name) {
                let before = self.tree.depth();
                self.close(|tree, closed| tree.end(name, closed));
                if self.tree.depth() == before {
                    return;
                }
            }
        }
    }

    /// Lets elements be closed, and tells the text of the blocks among them.
    fn close<T>(&mut self, act: impl FnOnce(&mut Tree, &mut dyn FnMut(&Open)) -> T) -> T {
        let flow = &mut self.flow;
        act(&mut self.tree, &mut |open| {
            // The text was not told of the start of what is not shown, so not of its end either.
            if open.shown {
                flow.leave(open.role);
            }
        })
    }
}

/// How the content of an element is to be read, where it is not markup.
fn next_state(name: &[u8]) -> Option<State> {
    match name {
        b"title" | b"textarea" => Some(State::RcData),
        b"script" => Some(State::ScriptData),
        b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => Some(State::RawText),
        b"plaintext" => Some(State::PlainText),
        _ => None,
    }
}

impl Emitter for &mut Page<'_> {
    type Token = Infallible;

    fn set_last_start_tag(&mut self, last_start_tag: Option<&[u8]>) {
        self.last_start.clear();
        self.last_start
            .extend_from_slice(last_start_tag.unwrap_or_default());
    }

    fn emit_eof(&mut self) {}

    fn emit_error(&mut self, _error: Error) {}

    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn pop_token(&mut self) -> Option<Infallible> {
        None
    }

    fn init_string(&mut self) {
        if self.carry.is_empty() {
            self.expected = self.position;
        }
    }

    fn emit_string(&mut self, text: &[u8]) {
        self.text(text);
    }

    fn init_start_tag(&mut self) {
        self.tag = Tag::default();
    }

    fn init_end_tag(&mut self) {
        self.tag = Tag {
            kind: TagKind::End,
            ..Tag::default()
        };
    }

    fn init_comment(&mut self) {}

    fn emit_current_tag(&mut self) -> Option<State> {
        self.tag.finish_attribute();
        self.expected = self.position;
        if self.tag.kind == TagKind::End {
            self.end_tag();
            self.last_start.clear();
            None
        } else {
            self.start_tag()
        }
    }

    fn emit_current_comment(&mut self) {}

    fn emit_current_doctype(&mut self) {}

    fn set_self_closing(&mut self) {
        self.tag.self_closing = true;
    }

    fn set_force_quirks(&mut self) {}

    fn push_tag_name(&mut self, name: &[u8]) {
        self.tag.name.extend_from_slice(name);
    }

    fn push_comment(&mut self, _text: &[u8]) {}

    fn push_doctype_name(&mut self, _name: &[u8]) {}

    fn init_doctype(&mut self) {}

    fn init_attribute(&mut self) {
        self.tag.finish_attribute();
    }

    fn push_attribute_name(&mut self, name: &[u8]) {
        self.tag.attribute.extend_from_slice(name);
    }

    fn push_attribute_value(&mut self, value: &[u8]) {
        self.tag.value.extend_from_slice(value);
    }

    fn set_doctype_public_identifier(&mut self, _value: &[u8]) {}

    fn set_doctype_system_identifier(&mut self, _value: &[u8]) {}

    fn push_doctype_public_identifier(&mut self, _value: &[u8]) {}

    fn push_doctype_system_identifier(&mut self, _value: &[u8]) {}

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.tag.kind == TagKind::End
            && !self.last_start.is_empty()
            && self.last_start == self.tag.name
    }

    fn move_position(&mut self, offset: isize) {
        self.position = self.position.saturating_add_signed(offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_document;
    use factum_base::Span;

    fn page(html: &str) -> TextLayer {
        read_document("x.html", html.as_bytes(), &Limits::default()).unwrap()
    }

    fn text(html: &str) -> String {
        page(html).text
    }

    /// The bytes that a word of the text came from.
    fn origin<'h>(html: &'h str, word: &str) -> &'h str {
        let layer = page(html);
        let at = layer.text.find(word).unwrap();
        let start = narrow(layer.text[..at].chars().count());
        let span = Span::new(start, start + narrow(word.chars().count()));
        match layer.layout.locate(&layer.text, span) {
            crate::Location::Bytes { start, end } => {
                &html[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()]
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn blocks_stand_apart_and_white_space_folds() {
        assert_eq!(
            text("<h1>A</h1>\n <p>b\n  c<p>d<br>e<div>f</div>g"),
            "A\n\nb c\n\nd\ne\n\nf\ng"
        );
        assert_eq!(text("<b>bo</b>ld and <i> it</i>"), "bold and it");
        assert_eq!(text("<ul><li>a<li>b<ul><li>c</ul></ul>d"), "a\nb\nc\n\nd");
        assert_eq!(text("<pre>\n  a\r\n b</pre>c"), "  a\n b\n\nc");
    }

    #[test]
    fn tables_are_laid_out_by_tabs_and_lines() {
        assert_eq!(
            text("x<table><tr><td>1<td>2<tr><td><td>4</table>y"),
            "x\n\n1\t2\n\t4\n\ny"
        );
        assert_eq!(
            text("<table><tr><td><p>a</p></td> <td><p>b</p></td></tr></table>"),
            "a\tb"
        );
    }

    #[test]
    fn scripts_titles_and_hidden_parts_are_no_text() {
        let layer = page(
            "<title>T &lt;</title><script>a<b</script><style>p{}</style><p hidden>H<p style='color:red; DISPLAY : none !important'>N\
             <p>shown<template>t</template><noscript>ns</noscript><dialog>d</dialog>",
        );
        assert_eq!(layer.text, "shown\nns");
        assert_eq!(layer.warnings, [Warning::HiddenContent { elements: 3 }]);
    }

    #[test]
    fn a_hidden_table_does_not_disturb_the_one_around_it() {
        let html = "<table><tr><td>1<div hidden><table><tr><td>x</table></div><td>2</table>";
        assert_eq!(text(html), "1\t2");
    }

    #[test]
    fn crossed_tags_do_not_show_what_is_hidden() {
        assert_eq!(text("<b><div hidden></b>secret</div>shown"), "shown");
        assert_eq!(text("<div><span hidden>x</div>y</span>z"), "yz");
        assert_eq!(text("<svg><text>in</text><rect/><p>out</svg>"), "in\n\nout");
    }

    #[test]
    fn entities_are_decoded_and_keep_their_place() {
        let html = "<p>A&nbsp;B&shy;C &#128512; &copy; a&ampb &unknown; 1 &lt 2 < 3 <é &#59;</p>";
        assert_eq!(
            text(html),
            "A\u{a0}B\u{ad}C 😀 © a&b &unknown; 1 < 2 < 3 <é ;"
        );
        assert_eq!(origin(html, "😀"), "&#128512;");
        assert_eq!(origin(html, "B\u{ad}"), "B&shy;");
        assert_eq!(origin(html, "<é"), "<é");
        assert_eq!(origin(html, "© a&b"), "&copy; a&ampb");
        assert_eq!(origin(html, ";"), ";");
    }

    #[test]
    fn spans_keep_their_bytes_across_folding_and_tags() {
        let html = "<p>Müller  said\r\n<b>no</b>thing</p>\r\n<p>日本 x</p>";
        assert_eq!(text(html), "Müller said nothing\n\n日本 x");
        assert_eq!(origin(html, "üller"), "üller");
        assert_eq!(origin(html, "said nothing"), "said\r\n<b>no</b>thing");
        assert_eq!(origin(html, "本 x"), "本 x");
        assert_eq!(origin(html, "\n\n"), "");
    }

    #[test]
    fn a_deep_page_is_read_in_time_that_grows_with_its_length() {
        let html = "<div><b>".repeat(100_000)
            + "deep"
            + &"</i>".repeat(50_000)
            + &"</u></div>".repeat(50_000);
        let layer = page(&html);
        assert_eq!(layer.text, "deep");
        assert!(matches!(layer.warnings[..], [Warning::DeepNesting { .. }]));
    }

    #[test]
    fn too_many_pieces_are_a_limit() {
        let limits = Limits {
            max_pieces: 10,
            ..Limits::default()
        };
        let refused = read_document("x.html", "a&amp;".repeat(20).as_bytes(), &limits);
        assert!(matches!(
            refused,
            Err(Refusal::LimitExceeded { limit: 10, .. })
        ));
    }
}
