//! The exported JSON as this verifier reads it. Every field is looked at: one that is missing, unknown
//! or of the wrong type is a finding, and stands as empty or zero for the checks that follow.

use factum_base::{canonical_json, sha256};
use serde_json::{Map, Value};

use super::FindingClass::Format;
use super::{Report, hex, is_hex_digest};

/// Largest integer that JSON numbers carry exactly (RFC 8785, appendix D). Beyond it two different
/// integers have one canonical form, and so one digest.
pub(super) const MAX_EXACT: u64 = (1 << 53) - 1;

/// One object with the place it stands at.
pub(super) struct Fields<'j> {
    map: Option<&'j Map<String, Value>>,
    pub(super) place: String,
}

impl<'j> Fields<'j> {
    /// Opens an object that may have the `known` fields and no other.
    pub(super) fn open(
        value: &'j Value,
        place: String,
        known: &[&str],
        report: &mut Report,
    ) -> Self {
        let fields = Self::any(value, place, report);
        for name in fields.map.iter().flat_map(|map| map.keys()) {
            if !known.contains(&name.as_str()) {
                report.add(
                    Format,
                    &fields.place,
                    format!("has the unknown field {}", short(name)),
                );
            }
        }
        fields
    }

    /// Opens an object with any fields.
    pub(super) fn any(value: &'j Value, place: String, report: &mut Report) -> Self {
        let map = value.as_object();
        report.require(map.is_some(), Format, &place, "is not an object");
        Self { map, place }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&'j String, &'j Value)> {
        self.map.into_iter().flatten()
    }

    /// A field's value; `Null` where it is absent.
    pub(super) fn value(&self, name: &str) -> &'j Value {
        self.map
            .and_then(|map| map.get(name))
            .unwrap_or(&Value::Null)
    }

    fn wrong(&self, name: &str, wanted: &str, report: &mut Report) {
        // An object that is not there was reported once already.
        if self.map.is_some() {
            report.add(
                Format,
                &format!("{}.{name}", self.place),
                format!("is not {wanted}"),
            );
        }
    }

    pub(super) fn text(&self, name: &str, report: &mut Report) -> &'j str {
        self.value(name).as_str().unwrap_or_else(|| {
            self.wrong(name, "text", report);
            ""
        })
    }

    pub(super) fn optional_text(&self, name: &str, report: &mut Report) -> Option<&'j str> {
        match self.value(name) {
            Value::Null => None,
            _ => Some(self.text(name, report)),
        }
    }

    pub(super) fn digest(&self, name: &str, report: &mut Report) -> &'j str {
        let text = self.text(name, report);
        if !is_hex_digest(text) {
            self.wrong(name, "a SHA-256 digest in lower-case hex", report);
        }
        text
    }

    pub(super) fn number(&self, name: &str, report: &mut Report) -> u64 {
        self.value(name)
            .as_u64()
            .filter(|&n| n <= MAX_EXACT)
            .unwrap_or_else(|| {
                self.wrong(name, "a whole number in range", report);
                0
            })
    }

    pub(super) fn flag(&self, name: &str, report: &mut Report) -> bool {
        self.value(name).as_bool().unwrap_or_else(|| {
            self.wrong(name, "true or false", report);
            false
        })
    }

    pub(super) fn list(&self, name: &str, report: &mut Report) -> &'j [Value] {
        self.value(name).as_array().map_or_else(
            || {
                self.wrong(name, "a list", report);
                &[][..]
            },
            Vec::as_slice,
        )
    }

    pub(super) fn texts(&self, name: &str, report: &mut Report) -> Vec<&'j str> {
        let items = self.list(name, report);
        let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
        if texts.len() != items.len() {
            self.wrong(name, "a list of texts", report);
        }
        texts
    }
}

/// A whole run.
pub(super) struct Run<'j> {
    pub(super) top: Fields<'j>,
    pub(super) principal: &'j str,
    pub(super) event: u64,
    pub(super) full: bool,
    pub(super) root: &'j str,
    pub(super) slots: Vec<SlotRow<'j>>,
    pub(super) nodes: Vec<Node<'j>>,
}

/// One slot of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlotRow<'j> {
    pub(super) place: String,
    pub(super) slot: &'j str,
    pub(super) doc_id: &'j str,
    pub(super) version: u64,
    pub(super) text_sha256: &'j str,
    pub(super) active: bool,
    pub(super) eligible: bool,
    pub(super) access_revision: u64,
}

/// One node.
pub(super) struct Node<'j> {
    pub(super) place: String,
    pub(super) name: &'j str,
    pub(super) children: Vec<&'j str>,
    pub(super) spec_value: &'j Value,
    pub(super) spec: Spec<'j>,
    pub(super) transformation: &'j Value,
    pub(super) key: &'j str,
    pub(super) reused: bool,
    pub(super) result: NodeOutput<'j>,
}

/// What a spec says beside the transformation.
pub(super) enum Spec<'j> {
    Leaf {
        slot: SlotRow<'j>,
        segment: Option<(u64, u64)>,
    },
    Reduction {
        role: &'j str,
        children_keys: Vec<&'j str>,
        access_fingerprint: &'j str,
    },
}

/// What a node produced.
pub(super) struct NodeOutput<'j> {
    pub(super) place: String,
    pub(super) status: &'j str,
    pub(super) claims: Vec<Claim<'j>>,
    pub(super) withheld: Vec<Claim<'j>>,
    pub(super) evidence: Vec<Piece<'j>>,
    pub(super) diagnostic: Option<&'j str>,
    pub(super) generation: Option<&'j str>,
}

/// One claim.
pub(super) struct Claim<'j> {
    pub(super) place: String,
    pub(super) values: Vec<&'j str>,
    pub(super) evidence: Vec<&'j str>,
    pub(super) verdict: &'j str,
    pub(super) method: &'j str,
}

/// One piece of evidence.
pub(super) struct Piece<'j> {
    pub(super) place: String,
    /// The name it has in the node's map.
    pub(super) id: &'j str,
    pub(super) stated_id: &'j str,
    pub(super) doc_id: &'j str,
    pub(super) version: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) quote: &'j str,
    pub(super) text_sha256: &'j str,
}

const RUN: [&str; 15] = [
    "format",
    "run_id",
    "case_id",
    "principal",
    "event",
    "profile",
    "full",
    "snapshot",
    "snapshot_sha256",
    "root",
    "nodes",
    "generations",
    "counts",
    "invalidation",
    "seconds",
];
const SLOT: [&str; 7] = [
    "slot",
    "doc_id",
    "version",
    "text_sha256",
    "active",
    "eligible",
    "access_revision",
];
const NODE: [&str; 7] = [
    "name", "kind", "children", "spec", "key", "reused", "result",
];
const LEAF: [&str; 12] = [
    "access_revision",
    "active",
    "doc_id",
    "eligible",
    "format",
    "kind",
    "principal",
    "segment",
    "slot",
    "text_sha256",
    "transformation",
    "version",
];
const REDUCTION: [&str; 7] = [
    "access_fingerprint",
    "children_keys",
    "format",
    "kind",
    "principal",
    "role",
    "transformation",
];
const RESULT: [&str; 7] = [
    "status",
    "claims",
    "withheld",
    "evidence",
    "diagnostic",
    "repairs",
    "generation",
];
const CLAIM: [&str; 4] = ["fields", "evidence", "support", "salience"];
const SUPPORT: [&str; 4] = ["verdict", "method", "version", "detail"];
const PIECE: [&str; 7] = [
    "evidence_id",
    "doc_id",
    "version",
    "start",
    "end",
    "quote",
    "text_sha256",
];

impl<'j> Run<'j> {
    pub(super) fn read(value: &'j Value, report: &mut Report) -> Self {
        let top = Fields::open(value, "run".to_owned(), &RUN, report);
        let format = top.text("format", report);
        report.require(
            format == "factum/run/1",
            Format,
            "run.format",
            "is not factum/run/1",
        );
        for name in ["run_id", "case_id", "profile"] {
            top.text(name, report);
        }
        if !top
            .value("seconds")
            .as_f64()
            .is_some_and(|seconds| seconds >= 0.0)
        {
            report.add(Format, "run.seconds", "is not a number from 0 on");
        }
        let snapshot = Fields::open(
            top.value("snapshot"),
            "run.snapshot".to_owned(),
            &["slots"],
            report,
        );
        let slots = snapshot.list("slots", report).iter().enumerate();
        let nodes = top.list("nodes", report).iter().enumerate();
        Self {
            principal: top.text("principal", report),
            event: top.number("event", report),
            full: top.flag("full", report),
            root: top.digest("root", report),
            slots: slots
                .map(|(n, slot)| {
                    let place = format!("run.snapshot.slots[{n}]");
                    SlotRow::read(&Fields::open(slot, place, &SLOT, report), report)
                })
                .collect(),
            nodes: nodes.map(|(n, node)| Node::read(node, n, report)).collect(),
            top,
        }
    }
}

impl<'j> SlotRow<'j> {
    fn read(fields: &Fields<'j>, report: &mut Report) -> Self {
        Self {
            place: fields.place.clone(),
            slot: fields.text("slot", report),
            doc_id: fields.text("doc_id", report),
            version: fields.number("version", report),
            text_sha256: fields.digest("text_sha256", report),
            active: fields.flag("active", report),
            eligible: fields.flag("eligible", report),
            access_revision: fields.number("access_revision", report),
        }
    }
}

impl<'j> Node<'j> {
    fn read(value: &'j Value, n: usize, report: &mut Report) -> Self {
        let fields = Fields::open(value, format!("nodes[{n}]"), &NODE, report);
        let place = fields.place.clone();
        let kind = fields.text("kind", report);
        let spec_value = fields.value("spec");
        let spec = Spec::read(spec_value, kind, &place, report);
        Self {
            name: fields.text("name", report),
            children: fields.texts("children", report),
            spec_value,
            spec,
            transformation: spec_value.get("transformation").unwrap_or(&Value::Null),
            key: fields.digest("key", report),
            reused: fields.flag("reused", report),
            result: NodeOutput::read(fields.value("result"), format!("{place}.result"), report),
            place,
        }
    }
}

impl<'j> Spec<'j> {
    fn read(value: &'j Value, kind: &str, node: &str, report: &mut Report) -> Self {
        let place = format!("{node}.spec");
        let is_leaf = kind == "leaf";
        report.require(
            is_leaf || kind == "reduction",
            Format,
            &format!("{node}.kind"),
            "is neither leaf nor reduction",
        );
        let known: &[&str] = if is_leaf { &LEAF } else { &REDUCTION };
        let fields = Fields::open(value, place, known, report);
        let place = &fields.place;
        let format = fields.text("format", report);
        report.require(
            format == "factum/spec/1",
            Format,
            place,
            "is not of format factum/spec/1",
        );
        let spec_kind = fields.text("kind", report);
        report.require(
            spec_kind == kind,
            Format,
            place,
            "is of another kind than its node",
        );
        let transformation = fields.value("transformation");
        report.require(
            transformation.is_object(),
            Format,
            place,
            "has no transformation",
        );
        if let Some(what) = inexact(value) {
            report.add(Format, place, format!("holds {what}"));
        }
        if is_leaf {
            let segment = Self::segment(&fields, report);
            return Self::Leaf {
                slot: SlotRow::read(&fields, report),
                segment,
            };
        }
        Self::Reduction {
            role: fields.text("role", report),
            children_keys: fields.texts("children_keys", report),
            access_fingerprint: fields.digest("access_fingerprint", report),
        }
    }

    fn segment(fields: &Fields<'j>, report: &mut Report) -> Option<(u64, u64)> {
        let value = fields.value("segment");
        if value.is_null() {
            return None;
        }
        let place = format!("{}.segment", fields.place);
        let segment = Fields::open(value, place, &["start", "end"], report);
        Some((
            segment.number("start", report),
            segment.number("end", report),
        ))
    }
}

impl<'j> NodeOutput<'j> {
    fn read(value: &'j Value, place: String, report: &mut Report) -> Self {
        let fields = Fields::open(value, place, &RESULT, report);
        if !fields.value("repairs").is_null() {
            fields.texts("repairs", report);
        }
        let withheld = match fields.value("withheld") {
            Value::Null => Vec::new(),
            _ => Claim::read_all(&fields, "withheld", report),
        };
        let pieces = Fields::any(
            fields.value("evidence"),
            format!("{}.evidence", fields.place),
            report,
        );
        Self {
            status: fields.text("status", report),
            claims: Claim::read_all(&fields, "claims", report),
            withheld,
            evidence: pieces
                .entries()
                .map(|(id, piece)| Piece::read(id, piece, &pieces.place, report))
                .collect(),
            diagnostic: fields.optional_text("diagnostic", report),
            generation: fields.optional_text("generation", report),
            place: fields.place,
        }
    }
}

impl<'j> Claim<'j> {
    fn read_all(result: &Fields<'j>, list: &str, report: &mut Report) -> Vec<Self> {
        let items = result.list(list, report).iter().enumerate();
        items
            .map(|(n, item)| Self::read(item, format!("{}.{list}[{n}]", result.place), report))
            .collect()
    }

    fn read(value: &'j Value, place: String, report: &mut Report) -> Self {
        let fields = Fields::open(value, place, &CLAIM, report);
        fields.number("salience", report);
        let own = Fields::any(
            fields.value("fields"),
            format!("{}.fields", fields.place),
            report,
        );
        for (name, value) in own.entries() {
            report.require(
                value.is_string(),
                Format,
                &format!("{}.{name}", own.place),
                "is not text",
            );
        }
        let support = Fields::open(
            fields.value("support"),
            format!("{}.support", fields.place),
            &SUPPORT,
            report,
        );
        support.number("version", report);
        support.text("detail", report);
        Self {
            values: own
                .entries()
                .filter_map(|(_, value)| value.as_str())
                .collect(),
            evidence: fields.texts("evidence", report),
            verdict: support.text("verdict", report),
            method: support.text("method", report),
            place: fields.place,
        }
    }
}

impl<'j> Piece<'j> {
    fn read(id: &'j str, value: &'j Value, map: &str, report: &mut Report) -> Self {
        let fields = Fields::open(value, format!("{map}[{}]", short(id)), &PIECE, report);
        Self {
            id,
            stated_id: fields.text("evidence_id", report),
            doc_id: fields.text("doc_id", report),
            version: fields.number("version", report),
            start: fields.number("start", report),
            end: fields.number("end", report),
            quote: fields.text("quote", report),
            text_sha256: fields.digest("text_sha256", report),
            place: fields.place,
        }
    }
}

/// SHA-256, in hex, of a value's RFC 8785 text.
pub(super) fn canonical_digest(value: &Value) -> Option<String> {
    canonical_json(value)
        .ok()
        .map(|text| hex(&sha256(text.as_bytes())))
}

/// What in a value has no exact canonical form: a number with a fraction or too large, or a key that
/// is not ASCII (sorted differently by careless tools).
pub(super) fn inexact(value: &Value) -> Option<&'static str> {
    match value {
        Value::Number(number) => {
            let exact = number.as_u64().is_some_and(|n| n <= MAX_EXACT)
                || number
                    .as_i64()
                    .is_some_and(|n| n.unsigned_abs() <= MAX_EXACT);
            (!exact).then_some("a number that is not a whole number in range")
        }
        Value::Array(items) => items.iter().find_map(inexact),
        Value::Object(map) => map.iter().find_map(|(name, value)| {
            if name.is_ascii() {
                inexact(value)
            } else {
                Some("a key that is not ASCII")
            }
        }),
        _ => None,
    }
}

/// Whether arrays and objects nest deeper than `limit`. Walks level by level, since a recursive walk
/// is what great depth would break.
pub(super) fn deeper_than(value: &Value, limit: usize) -> bool {
    let mut level = vec![value];
    for _ in 0..=limit {
        level = level
            .into_iter()
            .flat_map(|value| match value {
                Value::Array(items) => items.iter().collect::<Vec<_>>(),
                Value::Object(map) => map.values().collect(),
                _ => Vec::new(),
            })
            .collect();
        if level.is_empty() {
            return false;
        }
    }
    true
}

/// At most 120 characters, quoted, for messages.
pub(super) fn short(text: &str) -> String {
    let cut: String = text.chars().take(120).collect();
    format!("{cut:?}")
}
