//! Serving: a summary is read only where its root is the one that the snapshot demands now.
//!
//! Everything is decided on one state of the store: the demanded root, the built one, every citation. Where
//! the newest build is up to date, that is a single statement; else it is one read transaction, in which
//! a root that differs is STALE and its claims are not even read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use factum_base::{CaseId, DocumentId, NodeKey, PrincipalId, TextDigest};
use factum_casefile::{
    Claim, Event, EventKind, Evidence, EvidenceId, NodeResult, NodeStatus, Profile, SlotState,
};
use factum_graph::SpecContext;
use factum_store::{Built, CaseRow, Head, StoreError, Tx};
use serde::Serialize;

use crate::error::EngineError;
use crate::permission::{Permitted, is_owner, permitted};
use crate::planning::{CurrentTree, PlanFor};
use crate::text_cache::Indexed;
use crate::workspace::Workspace;

/// What serving came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    /// The summary that is true to the snapshot now.
    Current(Box<Summary>),
    /// There is none to show.
    Refused(Refusal),
}

/// Why a summary is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The word for it.
    pub status: RefusalStatus,
    /// Why, newest event last.
    pub reasons: Vec<Reason>,
    /// The case file's latest event.
    pub event: u64,
    /// The event that the refused summary was built at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_event: Option<u64>,
}

/// The words for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RefusalStatus {
    /// Built from what is no longer so.
    Stale,
    /// The root's output broke a rule.
    Invalid,
    /// Never built.
    Absent,
    /// The caller may not see it.
    Forbidden,
}

impl RefusalStatus {
    /// The word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stale => "STALE",
            Self::Invalid => "INVALID",
            Self::Absent => "ABSENT",
            Self::Forbidden => "FORBIDDEN",
        }
    }
}

/// One reason for a refusal or a change. It names only what the reader may see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Reason {
    /// The event, where one is to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// `published`, `withdrawn`, `reinstated`, `moved`, `access`, `profile`, `generator`, `never-built`,
    /// `invalid`.
    pub kind: String,
    /// The document, where the reader may see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doc_id: Option<DocumentId>,
    /// The same in words.
    pub message: String,
}

/// A summary as served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The case file.
    pub case_id: CaseId,
    /// Its title.
    pub title: String,
    /// Who it is for.
    pub principal: PrincipalId,
    /// The case file's latest event; the summary is true to it.
    pub event: u64,
    /// The root's key.
    pub root: NodeKey,
    /// VALID or PARTIAL. It says nothing about truth.
    pub status: NodeStatus,
    /// The generator's name.
    pub generator: String,
    /// When it was built, in Unix milliseconds.
    pub built_at: i64,
    /// The claims with how each reads.
    pub claims: Vec<(String, Claim)>,
    /// What they cite.
    pub evidence: BTreeMap<EvidenceId, Evidence>,
    /// Claims kept on record but not served.
    pub withheld: usize,
    /// Documents that the claims cite.
    pub documents: u64,
}

impl Workspace {
    /// Serves a case file's summary to a principal.
    ///
    /// # Errors
    /// The case file is unknown or hidden, its profile can't be used, or the store is damaged.
    pub async fn serve(
        &self,
        case_id: &CaseId,
        principal: &PrincipalId,
        generator: Option<&str>,
    ) -> Result<Served, EngineError> {
        if let Some(summary) = self.serve_current(case_id, principal, generator).await? {
            return Ok(Served::Current(Box::new(summary)));
        }
        let mut tx = self.repository.read().await?;
        let served = self.serve_in(&mut tx, case_id, principal, generator).await;
        tx.close().await?;
        served
    }

    /// The common case in one question to the store: the newest head was built from the latest event, in
    /// this context. `None` where anything at all is otherwise; what, is then decided in a transaction.
    async fn serve_current(
        &self,
        case_id: &CaseId,
        principal: &PrincipalId,
        generator: Option<&str>,
    ) -> Result<Option<Summary>, EngineError> {
        let owner = is_owner(principal);
        let row = self
            .repository
            .serving_row(case_id, principal, owner, generator)
            .await;
        let row = match row {
            // A damaged result can keep the question from being answered; the transaction finds it.
            Err(StoreError::Database(_)) => None,
            other => other?,
        };
        let Some(row) = row.filter(|row| row.access.any()) else {
            return Ok(None);
        };
        let profile = self.profile(&row.case.profile)?;
        let Ok(generator) = self.generator(&row.head.generator) else {
            return Ok(None);
        };
        let context = self.spec_context(principal, &row.case.profile, &generator)?;
        let current = row.head.context == context.digest()
            && row.result.status != NodeStatus::Invalid
            && row.citable == row.result.evidence.len() as u64;
        let Some(built) = row.head.built.as_ref().filter(|_| current) else {
            return Ok(None);
        };
        self.recheck_quotes(&row.result.evidence).await?;
        recheck_claims(&row.result)?;
        let generator = row.head.generator.clone();
        let about = About::current(&row.case, principal, built, generator);
        Ok(Some(summary(about, &profile, row.result)))
    }

    async fn serve_in(
        &self,
        tx: &mut Tx,
        case_id: &CaseId,
        principal: &PrincipalId,
        generator: Option<&str>,
    ) -> Result<Served, EngineError> {
        let permitted = permitted(tx, case_id, principal).await?;
        let profile = self.profile(&permitted.case.profile)?;
        let decision = decide(self, tx, &permitted, principal, generator).await?;
        match decision {
            Decision::Refused(refusal, _) => Ok(Served::Refused(refusal)),
            Decision::Current(found) => {
                let (head, tree) = *found;
                let case = &permitted.case;
                let built = head.built.as_ref().ok_or_else(|| lost(&tree.root))?;
                let result = tx.result(case.case_no, &tree.root, None).await?;
                let result = result.ok_or_else(|| lost(&tree.root))?.result;
                if result.status == NodeStatus::Invalid {
                    return Ok(Served::Refused(invalid(&permitted, built.event)));
                }
                recheck_evidence(self, tx, &permitted, principal, &result.evidence).await?;
                recheck_claims(&result)?;
                let about = About::current(case, principal, built, head.generator.clone());
                Ok(Served::Current(Box::new(summary(about, &profile, result))))
            }
        }
    }

    /// Holds each quote against the text that it cites.
    async fn recheck_quotes(
        &self,
        evidence: &BTreeMap<EvidenceId, Evidence>,
    ) -> Result<(), EngineError> {
        let digests: BTreeSet<TextDigest> = evidence.values().map(|one| one.text_sha256).collect();
        let texts = if let Some(texts) = self.texts.kept(digests.iter()) {
            texts
        } else {
            // A text is found by its digest and never changes, so any transaction will do.
            let mut tx = self.repository.read().await?;
            let texts = self.texts.texts(&mut tx, digests.into_iter()).await;
            tx.close().await?;
            texts?
        };
        check_quotes(evidence, &texts)
    }
}

/// What a summary says of itself, beside its root's result.
pub(crate) struct About {
    pub(crate) case_id: CaseId,
    pub(crate) title: String,
    pub(crate) principal: PrincipalId,
    /// The event that it is true to.
    pub(crate) event: u64,
    pub(crate) root: NodeKey,
    pub(crate) generator: String,
    pub(crate) built_at: i64,
}

impl About {
    /// A summary that is true to a case file's latest event.
    fn current(case: &CaseRow, principal: &PrincipalId, built: &Built, generator: String) -> Self {
        Self {
            case_id: case.case_id.clone(),
            title: case.title.clone(),
            principal: principal.clone(),
            event: case.last_event,
            root: built.root,
            generator,
            built_at: built.at,
        }
    }
}

/// A result as a summary.
pub(crate) fn summary(about: About, profile: &Profile, result: NodeResult) -> Summary {
    Summary {
        case_id: about.case_id,
        title: about.title,
        principal: about.principal,
        event: about.event,
        root: about.root,
        status: result.status,
        generator: about.generator,
        built_at: about.built_at,
        claims: result
            .claims
            .into_iter()
            .map(|claim| (profile.read(&claim.fields), claim))
            .collect(),
        documents: cited_documents(&result.evidence),
        evidence: result.evidence,
        withheld: result.withheld.len(),
    }
}

/// How many documents evidence comes from.
fn cited_documents(evidence: &BTreeMap<EvidenceId, Evidence>) -> u64 {
    evidence
        .values()
        .map(|one| &one.doc_id)
        .collect::<BTreeSet<_>>()
        .len() as u64
}

/// Whether the newest build is the one demanded.
pub(crate) enum Decision {
    /// It is.
    Current(Box<(Head, CurrentTree)>),
    /// It is not; the tree that would be demanded comes along where it was worked out.
    Refused(Refusal, Option<Box<(Head, CurrentTree)>>),
}

/// Decides, in the caller's transaction.
pub(crate) async fn decide(
    workspace: &Workspace,
    tx: &mut Tx,
    permitted: &Permitted,
    principal: &PrincipalId,
    generator: Option<&str>,
) -> Result<Decision, EngineError> {
    let case = &permitted.case;
    let refused = |status, reasons, built_event| Refusal {
        status,
        reasons,
        event: case.last_event,
        built_event,
    };
    let head = tx.head(case.case_no, principal, generator).await?;
    let Some((head, built)) = head.and_then(|head| head.built.clone().map(|built| (head, built)))
    else {
        let reason = plain("never-built", "no summary was ever built");
        return Ok(Decision::Refused(
            refused(RefusalStatus::Absent, vec![reason], None),
            None,
        ));
    };
    let profile = workspace.profile(&case.profile)?;
    let context = match workspace.generator(&head.generator) {
        Ok(generator) => workspace.spec_context(principal, &case.profile, &generator)?,
        Err(EngineError::UnknownGenerator { name, message }) => {
            // Whether it would still say the same can't be known.
            let reason = plain(
                "generator",
                &format!("the generator {name} is not known here: {message}"),
            );
            let refusal = refused(RefusalStatus::Stale, vec![reason], Some(built.event));
            return Ok(Decision::Refused(refusal, None));
        }
        Err(other) => return Err(other),
    };
    let plan = PlanFor {
        permitted,
        principal,
        profile: &profile,
        context: &context,
    };
    // The kept tree may be further than the build, and of another context: what counts is what is built.
    let tree = plan.current_tree(tx, Some(&head)).await?;
    if tree.root == built.root {
        return Ok(Decision::Current(Box::new((head, tree))));
    }
    let mut reasons = Vec::new();
    if built.context != context.digest() {
        reasons.extend(context_reasons(
            &tx.context(&built.context).await?,
            &context,
        ));
    }
    let events = tx.events_after(case.case_no, built.event).await?;
    reasons.extend(
        event_reasons(
            tx,
            permitted,
            principal,
            events.iter().map(|(event, _)| event),
        )
        .await?,
    );
    let refusal = refused(RefusalStatus::Stale, reasons, Some(built.event));
    Ok(Decision::Refused(refusal, Some(Box::new((head, tree)))))
}

fn plain(kind: &str, message: &str) -> Reason {
    Reason {
        event: None,
        kind: kind.to_owned(),
        doc_id: None,
        message: message.to_owned(),
    }
}

fn invalid(permitted: &Permitted, built_event: u64) -> Refusal {
    let reason = plain(
        "invalid",
        "the summary's last output broke a rule of its profile and is not shown",
    );
    Refusal {
        status: RefusalStatus::Invalid,
        reasons: vec![reason],
        event: permitted.case.last_event,
        built_event: Some(built_event),
    }
}

fn lost(root: &NodeKey) -> StoreError {
    StoreError::Damaged(format!("the result of the built root {root} is gone"))
}

fn context_reasons(old: &SpecContext, new: &SpecContext) -> Vec<Reason> {
    let part = |json: &str, name: &str| -> Option<serde_json::Value> {
        serde_json::from_str::<serde_json::Value>(json)
            .ok()?
            .get(name)
            .cloned()
    };
    let differs = |name: &str| {
        part(old.leaf.json(), name) != part(new.leaf.json(), name)
            || part(old.reduction.json(), name) != part(new.reduction.json(), name)
    };
    let mut reasons = Vec::new();
    if differs("generator") {
        reasons.push(plain("generator", "the generator is another version now"));
    }
    let rest = [
        "profile",
        "prompt",
        "catalogue",
        "decoding",
        "answer",
        "input_tokens",
        "input_claims",
        "new_tokens",
        "when_empty",
        "segmentation",
        "support",
        "children",
    ];
    if rest.into_iter().any(differs) {
        reasons.push(plain("profile", "the profile has changed"));
    }
    reasons
}

/// The kind of an event on a document, and the event in words.
pub(crate) fn in_words(kind: &EventKind, doc_id: &DocumentId) -> (&'static str, String) {
    match kind {
        EventKind::Published { version: 1, .. } => ("published", format!("{doc_id} was added")),
        EventKind::Published { version, .. } => {
            ("published", format!("{doc_id} has version {version}"))
        }
        EventKind::Withdrawn { .. } => ("withdrawn", format!("{doc_id} was withdrawn")),
        EventKind::Reinstated { .. } => ("reinstated", format!("{doc_id} was reinstated")),
        EventKind::Moved { .. } => ("moved", format!("{doc_id} has another place")),
        EventKind::Granted { .. } | EventKind::Revoked { .. } => {
            ("access", format!("access to {doc_id} changed"))
        }
    }
}

/// What events mean to a reader: only what concerns documents it has a slot for, and names only where
/// it may see the document now.
pub(crate) async fn event_reasons<'e>(
    tx: &mut Tx,
    permitted: &Permitted,
    principal: &PrincipalId,
    events: impl Iterator<Item = &'e Event>,
) -> Result<Vec<Reason>, EngineError> {
    // Whether the principal may see a document; absent where it has no slot.
    let mut known: HashMap<&DocumentId, Option<bool>> = HashMap::new();
    let mut reasons = Vec::new();
    for event in events {
        if event.kind.principal().is_some_and(|who| who != principal) {
            continue;
        }
        let reason = |kind: &str, doc_id: Option<&DocumentId>, message: String| Reason {
            event: Some(event.number),
            kind: kind.to_owned(),
            doc_id: doc_id.cloned(),
            message: format!("{message} (event {})", event.number),
        };
        let Some(doc_id) = event.kind.doc_id() else {
            reasons.push(reason("access", None, "access changed".to_owned()));
            continue;
        };
        if !known.contains_key(doc_id) {
            let (case_no, access) = (permitted.case.case_no, permitted.access.case);
            let found = tx
                .principal_document(case_no, principal.as_str(), access, doc_id)
                .await?;
            known.insert(doc_id, found.map(|document| document.granted));
        }
        let Some(Some(granted)) = known.get(doc_id) else {
            continue;
        };
        if !granted {
            if event.kind.principal().is_some() {
                reasons.push(reason("access", None, "access changed".to_owned()));
            } else if matches!(event.kind, EventKind::Moved { .. }) {
                reasons.push(reason(
                    "moved",
                    None,
                    "the order of documents changed".to_owned(),
                ));
            }
            continue;
        }
        let (kind, words) = in_words(&event.kind, doc_id);
        reasons.push(reason(kind, Some(doc_id), words));
    }
    Ok(reasons)
}

/// Holds claims against the evidence that their root keeps.
fn recheck_claims(result: &NodeResult) -> Result<(), StoreError> {
    let lost = result
        .claims
        .iter()
        .flat_map(|claim| &claim.evidence)
        .find(|id| !result.evidence.contains_key(id));
    match lost {
        Some(lost) => Err(StoreError::Damaged(format!(
            "a claim cites {lost}, which its root does not hold"
        ))),
        None => Ok(()),
    }
}

/// Holds evidence against the snapshot now and its texts.
pub(crate) async fn recheck_evidence(
    workspace: &Workspace,
    tx: &mut Tx,
    permitted: &Permitted,
    principal: &PrincipalId,
    evidence: &BTreeMap<EvidenceId, Evidence>,
) -> Result<(), EngineError> {
    let damaged = |fault: factum_casefile::EvidenceFault| StoreError::Damaged(fault.to_string());
    let cited: BTreeSet<(&DocumentId, u32, TextDigest)> = evidence
        .values()
        .map(|one| (&one.doc_id, one.version, one.text_sha256))
        .collect();
    let cited: Vec<_> = cited.into_iter().collect();
    let (case_no, access) = (permitted.case.case_no, permitted.access.case);
    let citable = tx
        .count_citable(case_no, principal.as_str(), access, &cited)
        .await?;
    if citable != cited.len() as u64 {
        // Something is not as it should be: find out what.
        let doc_ids: Vec<&DocumentId> = cited.iter().map(|(doc_id, ..)| *doc_id).collect();
        let states: HashMap<DocumentId, SlotState> = tx
            .principal_documents_of(case_no, principal.as_str(), access, &doc_ids)
            .await?
            .into_iter()
            .map(|document| (document.state.doc_id.clone(), document.state))
            .collect();
        for one in evidence.values() {
            one.check_state(states.get(&one.doc_id)).map_err(damaged)?;
        }
        return Err(StoreError::Damaged("a citation does not hold".to_owned()).into());
    }
    let digests = cited.iter().map(|(.., digest)| *digest);
    let texts = workspace.texts.texts(tx, digests).await?;
    check_quotes(evidence, &texts)
}

fn check_quotes(
    evidence: &BTreeMap<EvidenceId, Evidence>,
    texts: &HashMap<TextDigest, Arc<Indexed>>,
) -> Result<(), EngineError> {
    let damaged = |fault: factum_casefile::EvidenceFault| StoreError::Damaged(fault.to_string());
    for one in evidence.values() {
        one.check_identity().map_err(damaged)?;
        let found = texts.get(&one.text_sha256).ok_or_else(|| {
            StoreError::Damaged(format!("the text of {} is not at hand", one.evidence_id))
        })?;
        one.check_quote_with(&found.text, &found.index)
            .map_err(damaged)?;
    }
    Ok(())
}
