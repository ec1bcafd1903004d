//! Conversations in the store: each is its principal's own, and no one else's. What is said in them is not known
//! here.

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use factum_base::{CaseId, PrincipalId};
use factum_store::{ConversationRow, StoredConversation};

use crate::error::EngineError;
use crate::permission::permitted;
use crate::workspace::Workspace;

/// As long as this is there, no other process answers in the conversation. It ends with the process, however that ends.
#[derive(Debug)]
pub struct ConversationHold {
    _file: File,
}

impl Workspace {
    /// Holds a conversation while a question of it is answered.
    ///
    /// # Errors
    /// Another process holds it, or the workspace's folder can't be written.
    pub fn hold_conversation(&self, id: &str) -> Result<ConversationHold, EngineError> {
        let path = self.lock_of(id);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| EngineError::io(folder, error))?;
        }
        let file = File::create(&path).map_err(|error| EngineError::io(&path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(ConversationHold { _file: file }),
            Err(TryLockError::WouldBlock) => Err(EngineError::ConversationBusy(id.to_owned())),
            Err(TryLockError::Error(error)) => Err(EngineError::io(&path, error)),
        }
    }

    fn lock_of(&self, id: &str) -> PathBuf {
        // Ids that are asked for come from outside; those of conversations that there are have no such characters.
        let plain = id
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-');
        let name = format!("{}.lock", plain.collect::<String>());
        self.own_folder().join("locks").join(name)
    }

    /// Begins a conversation over case files.
    ///
    /// # Errors
    /// A case file is unknown or hidden, or the store can't be written.
    pub async fn new_conversation(
        &self,
        principal: &PrincipalId,
        cases: &[CaseId],
        title: &str,
        state: &[u8],
    ) -> Result<ConversationRow, EngineError> {
        let mut tx = self.repository.write().await?;
        let mut numbers = Vec::with_capacity(cases.len());
        for case in cases {
            numbers.push(permitted(&mut tx, case, principal).await?.case.case_no);
        }
        let row = tx
            .insert_conversation(principal.as_str(), title, &numbers, self.now(), state)
            .await?;
        tx.commit().await?;
        Ok(row)
    }

    /// Writes a conversation's state with its messages from place `from` on, together or not at all.
    ///
    /// # Errors
    /// Someone else wrote it since, or the store can't be written.
    pub async fn save_conversation(
        &self,
        row: &mut ConversationRow,
        state: &[u8],
        from: u64,
        messages: &[Vec<u8>],
    ) -> Result<(), EngineError> {
        let mut tx = self.repository.write().await?;
        let mut saved = row.clone();
        tx.save_conversation(&mut saved, state, from, messages, self.now())
            .await?;
        tx.commit().await?;
        *row = saved;
        Ok(())
    }

    /// A principal's own conversation.
    ///
    /// # Errors
    /// It has none of that id, or the record is damaged.
    pub async fn conversation(
        &self,
        principal: &PrincipalId,
        id: &str,
    ) -> Result<StoredConversation, EngineError> {
        let mut tx = self.repository.read().await?;
        let found = tx.conversation(id).await;
        tx.close().await?;
        found?
            .filter(|one| one.row.principal == principal.as_str())
            .ok_or_else(|| EngineError::UnknownConversation(id.to_owned()))
    }

    /// A principal's own conversations, the one written last first.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn conversations(
        &self,
        principal: &PrincipalId,
    ) -> Result<Vec<ConversationRow>, EngineError> {
        let mut tx = self.repository.read().await?;
        let found = tx.conversations(principal.as_str()).await;
        tx.close().await?;
        Ok(found?)
    }

    /// Deletes a principal's own conversation with all that was said in it.
    ///
    /// # Errors
    /// It has none of that id, or the store can't be written.
    pub async fn delete_conversation(
        &self,
        principal: &PrincipalId,
        id: &str,
    ) -> Result<(), EngineError> {
        let own = self.conversation(principal, id).await?.row;
        let held = self.hold_conversation(id)?;
        let mut tx = self.repository.write().await?;
        tx.delete_conversation(own.conversation_no).await?;
        tx.commit().await?;
        drop(held);
        // The file says no more than its name; that it is left behind does no harm.
        let _ = std::fs::remove_file(self.lock_of(id));
        // What was overwritten in the file is still in its log.
        Ok(self.repository.checkpoint().await?)
    }
}
