//! What a step writes of cloud files: a record for each path, and for each key the list of its paths. A list is read by its key
//! alone and is written when it changes, so that a file costs the same however often it was edited.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use aptix_model::id::{Revision, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};

use super::committer::{Put, View};
use super::keys::{self, Key};
use super::record;
use super::unnamed::are_there;
use crate::store::{CloudFile, FileUpdate, StoreError, Twins};

/// What takes over files as they are since an event; the bytes of each are there.
pub(super) fn put_files(
    view: &View<'_>,
    workspace: &WorkspaceId,
    files: Vec<FileUpdate>,
    revision: Revision,
) -> Result<Vec<Put>, StoreError> {
    are_there(view, workspace, files.iter().filter_map(|file| Some(file.content?.sha256)))?;
    let mut puts = Vec::new();
    let mut lists = Lists { workspace, lists: BTreeMap::new() };
    for file in &files {
        lists.read(view, &file.doc_path)?;
    }
    for file in files.iter().filter(|file| file.twins == Twins::Gone) {
        let others = std::mem::take(lists.of(&file.doc_path));
        puts.extend(others.iter().map(|path| Put::RemoveRecord(keys::file(workspace, path))));
    }
    for file in files.iter().filter(|file| file.content.is_none()) {
        lists.of(&file.doc_path).remove(&file.path);
        puts.push(Put::RemoveRecord(keys::file(workspace, &file.path)));
    }
    for file in files {
        let Some(content) = file.content else { continue };
        lists.of(&file.doc_path).insert(file.path.clone());
        let file = CloudFile { path: file.path, doc_path: file.doc_path, content, revision };
        puts.push(Put::Record(keys::file(workspace, &file.path), record::encode_file(&file)));
    }
    puts.extend(lists.changed());
    Ok(puts)
}

/// The paths with each key that a step names.
struct Lists<'a> {
    workspace: &'a WorkspaceId,
    lists: BTreeMap<Key, List>,
}

#[derive(Default)]
struct List {
    before: Vec<RootedPath>,
    now: BTreeSet<RootedPath>,
}

impl Lists<'_> {
    fn read(&mut self, view: &View<'_>, doc_path: &DocPath) -> Result<(), StoreError> {
        if let Entry::Vacant(vacant) = self.lists.entry(keys::paths(self.workspace, doc_path)) {
            let before = view.get(vacant.key())?.map(|record| record::decode_paths(&record)).transpose()?;
            let before = before.unwrap_or_default();
            vacant.insert(List { now: before.iter().cloned().collect(), before });
        }
        Ok(())
    }

    fn of(&mut self, doc_path: &DocPath) -> &mut BTreeSet<RootedPath> {
        &mut self.lists.entry(keys::paths(self.workspace, doc_path)).or_default().now
    }

    /// What writes the lists that changed.
    fn changed(self) -> impl Iterator<Item = Put> {
        self.lists.into_iter().filter(|(_, list)| !list.before.iter().eq(&list.now)).map(|(key, list)| {
            if list.now.is_empty() {
                return Put::RemoveRecord(key);
            }
            let paths: Vec<_> = list.now.into_iter().collect();
            Put::Record(key, record::encode_paths(&paths))
        })
    }
}
