//! The plan from scratch: all documents in, all pages out. [`crate::advance()`] must give the same tree.

use factum_base::{NodeKey, sha256};
use factum_casefile::SlotState;
use factum_casefile::profile::{Tree, TreeKind};

use crate::boundaries::{FanOut, anchor_at_level, group_starts};
use crate::pages::{Entry, LeafEntry, NodeEntry, Page, Role};
use crate::segments::Segment;
use crate::spec::{SpecContext, key_of};

/// A document to plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentInput {
    /// Its state for the principal.
    pub state: SlotState,
    /// Its segments in order; not looked at where the document is ineligible.
    pub segments: Vec<Segment>,
}

/// A planned tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The root's key.
    pub root: NodeKey,
    /// Nodes in all.
    pub nodes: u32,
    /// Pages made, children before parents.
    pub pages: Vec<(NodeKey, Page)>,
}

/// Makes entries and pages for one context and tree rule.
#[derive(Debug, Clone, Copy)]
pub struct Planner<'c> {
    /// What all specs share.
    pub context: &'c SpecContext,
    /// The tree rule.
    pub tree: &'c Tree,
}

impl Planner<'_> {
    /// The limits of a group.
    pub fn fan_out(&self) -> FanOut {
        FanOut {
            min: self.tree.min as usize,
            max: self.tree.max as usize,
        }
    }

    /// The whole tree, from documents in slot order.
    pub fn plan(&self, documents: &[DocumentInput]) -> Plan {
        let mut pages = Vec::new();
        let mut items: Vec<Entry> = Vec::with_capacity(documents.len());
        for document in documents {
            items.push(self.document_entry(document, &mut pages));
        }
        let root = match self.tree.kind {
            TreeKind::Fixed => self.fixed_levels(items, &mut pages),
            TreeKind::Stable => self.levels_above(items, Vec::new(), &mut pages),
        };
        Plan {
            root: root.key,
            nodes: root.nodes,
            pages,
        }
    }

    /// The item that stands for a document at the lowest level, and the pages below it.
    pub fn document_entry(
        &self,
        document: &DocumentInput,
        pages: &mut Vec<(NodeKey, Page)>,
    ) -> Entry {
        let anchor = document_anchor(document.state.doc_id.as_str());
        let segments = &document.segments[..];
        if !document.state.eligible || segments.len() < 2 {
            let span = segments
                .first()
                .map(|s| s.span)
                .filter(|_| document.state.eligible);
            return Entry::Leaf(Box::new(self.leaf(document, span, anchor)));
        }
        let mut items: Vec<Entry> = segments
            .iter()
            .map(|s| Entry::Leaf(Box::new(self.leaf(document, Some(s.span), s.anchor))))
            .collect();
        let mut level = 1;
        while items.len() > self.fan_out().max {
            items = self.group(items, Role::Part, level, pages);
            level += 1;
        }
        let (page, mut entry) = Page::build(self.context, Role::Document, level, Vec::new(), items);
        entry.anchor = anchor;
        pages.push((entry.key, page));
        Entry::Node(entry)
    }

    fn leaf(
        &self,
        document: &DocumentInput,
        segment: Option<factum_base::Span>,
        anchor: u64,
    ) -> LeafEntry {
        let key = key_of(&self.context.leaf_spec(&document.state, segment));
        LeafEntry {
            state: document.state.clone(),
            segment,
            anchor,
            key,
        }
    }

    /// Groups a stretch of items (a whole level, or between certain boundaries) into pages.
    pub fn group(
        &self,
        items: Vec<Entry>,
        role: Role,
        level: u32,
        pages: &mut Vec<(NodeKey, Page)>,
    ) -> Vec<Entry> {
        let anchors: Vec<u64> = items
            .iter()
            .map(|e| anchor_at_level(e.anchor(), level))
            .collect();
        let starts = group_starts(&anchors, self.fan_out());
        let mut rest = items;
        let mut groups: Vec<Vec<Entry>> = starts
            .iter()
            .rev()
            .map(|&start| rest.split_off(start))
            .collect();
        groups.reverse();
        groups
            .into_iter()
            .map(|entries| {
                let (page, entry) = Page::build(self.context, role, level, Vec::new(), entries);
                pages.push((entry.key, page));
                Entry::Node(entry)
            })
            .collect()
    }

    /// All levels above `items` up to the root. `counts` holds the sizes of the levels below.
    pub fn levels_above(
        &self,
        mut items: Vec<Entry>,
        mut counts: Vec<u32>,
        pages: &mut Vec<(NodeKey, Page)>,
    ) -> NodeEntry {
        loop {
            counts.push(u32::try_from(items.len()).unwrap_or(u32::MAX));
            let level = u32::try_from(counts.len()).unwrap_or(u32::MAX);
            if items.len() <= self.fan_out().max {
                let (page, entry) = Page::build(self.context, Role::Root, level, counts, items);
                pages.push((entry.key, page));
                return entry;
            }
            items = self.group(items, Role::Group, level, pages);
        }
    }

    fn fixed_levels(&self, items: Vec<Entry>, pages: &mut Vec<(NodeKey, Page)>) -> NodeEntry {
        let mut counts = vec![u32::try_from(items.len()).unwrap_or(u32::MAX)];
        let mut groups = Vec::new();
        let mut rest = items.into_iter().peekable();
        while rest.peek().is_some() {
            let entries: Vec<Entry> = rest.by_ref().take(self.tree.group as usize).collect();
            let (page, entry) = Page::build(self.context, Role::Group, 1, Vec::new(), entries);
            pages.push((entry.key, page));
            groups.push(Entry::Node(entry));
        }
        counts.push(u32::try_from(groups.len()).unwrap_or(u32::MAX));
        let (page, entry) = Page::build(self.context, Role::Root, 2, counts, groups);
        pages.push((entry.key, page));
        entry
    }
}

/// The anchor of a document: the first eight bytes of its id's SHA-256.
pub fn document_anchor(doc_id: &str) -> u64 {
    let digest = sha256(doc_id.as_bytes());
    digest[..8]
        .iter()
        .fold(0, |value, &byte| (value << 8) | u64::from(byte))
}
