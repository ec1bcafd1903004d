//! What is to be told, as plain data: only what the caller may know. It knows nothing of RDF or of the store.

use std::collections::{BTreeMap, BTreeSet};

use factum_base::{BodyDigest, CaseId, DocumentId, NodeKey, PrincipalId, Span, TextDigest};
use factum_casefile::{Event, EvidenceId, NodeStatus};

/// An event as a moment: its number and its time in Unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) event: u64,
    pub(super) at: i64,
}

impl Moment {
    pub(super) const fn of(event: &Event) -> Self {
        Self {
            event: event.number,
            at: event.at,
        }
    }
}

/// A case file's history, or one run's, as a caller may see it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lineage {
    pub(super) case_id: CaseId,
    pub(super) title: String,
    /// In Unix milliseconds, as all times here.
    pub(super) created_at: i64,
    pub(super) caller: PrincipalId,
    /// The case file's latest event.
    pub(super) last_event: u64,
    /// Runs not told, or told in outline; absent where one run was asked for.
    pub(super) left_out: Option<LeftOut>,
    pub(super) documents: BTreeMap<DocumentId, DocumentLineage>,
    pub(super) events: Vec<SeenEvent>,
    pub(super) rights: BTreeMap<RightId, RightLineage>,
    pub(super) agents: BTreeMap<AgentId, AgentLineage>,
    pub(super) runs: Vec<RunLineage>,
    pub(super) results: BTreeMap<ResultId, ResultLineage>,
    pub(super) answers: BTreeMap<AnswerId, AnswerLineage>,
    pub(super) quotes: BTreeMap<EvidenceId, String>,
}

/// Runs of the caller that are not told whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LeftOut {
    /// A source is hidden from the caller.
    pub(super) hidden: u64,
    /// A source is withdrawn: what was derived from what is told, and nothing that anyone wrote.
    pub(super) outlined: u64,
}

/// A document that the caller may see named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentLineage {
    pub(super) withdrawn: bool,
    pub(super) versions: BTreeMap<u32, VersionLineage>,
}

/// A version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VersionLineage {
    pub(super) published: Moment,
    /// Since when the case file does not count it: superseded or withdrawn.
    pub(super) invalidated: Option<Moment>,
    /// Digest of the text, where the caller may see the text.
    pub(super) text_sha256: Option<TextDigest>,
}

/// An event, without what the caller may not see of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenEvent {
    pub(super) moment: Moment,
    /// `published`, `withdrawn`, ...
    pub(super) word: &'static str,
    pub(super) by: PrincipalId,
    pub(super) doc_id: Option<DocumentId>,
    /// The version, where it published one.
    pub(super) version: Option<u32>,
    /// Whose rights changed.
    pub(super) principal: Option<PrincipalId>,
    /// It concerns the whole case file.
    pub(super) whole_case: bool,
}

/// A right by the event that granted it; of a right to the whole case file, the part over one document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RightId {
    pub(super) grant: u64,
    pub(super) part: Option<DocumentId>,
}

/// A principal's right, from a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RightLineage {
    pub(super) holder: PrincipalId,
    /// The document; absent for the whole case file and where it may not be named.
    pub(super) doc_id: Option<DocumentId>,
    pub(super) whole_case: bool,
    pub(super) granted: Moment,
    pub(super) revoked: Option<Moment>,
}

/// A generator by the SHA-256 of its identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AgentId {
    pub(super) model: bool,
    pub(super) digest: String,
}

/// A generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentLineage {
    /// As builds were asked for it.
    pub(super) names: BTreeSet<String>,
    /// `extractive`, `local`, `openai`, ...
    pub(super) kind: String,
    /// Its identity as RFC 8785 text, as keys hold it.
    pub(super) identity: String,
}

/// One build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunLineage {
    pub(super) run_id: String,
    pub(super) principal: PrincipalId,
    pub(super) event: u64,
    pub(super) profile: String,
    /// Digest of profile and generator, as they enter keys.
    pub(super) context: String,
    pub(super) full: bool,
    pub(super) started_at: i64,
    pub(super) finished_at: i64,
    pub(super) agent: AgentId,
    pub(super) summary: ResultId,
    pub(super) outline: bool,
    pub(super) used: BTreeSet<Used>,
}

/// What an activity read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Used {
    Version(DocumentId, u32),
    Result(ResultId),
}

/// A node's result: the run that made it, and the node's key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ResultId {
    pub(super) run_id: String,
    pub(super) key: NodeKey,
}

/// What a node produced, and from what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResultLineage {
    pub(super) source: Source,
    pub(super) status: NodeStatus,
    /// Claims handed on and claims withheld; absent in outlines.
    pub(super) counts: Option<(usize, usize)>,
    pub(super) answer: Option<AnswerId>,
    /// Roots only.
    pub(super) summary: Option<SummaryLineage>,
}

/// What a node reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Leaf {
        doc_id: DocumentId,
        version: u32,
        segment: Option<Span>,
    },
    Reduction {
        role: &'static str,
        children: Vec<ResultId>,
        /// Children whose output broke a rule: nothing of them was handed on.
        invalid: Vec<ResultId>,
    },
}

impl Source {
    /// The results that a reduction read; none for a leaf.
    pub(super) fn read(&self) -> &[ResultId] {
        match self {
            Self::Leaf { .. } => &[],
            Self::Reduction { children, .. } => children,
        }
    }
}

/// A root as a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SummaryLineage {
    pub(super) principal: PrincipalId,
    pub(super) agent: AgentId,
    pub(super) finished_at: Option<i64>,
    /// Since when it is not the summary that the documents demand.
    pub(super) stale: Option<Moment>,
    pub(super) claims: Vec<ClaimLineage>,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimLineage {
    pub(super) text: String,
    pub(super) verdict: String,
    pub(super) method: String,
    pub(super) evidence: Vec<EvidenceId>,
}

/// A model's answer: the run that asked, where it may be named, and the digest of the question.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AnswerId {
    pub(super) run_id: Option<String>,
    pub(super) digest: BodyDigest,
}

/// A model call. Its answer's text is not told.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AnswerLineage {
    pub(super) agent: AgentId,
    pub(super) stop: String,
    pub(super) prompt_tokens: u32,
    pub(super) new_tokens: u32,
    pub(super) seconds: f64,
    pub(super) retries: u32,
    pub(super) used: BTreeSet<Used>,
}
