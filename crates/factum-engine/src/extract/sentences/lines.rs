//! The lines of a text, sorted into kinds.

use std::collections::BTreeMap;
use std::ops::Range;

use super::breaks::{is_month, is_unspaced};

/// A line at least this wide may have been wrapped in mid sentence.
pub(super) const WIDE: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Blank,
    /// Rules, fences, comments, front matter: separates blocks, says nothing.
    Skip,
    Heading,
    /// Table row, CSV row, JSON or code line: one sentence, never cut by punctuation.
    Row,
    Label,
    Item,
    /// `: value` below its term, as in Markdown definition lists.
    Definition,
    Text,
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The content: no white space at the ends, no list or quote marks.
    pub(super) at: Range<usize>,
    pub(super) kind: Kind,
    /// Depth of `>` marks; a reply is not joined with what it quotes.
    pub(super) quoted: usize,
    /// Columns of the whole line, where wide characters take two.
    pub(super) width: usize,
    /// The widest line of its paragraph.
    pub(super) measure: usize,
}

/// What the lines above leave open.
#[derive(PartialEq, Eq)]
enum Within {
    Prose,
    FrontMatter,
    Fence(char),
    Comment,
}

pub(super) fn lines_of(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut within = Within::Prose;
    if text.trim_start_matches('\u{feff}').starts_with("---") && front_matter_closes(text) {
        within = Within::FrontMatter;
    }
    let mut start = 0;
    while start < text.len() {
        let rest = &text[start..];
        let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let line = classify(text, start..start + length, &mut within, &mut lines);
        lines.push(line);
        // A `\r\n` is one line end; a lone `\r` is one too.
        start += length
            + if rest[length..].starts_with("\r\n") {
                2
            } else {
                1
            };
    }
    promote_lone_headings(text, &mut lines);
    measure_paragraphs(&mut lines);
    lines
}

fn front_matter_closes(text: &str) -> bool {
    let mut lines = text.lines();
    // `--- a rule with words` opens nothing.
    lines
        .next()
        .is_some_and(|first| first.trim_start_matches('\u{feff}').trim() == "---")
        && lines.take(60).any(|line| line.trim() == "---")
}

fn classify(text: &str, at: Range<usize>, within: &mut Within, above: &mut [Line]) -> Line {
    let width = columns(&text[at.clone()]);
    let mut at = trimmed(text, at);
    let mut quoted = 0;
    while text[at.clone()].starts_with('>') {
        quoted += 1;
        at = trimmed(text, at.start + 1..at.end);
    }
    let content = &text[at.clone()];
    let kind = match within {
        Within::FrontMatter => {
            if !above.is_empty() && content == "---" {
                *within = Within::Prose;
            }
            Kind::Skip
        }
        Within::Comment => {
            if content.contains("-->") {
                *within = Within::Prose;
            }
            Kind::Skip
        }
        Within::Fence(mark) => {
            let closes = content.len() >= 3 && content.chars().all(|c| c == *mark);
            if closes {
                *within = Within::Prose;
            }
            if closes { Kind::Skip } else { Kind::Row }
        }
        Within::Prose => kind_of(content, quoted, within, above),
    };
    if matches!(kind, Kind::Item | Kind::Definition) {
        // Marks may nest: `- [ ] 1. text`.
        while let Some(mark) = list_mark(&text[at.clone()]) {
            at = trimmed(text, at.start + mark..at.end);
        }
    }
    Line {
        at,
        kind,
        quoted,
        width,
        measure: width,
    }
}

fn kind_of(content: &str, quoted: usize, within: &mut Within, above: &mut [Line]) -> Kind {
    if content.is_empty() {
        return Kind::Blank;
    }
    if let Some(mark) = ["```", "~~~"]
        .into_iter()
        .find(|mark| content.starts_with(mark))
    {
        // Text after a closing run on the same line (```` ```code``` ````) opens no fence.
        if !content[3..].contains(mark) {
            *within = Within::Fence(if mark == "```" { '`' } else { '~' });
        }
        return Kind::Skip;
    }
    if content.starts_with("<!--") {
        if !content.contains("-->") {
            *within = Within::Comment;
        }
        return Kind::Skip;
    }
    if content.contains(" --> ") || content == "WEBVTT" || content.starts_with("{%") {
        return Kind::Skip; // Cue times and their file mark; template tags.
    }
    if content
        .chars()
        .all(|c| matches!(c, '-' | '=' | '*' | '_' | '|' | ':' | '+' | ' ' | '\t'))
    {
        underline(content, above);
        return Kind::Skip;
    }
    let level = content.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&level) && content[level..].starts_with([' ', '\t']) {
        return Kind::Heading;
    }
    if is_row(content) {
        return Kind::Row;
    }
    let lines_above = &*above;
    let above = lines_above.last().filter(|line| line.quoted == quoted);
    let in_prose = above.is_some_and(|line| line.kind == Kind::Text);
    if content.starts_with(": ") || content.starts_with(":\t") {
        return if in_prose {
            Kind::Definition
        } else {
            Kind::Item
        };
    }
    // A continued item is not prose; looking back a few lines for its mark keeps time linear.
    let lines_back = || lines_above.iter().rev().take(8);
    let in_list = || {
        lines_back()
            .find(|line| line.kind != Kind::Text)
            .is_some_and(|line| line.kind == Kind::Item)
    };
    let wrapped_mark = || in_prose && may_be_wrapped_mark(content) && !in_list();
    if list_mark(content).is_some() && !wrapped_mark() {
        return Kind::Item;
    }
    // In a wrapped paragraph a line may start `Article 5: the` by chance.
    let wrapped = above
        .is_some_and(|line| matches!(line.kind, Kind::Text | Kind::Item) && line.width >= WIDE);
    if label(content).is_some() && !wrapped {
        Kind::Label
    } else {
        Kind::Text
    }
}

/// A rule below a line makes that line a heading (Setext) or the head of a table.
fn underline(content: &str, above: &mut [Line]) {
    let (last, before) = match above {
        [.., before, last] => (last, Some(before.kind)),
        [last] => (last, None),
        [] => return,
    };
    let alone = !matches!(before, Some(Kind::Text | Kind::Item | Kind::Label));
    if last.kind == Kind::Row && content.contains('|') {
        last.kind = Kind::Skip;
    } else if last.kind == Kind::Text && alone && content.len() >= 3 && !content.contains('|') {
        last.kind = Kind::Heading;
    }
}

/// Marks that are often plain text at the start of a wrapped line: a day of the month, a dash.
fn may_be_wrapped_mark(content: &str) -> bool {
    let dash = content.starts_with(['–', '—']);
    let number = content.starts_with(|c: char| c.is_ascii_digit());
    dash || (number && !content.starts_with("1.") && !content.starts_with("1)"))
}

/// Length of the list mark and the space after it: `- `, `• `, `1. `, `2) `, `(3) `, `a) `, `[ ] `.
fn list_mark(content: &str) -> Option<usize> {
    let mut chars = content.chars();
    let first = chars.next()?;
    if matches!(
        first,
        '-' | '*' | '+' | '•' | '·' | '◦' | '▪' | '–' | '—' | ':'
    ) {
        return spaced(content, first.len_utf8());
    }
    if ["[ ]", "[x]", "[X]"]
        .iter()
        .any(|task| content.starts_with(task))
    {
        return spaced(content, 3);
    }
    let open = usize::from(first == '(');
    let body = &content[open..];
    let digits = body.bytes().take(4).take_while(u8::is_ascii_digit).count();
    let letters = usize::from(digits == 0 && body.starts_with(|c: char| c.is_ascii_lowercase()));
    // `(12a)`: an inserted paragraph of a statute.
    let suffix = usize::from(
        open == 1 && digits > 0 && body[digits..].starts_with(|c: char| c.is_ascii_lowercase()),
    );
    let end = digits + letters + suffix;
    if end == 0 || digits > 3 {
        return None;
    }
    let closes = match body.as_bytes().get(end) {
        Some(b')') => true,
        Some(b'.') => open == 0 && digits > 0,
        _ => false,
    };
    let mark = spaced(content, open + end + 1).filter(|_| closes)?;
    // `13. Juni` is a date, not the thirteenth item.
    let date = open == 0 && digits > 0 && is_month(&content[mark..]);
    (!date).then_some(mark)
}

fn spaced(content: &str, mark: usize) -> Option<usize> {
    let space = content
        .get(mark..)?
        .chars()
        .next()
        .filter(|c| c.is_whitespace())?;
    Some(mark + space.len_utf8())
}

/// Table rows, JSON lines and CSV rows. The mark of CSV is a separator with no space after it.
fn is_row(content: &str) -> bool {
    let json = (content.starts_with('{') && content.trim_end_matches(',').ends_with('}'))
        || (content.starts_with('"') && content.contains("\": "));
    if json || (content.starts_with('|') && content.len() > 1) || content.contains('\t') {
        return true;
    }
    let bytes = content.as_bytes();
    let tight = |at: usize| {
        let sides = (
            at.checked_sub(1).and_then(|i| bytes.get(i)),
            bytes.get(at + 1),
        );
        match sides {
            // `1,000,000` is one number.
            (Some(a), Some(b)) => {
                !(b.is_ascii_whitespace() || a.is_ascii_digit() && b.is_ascii_digit())
            }
            _ => false,
        }
    };
    let separators = (0..bytes.len()).filter(|at| matches!(bytes[*at], b',' | b';') && tight(*at));
    separators.take(2).count() == 2
}

/// Length of the label of a `Label: value` line, colon included.
pub(super) fn label(content: &str) -> Option<usize> {
    let (colon, mark) = content
        .char_indices()
        .take(60)
        .find(|(_, c)| matches!(c, ':' | '：'))?;
    let name = content[..colon].trim_matches(['*', '_', '[', ' ']);
    let fits = name
        .chars()
        .all(|c| c.is_alphanumeric() || " -/.'’()&#§]".contains(c));
    let starts = name.starts_with(|c: char| c.is_alphanumeric() && !c.is_lowercase());
    let words = name.split_whitespace().count();
    let after = &content[colon + mark.len_utf8()..];
    let value = after.trim_start_matches(['*', '_']);
    let apart = mark == '：' || value.starts_with(char::is_whitespace);
    let says = value.contains(char::is_alphanumeric);
    // A dot ends the label's own sentence (`See no. 4. Cost: ...`), save in one short word.
    let whole = !name.contains(". ");
    (fits && starts && (1..=6).contains(&words) && apart && says && whole)
        .then(|| content.len() - after.len())
}

fn promote_lone_headings(text: &str, lines: &mut [Line]) {
    let apart = |line: Option<&Line>| {
        line.is_none_or(|line| matches!(line.kind, Kind::Blank | Kind::Skip | Kind::Heading))
    };
    for at in 0..lines.len() {
        let alone = apart(at.checked_sub(1).and_then(|i| lines.get(i))) && apart(lines.get(at + 1));
        if lines[at].kind == Kind::Text && alone && reads_as_heading(&text[lines[at].at.clone()]) {
            lines[at].kind = Kind::Heading;
        }
    }
}

/// A lone line in bold or in capitals, or the title of a section of a statute.
fn reads_as_heading(content: &str) -> bool {
    if content.len() > 120 || content.ends_with(['.', '!', '?', ',', ';']) {
        return false;
    }
    let bold = content.len() > 4 && content.starts_with("**") && content.ends_with("**");
    let capitals = content.chars().filter(|c| c.is_uppercase()).count();
    let digits = content.chars().filter(char::is_ascii_digit).count();
    let shouts = capitals >= 4 && digits < capitals && !content.contains(char::is_lowercase);
    bold || content.starts_with("§ ") || (shouts && content.starts_with(char::is_alphanumeric))
}

fn measure_paragraphs(lines: &mut [Line]) {
    for run in lines.chunk_by_mut(|a, b| a.kind != Kind::Blank && b.kind != Kind::Blank) {
        let prose = run.iter().filter(|line| line.kind != Kind::Row);
        let measure = prose.map(|line| line.width).max().unwrap_or(0);
        for line in run {
            line.measure = measure;
        }
    }
}

pub(super) fn heading_text(text: &str, at: &Range<usize>) -> Range<usize> {
    let marks = |c: char| c.is_whitespace() || matches!(c, '#' | '*' | '_');
    trimmed_of(text, at.clone(), marks)
}

/// Labels seen three times or more: the speakers of a transcript.
pub(super) fn repeated_labels<'a>(text: &'a str, lines: &[Line]) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for line in lines.iter().filter(|line| line.kind == Kind::Label) {
        let content = &text[line.at.clone()];
        if let Some(end) = label(content) {
            *counts.entry(&content[..end]).or_insert(0) += 1;
        }
    }
    counts.retain(|_, count| *count >= 3);
    counts
}

pub(super) fn columns(line: &str) -> usize {
    if line.is_ascii() {
        return line.len();
    }
    line.chars()
        .map(|c| {
            if is_unspaced(c) || matches!(c, '\u{3000}'..='\u{3004}' | '\u{ff01}'..='\u{ff60}') {
                2
            } else {
                1
            }
        })
        .sum()
}

pub(super) fn trimmed(text: &str, at: Range<usize>) -> Range<usize> {
    trimmed_of(text, at, |c| c.is_whitespace() || c == '\u{feff}')
}

pub(super) fn trimmed_of(
    text: &str,
    at: Range<usize>,
    drop: impl Fn(char) -> bool,
) -> Range<usize> {
    let rest = text[at.clone()].trim_start_matches(&drop);
    let start = at.end - rest.len();
    start..start + rest.trim_end_matches(&drop).len()
}
