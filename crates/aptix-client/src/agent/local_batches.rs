//! Reports what was applied and undone on the workstation itself while an agent is connected, and corrects the server's copies
//! of files after a connection was opened.
//!
//! Each entry of the local history becomes a batch of the workstation, in the order of the history: never before the report of
//! a batch of the server that came earlier, which it may take back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use aptix_model::events::event::Event;
use aptix_model::id::BatchId;
use aptix_model::path::DocPath;
use aptix_model::reason::Reason;
use aptix_model::state::BatchState;

use super::cloud_copy::{Pages, Unfinished, compare, is_over, report};
use super::delivery;
use super::error::AgentError;
use super::local_entry::{Next, PastEntry, Reverted, next};
use super::service::{Agent, Service, Session};
use crate::apply::traced::Traced;
use crate::connection::backoff::Backoff;
use crate::connection::cloud::LocalBatch;
use crate::connection::receipt::Receipt;
use crate::live::difference::{Difference, HeldFile, OnDisk};
use crate::live::local_batch::Described;
use crate::workspace::keep::history::entries::HistoryError;
use crate::workspace::keep::history::since::{self, Marks, News};
use crate::workspace::keep::notes;
use crate::workspace::roots::stamp::Stamp;
use crate::workspace::roots::workspace::Workspace;

/// How often the history is looked at.
const LOOK: Duration = Duration::from_secs(2);
/// The waits while the server takes no reports.
const RETRY: Backoff = Backoff::new(LOOK, Duration::from_secs(60));
/// Files that are compared with the disk together.
const FILES: usize = 500;
/// How often files are compared again that batches changed while they were reported.
const ROUNDS: usize = 8;

/// Reports new entries of the history until the connection is dead. Begins with those of the time without a connection, and
/// then compares all files that the server holds with the disk.
pub(super) async fn run(session: &Session) -> Result<(), AgentError> {
    let mut reporter = Reporter::new(session);
    let mut pages = Some(Pages::default());
    let (mut backoff, mut is_logged) = (RETRY, false);
    loop {
        match reporter.look().await {
            Ok(()) => (backoff, is_logged) = (RETRY, false),
            Err(Unfinished::Over) => return Ok(()),
            Err(Unfinished::Agent(error)) => return Err(error),
            Err(Unfinished::Call(error)) if error.reason() == Some(Reason::LeaseLost) => {
                tracing::warn!(%error, "batches of this workstation wait for a new connection");
                session.alive.cancel();
                return Ok(());
            }
            Err(Unfinished::Call(error)) => {
                if !std::mem::replace(&mut is_logged, true) {
                    tracing::warn!(%error, "batches of this workstation wait until the server takes them");
                }
                tokio::time::sleep(backoff.wait_after(&error)).await;
                continue;
            }
        }
        match reporter.compare_page(&mut pages).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(Unfinished::Over) => return Ok(()),
            Err(Unfinished::Agent(error)) => return Err(error),
            Err(Unfinished::Call(error)) => tracing::warn!(%error,
                "what the server holds of files is not compared with the disk before the next connection"),
        }
        pages = None;
        tokio::time::sleep(LOOK).await;
    }
}

/// What was reported over one connection.
struct Reporter<'s> {
    session: &'s Session,
    /// Up to which entries the server has them; `None` until that was read.
    marks: Option<Marks>,
    /// The marks that are noted on disk.
    noted: Option<Marks>,
    /// The histories as they were at the last look.
    seen: Option<Vec<Stamp>>,
    /// Whether to look although the histories have not changed.
    looks_again: bool,
    /// Files of reported batches, to be compared with the disk: an entry may be older than what is there.
    unsettled: BTreeMap<DocPath, HeldFile>,
    /// How many files differed that no batch changed.
    differed: usize,
}

/// What came of a look at the new entries.
struct CaughtUp {
    /// Whether none of them has to wait.
    is_complete: bool,
    /// The files of those that were reported now, and of those that wait.
    changed: BTreeSet<DocPath>,
}

impl<'s> Reporter<'s> {
    const fn new(session: &'s Session) -> Self {
        Self {
            session,
            marks: None,
            noted: None,
            seen: None,
            looks_again: false,
            unsettled: BTreeMap::new(),
            differed: 0,
        }
    }

    /// Reports the new entries, if there are any.
    async fn look(&mut self) -> Result<(), Unfinished> {
        self.unsettle(self.session.take_late());
        let agent = &self.session.agent;
        let now = Some(agent.blocking(|agent| since::stamps(&agent.local)).await?);
        let unapplied = self.session.refusals().unapplied;
        if now == self.seen && !self.looks_again && unapplied.is_empty() {
            return self.settle().await;
        }
        let is_new = now != self.seen;
        let CaughtUp { is_complete, .. } = self.report_new().await?;
        // What came within the same tick of the file system's clock leaves the same stamp.
        (self.seen, self.looks_again) = (now, is_new || !is_complete);
        match is_complete {
            true => self.settle_unapplied(unapplied).await,
            false => self.settle().await,
        }
    }

    /// Ends what the server is owed about batches that it holds as not applied, once their entries are reported: compares their
    /// files with the disk, for those that the history does not have, and then drops their reports.
    async fn settle_unapplied(&mut self, unapplied: BTreeMap<BatchId, Receipt>) -> Result<(), Unfinished> {
        let local = &self.session.agent.local;
        self.unsettle(unapplied.values().flat_map(|receipt| HeldFile::of_report(local, &receipt.report)));
        self.settle().await?;
        for receipt in unapplied.values() {
            delivery::acknowledge(self.session, receipt).await?;
            self.session.remove_unapplied(receipt.batch);
        }
        Ok(())
    }

    /// The name that the server has for a batch which was taken back.
    async fn name_reverted(&self, reverted: Reverted) -> Result<BatchId, Unfinished> {
        match self.session.connection.get(reverted.id).await {
            Ok(record) if delivery::ended_unapplied(record.state) => Ok(reverted.unapplied),
            Err(error) if error.is_passing() => Err(error.into()),
            // The server does not have the batch: there is nothing to link.
            Ok(_) | Err(_) => Ok(reverted.id),
        }
    }

    /// Reports the new entries in their order, up to one that has to wait.
    async fn report_new(&mut self) -> Result<CaughtUp, Unfinished> {
        let mut changed = BTreeSet::new();
        let marks = self.marks.clone();
        let News { entries, mut marks } = match self.session.agent.blocking(move |agent| news(agent, marks)).await? {
            Ok((noted, news)) => {
                self.noted = noted.or(self.noted.take());
                news
            }
            Err(error) => {
                tracing::warn!(%error, "the history cannot be read, batches of this workstation wait");
                return Ok(CaughtUp { is_complete: false, changed });
            }
        };
        let mut entries = VecDeque::from(entries);
        loop {
            let (alive, refusals) = (self.session.alive.clone(), self.session.refusals());
            let step = move |agent: &Agent| {
                let found = next(agent, &mut entries, &mut marks, &refusals, &|| is_over(agent, &alive));
                (found, entries, marks)
            };
            let (found, rest, passed) = self.session.agent.blocking(step).await?;
            (entries, marks) = (rest, passed);
            let is_complete = match found.map_err(|_| Unfinished::Over)? {
                Next::Report(entry, past) => {
                    changed.extend(past.batch.left.iter().map(|left| left.file.doc_path().clone()));
                    self.report(*past).await?;
                    marks.pass(&entry);
                    self.note(&marks).await?;
                    continue;
                }
                Next::Waits(files) => {
                    changed.extend(files);
                    false
                }
                Next::None => true,
            };
            self.note(&marks).await?;
            return Ok(CaughtUp { is_complete, changed });
        }
    }

    /// Uploads what is on disk as an entry left it, and reports its batch. One that the server refuses is left out.
    async fn report(&mut self, past: PastEntry) -> Result<(), Unfinished> {
        let PastEntry { id, reverts, by, batch: past } = past;
        for difference in past.current {
            self.upload(id, difference).await?;
        }
        let reverts = match reverts {
            Some(reverted) => Some(self.name_reverted(reverted).await?),
            None => None,
        };
        let Described { batch, report } = past.described;
        let traced = Traced::begin(self.session.trace(id));
        let session = self.session;
        let (actor, reason) = by.map_or_else(|| (session.agent.actor(), None), |by| (by.actor, by.reason));
        let local = LocalBatch { id, batch: batch.clone(), report, reverts, actor, reason };
        match session.connection.report_local(&session.lease, local).await {
            Ok(()) => {
                if let Some(reverts) = reverts {
                    traced.log(Event::Undone(&batch, &reverts.to_string()));
                }
                traced.log(Event::Reported(BatchState::Applied, None));
            }
            // From an earlier connection, or another agent of this workstation.
            Err(error) if error.reason() == Some(Reason::RequestIdReused) => {
                tracing::debug!(BatchId = %id, "the server has the batch already");
            }
            Err(error) if error.is_passing() => return Err(error.into()),
            Err(error) => tracing::error!(BatchId = %id, %error, "the server refuses a batch of this workstation"),
        }
        self.unsettle(past.left.into_iter().map(|left| left.file));
        Ok(())
    }

    /// Uploads a file, if it still is on disk as its batch left it. Where the content is missing the server keeps its copy.
    async fn upload(&self, batch: BatchId, mut difference: Difference) -> Result<(), Unfinished> {
        let session = self.session;
        let OnDisk::Bytes(written) = difference.now else { return Ok(()) };
        let alive = session.alive.clone();
        let read = session.agent.blocking(move |agent| {
            let policy = agent.service.policy.read(&agent.local).ok()?;
            difference
                .content(&agent.local, &policy, &|| is_over(agent, &alive))
                .ok()
                .map(|bytes| (bytes, difference.now))
        });
        let Some((bytes, OnDisk::Bytes(now))) = read.await? else { return Ok(()) };
        if now != written {
            return Ok(());
        }
        match session.connection.upload(Some(&session.lease), written.sha256, bytes).await {
            Err(error) if !error.is_passing() => {
                tracing::warn!(BatchId = %batch, %error, "the server does not take the content of a file");
                Ok(())
            }
            uploaded => Ok(uploaded.map(drop)?),
        }
    }

    /// Compares the next page of all files that the server holds with the disk; answers whether there may be more.
    async fn compare_page(&mut self, pages: &mut Option<Pages>) -> Result<bool, Unfinished> {
        let Some(all) = pages else { return Ok(false) };
        if let Some(files) = all.next(self.session).await? {
            let again = self.correct(files).await?;
            self.unsettle(again);
            return Ok(true);
        }
        if self.differed > 0 {
            tracing::info!(
                count = self.differed,
                "files that the server holds differed from the disk and were reported"
            );
        }
        Ok(false)
    }

    /// Compares the files of reported batches with the disk: what came later may have been reported earlier.
    async fn settle(&mut self) -> Result<(), Unfinished> {
        let mut all = std::mem::take(&mut self.unsettled).into_values();
        loop {
            let files: Vec<_> = all.by_ref().take(FILES).collect();
            if files.is_empty() {
                return Ok(());
            }
            match self.settle_part(&files).await {
                Ok(again) => self.unsettle(again),
                Err(error) => {
                    self.unsettle(files.into_iter().chain(all));
                    return Err(error);
                }
            }
        }
    }

    async fn settle_part(&mut self, files: &[HeldFile]) -> Result<Vec<HeldFile>, Unfinished> {
        let keys: Vec<_> = files.iter().map(|file| file.doc_path().clone()).collect();
        let held = self.session.connection.held(&keys).await?;
        self.correct(files.iter().cloned().zip(held).map(|(file, held)| file.with_held(held)).collect()).await
    }

    fn unsettle(&mut self, files: impl IntoIterator<Item = HeldFile>) {
        self.unsettled.extend(files.into_iter().map(|file| (file.doc_path().clone(), file)));
    }

    /// Reports what differs of these files as changed outside of a batch; answers those that a batch changed meanwhile, whose
    /// report is under way. What was reported is compared again: the report of a batch may have come before.
    async fn correct(&mut self, mut files: Vec<HeldFile>) -> Result<Vec<HeldFile>, Unfinished> {
        let mut again = Vec::new();
        for round in 0..ROUNDS {
            let found = compare(self.session, files).await?;
            if found.is_empty() {
                break;
            }
            // A batch whose content was seen is in the history once its commit has ended.
            let CaughtUp { changed, .. } = self.report_new().await?;
            let (later, found): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|difference| changed.contains(difference.file.doc_path()));
            again.extend(later.into_iter().map(|difference| difference.file));
            self.differed += if round == 0 { found.len() } else { 0 };
            files = report(self.session, found).await?;
        }
        Ok(again)
    }

    /// Keeps the marks for the next connection and the next start. Where that fails, batches are reported once more, which
    /// does no harm.
    async fn note(&mut self, marks: &Marks) -> Result<(), Unfinished> {
        self.marks = Some(marks.clone());
        if self.noted == self.marks {
            return Ok(());
        }
        let kept = marks.clone();
        let noted = self.session.agent.blocking(move |agent| {
            let service = &agent.service;
            notes::put_reported(&agent.local, &service.server.url.to_string(), &service.workspace, &kept)
        });
        match noted.await? {
            Ok(()) => self.noted.clone_from(&self.marks),
            Err(error) => tracing::warn!(%error, "which batches of this workstation the server has is not kept"),
        }
        Ok(())
    }
}

/// Marks what is in the history when an agent serves a workspace for the first time: only what comes later is reported.
pub(super) fn begin(local: &Workspace, service: &Service) -> Result<(), HistoryError> {
    let (server, workspace) = (service.server.url.to_string(), &service.workspace);
    if notes::reported(local, &server, workspace)?.is_none() {
        let News { marks, .. } = since::since(local, None)?;
        notes::put_reported(local, &server, workspace, &marks)?;
    }
    Ok(())
}

/// The marks that are noted, if these are not known yet, and the entries behind them.
fn news(agent: &Agent, marks: Option<Marks>) -> Result<(Option<Marks>, News), HistoryError> {
    if marks.is_some() {
        return Ok((None, since::since(&agent.local, marks)?));
    }
    let Service { server, workspace, .. } = &agent.service;
    let noted = notes::reported(&agent.local, &server.url.to_string(), workspace)?;
    Ok((noted.clone(), since::since(&agent.local, noted)?))
}
