//! Claims about reading, with small files of their own.

// Helpers of a test are part of it; clippy only knows functions marked as tests.
#![allow(clippy::unwrap_used)]

use factum_base::Span;
use factum_ingest::{Layout, Limits, Location, Media, Refusal, TextLayer, Warning, read_document};

fn read(name: &str, bytes: &[u8]) -> TextLayer {
    read_document(name, bytes, &Limits::default()).unwrap()
}

fn refused(name: &str, bytes: &[u8]) -> Refusal {
    read_document(name, bytes, &Limits::default()).unwrap_err()
}

fn located(layer: &TextLayer, words: &str) -> String {
    let at = layer.text.find(words).expect(words);
    let start = u32::try_from(layer.text[..at].chars().count()).unwrap();
    let length = u32::try_from(words.chars().count()).unwrap();
    layer
        .layout
        .locate(&layer.text, Span::new(start, start + length))
        .to_string()
}

#[test]
fn a_file_without_text_is_empty() {
    for (name, bytes) in [
        ("a.txt", &b""[..]),
        ("a.pdf", b""),
        ("a.txt", b" \r\n\t"),
        ("a.txt", b"\xef\xbb\xbf\n"),
        ("a.txt", b"\xff\xfe \0\n\0"),
        (
            "a.html",
            b"<html><head><title>T</title></head><body><p hidden>x</body>",
        ),
        ("a.vtt", b"WEBVTT\n\nNOTE nothing said\n"),
    ] {
        assert_eq!(refused(name, bytes), Refusal::Empty, "{name} {bytes:?}");
    }
}

#[test]
fn known_formats_are_refused_by_name() {
    for (name, bytes, format) in [
        ("a.txt", &b"%PDF-1.7\n"[..], "PDF"),
        ("a.docx", b"PK\x03\x04rest", "Word (DOCX)"),
        ("a.eml", b"From: a@example.org\n\nhello", "mail (EML)"),
        ("a.odt", b"not an archive", "OpenDocument text (ODT)"),
        ("a", b"\x89PNG\r\n\x1a\n\0", "PNG image"),
    ] {
        assert_eq!(
            refused(name, bytes),
            Refusal::Unsupported {
                format: format.to_owned()
            }
        );
    }
}

#[test]
fn binary_data_is_no_text() {
    let bytes: Vec<u8> = (0u8..=255).cycle().take(1000).collect();
    assert_eq!(refused("a.txt", &bytes).kind(), "Binary");
    assert_eq!(refused("a.csv", b"a\0b").kind(), "Binary");
}

#[test]
fn a_file_over_the_limit_is_not_looked_at() {
    let limits = Limits {
        max_bytes: 4,
        ..Limits::default()
    };
    assert_eq!(
        read_document("a.txt", b"12345", &limits)
            .unwrap_err()
            .to_string(),
        "more than 4 bytes"
    );
    assert!(read_document("a.txt", b"1234", &limits).is_ok());
}

#[test]
fn a_lying_mark_is_refused() {
    let surrogates = [b"\xfe\xff".as_slice(), &b"\xd8\x00".repeat(20)].concat();
    assert_eq!(refused("a.txt", &surrogates).kind(), "Undecodable");
}

#[test]
fn one_broken_character_does_not_change_the_encoding() {
    let layer = read(
        "a.txt",
        "Grüße aus Köln, schöne Grüße €\n"
            .as_bytes()
            .strip_suffix(b"\xac\n")
            .unwrap(),
    );
    assert_eq!(layer.text, "Grüße aus Köln, schöne Grüße \u{fffd}");
    assert_eq!(layer.warnings, [Warning::ReplacedBytes { count: 1 }]);
    assert_eq!(layer.encoding.name, "UTF-8");
}

#[test]
fn a_cut_off_utf16_unit_is_shown() {
    let layer = read("a.txt", b"\xff\xfea\0b\0c\0d\0e");
    assert_eq!(layer.text, "abcd\u{fffd}");
    assert_eq!(layer.warnings, [Warning::ReplacedBytes { count: 1 }]);
}

#[test]
fn a_stated_code_page_that_fits_is_believed() {
    let layer = read("a.html", b"<meta charset=windows-1250><p>\x9euna");
    assert_eq!(
        (layer.text.as_str(), layer.encoding.name.as_str()),
        ("žuna", "windows-1250")
    );
    assert!(layer.warnings.is_empty() && !layer.encoding.detected);
    assert_eq!(located(&layer, "žuna"), "bytes 30–34 of the original");
}

#[test]
fn utf8_is_believed_over_a_stated_code_page() {
    let layer = read("a.html", "<meta charset=iso-8859-1><p>Müller €".as_bytes());
    assert_eq!(layer.text, "Müller €");
    assert_eq!(layer.warnings.len(), 1);
    assert!(
        matches!(&layer.warnings[0], Warning::MisleadingEncoding { used, .. } if used == "UTF-8")
    );
}

#[test]
fn a_page_in_an_east_asian_code_page_keeps_its_places() {
    let japanese = b"<meta charset=shift_jis><p>\x8f\xd8\x90\x6c abc \x8c_\x96\xf1</p>";
    let layer = read("a.html", japanese);
    assert_eq!(layer.text, "証人 abc 契約");
    assert_eq!(located(&layer, "人 a"), "bytes 29–33 of the original");
    assert_eq!(located(&layer, "約"), "bytes 38–40 of the original");
}

#[test]
fn iso_2022_jp_is_recognised_by_its_escapes() {
    let layer = read("a.txt", b"\x1b$B%F%9%H\x1b(B ok");
    assert_eq!(layer.text, "テスト ok");
    assert_eq!(
        layer.warnings,
        [Warning::DetectedEncoding {
            encoding: "ISO-2022-JP".to_owned()
        }]
    );
}

#[test]
fn nameless_files_are_known_by_their_content() {
    assert_eq!(
        read("notes", b"WEBVTT\n\n00:01.000 --> 00:02.000\nhi").media,
        Media::Vtt
    );
    assert_eq!(read("notes", b"<!doctype html><p>hi").media, Media::Html);
    assert_eq!(read("notes", b"{\"a\": 1}").media, Media::Json);
    assert_eq!(
        read("notes", b"1\n00:00:01,000 --> 00:00:02,000\nhi").media,
        Media::Srt
    );
    assert_eq!(read("notes", b"a,b\nc,d").media, Media::PlainText);
}

#[test]
fn text_is_located_by_line() {
    let layer = read("a.txt", b"one\r\ntwo\rthree\nfour");
    assert_eq!(located(&layer, "two"), "line 2");
    assert_eq!(located(&layer, "two\rthree"), "lines 2–3");
    assert_eq!(
        layer.layout.locate(&layer.text, Span::new(9, 9)),
        Location::Lines { first: 3, last: 3 }
    );
}

#[test]
fn invalid_json_stays_text() {
    let layer = read("a.json", b"{\n \"a\": nope}");
    assert_eq!(layer.text, "{\n \"a\": nope}");
    assert_eq!(
        layer.warnings,
        [Warning::InvalidJson {
            line: 2,
            problem: "a value is expected".to_owned()
        }]
    );
}

#[test]
fn only_layouts_that_the_text_decides_are_derived() {
    for (name, derived) in [
        ("a.txt", true),
        ("a.md", true),
        ("a.csv", true),
        ("a.json", true),
        ("a.html", false),
    ] {
        let layer = read(name, b"a,b\n1,2\n");
        assert_eq!(
            Layout::derive(layer.media, &layer.text).is_some(),
            derived,
            "{name}"
        );
    }
}

#[test]
fn notes_and_styles_are_not_said() {
    let vtt = "WEBVTT - t\nKind: captions\n\nNOTE a\nnote\n\nSTYLE\n::cue{}\n\nid\n00:01.000 --> 00:04.000 align:start\nsaid\n\nlost line\n";
    let layer = read("a.vtt", vtt.as_bytes());
    assert_eq!(layer.text, "said");
    assert_eq!(
        layer.warnings,
        [Warning::TextOutsideCues {
            lines: 1,
            first_line: 14
        }]
    );
}

#[test]
fn each_voice_of_a_cue_has_its_own_place() {
    let vtt = "WEBVTT\n\n00:01.000 --> 00:04.000\n<v Mary>Did you?</v>\n<v Bob>No.\n";
    let layer = read("a.vtt", vtt.as_bytes());
    assert_eq!(layer.text, "Did you?\nNo.");
    assert_eq!(
        located(&layer, "Did"),
        "cue 1, 00:00:01.000–00:00:04.000, Mary"
    );
    assert_eq!(
        located(&layer, "No"),
        "cue 1, 00:00:01.000–00:00:04.000, Bob"
    );
    assert_eq!(
        located(&layer, "you?\nNo"),
        "cue 1, 00:00:01.000–00:00:04.000"
    );
}

#[test]
fn a_name_before_a_colon_is_not_taken_for_a_speaker() {
    let layer = read("a.srt", b"1\n00:00:01,000 --> 00:00:02,000\nMARY: hello\n");
    assert_eq!(layer.text, "MARY: hello");
    assert_eq!(layer.layout.cues()[0].speaker, None);
}

#[test]
fn reversed_cue_time_is_warned_of() {
    let layer = read("a.srt", b"1\n00:00:02,000 --> 00:00:01,000\nhello\n");
    assert_eq!(
        layer.warnings,
        [Warning::ReversedCueTime {
            count: 1,
            first_cue: 1
        }]
    );
    assert_eq!(
        layer.warnings[0].to_string(),
        "one cue ends before its start (first: cue 1)"
    );
}

#[test]
fn a_cue_with_unreadable_times_keeps_its_text() {
    let layer = read("a.vtt", b"WEBVTT\n\n00:01.000 --> 00:99.000\nhello\n");
    assert_eq!(layer.text, "hello");
    assert_eq!(
        layer.warnings,
        [Warning::UnreadableCueTime {
            count: 1,
            first_cue: 1
        }]
    );
    assert_eq!(located(&layer, "hello"), "cue 1");
}

#[test]
fn subrip_text_may_hold_empty_lines_arrows_and_numbers() {
    let srt = "1\n00:00:01,000 --> 00:00:02,000\nfirst\n\nstill first --> yes\n42\n2\n00:00:03,000 --> 00:00:04,000\nsecond\n";
    let layer = read("a.srt", srt.as_bytes());
    assert_eq!(layer.text, "first\nstill first --> yes\n42\n\nsecond");
    assert!(layer.warnings.is_empty());
}

#[test]
fn warnings_and_locations_are_readable_by_programs() {
    let layer = read("a.csv", b"name,amount\nx,12\n");
    let place = layer.layout.locate(&layer.text, Span::new(14, 16));
    assert_eq!(
        serde_json::to_value(&place).unwrap(),
        serde_json::json!({"cells": {
            "first": {"row": 2, "column": 2}, "last": {"row": 2, "column": 2},
            "first_header": "amount", "last_header": "amount",
        }})
    );
    assert_eq!(
        serde_json::to_value(layer.media).unwrap(),
        serde_json::json!("csv")
    );
}
