//! Hostile bytes as the header of a GGUF file.
#![no_main]

use factum_model::weights::gguf::read_header;
use factum_model::weights::{Finding, check_gguf_header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(header) = read_header(bytes) else {
        return;
    };
    assert!(
        header.data_start <= header.end,
        "data begins before it ends"
    );
    for tensor in &header.tensors {
        let end = header.data_start + tensor.offset + tensor.size;
        assert!(end <= header.end, "a tensor lies within the data");
    }
    for key in header.entries.keys() {
        assert!(header.raw_entry(key).is_some(), "an entry has bytes");
    }
    for length in [0, bytes.len() as u64, header.end, u64::MAX] {
        let report = check_gguf_header(&header, "fuzz", length);
        let truncated = report
            .findings
            .iter()
            .any(|finding| matches!(finding, Finding::TruncatedFile { .. }));
        assert_eq!(truncated, length < header.end);
    }
});
