//! The form of a record: a sealed file of our own, with a line of JSON and the receipt.

use crate::workspace::commit::record::Record;
use crate::workspace::commit::record_bounds;
use crate::workspace::roots::own_file::{self, Damage, Found, Owner, split_line};
use crate::workspace::roots::state::StateDir;

/// The first word of a record of earlier versions, with the version of its form.
const MAGIC: &str = "aptix-journal-6";
/// What the record is called, however far its commit has come.
const RECORD: &str = "record";
/// Why bytes are not a record that may be acted on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// Not a record, or one of another version.
    #[error("it is no record of this version")]
    Version,
    /// Cut short or altered.
    #[error("its checksum does not fit")]
    Checksum,
    /// Made for roots that this journal is not of.
    #[error("it is of other roots than the journal it stands in")]
    Foreign,
    /// Something else where the journal of another root should be named.
    #[error("it does not name the journal of another root")]
    Pointer,
    /// The right checksum over something that no commit leaves.
    #[error("it names what no batch may change: a path out of its root, a protected file or a name that is not ours")]
    Bounds,
    /// The right checksum over something else.
    #[error("it does not have the fields of a record")]
    Fields,
}

/// Whose a record is in a journal.
pub(in crate::workspace) const fn owner(state: &StateDir) -> Owner<'_> {
    Owner { part: "journal", name: RECORD, state }
}

/// Puts a record and its receipt into bytes.
pub(crate) fn encode(state: &StateDir, record: &Record, receipt: &[u8]) -> Vec<u8> {
    // A record is strings and numbers: there is nothing in it that JSON could refuse.
    let mut body = serde_json::to_vec(record).unwrap_or_default();
    body.push(b'\n');
    body.extend_from_slice(receipt);
    own_file::seal(owner(state), &body)
}

/// Reads a record of a journal, and its receipt.
pub(crate) fn decode<'b>(state: &StateDir, bytes: &'b [u8]) -> Result<(Record, &'b [u8]), RecordError> {
    let body = match own_file::unseal(owner(state), bytes) {
        Found::Sealed(body) => body,
        Found::Old(bytes) => unsealed(bytes)?,
        Found::Damaged(Damage::Owner) => return Err(RecordError::Foreign),
        Found::Damaged(Damage::Version) => return Err(RecordError::Version),
        Found::Damaged(Damage::Checksum | Damage::Content) => return Err(RecordError::Checksum),
    };
    let (json, receipt) = split_line(body).ok_or(RecordError::Fields)?;
    let record = serde_json::from_slice(json).map_err(|_| RecordError::Fields)?;
    if !record_bounds::holds(&record) {
        return Err(RecordError::Bounds);
    }
    Ok((record, receipt))
}

/// What a record of an earlier version holds: a line with a checksum is before it.
fn unsealed(bytes: &[u8]) -> Result<&[u8], RecordError> {
    let (head, body) = split_line(bytes).ok_or(RecordError::Version)?;
    let digest =
        std::str::from_utf8(head).ok().and_then(|head| head.strip_prefix(MAGIC)).ok_or(RecordError::Version)?;
    if digest.trim_start().parse() != Ok(aptix_engine::digest::sha256(body)) {
        return Err(RecordError::Checksum);
    }
    Ok(body)
}
