//! What is kept of one workspace, and how it changes.

use std::collections::HashSet;

use aptix_model::batch_event::EventFacts;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, FilePatchId, Revision, SessionId};
use aptix_model::id_block;
use aptix_model::record::BatchRecord;

use super::Workspace;
use crate::store::session::{ModeChange, ModeChanged, SESSIONS};
use crate::store::size::stored_bytes;
use crate::store::{CloudFile, Event, FileUpdate, Transition, Twins, WorkspaceCounts, chain, session};

impl Workspace {
    pub(super) fn newest(&self) -> Revision {
        Revision(self.events.len() as u64)
    }

    fn newest_digest(&self) -> Option<Sha256Digest> {
        self.events.last()?.as_ref().map(|(_, digest, _)| *digest)
    }

    /// Numbers an event.
    pub(super) fn happen(&mut self, batch: BatchId, facts: EventFacts) -> Revision {
        let last = self.newest_digest();
        let digest = chain::next(last, [batch.0.as_bytes().as_slice(), facts.state.word().as_bytes()]);
        self.events.push(Some((batch, digest, facts)));
        self.newest()
    }

    /// The newest batch of a plan that is known by this id.
    pub(super) fn newest_of(&self, hunk: FilePatchId) -> BatchId {
        self.hunks.get(&hunk).copied().unwrap_or_else(|| id_block::batch_id(hunk.0))
    }

    /// Takes a step of a batch, without its files.
    pub(super) fn step(&mut self, step: Transition) -> Option<BatchRecord> {
        let revision = self.happen(step.batch, step.facts());
        let batch = self.batches.get_mut(&step.batch)?;
        step.apply(batch, revision);
        Some(batch.clone())
    }

    /// Takes over files as they are since an event.
    pub(super) fn update(&mut self, files: Vec<FileUpdate>, revision: Revision) {
        for file in files.iter().filter(|file| file.twins == Twins::Gone) {
            self.files.retain(|_, other| other.doc_path != file.doc_path);
        }
        for file in files.iter().filter(|file| file.content.is_none()) {
            self.files.remove(&file.path);
        }
        for file in files {
            let Some(content) = file.content else { continue };
            let file = CloudFile { path: file.path, doc_path: file.doc_path, content, revision };
            self.files.insert(file.path.clone(), file);
        }
    }

    pub(super) fn counts(&self) -> WorkspaceCounts {
        let open_batches = self.batches.values().filter(|batch| batch.state.is_open()).count() as u64;
        let digest = self.newest_digest();
        WorkspaceCounts { newest: self.newest(), digest, open_batches }
    }

    /// Bytes of its batches and blobs.
    pub(super) fn used_bytes(&self) -> u64 {
        let chunks = self.blobs.values().flat_map(|chunks| chunks.iter());
        self.batches.values().map(stored_bytes).sum::<u64>() + chunks.map(|chunk| chunk.len() as u64).sum::<u64>()
    }

    /// The batches in flight that belong to sessions.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = (SessionId, BatchId)> {
        let batches = self.batches.values().filter(|batch| session::is_in_flight(batch.state));
        batches.filter_map(|batch| Some((session::of(&batch.origin)?, batch.id)))
    }

    pub(super) fn in_flight_of(&self, id: &SessionId) -> Vec<BatchId> {
        let mut of_session: Vec<_> = self.in_flight().filter(|(of, _)| of == id).map(|(_, batch)| batch).collect();
        of_session.sort();
        of_session
    }

    /// Whether there is room for another session, once some may have been forgotten.
    pub(super) fn has_room(&mut self) -> bool {
        if self.sessions.len() >= SESSIONS {
            let busy: HashSet<_> = self.in_flight().map(|(id, _)| id).collect();
            let forgotten = session::forgotten(self.sessions.values().cloned(), &busy);
            forgotten.iter().for_each(|id| drop(self.sessions.remove(id)));
        }
        self.sessions.len() < SESSIONS
    }

    /// Why the session of a batch may not write now, if it may not.
    pub(super) fn restricts(&self, batch: &BatchRecord) -> Option<Box<Failure>> {
        self.sessions.get(&session::of(&batch.origin)?)?.may_write().err().map(Box::new)
    }

    pub(super) fn set_mode(&mut self, asked: &ModeChange) -> ModeChanged {
        let former = self.sessions.get(&asked.session).cloned();
        let (is_new, is_idle) = (former.is_none(), self.in_flight_of(&asked.session).is_empty());
        match session::change(former, is_idle, asked) {
            Err(refusal) => ModeChanged::Refused(refusal),
            Ok(_) if is_new && !self.has_room() => ModeChanged::TooMany,
            Ok((progress, session)) => {
                self.sessions.insert(asked.session.clone(), session.clone());
                ModeChanged::Asked(progress, Box::new(session))
            }
        }
    }

    pub(super) fn event(&self, revision: Revision) -> Option<Event> {
        let index = usize::try_from(revision.0.checked_sub(1)?).ok()?;
        let (batch, digest, facts) = self.events.get(index)?.as_ref()?;
        Some(Event { revision, batch: *batch, digest: Some(*digest), facts: Some(facts.clone()) })
    }
}
