//! Hostile bytes as a model server's reply: whole, and cut in two.
#![no_main]

use factum_model::openai::stream::{ChatStream, parse_chat_body, parse_chat_stream};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_chat_body(bytes);
    let whole = parse_chat_stream(bytes);
    let cut = bytes
        .first()
        .map_or(0, |byte| usize::from(*byte))
        .min(bytes.len());
    let mut stream = ChatStream::default();
    let cut_in_two = stream
        .push(&bytes[..cut])
        .and_then(|()| stream.push(&bytes[cut..]))
        .and_then(|()| stream.finish());
    assert_eq!(
        whole, cut_in_two,
        "where the network cuts a reply changes nothing"
    );
});
