//! Documents, their versions, and what of them a principal may see.

use factum_base::{DocumentId, TextDigest};
use factum_casefile::{Slot, SlotState};

use crate::access::CaseAccess;
use crate::error::{StoreError, damaged};
use crate::repository::Tx;
use crate::rows::{Columns, signed};

/// A document as the case file has it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRow {
    /// The row's number.
    pub doc_no: i64,
    /// Its id.
    pub doc_id: DocumentId,
    /// Its place.
    pub slot: Slot,
    /// Not withdrawn.
    pub active: bool,
    /// Latest version.
    pub version: u32,
    /// Digest of that version's text layer.
    pub text_sha256: TextDigest,
    /// Its code points.
    pub chars: u32,
    /// It came from a folder that the case file follows, so it goes with its file.
    pub followed: bool,
}

/// A document as a principal meets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrincipalDocument {
    /// The row's number.
    pub doc_no: i64,
    /// What enters the leaf's key.
    pub state: SlotState,
    /// Code points of the version that counts.
    pub chars: u32,
    /// The principal may see it. Where not, its state is what was last seen, and even its name must
    /// not be shown as anything new.
    pub granted: bool,
}

/// A version to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVersion {
    /// The event that published it.
    pub event: u64,
    /// The version's number.
    pub version: u32,
    /// Digest of its text layer, which is kept as a blob.
    pub text_sha256: TextDigest,
    /// Code points.
    pub chars: u32,
    /// Media type.
    pub media: String,
    /// How the file was read: encoding and warnings, as JSON.
    pub reading: String,
    /// Blob of the layout, where it can't be made from the text layer.
    pub layout: Option<[u8; 32]>,
    /// Blob of the original, where it is not its own text layer.
    pub original: Option<[u8; 32]>,
}

/// A version as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    /// The document's number.
    pub doc_no: i64,
    /// The version.
    pub new: NewVersion,
}

const VERSION_COLUMNS: &str =
    "doc_no, version, event, text_sha256, chars, media, reading, layout, original";

fn read_version<R: Columns>(row: &R) -> Result<VersionRow, StoreError> {
    let blob = |column| -> Result<Option<[u8; 32]>, StoreError> {
        row.optional_blob(column)?
            .map(|bytes| {
                <[u8; 32]>::try_from(bytes).map_err(|_| damaged("a blob digest has a wrong length"))
            })
            .transpose()
    };
    Ok(VersionRow {
        doc_no: row.int(0)?,
        new: NewVersion {
            version: row.small(1)?,
            event: row.unsigned(2)?,
            text_sha256: row.digest(3)?,
            chars: row.small(4)?,
            media: row.text(5)?,
            reading: row.text(6)?,
            layout: blob(7)?,
            original: blob(8)?,
        },
    })
}

fn read_document<R: Columns>(row: &R) -> Result<DocumentRow, StoreError> {
    Ok(DocumentRow {
        doc_no: row.int(0)?,
        doc_id: DocumentId::new(row.text(1)?).map_err(damaged)?,
        slot: row.text(2)?.parse().map_err(damaged)?,
        active: row.flag(3)?,
        version: row.small(4)?,
        text_sha256: row.digest(5)?,
        chars: row.small(6)?,
        followed: row.flag(7)?,
    })
}

// What a principal sees of a document is decided here, in SQL: its own row where it has one, else the
// whole-case right ($3 granted, $4 revision). A revoked document shows what was last seen.
const PRINCIPAL_COLUMNS: &str = "d.doc_no, d.doc_id, d.slot, \
    COALESCE(a.frozen_version, d.version), COALESCE(f.text_sha256, d.text_sha256), \
    COALESCE(f.chars, d.chars), COALESCE(a.frozen_active, d.active), COALESCE(a.granted, $3), \
    COALESCE(a.revision, $4)";
const PRINCIPAL_FROM: &str = "FROM documents d \
    LEFT JOIN doc_access a ON a.doc_no = d.doc_no AND a.principal = $2 \
    LEFT JOIN versions f ON f.doc_no = d.doc_no AND f.version = a.frozen_version";
const PRINCIPAL_WHERE: &str = "WHERE d.case_no = $1 AND (a.granted IS NOT NULL OR $3 = 1)";

fn read_principal_document<R: Columns>(row: &R) -> Result<PrincipalDocument, StoreError> {
    let (active, granted) = (row.flag(6)?, row.flag(7)?);
    Ok(PrincipalDocument {
        doc_no: row.int(0)?,
        state: SlotState {
            doc_id: DocumentId::new(row.text(1)?).map_err(damaged)?,
            slot: row.text(2)?.parse().map_err(damaged)?,
            version: row.small(3)?,
            text_sha256: row.digest(4)?,
            active,
            eligible: active && granted,
            access_revision: row.unsigned(8)?,
        },
        chars: row.small(5)?,
        granted,
    })
}

impl Tx {
    /// All documents of a case file, in slot order.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn documents(&mut self, case_no: i64) -> Result<Vec<DocumentRow>, StoreError> {
        let rows = sqlx::query(
            "SELECT doc_no, doc_id, slot, active, version, text_sha256, chars, followed FROM documents \
             WHERE case_no = $1 ORDER BY slot",
        )
        .bind(case_no)
        .fetch_all(self.connection())
        .await?;
        rows.iter().map(read_document).collect()
    }

    /// One document.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn document(
        &mut self,
        case_no: i64,
        doc_id: &DocumentId,
    ) -> Result<Option<DocumentRow>, StoreError> {
        let row = sqlx::query(
            "SELECT doc_no, doc_id, slot, active, version, text_sha256, chars, followed FROM documents \
             WHERE case_no = $1 AND doc_id = $2",
        )
        .bind(case_no)
        .bind(doc_id.as_str())
        .fetch_optional(self.connection())
        .await?;
        row.as_ref().map(read_document).transpose()
    }

    /// The last slot of a case file.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn last_slot(&mut self, case_no: i64) -> Result<Option<Slot>, StoreError> {
        let row = sqlx::query("SELECT MAX(slot) FROM documents WHERE case_no = $1")
            .bind(case_no)
            .fetch_one(self.connection())
            .await?;
        let slot: Option<String> = sqlx::Row::try_get(&row, 0)?;
        slot.map(|text| text.parse().map_err(damaged)).transpose()
    }

    /// The slot behind another.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn next_slot(
        &mut self,
        case_no: i64,
        slot: &Slot,
    ) -> Result<Option<Slot>, StoreError> {
        let row = sqlx::query("SELECT MIN(slot) FROM documents WHERE case_no = $1 AND slot > $2")
            .bind(case_no)
            .bind(slot.as_str())
            .fetch_one(self.connection())
            .await?;
        let slot: Option<String> = sqlx::Row::try_get(&row, 0)?;
        slot.map(|text| text.parse().map_err(damaged)).transpose()
    }

    /// Everything a principal has a slot for, in slot order.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn principal_documents(
        &mut self,
        case_no: i64,
        principal: &str,
        access: CaseAccess,
    ) -> Result<Vec<PrincipalDocument>, StoreError> {
        let sql = format!(
            "SELECT {PRINCIPAL_COLUMNS} {PRINCIPAL_FROM} {PRINCIPAL_WHERE} ORDER BY d.slot"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(case_no)
            .bind(principal)
            .bind(i64::from(access.granted))
            .bind(signed(access.revision))
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(read_principal_document).collect()
    }

    /// One document as a principal meets it; `None` where it has no slot.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn principal_document(
        &mut self,
        case_no: i64,
        principal: &str,
        access: CaseAccess,
        doc_id: &DocumentId,
    ) -> Result<Option<PrincipalDocument>, StoreError> {
        let sql = format!(
            "SELECT {PRINCIPAL_COLUMNS} {PRINCIPAL_FROM} {PRINCIPAL_WHERE} AND d.doc_id = $5"
        );
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(case_no)
            .bind(principal)
            .bind(i64::from(access.granted))
            .bind(signed(access.revision))
            .bind(doc_id.as_str())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read_principal_document).transpose()
    }

    /// Some documents as a principal meets them; those without a slot are left out.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn principal_documents_of(
        &mut self,
        case_no: i64,
        principal: &str,
        access: CaseAccess,
        doc_ids: &[&DocumentId],
    ) -> Result<Vec<PrincipalDocument>, StoreError> {
        let select = format!("SELECT {PRINCIPAL_COLUMNS} {PRINCIPAL_FROM} {PRINCIPAL_WHERE}");
        let rows = self
            .rows_of(&select, case_no, principal, access, doc_ids)
            .await?;
        rows.iter().map(read_principal_document).collect()
    }

    /// How many of these versions a principal may cite now: the document is active, the principal may see
    /// it, and this version with this text is the one that counts. One number, so that serving need not
    /// fetch rows.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn count_citable(
        &mut self,
        case_no: i64,
        principal: &str,
        access: CaseAccess,
        versions: &[(&DocumentId, u32, TextDigest)],
    ) -> Result<u64, StoreError> {
        let mut count = 0;
        for chunk in versions.chunks(100) {
            let one = |n: usize| {
                let at = 4 + 3 * n;
                format!(
                    "(d.doc_id = ${at} AND d.version = ${} AND d.text_sha256 = ${})",
                    at + 1,
                    at + 2
                )
            };
            let any: Vec<String> = (0..chunk.len()).map(one).collect();
            // The list of ids is what the index is looked up by; the alternatives alone would make the
            // database walk the case file.
            let ids: Vec<String> = (0..chunk.len())
                .map(|n| format!("${}", 4 + 3 * n))
                .collect();
            // A granted document is not frozen, so its row's own version is the one that counts.
            let sql = format!(
                "SELECT COUNT(*) FROM documents d \
                 LEFT JOIN doc_access a ON a.doc_no = d.doc_no AND a.principal = $2 \
                 WHERE d.case_no = $1 AND d.active = 1 AND COALESCE(a.granted, $3) = 1 \
                 AND d.doc_id IN ({}) AND ({})",
                ids.join(","),
                any.join(" OR ")
            );
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(case_no)
                .bind(principal)
                .bind(i64::from(access.granted));
            for (doc_id, version, digest) in chunk {
                query = query
                    .bind(doc_id.as_str())
                    .bind(i64::from(*version))
                    .bind(digest.as_bytes().to_vec());
            }
            count += query.fetch_one(self.connection()).await?.unsigned(0)?;
        }
        Ok(count)
    }

    async fn rows_of(
        &mut self,
        select: &str,
        case_no: i64,
        principal: &str,
        access: CaseAccess,
        doc_ids: &[&DocumentId],
    ) -> Result<Vec<sqlx::any::AnyRow>, StoreError> {
        let mut found = Vec::with_capacity(doc_ids.len());
        for chunk in doc_ids.chunks(100) {
            let holes: Vec<String> = (5..chunk.len() + 5).map(|n| format!("${n}")).collect();
            let sql = format!("{select} AND d.doc_id IN ({})", holes.join(","));
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(case_no)
                .bind(principal)
                .bind(i64::from(access.granted))
                .bind(signed(access.revision));
            for doc_id in chunk {
                query = query.bind(doc_id.as_str());
            }
            found.extend(query.fetch_all(self.connection()).await?);
        }
        Ok(found)
    }

    /// Adds a document with its first version and gives its number.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn insert_document(
        &mut self,
        case_no: i64,
        doc_id: &DocumentId,
        slot: &Slot,
        version: &NewVersion,
    ) -> Result<i64, StoreError> {
        let row = sqlx::query(
            "INSERT INTO documents (case_no, doc_id, slot, active, version, text_sha256, chars, \
             followed) VALUES ($1, $2, $3, 1, $4, $5, $6, 0) RETURNING doc_no",
        )
        .bind(case_no)
        .bind(doc_id.as_str())
        .bind(slot.as_str())
        .bind(i64::from(version.version))
        .bind(&version.text_sha256.as_bytes()[..])
        .bind(i64::from(version.chars))
        .fetch_one(self.connection())
        .await?;
        let doc_no = row.int(0)?;
        self.insert_version(doc_no, version).await?;
        Ok(doc_no)
    }

    /// Adds a later version of a document.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn add_version(
        &mut self,
        doc_no: i64,
        version: &NewVersion,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE documents SET version = $1, text_sha256 = $2, chars = $3 WHERE doc_no = $4",
        )
        .bind(i64::from(version.version))
        .bind(&version.text_sha256.as_bytes()[..])
        .bind(i64::from(version.chars))
        .bind(doc_no)
        .execute(self.connection())
        .await?;
        self.insert_version(doc_no, version).await
    }

    async fn insert_version(
        &mut self,
        doc_no: i64,
        version: &NewVersion,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO versions (doc_no, version, event, text_sha256, chars, media, reading, layout, \
             original) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(doc_no)
        .bind(i64::from(version.version))
        .bind(signed(version.event))
        .bind(&version.text_sha256.as_bytes()[..])
        .bind(i64::from(version.chars))
        .bind(version.media.as_str())
        .bind(version.reading.as_str())
        .bind(version.layout.map(|digest| digest.to_vec()))
        .bind(version.original.map(|digest| digest.to_vec()))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Marks a document as withdrawn or not.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn set_active(&mut self, doc_no: i64, active: bool) -> Result<(), StoreError> {
        sqlx::query("UPDATE documents SET active = $1 WHERE doc_no = $2")
            .bind(i64::from(active))
            .bind(doc_no)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Marks a document as one that goes with its file in a followed folder.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn set_followed(&mut self, doc_no: i64) -> Result<(), StoreError> {
        sqlx::query("UPDATE documents SET followed = 1 WHERE doc_no = $1")
            .bind(doc_no)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Gives a document another place.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn set_slot(&mut self, doc_no: i64, slot: &Slot) -> Result<(), StoreError> {
        sqlx::query("UPDATE documents SET slot = $1 WHERE doc_no = $2")
            .bind(slot.as_str())
            .bind(doc_no)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// All versions of a document, in order.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn versions(&mut self, doc_no: i64) -> Result<Vec<VersionRow>, StoreError> {
        let sql =
            format!("SELECT {VERSION_COLUMNS} FROM versions WHERE doc_no = $1 ORDER BY version");
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(doc_no)
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(read_version).collect()
    }

    /// One version of a document.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn version(
        &mut self,
        doc_no: i64,
        version: u32,
    ) -> Result<Option<VersionRow>, StoreError> {
        let sql =
            format!("SELECT {VERSION_COLUMNS} FROM versions WHERE doc_no = $1 AND version = $2");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(doc_no)
            .bind(i64::from(version))
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read_version).transpose()
    }
}
