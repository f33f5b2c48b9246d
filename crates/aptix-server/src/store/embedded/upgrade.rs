//! The upgrade of a data directory of an older format, at a start.
//!
//! First the directory is copied, as it is. Then what the new format has besides is written in bounded steps; one commit makes
//! it the format of the directory, and what only the old format had is removed. An upgrade that was cut off begins anew.

use std::path::{Path, PathBuf};

use aptix_model::id::{HistoryId, WorkspaceId};
use aptix_model::path::RootedPath;
use fjall::{PersistMode, Readable};

use super::format::{self, FORMAT};
use super::keys::{self, Key};
use super::own_files::{self, View};
use super::record::{self, Head, History, UNNAMED};
use super::scan::Journals;
use super::tables::{Tables, failed};
use super::{marks, open_batches, sessions, tokens};
use crate::mint;
use crate::store::{StoreError, disk};

/// How the name of a copy begins.
const COPY: &str = "before-format-";

/// Records that are written in one step.
const STEP: usize = 1000;

/// Bytes that must be free beside those of the copy: for what the upgrade writes itself.
const ROOM: u64 = 64 << 20;

/// What becomes of a directory of an older format before it is upgraded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Copy {
    /// A copy of it is kept.
    Kept,
    /// None is: it is a look-alike itself.
    None,
}

/// A copy of the directory, taken before its database was opened, which goes unless it is kept.
pub(super) struct Copied(View);

/// Copies a data directory of an older format.
///
/// # Errors
/// When there is not enough room, or the system refuses.
pub(super) fn copy(dir: &Path, journals: &Journals) -> Result<Copied, StoreError> {
    let lengths: Vec<_> = journals.files.iter().map(|journal| (journal.path.clone(), journal.end)).collect();
    let refused = |error| own_files::failed("copy the data directory before its upgrade", dir, &error);
    let needed = own_files::copied_bytes(dir, &lengths).map_err(refused)?.saturating_add(ROOM);
    check_room(dir, needed, disk::free_bytes(dir).map_err(refused)?)?;
    let view = View::of(dir, &lengths).map_err(refused)?;
    for name in [marks::FILE, tokens::NEEDED] {
        if dir.join(name).exists() {
            own_files::copy(&dir.join(name), &view.path().join(name), u64::MAX).map_err(refused)?;
        }
    }
    Ok(Copied(view))
}

fn check_room(dir: &Path, needed: u64, free: u64) -> Result<(), StoreError> {
    if free >= needed {
        return Ok(());
    }
    let dir = dir.display().to_string();
    Err(StoreError::NoRoom { dir, needed, free, format: FORMAT })
}

impl Copied {
    /// Keeps the copy under a name that says of which commit it is, unless there is one of it.
    fn keep(self, dir: &Path, head: Head) -> Result<PathBuf, StoreError> {
        let commit = match head.digest {
            Some(digest) => format!("{}-{}", head.number, digest.to_string().chars().take(12).collect::<String>()),
            None => mint::now().0.to_string(),
        };
        let path = dir.join(format!("{COPY}{FORMAT}-{commit}"));
        if !path.exists() {
            let kept = self.0.keep(&path);
            kept.map_err(|error| own_files::failed("keep a copy of the data directory", &path, &error))?;
        }
        Ok(path)
    }
}

/// Brings the records to the format of this server, once a copy is kept; does nothing if they have it.
///
/// # Errors
/// When the format is newer, or the store cannot be read or written.
pub(super) fn run(
    dir: &Path,
    tables: &Tables,
    head: Head,
    (copied, copy): (Option<Copied>, Copy),
) -> Result<(), StoreError> {
    let (named, found) = (format::read(dir)?, tables.history_record()?);
    let has = found.map_or(named.unwrap_or(UNNAMED), |found| found.format);
    format::check(dir, has)?;
    if has < FORMAT {
        if copied.is_none() && copy == Copy::Kept {
            // Files of an older format were put over those of a newer one: at the next start this is an older directory.
            let refused = |error| own_files::failed("remove the format of the data directory", dir, &error);
            format::forget(dir).map_err(refused)?;
            let cause = format!(
                "its file `format` names {FORMAT} and its records have {has}; start again to have a copy of it kept"
            );
            return Err(StoreError::Failed { action: "upgrade the data directory", cause });
        }
        if let Some(copied) = copied {
            let copy = copied.keep(dir, head)?;
            tracing::warn!(from = has, to = FORMAT, copy = %copy.display(), "the data directory is upgraded; remove the copy once all is well");
        }
        migrate(tables, found, &mut || Ok(()))?;
    }
    remove(tables, keys::FORMER_PATHS, &mut || Ok(()))?;
    if named == Some(FORMAT) { Ok(()) } else { format::write(dir) }
}

/// Writes what format 2 has, and names it; `step` is called before each write.
fn migrate(
    tables: &Tables,
    found: Option<History>,
    step: &mut dyn FnMut() -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    step()?;
    open_batches::count_unknown(tables)?;
    step()?;
    sessions::list_in_flight(tables)?;
    // An upgrade that was cut off wrote these, and an older server may have changed files since.
    remove(tables, keys::PATHS, step)?;
    list_paths(tables, step)?;
    step()?;
    let id = found.map_or_else(|| HistoryId(mint::uuid()), |found| found.id);
    let mut batch = tables.db.batch().durability(Some(PersistMode::SyncAll));
    batch.insert(&tables.records, keys::HISTORY, record::encode_history(History { id, format: FORMAT }));
    batch.commit().map_err(failed("name the format of its records"))
}

/// Lists the paths with each key in one record; format 1 has a record for each.
fn list_paths(tables: &Tables, step: &mut dyn FnMut() -> Result<(), StoreError>) -> Result<(), StoreError> {
    let snapshot = tables.db.snapshot();
    let mut batch = tables.db.batch();
    let mut listed: Option<(Key, Vec<RootedPath>)> = None;
    for entry in snapshot.prefix(&tables.records, keys::FORMER_PATHS) {
        let key = entry.key().map_err(failed("list files"))?;
        let Some((list, workspace, path)) = keys::former_path(&key) else { continue };
        // The entry of a file that is not there leads nowhere.
        if !has_file(tables, &workspace, &path)? {
            continue;
        }
        match &mut listed {
            Some((same, paths)) if *same == list => paths.push(path),
            listed => {
                if let Some((list, paths)) = listed.replace((list, vec![path])) {
                    batch.insert(&tables.records, list, record::encode_paths(&paths));
                }
                if batch.len() >= STEP {
                    step()?;
                    let full = std::mem::replace(&mut batch, tables.db.batch());
                    full.commit().map_err(failed("list the paths of files"))?;
                }
            }
        }
    }
    if let Some((list, paths)) = listed {
        batch.insert(&tables.records, list, record::encode_paths(&paths));
    }
    step()?;
    batch.commit().map_err(failed("list the paths of files"))
}

fn has_file(tables: &Tables, workspace: &WorkspaceId, path: &RootedPath) -> Result<bool, StoreError> {
    tables.records.contains_key(keys::file(workspace, path)).map_err(failed("read a record"))
}

/// Removes every record whose key begins like this.
fn remove(tables: &Tables, prefix: &[u8], step: &mut dyn FnMut() -> Result<(), StoreError>) -> Result<(), StoreError> {
    let mut batch = tables.db.batch();
    for entry in tables.records.prefix(prefix) {
        batch.remove(&tables.records, entry.key().map_err(failed("list records"))?);
        if batch.len() >= STEP {
            step()?;
            let full = std::mem::replace(&mut batch, tables.db.batch());
            full.commit().map_err(failed("remove records of a former format"))?;
        }
    }
    if batch.is_empty() {
        return Ok(());
    }
    step()?;
    batch.commit().map_err(failed("remove records of a former format"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use aptix_model::batch::BlobRef;
    use aptix_model::digest::Sha256Digest;
    use aptix_model::id::{Revision, Uuid};
    use aptix_model::path::DocPath;

    use super::*;
    use crate::store::CloudFile;
    use crate::store::records::record::Writer;

    const FILES: u64 = 2500;

    fn file(number: u64) -> CloudFile {
        let content = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: number };
        let (path, key) = (format!("root/{}{}", ["A", "a"][usize::from(number % 2 == 1)], number / 2), number / 2);
        let (path, doc_path) = (RootedPath::new(&path).unwrap(), DocPath::new(&format!("root/a{key}")).unwrap());
        CloudFile { path, doc_path, content, revision: Revision(1) }
    }

    /// A store as format 1 has it: with pairs of files whose paths differ in case.
    fn former(dir: &Path) -> Tables {
        let tables = Tables::open(dir, 64).unwrap();
        let workspace: WorkspaceId = "w".parse().unwrap();
        for file in (0..FILES).map(file) {
            let (path, key) = (file.path.as_str().as_bytes(), file.doc_path.as_str().as_bytes());
            let entry = [keys::FORMER_PATHS, b"w\0", key, b"\0", path].concat();
            tables.records.insert(entry, Writer::with_version(record::VERSION).bytes(path).finish()).unwrap();
            tables.records.insert(keys::file(&workspace, &file.path), record::encode_file(&file)).unwrap();
        }
        tables.records.insert(keys::HISTORY, record::encode_id(Uuid::from_u128(7))).unwrap();
        tables
    }

    #[test]
    fn an_upgrade_that_is_cut_off_at_any_step_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let tables = former(dir.path());
        let workspace: WorkspaceId = "w".parse().unwrap();
        let mut cut_off = 0;
        for steps in 0.. {
            let left = Cell::new(steps);
            let step = &mut || match left.get() {
                0 => Err(StoreError::Closed),
                more => {
                    left.set(more - 1);
                    Ok(())
                }
            };
            let found = tables.history_record().unwrap();
            assert_eq!(found.map(|found| found.format), Some(UNNAMED), "it has its format until the end");
            // What an older server does meanwhile counts.
            tables.records.insert(keys::paths(&workspace, &DocPath::new("root/gone").unwrap()), b"stale").unwrap();
            if migrate(&tables, found, step).is_ok() {
                break;
            }
            cut_off += 1;
        }
        assert!(cut_off > 6, "cut off at {cut_off} steps");
        let named = tables.history_record().unwrap();
        assert_eq!(named, Some(History { id: HistoryId(Uuid::from_u128(7)), format: FORMAT }));
        remove(&tables, keys::FORMER_PATHS, &mut || Ok(())).unwrap();
        assert_eq!(tables.records.prefix(keys::FORMER_PATHS).count(), 0);
        assert_eq!(tables.records.prefix(keys::PATHS).count() as u64, FILES / 2);
        for number in 0..FILES {
            let (one, other) = (file(number & !1), file(number | 1));
            let found = tables.now().files_with_key(&workspace, &one.doc_path).unwrap();
            assert_eq!(found, [one, other]);
        }
    }

    #[test]
    fn a_copy_without_room_is_refused_by_name() {
        assert_eq!(check_room(Path::new("data"), 10, 10), Ok(()));
        let refused = check_room(Path::new("data"), 10, 7).unwrap_err().to_string();
        assert!(refused.contains("takes 10 bytes, and 7 are free") && refused.contains("Free 3 more"), "{refused}");
    }
}
