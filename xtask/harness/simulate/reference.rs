//! The plain reference: the life of a batch, written down once more and without any of the program's types of states.

use std::collections::BTreeMap;

use aptix_model::wire::v1::BatchState;

use crate::calls::line;
use crate::watcher::Seen;

/// Whether a batch may get from one state to another in one step; from `None` when it is stored.
const fn may_follow(from: Option<BatchState>, to: BatchState) -> bool {
    use BatchState as S;
    match from {
        None => matches!(to, S::Prepared | S::PendingApproval | S::Approved | S::Failed | S::Applied),
        Some(S::Prepared) => {
            matches!(to, S::PendingApproval | S::Approved | S::Rejected | S::Cancelled | S::Expired)
        }
        Some(S::PendingApproval) => matches!(to, S::Approved | S::Rejected | S::Cancelled | S::Expired),
        Some(S::Approved) => {
            matches!(to, S::Applied | S::Failed | S::Partial | S::Rejected | S::Cancelled | S::Expired)
        }
        Some(_) => false,
    }
}

/// A batch as the events have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) state: BatchState,
    /// Whether it was ever free to be applied.
    pub(crate) is_free: bool,
    /// The revision that stored it, if it was free to be applied at once.
    pub(crate) free_at: Option<u64>,
}

/// The batches of a workspace after all its events; or what is wrong with them.
pub(crate) fn lives(events: &[Seen]) -> Result<BTreeMap<String, Life>, String> {
    let mut lives: BTreeMap<String, Life> = BTreeMap::new();
    for (number, event) in (1..).zip(events) {
        if event.revision != number {
            return Err(format!("event {number} has revision {}", event.revision));
        }
        let before = lives.get(&event.batch).copied();
        if !may_follow(before.map(|life| life.state), event.state) {
            return Err(format!("revision {number}: a batch that was {before:?} became {:?}", event.state));
        }
        let approves = event.state == BatchState::Approved;
        let is_free = approves || before.is_some_and(|life| life.is_free);
        let free_at = before.map_or(approves.then_some(number), |life| life.free_at);
        lives.insert(event.batch.clone(), Life { state: event.state, is_free, free_at });
    }
    Ok(lives)
}

/// What is wrong with the removal of the events before one, if anything is: the newest event of what is open stays, and a batch goes
/// once all its events have gone.
pub(crate) fn wrongly_removed(events: &[Seen], oldest: u64, gone: &[String]) -> Option<String> {
    let lives = match lives(events) {
        Ok(lives) => lives,
        Err(why) => return Some(why),
    };
    let newest: BTreeMap<&str, u64> = events.iter().map(|event| (event.batch.as_str(), event.revision)).collect();
    newest.into_iter().find_map(|(batch, newest)| {
        let is_open = lives.get(batch).is_some_and(|life| may_follow(Some(life.state), BatchState::Cancelled));
        let is_gone = gone.iter().any(|gone| gone == batch);
        // One whose newest event went is no longer open, and one that is gone has no event left.
        let is_wrong = if newest < oldest { is_open } else { is_gone };
        is_wrong
            .then(|| format!("batch {batch} (newest event {newest}, open: {is_open}, gone: {is_gone}) before {oldest}"))
    })
}

/// What the disk must have of a batch's line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnDisk {
    Once,
    Never,
    /// It ended, or was forgotten, while the agent may have been applying it.
    AtMostOnce,
}

/// What the disk must have of a batch in a state that nothing changes any more.
pub(crate) const fn on_disk(life: Life, is_reverted: bool) -> OnDisk {
    match life.state {
        BatchState::Applied if is_reverted => OnDisk::Never,
        BatchState::Applied => OnDisk::Once,
        BatchState::Cancelled | BatchState::Rejected if life.is_free => OnDisk::AtMostOnce,
        _ => OnDisk::Never,
    }
}

/// What is wrong with the line of a batch in the text of its file, if anything is.
pub(crate) fn misplaced(text: &str, batch: usize, expected: OnDisk) -> Option<String> {
    let line = line(batch);
    let count = text.lines().filter(|found| *found == line).count();
    let is_right = match expected {
        OnDisk::Once => count == 1,
        OnDisk::Never => count == 0,
        OnDisk::AtMostOnce => count <= 1,
    };
    (!is_right).then(|| format!("the line of batch {batch} is in its file {count} times, expected {expected:?}"))
}

/// The first batch whose line stands below that of one which was stored later. `stored` is in no order.
pub(crate) fn out_of_order(text: &str, stored: &[(usize, u64)]) -> Option<String> {
    let of_line = |found: &str| stored.iter().find(|(batch, _)| line(*batch) == found);
    let lines: Vec<_> = text.lines().filter_map(of_line).collect();
    let mut pairs = lines.iter().zip(lines.iter().skip(1));
    let ((one, later), (other, earlier)) = pairs.find(|(one, next)| one.1 > next.1)?;
    Some(format!("batch {one} (revision {later}) was applied before batch {other} (revision {earlier})"))
}
