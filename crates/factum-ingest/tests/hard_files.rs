//! The shared collection of difficult files, where it is present.
//!
//! The files are not part of this repository; `FACTUM_DATA` names the folder that holds them, else
//! `../shared/data` beside the workspace is tried. A test whose file is absent says so and passes.

// Helpers of a test are part of it; clippy only knows functions marked as tests.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use factum_base::Span;
use factum_ingest::{Limits, Location, Media, Refusal, TextLayer, Warning, read_document};

fn data() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    std::env::var_os("FACTUM_DATA").map_or(beside, PathBuf::from)
}

/// The file's bytes; `None`, told by name, where it is absent.
fn bytes(name: &str) -> Option<Vec<u8>> {
    let path = data().join("documents").join(name);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        println!("skipped: {name} is not in {}", data().display());
    }
    bytes
}

fn layer(name: &str) -> Option<TextLayer> {
    let bytes = bytes(name)?;
    Some(read_document(name, &bytes, &Limits::default()).expect(name))
}

fn detected(name: &str, encoding: &str, start: &str) {
    let Some(layer) = layer(name) else { return };
    assert!(layer.text.starts_with(start), "{name}: {:?}", layer.text);
    assert_eq!(layer.encoding.name, encoding);
    assert!(layer.warnings.contains(&Warning::DetectedEncoding {
        encoding: encoding.to_owned()
    }));
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
fn code_pages_are_detected() {
    detected(
        "syn_cp1251.txt",
        "windows-1251",
        "Свидетель показал, что договор",
    );
    detected(
        "syn_cp1252.txt",
        "windows-1252",
        "Witness said “I don’t recall” — £500 paid; café",
    );
    detected("syn_gb18030.txt", "GBK", "证人说合同已经签署。");
    detected("syn_sjis.txt", "Shift_JIS", "証人は契約書に署名した");
    detected(
        "russian.cp866.txt",
        "IBM866",
        "Однажды, в студеную зимнюю пору,\nЯ из лесу",
    );
    detected(
        "syn_utf16be_nobom.txt",
        "UTF-16BE",
        "Plain English text in UTF-16 without BOM.",
    );
}

#[test]
fn marked_encodings_need_no_detection() {
    for (name, encoding) in [
        ("syn_utf32le_bom.txt", "UTF-32LE"),
        ("syn_utf16le_bom.txt", "UTF-16LE"),
        ("syn_emoji_crlf_utf8bom.txt", "UTF-8"),
    ] {
        let Some(layer) = layer(name) else { continue };
        assert_eq!(layer.encoding.name, encoding);
        assert!(layer.encoding.bom && layer.warnings.is_empty(), "{name}");
        assert!(!layer.text.starts_with('\u{feff}'));
    }
}

#[test]
fn nothing_in_a_text_is_normalised() {
    let Some(layer) = layer("syn_emoji_crlf_utf8bom.txt") else {
        return;
    };
    for kept in [
        "👨\u{200d}👩\u{200d}👧",
        "e\u{301}",
        "\u{e9}",
        "\u{fb01}",
        "soft\u{ad}hyphen",
        "a\u{200b}b",
        "\u{feff}mid\r\n",
        "\rthird",
        "\0",
    ] {
        assert!(layer.text.contains(kept), "{kept:?}");
    }
}

#[test]
fn mixed_encodings_are_decoded_line_by_line() {
    let Some(layer) = layer("syn_mixed.txt") else {
        return;
    };
    assert!(
        layer
            .text
            .starts_with("UTF-8 line: café “quoted” 😀\ncp1252 line: café “quoted”\n")
    );
    assert_eq!(
        layer.warnings,
        [Warning::MixedEncodings {
            legacy: "windows-1252".to_owned(),
            lines: 2,
            first_line: 2
        }]
    );
}

#[test]
fn a_page_that_misstates_its_encoding_is_read_rightly() {
    let Some(layer) = layer("testArabicMisleadingCharset.html") else {
        return;
    };
    assert!(
        layer.text.starts_with("في قرية من القرى كان"),
        "{}",
        layer.text
    );
    let used = "windows-1256".to_owned();
    assert!(layer.warnings.contains(&Warning::MisleadingEncoding {
        declared: "utf-8".to_owned(),
        used
    }));
}

#[test]
fn pages_in_wide_encodings_keep_their_places() {
    let Some(layer) = layer("testHTML_charset_utf16le.html") else {
        return;
    };
    assert_eq!(layer.text, "This is a sample text");
    assert_eq!(located(&layer, "sample"), "bytes 328–340 of the original");
    if let Some(layer) = self::layer("testHTML_utf8.html") {
        assert_eq!(layer.text, "Content with UTF-8 chars\n\nåäö");
    }
}

#[test]
fn a_nasty_page_shows_what_a_reader_would_see() {
    let Some(layer) = layer("syn_nasty.html") else {
        return;
    };
    assert_eq!(
        layer.text,
        "A\u{a0}B\u{ad}C 😀 \u{fffd} © bold\nbr\n\n  pre\n  two\n\n1\t2\n\nNS\n\nTA\n\nunclosed misnestedx&"
    );
    assert_eq!(layer.warnings, [Warning::HiddenContent { elements: 2 }]);
}

#[test]
fn deep_files_are_read_in_under_a_second() {
    for name in ["syn_deep.html", "syn_deep.json"] {
        let Some(bytes) = bytes(name) else { continue };
        let started = Instant::now();
        let layer = read_document(name, &bytes, &Limits::default()).unwrap();
        // Unoptimised builds on a busy machine get some grace.
        let allowed = if cfg!(debug_assertions) { 10.0 } else { 1.0 };
        assert!(started.elapsed().as_secs_f64() < allowed, "{name}");
        assert!(
            matches!(layer.warnings[..], [Warning::DeepNesting { .. }]),
            "{name}"
        );
    }
}

#[test]
fn a_semicolon_table_with_quoted_lines_has_its_cells() {
    let Some(layer) = layer("syn_cp1252_semi.csv") else {
        return;
    };
    assert_eq!(layer.media, Media::Csv);
    assert_eq!(located(&layer, "1.234,56"), "row 2, column Betrag");
    assert_eq!(
        located(&layer, "Zeile 2 \"\"zitiert"),
        "row 2, column Notiz"
    );
    assert_eq!(located(&layer, "€20"), "row 3, column Betrag");
}

#[test]
fn a_lone_surrogate_escape_is_kept_and_warned_of() {
    let Some(layer) = layer("syn_surrogate.json") else {
        return;
    };
    assert!(layer.text.contains("\"lone \\ud800 x\""));
    assert_eq!(layer.warnings, [Warning::LoneSurrogate { count: 1 }]);
    assert_eq!(located(&layer, "lone"), "line 1, /b");
}

#[test]
fn cues_have_times_and_speakers() {
    let Some(layer) = layer("syn_voices.vtt") else {
        return;
    };
    assert_eq!(
        layer.text,
        "I never said that & <you> know it.\n\nOrder 😀\norder"
    );
    assert_eq!(
        located(&layer, "never"),
        "cue 1, 00:00:01.000–00:00:04.000, Mr Smith"
    );
    assert_eq!(
        located(&layer, "order"),
        "cue 2, 01:00:00.000–01:00:05.250, Judge"
    );
    if let Some(layer) = self::layer("testWebVTT.vtt") {
        assert!(
            layer
                .text
                .starts_with("Everyone wants the most from life\n\nLike internet")
        );
        assert_eq!(layer.layout.cues().len(), 8);
    }
    if let Some(layer) = self::layer("test_subrip.srt") {
        assert_eq!(layer.layout.cues().len(), 10);
        assert!(layer.text.contains("PREMIÈRE PARTIE :  VIE DE TOTO"));
        assert!(layer.warnings.is_empty());
    }
}

#[test]
fn a_reversed_cue_is_warned_of() {
    let Some(layer) = layer("syn_crlf_cp1252.srt") else {
        return;
    };
    assert_eq!(
        layer.text,
        "Café naïve\nzweite Zeile\n\npos\n\nends before start"
    );
    assert!(layer.warnings.contains(&Warning::ReversedCueTime {
        count: 1,
        first_cue: 3
    }));
    let bytes = bytes("syn_crlf_cp1252.srt").unwrap();
    let Location::Cues {
        start_byte,
        end_byte,
        ..
    } = layer.layout.locate(&layer.text, Span::new(26, 30))
    else {
        panic!("a cue")
    };
    let original = &bytes[usize::try_from(start_byte).unwrap()..usize::try_from(end_byte).unwrap()];
    assert_eq!(
        original,
        b"2\r\n00:00:04.000 --> 00:00:05,000 X1:10\r\n{\\an8}pos"
    );
}

#[test]
fn every_file_of_the_collection_is_read_or_refused_by_name() {
    let Ok(folder) = std::fs::read_dir(data().join("documents")) else {
        println!("skipped: {} is absent", data().join("documents").display());
        return;
    };
    for file in folder.map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&file).unwrap();
        match read_document(&name, &bytes, &Limits::default()) {
            Ok(layer) => assert!(!layer.text.trim().is_empty(), "{name}"),
            Err(Refusal::Empty) => assert!(bytes.is_empty(), "{name}"),
            Err(Refusal::Unsupported { format }) => {
                let extension = name.rsplit('.').next().unwrap().to_ascii_uppercase();
                assert!(
                    format.to_uppercase().contains(&extension),
                    "{name}: {format}"
                );
            }
            Err(other) => panic!("{name}: {other}"),
        }
    }
}
