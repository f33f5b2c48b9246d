//! Numbers as columns have them, and columns as values of the domain.

use aptix_model::digest::Sha256Digest;
use aptix_model::record::UnixMillis;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::fault::Fault;

/// A number in a column. Larger ones than a column holds, which no counter reaches, become the largest.
pub(super) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number that a column has. The largest column is every larger number.
pub(super) const fn number(column: i64) -> u64 {
    match column {
        i64::MAX => u64::MAX,
        column if column < 0 => 0,
        column => column.cast_unsigned(),
    }
}

/// A time in a column.
pub(super) fn time(column: i64) -> UnixMillis {
    UnixMillis(number(column))
}

/// As many rows as a statement may answer.
pub(super) fn limit(limit: usize) -> i64 {
    signed(limit)
}

/// A count in memory as columns have it.
pub(super) fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The value of a column.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Fault> {
    row.try_get(column)
        .map_err(|error| Fault::Failed(format!("column {column} of an answer is not as expected: {error}")))
}

/// The digest in a column.
pub(super) fn digest(row: &Row, column: usize) -> Result<Sha256Digest, Fault> {
    optional_digest(row, column)?.ok_or_else(|| Fault::Failed(format!("column {column} of an answer has no digest")))
}

/// The digest in a column, if there is one.
pub(super) fn optional_digest(row: &Row, column: usize) -> Result<Option<Sha256Digest>, Fault> {
    let Some(bytes) = get::<Option<&[u8]>>(row, column)? else { return Ok(None) };
    let malformed = |_| Fault::Failed(format!("a digest has {} bytes, expected 32", bytes.len()));
    bytes.try_into().map(Sha256Digest::from_bytes).map(Some).map_err(malformed)
}

/// The name in a column.
pub(super) fn name<T: std::str::FromStr>(row: &Row, column: usize) -> Result<T, Fault> {
    let text: &str = get(row, column)?;
    text.parse().map_err(|_| Fault::Failed(format!("column {column} of an answer has a malformed name")))
}
