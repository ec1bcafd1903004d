//! Verification of documents, versions and blobs: the rows that serving reads, against the events and
//! against the bytes themselves.

use std::collections::HashMap;

use factum_base::{DocumentId, TextDigest};
use factum_casefile::profile::Segments;
use factum_casefile::{Event, EventKind};
use factum_graph::cut_segments;
use factum_store::{CaseRow, DocumentRow, Tx, VersionRow};

use crate::error::EngineError;
use crate::planning::segment_rule;
use crate::verify::Verification;

/// Checks all documents of a case file. `rule` is the profile's segmentation, where it can be read.
pub(crate) async fn verify_documents(
    tx: &mut Tx,
    case: &CaseRow,
    events: &[Event],
    rule: Option<&Segments>,
    out: &mut Verification,
) -> Result<(), EngineError> {
    let revision = events
        .iter()
        .rev()
        .find(|event| event.kind.principal().is_some());
    if revision.map_or(0, |event| event.number) != case.access_revision {
        out.add(
            "access",
            "case",
            "the access revision is not that of the latest grant or revocation".to_owned(),
        );
    }
    let mut published: HashMap<(&DocumentId, u32), (u64, TextDigest)> = HashMap::new();
    for event in events {
        if let EventKind::Published {
            doc_id,
            version,
            text_sha256,
            ..
        } = &event.kind
        {
            published.insert((doc_id, *version), (event.number, *text_sha256));
        }
    }
    let documents = match tx.documents(case.case_no).await {
        Ok(documents) => documents,
        Err(error) => {
            out.add("version", "documents", error.to_string());
            return Ok(());
        }
    };
    for document in &documents {
        let versions = match tx.versions(document.doc_no).await {
            Ok(versions) => versions,
            Err(error) => {
                out.add("version", document.doc_id.as_str(), error.to_string());
                continue;
            }
        };
        for version in &versions {
            let place = format!("{}@{}", document.doc_id, version.new.version);
            let said = published.remove(&(&document.doc_id, version.new.version));
            if said != Some((version.new.event, version.new.text_sha256)) {
                out.add(
                    "version",
                    &place,
                    "what is stored is not what its event says".to_owned(),
                );
            }
            verify_version(tx, version, &place, rule, out).await?;
        }
        verify_latest(document, versions.last(), out);
    }
    for message in tx.index_findings(case.case_no).await? {
        out.add("search-index", "case", message);
    }
    for message in tx.vector_findings(case.case_no).await? {
        out.add("passage-vector", "case", message);
    }
    let mut lost: Vec<_> = published.into_keys().collect();
    lost.sort();
    for (doc_id, version) in lost {
        out.add(
            "version",
            &format!("{doc_id}@{version}"),
            "the version is gone".to_owned(),
        );
    }
    Ok(())
}

fn verify_latest(document: &DocumentRow, latest: Option<&VersionRow>, out: &mut Verification) {
    let same = latest.is_some_and(|latest| {
        latest.new.version == document.version
            && latest.new.text_sha256 == document.text_sha256
            && latest.new.chars == document.chars
    });
    if !same {
        let message = "the document's row is not that of its latest version".to_owned();
        out.add("version", document.doc_id.as_str(), message);
    }
}

async fn verify_version(
    tx: &mut Tx,
    version: &VersionRow,
    place: &str,
    rule: Option<&Segments>,
    out: &mut Verification,
) -> Result<(), EngineError> {
    out.texts += 1;
    match tx.text(&version.new.text_sha256).await {
        Ok(text) => {
            if text.chars().count() != version.new.chars as usize {
                out.add(
                    "version",
                    place,
                    "the stored length is not the text's".to_owned(),
                );
            }
            if let Some(rule) =
                rule.filter(|rule| !rule.whole && version.new.chars > rule.max_chars)
            {
                let kept = tx
                    .segments(&version.new.text_sha256, &segment_rule(rule)?)
                    .await;
                if !matches!(kept, Ok(None))
                    && kept.ok().flatten() != Some(cut_segments(&text, rule))
                {
                    out.add(
                        "segments",
                        place,
                        "the stored segments are not those of the text".to_owned(),
                    );
                }
            }
        }
        Err(error) => out.add("damaged-record", place, error.to_string()),
    }
    for (digest, what) in [
        (version.new.original, "original"),
        (version.new.layout, "layout"),
    ] {
        if let Some(digest) = digest
            && let Err(error) = tx.blob(&digest).await
        {
            out.add("damaged-record", place, format!("{what}: {error}"));
        }
    }
    if version.new.media.parse::<factum_ingest::Media>().is_err() {
        out.add(
            "version",
            place,
            format!("there is no media type {:?}", version.new.media),
        );
    }
    if serde_json::from_str::<serde_json::Value>(&version.new.reading).is_err() {
        out.add("version", place, "how it was read can't be read".to_owned());
    }
    Ok(())
}
