//! Rows that this server committed last, so that the next group decides by them without reading them. They may be out of date: a group
//! compares what it decided by with the database, in its own transaction (`guard.rs`). What writes rely on without reading it, such as that
//! a request is not used yet, is compared there as well.

use std::collections::{BTreeMap, HashMap};

use aptix_model::id::{BatchId, RequestId, SessionId, WorkspaceId};
use tokio::sync::broadcast::error::TryRecvError;

use super::changes::Changes;
use super::guard::Expected;
use super::rows::{Batch, Found, In, Needs, OfSession, Rows, Workspace};
use crate::store::fleet::{Hint, Hints};

/// Bytes that the rows take at most, with what each takes beside its values.
const BYTES: usize = 16 << 20;
const BESIDE: usize = 512;

/// Names a row.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Key {
    Workspace(WorkspaceId),
    Batch(BatchId),
    Session(In<SessionId>),
    Request(In<RequestId>),
}

/// A row.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Row {
    Workspace(Workspace),
    /// A batch that is open, and its workspace.
    Batch(WorkspaceId, Batch),
    /// The record of a session, if there is one.
    Session(Option<Vec<u8>>),
    /// A request that is used. Its batch is read where the request is repeated.
    Request,
}

impl Key {
    /// Bytes of its names.
    fn bytes(&self) -> usize {
        match self {
            Self::Workspace(id) => id.as_str().len(),
            Self::Batch(_) => 0,
            Self::Session((workspace, session)) => workspace.as_str().len() + session.as_str().len(),
            Self::Request((workspace, request)) => workspace.as_str().len() + request.as_str().len(),
        }
    }
}

impl Row {
    fn bytes(&self) -> usize {
        let values = match self {
            Self::Workspace(row) => row.roots.as_ref().map_or(0, Vec::len),
            Self::Batch(_, batch) => batch.content.len() + batch.progress.len(),
            Self::Session(record) => record.as_ref().map_or(0, Vec::len),
            Self::Request => 0,
        };
        values + BESIDE
    }
}

/// What a row takes with its key, which is there twice.
fn size(key: &Key, row: &Row) -> usize {
    row.bytes() + 2 * key.bytes()
}

/// A cache of the rows of the last groups, bounded in bytes: the least recently used row is dropped first.
pub(super) struct Known {
    rows: HashMap<Key, (u64, Row)>,
    /// By when they were used last, counted in uses.
    order: BTreeMap<u64, Key>,
    uses: u64,
    bytes: usize,
    /// What other servers changed.
    hints: Hints,
}

impl Known {
    pub(super) fn new(hints: Hints) -> Self {
        Self { rows: HashMap::new(), order: BTreeMap::new(), uses: 0, bytes: 0, hints }
    }

    /// Adds rows that writes need, with what the database is expected to have; `None` unless all of them are known. What a write of the group
    /// changed meanwhile stays as that write left it. Expected without being known is that a server lives, that no agent of another one
    /// holds the lease of a workspace, and that there is no session that this server has not seen: most are the session of their first batch.
    pub(super) fn expect(&mut self, needs: &Needs, rows: &mut Rows, expected: &mut Expected) -> Option<()> {
        let Needs {
            workspaces,
            batches,
            new_batches,
            chains,
            requests,
            hunks,
            sessions,
            all_sessions,
            blobs,
            holdings,
        } = needs;
        if !(chains.is_empty() && hunks.is_empty() && all_sessions.is_empty()) {
            return None;
        }
        // Before any of them is copied.
        let is_used = requests.iter().any(|key| self.rows.contains_key(&Key::Request(key.clone())));
        if is_used || !batches.iter().all(|id| self.rows.contains_key(&Key::Batch(*id))) {
            return None;
        }
        for id in workspaces.keys() {
            let Row::Workspace(row) = self.used(Key::Workspace(id.clone()))? else { return None };
            expected.workspaces.insert(id.clone(), row.clone());
            rows.workspaces.entry(id.clone()).or_insert_with(|| Some(row.clone()));
        }
        for id in batches {
            let Row::Batch(workspace, batch) = self.used(Key::Batch(*id))? else { return None };
            // Nothing keeps a batch of a workspace whose row is not locked as it is.
            expected.workspaces.get(workspace)?;
            expected.batches.insert(*id, (workspace.clone(), batch.progress.clone()));
            rows.batches.entry(*id).or_insert_with(|| Found::Batch(batch.clone()));
        }
        for id in new_batches {
            rows.batches.entry(*id).or_insert(Found::None);
        }
        for key in sessions {
            let record = match self.used(Key::Session(key.clone())) {
                Some(Row::Session(record)) => record.clone(),
                _ => None,
            };
            expected.sessions.insert(key.clone(), record.clone());
            rows.sessions.entry(key.clone()).or_insert(OfSession { record, in_flight: None });
        }
        for key in requests {
            rows.requests.entry(key.clone()).or_default();
        }
        for key in blobs {
            rows.blobs.entry(key.clone()).or_insert(true);
        }
        for key in holdings {
            rows.holdings.entry(key.clone()).or_insert(true);
            rows.held.entry(key.0.clone()).or_default();
        }
        Some(())
    }

    /// Keeps the rows of a group whose transaction ended, with its changes. Of batches it keeps those that are open.
    pub(super) fn learn(&mut self, rows: Rows, changes: &Changes) {
        let Rows { workspaces, mut batches, sessions, all_sessions, held, .. } = rows;
        changes.changed.keys().for_each(|id| self.forget_row(&Key::Batch(*id)));
        for (workspace, event) in &changes.events {
            let new = changes.new.get(&event.batch).map(|new| &new.columns);
            let columns = new.or_else(|| changes.changed.get(&event.batch).map(|changed| &changed.columns));
            if columns.is_some_and(|columns| columns.is_open)
                && let Some(Found::Batch(batch)) = batches.remove(&event.batch)
            {
                self.keep(Key::Batch(event.batch), Row::Batch(workspace.clone(), batch));
            }
        }
        for key in changes.requests.keys() {
            self.keep(Key::Request(key.clone()), Row::Request);
        }
        for (key, of) in sessions {
            if !all_sessions.contains(&key.0) {
                self.keep(Key::Session(key), Row::Session(of.record));
            }
        }
        for (id, row) in workspaces {
            // One that was created and is not used was removed again.
            let is_there = !changes.created.contains(&id) || changes.workspaces.contains_key(&id);
            // Where another server holds the lease, who asks for it next does not expect that.
            let is_held = held.get(&id).is_some_and(Option::is_some);
            match row.filter(|row| is_there && !is_held && !row.is_deleting) {
                Some(row) => self.keep(Key::Workspace(id), Row::Workspace(Workspace { added_bytes: 0, ..row })),
                None => self.forget_workspace(&id),
            }
        }
    }

    /// Forgets the rows that writes need.
    pub(super) fn forget(&mut self, needs: &Needs) {
        needs.workspaces.keys().for_each(|id| self.forget_workspace(id));
        needs.batches.iter().for_each(|id| self.forget_row(&Key::Batch(*id)));
        needs.sessions.iter().for_each(|key| self.forget_row(&Key::Session(key.clone())));
    }

    /// Forgets the row of a workspace, so that the next group with it reads all that it needs.
    pub(super) fn forget_workspace(&mut self, id: &WorkspaceId) {
        self.forget_row(&Key::Workspace(id.clone()));
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.order.clear();
        self.bytes = 0;
    }

    /// Forgets the rows that hints name, and everything where hints may have been lost while other servers live. A change without a hint
    /// costs a round trip: its group is rolled back, and carried out again.
    pub(super) fn hear(&mut self, has_company: bool) {
        loop {
            match self.hints.try_recv() {
                Ok(Hint::Event(workspace, batch)) => {
                    self.forget_workspace(&workspace);
                    self.forget_row(&Key::Batch(batch));
                }
                Ok(Hint::Workspace(workspace)) => self.forget_workspace(&workspace),
                Ok(Hint::Tokens) => {}
                Ok(Hint::Anything) | Err(TryRecvError::Lagged(_)) => {
                    if has_company {
                        self.clear();
                    }
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// A row, which counts as used now.
    fn used(&mut self, key: Key) -> Option<&Row> {
        let (used, row) = self.rows.get_mut(&key)?;
        self.order.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.order.insert(self.uses, key);
        Some(row)
    }

    fn keep(&mut self, key: Key, row: Row) {
        self.forget_row(&key);
        self.bytes += size(&key, &row);
        self.uses += 1;
        self.order.insert(self.uses, key.clone());
        self.rows.insert(key, (self.uses, row));
        while self.bytes > BYTES
            && let Some((_, key)) = self.order.pop_first()
        {
            self.forget_row(&key);
        }
    }

    fn forget_row(&mut self, key: &Key) {
        if let Some((used, row)) = self.rows.remove(key) {
            self.order.remove(&used);
            self.bytes -= size(key, &row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many rows are kept, and however large, those that are used stay within the bound.
    #[test]
    fn rows_are_bounded_and_those_in_use_stay() {
        let (sender, hints) = tokio::sync::broadcast::channel(1);
        let mut known = Known::new(hints);
        let key = |number: usize| Key::Session((format!("w{number}").parse().unwrap(), "session".parse().unwrap()));
        for bytes in [0, 100_000, BYTES] {
            known.keep(key(0), Row::Session(None));
            for number in 1..20_000_000 / (bytes + BESIDE) + 2 {
                known.keep(key(number), Row::Session(Some(vec![0; bytes])));
                assert!(known.bytes <= BYTES && known.rows.len() == known.order.len());
                assert_eq!(known.used(key(0)).is_some(), bytes < BYTES);
            }
            assert_eq!(known.rows.iter().map(|(key, (_, row))| size(key, row)).sum::<usize>(), known.bytes);
            assert!(known.used(key(1)).is_none(), "{bytes}");
        }
        known.keep(key(0), Row::Session(None));
        drop(sender.send(Hint::Anything));
        known.hear(true);
        assert_eq!((known.rows.len(), known.order.len(), known.bytes), (0, 0, 0));
    }
}
