//! Which format a file is: by its magic bytes, by its name, and last by what its text looks like.
//!
//! Knows names and signatures only; it reads no format.

use crate::json;
use crate::lines::split_lines;
use crate::media::Media;

/// What name and bytes say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Read it as this.
    Media(Media),
    /// A format known by name that can't be read.
    Refused(&'static str),
    /// The name says nothing; the text decides.
    Unknown,
}

/// Signatures that no text starts with. Longer ones come first where one begins another.
const MAGICS: &[(&[u8], &str)] = &[
    (b"%PDF-", "PDF"),
    (b"{\\rtf", "RTF"),
    (b"%!PS-", "PostScript"),
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"8BPS\0", "Photoshop image"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh91AY&SY", "bzip2 archive"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"Rar!\x1a\x07", "RAR archive"),
    (b"\xfd7zXZ\0", "xz archive"),
    (b"\x28\xb5\x2f\xfd", "Zstandard archive"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\x7fELF", "program"),
    (b"MZ\x90\0", "program"),
    (b"OggS\0", "Ogg recording"),
    (b"fLaC\0", "FLAC recording"),
    (b"ID3\x02", "MP3 recording"),
    (b"ID3\x03", "MP3 recording"),
    (b"ID3\x04", "MP3 recording"),
    (b"\x1a\x45\xdf\xa3", "Matroska recording"),
    (b"\0asm", "program"),
];

/// Formats refused by name where the bytes have no signature of their own.
const REFUSED_NAMES: &[(&[&str], &str)] = &[
    (&["pdf"], "PDF"),
    (&["docx", "docm", "dotx"], "Word (DOCX)"),
    (&["xlsx", "xlsm", "xltx"], "Excel (XLSX)"),
    (&["pptx", "pptm", "ppsx"], "PowerPoint (PPTX)"),
    (&["doc", "dot"], "Word (DOC)"),
    (&["xls", "xlt"], "Excel (XLS)"),
    (&["ppt", "pps"], "PowerPoint (PPT)"),
    (&["odt", "ott"], "OpenDocument text (ODT)"),
    (&["ods", "ots"], "OpenDocument table (ODS)"),
    (&["odp", "otp"], "OpenDocument slides (ODP)"),
    (&["rtf"], "RTF"),
    (&["eml", "mbox"], "mail (EML)"),
    (&["msg"], "Outlook mail (MSG)"),
    (&["epub"], "EPUB"),
    (&["zip"], "ZIP archive"),
    (&["gz", "tgz"], "gzip archive"),
    (
        &[
            "png", "jpg", "jpeg", "gif", "tif", "tiff", "bmp", "webp", "heic",
        ],
        "image",
    ),
    (&["mp3", "wav", "m4a", "ogg", "flac"], "sound recording"),
    (&["mp4", "mov", "avi", "mkv", "webm"], "video recording"),
];

const READABLE_NAMES: &[(&[&str], Media)] = &[
    (
        &[
            "txt", "text", "log", "asc", "rst", "tex", "jsonl", "ndjson", "xml",
        ],
        Media::PlainText,
    ),
    (&["md", "markdown", "mdown", "mkd"], Media::Markdown),
    (&["html", "htm", "xhtml", "xht"], Media::Html),
    (&["csv", "tsv", "tab"], Media::Csv),
    (&["json", "geojson", "jsonld"], Media::Json),
    (&["vtt"], Media::Vtt),
    (&["srt"], Media::Srt),
];

/// Decides by signature and name.
pub(crate) fn choose(name: &str, bytes: &[u8]) -> Choice {
    let extension = extension(name);
    if let Some(format) = magic(&extension, bytes) {
        return Choice::Refused(format);
    }
    if let Some(format) = by_name(REFUSED_NAMES, &extension) {
        return Choice::Refused(format);
    }
    by_name(READABLE_NAMES, &extension).map_or(Choice::Unknown, Choice::Media)
}

fn by_name<T: Copy>(names: &[(&[&str], T)], extension: &str) -> Option<T> {
    names
        .iter()
        .find(|(known, _)| known.contains(&extension))
        .map(|&(_, what)| what)
}

/// The lower-case extension, or nothing.
fn extension(name: &str) -> String {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    match file.rsplit_once('.') {
        Some((_, extension)) if extension.len() <= 12 => extension.to_ascii_lowercase(),
        _ => String::new(),
    }
}

fn magic(extension: &str, bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return Some(zip_kind(extension, bytes));
    }
    if bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
        return Some(by_name(REFUSED_NAMES, extension).unwrap_or("OLE compound file"));
    }
    if let Some(&(_, format)) = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some(format);
    }
    match (bytes.get(..4), bytes.get(4..8), bytes.get(8..12)) {
        (Some(b"RIFF"), _, Some(b"WEBP")) => Some("WebP image"),
        (Some(b"RIFF"), _, Some(b"WAVE")) => Some("sound recording"),
        (Some(b"RIFF"), _, Some(b"AVI ")) => Some("video recording"),
        (Some([0, 0, ..]), Some(b"ftyp"), _) => Some("MP4 recording"),
        (Some([b'B', b'M', ..]), Some([_, _, 0, 0]), _) if bytes.get(8..10) == Some(&[0, 0]) => {
            Some("BMP image")
        }
        _ => None,
    }
}

/// Office files are ZIP archives; what is inside tells them apart when the name does not.
fn zip_kind(extension: &str, bytes: &[u8]) -> &'static str {
    const PARTS: &[(&[u8], &str)] = &[
        (
            b"mimetypeapplication/vnd.oasis.opendocument.text",
            "OpenDocument text (ODT)",
        ),
        (
            b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
            "OpenDocument table (ODS)",
        ),
        (
            b"mimetypeapplication/vnd.oasis.opendocument.presentation",
            "OpenDocument slides (ODP)",
        ),
        (b"mimetypeapplication/epub+zip", "EPUB"),
        (b"word/", "Word (DOCX)"),
        (b"xl/", "Excel (XLSX)"),
        (b"ppt/", "PowerPoint (PPTX)"),
    ];
    if let Some(format) = by_name(REFUSED_NAMES, extension) {
        return format;
    }
    let head = &bytes[..bytes.len().min(4096)];
    PARTS
        .iter()
        .find(|(part, _)| head.windows(part.len()).any(|window| window == *part))
        .map_or("ZIP archive", |&(_, format)| format)
}

/// Decides by the decoded text, for names that say nothing. A table or Markdown can't be told from
/// prose soundly, so neither is ever guessed.
pub(crate) fn sniff_text(text: &str) -> Media {
    let start = text.trim_start();
    if let Some(rest) = start.strip_prefix("WEBVTT")
        && rest.chars().next().is_none_or(char::is_whitespace)
    {
        return Media::Vtt;
    }
    if looks_like_html(start) {
        return Media::Html;
    }
    if start.starts_with(['{', '[']) && json::is_valid(text) {
        return Media::Json;
    }
    let mut lines = split_lines(start).map(|line| start[line].trim());
    if let (Some(number), Some(time)) = (lines.next(), lines.next())
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && crate::cues::parse_timing(time).is_some()
    {
        return Media::Srt;
    }
    Media::PlainText
}

fn looks_like_html(mut start: &str) -> bool {
    // Licence comments often come before the document type.
    while let Some(comment) = start.strip_prefix("<!--") {
        let Some((_, rest)) = comment.split_once("-->") else {
            return false;
        };
        start = rest.trim_start();
    }
    let starts = |tag: &str| {
        start
            .get(..tag.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(tag))
    };
    starts("<!doctype html") || starts("<html") || starts("<head") || starts("<body")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_beats_the_name() {
        assert_eq!(choose("letter.txt", b"%PDF-1.4\n"), Choice::Refused("PDF"));
        assert_eq!(
            choose("a.docx", b"PK\x03\x04"),
            Choice::Refused("Word (DOCX)")
        );
        assert_eq!(
            choose("a.bin", b"PK\x03\x04....word/document.xml"),
            Choice::Refused("Word (DOCX)")
        );
        assert_eq!(
            choose("m.msg", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
            Choice::Refused("Outlook mail (MSG)")
        );
        assert_eq!(
            choose("a.txt", b"MM and BM are initials"),
            Choice::Media(Media::PlainText)
        );
    }

    #[test]
    fn the_extension_decides_without_regard_to_case_or_folders() {
        assert_eq!(choose("x/y.HTML", b"a"), Choice::Media(Media::Html));
        assert_eq!(choose("x.html/readme", b"a"), Choice::Unknown);
        assert_eq!(
            choose("mail.eml", b"From: a"),
            Choice::Refused("mail (EML)")
        );
    }

    #[test]
    fn nameless_text_is_known_by_its_start() {
        assert_eq!(sniff_text("WEBVTT\n\n"), Media::Vtt);
        assert_eq!(sniff_text("WEBVTTx"), Media::PlainText);
        assert_eq!(sniff_text(" <!-- a --><!DOCTYPE HTML><p>"), Media::Html);
        assert_eq!(sniff_text("{\"a\":1}"), Media::Json);
        assert_eq!(sniff_text("{a} is a set"), Media::PlainText);
        assert_eq!(
            sniff_text("1\r\n00:00:01,000 --> 00:00:02,000\r\nx"),
            Media::Srt
        );
        assert_eq!(sniff_text("a,b\n1,2\n3,4\n"), Media::PlainText);
    }
}
