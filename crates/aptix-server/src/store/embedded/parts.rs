//! The parts that the database is put together from, looked at before it is opened: where one is missing it is taken for never
//! having been made, and removed with all its records; where one is damaged the process may be aborted.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

/// Its own table of tables, the records, the chunks.
const TABLES: [&str; 3] = ["0", "1", "2"];
/// A number, a checksum of 16 bytes, and its kind.
const CURRENT: usize = 25;

/// What is missing or damaged of a data directory that something was written to.
pub(super) fn damaged(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if !dir.join("version").exists() {
        found.push(format!("{} is missing", dir.join("version").display()));
    }
    for table in TABLES {
        found.extend(check(&dir.join("keyspaces").join(table)).err());
    }
    found
}

/// Holds the description of a table's files against the checksum that its pointer has.
fn check(table: &Path) -> Result<(), String> {
    let path = table.join("current");
    let unreadable = |path: &Path, error: &std::io::Error| format!("{} cannot be read: {error}", path.display());
    let current = std::fs::read(&path).map_err(|error| unreadable(&path, &error))?;
    let damaged = || format!("{} is not what was written", path.display());
    let current: [u8; CURRENT] = current.try_into().map_err(|_| damaged())?;
    let (number, rest) = current.split_first_chunk::<8>().ok_or_else(damaged)?;
    let checksum = rest.first_chunk::<16>().ok_or_else(damaged)?;
    let described = table.join(format!("v{}", u64::from_le_bytes(*number)));
    let bytes = std::fs::read(&described).map_err(|error| unreadable(&described, &error))?;
    if xxh3_128(&bytes) == u128::from_le_bytes(*checksum) {
        return Ok(());
    }
    Err(format!("{} does not match the checksum in {}", described.display(), path.display()))
}
