//! What happens to a case file: append-only, numbered from 1 within the case file.

use factum_base::{ChainDigest, DocumentId, PrincipalId, TextDigest, canonical_json};
use serde::{Deserialize, Serialize};

use crate::slot::Slot;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Position in the case file's history, from 1 without gaps.
    pub number: u64,
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub at: i64,
    /// Who caused it.
    pub by: PrincipalId,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A document got a version; version 1 is the document's first.
    Published {
        /// The document.
        doc_id: DocumentId,
        /// The new version.
        version: u32,
        /// Digest of its text layer.
        text_sha256: TextDigest,
        /// The document's place.
        slot: Slot,
    },
    /// A document no longer counts; its text goes to no one.
    Withdrawn {
        /// The document.
        doc_id: DocumentId,
        /// Its file was gone from the folder that the case file follows. Then it counts again when the
        /// file comes back; what someone withdrew stays withdrawn until someone reinstates it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        file_gone: bool,
    },
    /// A withdrawn document counts again.
    Reinstated {
        /// The document.
        doc_id: DocumentId,
    },
    /// A document got another place.
    Moved {
        /// The document.
        doc_id: DocumentId,
        /// Its place before.
        from: Slot,
        /// Its new place.
        slot: Slot,
    },
    /// A principal may see a document, or the whole case file with all later documents.
    Granted {
        /// The document; absent for the whole case file.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        doc_id: Option<DocumentId>,
        /// The principal.
        to: PrincipalId,
    },
    /// A principal may no longer see a document, or anything of the case file.
    Revoked {
        /// The document; absent for the whole case file.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        doc_id: Option<DocumentId>,
        /// The principal.
        from: PrincipalId,
    },
}

impl EventKind {
    /// The document concerned; `None` for grants and revocations of the whole case file.
    pub fn doc_id(&self) -> Option<&DocumentId> {
        match self {
            Self::Published { doc_id, .. }
            | Self::Withdrawn { doc_id, .. }
            | Self::Reinstated { doc_id }
            | Self::Moved { doc_id, .. } => Some(doc_id),
            Self::Granted { doc_id, .. } | Self::Revoked { doc_id, .. } => doc_id.as_ref(),
        }
    }

    /// The principal whose rights changed.
    pub fn principal(&self) -> Option<&PrincipalId> {
        match self {
            Self::Granted { to, .. } => Some(to),
            Self::Revoked { from, .. } => Some(from),
            _ => None,
        }
    }

    /// The word used for it everywhere.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Published { .. } => "published",
            Self::Withdrawn { .. } => "withdrawn",
            Self::Reinstated { .. } => "reinstated",
            Self::Moved { .. } => "moved",
            Self::Granted { .. } => "granted",
            Self::Revoked { .. } => "revoked",
        }
    }
}

impl Event {
    /// The digest of this event and, through `previous`, of all before it. A changed, lost or inserted
    /// event changes every later digest.
    ///
    /// # Errors
    /// Never for events read by this crate; the JSON library's signature allows it.
    pub fn chained(
        &self,
        previous: Option<&ChainDigest>,
    ) -> Result<ChainDigest, serde_json::Error> {
        let body = canonical_json(self)?;
        let before = previous.map_or(&[][..], |digest| &digest.as_bytes()[..]);
        Ok(ChainDigest::tagged(
            "factum/event/1",
            &[before, body.as_bytes()],
        ))
    }
}
