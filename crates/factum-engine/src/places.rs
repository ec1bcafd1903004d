//! Where evidence stands in its document, in the document's own terms: lines, cells, cues, bytes.

use std::collections::{BTreeMap, HashMap};

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_casefile::{Evidence, EvidenceId};
use factum_ingest::{Layout, Location, Media};

use crate::error::EngineError;
use crate::permission::permitted;
use crate::workspace::Workspace;

impl Workspace {
    /// The places of evidence that was served to the caller. Evidence of documents that the caller may
    /// not see is left out.
    ///
    /// # Errors
    /// The case file is unknown or hidden, or a text or layout is damaged.
    pub async fn places<'e>(
        &self,
        case_id: &CaseId,
        caller: &PrincipalId,
        evidence: impl Iterator<Item = &'e Evidence>,
    ) -> Result<BTreeMap<EvidenceId, Location>, EngineError> {
        let mut tx = self.repository.read().await?;
        let permitted = permitted(&mut tx, case_id, caller).await?;
        let case_no = permitted.case.case_no;
        let mut read: HashMap<(DocumentId, u32), Option<(String, Layout)>> = HashMap::new();
        let mut places = BTreeMap::new();
        for one in evidence {
            let key = (one.doc_id.clone(), one.version);
            if !read.contains_key(&key) {
                let found = tx
                    .principal_document(
                        case_no,
                        caller.as_str(),
                        permitted.access.case,
                        &one.doc_id,
                    )
                    .await?
                    .filter(|document| document.state.eligible);
                let layer = match found {
                    Some(document) => {
                        text_and_layout(&mut tx, document.doc_no, one.version).await?
                    }
                    None => None,
                };
                read.insert(key.clone(), layer);
            }
            if let Some((text, layout)) = &read[&key] {
                let span = factum_base::Span::new(one.start, one.end);
                places.insert(one.evidence_id.clone(), layout.locate(text, span));
            }
        }
        Ok(places)
    }
}

async fn text_and_layout(
    tx: &mut factum_store::Tx,
    doc_no: i64,
    version: u32,
) -> Result<Option<(String, Layout)>, EngineError> {
    let Some(row) = tx.version(doc_no, version).await? else {
        return Ok(None);
    };
    let text = tx.text(&row.new.text_sha256).await?;
    let layout = match row.new.layout {
        Some(digest) => serde_json::from_slice(&tx.blob(&digest).await?).ok(),
        None => row
            .new
            .media
            .parse::<Media>()
            .ok()
            .and_then(|media| Layout::derive(media, &text)),
    };
    Ok(layout.map(|layout| (text, layout)))
}
