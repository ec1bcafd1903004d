//! What every fuzz target holds a document to.

use factum_base::Span;
use factum_ingest::{Layout, Limits, Location, read_document};

/// Reads a document and panics where its layer is unsound.
pub fn read(name: &str, bytes: &[u8]) {
    let Ok(layer) = read_document(name, bytes, &Limits::default()) else {
        return;
    };
    let length = layer.text.chars().count() as u32;
    let size = bytes.len() as u64;
    for step in 0..=16 {
        let start = length / 16 * step;
        for end in [start, start + 1, length, u32::MAX] {
            let location = layer.layout.locate(&layer.text, Span::new(start, end));
            assert!(!location.to_string().is_empty());
            match location {
                Location::Unplaced => panic!("a span of the text has a place"),
                Location::Bytes { start, end } => assert!(start <= end && end <= size),
                Location::Cues {
                    start_byte,
                    end_byte,
                    ..
                } => {
                    assert!(start_byte <= end_byte && end_byte <= size);
                }
                _ => {}
            }
        }
    }
    if let Some(derived) = Layout::derive(layer.media, &layer.text) {
        assert!(derived == layer.layout, "a derived layout is the layout");
    }
    for warning in &layer.warnings {
        assert!(!warning.to_string().is_empty());
    }
}
