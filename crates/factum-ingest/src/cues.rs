//! WebVTT and SubRip: the text layer is what is said, the layout is when and by whom.

use std::fmt;

use serde::{Deserialize, Serialize};

use factum_base::Span;

use crate::cue_markup::{Payload, push_line};
use crate::decode::Decoded;
use crate::layout::Layout;
use crate::lines::split_lines;
use crate::media::Media;
use crate::read::TextLayer;
use crate::source::SourceCursor;
use crate::warning::Warning;

/// When a cue is shown, in milliseconds from the start of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CueTime {
    /// The start.
    pub start_ms: u64,
    /// The end. Before the start where the file says so.
    pub end_ms: u64,
}

/// What one voice says in one cue. A cue with several voices gives several of these with the same
/// number and time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cue {
    /// Place in the file, counted from one; cues without text count too.
    pub number: u32,
    /// Where its text is in the text layer.
    pub span: Span,
    /// When it is shown, if its times can be read.
    pub time: Option<CueTime>,
    /// The speaker, where the file marks one with a voice tag.
    pub speaker: Option<String>,
    /// First byte of the whole cue in the original file.
    pub start_byte: u32,
    /// One past its last byte.
    pub end_byte: u32,
}

/// Hours, minutes, seconds and milliseconds.
pub(crate) fn write_clock(f: &mut fmt::Formatter<'_>, ms: u64) -> fmt::Result {
    let seconds = ms / 1000;
    write!(
        f,
        "{:02}:{:02}:{:02}.{:03}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        ms % 1000
    )
}

/// `hh:mm:ss.mmm`, `mm:ss.mmm`, with either decimal sign.
pub(crate) fn parse_time(text: &str) -> Option<u64> {
    let (clock, fraction) = text.trim().split_once(['.', ','])?;
    let number = |digits: &str, longest: usize| {
        let fits =
            (1..=longest).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| digits.parse::<u64>().ok()).flatten()
    };
    let scale = [100, 10, 1].get(fraction.len().checked_sub(1)?)?;
    let mut ms = number(fraction, 3)? * scale;
    let mut parts = clock.rsplit(':');
    ms += number(parts.next()?, 2).filter(|&s| s < 60)? * 1000;
    ms += number(parts.next()?, 2).filter(|&m| m < 60)? * 60_000;
    if let Some(hours) = parts.next() {
        ms += number(hours, 9)? * 3_600_000;
    }
    parts.next().is_none().then_some(ms)
}

/// A line with both times; settings behind them are allowed.
pub(crate) fn parse_timing(line: &str) -> Option<CueTime> {
    let (start, rest) = line.split_once("-->")?;
    let end = rest.split_whitespace().next()?;
    Some(CueTime {
        start_ms: parse_time(start)?,
        end_ms: parse_time(end)?,
    })
}

/// What a line that holds an arrow is.
enum Arrow {
    Timing(Option<CueTime>),
    Text,
}

fn arrow(media: Media, line: &str) -> Option<Arrow> {
    if !line.contains("-->") {
        return None;
    }
    let time = parse_timing(line);
    let looks_like_time =
        line.trim_start().starts_with(|c: char| c.is_ascii_digit()) && line.contains(':');
    // In WebVTT an arrow can be nothing else; in SubRip people write it in speech.
    Some(
        if time.is_some() || media == Media::Vtt || looks_like_time {
            Arrow::Timing(time)
        } else {
            Arrow::Text
        },
    )
}

/// A cue as it lies in the decoded text.
#[derive(Debug, Default)]
struct Raw {
    time: Option<CueTime>,
    /// Byte range in the decoded text.
    start: usize,
    end: usize,
    lines: Vec<std::ops::Range<usize>>,
}

/// Reads decoded WebVTT or SubRip.
pub(crate) fn read(media: Media, bytes: &[u8], decoded: Decoded) -> TextLayer {
    let mut reader = Reader::new(media, &decoded.text);
    reader.read();
    let Reader {
        raws,
        outside,
        first_outside,
        ..
    } = reader;
    let mut writer = Writer::default();
    let mut cursor = SourceCursor::new(bytes, &decoded);
    for (number, raw) in (1u32..).zip(&raws) {
        let mut payload = Payload::default();
        for line in &raw.lines {
            if !payload.text.is_empty() {
                payload.text.push('\n');
            }
            push_line(
                &mut payload,
                &decoded.text[line.clone()],
                media == Media::Srt,
            );
        }
        let start = narrow(cursor.start_of(raw.start));
        let end = narrow(cursor.end_of(raw.end));
        writer.push(number, raw.time, &payload, start..end);
    }
    let mut warnings = decoded.warnings;
    warnings.extend(time_warnings(&raws));
    if outside > 0 {
        warnings.push(Warning::TextOutsideCues {
            lines: outside,
            first_line: first_outside,
        });
    }
    TextLayer {
        media,
        text: writer.text,
        layout: Layout::of_cues(writer.cues),
        encoding: decoded.encoding,
        warnings,
    }
}

fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

fn time_warnings(raws: &[Raw]) -> Vec<Warning> {
    let tally = |wrong: &dyn Fn(&Raw) -> bool| {
        let mut found = (1u32..)
            .zip(raws)
            .filter(|(_, raw)| wrong(raw))
            .map(|(number, _)| number);
        let first = found.next();
        first.map(|first| (narrow(found.count()).saturating_add(1), first))
    };
    let mut warnings = Vec::new();
    if let Some((count, first_cue)) = tally(&|raw| raw.time.is_some_and(|t| t.end_ms < t.start_ms))
    {
        warnings.push(Warning::ReversedCueTime { count, first_cue });
    }
    if let Some((count, first_cue)) = tally(&|raw| raw.time.is_none()) {
        warnings.push(Warning::UnreadableCueTime { count, first_cue });
    }
    warnings
}

struct Reader<'a> {
    media: Media,
    text: &'a str,
    raws: Vec<Raw>,
    outside: u32,
    first_outside: u32,
}

impl<'a> Reader<'a> {
    fn new(media: Media, text: &'a str) -> Self {
        Self {
            media,
            text,
            raws: Vec::new(),
            outside: 0,
            first_outside: 0,
        }
    }

    fn read(&mut self) {
        // A cue's own line of identity comes before its times, so one line is held back.
        let mut held: Option<(u32, std::ops::Range<usize>)> = None;
        let mut after_blank = true;
        let mut in_cue = false;
        let mut skipping = false;
        for (number, line) in (1u32..).zip(split_lines(self.text)) {
            let content = &self.text[line.clone()];
            if content.trim().is_empty() {
                self.settle(held.take(), in_cue);
                after_blank = true;
                skipping = false;
                // SubRip payloads sometimes hold empty lines; WebVTT's cannot.
                in_cue &= self.media == Media::Srt;
                continue;
            }
            if let Some(Arrow::Timing(time)) = arrow(self.media, content) {
                let start = self
                    .identity(held.take(), in_cue)
                    .map_or(line.start, |id| id.start);
                self.raws.push(Raw {
                    time,
                    start,
                    end: line.end,
                    lines: Vec::new(),
                });
                in_cue = true;
                skipping = false;
            } else if self.media == Media::Vtt
                && after_blank
                && !in_cue
                && is_skipped_block(content, number)
            {
                skipping = true;
            } else if !skipping {
                self.settle(held.replace((number, line)), in_cue);
            }
            after_blank = false;
        }
        self.settle(held, in_cue);
    }

    /// The held line, if it is the identity of the cue whose times come next; else it is settled.
    fn identity(
        &mut self,
        held: Option<(u32, std::ops::Range<usize>)>,
        in_cue: bool,
    ) -> Option<std::ops::Range<usize>> {
        let (number, line) = held?;
        let is_number = self.text[line.clone()]
            .trim()
            .bytes()
            .all(|byte| byte.is_ascii_digit());
        if !is_number && (in_cue || self.media == Media::Srt) {
            self.settle(Some((number, line)), in_cue);
            return None;
        }
        Some(line)
    }

    /// A line that is no identity: part of the open cue, or of none.
    fn settle(&mut self, held: Option<(u32, std::ops::Range<usize>)>, in_cue: bool) {
        let Some((number, line)) = held else { return };
        match self.raws.last_mut() {
            Some(raw) if in_cue => {
                raw.end = line.end;
                raw.lines.push(line);
            }
            _ => {
                self.outside += 1;
                if self.first_outside == 0 {
                    self.first_outside = number;
                }
            }
        }
    }
}

/// The header, notes and styles of WebVTT.
fn is_skipped_block(line: &str, number: u32) -> bool {
    let word = line.split_whitespace().next().unwrap_or("");
    matches!(word, "NOTE" | "STYLE" | "REGION") || (number == 1 && word == "WEBVTT")
}

#[derive(Default)]
struct Writer {
    text: String,
    /// Length of `text` in code points.
    length: u32,
    cues: Vec<Cue>,
}

impl Writer {
    fn push_text(&mut self, text: &str) -> Span {
        let start = self.length;
        self.length += narrow(text.chars().count());
        self.text.push_str(text);
        Span::new(start, self.length)
    }

    /// Writes a cue's text, cut where the voice changes. White space between voices belongs to none.
    fn push(
        &mut self,
        number: u32,
        time: Option<CueTime>,
        payload: &Payload,
        source: std::ops::Range<u32>,
    ) {
        if payload.text.trim().is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.push_text("\n\n");
        }
        let mut from = 0;
        let mut speaker: Option<&String> = None;
        let turns = payload
            .voices
            .iter()
            .map(|(at, speaker)| (*at, speaker.as_ref()))
            .chain([(payload.text.len(), None)]);
        let mut parts: Vec<(std::ops::Range<usize>, Option<&String>)> = Vec::new();
        for (at, next) in turns {
            let piece = &payload.text[from..at];
            match parts.last_mut() {
                Some(last) if last.1 == speaker || piece.trim().is_empty() => last.0.end = at,
                _ if piece.is_empty() => {}
                _ => parts.push((from..at, speaker)),
            }
            from = at;
            speaker = next;
        }
        for (part, speaker) in parts {
            let part = &payload.text[part];
            let kept = part.trim_end();
            let span = self.push_text(kept);
            self.push_text(&part[kept.len()..]);
            if !span.is_empty() {
                self.cues.push(Cue {
                    number,
                    span,
                    time,
                    speaker: speaker.cloned(),
                    start_byte: source.start,
                    end_byte: source.end,
                });
            }
        }
    }
}
