//! Pages: the kept tree, one page for each reduction, addressed by node key.
//!
//! A page lists a reduction's children in document order with what a parent needs to know of them.
//! Leaves have no page of their own: their entry in the page above holds all of their spec. Since a key
//! covers its children's keys, an unchanged part of the tree is the same pages, and old trees stay
//! readable at no cost.

use std::collections::HashMap;
use std::sync::Arc;

use factum_base::{AccessFingerprint, NodeKey, Span};
use factum_casefile::{Slot, SlotState};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::spec::{SpecContext, leaf_access, node_access};

/// What a reduction stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Some segments of a long document.
    Part,
    /// All segments of a long document.
    Document,
    /// Some neighbouring documents.
    Group,
    /// The whole case file.
    Root,
}

impl Role {
    /// The word in specs and names.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Part => "part",
            Self::Document => "document",
            Self::Group => "group",
            Self::Root => "root",
        }
    }
}

/// A leaf as its parent knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafEntry {
    /// The document's state; part of the leaf's spec.
    pub state: SlotState,
    /// The segment read; `None` for an ineligible document, whose text goes nowhere.
    pub segment: Option<Span>,
    /// Decides group boundaries.
    pub anchor: u64,
    /// The leaf's key.
    pub key: NodeKey,
}

/// A reduction as its parent knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntry {
    /// Slot of the first document below.
    pub first: Slot,
    /// First code point read, within a document; 0 above.
    pub start: u32,
    /// Decides group boundaries.
    pub anchor: u64,
    /// The reduction's key.
    pub key: NodeKey,
    /// Access state of all documents below.
    pub access: AccessFingerprint,
    /// Nodes from here down, this one included.
    pub nodes: u32,
}

/// One child of a reduction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A leaf.
    Leaf(Box<LeafEntry>),
    /// A reduction.
    Node(NodeEntry),
}

impl Entry {
    /// The child's key.
    pub fn key(&self) -> NodeKey {
        match self {
            Self::Leaf(leaf) => leaf.key,
            Self::Node(node) => node.key,
        }
    }

    /// Slot of the first document below.
    pub fn first(&self) -> &Slot {
        match self {
            Self::Leaf(leaf) => &leaf.state.slot,
            Self::Node(node) => &node.first,
        }
    }

    /// First code point read, within a document.
    pub fn start(&self) -> u32 {
        match self {
            Self::Leaf(leaf) => leaf.segment.map_or(0, |span| span.start),
            Self::Node(node) => node.start,
        }
    }

    /// Decides group boundaries.
    pub fn anchor(&self) -> u64 {
        match self {
            Self::Leaf(leaf) => leaf.anchor,
            Self::Node(node) => node.anchor,
        }
    }

    /// Access state below.
    pub fn access(&self) -> AccessFingerprint {
        match self {
            Self::Leaf(leaf) => leaf_access(&leaf.state),
            Self::Node(node) => node.access,
        }
    }

    /// Nodes from here down.
    pub fn nodes(&self) -> u32 {
        match self {
            Self::Leaf(_) => 1,
            Self::Node(node) => node.nodes,
        }
    }
}

/// A reduction and its children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// What it stands for.
    pub role: Role,
    /// Its height: parts and groups count from 1; a root is one above the highest group.
    pub level: u32,
    /// Root only: how many items each level below has, documents first.
    pub counts: Vec<u32>,
    /// First code point read, within a document; 0 above.
    pub start: u32,
    /// The children in document order.
    pub entries: Vec<Entry>,
}

/// A page that an operation needs and the cache lacks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("page {0} is not at hand")]
pub struct Missing(pub NodeKey);

impl Page {
    /// Makes a page, its key, and its entry for a parent.
    pub fn build(
        context: &SpecContext,
        role: Role,
        level: u32,
        counts: Vec<u32>,
        entries: Vec<Entry>,
    ) -> (Self, NodeEntry) {
        let children: Vec<NodeKey> = entries.iter().map(Entry::key).collect();
        let fingerprints: Vec<AccessFingerprint> = entries.iter().map(Entry::access).collect();
        let access = node_access(&fingerprints);
        let key = crate::spec::key_of(&context.reduction_spec(role, &children, access));
        // An empty case file has a root without a first document; nothing is ever looked up in it.
        let first = entries.first().map_or_else(
            || Slot::between(None, None, 1).remove(0),
            |e| e.first().clone(),
        );
        let anchor = entries.first().map_or(0, Entry::anchor);
        let start = entries.first().map_or(0, Entry::start);
        let nodes = 1 + entries.iter().map(Entry::nodes).sum::<u32>();
        let page = Self {
            role,
            level,
            counts,
            start,
            entries,
        };
        (
            page,
            NodeEntry {
                first,
                start,
                anchor,
                key,
                access,
                nodes,
            },
        )
    }

    /// The page's own spec, recomputed from its entries.
    pub fn spec(&self, context: &SpecContext) -> String {
        let children: Vec<NodeKey> = self.entries.iter().map(Entry::key).collect();
        let fingerprints: Vec<AccessFingerprint> = self.entries.iter().map(Entry::access).collect();
        context.reduction_spec(self.role, &children, node_access(&fingerprints))
    }

    /// Nodes from here down, this one included.
    pub fn nodes(&self) -> u32 {
        1 + self.entries.iter().map(Entry::nodes).sum::<u32>()
    }

    /// The index of the child under which `slot` belongs.
    pub fn child_for(&self, slot: &Slot) -> usize {
        self.entries
            .partition_point(|entry| entry.first() <= slot)
            .saturating_sub(1)
    }

    /// The document all leaves below belong to, for parts and documents.
    pub fn document(&self) -> Option<&SlotState> {
        match (self.role, self.entries.first()) {
            (Role::Part | Role::Document, Some(Entry::Leaf(leaf))) => Some(&leaf.state),
            _ => None,
        }
    }

    /// The node's name in runs: unique in its tree, the same in every run where it covers the same
    /// place. Names of groups hold slots, not document ids, since a reader may not be allowed those.
    pub fn name(&self) -> String {
        let slot = self
            .entries
            .first()
            .map_or("", |entry| entry.first().as_str());
        match self.role {
            Role::Root => "root".to_owned(),
            Role::Group => format!("group {} {slot}", self.level),
            Role::Document => format!("document {slot}"),
            Role::Part => format!("part {} {slot} {}", self.level, self.start),
        }
    }
}

impl LeafEntry {
    /// The leaf's name in runs.
    pub fn name(&self) -> String {
        let start = self.segment.map_or(0, |span| span.start);
        format!("leaf {} {start}", self.state.slot)
    }
}

/// Pages at hand, by key.
#[derive(Debug, Clone, Default)]
pub struct PageCache {
    pages: HashMap<NodeKey, Arc<Page>>,
}

impl PageCache {
    /// The page, or word that it is missing.
    ///
    /// # Errors
    /// The page was never inserted.
    pub fn get(&self, key: &NodeKey) -> Result<Arc<Page>, Missing> {
        self.pages.get(key).cloned().ok_or(Missing(*key))
    }

    /// Whether the page is at hand.
    pub fn contains(&self, key: &NodeKey) -> bool {
        self.pages.contains_key(key)
    }

    /// Adds a page.
    pub fn insert(&mut self, key: NodeKey, page: Page) {
        self.pages.insert(key, Arc::new(page));
    }

    /// How many pages are at hand.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// No page is at hand.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }
}
