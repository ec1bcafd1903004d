//! Opening the database, and transactions.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::any::AnyPoolOptions;
use sqlx::{Any, AnyConnection, AnyPool, Connection as _, Transaction};

use crate::error::{StoreError, damaged};
use crate::rows::Columns as _;
use crate::search::{Pending, VisibleCache};

/// The schema this code reads and writes.
pub const SCHEMA_VERSION: i64 = 4;

const DDL: &str = include_str!("../ddl/sqlite.sql");
/// What each later schema adds to the one before it, the second first.
const ADDITIONS: [&str; 3] = [
    include_str!("../ddl/sqlite-2.sql"),
    include_str!("../ddl/sqlite-3.sql"),
    include_str!("../ddl/sqlite-4.sql"),
];
/// The schema that brought the search index.
const WITH_SEARCH: i64 = 3;

/// The database of a workspace.
#[derive(Debug, Clone)]
pub struct Repository {
    pool: AnyPool,
    path: PathBuf,
    visible: Arc<VisibleCache>,
}

/// A transaction: all reads see one state, all writes happen together or not at all. Dropped without
/// [`Tx::commit`], its writes are undone.
pub struct Tx {
    inner: Transaction<'static, Any>,
    pub(crate) writes: bool,
    /// What has to go into the search index before the transaction commits.
    pub(crate) pending: Pending,
    pub(crate) visible: Arc<VisibleCache>,
}

/// What the database takes on disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// All text layers.
    pub text_bytes: u64,
    /// Originals kept since they differ from their text layer.
    pub original_bytes: u64,
    /// The database file with its log.
    pub store_bytes: u64,
}

impl Repository {
    /// Makes a new database file.
    ///
    /// # Errors
    /// There is one already, or it can't be written.
    pub async fn create(path: &Path) -> Result<Self, StoreError> {
        if path.exists() {
            return Err(StoreError::Exists(path.to_owned()));
        }
        // Made beside its place and moved there whole: what failed half way must not look like a
        // database.
        let making = path.with_extension("db.new");
        let remove = || {
            for suffix in ["", "-wal", "-shm", "-journal"] {
                let mut name = making.clone().into_os_string();
                name.push(suffix);
                let _ = std::fs::remove_file(name);
            }
        };
        remove();
        let made = Self::make(&making).await;
        if let Err(error) = made {
            remove();
            return Err(error);
        }
        std::fs::rename(&making, path).map_err(|error| StoreError::CantOpen(error.to_string()))?;
        Self::open(path).await
    }

    async fn make(path: &Path) -> Result<(), StoreError> {
        let repository = Self {
            pool: connect(path, "rwc").await?,
            path: path.to_owned(),
            visible: Arc::default(),
        };
        let mut tx = repository.write().await?;
        sqlx::raw_sql(DDL).execute(tx.connection()).await?;
        sqlx::query("INSERT INTO meta (name, value) VALUES ('schema', '1')")
            .execute(tx.connection())
            .await?;
        tx.bring_up_to_date(1).await?;
        tx.commit().await?;
        repository.close().await;
        Ok(())
    }

    /// Opens an existing database file.
    ///
    /// # Errors
    /// There is none, it can't be opened, is damaged, or was written by a newer Factum.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::NotFound(path.to_owned()));
        }
        let repository = Self {
            pool: connect(path, "rw").await?,
            path: path.to_owned(),
            visible: Arc::default(),
        };
        let mut tx = repository.read().await?;
        let found = tx.schema().await;
        tx.close().await?;
        let found = found?;
        if found > SCHEMA_VERSION {
            return Err(StoreError::NewerSchema {
                found,
                known: SCHEMA_VERSION,
            });
        }
        if found < SCHEMA_VERSION {
            let mut tx = repository.write().await?;
            // Another process may have done it while this one waited.
            let found = tx.schema().await?;
            tx.bring_up_to_date(found).await?;
            tx.commit().await?;
        }
        Ok(repository)
    }

    /// A transaction that reads one state of the database.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn read(&self) -> Result<Tx, StoreError> {
        let inner = self.pool.begin().await?;
        Ok(self.tx(inner, false))
    }

    /// A transaction that may write. It waits for other writers first, so that it never has to give up
    /// half way.
    ///
    /// # Errors
    /// Another process kept the database locked, or it can't be written.
    pub async fn write(&self) -> Result<Tx, StoreError> {
        let inner = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        Ok(self.tx(inner, true))
    }

    fn tx(&self, inner: Transaction<'static, Any>, writes: bool) -> Tx {
        Tx {
            inner,
            writes,
            pending: Pending::default(),
            visible: Arc::clone(&self.visible),
        }
    }

    /// Sizes on disk and of what is kept.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn sizes(&self) -> Result<Sizes, StoreError> {
        let mut tx = self.read().await?;
        let row = sqlx::query(
            "SELECT COALESCE(SUM(CASE WHEN kind = 'text' THEN LENGTH(bytes) ELSE 0 END), 0), \
             COALESCE(SUM(CASE WHEN kind = 'original' THEN LENGTH(bytes) ELSE 0 END), 0) FROM blobs",
        )
        .fetch_one(tx.connection())
        .await?;
        let on_disk = |suffix: &str| {
            let mut path = self.path.clone().into_os_string();
            path.push(suffix);
            std::fs::metadata(path).map_or(0, |meta| meta.len())
        };
        Ok(Sizes {
            text_bytes: row.unsigned(0)?,
            original_bytes: row.unsigned(1)?,
            store_bytes: on_disk("") + on_disk("-wal"),
        })
    }

    /// Moves the log into the database file.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn checkpoint(&self) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// SQLite's own check of the file; what it finds, in its words.
    ///
    /// # Errors
    /// The database can't be read at all.
    pub async fn integrity_findings(&self) -> Result<Vec<String>, StoreError> {
        let mut tx = self.read().await?;
        let rows = sqlx::query("PRAGMA integrity_check(20)")
            .fetch_all(tx.connection())
            .await?;
        let texts: Result<Vec<String>, StoreError> = rows.iter().map(|row| row.text(0)).collect();
        Ok(texts?.into_iter().filter(|text| text != "ok").collect())
    }

    pub(crate) const fn pool(&self) -> &AnyPool {
        &self.pool
    }

    /// Closes all connections; the log is folded into the file.
    pub async fn close(self) {
        self.pool.close().await;
    }
}

impl Tx {
    /// Makes all writes durable.
    ///
    /// # Errors
    /// They could not be; then none of them happened.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        self.flush_index().await?;
        Ok(self.inner.commit().await?)
    }

    /// Ends a transaction that only read. Dropping it ends it too, but later and in another task, so that
    /// the next transaction would have to open a connection of its own.
    ///
    /// # Errors
    /// The database can't be reached.
    pub async fn close(self) -> Result<(), StoreError> {
        Ok(self.inner.rollback().await?)
    }

    pub(crate) fn connection(&mut self) -> &mut AnyConnection {
        &mut self.inner
    }

    async fn schema(&mut self) -> Result<i64, StoreError> {
        let found = self.meta("schema").await.map_err(|error| match error {
            StoreError::Database(_) => damaged("the file has no Factum tables"),
            other => other,
        })?;
        found
            .and_then(|value| value.parse().ok())
            .filter(|found| *found >= 1)
            .ok_or_else(|| damaged("the file does not say which schema it has"))
    }

    async fn bring_up_to_date(&mut self, from: i64) -> Result<(), StoreError> {
        for (addition, to) in ADDITIONS.iter().zip(2..) {
            if to > from {
                sqlx::raw_sql(*addition).execute(self.connection()).await?;
            }
        }
        if from < WITH_SEARCH {
            self.index_all_texts().await?;
        }
        sqlx::query("UPDATE meta SET value = $1 WHERE name = 'schema'")
            .bind(SCHEMA_VERSION.to_string())
            .execute(self.connection())
            .await?;
        Ok(())
    }

    // A database from before the index: its documents become findable with the schema's own transaction.
    async fn index_all_texts(&mut self) -> Result<(), StoreError> {
        let rows = sqlx::query("SELECT case_no, text_sha256 FROM documents ORDER BY doc_no")
            .fetch_all(self.connection())
            .await?;
        for row in &rows {
            let (case_no, digest) = (row.int(0)?, row.digest(1)?);
            let text = self.text(&digest).await?;
            self.index_text(case_no, &digest, &text).await?;
        }
        Ok(())
    }

    async fn meta(&mut self, name: &str) -> Result<Option<String>, StoreError> {
        let row = sqlx::query("SELECT value FROM meta WHERE name = $1")
            .bind(name)
            .fetch_optional(self.connection())
            .await?;
        row.map(|row| row.text(0)).transpose()
    }
}

async fn connect(path: &Path, mode: &str) -> Result<AnyPool, StoreError> {
    sqlx::any::install_default_drivers();
    let url = format!("sqlite://{}?mode={mode}", percent_encoded(path));
    let options = AnyPoolOptions::new()
        .max_connections(4)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(Duration::from_mins(1))
        // A connection that can't be opened should say so at once, not after the waiting time.
        .test_before_acquire(false)
        .after_connect(|connection, _| Box::pin(async move { prepare(connection).await }));
    // One connection is tried by itself first: the pool would retry for a minute.
    let mut probe = AnyConnection::connect(&url).await?;
    prepare(&mut probe).await?;
    probe.close().await?;
    Ok(options.connect(&url).await?)
}

async fn prepare(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    // The busy timeout comes first: switching to WAL may have to wait. Large pages hold several
    // documents each, where small ones would waste a quarter of the file.
    sqlx::raw_sql(
        "PRAGMA busy_timeout = 60000; PRAGMA page_size = 16384; PRAGMA journal_mode = WAL; \
         PRAGMA synchronous = FULL; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY; \
         PRAGMA mmap_size = 1073741824;",
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn percent_encoded(path: &Path) -> String {
    let mut out = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_') {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
