//! Conversations in the store: each is its principal's own, and no one else's. What is said in them is not known
//! here.

use factum_base::{CaseId, PrincipalId};
use factum_store::{ConversationRow, StoredConversation};

use crate::error::EngineError;
use crate::permission::permitted;
use crate::workspace::Workspace;

impl Workspace {
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
        let mut tx = self.repository.write().await?;
        let found = tx.conversation(id).await?;
        let own = found
            .filter(|one| one.row.principal == principal.as_str())
            .ok_or_else(|| EngineError::UnknownConversation(id.to_owned()))?;
        tx.delete_conversation(own.row.conversation_no).await?;
        Ok(tx.commit().await?)
    }
}
