//! SHA-256 digests, each with the type of what it is a digest of.
//!
//! A [`NodeKey`] can't be handed where a [`TextDigest`] is expected. Digests of our own constructions
//! (access fingerprints, event chains) carry a tag in the hashed bytes, so that bytes of one kind can
//! never collide with another kind; node keys and text digests are plain SHA-256, since strangers must
//! be able to recompute them with any tool.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// Plain SHA-256.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// A SHA-256 digest of a `Kind`.
pub struct Digest<Kind> {
    bytes: [u8; 32],
    kind: PhantomData<fn() -> Kind>,
}

/// What is being digested. The markers below are never built.
pub mod kind {
    /// RFC 8785 text of a node spec.
    pub enum NodeSpec {}
    /// UTF-8 bytes of a text layer.
    pub enum Text {}
    /// The access state of all documents below a node.
    pub enum Access {}
    /// A stored record's body.
    pub enum Body {}
    /// A part of node specs that many of them share.
    pub enum SpecPart {}
    /// An event and all events before it.
    pub enum Chain {}
}

/// The identity of a node: SHA-256 of its spec's RFC 8785 text.
pub type NodeKey = Digest<kind::NodeSpec>;
/// SHA-256 of a text layer's UTF-8 bytes.
pub type TextDigest = Digest<kind::Text>;
/// Merkle fingerprint of the access state below a node.
pub type AccessFingerprint = Digest<kind::Access>;
/// SHA-256 of a stored record's bytes, checked on every read.
pub type BodyDigest = Digest<kind::Body>;
/// Identity of a shared spec part.
pub type SpecPartDigest = Digest<kind::SpecPart>;
/// Digest of an event log up to an event.
pub type ChainDigest = Digest<kind::Chain>;

/// Text that is not a digest: not 64 lower-case hex digits, or not 32 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a SHA-256 digest in lower-case hex: {0:?}")]
pub struct DigestError(pub String);

impl<Kind> Digest<Kind> {
    /// A digest already computed.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self {
            bytes,
            kind: PhantomData,
        }
    }

    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_bytes(sha256(bytes))
    }

    /// The digest of `tag`, a zero byte, and the parts, each preceded by its length.
    pub fn tagged(tag: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(tag.as_bytes());
        hasher.update([0]);
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Self::from_bytes(hasher.finalize().into())
    }

    /// A digest read back from storage.
    ///
    /// # Errors
    /// The slice is not 32 bytes long.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, DigestError> {
        bytes
            .try_into()
            .map(Self::from_bytes)
            .map_err(|_| DigestError(format!("{} bytes", bytes.len())))
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Lower-case hex.
    pub fn to_hex(&self) -> String {
        let mut out = String::with_capacity(64);
        self.write_hex(&mut out);
        out
    }

    /// Appends lower-case hex.
    pub fn write_hex(&self, out: &mut String) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in self.bytes {
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }

    /// The first eight hex digits, for people.
    pub fn short(&self) -> String {
        self.to_hex()[..8].to_owned()
    }
}

impl<Kind> Clone for Digest<Kind> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<Kind> Copy for Digest<Kind> {}
impl<Kind> PartialEq for Digest<Kind> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}
impl<Kind> Eq for Digest<Kind> {}
impl<Kind> PartialOrd for Digest<Kind> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<Kind> Ord for Digest<Kind> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bytes.cmp(&other.bytes)
    }
}
impl<Kind> std::hash::Hash for Digest<Kind> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}
impl<Kind> fmt::Debug for Digest<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}
impl<Kind> fmt::Display for Digest<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl<Kind> FromStr for Digest<Kind> {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let wrong = || DigestError(text.chars().take(80).collect());
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (value(pair[0]).ok_or_else(wrong)? << 4) | value(pair[1]).ok_or_else(wrong)?;
        }
        Ok(Self::from_bytes(bytes))
    }
}

impl<Kind> Serialize for Digest<Kind> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&self.to_hex())
        } else {
            self.bytes.serialize(serializer)
        }
    }
}

impl<'de, Kind> Deserialize<'de> for Digest<Kind> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
            text.parse().map_err(serde::de::Error::custom)
        } else {
            <[u8; 32]>::deserialize(deserializer).map(Self::from_bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips_and_upper_case_is_refused() {
        let digest = TextDigest::of(b"abc");
        assert_eq!(
            digest.to_hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest.to_hex().parse::<TextDigest>().unwrap(), digest);
        assert!(
            digest
                .to_hex()
                .to_uppercase()
                .parse::<TextDigest>()
                .is_err()
        );
        assert!("ab".parse::<TextDigest>().is_err());
    }

    #[test]
    fn tagged_digests_keep_part_boundaries() {
        assert_ne!(
            ChainDigest::tagged("t", &[b"ab", b"c"]),
            ChainDigest::tagged("t", &[b"a", b"bc"])
        );
        assert_ne!(
            ChainDigest::tagged("t", &[b"a"]),
            ChainDigest::tagged("u", &[b"a"])
        );
    }
}
