//! Conversations: the state of each with its messages, written together or not at all.
//!
//! What a state or a message says is not known here. A revision keeps two writers from overwriting each other.

use factum_base::BodyDigest;

use crate::error::{StoreError, damaged};
use crate::repository::Tx;
use crate::rows::{Columns, signed};

/// A conversation, without its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationRow {
    /// The row's number.
    pub conversation_no: i64,
    /// Its id.
    pub conversation_id: String,
    /// Whose it is.
    pub principal: String,
    /// What it is called: its first question.
    pub title: String,
    /// Moves with each write.
    pub revision: u64,
    /// How many messages it has.
    pub messages: u64,
    /// When it began, in Unix milliseconds.
    pub created_at: i64,
    /// When it was last written.
    pub changed_at: i64,
}

/// A whole conversation as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredConversation {
    /// Who, when, how many.
    pub row: ConversationRow,
    /// Its state.
    pub state: Vec<u8>,
    /// Its messages, in order.
    pub messages: Vec<Vec<u8>>,
}

const COLUMNS: &str = "conversation_no, conversation_id, principal, title, revision, messages, created_at, changed_at";

fn read<R: Columns>(row: &R) -> Result<ConversationRow, StoreError> {
    Ok(ConversationRow {
        conversation_no: row.int(0)?,
        conversation_id: row.text(1)?,
        principal: row.text(2)?,
        title: row.text(3)?,
        revision: row.unsigned(4)?,
        messages: row.unsigned(5)?,
        created_at: row.int(6)?,
        changed_at: row.int(7)?,
    })
}

// The number of messages is in the state's digest, so that a lost last message is noticed.
fn state_digest(state: &[u8], messages: u64) -> BodyDigest {
    BodyDigest::tagged("factum/conversation/1", &[&messages.to_be_bytes(), state])
}

fn message_digest(place: u64, body: &[u8]) -> BodyDigest {
    BodyDigest::tagged(
        "factum/conversation-message/1",
        &[&place.to_be_bytes(), body],
    )
}

impl Tx {
    /// Begins a conversation over case files, with the number it is to have in its id.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn insert_conversation(
        &mut self,
        principal: &str,
        title: &str,
        cases: &[i64],
        at: i64,
        state: &[u8],
    ) -> Result<ConversationRow, StoreError> {
        let conversation_no = self.next_conversation().await?;
        let conversation_id = format!("conversation-{conversation_no:06}");
        sqlx::query(
            "INSERT INTO conversations (conversation_no, conversation_id, principal, title, revision, messages, created_at, \
             changed_at, state, digest) VALUES ($1, $2, $3, $4, 0, 0, $5, $5, $6, $7)",
        )
        .bind(conversation_no)
        .bind(conversation_id.as_str())
        .bind(principal)
        .bind(title)
        .bind(at)
        .bind(state)
        .bind(&state_digest(state, 0).as_bytes()[..])
        .execute(self.connection())
        .await?;
        for case_no in cases {
            sqlx::query(
                "INSERT INTO conversation_cases (conversation_no, case_no) VALUES ($1, $2)",
            )
            .bind(conversation_no)
            .bind(*case_no)
            .execute(self.connection())
            .await?;
        }
        Ok(ConversationRow {
            conversation_no,
            conversation_id,
            principal: principal.to_owned(),
            title: title.to_owned(),
            revision: 0,
            messages: 0,
            created_at: at,
            changed_at: at,
        })
    }

    /// A number that no conversation had: one that was deleted is not to be taken for another.
    async fn next_conversation(&mut self) -> Result<i64, StoreError> {
        let row = sqlx::query(
            "INSERT INTO counters (name, last) \
             VALUES ('conversation', 1 + COALESCE((SELECT MAX(conversation_no) FROM conversations), 0)) \
             ON CONFLICT (name) DO UPDATE SET last = counters.last + 1 RETURNING last",
        )
        .fetch_one(self.connection())
        .await?;
        row.int(0)
    }

    /// Writes a conversation's state and its messages from place `from` on; later ones that were there go.
    ///
    /// # Errors
    /// Someone else wrote it since `row` was read, or the database can't be written.
    pub async fn save_conversation(
        &mut self,
        row: &mut ConversationRow,
        state: &[u8],
        from: u64,
        messages: &[Vec<u8>],
        at: i64,
    ) -> Result<(), StoreError> {
        let count = from + messages.len() as u64;
        self.overwrite_deleted(true).await?;
        let done = sqlx::query(
            "UPDATE conversations SET revision = revision + 1, messages = $1, changed_at = $2, state = $3, \
             digest = $4 WHERE conversation_no = $5 AND revision = $6",
        )
        .bind(signed(count))
        .bind(at)
        .bind(state)
        .bind(&state_digest(state, count).as_bytes()[..])
        .bind(row.conversation_no)
        .bind(signed(row.revision))
        .execute(self.connection())
        .await?;
        if done.rows_affected() != 1 {
            return Err(StoreError::Overtaken(row.conversation_id.clone()));
        }
        sqlx::query("DELETE FROM conversation_messages WHERE conversation_no = $1 AND place >= $2")
            .bind(row.conversation_no)
            .bind(signed(from))
            .execute(self.connection())
            .await?;
        for (place, body) in (from..).zip(messages) {
            sqlx::query(
                "INSERT INTO conversation_messages (conversation_no, place, body, digest) VALUES ($1, $2, $3, $4)",
            )
            .bind(row.conversation_no)
            .bind(signed(place))
            .bind(body.as_slice())
            .bind(&message_digest(place, body).as_bytes()[..])
            .execute(self.connection())
            .await?;
        }
        self.overwrite_deleted(false).await?;
        row.revision += 1;
        row.messages = count;
        row.changed_at = at;
        Ok(())
    }

    /// A conversation, whole and verified.
    ///
    /// # Errors
    /// The database can't be read, or what it holds is damaged.
    pub async fn conversation(
        &mut self,
        conversation_id: &str,
    ) -> Result<Option<StoredConversation>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS}, state, digest FROM conversations WHERE conversation_id = $1"
        );
        let found = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(conversation_id)
            .fetch_optional(self.connection())
            .await?;
        let Some(found) = found else { return Ok(None) };
        let (row, state) = (read(&found)?, found.blob(8)?);
        let rows = sqlx::query(
            "SELECT place, body, digest FROM conversation_messages WHERE conversation_no = $1 ORDER BY place",
        )
        .bind(row.conversation_no)
        .fetch_all(self.connection())
        .await?;
        let mut messages = Vec::with_capacity(rows.len());
        for (place, row) in (0u64..).zip(&rows) {
            let body = row.blob(1)?;
            if row.unsigned(0)? != place || row.digest(2)? != message_digest(place, &body) {
                return Err(damaged(format!(
                    "message {place} of {conversation_id} is not what was written"
                )));
            }
            messages.push(body);
        }
        if found.digest(9)? != state_digest(&state, row.messages)
            || row.messages != messages.len() as u64
        {
            return Err(damaged(format!(
                "the state of {conversation_id} is not what was written"
            )));
        }
        Ok(Some(StoredConversation {
            row,
            state,
            messages,
        }))
    }

    /// A principal's conversations, the one written last first.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn conversations(
        &mut self,
        principal: &str,
    ) -> Result<Vec<ConversationRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM conversations WHERE principal = $1 ORDER BY changed_at DESC, conversation_no DESC"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(principal)
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(read).collect()
    }

    /// Deletes a conversation with all that was said in it.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn delete_conversation(&mut self, conversation_no: i64) -> Result<(), StoreError> {
        self.overwrite_deleted(true).await?;
        for sql in [
            "DELETE FROM conversation_messages WHERE conversation_no = $1",
            "DELETE FROM conversation_cases WHERE conversation_no = $1",
            "DELETE FROM conversations WHERE conversation_no = $1",
        ] {
            sqlx::query(sql)
                .bind(conversation_no)
                .execute(self.connection())
                .await?;
        }
        self.overwrite_deleted(false).await
    }

    /// Whether what statements delete or replace is overwritten in the file too. Not always: merging the search index deletes as
    /// much as it writes. Where a statement fails in between, it stays so for this connection, which only costs time.
    async fn overwrite_deleted(&mut self, on: bool) -> Result<(), StoreError> {
        let sql = if on {
            "PRAGMA secure_delete = ON"
        } else {
            "PRAGMA secure_delete = OFF"
        };
        sqlx::query(sql).execute(self.connection()).await?;
        Ok(())
    }
}
