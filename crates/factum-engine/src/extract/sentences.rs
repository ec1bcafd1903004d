//! Sentences of a text in any language and any format read as text, as exact byte ranges.
//!
//! Two steps. First the *lines* are sorted into kinds (heading, list item, table or CSV row,
//! `Label: value`, prose) and joined into *blocks*; then each block of prose is cut at the
//! sentence boundaries of Unicode Standard Annex #29. The annex knows no abbreviations and breaks
//! at every line end, so line ends inside a block are shown to it as spaces, and its cuts after
//! `Dr.`, `Nr.`, initials and ordinals are taken back. A missed cut costs a reader half a line; a
//! wrong one makes a claim that says something else, so in doubt pieces stay together.
//!
//! Whether a line end inside a paragraph is a wrap or was meant (an address, a signature) is
//! decided as a typesetter would: had the next word fitted on the line, the break was meant.

use std::collections::BTreeMap;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// The longest sentence handed on, in characters; longer ones are cut at a clause boundary.
const LONGEST: usize = 600;
/// A clause shorter than this is no sentence worth cutting off.
const SHORTEST_CLAUSE: usize = 40;
/// Least weight of a sentence: a word counts two, a character of an unspaced script one.
const LEAST_WEIGHT: usize = 6;
/// Below this width a paragraph is a set of lines (address, verse), not wrapped prose.
const NARROW: usize = 30;
/// A line at least this wide may have been wrapped in mid sentence.
const WIDE: usize = 50;

/// A sentence, table row or `Label: value` line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// Where it stands, in bytes of the text; without white space and markers at either end.
    pub bytes: Range<usize>,
    /// The nearest heading line above it in the same text, without its marks.
    pub heading: Option<Range<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
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
struct Line {
    /// The content: no white space at the ends, no list or quote marks.
    at: Range<usize>,
    kind: Kind,
    /// Depth of `>` marks; a reply is not joined with what it quotes.
    quoted: usize,
    /// Columns of the whole line, where wide characters take two.
    width: usize,
    /// The widest line of its paragraph.
    measure: usize,
}

/// The sentences of `text` in order, without overlaps.
///
/// Left out: headings, rules, fence lines, greetings, lists of links, pure punctuation and
/// fragments of fewer than three words (six characters in scripts without spaces) that are no
/// `Label: value` lines.
pub fn sentences(text: &str) -> Vec<Sentence> {
    let lines = lines_of(text);
    let speakers = repeated_labels(text, &lines);
    let mut out = Vec::new();
    let mut heading = None;
    let mut first = 0;
    while let Some(line) = lines.get(first) {
        let mut end = first + 1;
        match line.kind {
            Kind::Blank | Kind::Skip => {}
            Kind::Heading => heading = Some(heading_text(text, &line.at)),
            _ => {
                end = block_end(text, &lines, first);
                let block = Block {
                    text,
                    lines: &lines[first..end],
                    heading: heading.as_ref(),
                };
                block.emit(&speakers, &mut out);
            }
        }
        first = end;
    }
    out
}

// ---- Lines ----

/// What the lines above leave open.
#[derive(PartialEq, Eq)]
enum Within {
    Prose,
    FrontMatter,
    Fence(char),
    Comment,
}

fn lines_of(text: &str) -> Vec<Line> {
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
    if content.contains(" --> ") || content.starts_with("{%") {
        return Kind::Skip; // Cue times; template tags.
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
    let above = above.last().filter(|line| line.quoted == quoted);
    let in_prose = above.is_some_and(|line| line.kind == Kind::Text);
    if content.starts_with(": ") || content.starts_with(":\t") {
        return if in_prose {
            Kind::Definition
        } else {
            Kind::Item
        };
    }
    if list_mark(content).is_some() && !(in_prose && may_be_wrapped_mark(content)) {
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
    let space = content[mark..]
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
fn label(content: &str) -> Option<usize> {
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
    let capitals = content.chars().filter(|c| c.is_uppercase()).take(4).count() == 4;
    bold || content.starts_with("§ ") || (capitals && !content.contains(char::is_lowercase))
}

fn measure_paragraphs(lines: &mut [Line]) {
    for run in lines.chunk_by_mut(|a, b| a.kind != Kind::Blank && b.kind != Kind::Blank) {
        let prose = run.iter().filter(|line| line.kind != Kind::Row);
        let measure = prose.map(|line| line.width).max().unwrap_or(0);
        run.iter_mut().for_each(|line| line.measure = measure);
    }
}

fn heading_text(text: &str, at: &Range<usize>) -> Range<usize> {
    let marks = |c: char| c.is_whitespace() || matches!(c, '#' | '*' | '_');
    trimmed_of(text, at.clone(), marks)
}

/// Labels seen three times or more: the speakers of a transcript.
fn repeated_labels<'a>(text: &'a str, lines: &[Line]) -> BTreeMap<&'a str, usize> {
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

// ---- Blocks ----

fn block_end(text: &str, lines: &[Line], first: usize) -> usize {
    let mut end = first + 1;
    while let Some(next) = lines.get(end) {
        let last = &lines[end - 1];
        let joins = match (lines[first].kind, next.kind) {
            (Kind::Text, Kind::Definition) => end == first + 1,
            (Kind::Text | Kind::Item | Kind::Definition, Kind::Text) => !is_meant(text, last, next),
            (Kind::Label, Kind::Text) => last.width >= WIDE && !is_meant(text, last, next),
            _ => false,
        };
        if !joins || last.quoted != next.quoted {
            break;
        }
        end += 1;
    }
    end
}

/// Whether the line end between two lines of prose was meant, rather than a wrap.
fn is_meant(text: &str, last: &Line, next: &Line) -> bool {
    let following = &text[next.at.clone()];
    if following.starts_with(char::is_lowercase) {
        return false;
    }
    let word = match following.chars().next() {
        Some(c) if is_unspaced(c) => 2,
        _ => 1 + columns(following.split_whitespace().next().unwrap_or("")),
    };
    last.measure < NARROW || last.width + word <= last.measure
}

struct Block<'a> {
    text: &'a str,
    lines: &'a [Line],
    heading: Option<&'a Range<usize>>,
}

impl Block<'_> {
    fn emit(&self, speakers: &BTreeMap<&str, usize>, out: &mut Vec<Sentence>) {
        let [first, ..] = self.lines else { return };
        let last = self.lines.last().unwrap_or(first);
        let whole = first.at.start..last.at.end;
        if first.kind == Kind::Row {
            let bar = |c: char| c.is_whitespace() || c == '|';
            let row = trimmed_of(self.text, whole, bar);
            return self.push_cut(row, false, out);
        }
        let content = &self.text[whole.clone()];
        if is_greeting(content) || (first.kind == Kind::Item && is_link(content)) {
            return;
        }
        let definition = self
            .lines
            .get(1)
            .is_some_and(|line| line.kind == Kind::Definition);
        let keep = definition
            || first.kind == Kind::Label
                && label(content).is_some_and(|end| {
                    let (name, value) = content.split_at(end);
                    !speakers.contains_key(name)
                        || value.contains(|c: char| c.is_ascii_digit())
                        || weight(value) >= LEAST_WEIGHT
                });
        // A speaker's `Yes.` stays out, though its label makes up the weight.
        if first.kind == Kind::Label && !keep {
            return;
        }
        let shown = self.as_one_line(&whole);
        for (number, piece) in pieces(&shown).into_iter().enumerate() {
            let piece = whole.start + piece.start..whole.start + piece.end;
            self.push_cut(trimmed(self.text, piece), keep && number == 0, out);
        }
    }

    /// The block with what stands between its lines (line ends, indents, `>`) shown as spaces, so
    /// that offsets stay and UAX #29 sees no paragraph separator.
    fn as_one_line(&self, whole: &Range<usize>) -> String {
        let mut shown = String::with_capacity(whole.len());
        let mut end = whole.start;
        for line in self.lines {
            shown.extend(std::iter::repeat_n(' ', line.at.start - end));
            shown.push_str(&self.text[line.at.clone()]);
            end = line.at.end;
        }
        shown
    }

    fn push_cut(&self, at: Range<usize>, keep: bool, out: &mut Vec<Sentence>) {
        let mut rest = at;
        while let Some(over) = self.text[rest.clone()].char_indices().nth(LONGEST) {
            let Some(cut) = clause_end(&self.text[rest.start..rest.start + over.0]) else {
                return;
            };
            self.push(trimmed(self.text, rest.start..rest.start + cut), keep, out);
            let mark = self.text[rest.start + cut..]
                .chars()
                .next()
                .map_or(1, char::len_utf8);
            rest = trimmed(self.text, rest.start + cut + mark..rest.end);
        }
        self.push(rest, keep, out);
    }

    fn push(&self, bytes: Range<usize>, keep: bool, out: &mut Vec<Sentence>) {
        if !bytes.is_empty() && (keep || weight(&self.text[bytes.clone()]) >= LEAST_WEIGHT) {
            out.push(Sentence {
                bytes,
                heading: self.heading.cloned(),
            });
        }
    }
}

/// Where the last clause ends that fits: at a semicolon if there is one, else at a comma.
fn clause_end(window: &str) -> Option<usize> {
    let ends = |marks: [char; 3], wide: [char; 3]| {
        window
            .char_indices()
            .rev()
            .map(|(at, c)| (at, c))
            .find(|(at, c)| {
                let after = &window[at + c.len_utf8()..];
                let apart = wide.contains(c) || after.starts_with(char::is_whitespace);
                (marks.contains(c) || wide.contains(c)) && apart && *at >= SHORTEST_CLAUSE
            })
    };
    let semicolon = ends([';', ';', '؛'], ['；', '；', '；']);
    let comma = || ends([',', '،', '|'], ['，', '、', '，']);
    semicolon.or_else(comma).map(|(at, _)| at)
}

/// A short line that ends in a comma opens or closes a letter, in every language that does so.
fn is_greeting(content: &str) -> bool {
    content.ends_with([',', '，'])
        && content.split_whitespace().nth(6).is_none()
        && content.len() < 80
}

/// A list item that is only a Markdown link, as in a table of contents.
fn is_link(content: &str) -> bool {
    content.starts_with('[')
        && content.ends_with(')')
        && content.matches("](").count() == 1
        && content.find(')') == Some(content.len() - 1)
}

// ---- Sentences of a block ----

/// UAX #29's pieces, with its cuts after abbreviations, initials and ordinals taken back.
fn pieces(shown: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for (start, piece) in shown.split_sentence_bound_indices() {
        let end = start + piece.len();
        match out.last_mut() {
            Some(last) if belongs_together(&shown[last.clone()], piece) => last.end = end,
            _ => out.push(start..end),
        }
    }
    out
}

fn belongs_together(before: &str, after: &str) -> bool {
    if before.ends_with(['\u{85}', '\u{2028}', '\u{2029}', '\n', '\r']) {
        return false;
    }
    let after = after.trim_start();
    let Some(first) = after.chars().next() else {
        return true;
    };
    if first.is_lowercase() {
        return true;
    }
    let Some(stem) = before.trim_end().strip_suffix('.') else {
        return false;
    };
    // Looking back a bounded way keeps a long run of joins linear.
    let near = stem
        .char_indices()
        .rev()
        .nth(40)
        .map_or(stem, |(at, _)| &stem[at..]);
    let mut words = near.rsplit(|c: char| c.is_whitespace() || "([{\"'„“”‘»«/".contains(c));
    let token = words.next().unwrap_or("").trim_end_matches('\\');
    let next = after.split_whitespace().next().unwrap_or("");
    if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit()) {
        let lead = words
            .find(|word| !word.is_empty())
            .unwrap_or("")
            .to_lowercase();
        // `1.` alone numbers what follows; `3. März`, `am 3. Werktag` are ordinals.
        return token.len() <= 3 && token.len() == stem.trim_start().len()
            || token.len() <= 2 && (is_month(next) || ORDINAL_LEADS.contains(&lead.as_str()));
    }
    let mut letters = token.chars();
    let single = letters.next().filter(|_| letters.next().is_none());
    if single.is_some_and(|c| c.is_alphabetic() && !is_unspaced(c) && c != 'I') {
        return true;
    }
    let token = token.to_lowercase();
    if ABBREVIATIONS.contains(&token.as_str()) {
        return true;
    }
    let numbered = next.contains(|c: char| c.is_ascii_digit())
        || next
            .trim_end_matches(['.', ',', ')'])
            .chars()
            .all(|c| "IVXLC".contains(c));
    let short = token.chars().count() <= 4 && token.chars().all(char::is_alphabetic);
    numbered && NUMBERED.contains(&token.as_str()) || short && first.is_ascii_digit()
}

/// Abbreviations that never end a sentence, whatever follows.
const ABBREVIATIONS: &[&str] = &[
    "dr", "mr", "mrs", "ms", "messrs", "prof", "rev", "hon", "capt", "sgt", "lt", "col", "gen",
    "st", "mme", "mlle", "sra", "dra", "hr", "fr", "hrn", "dipl", "ing", "med", "jur", "vgl",
    "bzw", "ggf", "evtl", "ca", "inkl", "zzgl", "sog", "gem", "i.v.m", "z.b", "d.h", "u.a", "o.ä",
    "i.s.d", "i.d.r", "e.g", "i.e", "cf", "vs", "approx", "einschl", "insb", "bes", "mag", "mons",
];
/// Abbreviations that stand before a number.
const NUMBERED: &[&str] = &[
    "no", "nos", "nr", "nrn", "abs", "art", "ziff", "rn", "rdnr", "rz", "pp", "para", "paras",
    "sec", "fig", "figs", "vol", "ch", "cl", "tel", "bd", "lit", "buchst", "abb", "anl", "kap",
    "ref", "az", "ext", "núm", "num", "cap", "n°", "tit", "par", "sect", "bekl", "fn", "jan",
    "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "okt", "nov", "dec", "dez",
];
/// Words before a German ordinal.
const ORDINAL_LEADS: &[&str] = &[
    "am", "vom", "zum", "im", "der", "den", "dem", "des", "das", "die", "bis", "seit", "ab",
    "beim", "jeder", "jeden",
];
/// Beginnings of month names in languages that write ordinal dates (German, Nordic, Czech,
/// Polish, Slovene, Finnish, Hungarian write most of these capitalised or joined by case alone).
const MONTHS: &[&str] = &[
    "jan", "jän", "feb", "mär", "mar", "apr", "mai", "maj", "jun", "jul", "aug", "sep", "okt",
    "oct", "nov", "dez", "dec",
];

fn is_month(word: &str) -> bool {
    let name: String = word
        .chars()
        .take_while(|c| c.is_alphabetic())
        .take(10)
        .collect();
    let name = name.to_lowercase();
    (3..=9).contains(&name.chars().count()) && MONTHS.iter().any(|month| name.starts_with(month))
}

// ---- Characters ----

/// Scripts written without spaces, where a character rather than a word is the unit.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

fn columns(line: &str) -> usize {
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

/// Words count two, characters of unspaced scripts one; counting stops once it is enough.
fn weight(sentence: &str) -> usize {
    let mut sum = 0;
    for word in sentence.unicode_words() {
        let wide = word
            .chars()
            .take(LEAST_WEIGHT)
            .filter(|c| is_unspaced(*c))
            .count();
        sum += if wide > 0 { wide } else { 2 };
        if sum >= LEAST_WEIGHT {
            break;
        }
    }
    sum
}

fn trimmed(text: &str, at: Range<usize>) -> Range<usize> {
    trimmed_of(text, at, |c| c.is_whitespace() || c == '\u{feff}')
}

fn trimmed_of(text: &str, at: Range<usize>, drop: impl Fn(char) -> bool) -> Range<usize> {
    let rest = text[at.clone()].trim_start_matches(&drop);
    let start = at.end - rest.len();
    start..start + rest.trim_end_matches(&drop).len()
}
