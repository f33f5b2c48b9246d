//! One group of writes: one transaction, in which they decide one after the other, and what they change is written.
//!
//! Where this server knows all rows that they need from its own last groups, they decide first, and PostgreSQL is waited for once: the
//! transaction compares these rows with its own, writes, and commits. Otherwise it reads the rows, and PostgreSQL is waited for twice where
//! nothing needs a further look.

use std::sync::atomic::Ordering;

use super::changes::Changes;
use super::database::Database;
use super::fault::Fault;
use super::flush::{self, Plan};
use super::guard::{self, Expected};
use super::job::Job;
use super::known::Known;
use super::load;
use super::rows::{Needs, Rows, Stop};
use crate::store::fleet::Hint;

/// Bytes that one group writes at most, beside its first write.
pub(super) const WRITTEN_BYTES: usize = 32 << 20;

/// How often the writes of a group may ask for more rows: an early version's sessions and chains of reverts take a few.
const ROUNDS: usize = 8;

/// What came of a group.
pub(super) struct Ended {
    /// Writes that decided, and whether their transaction was committed.
    pub(super) decided: Vec<Job>,
    /// Writes for which this group had no more memory.
    pub(super) later: Vec<Job>,
}

impl Ended {
    fn of(jobs: &mut Vec<Job>, later: &[bool]) -> Self {
        let mut ended = Self { decided: Vec::new(), later: Vec::new() };
        for (job, is_later) in std::mem::take(jobs).into_iter().zip(later) {
            if *is_later { ended.later.push(job) } else { ended.decided.push(job) }
        }
        ended
    }
}

/// Carries out a group in a bounded time; the jobs stay with the caller if that fails.
///
/// # Errors
/// Why nothing was written, or why that is not certain.
pub(super) async fn carry_out(
    database: &Database,
    begin: &str,
    jobs: &mut Vec<Job>,
    mut known: Option<&mut Known>,
) -> Result<Ended, Fault> {
    let mut needs = Needs::default();
    jobs.iter().for_each(|job| job.work.needs(&mut needs));
    let ended = database.in_time(carry_out_at_leisure(database, begin, jobs, &mut needs, known.as_deref_mut())).await;
    match (&ended, known) {
        (Ok(_), _) | (_, None) => {}
        // What PostgreSQL refused it rolled back.
        (Err(Fault::Locked | Fault::Conflict(_) | Fault::Failed(_) | Fault::Refused(_)), Some(known)) => {
            known.forget(&needs);
        }
        // It may have been committed.
        (Err(Fault::Unavailable(_) | Fault::Busy(_) | Fault::Changed), Some(known)) => known.clear(),
    }
    ended
}

async fn carry_out_at_leisure(
    database: &Database,
    begin: &str,
    jobs: &mut Vec<Job>,
    needs: &mut Needs,
    mut known: Option<&mut Known>,
) -> Result<Ended, Fault> {
    if let Some(known) = known.as_deref_mut() {
        known.hear(database.has_company.load(Ordering::Relaxed));
        match write_unread(database, begin, jobs, needs, known).await {
            Ok(Some(ended)) => return Ok(ended),
            Ok(None) => {}
            Err(Fault::Changed) => {
                tracing::debug!("rows that a group decided by were changed by another writer; it reads them");
                known.forget(needs);
            }
            Err(fault) => return Err(fault),
        }
    }
    read_and_write(database, begin, jobs, needs, known).await
}

/// Carries out a group by the rows that are known, if its writes need no others. What they turn out to need is added to `needs`.
async fn write_unread(
    database: &Database,
    begin: &str,
    jobs: &mut Vec<Job>,
    needs: &mut Needs,
    known: &mut Known,
) -> Result<Option<Ended>, Fault> {
    let (mut rows, mut expected) = (Rows::default(), Expected::default());
    let (mut changes, mut later) = (Changes::default(), vec![false; jobs.len()]);
    let mut are_known = known.expect(needs, &mut rows, &mut expected).is_some();
    let mut undecided: Vec<usize> = (0..jobs.len()).collect();
    while are_known && !undecided.is_empty() {
        let missing;
        (missing, undecided) = decide(jobs, undecided, &mut rows, &mut changes, &mut later);
        // What is asked for again is not kept with its row: how many batches of a session are in flight.
        are_known =
            undecided.is_empty() || needs.grow(&missing) && known.expect(&missing, &mut rows, &mut expected).is_some();
    }
    if !are_known {
        return Ok(None);
    }
    let mut client = database.committing().await?;
    client.set_idle(false);
    let is_written = !changes.is_empty();
    let mut plan = Plan::default();
    guard::plan(&mut plan, needs, &expected);
    plan.add_changes(&changes);
    database.counts.round_trip();
    let end = if is_written { "COMMIT" } else { "ROLLBACK" };
    let sent = database.commit(plan.send(&client, Some(begin), Some(end))).await;
    // Of these it is known that the transaction was begun, and its last statement ended it.
    client.set_idle(matches!(sent, Ok(()) | Err(Fault::Locked | Fault::Changed | Fault::Conflict(_))));
    sent?;
    if is_written {
        database.counts.commit();
        tell(database, &changes);
    }
    known.learn(rows, &changes);
    Ok(Some(Ended::of(jobs, &later)))
}

/// Carries out a group by the rows that its transaction reads.
async fn read_and_write(
    database: &Database,
    begin: &str,
    jobs: &mut Vec<Job>,
    needs: &Needs,
    known: Option<&mut Known>,
) -> Result<Ended, Fault> {
    let mut client = database.committing().await?;
    let (mut rows, mut changes) = (Rows::default(), Changes::default());
    client.set_idle(false);
    database.counts.round_trip();
    changes.created = match load::begin(&client, begin, needs, &mut rows).await {
        Ok(created) => created,
        Err(fault) => {
            // A connection that takes no writes is given up; a lock that was not free is no fault of the connection.
            let is_well = !matches!(fault, Fault::Unavailable(_));
            if is_well && client.object()?.batch_execute("ROLLBACK").await.is_ok() {
                client.set_idle(true);
            }
            return Err(fault);
        }
    };
    let mut later = vec![false; jobs.len()];
    let mut undecided: Vec<usize> = (0..jobs.len()).collect();
    for round in 0.. {
        let (missing, left) = decide(jobs, undecided, &mut rows, &mut changes, &mut later);
        undecided = left;
        if undecided.is_empty() {
            break;
        }
        if round == ROUNDS {
            for index in undecided {
                later.get_mut(index).into_iter().for_each(|later| *later = true);
            }
            break;
        }
        database.counts.round_trip();
        load::more(&client, &missing, &mut rows).await?;
    }
    database.counts.round_trip();
    if changes.is_empty() && changes.created.is_empty() {
        client.object()?.batch_execute("ROLLBACK").await?;
    } else {
        database.counts.commit();
        database.commit(flush::write(&client, &changes, Some("COMMIT"))).await?;
        tell(database, &changes);
    }
    client.set_idle(true);
    if let Some(known) = known {
        known.learn(rows, &changes);
    }
    Ok(Ended::of(jobs, &later))
}

/// Tells the other servers what was committed.
fn tell(database: &Database, changes: &Changes) {
    changes.events.iter().for_each(|(workspace, event)| database.mouth.event(workspace, event.batch));
    let of_sessions = changes.sessions.keys().map(|(workspace, _)| workspace);
    for workspace in changes.holdings.keys().chain(of_sessions) {
        database.mouth.tell(Hint::Workspace(workspace.clone()));
    }
}

/// Lets writes decide; answers what is missing, and for which of them.
fn decide(
    jobs: &mut [Job],
    undecided: Vec<usize>,
    rows: &mut Rows,
    changes: &mut Changes,
    later: &mut [bool],
) -> (Needs, Vec<usize>) {
    let (mut missing, mut left) = (Needs::default(), Vec::new());
    for index in undecided {
        let (Some(job), Some(is_later)) = (jobs.get_mut(index), later.get_mut(index)) else { continue };
        // What writes decide is bounded by what they write, too: a step writes the report of its batch.
        if changes.bytes() > WRITTEN_BYTES {
            *is_later = true;
            continue;
        }
        match job.work.decide(rows) {
            Ok(puts) => changes.apply(rows, puts),
            Err(Stop::Load(needs)) => {
                missing.add(*needs);
                left.push(index);
            }
            Err(Stop::Later | Stop::Error(_)) => *is_later = true,
        }
    }
    (missing, left)
}
