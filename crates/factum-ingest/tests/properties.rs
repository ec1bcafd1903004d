//! What holds for any bytes under any name.

// Helpers of a test are part of it; clippy only knows functions marked as tests.
#![allow(clippy::unwrap_used)]

use factum_base::Span;
use factum_ingest::{Layout, Limits, Location, Media, Refusal, TextLayer, read_document};
use proptest::prelude::*;

const NAMES: [&str; 12] = [
    "a.txt", "a.md", "a.html", "a.csv", "a.tsv", "a.json", "a.vtt", "a.srt", "a", "a.pdf", "a.eml",
    "",
];

/// Bytes that come near the formats: their own punctuation, with some noise in between.
fn near_formats() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        &b"<p>"[..],
        b"</p>",
        b"<td>",
        b"<table>",
        b"<tr>",
        b"</table>",
        b"<p hidden>",
        b"<pre>",
        b"<!--",
        b"-->",
        b"<script>",
        b"</script>",
        b"<svg>",
        b"<b>",
        b"</b>",
        b"&amp;",
        b"&#x",
        b"&",
        b"<",
        b"<v Mary>",
        b"</v>",
        b"WEBVTT",
        b"\n\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"00:01.000 --> 00:02.000",
        b"-->",
        b"1",
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b":",
        b",",
        b";",
        b"\t",
        b"\\ud800",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xfe\xff",
        b"\0",
        b"\xc3\xa9",
        b"\xe9",
        b"\x82\xa0",
        b"\xf0\x9f\x98\x80",
        b"\xe2\x82",
        b"word",
        b" ",
        b"<textarea>",
        b"<meta charset=shift_jis>",
    ]);
    let noise = prop::collection::vec(any::<u8>(), 0..4);
    prop::collection::vec(
        prop_oneof![8 => pieces.prop_map(<[u8]>::to_vec), 1 => noise],
        0..60,
    )
    .prop_map(|parts| parts.concat())
}

fn check(layer: &TextLayer, size: u64, a: u32, b: u32) -> Result<(), TestCaseError> {
    let length = u32::try_from(layer.text.chars().count()).unwrap();
    prop_assert!(!layer.text.trim().is_empty());
    // Any span gets an answer, also one that is not the text's.
    let wild = layer.layout.locate("another text", Span::new(a, b));
    prop_assert!(!wild.to_string().is_empty());
    let (a, b) = (a % (length + 1), b % (length + 1));
    match layer
        .layout
        .locate(&layer.text, Span::new(a.min(b), a.max(b)))
    {
        Location::Unplaced => prop_assert!(false, "a span of the text has a place"),
        Location::Bytes { start, end } => prop_assert!(start <= end && end <= size),
        Location::Cues {
            start_byte,
            end_byte,
            first,
            last,
            ..
        } => {
            prop_assert!(start_byte <= end_byte && end_byte <= size && first <= last);
        }
        Location::Lines { first, last } | Location::Json { first, last, .. } => {
            let lines = u32::try_from(layer.text.len()).unwrap() + 1;
            prop_assert!(1 <= first && first <= last && last <= lines);
        }
        Location::Cells { first, last, .. } => {
            prop_assert!((1, 1) <= (first.row, first.column) && first <= last);
        }
    }
    let mut end = 0;
    for cue in layer.layout.cues() {
        prop_assert!(end <= cue.span.start && !cue.span.is_empty() && cue.span.end <= length);
        end = cue.span.end;
    }
    if let Some(derived) = Layout::derive(layer.media, &layer.text) {
        prop_assert_eq!(&derived, &layer.layout, "a derived layout is the layout");
    }
    let stored = serde_json::to_string(&layer.layout).unwrap();
    prop_assert_eq!(
        &serde_json::from_str::<Layout>(&stored).unwrap(),
        &layer.layout
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_bytes_under_any_name_give_a_sound_layer_or_a_refusal(
        bytes in prop_oneof![near_formats(), prop::collection::vec(any::<u8>(), 0..300)],
        name in prop::sample::select(NAMES.to_vec()),
        a in any::<u32>(),
        b in any::<u32>(),
    ) {
        let read = read_document(name, &bytes, &Limits::default());
        prop_assert_eq!(&read, &read_document(name, &bytes, &Limits::default()), "reading is a function");
        match read {
            Ok(layer) => check(&layer, bytes.len() as u64, a, b)?,
            Err(refusal) => prop_assert!(!refusal.to_string().is_empty() && !refusal.hint().is_empty()),
        }
    }

    #[test]
    fn utf8_text_is_kept_to_the_byte(text in "\\PC{1,80}|[a-zé\u{301}\u{ad}\u{200b}\u{1f600}\u{feff}\r\n\t ]{1,80}") {
        for (name, media) in [("a.txt", Media::PlainText), ("a.md", Media::Markdown), ("a.csv", Media::Csv), ("a.json", Media::Json)] {
            match read_document(name, text.as_bytes(), &Limits::default()) {
                Ok(layer) => {
                    prop_assert_eq!(layer.media, media);
                    let mut back = if layer.encoding.bom { "\u{feff}".to_owned() } else { String::new() };
                    back.push_str(&layer.text);
                    prop_assert_eq!(&back, &text);
                }
                Err(refusal) => prop_assert!(matches!(refusal, Refusal::Empty), "{}", refusal),
            }
        }
    }

    #[test]
    fn utf16_and_utf32_with_a_mark_read_back(text in "[a-zé日本😀\r\n ]{1,60}[a-z]") {
        let marked: String = std::iter::once('\u{feff}').chain(text.chars()).collect();
        let versions: [Vec<u8>; 4] = [
            marked.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            marked.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            marked.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect(),
            marked.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect(),
        ];
        for bytes in versions {
            let layer = read_document("a.txt", &bytes, &Limits::default()).unwrap();
            prop_assert_eq!(&layer.text, &text);
            prop_assert!(layer.encoding.bom && !layer.encoding.detected && layer.warnings.is_empty());
        }
    }

    #[test]
    fn a_page_gives_back_the_words_at_the_bytes_it_names(words in prop::collection::vec("[a-zé日😀]{1,6}", 1..12), gaps in prop::collection::vec(0usize..7, 12)) {
        const GAPS: [&str; 7] = [" ", "\r\n  ", "<p>", "</i> <b>", "<br>\n", "&nbsp;", "<td>"];
        let mut html = "<table><tr><td>".to_owned();
        for (word, gap) in words.iter().zip(&gaps) {
            html.push_str(word);
            html.push_str(GAPS[*gap]);
        }
        let utf16: Vec<u8> = std::iter::once('\u{feff}').chain(html.chars()).collect::<String>().encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (bytes, wide) in [(html.clone().into_bytes(), false), (utf16, true)] {
            let layer = read_document("a.html", &bytes, &Limits::default()).unwrap();
            let mut from = 0;
            for word in &words {
                let at = from + layer.text[from..].find(word.as_str()).unwrap();
                from = at + word.len();
                let start = u32::try_from(layer.text[..at].chars().count()).unwrap();
                let span = Span::new(start, start + u32::try_from(word.chars().count()).unwrap());
                let Location::Bytes { start, end } = layer.layout.locate(&layer.text, span) else { panic!() };
                let original = &bytes[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()];
                let original = if wide {
                    let units: Vec<u16> = original.as_chunks::<2>().0.iter().map(|&pair| u16::from_le_bytes(pair)).collect();
                    String::from_utf16(&units).unwrap()
                } else {
                    String::from_utf8(original.to_vec()).unwrap()
                };
                prop_assert_eq!(&original, word);
            }
        }
    }
}
