//! Checks that the records of a store lead to each other: one that is missing shows by another one that names it. Nothing is read here
//! that a start would have to read.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use aptix_model::batch::Content;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Revision, Uuid, WorkspaceId};
use aptix_model::record::BatchRecord;

use super::committer::Put;
use super::instant::Instant;
use super::keys::{self, Key};
use super::record::{self, Counters, UNNAMED};
use super::session_record;
use super::{sessions, usage, writes};
use crate::store::session::SESSIONS;

impl Instant<'_> {
    fn has(&self, key: &Key) -> bool {
        // One that cannot be read is named as such.
        self.get(key).map_or(true, |record| record.is_some())
    }

    /// What a batch lacks of what leads to it, and of what it names. Where its newest event was removed, so may its plan's name.
    pub(super) fn missing_of(&self, batch: &BatchRecord, trimmed: Revision) -> Vec<String> {
        let mut missing = Vec::new();
        let lists_flights = self.has(&keys::IN_FLIGHT.to_vec());
        for put in writes::put_due(batch).into_iter().chain(sessions::put_flight(None, batch)) {
            let Put::Record(key, _) = put else { continue };
            let is_due = key.starts_with(keys::DUE);
            if (is_due || lists_flights) && !self.has(&key) {
                let list = if is_due { "batches that expire" } else { "batches in flight of its session" };
                missing.push(format!("the list of {list} lacks it"));
            }
        }
        let preparation = batch.preparation();
        if let Some(freed) = preparation.and_then(|preparation| preparation.freed.as_ref())
            && !self.has(&keys::request(&batch.workspace, freed))
        {
            missing.push("the request that let it be applied does not lead to it".to_owned());
        }
        if let Some(hunk) = preparation.and_then(|preparation| preparation.hunk)
            && batch.revision > trimmed
            && !self.has(&keys::hunk(&batch.workspace, hunk))
        {
            missing.push(format!("the name {hunk} of its plan does not lead to it"));
        }
        missing
            .extend(blobs(batch).filter(|digest| !self.has(&keys::blob(&batch.workspace, digest))).map(blob_missing));
        missing
    }

    /// What is missing, or has no place, apart from what single batches lack.
    pub(super) fn missing(&self, workspaces: &BTreeMap<WorkspaceId, Counters>) -> Vec<String> {
        let mut missing = self.batches_without_list();
        missing.extend(self.files_without_key());
        for (workspace, counters) in workspaces {
            let of = |what: String| format!("workspace {workspace}: {what}");
            if counters.lease.epoch > 0 && !self.has(&keys::roots(workspace)) {
                missing.push(of("the names of its roots are missing".to_owned()));
            }
            missing.extend(self.sessions_missing(workspace).map(of));
        }
        missing.extend(self.workspaces_missing(workspaces));
        missing.extend(self.sums_missing());
        missing.extend(self.uploads_missing());
        if !workspaces.is_empty() && !self.has(&keys::HISTORY.to_vec()) {
            missing.push("the name of the store's history is missing".to_owned());
        }
        missing
    }

    fn keys(&self, prefix: &[u8]) -> impl Iterator<Item = Key> {
        self.prefix(prefix).map_while(|entry| Some(entry.key().ok()?.to_vec()))
    }

    /// Batches that no list leads to, and records of states without a batch; those that an event names are missed with the event.
    fn batches_without_list(&self) -> Vec<String> {
        let listed: HashSet<_> = (self.prefix(keys::LISTED))
            .map_while(|entry| entry.value().ok())
            .filter_map(|id| record::decode_id(&id).ok())
            .collect();
        let id = |key: Key| Some(BatchId(Uuid::from_slice(key.get(1..)?).ok()?));
        let batches: HashSet<_> = self.keys(keys::BATCHES).filter_map(id).collect();
        let unlisted =
            batches.iter().filter(|id| !listed.contains(id)).map(|id| format!("no list of batches has batch {id}"));
        let alone = self.keys(keys::STATES).filter_map(id).filter(|id| !batches.contains(id));
        unlisted.chain(alone.map(|id| format!("batch {id} has a state and is missing"))).collect()
    }

    /// Workspaces with batches and without counters that are not being deleted.
    fn workspaces_missing(&self, workspaces: &BTreeMap<WorkspaceId, Counters>) -> Vec<String> {
        let (deleted, mut last, mut missing) = (self.every_deletion(), None, Vec::new());
        for key in self.keys(keys::LISTED) {
            let Some(workspace) = keys::owner_of(&key).filter(|owner| last.as_ref() != Some(owner)) else { continue };
            if !workspaces.contains_key(&workspace) && !deleted.contains(&workspace) {
                missing.push(format!("workspace {workspace}: it has batches, and its counters are missing"));
            }
            last = Some(workspace);
        }
        missing
    }

    /// Cloud files that the list of their key does not have, or whose blob is missing.
    fn files_without_key(&self) -> Vec<String> {
        let (mut missing, lists_paths) = (Vec::new(), self.has_lists_of_paths());
        let deleted = self.every_deletion();
        for entry in self.prefix(keys::FILES) {
            let Ok((key, value)) = entry.into_inner() else { break };
            let Some((workspace, file)) = keys::owner_of(&key).zip(record::decode_file(&value).ok()) else { continue };
            if deleted.contains(&workspace) {
                continue;
            }
            let what = format!("workspace {workspace}: file {}", file.path);
            let list = self.get(&keys::paths(&workspace, &file.doc_path)).ok().flatten();
            // A list that cannot be read is named as such.
            let paths = list.map_or(Some(Vec::new()), |list| record::decode_paths(&list).ok());
            if lists_paths && paths.is_some_and(|paths| !paths.contains(&file.path)) {
                missing.push(format!("{what}: the list of its key {} lacks it", file.doc_path));
            }
            if !self.has(&keys::blob(&workspace, &file.content.sha256)) {
                missing.push(format!("{what}: {}", blob_missing(file.content.sha256)));
            }
        }
        missing
    }

    /// Whether it has the lists of format 2.
    fn has_lists_of_paths(&self) -> bool {
        let history = self.get(&keys::HISTORY.to_vec()).ok().flatten();
        history.and_then(|history| record::decode_history(&history).ok()).is_none_or(|history| history.format > UNNAMED)
    }

    fn sessions_missing(&self, workspace: &WorkspaceId) -> Option<String> {
        let found = self.keys(&keys::sessions(workspace)).count();
        let count = self.get(&keys::session_count(workspace)).ok()?;
        let count = count.map_or(Ok(0), |count| session_record::decode_count(&count)).ok()?;
        // Above the most that there may be, the number counts those that found no room as well.
        let expected = usize::try_from(count).unwrap_or(SESSIONS).min(SESSIONS);
        (found != expected).then(|| format!("{found} sessions are there, and {expected} were counted"))
    }

    /// Sums that are not those of what is there, and tokens that are missing; nothing of a store that has not counted them yet.
    fn sums_missing(&self) -> Vec<String> {
        if !self.has(&keys::USAGE.to_vec()) {
            return Vec::new();
        }
        let used = self.used();
        let kept: BTreeSet<_> = self.keys(keys::USAGE).filter_map(|key| keys::owner_of(&key)).collect();
        let (deleted, mut missing) = (self.every_deletion(), Vec::new());
        let workspaces =
            used.keys().chain(kept.difference(&used.keys().cloned().collect())).cloned().collect::<Vec<_>>();
        for workspace in workspaces.iter().filter(|workspace| !deleted.contains(*workspace)) {
            let found = used.get(workspace).copied().unwrap_or_default();
            let sum = self.get(&keys::usage(workspace)).ok().flatten();
            let Ok(sum) = sum.map_or(Ok(0), |sum| usage::decode(&sum)) else { continue };
            if sum != found {
                missing.push(format!("workspace {workspace}: it stores {found} bytes, and {sum} were counted"));
            }
        }
        let (found, count) = (self.keys(keys::TOKENS).count() as u64, self.get(&keys::TOKEN_COUNT.to_vec()));
        let count = count.ok().map(|count| count.map_or(Ok(0), |count| session_record::decode_count(&count)));
        if let Some(Ok(count)) = count
            && count != found
        {
            missing.push(format!("{found} tokens are there, and {count} were made"));
        }
        missing
    }

    /// Uploads that can be resumed, and of which nothing is there.
    fn uploads_missing(&self) -> Vec<String> {
        let named = self.prefix(keys::UNFINISHED).map_while(|entry| entry.value().ok());
        let uploads = named.filter_map(|marker| record::decode_marker(&marker).ok()).map(|marker| marker.upload);
        let gone = uploads.filter(|upload| !self.has(&keys::upload(*upload)));
        gone.map(|upload| format!("upload {} can be resumed and is missing", upload.0)).collect()
    }
}

fn blobs(batch: &BatchRecord) -> impl Iterator<Item = Sha256Digest> + '_ {
    batch.batch.files.iter().filter_map(|patch| match patch.edit.content()? {
        Content::Blob(blob) => Some(blob.sha256),
        Content::Text(_) => None,
    })
}

fn blob_missing(digest: Sha256Digest) -> String {
    format!("its blob {digest} is missing")
}
