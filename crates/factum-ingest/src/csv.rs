//! Tables of separated values: the text stays as written, the layout knows its cells.

use std::ops::Range;

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};
use serde::{Deserialize, Serialize};

use factum_base::Span;

use crate::location::{Cell, Location};
use crate::warning::Warning;

/// What is looked at to find the delimiter.
const SAMPLE_BYTES: usize = 64 << 10;
const SAMPLE_ROWS: usize = 200;
/// A column's name is for people; a cell with a whole letter in it is none.
const LONGEST_HEADER: usize = 120;
const MOST_HEADERS: usize = 4096;

/// The cells of a table, as code points of its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Table {
    delimiter: u8,
    /// Names of the columns, if the first row looks like names.
    header: Option<Vec<String>>,
    /// For each row, its first cell's index in `cells`.
    rows: Vec<u32>,
    /// For each cell, the code point at which it starts, its quote included.
    cells: Vec<u32>,
}

/// Reads a table's cells.
pub(crate) fn read(text: &str) -> (Table, Vec<Warning>) {
    let (delimiter, skip) = delimiter(text);
    let mut table = Table {
        delimiter,
        header: None,
        rows: Vec::new(),
        cells: Vec::new(),
    };
    let mut warnings = Vec::new();
    let mut first_row: Vec<String> = Vec::new();
    let mut known = (0usize, 0u32);
    let mut new_row = true;
    Fields::new(&text[skip..], delimiter, true).each(|raw, value, ends_row| {
        let raw = raw.start + skip..raw.end + skip;
        if new_row {
            table.rows.push(narrow(table.cells.len()));
        }
        let at = known.1
            + narrow(
                text.get(known.0..raw.start)
                    .map_or(0, |t| t.chars().count()),
            );
        known = (raw.start, at);
        table.cells.push(at);
        if table.rows.len() == 1 && first_row.len() < MOST_HEADERS {
            first_row.push(String::from_utf8_lossy(value).into_owned());
        }
        if raw.end == text.len() && warnings.is_empty() && is_unclosed(text.get(raw).unwrap_or(""))
        {
            warnings.push(Warning::UnclosedQuote {
                row: narrow(table.rows.len()),
            });
        }
        new_row = ends_row;
        true
    });
    if table.rows.len() > 1 && looks_like_header(&first_row) {
        table.header = Some(first_row.iter().map(|name| tidy(name)).collect());
    }
    (table, warnings)
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn tidy(name: &str) -> String {
    let words = name.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(LONGEST_HEADER).collect()
}

fn is_unclosed(cell: &str) -> bool {
    cell.starts_with('"') && cell.bytes().filter(|&byte| byte == b'"').count() % 2 == 1
}

/// Names are words, all different, and not long; a number is data.
fn looks_like_header(row: &[String]) -> bool {
    let mut names: Vec<&str> = row
        .iter()
        .map(|name| name.trim())
        .filter(|n| !n.is_empty())
        .collect();
    let given = names.len();
    let words = names.iter().all(|name| {
        name.chars().any(char::is_alphabetic) && name.chars().count() <= LONGEST_HEADER
    });
    names.sort_unstable();
    names.dedup();
    // An index column often has no name, but one name alone among many cells is a title.
    given > 0 && given == names.len() && words && given * 2 > row.len()
}

/// The delimiter, and how much of the text a `sep=` line takes up.
///
/// The one that cuts the most rows into the same number of cells (more than one) wins, without cutting
/// through quotes. Where two do so equally, the comma loses: it is also a decimal sign and
/// punctuation.
fn delimiter(text: &str) -> (u8, usize) {
    if let Some(&[delimiter, end]) = text
        .strip_prefix("sep=")
        .and_then(|rest| rest.as_bytes().first_chunk())
        && delimiter.is_ascii()
        && matches!(end, b'\r' | b'\n')
    {
        return (delimiter, "sep=;".len());
    }
    let sample = sample(text);
    let mut best = (b',', (0, 0));
    for candidate in *b"\t;|," {
        let score = consistency(sample, candidate);
        if score > best.1 {
            best = (candidate, score);
        }
    }
    (best.0, 0)
}

/// Whole lines from the start of the text.
fn sample(text: &str) -> &str {
    if text.len() <= SAMPLE_BYTES {
        return text;
    }
    let head = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
    head.rfind(['\n', '\r']).map_or(head, |end| &head[..end])
}

/// How many thousandths of the rows have the commonest number of cells, and, for a single row, that
/// number.
fn consistency(sample: &str, delimiter: u8) -> (usize, usize) {
    let mut widths: Vec<usize> = Vec::new();
    let mut width = 0;
    let mut cuts_quotes = false;
    Fields::new(sample, delimiter, false).each(|raw, _, ends_row| {
        width += 1;
        let cell = sample.get(raw).unwrap_or("");
        cuts_quotes |= cell.contains('"') && !cell.starts_with('"');
        if ends_row {
            let width = std::mem::take(&mut width);
            widths.push(if std::mem::take(&mut cuts_quotes) {
                1
            } else {
                width
            });
        }
        widths.len() < SAMPLE_ROWS
    });
    widths.sort_unstable();
    let best = widths
        .chunk_by(PartialEq::eq)
        .max_by_key(|run| (run.len(), run[0]));
    match best {
        Some(run) if run[0] > 1 => {
            let share = run.len() * 1000 / widths.len();
            (share, if widths.len() == 1 { run[0] } else { 0 })
        }
        _ => (0, 0),
    }
}

/// Cells of a text with their byte ranges, by csv-core.
struct Fields<'a> {
    text: &'a str,
    reader: Reader,
    keep_values: bool,
}

impl<'a> Fields<'a> {
    fn new(text: &'a str, delimiter: u8, keep_values: bool) -> Self {
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        Self {
            text,
            reader,
            keep_values,
        }
    }

    /// Calls `each` with range, value and whether the row ends, until that says to stop. Values are
    /// given for the first row only.
    fn each(mut self, mut each: impl FnMut(Range<usize>, &[u8], bool) -> bool) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        let mut start = 0;
        let mut new_row = true;
        let mut value = Vec::new();
        let mut out = [0u8; 1024];
        loop {
            if new_row {
                // The rest of a line end, and empty lines, belong to no cell.
                start += bytes[start..]
                    .iter()
                    .take_while(|byte| matches!(byte, b'\r' | b'\n'))
                    .count();
                new_row = false;
            }
            let (result, read, written) = self.reader.read_field(&bytes[at..], &mut out);
            at += read;
            if self.keep_values {
                value.extend_from_slice(&out[..written]);
            }
            match result {
                ReadFieldResult::End => return,
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                ReadFieldResult::Field { record_end } => {
                    // The byte that ended the cell was read with it, unless the text ended it.
                    let end = if read == 0 { at } else { at - 1 };
                    if !each(start..end.max(start), &value, record_end) {
                        return;
                    }
                    value.clear();
                    start = at;
                    new_row = record_end;
                    self.keep_values &= !record_end;
                }
            }
        }
    }
}

impl Table {
    pub(crate) fn locate(&self, span: Span) -> Location {
        let last_point = if span.is_empty() {
            span.start
        } else {
            span.end - 1
        };
        match (self.cell_of(span.start), self.cell_of(last_point)) {
            (Some(first), Some(last)) => Location::Cells {
                first,
                last,
                first_header: self.header_of(first),
                last_header: self.header_of(last),
            },
            // Before the first cell there is only a `sep=` line.
            _ => Location::Lines { first: 1, last: 1 },
        }
    }

    fn cell_of(&self, code_point: u32) -> Option<Cell> {
        let cell = self
            .cells
            .partition_point(|&start| start <= code_point)
            .checked_sub(1)?;
        let cell = narrow(cell);
        let row = self
            .rows
            .partition_point(|&first| first <= cell)
            .checked_sub(1)?;
        let column = cell - self.rows.get(row)?;
        Some(Cell {
            row: narrow(row).saturating_add(1),
            column: column.saturating_add(1),
        })
    }

    fn header_of(&self, cell: Cell) -> Option<String> {
        let name = self.header.as_ref()?.get(cell.column as usize - 1)?;
        (!name.is_empty()).then(|| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, wanted: &str) -> String {
        let byte = text.find(wanted).unwrap();
        let start = narrow(text[..byte].chars().count());
        let span = Span::new(start, start + narrow(wanted.chars().count()));
        read(text).0.locate(span).to_string()
    }

    #[test]
    fn cells_are_named_by_row_and_header() {
        let text = "Name;Betrag;Notiz\r\nMüller;\"1.234,56\";\"Zeile 1\r\nZeile 2 \"\"zitiert\"\"\"\r\nGroß;€20;\r\n";
        assert_eq!(at(text, "1.234,56"), "row 2, column Betrag");
        assert_eq!(at(text, "Zeile 2"), "row 2, column Notiz");
        assert_eq!(at(text, "€20"), "row 3, column Betrag");
        assert_eq!(at(text, "Müller;\"1"), "row 2, columns Name–Betrag");
        assert_eq!(at(text, "\"\r\nGroß"), "rows 2–3");
    }

    #[test]
    fn the_delimiter_is_the_one_that_cuts_rows_alike() {
        let of = |text: &str| char::from(delimiter(text).0);
        assert_eq!(of("a,b\n1,2\n"), ',');
        assert_eq!(of("1,5;2,5\n3,5;4,5\n"), ';');
        assert_eq!(of("a\tb, c\n1\t2\n"), '\t');
        assert_eq!(of("a|b\n1|2"), '|');
        assert_eq!(of("one\ntwo, three\nfour\n"), ',');
        assert_eq!(of("a,\"x;y\",b\n1,\"2;3\",4\n"), ',');
        assert_eq!(delimiter("sep=#\r\na#b"), (b'#', 5));
    }

    #[test]
    fn numbers_and_single_rows_are_no_header() {
        assert_eq!(at("1,2\n3,4\n", "4"), "row 2, column 2");
        assert_eq!(at("a,b", "b"), "row 1, column 2");
        assert_eq!(at("a,a\n1,2\n", "2"), "row 2, column 2");
    }

    #[test]
    fn a_separator_line_is_no_row() {
        let text = "sep=;\na;b\n1;2\n";
        assert_eq!(at(text, "2"), "row 2, column b");
        assert_eq!(at(text, "sep"), "line 1");
    }

    #[test]
    fn an_unclosed_quote_is_warned_of() {
        assert_eq!(
            read("a,b\n1,\"2\n3,4\n").1,
            [Warning::UnclosedQuote { row: 2 }]
        );
        assert_eq!(read("a,b\n1,\"2\"").1, []);
    }
}
