//! Makes a case file follow a folder: new and changed files are published, removed ones withdrawn,
//! returning ones reinstated. Documents that someone added by hand, and withdrawals that someone asked
//! for, are left as they are.
//!
//! A document's id is its path in the folder. Documents stand in the order of their names, or as the
//! `documents` list of a `factum.toml` in the folder says. All files are read before anything is
//! written, and all events of a sync are one transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use factum_base::{CaseId, DocumentId, PrincipalId};
use factum_casefile::{EventKind, Slot};
use factum_ingest::Limits;
use factum_store::DocumentRow;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use crate::error::EngineError;
use crate::permission::{owned_case, require_owner};
use crate::publish::{Outcome, Published, Publisher, ReadFile, Source};
use crate::workspace::Workspace;

/// The list file's name.
const LIST: &str = "factum.toml";

/// What a sync did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct SyncReport {
    /// Published or reinstated documents.
    pub published: Vec<Outcome>,
    /// Files whose text is that of the current version.
    pub unchanged: u64,
    /// Documents withdrawn since their file is gone.
    pub withdrawn: Vec<DocumentId>,
    /// Documents in the folder that someone withdrew: they stay withdrawn until someone reinstates them.
    pub still_withdrawn: Vec<DocumentId>,
    /// Documents that got another place.
    pub moved: Vec<DocumentId>,
    /// Files that were not read. A document that had been read before keeps its last version.
    pub refused: Vec<RefusedFile>,
    /// The case file's latest event.
    pub event: u64,
}

/// A file that was not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedFile {
    /// Its path in the folder.
    pub path: String,
    /// The refusal's kind.
    pub kind: String,
    /// Why, in words.
    pub message: String,
    /// What can be done.
    pub hint: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FolderList {
    /// Document ids in the order they should stand in; others follow by name.
    documents: Vec<String>,
}

/// A folder's files in document order, read.
struct Folder {
    order: Vec<DocumentId>,
    files: HashMap<DocumentId, ReadFile>,
    refused: BTreeMap<DocumentId, RefusedFile>,
}

impl Workspace {
    /// Makes a case file follow a folder.
    ///
    /// # Errors
    /// The folder can't be read, a link leads out of it or in a circle, or the caller is not the
    /// owner. Then nothing is changed.
    pub async fn sync(
        &self,
        caller: &PrincipalId,
        case_id: &CaseId,
        folder: &Path,
    ) -> Result<SyncReport, EngineError> {
        require_owner(caller)?;
        let folder = read_folder(folder)?;
        let mut tx = self.repository.write().await?;
        let mut case = owned_case(&mut tx, case_id, caller).await?;
        let known = tx.documents(case.case_no).await?;
        let slots = place(&known, &folder.order);
        let gone = withdrawn_with_their_files(&mut tx, case.case_no, &known).await?;
        let mut report = SyncReport {
            refused: folder.refused.values().cloned().collect(),
            ..SyncReport::default()
        };
        let mut by = Publisher {
            tx: &mut tx,
            case: &mut case,
            caller,
            now: self.now(),
        };
        let by_id: HashMap<&DocumentId, &DocumentRow> =
            known.iter().map(|d| (&d.doc_id, d)).collect();
        let present: BTreeSet<&DocumentId> = folder.order.iter().collect();
        for document in known
            .iter()
            .filter(|d| d.active && d.followed && !present.contains(&d.doc_id))
        {
            by.set_active(document.doc_no, &document.doc_id, false, true)
                .await?;
            report.withdrawn.push(document.doc_id.clone());
        }
        for doc_id in &folder.order {
            let slot = &slots[doc_id];
            if let Some(document) = by_id.get(doc_id).filter(|document| document.slot != *slot) {
                by.move_to(document.doc_no, doc_id, &document.slot, slot)
                    .await?;
                report.moved.push(doc_id.clone());
            }
            let Some(file) = folder.files.get(doc_id) else {
                continue;
            };
            let withdrawn = by_id.get(doc_id).is_some_and(|document| !document.active);
            let source = if withdrawn && gone.contains(doc_id) {
                Source::CameBack
            } else {
                Source::Followed
            };
            let outcome = by.publish(doc_id, file, slot, source).await?;
            if outcome.withdrawn {
                report.still_withdrawn.push(doc_id.clone());
            }
            if outcome.what == Published::Unchanged && !outcome.reinstated {
                report.unchanged += 1;
            } else {
                report.published.push(outcome);
            }
        }
        report.event = case.last_event;
        tx.save_case(&case).await?;
        tx.commit().await?;
        Ok(report)
    }
}

/// Documents whose latest withdrawal was that their file was gone.
async fn withdrawn_with_their_files(
    tx: &mut factum_store::Tx,
    case_no: i64,
    known: &[DocumentRow],
) -> Result<BTreeSet<DocumentId>, EngineError> {
    let mut gone = BTreeSet::new();
    if known.iter().all(|document| document.active) {
        return Ok(gone);
    }
    for (event, _) in tx.events_after(case_no, 0).await? {
        if let EventKind::Withdrawn { doc_id, file_gone } = event.kind {
            if file_gone {
                gone.insert(doc_id);
            } else {
                gone.remove(&doc_id);
            }
        }
    }
    Ok(gone)
}

/// Gives every document of `order` a slot. Known documents keep theirs unless they stand out of order;
/// as few as possible move (all but a longest increasing run).
fn place(known: &[DocumentRow], order: &[DocumentId]) -> HashMap<DocumentId, Slot> {
    let slot_of: HashMap<&DocumentId, &Slot> = known.iter().map(|d| (&d.doc_id, &d.slot)).collect();
    let fixed = longest_increasing(order, &slot_of);
    let mut placed: HashMap<DocumentId, Slot> = HashMap::with_capacity(order.len());
    // Slots of documents that are not in the folder stay taken.
    let present: BTreeSet<&DocumentId> = order.iter().collect();
    let absent: BTreeSet<&Slot> = known
        .iter()
        .filter(|d| !present.contains(&d.doc_id))
        .map(|d| &d.slot)
        .collect();
    let mut low: Option<Slot> = None;
    let mut at = 0;
    while at < order.len() {
        if fixed.contains(&order[at]) {
            let slot = slot_of[&order[at]].clone();
            low = Some(slot.clone());
            placed.insert(order[at].clone(), slot);
            at += 1;
            continue;
        }
        let gap = order[at..]
            .iter()
            .take_while(|id| !fixed.contains(id))
            .count();
        let high = order.get(at + gap).map(|id| slot_of[id].clone());
        let nearest = match (&low, &high) {
            // Behind all: after absent documents too, which may come back.
            (low, None) => absent
                .iter()
                .next_back()
                .map(|s| (*s).clone())
                .max(low.clone()),
            (low, Some(high)) => absent
                .range::<Slot, _>(..high)
                .next_back()
                .map(|s| (*s).clone())
                .max(low.clone()),
        };
        for (doc_id, slot) in
            order[at..]
                .iter()
                .zip(Slot::between(nearest.as_ref(), high.as_ref(), gap))
        {
            placed.insert(doc_id.clone(), slot);
        }
        at += gap;
    }
    placed
}

fn longest_increasing(
    order: &[DocumentId],
    slot_of: &HashMap<&DocumentId, &Slot>,
) -> BTreeSet<DocumentId> {
    let known: Vec<(&DocumentId, &Slot)> = order
        .iter()
        .filter_map(|id| slot_of.get(id).map(|slot| (id, *slot)))
        .collect();
    // Patience sorting: `tails[n]` ends the best run of length n + 1 so far.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; known.len()];
    for (n, (_, slot)) in known.iter().enumerate() {
        let length = tails.partition_point(|&tail| known[tail].1 < *slot);
        before[n] = length.checked_sub(1).map(|shorter| tails[shorter]);
        if length == tails.len() {
            tails.push(n);
        } else {
            tails[length] = n;
        }
    }
    let mut kept = BTreeSet::new();
    let mut next = tails.last().copied();
    while let Some(n) = next {
        kept.insert(known[n].0.clone());
        next = before[n];
    }
    kept
}

fn read_folder(folder: &Path) -> Result<Folder, EngineError> {
    let root = folder
        .canonicalize()
        .map_err(|e| EngineError::io(folder, e))?;
    if !root.is_dir() {
        let source = std::io::Error::from(std::io::ErrorKind::NotADirectory);
        return Err(EngineError::io(folder, source));
    }
    let mut paths: BTreeMap<DocumentId, PathBuf> = BTreeMap::new();
    // Hidden files and folders are left out, as version control and editors keep their own things there.
    let visible = |entry: &walkdir::DirEntry| {
        entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.')
    };
    for entry in WalkDir::new(&root)
        .follow_links(true)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(visible)
    {
        let entry = entry.map_err(|error| walk_error(&root, error))?;
        if entry.path_is_symlink() {
            let target = entry
                .path()
                .canonicalize()
                .map_err(|e| EngineError::io(entry.path(), e))?;
            if !target.starts_with(&root) {
                return Err(EngineError::OutsideFolder {
                    path: entry.path().to_owned(),
                    target,
                });
            }
        }
        let is_list = entry.depth() == 1 && entry.file_name() == LIST;
        if entry.file_type().is_file() && !is_list {
            let inside = entry.path().strip_prefix(&root).unwrap_or(entry.path());
            paths.insert(document_id(inside)?, entry.path().to_owned());
        }
    }
    let order = listed_order(&root.join(LIST), paths.keys().cloned().collect())?;
    let limits = Limits::default();
    let read: Vec<(DocumentId, Result<ReadFile, EngineError>)> = paths
        .par_iter()
        .map(|(id, path)| {
            let read = std::fs::read(path)
                .map_err(|e| EngineError::io(path, e))
                .and_then(|bytes| ReadFile::read(Path::new(id.as_str()), bytes, &limits));
            (id.clone(), read)
        })
        .collect();
    let mut out = Folder {
        order,
        files: HashMap::new(),
        refused: BTreeMap::new(),
    };
    for (id, read) in read {
        match read {
            Ok(file) => {
                out.files.insert(id, file);
            }
            Err(EngineError::Refused { refusal, .. }) => {
                let refused = RefusedFile {
                    path: id.to_string(),
                    kind: refusal.kind().to_owned(),
                    message: refusal.to_string(),
                    hint: refusal.hint().to_owned(),
                };
                out.refused.insert(id, refused);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(out)
}

fn walk_error(root: &Path, error: walkdir::Error) -> EngineError {
    if error.loop_ancestor().is_some() {
        return EngineError::LinkLoop(error.path().unwrap_or(root).to_owned());
    }
    let path = error.path().unwrap_or(root).to_owned();
    // A loop of links that name each other comes as a system error without an ancestor.
    let source = error
        .into_io_error()
        .unwrap_or_else(|| std::io::Error::other("can't be read"));
    if source.raw_os_error() == Some(40) || source.kind() == std::io::ErrorKind::Other {
        return EngineError::LinkLoop(path);
    }
    EngineError::Io { path, source }
}

/// A path inside a folder as a document id.
///
/// # Errors
/// The name is not Unicode, or can't be an id.
pub fn document_id(inside: &Path) -> Result<DocumentId, EngineError> {
    let parts: Option<Vec<&str>> = inside
        .components()
        .map(|part| part.as_os_str().to_str())
        .collect();
    let parts = parts.ok_or_else(|| EngineError::FileName(inside.to_owned()))?;
    Ok(DocumentId::new(parts.join("/"))?)
}

fn listed_order(list: &Path, by_name: Vec<DocumentId>) -> Result<Vec<DocumentId>, EngineError> {
    let wrong = |message: String| EngineError::FolderList {
        path: list.to_owned(),
        message,
    };
    let text = match std::fs::read_to_string(list) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(by_name),
        Err(error) => return Err(EngineError::io(list, error)),
    };
    let listed: FolderList = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let present: BTreeSet<&DocumentId> = by_name.iter().collect();
    let mut order: Vec<DocumentId> = Vec::with_capacity(by_name.len());
    let mut seen = BTreeSet::new();
    for name in listed.documents {
        let id = DocumentId::new(name)?;
        if !seen.insert(id.clone()) {
            return Err(wrong(format!("{id:?} is listed twice")));
        }
        // A listed file that is gone is a withdrawal, not a mistake.
        if present.contains(&id) {
            order.push(id);
        }
    }
    order.extend(by_name.iter().filter(|id| !seen.contains(*id)).cloned());
    Ok(order)
}
