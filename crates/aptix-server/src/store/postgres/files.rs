//! Reads of cloud files.

use aptix_model::id::WorkspaceId;
use aptix_model::path::{DocPath, RootedPath};
use tokio_postgres::Row;

use super::database::Database;
use super::fault::Fault;
use super::numbers::{get, limit};
use super::reads::parsed;
use crate::store::damaged::DamagedFile;
use crate::store::records::record;
use crate::store::{CloudFile, ListedFile, StoreError};

const FILE: &str = "SELECT f.path, f.record FROM files f \
    WHERE f.workspace = $1 AND EXISTS (SELECT FROM workspaces w WHERE w.name = $1 AND NOT w.deleting)";

/// Bytes at the beginning of a path by which an index has it.
const HEAD: usize = 1000;

pub(super) async fn file(
    database: &Database,
    workspace: &WorkspaceId,
    path: &RootedPath,
) -> Result<Option<CloudFile>, StoreError> {
    let sql = format!("{FILE} AND sha256(f.path) = sha256($2) AND f.path <> ''");
    let rows = database.read(&sql, &[&workspace.as_str(), &path.as_str().as_bytes()]).await?;
    rows.first().map(|row| record::decode_file(parsed(|| get(row, 1))?)).transpose()
}

pub(super) async fn files_with_key(
    database: &Database,
    workspace: &WorkspaceId,
    doc_path: &DocPath,
) -> Result<Vec<CloudFile>, StoreError> {
    let sql = format!("{FILE} AND sha256(f.doc_path) = sha256($2) AND f.doc_path <> '' ORDER BY f.path");
    let rows = database.read(&sql, &[&workspace.as_str(), &doc_path.as_str().as_bytes()]).await?;
    rows.iter().map(|row| record::decode_file(parsed(|| get(row, 1))?)).collect()
}

pub(super) async fn files(
    database: &Database,
    workspace: &WorkspaceId,
    after: Option<&RootedPath>,
    most: usize,
) -> Result<Vec<ListedFile>, StoreError> {
    let of_path = format!("substring(f.path FROM 1 FOR {HEAD})");
    let sql = format!(
        "{FILE} AND f.workspace <> '' AND {of_path} >= $2 AND ({of_path}, f.path) > ($2, $3) ORDER BY {of_path}, f.path LIMIT $4"
    );
    // Before every path: none is empty.
    let after = after.map_or("", RootedPath::as_str).as_bytes();
    let head = after.get(..HEAD).unwrap_or(after);
    let rows = database.read(&sql, &[&workspace.as_str(), &head, &after, &limit(most)]).await?;
    rows.iter().filter_map(|row| listed(row).transpose()).collect()
}

/// An entry of the list; `None` where the column of the path has none, which has no place in it.
fn listed(row: &Row) -> Result<Option<ListedFile>, StoreError> {
    let (path, record) = parsed(|| Ok::<(&[u8], &[u8]), Fault>((get(row, 0)?, get(row, 1)?)))?;
    let Some(path) = str::from_utf8(path).ok().and_then(|path| RootedPath::new(path).ok()) else { return Ok(None) };
    Ok(Some(match record::decode_file(record) {
        Ok(file) if file.path == path => Ok(file),
        Ok(_) => Err(DamagedFile { path, why: "it is the record of another file".to_owned() }),
        Err(error) => Err(DamagedFile { path, why: error.to_string() }),
    }))
}
