//! Evidence: the exact characters of the exact version that a claim rests on.
//!
//! Identity is `DOC@VERSION:START:END`, offsets in code points, half open. [`Evidence::check`] holds
//! one piece against a snapshot and its text; each way to fail has its own [`EvidenceFault`].

use std::fmt;
use std::str::FromStr;

use factum_base::{CodePointIndex, DocumentId, Span, SpanError, TextDigest, slice_code_points};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::snapshot::SlotState;

/// `DOC@VERSION:START:END`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EvidenceId {
    /// The document.
    pub doc_id: DocumentId,
    /// Its version, from 1.
    pub version: u32,
    /// The characters.
    pub span: Span,
}

/// Text that is not an evidence id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not an evidence id (DOC@VERSION:START:END): {0:?}")]
pub struct EvidenceIdError(pub String);

/// One piece of evidence as it is stored and exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Its identity; must match the parts below.
    pub evidence_id: EvidenceId,
    /// The document.
    pub doc_id: DocumentId,
    /// The version.
    pub version: u32,
    /// First code point.
    pub start: u32,
    /// One past the last code point.
    pub end: u32,
    /// Exactly `text[start..end]`.
    pub quote: String,
    /// Digest of the whole text layer.
    pub text_sha256: TextDigest,
}

/// Why a piece of evidence does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EvidenceFault {
    /// The snapshot has no such document.
    #[error("evidence {0} cites a document that is not in this snapshot")]
    UnknownDocument(EvidenceId),
    /// The document is withdrawn.
    #[error("evidence {0} cites a withdrawn document")]
    Withdrawn(EvidenceId),
    /// The principal may not see the document.
    #[error("evidence {0} cites a document this principal may not see")]
    Revoked(EvidenceId),
    /// Another version counts now.
    #[error("evidence {id} cites version {}, but version {current} counts", id.version)]
    OtherVersion {
        /// The evidence.
        id: EvidenceId,
        /// The version that counts.
        current: u32,
    },
    /// The text's digest differs.
    #[error("evidence {0} was taken from other text than this version's")]
    OtherText(EvidenceId),
    /// Offsets outside the text.
    #[error("evidence {id}: {source}")]
    OutOfRange {
        /// The evidence.
        id: EvidenceId,
        /// What is wrong with the span.
        source: SpanError,
    },
    /// The span covers nothing.
    #[error("evidence {0} covers no characters")]
    EmptySpan(EvidenceId),
    /// The quote is not the text at these offsets.
    #[error("the quote of evidence {0} is not the text at its offsets")]
    QuoteDiffers(EvidenceId),
    /// The identity does not match the parts.
    #[error("evidence {0} does not match its own parts")]
    IdentityDiffers(EvidenceId),
}

impl Evidence {
    /// Evidence for `span` of `text`.
    ///
    /// # Errors
    /// The span does not fit the text.
    pub fn cite(
        doc_id: &DocumentId,
        version: u32,
        text_sha256: TextDigest,
        span: Span,
        quote: &str,
    ) -> Self {
        Self {
            evidence_id: EvidenceId {
                doc_id: doc_id.clone(),
                version,
                span,
            },
            doc_id: doc_id.clone(),
            version,
            start: span.start,
            end: span.end,
            quote: quote.to_owned(),
            text_sha256,
        }
    }

    /// Checks that the identity says what the parts say.
    ///
    /// # Errors
    /// [`EvidenceFault::IdentityDiffers`].
    pub fn check_identity(&self) -> Result<(), EvidenceFault> {
        let id = &self.evidence_id;
        let span = Span::new(self.start, self.end);
        if id.doc_id == self.doc_id && id.version == self.version && id.span == span {
            Ok(())
        } else {
            Err(EvidenceFault::IdentityDiffers(id.clone()))
        }
    }

    /// Checks everything that needs no text: identity, document, version, access.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn check_state(&self, state: Option<&SlotState>) -> Result<(), EvidenceFault> {
        let id = || self.evidence_id.clone();
        self.check_identity()?;
        let state = state
            .filter(|state| state.doc_id == self.doc_id)
            .ok_or_else(|| EvidenceFault::UnknownDocument(id()))?;
        if !state.active {
            return Err(EvidenceFault::Withdrawn(id()));
        }
        if !state.eligible {
            return Err(EvidenceFault::Revoked(id()));
        }
        if state.version != self.version {
            return Err(EvidenceFault::OtherVersion {
                id: id(),
                current: state.version,
            });
        }
        if state.text_sha256 != self.text_sha256 {
            return Err(EvidenceFault::OtherText(id()));
        }
        Ok(())
    }

    /// Checks the quote against the text, whose digest the caller has verified.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn check_quote(&self, text: &str) -> Result<(), EvidenceFault> {
        self.check_quote_by(|span| slice_code_points(text, span))
    }

    /// [`Self::check_quote`] with the text's index at hand, for many citations of one text.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn check_quote_with(
        &self,
        text: &str,
        index: &CodePointIndex,
    ) -> Result<(), EvidenceFault> {
        self.check_quote_by(|span| index.slice(text, span))
    }

    fn check_quote_by<'t>(
        &self,
        slice: impl FnOnce(Span) -> Result<&'t str, SpanError>,
    ) -> Result<(), EvidenceFault> {
        let id = || self.evidence_id.clone();
        let span = Span::new(self.start, self.end);
        if span.start == span.end {
            return Err(EvidenceFault::EmptySpan(id()));
        }
        match slice(span) {
            Err(source) => Err(EvidenceFault::OutOfRange { id: id(), source }),
            Ok(quote) if quote != self.quote => Err(EvidenceFault::QuoteDiffers(id())),
            Ok(_) => Ok(()),
        }
    }

    /// All checks: [`Self::check_state`], the text's digest, [`Self::check_quote`].
    ///
    /// # Errors
    /// The first check that fails.
    pub fn check(&self, state: Option<&SlotState>, text: &str) -> Result<(), EvidenceFault> {
        self.check_state(state)?;
        if TextDigest::of(text.as_bytes()) != self.text_sha256 {
            return Err(EvidenceFault::OtherText(self.evidence_id.clone()));
        }
        self.check_quote(text)
    }
}

impl fmt::Display for EvidenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}@{}:{}:{}",
            self.doc_id, self.version, self.span.start, self.span.end
        )
    }
}

impl From<EvidenceId> for String {
    fn from(id: EvidenceId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for EvidenceId {
    type Error = EvidenceIdError;
    fn try_from(text: String) -> Result<Self, EvidenceIdError> {
        text.parse()
    }
}

impl FromStr for EvidenceId {
    type Err = EvidenceIdError;

    // Document ids may contain '@' and ':', so the parts are taken from the right.
    fn from_str(text: &str) -> Result<Self, EvidenceIdError> {
        let wrong = || EvidenceIdError(text.chars().take(200).collect());
        let number = |part: &str| -> Option<u32> {
            let plain = !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_digit())
                && (part == "0" || !part.starts_with('0'));
            plain.then(|| part.parse().ok()).flatten()
        };
        let (rest, end) = text.rsplit_once(':').ok_or_else(wrong)?;
        let (rest, start) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let (doc, version) = rest.rsplit_once('@').ok_or_else(wrong)?;
        Ok(Self {
            doc_id: DocumentId::new(doc).map_err(|_| wrong())?,
            version: number(version).filter(|&v| v > 0).ok_or_else(wrong)?,
            span: Span::new(
                number(start).ok_or_else(wrong)?,
                number(end).ok_or_else(wrong)?,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Slot;
    use proptest::prelude::*;

    fn state(text: &str) -> SlotState {
        SlotState {
            slot: Slot::between(None, None, 1).remove(0),
            doc_id: DocumentId::new("a@b:c.txt").unwrap(),
            version: 2,
            text_sha256: TextDigest::of(text.as_bytes()),
            active: true,
            eligible: true,
            access_revision: 0,
        }
    }

    fn cite(text: &str, span: Span) -> Evidence {
        let s = state(text);
        let quote = slice_code_points(text, span).unwrap();
        Evidence::cite(&s.doc_id, 2, s.text_sha256, span, quote)
    }

    #[test]
    fn each_check_has_its_own_error() {
        let text = "水が漏れた。\r\ne\u{301}tage 👩‍💧";
        let good = cite(text, Span::new(0, 6));
        let state = state(text);
        let check = |e: &Evidence, s: &SlotState| e.check(Some(s), text).unwrap_err();
        assert_eq!(good.check(Some(&state), text), Ok(()));
        assert!(matches!(
            good.check(None, text),
            Err(EvidenceFault::UnknownDocument(_))
        ));
        let with = |change: fn(&mut SlotState)| {
            let mut s = state.clone();
            change(&mut s);
            s
        };
        assert!(matches!(
            check(&good, &with(|s| s.active = false)),
            EvidenceFault::Withdrawn(_)
        ));
        assert!(matches!(
            check(&good, &with(|s| s.eligible = false)),
            EvidenceFault::Revoked(_)
        ));
        assert!(matches!(
            check(&good, &with(|s| s.version = 3)),
            EvidenceFault::OtherVersion { current: 3, .. }
        ));
        assert!(matches!(
            check(&good, &with(|s| s.text_sha256 = TextDigest::of(b""))),
            EvidenceFault::OtherText(_)
        ));
        assert!(matches!(
            good.check(Some(&state), "other"),
            Err(EvidenceFault::OtherText(_))
        ));
        let bad = |change: fn(&mut Evidence)| {
            let mut e = good.clone();
            change(&mut e);
            check(&e, &state)
        };
        assert!(matches!(
            bad(|e| e.quote.push('x')),
            EvidenceFault::QuoteDiffers(_)
        ));
        assert!(matches!(
            bad(|e| e.start = 1),
            EvidenceFault::IdentityDiffers(_)
        ));
        let moved = |e: &mut Evidence, span: Span| {
            (e.start, e.end, e.evidence_id.span) = (span.start, span.end, span);
        };
        let mut far = good.clone();
        moved(&mut far, Span::new(0, 999));
        assert!(matches!(
            check(&far, &state),
            EvidenceFault::OutOfRange { .. }
        ));
        moved(&mut far, Span::new(3, 3));
        assert!(matches!(check(&far, &state), EvidenceFault::EmptySpan(_)));
    }

    #[test]
    fn ids_are_read_from_the_right_and_strictly() {
        let id: EvidenceId = "a@b:c.txt@2:0:6".parse().unwrap();
        assert_eq!(id.doc_id.as_str(), "a@b:c.txt");
        for bad in [
            "a@0:0:1",
            "a@1:01:2",
            "a@1:-1:2",
            "a@1:1.0:2",
            "a@1:1",
            "@1:1:2",
            "a@1:99999999999:2",
        ] {
            assert!(bad.parse::<EvidenceId>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn quotes_are_code_point_slices(text in "[a\r\n日é👍\u{301}]{1,60}", a in 0usize..60, b in 0usize..60) {
            let n = text.chars().count();
            let (a, b) = (a % n, b % n);
            let span = Span::new(u32::try_from(a.min(b)).unwrap(), u32::try_from(a.max(b) + 1).unwrap());
            let e = cite(&text, span);
            let naive: String = text.chars().skip(a.min(b)).take(a.max(b) + 1 - a.min(b)).collect();
            prop_assert_eq!(&e.quote, &naive);
            prop_assert_eq!(e.check(Some(&state(&text)), &text), Ok(()));
            prop_assert_eq!(e.evidence_id.to_string().parse::<EvidenceId>().unwrap(), e.evidence_id);
        }
    }
}
