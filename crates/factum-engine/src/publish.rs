//! Documents in: new documents, new versions, withdrawals and returns, each an event.

use std::path::Path;

use factum_base::{CaseId, DocumentId, PrincipalId, TextDigest};
use factum_casefile::{Event, EventKind, Slot};
use factum_ingest::{Layout, Limits, TextLayer, read_document};
use factum_store::{BlobKind, CaseRow, NewVersion, Tx};
use serde::Serialize;

use crate::error::EngineError;
use crate::permission::owned_case;
use crate::workspace::Workspace;

/// A file read and ready to be published.
#[derive(Debug, Clone)]
pub struct ReadFile {
    /// What it was read as.
    pub layer: TextLayer,
    /// Its bytes, kept where they are not the text layer's.
    pub original: Option<Vec<u8>>,
}

impl ReadFile {
    /// Reads a file's bytes as a document.
    ///
    /// # Errors
    /// The file is refused.
    pub fn read(path: &Path, bytes: Vec<u8>, limits: &Limits) -> Result<Self, EngineError> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let layer =
            read_document(&name, &bytes, limits).map_err(|refusal| EngineError::Refused {
                path: path.to_owned(),
                refusal,
            })?;
        let original = (bytes != layer.text.as_bytes()).then_some(bytes);
        Ok(Self { layer, original })
    }
}

/// Where a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Someone added it by hand.
    Added,
    /// It is in a followed folder.
    Followed,
    /// It is in a followed folder, and its document was withdrawn since it was not.
    CameBack,
}

/// What publishing a file did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Published {
    /// A new document.
    New,
    /// A new version of a known document.
    NewVersion,
    /// The text is that of the current version; no event.
    Unchanged,
}

/// One file's outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The document.
    pub doc_id: DocumentId,
    /// Its version now.
    pub version: u32,
    /// What happened.
    pub what: Published,
    /// It was withdrawn before and counts again.
    pub reinstated: bool,
    /// It is withdrawn and stays so.
    pub withdrawn: bool,
    /// Numbers of the events.
    pub events: Vec<u64>,
    /// What whoever relies on the text should know.
    pub warnings: Vec<String>,
}

impl Workspace {
    /// Publishes files as documents of a case file, all or none. New ones come after the document
    /// `after`, else at the end.
    ///
    /// # Errors
    /// The case file or `after` is unknown, or the caller is not the owner.
    pub async fn add(
        &self,
        caller: &PrincipalId,
        case_id: &CaseId,
        files: &[(DocumentId, ReadFile)],
        after: Option<&DocumentId>,
    ) -> Result<Vec<Outcome>, EngineError> {
        let mut tx = self.repository.write().await?;
        let mut case = owned_case(&mut tx, case_id, caller).await?;
        let (low, high) = match after {
            None => (tx.last_slot(case.case_no).await?, None),
            Some(doc_id) => {
                let document = tx.document(case.case_no, doc_id).await?.ok_or_else(|| {
                    EngineError::UnknownDocument {
                        case: case_id.clone(),
                        doc: doc_id.clone(),
                    }
                })?;
                let next = tx.next_slot(case.case_no, &document.slot).await?;
                (Some(document.slot), next)
            }
        };
        let mut slots = Slot::between(low.as_ref(), high.as_ref(), files.len()).into_iter();
        let mut outcomes = Vec::with_capacity(files.len());
        let mut by = Publisher {
            tx: &mut tx,
            case: &mut case,
            caller,
            now: self.now(),
        };
        for (doc_id, file) in files {
            let Some(slot) = slots.next() else { break };
            outcomes.push(by.publish(doc_id, file, &slot, Source::Added).await?);
        }
        tx.save_case(&case).await?;
        tx.commit().await?;
        Ok(outcomes)
    }

    /// Withdraws a document. The event, or `None` where it is withdrawn already.
    ///
    /// # Errors
    /// The document is unknown, or the caller is not the owner.
    pub async fn withdraw(
        &self,
        caller: &PrincipalId,
        case_id: &CaseId,
        doc_id: &DocumentId,
    ) -> Result<Option<u64>, EngineError> {
        self.set_active(caller, case_id, doc_id, false).await
    }

    /// Reinstates a withdrawn document. The event, or `None` where it is not withdrawn.
    ///
    /// # Errors
    /// The document is unknown, or the caller is not the owner.
    pub async fn reinstate(
        &self,
        caller: &PrincipalId,
        case_id: &CaseId,
        doc_id: &DocumentId,
    ) -> Result<Option<u64>, EngineError> {
        self.set_active(caller, case_id, doc_id, true).await
    }

    async fn set_active(
        &self,
        caller: &PrincipalId,
        case_id: &CaseId,
        doc_id: &DocumentId,
        active: bool,
    ) -> Result<Option<u64>, EngineError> {
        let mut tx = self.repository.write().await?;
        let mut case = owned_case(&mut tx, case_id, caller).await?;
        let document = tx.document(case.case_no, doc_id).await?.ok_or_else(|| {
            EngineError::UnknownDocument {
                case: case_id.clone(),
                doc: doc_id.clone(),
            }
        })?;
        if document.active == active {
            return Ok(None);
        }
        let mut by = Publisher {
            tx: &mut tx,
            case: &mut case,
            caller,
            now: self.now(),
        };
        let event = by
            .set_active(document.doc_no, doc_id, active, false)
            .await?;
        tx.save_case(&case).await?;
        tx.commit().await?;
        Ok(Some(event))
    }
}

/// Appends events with their effects, within one write transaction.
pub(crate) struct Publisher<'a> {
    pub(crate) tx: &'a mut Tx,
    pub(crate) case: &'a mut CaseRow,
    pub(crate) caller: &'a PrincipalId,
    pub(crate) now: i64,
}

impl Publisher<'_> {
    pub(crate) async fn append(&mut self, kind: EventKind) -> Result<u64, EngineError> {
        let number = self.case.last_event + 1;
        let event = Event {
            number,
            at: self.now,
            by: self.caller.clone(),
            kind,
        };
        self.tx.append_event(self.case, &event).await?;
        Ok(number)
    }

    /// Publishes a file. `slot` is used where the document is new.
    pub(crate) async fn publish(
        &mut self,
        doc_id: &DocumentId,
        file: &ReadFile,
        slot: &Slot,
        source: Source,
    ) -> Result<Outcome, EngineError> {
        let text_sha256 = TextDigest::of(file.layer.text.as_bytes());
        let known = self.tx.document(self.case.case_no, doc_id).await?;
        let mut outcome = Outcome {
            doc_id: doc_id.clone(),
            version: known.as_ref().map_or(1, |known| known.version),
            what: Published::Unchanged,
            reinstated: false,
            withdrawn: known.as_ref().is_some_and(|known| !known.active),
            events: Vec::new(),
            warnings: file
                .layer
                .warnings
                .iter()
                .map(ToString::to_string)
                .collect(),
        };
        if known
            .as_ref()
            .is_none_or(|known| known.text_sha256 != text_sha256)
        {
            outcome.version = known.as_ref().map_or(1, |known| known.version + 1);
            let slot = known.as_ref().map_or(slot, |known| &known.slot).clone();
            let event = self
                .append(EventKind::Published {
                    doc_id: doc_id.clone(),
                    version: outcome.version,
                    text_sha256,
                    slot: slot.clone(),
                })
                .await?;
            outcome.events.push(event);
            let version = self.keep(file, event, outcome.version, text_sha256).await?;
            outcome.what = if let Some(known) = &known {
                self.tx.add_version(known.doc_no, &version).await?;
                Published::NewVersion
            } else {
                self.tx
                    .insert_document(self.case.case_no, doc_id, &slot, &version)
                    .await?;
                Published::New
            };
        }
        if let Some(known) = known.as_ref().filter(|known| !known.active)
            && source == Source::CameBack
        {
            let event = self.set_active(known.doc_no, doc_id, true, false).await?;
            outcome.events.push(event);
            (outcome.reinstated, outcome.withdrawn) = (true, false);
        }
        if source != Source::Added
            && !known.is_some_and(|known| known.followed)
            && let Some(now) = self.tx.document(self.case.case_no, doc_id).await?
        {
            self.tx.set_followed(now.doc_no).await?;
        }
        Ok(outcome)
    }

    async fn keep(
        &mut self,
        file: &ReadFile,
        event: u64,
        version: u32,
        text_sha256: TextDigest,
    ) -> Result<NewVersion, EngineError> {
        let layer = &file.layer;
        self.tx
            .put_blob(BlobKind::Text, layer.text.as_bytes())
            .await?;
        self.tx
            .index_text(self.case.case_no, &text_sha256, &layer.text)
            .await?;
        let layout = match Layout::derive(layer.media, &layer.text) {
            Some(derived) if derived == layer.layout => None,
            _ => Some(
                self.tx
                    .put_blob(BlobKind::Layout, &serde_json::to_vec(&layer.layout)?)
                    .await?,
            ),
        };
        let original = match &file.original {
            Some(bytes) => Some(self.tx.put_blob(BlobKind::Original, bytes).await?),
            None => None,
        };
        let reading = serde_json::json!({"encoding": layer.encoding, "warnings": layer.warnings});
        Ok(NewVersion {
            event,
            version,
            text_sha256,
            chars: u32::try_from(layer.text.chars().count()).unwrap_or(u32::MAX),
            media: layer.media.as_str().to_owned(),
            reading: reading.to_string(),
            layout,
            original,
        })
    }

    pub(crate) async fn set_active(
        &mut self,
        doc_no: i64,
        doc_id: &DocumentId,
        active: bool,
        file_gone: bool,
    ) -> Result<u64, EngineError> {
        let doc_id = doc_id.clone();
        let event = self
            .append(if active {
                EventKind::Reinstated { doc_id }
            } else {
                EventKind::Withdrawn { doc_id, file_gone }
            })
            .await?;
        self.tx.set_active(doc_no, active).await?;
        Ok(event)
    }

    pub(crate) async fn move_to(
        &mut self,
        doc_no: i64,
        doc_id: &DocumentId,
        from: &Slot,
        slot: &Slot,
    ) -> Result<u64, EngineError> {
        let event = self
            .append(EventKind::Moved {
                doc_id: doc_id.clone(),
                from: from.clone(),
                slot: slot.clone(),
            })
            .await?;
        self.tx.set_slot(doc_no, slot).await?;
        Ok(event)
    }
}
