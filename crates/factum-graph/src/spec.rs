//! Node specs and keys.
//!
//! A key is the SHA-256 of the spec's RFC 8785 text. Specs are written by hand in canonical order,
//! since a plan makes hundreds of thousands of them; golden tests and `verify` hold them against a
//! canonical JSON library. A spec holds everything that can change the node's answer or the right to
//! see it. What many specs share (the transformation: generator, schema, rules, limits) is kept as
//! ready canonical text.

use std::fmt::Write as _;

use factum_base::{
    AccessFingerprint, NodeKey, PrincipalId, Span, SpecPartDigest, canonical_json,
    write_json_string,
};
use factum_casefile::SlotState;
use serde::Serialize;

use crate::pages::Role;

/// Format of specs; a change to what they hold must change it.
pub const SPEC_FORMAT: &str = "factum/spec/1";

/// Canonical JSON that many specs share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecPart {
    json: String,
    digest: SpecPartDigest,
}

impl SpecPart {
    /// The canonical text of `value`, which must be an object without floats.
    ///
    /// # Errors
    /// The value can't be JSON.
    pub fn new<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        canonical_json(value).map(Self::from_canonical)
    }

    /// Text that is canonical already, as read back from the store.
    pub fn from_canonical(json: String) -> Self {
        let digest = SpecPartDigest::of(json.as_bytes());
        Self { json, digest }
    }

    /// The canonical text.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Its digest.
    pub const fn digest(&self) -> SpecPartDigest {
        self.digest
    }
}

/// What all nodes of one tree share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecContext {
    /// Who the summary is for.
    pub principal: PrincipalId,
    /// All of the generator and profile that can change a leaf.
    pub leaf: SpecPart,
    /// All of the generator and profile that can change a reduction.
    pub reduction: SpecPart,
}

impl SpecContext {
    /// Identity of the context: same digest, same keys for the same documents.
    pub fn digest(&self) -> SpecPartDigest {
        SpecPartDigest::tagged(
            "factum/context/1",
            &[
                self.principal.as_str().as_bytes(),
                self.leaf.digest().as_bytes(),
                self.reduction.digest().as_bytes(),
            ],
        )
    }

    /// A leaf's spec: RFC 8785 text.
    pub fn leaf_spec(&self, state: &SlotState, segment: Option<Span>) -> String {
        let mut out = String::with_capacity(self.leaf.json.len() + 420);
        let _ = write!(
            out,
            "{{\"access_revision\":{},\"active\":{},\"doc_id\":",
            state.access_revision, state.active
        );
        write_json_string(&mut out, state.doc_id.as_str());
        let _ = write!(
            out,
            ",\"eligible\":{},\"format\":\"{SPEC_FORMAT}\",\"kind\":\"leaf\",\"principal\":",
            state.eligible
        );
        write_json_string(&mut out, self.principal.as_str());
        match segment {
            Some(span) => {
                let _ = write!(
                    out,
                    ",\"segment\":{{\"end\":{},\"start\":{}}}",
                    span.end, span.start
                );
            }
            None => out.push_str(",\"segment\":null"),
        }
        out.push_str(",\"slot\":\"");
        out.push_str(state.slot.as_str());
        out.push_str("\",\"text_sha256\":\"");
        state.text_sha256.write_hex(&mut out);
        out.push_str("\",\"transformation\":");
        out.push_str(&self.leaf.json);
        let _ = write!(out, ",\"version\":{}}}", state.version);
        out
    }

    /// A reduction's spec: RFC 8785 text. Child keys are sorted here; their order in the document is
    /// covered by the slots in the leaves' specs.
    pub fn reduction_spec(
        &self,
        role: Role,
        children: &[NodeKey],
        access: AccessFingerprint,
    ) -> String {
        let mut sorted = children.to_vec();
        sorted.sort_unstable();
        let mut out = String::with_capacity(self.reduction.json.len() + 300 + 67 * sorted.len());
        out.push_str("{\"access_fingerprint\":\"");
        access.write_hex(&mut out);
        out.push_str("\",\"children_keys\":[");
        for (n, key) in sorted.iter().enumerate() {
            out.push_str(if n == 0 { "\"" } else { ",\"" });
            key.write_hex(&mut out);
            out.push('"');
        }
        let _ = write!(
            out,
            "],\"format\":\"{SPEC_FORMAT}\",\"kind\":\"reduction\",\"principal\":"
        );
        write_json_string(&mut out, self.principal.as_str());
        let _ = write!(out, ",\"role\":\"{}\",\"transformation\":", role.word());
        out.push_str(&self.reduction.json);
        out.push('}');
        out
    }
}

/// The key of a spec's canonical text.
pub fn key_of(spec: &str) -> NodeKey {
    NodeKey::of(spec.as_bytes())
}

/// The access fingerprint of one document.
pub fn leaf_access(state: &SlotState) -> AccessFingerprint {
    AccessFingerprint::tagged(
        "factum/access/document/1",
        &[
            state.doc_id.as_str().as_bytes(),
            &[u8::from(state.active), u8::from(state.eligible)],
            &state.access_revision.to_be_bytes(),
        ],
    )
}

/// The access fingerprint of a reduction, over its children's in document order.
pub fn node_access(children: &[AccessFingerprint]) -> AccessFingerprint {
    let parts: Vec<&[u8]> = children.iter().map(|child| &child.as_bytes()[..]).collect();
    AccessFingerprint::tagged("factum/access/node/1", &parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use factum_base::{DocumentId, TextDigest};
    use factum_casefile::Slot;
    use serde_json::json;

    fn context() -> SpecContext {
        let part = |role: &str| SpecPart::new(&json!({"z": [1, "é"], "generator": role})).unwrap();
        SpecContext {
            principal: PrincipalId::new("ann \"q\"").unwrap(),
            leaf: part("leaf"),
            reduction: part("reduction"),
        }
    }

    fn state() -> SlotState {
        SlotState {
            slot: "80000001.8".parse::<Slot>().unwrap(),
            doc_id: DocumentId::new("brief/ä \"1\".txt").unwrap(),
            version: 3,
            text_sha256: TextDigest::of("水".as_bytes()),
            active: true,
            eligible: true,
            access_revision: 7,
        }
    }

    #[test]
    fn specs_are_rfc_8785_text() {
        let leaf = context().leaf_spec(&state(), Some(Span::new(0, 40)));
        let reduction = context().reduction_spec(
            Role::Root,
            &[NodeKey::of(b"b"), NodeKey::of(b"a")],
            leaf_access(&state()),
        );
        for spec in [&leaf, &reduction, &context().leaf_spec(&state(), None)] {
            let value: serde_json::Value = serde_json::from_str(spec).unwrap();
            assert_eq!(&canonical_json(&value).unwrap(), spec);
        }
    }

    // If one of these changes, every stored key of every user changes with it: change SPEC_FORMAT too.
    #[test]
    fn golden_keys() {
        let leaf = context().leaf_spec(&state(), Some(Span::new(0, 40)));
        insta::assert_snapshot!(leaf, @r#"{"access_revision":7,"active":true,"doc_id":"brief/ä \"1\".txt","eligible":true,"format":"factum/spec/1","kind":"leaf","principal":"ann \"q\"","segment":{"end":40,"start":0},"slot":"80000001.8","text_sha256":"327b54d04f71f2126114d9d61d4c3640ca0fc5b30878ad28416ff634a51a712d","transformation":{"generator":"leaf","z":[1,"é"]},"version":3}"#);
        insta::assert_snapshot!(key_of(&leaf), @"07a55a2550c4cf120606c18b0f7fb60216eb9d774f00b888622ffe54942c37c1");
        let ineligible = context().leaf_spec(
            &SlotState {
                eligible: false,
                ..state()
            },
            None,
        );
        insta::assert_snapshot!(key_of(&ineligible), @"f5eeb7a9efed96b6f34ec3d1ecf6c3642fc8341ebea34de842d0393f116ec149");
        let access = node_access(&[leaf_access(&state())]);
        insta::assert_snapshot!(access, @"c2cdb537418f15088c992bc1407657f97002c1af7e96924d8967b52086b40d81");
        let reduction =
            context().reduction_spec(Role::Root, &[key_of(&leaf), key_of(&ineligible)], access);
        insta::assert_snapshot!(reduction, @r#"{"access_fingerprint":"c2cdb537418f15088c992bc1407657f97002c1af7e96924d8967b52086b40d81","children_keys":["07a55a2550c4cf120606c18b0f7fb60216eb9d774f00b888622ffe54942c37c1","f5eeb7a9efed96b6f34ec3d1ecf6c3642fc8341ebea34de842d0393f116ec149"],"format":"factum/spec/1","kind":"reduction","principal":"ann \"q\"","role":"root","transformation":{"generator":"reduction","z":[1,"é"]}}"#);
        insta::assert_snapshot!(key_of(&reduction), @"b845ed3a519e145c8f08c7651bfecd4ed9b3ef6bec4d4a9b66f9645feed52d21");
        insta::assert_snapshot!(context().digest(), @"e2a9a795c02231eaa2b65c50629d56321330531819eb4350a2e0f794bbf900c6");
    }

    #[test]
    fn every_part_of_a_leaf_changes_its_key() {
        let base = key_of(&context().leaf_spec(&state(), Some(Span::new(0, 40))));
        let changes: Vec<fn(&mut SlotState)> = vec![
            |s| s.version = 4,
            |s| s.text_sha256 = TextDigest::of(b""),
            |s| s.active = false,
            |s| s.eligible = false,
            |s| s.access_revision = 8,
            |s| s.doc_id = DocumentId::new("x").unwrap(),
            |s| s.slot = "80000001".parse().unwrap(),
        ];
        for change in changes {
            let mut other = state();
            change(&mut other);
            assert_ne!(
                key_of(&context().leaf_spec(&other, Some(Span::new(0, 40)))),
                base
            );
        }
        assert_ne!(
            key_of(&context().leaf_spec(&state(), Some(Span::new(0, 41)))),
            base
        );
        let mut other = context();
        other.principal = PrincipalId::new("bob").unwrap();
        assert_ne!(
            key_of(&other.leaf_spec(&state(), Some(Span::new(0, 40)))),
            base
        );
        let mut other = context();
        other.leaf = SpecPart::new(&json!({"generator": "new"})).unwrap();
        assert_ne!(
            key_of(&other.leaf_spec(&state(), Some(Span::new(0, 40)))),
            base
        );
    }

    #[test]
    fn a_changed_reduction_part_leaves_leaf_keys_alone() {
        let mut other = context();
        other.reduction = SpecPart::new(&json!({"prompt": "new"})).unwrap();
        assert_eq!(
            other.leaf_spec(&state(), None),
            context().leaf_spec(&state(), None)
        );
        assert_ne!(
            other.reduction_spec(Role::Root, &[], node_access(&[])),
            context().reduction_spec(Role::Root, &[], node_access(&[]))
        );
    }
}
