//! The visible text of a page as it is written: white space folded, blocks set apart, tables laid
//! out, and every stretch tied to where it came from.
//!
//! Knows neither tags nor bytes, only text, breaks and offsets in the decoded page.

use std::ops::Range;

use crate::html_tree::Role;

/// A stretch of text that came from one stretch of the decoded page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlowPiece {
    /// Start in the text, as code points and as bytes.
    pub(crate) start: u32,
    pub(crate) start_byte: usize,
    /// Code points.
    pub(crate) length: u32,
    pub(crate) decoded: Range<usize>,
    /// The text differs from what the page has there.
    pub(crate) rewritten: bool,
}

/// What goes between the text so far and the next text, if any comes.
#[derive(Debug, Default)]
struct Pending {
    /// Line ends, at most two.
    breaks: u8,
    tabs: u32,
    space: Option<Range<usize>>,
}

#[derive(Debug, Default)]
struct TableState {
    cells_in_row: u32,
    row_has_text: bool,
    has_text: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) text: String,
    pub(crate) pieces: Vec<FlowPiece>,
    length: u32,
    pending: Pending,
    tables: Vec<TableState>,
    /// A cell was opened and has no text yet, so that breaks at its start mean nothing.
    fresh_cell: bool,
    /// The next line end opens a preformatted block and is not shown.
    skip_line_end: bool,
    most_pieces: usize,
    /// There are more pieces than allowed; nothing is added any more.
    pub(crate) overflowed: bool,
}

impl Flow {
    pub(crate) fn new(most_pieces: usize) -> Self {
        Self {
            most_pieces,
            ..Self::default()
        }
    }

    fn request(&mut self, breaks: u8) {
        if !self.fresh_cell {
            self.pending.breaks = self.pending.breaks.max(breaks);
        }
        self.pending.space = None;
        self.skip_line_end = false;
    }

    /// A block begins.
    pub(crate) fn enter(&mut self, role: Role) {
        match role {
            Role::Inline => {}
            Role::Line => self.request(1),
            Role::Paragraph => self.request(2),
            Role::Table => {
                self.request(2);
                self.fresh_cell = false;
                self.tables.push(TableState::default());
            }
            Role::Row => {
                self.end_row();
                if let Some(table) = self.tables.last_mut() {
                    table.cells_in_row = 0;
                    table.row_has_text = false;
                }
            }
            Role::Cell => self.enter_cell(),
        }
    }

    fn enter_cell(&mut self) {
        let Some(table) = self.tables.last_mut() else {
            // Browsers ignore a cell outside a table.
            self.request(1);
            return;
        };
        if table.cells_in_row > 0 {
            self.pending.tabs = self.pending.tabs.saturating_add(1);
            if table.row_has_text {
                // What ended the last cell's paragraphs does not end the row.
                self.pending.breaks = 0;
            }
        }
        table.cells_in_row = table.cells_in_row.saturating_add(1);
        self.pending.space = None;
        self.fresh_cell = true;
    }

    fn end_row(&mut self) {
        self.fresh_cell = false;
        self.pending.tabs = 0;
        self.request(1);
    }

    /// A block ends.
    pub(crate) fn leave(&mut self, role: Role) {
        match role {
            Role::Inline => {}
            Role::Line => self.request(1),
            Role::Paragraph => self.request(2),
            Role::Row => self.end_row(),
            Role::Cell => {
                self.fresh_cell = false;
                self.pending.space = None;
            }
            Role::Table => {
                self.end_row();
                self.request(2);
                let had_text = self.tables.pop().is_some_and(|table| table.has_text);
                if let Some(outer) = self.tables.last_mut() {
                    outer.row_has_text |= had_text;
                    outer.has_text |= had_text;
                }
            }
        }
    }

    /// `<br>`.
    pub(crate) fn line_break(&mut self) {
        if !self.fresh_cell {
            self.pending.breaks = (self.pending.breaks + 1).min(2);
        }
        self.pending.space = None;
    }

    pub(crate) fn enter_preformatted(&mut self) {
        self.skip_line_end = true;
    }

    /// Text as it is.
    pub(crate) fn push_preformatted(&mut self, text: &str, decoded: Range<usize>, rewritten: bool) {
        let skip = std::mem::take(&mut self.skip_line_end) && text.starts_with('\n');
        if !skip {
            self.emit(text, decoded, rewritten);
        } else if text.len() > 1 {
            let start = if rewritten {
                decoded.start
            } else {
                decoded.start + 1
            };
            self.emit(&text[1..], start..decoded.end, rewritten);
        }
    }

    /// Text whose white space is folded into single spaces. No-break spaces are no white space here.
    pub(crate) fn push(&mut self, text: &str, decoded: &Range<usize>, rewritten: bool) {
        let mut at = 0;
        while at < text.len() {
            let rest = &text.as_bytes()[at..];
            let is_space = is_space(rest[0]);
            let length = rest
                .iter()
                .take_while(|&&byte| self::is_space(byte) == is_space)
                .count();
            let part = if rewritten {
                decoded.clone()
            } else {
                decoded.start + at..decoded.start + at + length
            };
            if is_space {
                match &mut self.pending.space {
                    Some(space) => space.end = part.end,
                    None => self.pending.space = Some(part),
                }
            } else {
                self.emit(&text[at..at + length], part, rewritten);
            }
            at += length;
        }
    }

    fn emit(&mut self, text: &str, decoded: Range<usize>, rewritten: bool) {
        if self.overflowed || text.is_empty() {
            return;
        }
        self.flush();
        if let Some(table) = self.tables.last_mut() {
            table.row_has_text = true;
            table.has_text = true;
        }
        self.fresh_cell = false;
        self.append(text, decoded, rewritten);
    }

    fn flush(&mut self) {
        let Pending {
            breaks,
            tabs,
            space,
        } = std::mem::take(&mut self.pending);
        if self.text.is_empty() {
            return;
        }
        if breaks > 0 {
            let already = self
                .text
                .bytes()
                .rev()
                .take(2)
                .take_while(|&byte| byte == b'\n')
                .count();
            for _ in already..usize::from(breaks) {
                self.insert('\n');
            }
        }
        for _ in 0..tabs {
            self.insert('\t');
        }
        if breaks == 0
            && tabs == 0
            && let Some(space) = space
            && !self.text.ends_with('\n')
        {
            // One white space byte for one space keeps the bytes in step; more do not.
            let rewritten = space.len() != 1;
            self.append(" ", space, rewritten);
        }
    }

    /// Text that the page does not have.
    fn insert(&mut self, c: char) {
        self.text.push(c);
        self.length = self.length.saturating_add(1);
    }

    fn append(&mut self, text: &str, decoded: Range<usize>, rewritten: bool) {
        let start_byte = self.text.len();
        let start = self.length;
        let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        self.text.push_str(text);
        self.length = self.length.saturating_add(length);
        let full = self.pieces.len() >= self.most_pieces;
        match self.pieces.last_mut() {
            Some(last)
                if !last.rewritten
                    && !rewritten
                    && last.decoded.end == decoded.start
                    && last.start + last.length == start =>
            {
                last.length += length;
                last.decoded.end = decoded.end;
            }
            _ if full => self.overflowed = true,
            _ => self.pieces.push(FlowPiece {
                start,
                start_byte,
                length,
                decoded,
                rewritten,
            }),
        }
    }
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}
