#![no_main]
//! A model's answer is claims that cite what was shown, or one named fault.

use factum_base::{DocumentId, Span, TextDigest};
use factum_casefile::{Evidence, Profile};
use factum_engine::answer::read_claims;
use factum_model::StopReason;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let profile = Profile::built_in("facts").expect("it is built in");
    let doc_id = DocumentId::new("a.txt").expect("it is an id");
    let quote = "Date of loss: 3 March 2026";
    let span = Span::new(0, 26);
    let passages = [Evidence::cite(&doc_id, 1, TextDigest::of(b""), span, quote)];
    if let Ok(claims) = read_claims(&profile, &passages, text, StopReason::End) {
        for claim in claims {
            assert_eq!(claim.evidence, [passages[0].evidence_id.clone()]);
            assert!(quote.contains(&claim.fields["value"]));
        }
    }
});
