//! Evidence that was found: how it stands now, and what stands around it.
//!
//! Rights are decided first, and everything that is handed out comes from the state of the store in which they
//! were: a passage is cut from the version that counts for this principal at that moment, or it is not there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use factum_base::{CaseId, DocumentId, PrincipalId, Span};
use factum_casefile::{Evidence, EvidenceFault, EvidenceId};
use factum_store::{PrincipalDocument, Tx};

use crate::error::EngineError;
use crate::permission::{Permitted, permitted};
use crate::workspace::Workspace;

/// Longest evidence that can be cited by its id, in code points.
const LONGEST: u32 = 8_000;

/// Where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchIn {
    /// The case file.
    pub case: CaseId,
    /// Only these documents; all where there are none.
    pub documents: BTreeSet<DocumentId>,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The case file.
    pub case: CaseId,
    /// The passage.
    pub evidence: Evidence,
    /// How well it fits; comparable within one search.
    pub score: f32,
}

/// A version of a document of a case file.
pub type VersionOf = (CaseId, DocumentId, u32);

/// How evidence and versions stand at one moment.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// Each piece of evidence: whole, or why it can't be shown.
    pub evidence: BTreeMap<(CaseId, EvidenceId), Result<Evidence, EvidenceFault>>,
    /// Versions that count for the principal now.
    pub current: BTreeSet<VersionOf>,
    /// Versions of documents that the principal may still see, though another version counts.
    pub replaced: BTreeSet<VersionOf>,
}

impl Workspace {
    /// How pieces of evidence and versions stand now, all in one state of the store. Of a case file that is hidden
    /// from the principal, nothing can be shown; that is no error here.
    ///
    /// # Errors
    /// The store can't be read, or is damaged.
    pub async fn evidence_standing(
        &self,
        principal: &PrincipalId,
        evidence: &BTreeSet<(CaseId, EvidenceId)>,
        versions: &BTreeSet<VersionOf>,
    ) -> Result<Standing, EngineError> {
        let mut tx = self.repository.read().await?;
        let found = self
            .standing_in(&mut tx, principal, evidence, versions)
            .await;
        tx.close().await?;
        found
    }

    async fn standing_in(
        &self,
        tx: &mut Tx,
        principal: &PrincipalId,
        evidence: &BTreeSet<(CaseId, EvidenceId)>,
        versions: &BTreeSet<VersionOf>,
    ) -> Result<Standing, EngineError> {
        let mut out = Standing::default();
        let mut known: HashMap<(CaseId, DocumentId), Option<PrincipalDocument>> = HashMap::new();
        let mut cases: HashMap<CaseId, Option<Permitted>> = HashMap::new();
        let documents = evidence
            .iter()
            .map(|(case, id)| (case, &id.doc_id))
            .chain(versions.iter().map(|(case, doc_id, _)| (case, doc_id)));
        for (case, doc_id) in documents {
            let key = (case.clone(), doc_id.clone());
            if known.contains_key(&key) {
                continue;
            }
            if !cases.contains_key(case) {
                let found = match permitted(tx, case, principal).await {
                    Ok(found) => Some(found),
                    Err(EngineError::Forbidden { .. } | EngineError::UnknownCase(_)) => None,
                    Err(other) => return Err(other),
                };
                cases.insert(case.clone(), found);
            }
            let found = match &cases[case] {
                Some(of) => {
                    tx.principal_document(
                        of.case.case_no,
                        principal.as_str(),
                        of.access.case,
                        doc_id,
                    )
                    .await?
                }
                None => None,
            };
            known.insert(key, found);
        }
        for key in evidence {
            let (case, id) = key;
            let document = known[&(case.clone(), id.doc_id.clone())].as_ref();
            let found = match &cases[case] {
                // It may have been seen once: hidden, not unknown.
                None => Err(EvidenceFault::Revoked(id.clone())),
                Some(_) => self.cut(tx, document, id).await?,
            };
            out.evidence.insert(key.clone(), found);
        }
        for version in versions {
            let (case, doc_id, number) = version;
            let document = known[&(case.clone(), doc_id.clone())].as_ref();
            match document.filter(|document| document.state.eligible) {
                Some(document) if document.state.version == *number => {
                    out.current.insert(version.clone());
                }
                Some(_) => {
                    out.replaced.insert(version.clone());
                }
                None => {}
            }
        }
        Ok(out)
    }

    /// Evidence cut from the version that counts, or why not.
    async fn cut(
        &self,
        tx: &mut Tx,
        document: Option<&PrincipalDocument>,
        id: &EvidenceId,
    ) -> Result<Result<Evidence, EvidenceFault>, EngineError> {
        let Some(document) = document else {
            return Ok(Err(EvidenceFault::UnknownDocument(id.clone())));
        };
        let state = &document.state;
        let claimed = Evidence::cite(&id.doc_id, id.version, state.text_sha256, id.span, "");
        if let Err(fault) = claimed.check_state(Some(state)) {
            // A version that never was is no old one.
            let never = matches!(&fault, EvidenceFault::OtherVersion { current, .. } if id.version > *current);
            return Ok(Err(if never {
                EvidenceFault::UnknownDocument(id.clone())
            } else {
                fault
            }));
        }
        if id.span.is_empty() {
            return Ok(Err(EvidenceFault::EmptySpan(id.clone())));
        }
        let texts = self
            .texts
            .texts(tx, std::iter::once(state.text_sha256))
            .await?;
        let text = &texts[&state.text_sha256];
        let span = Span::new(id.span.start, id.span.end);
        Ok(match text.index.slice(&text.text, span) {
            Ok(quote) if id.span.len() <= LONGEST => Ok(Evidence::cite(
                &id.doc_id,
                id.version,
                state.text_sha256,
                span,
                quote,
            )),
            Ok(_) => Err(EvidenceFault::UnknownDocument(id.clone())),
            Err(source) => Err(EvidenceFault::OutOfRange {
                id: id.clone(),
                source,
            }),
        })
    }

    /// The passages that hold a piece of evidence, with so many before and after them.
    ///
    /// # Errors
    /// The store can't be read, or is damaged. That the evidence can't be shown is the inner error.
    pub async fn around(
        &self,
        principal: &PrincipalId,
        case: &CaseId,
        id: &EvidenceId,
        more: usize,
    ) -> Result<Result<Vec<Evidence>, EvidenceFault>, EngineError> {
        let mut tx = self.repository.read().await?;
        let found = self.around_in(&mut tx, principal, case, id, more).await;
        tx.close().await?;
        found
    }

    async fn around_in(
        &self,
        tx: &mut Tx,
        principal: &PrincipalId,
        case: &CaseId,
        id: &EvidenceId,
        more: usize,
    ) -> Result<Result<Vec<Evidence>, EvidenceFault>, EngineError> {
        let of = permitted(tx, case, principal).await?;
        let case_no = of.case.case_no;
        let document = tx
            .principal_document(case_no, principal.as_str(), of.access.case, &id.doc_id)
            .await?;
        let one = match self.cut(tx, document.as_ref(), id).await? {
            Ok(one) => one,
            Err(fault) => return Ok(Err(fault)),
        };
        let indexed = tx.passage_spans(case_no, &one.text_sha256).await?;
        let spans = indexed.map(|indexed| indexed.spans).unwrap_or_default();
        let first = spans.partition_point(|span| span.end <= one.start);
        let last = spans.partition_point(|span| span.start < one.end);
        let (first, last) = (first.saturating_sub(more), (last + more).min(spans.len()));
        let texts = self
            .texts
            .texts(tx, std::iter::once(one.text_sha256))
            .await?;
        let text = &texts[&one.text_sha256];
        let mut out = Vec::new();
        for span in spans.get(first..last).unwrap_or_default() {
            if let Ok(quote) = text.index.slice(&text.text, *span) {
                out.push(Evidence::cite(
                    &one.doc_id,
                    one.version,
                    one.text_sha256,
                    *span,
                    quote,
                ));
            }
        }
        if out.is_empty() {
            out.push(one);
        }
        Ok(Ok(out))
    }

    /// Whether the caller may see something of each of these case files.
    ///
    /// # Errors
    /// It may not, or one is unknown.
    pub async fn check_may_see(
        &self,
        principal: &PrincipalId,
        cases: &[CaseId],
    ) -> Result<(), EngineError> {
        let mut tx = self.repository.read().await?;
        let mut outcome = Ok(());
        for case in cases {
            outcome = permitted(&mut tx, case, principal).await.map(|_| ());
            if outcome.is_err() {
                break;
            }
        }
        tx.close().await?;
        outcome
    }

    /// The profile of a case file that the caller may see.
    ///
    /// # Errors
    /// The case file is unknown or hidden, or its profile can't be used.
    pub async fn profile_of(
        &self,
        principal: &PrincipalId,
        case: &CaseId,
    ) -> Result<std::sync::Arc<factum_casefile::Profile>, EngineError> {
        let mut tx = self.repository.read().await?;
        let of = permitted(&mut tx, case, principal).await;
        tx.close().await?;
        self.profile(&of?.case.profile)
    }
}
