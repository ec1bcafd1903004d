//! Reading columns of the only three types the tables use.

use factum_base::Digest;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::error::{StoreError, damaged};

/// Column readers whose failures name the column.
pub(crate) trait Columns {
    fn int(&self, column: usize) -> Result<i64, StoreError>;
    fn optional_int(&self, column: usize) -> Result<Option<i64>, StoreError>;
    fn text(&self, column: usize) -> Result<String, StoreError>;
    fn blob(&self, column: usize) -> Result<Vec<u8>, StoreError>;
    fn optional_blob(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError>;

    fn unsigned(&self, column: usize) -> Result<u64, StoreError> {
        u64::try_from(self.int(column)?)
            .map_err(|_| damaged(format!("column {column} is negative")))
    }
    fn small(&self, column: usize) -> Result<u32, StoreError> {
        u32::try_from(self.int(column)?)
            .map_err(|_| damaged(format!("column {column} is out of range")))
    }
    fn flag(&self, column: usize) -> Result<bool, StoreError> {
        Ok(self.int(column)? != 0)
    }
    fn digest<K>(&self, column: usize) -> Result<Digest<K>, StoreError> {
        Digest::from_slice(&self.blob(column)?).map_err(damaged)
    }
    fn optional_digest<K>(&self, column: usize) -> Result<Option<Digest<K>>, StoreError> {
        self.optional_blob(column)?
            .map(|bytes| Digest::from_slice(&bytes).map_err(damaged))
            .transpose()
    }
}

impl Columns for AnyRow {
    fn int(&self, column: usize) -> Result<i64, StoreError> {
        Ok(self.try_get::<i64, _>(column)?)
    }
    fn optional_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        Ok(self.try_get::<Option<i64>, _>(column)?)
    }
    fn text(&self, column: usize) -> Result<String, StoreError> {
        Ok(self.try_get::<String, _>(column)?)
    }
    fn blob(&self, column: usize) -> Result<Vec<u8>, StoreError> {
        Ok(self.try_get::<Vec<u8>, _>(column)?)
    }
    fn optional_blob(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.try_get::<Option<Vec<u8>>, _>(column)?)
    }
}

/// Sequence numbers are far below the limit; a value above it could only come from damage.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
