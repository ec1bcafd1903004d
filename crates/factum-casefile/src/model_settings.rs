//! How a profile uses a language model: prompts, budgets, and how its answers are held to what was read.

use serde::{Deserialize, Serialize};

/// The `[model]` table of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// The instructions for a leaf, which reads a part of a document.
    pub leaf_prompt: String,
    /// The instructions for a reduction, which reads the claims of its children.
    pub reduction_prompt: String,
    /// Most tokens that a leaf reads, the chat template included. Longer input is refused, never cut.
    #[serde(default = "default_leaf_input")]
    pub leaf_input_tokens: u32,
    /// Most tokens that a reduction reads.
    #[serde(default = "default_reduction_input")]
    pub reduction_input_tokens: u32,
    /// Most tokens of an answer. One that needs more is INVALID.
    #[serde(default = "default_new_tokens")]
    pub new_tokens: u32,
    /// What an answer is held to while it is written.
    #[serde(default)]
    pub decoding: Decoding,
    /// What of a document can be cited.
    #[serde(default)]
    pub evidence: EvidenceUnit,
    /// Most claims that a reduction reads, the most salient of each document first; 0 for all.
    #[serde(default = "default_input_claims")]
    pub input_claims: u32,
    /// What happens where there is nothing to read.
    #[serde(default)]
    pub when_empty: WhenEmpty,
    /// Who makes a reduction's claims.
    #[serde(default, skip_serializing_if = "Reductions::is_default")]
    pub reductions: Reductions,
    /// What an earlier build can save a later one. It changes no answer, so it is in no key.
    #[serde(default)]
    pub reuse: Reuse,
}

/// What an answer is held to while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decoding {
    /// To the claim schema, with citations of what was read and values out of the cited quote, as far as
    /// the generator can.
    #[default]
    Grounded,
    /// To nothing.
    Free,
}

/// What of a document can be cited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceUnit {
    /// Its sentences, table rows and `Label: value` lines.
    #[default]
    Sentences,
    /// Its lines that are not blank.
    Lines,
}

/// What happens at a node with nothing to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenEmpty {
    /// It has no claims, and no model is asked.
    #[default]
    Skip,
    /// The model is asked all the same.
    Ask,
}

/// Who makes a reduction's claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reductions {
    /// The model writes them, from the claims of the children.
    #[default]
    Ask,
    /// They are the children's own, duplicates folded, the most salient of each document first, at most
    /// `extraction.node_claims`: as in extraction. For claims that are facts, not sentences.
    Fold,
}

impl Reductions {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What an earlier build can save a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// Nodes with the same key, and answers to the same input under another key.
    #[default]
    Generations,
    /// Nodes with the same key only.
    Nodes,
}

const fn default_leaf_input() -> u32 {
    4_096
}
const fn default_reduction_input() -> u32 {
    4_096
}
const fn default_new_tokens() -> u32 {
    512
}
const fn default_input_claims() -> u32 {
    24
}
