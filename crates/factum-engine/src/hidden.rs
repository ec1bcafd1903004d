//! Whether a build's plan was overtaken: a document that the principal could see then is hidden from it now.
//!
//! Any document will do, wherever it stands in the tree: what a model wrote of it may be in the claims of every
//! node above, and the root that is being built would be stale at its birth.

use std::collections::BTreeSet;

use factum_base::DocumentId;
use factum_casefile::{Event, EventKind};
use factum_store::Tx;

use crate::build::Job;
use crate::error::EngineError;
use crate::permission::permitted;

impl Job<'_> {
    /// Looks at what happened after event `seen`, which becomes the latest. While nothing happens this is one short
    /// question.
    pub(crate) async fn is_overtaken(
        &self,
        tx: &mut Tx,
        seen: &mut u64,
    ) -> Result<bool, EngineError> {
        let planned = &self.permitted.case;
        let Some(now) = tx.case_by_no(planned.case_no).await? else {
            return Ok(true);
        };
        if now.last_event == *seen {
            return Ok(false);
        }
        let events = tx.events_after(planned.case_no, *seen).await?;
        *seen = now.last_event;
        let mut touched: BTreeSet<&DocumentId> = BTreeSet::new();
        for (event, _) in &events {
            match self.hides(event) {
                Hides::Nothing => {}
                Hides::Document(doc_id) => {
                    touched.insert(doc_id);
                }
                Hides::All => return Ok(true),
            }
        }
        if touched.is_empty() {
            return Ok(false);
        }
        let touched: Vec<_> = touched.into_iter().collect();
        let access = permitted(tx, &planned.case_id, self.principal)
            .await?
            .access;
        // A document without a slot was never seen; one that came back meanwhile is not hidden.
        let found = tx
            .principal_documents_of(
                planned.case_no,
                self.principal.as_str(),
                access.case,
                &touched,
            )
            .await?;
        Ok(found.iter().any(|document| !document.state.eligible))
    }

    fn hides<'e>(&self, event: &'e Event) -> Hides<'e> {
        match &event.kind {
            EventKind::Withdrawn { doc_id, .. } => Hides::Document(doc_id),
            EventKind::Revoked { doc_id, from } if from == self.principal => {
                doc_id.as_ref().map_or(Hides::All, Hides::Document)
            }
            _ => Hides::Nothing,
        }
    }
}

/// What an event may hide from the principal.
enum Hides<'e> {
    Nothing,
    Document(&'e DocumentId),
    All,
}
