//! Holds the items of a backup against each other: what is written is checked before it is written, and what is read before it is
//! used. So a store that has lost a record makes no backup that looks whole.

use std::collections::{HashMap, HashSet};

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Revision, TokenName, WorkspaceId};
use aptix_model::record::BatchRecord;
use sha2::{Digest, Sha256};

use super::item::{Item, WorkspaceFacts};
use crate::store::Event;
use crate::store::backup_summary::Summary;

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Check {
    has_begun: bool,
    tokens: HashSet<TokenName>,
    last_workspace: Option<WorkspaceId>,
    open: Option<Open>,
    /// Counts what was seen.
    pub(super) summary: Summary,
}

/// The workspace whose items follow.
#[derive(Debug)]
struct Open {
    facts: WorkspaceFacts,
    /// The kind of its last item, as a position in their order.
    stage: u8,
    /// Its batches, and the revision of the newest event of each.
    batches: HashMap<BatchId, Revision>,
    /// Batches whose newest event is kept and was not seen yet.
    unseen: usize,
    first_revision: Revision,
    event: Revision,
    digest: Option<Sha256Digest>,
    blob: Option<Blob>,
}

/// The blob whose bytes follow.
#[derive(Debug)]
struct Blob {
    named: BlobRef,
    bytes: u64,
    hasher: Sha256,
}

impl Check {
    /// Takes the next item.
    ///
    /// # Errors
    /// Why it cannot be the next one.
    pub(super) fn item(&mut self, item: &Item) -> Result<(), String> {
        let is_first = matches!(item, Item::Store(_));
        if is_first == std::mem::replace(&mut self.has_begun, true) {
            return Err("the store's own item is not the first one, or is there twice".to_owned());
        }
        let summary = &mut self.summary;
        match item {
            Item::Store(facts) => summary.taken = Some(facts.taken),
            Item::Token(kept) => {
                if self.last_workspace.is_some() || !self.tokens.insert(kept.token.name.clone()) {
                    return Err(format!("token {} is there twice, or behind a workspace", kept.token.name));
                }
                summary.tokens += 1;
            }
            Item::Workspace(facts) => {
                self.close()?;
                if self.last_workspace.as_ref().is_some_and(|last| *last >= facts.id) {
                    return Err(format!("workspace {} is out of order", facts.id));
                }
                self.last_workspace = Some(facts.id.clone());
                self.open = Some(Open::new(facts));
                self.summary.workspaces += 1;
            }
            of_workspace => {
                let Some(open) = &mut self.open else {
                    return Err("it belongs to a workspace, and there is none".to_owned());
                };
                open.item(of_workspace, summary).map_err(|why| format!("workspace {}: {why}", open.facts.id))?;
            }
        }
        Ok(())
    }

    /// Takes the end of all items.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn end(&mut self) -> Result<(), String> {
        if !self.has_begun {
            return Err("the store's own item is missing".to_owned());
        }
        self.close()
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.close().map_err(|why| format!("workspace {}: {why}", open.facts.id))
    }
}

impl Open {
    fn new(facts: &WorkspaceFacts) -> Self {
        Self {
            stage: 0,
            batches: HashMap::new(),
            unseen: 0,
            first_revision: Revision(0),
            event: facts.trim.upto,
            digest: facts.trim.digest,
            blob: None,
            facts: facts.clone(),
        }
    }

    fn item(&mut self, item: &Item, summary: &mut Summary) -> Result<(), String> {
        let stage = match item {
            Item::Store(_) | Item::Token(_) | Item::Workspace(_) | Item::Session(_) => 0,
            Item::Batch(..) => 1,
            Item::Plan(..) => 2,
            Item::Event(..) => 3,
            Item::File(_) => 4,
            Item::Blob(_) | Item::Chunk(_) => 5,
        };
        if stage < self.stage {
            return Err("an item is out of order".to_owned());
        }
        self.stage = stage;
        match item {
            Item::Store(_) | Item::Token(_) | Item::Workspace(_) => {}
            Item::Session(_) => summary.sessions += 1,
            Item::Batch(first, record) => {
                self.batch(*first, record)?;
                summary.batches += 1;
            }
            Item::Plan(hunk, batch) if !self.batches.contains_key(batch) => {
                return Err(format!("plan {hunk} leads to batch {batch}, which is missing"));
            }
            Item::Plan(..) => {}
            Item::Event(event, previous) => {
                self.event(event, *previous)?;
                summary.events += 1;
            }
            Item::File(file) => {
                if file.revision > self.facts.newest {
                    return Err(format!("file {} is of revision {}, which is not there", file.path, file.revision));
                }
                summary.files += 1;
            }
            Item::Blob(named) => {
                self.end_blob()?;
                self.blob = Some(Blob { named: *named, bytes: 0, hasher: Sha256::new() });
                summary.blobs += 1;
            }
            Item::Chunk(bytes) => {
                let Some(blob) = &mut self.blob else { return Err("bytes of no blob".to_owned()) };
                blob.hasher.update(bytes);
                blob.bytes += bytes.len() as u64;
                summary.blob_bytes += bytes.len() as u64;
            }
        }
        Ok(())
    }

    fn batch(&mut self, first: Revision, record: &BatchRecord) -> Result<(), String> {
        let BatchRecord { id, revision, workspace, .. } = record;
        if *workspace != self.facts.id {
            return Err(format!("batch {id} is of workspace {workspace}"));
        }
        if first <= self.first_revision || *revision < first || *revision > self.facts.newest {
            return Err(format!("batch {id} has revisions {first} to {revision}, which is out of order"));
        }
        self.first_revision = first;
        self.unseen += usize::from(*revision > self.facts.trim.upto);
        match self.batches.insert(*id, *revision) {
            Some(_) => Err(format!("batch {id} is there twice")),
            None => Ok(()),
        }
    }

    fn event(&mut self, event: &Event, previous: Option<Revision>) -> Result<(), String> {
        let Event { revision, batch, .. } = event;
        if *revision != self.event.next() {
            return Err(format!("event {revision} follows event {}", self.event));
        }
        let Some(newest) = self.batches.get(batch) else {
            return Err(format!("event {revision} is of batch {batch}, which is missing"));
        };
        if *newest < *revision || previous.is_some_and(|previous| previous >= *revision) {
            return Err(format!("event {revision} is newer than its batch {batch}, or than the event before"));
        }
        self.unseen = self.unseen.saturating_sub(usize::from(newest == revision));
        (self.event, self.digest) = (*revision, event.digest);
        Ok(())
    }

    fn end_blob(&mut self) -> Result<(), String> {
        let Some(Blob { named, bytes, hasher }) = self.blob.take() else { return Ok(()) };
        let digest = Sha256Digest::from_bytes(hasher.finalize().into());
        if (named.sha256, named.size_bytes) == (digest, bytes) {
            return Ok(());
        }
        Err(format!("blob {} of {} bytes has {bytes} bytes with digest {digest}", named.sha256, named.size_bytes))
    }

    fn close(&mut self) -> Result<(), String> {
        self.end_blob()?;
        let WorkspaceFacts { newest, digest, .. } = self.facts;
        if self.event != newest {
            return Err(format!("its events end with {}, and its newest one is {newest}", self.event));
        }
        if self.digest != digest {
            return Err(format!("event {newest} has another digest than the workspace"));
        }
        if self.unseen > 0 {
            return Err(format!("{} batches have another newest event than they name", self.unseen));
        }
        Ok(())
    }
}
