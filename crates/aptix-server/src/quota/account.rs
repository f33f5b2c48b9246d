//! What one subject uses at present: a bucket that fills by a monotonic clock, and counts of what is held.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::store::fleet::{InUse, ServerId, Used as Told};

use super::{Allowance, IN_USE, Limit, OverLimit, Subject};

/// A change of so many parts of a limit is not told to the other servers.
const LITTLE: u64 = 64;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// What one subject uses.
#[derive(Debug)]
pub(super) struct Account {
    subject: Subject,
    used: Mutex<Uses>,
}

#[derive(Debug, Default)]
struct Uses {
    calls: Bucket,
    batches: Bucket,
    held: InUse,
    /// Bytes that are about to be stored.
    storing: u64,
    /// What is held of the other servers.
    others: HashMap<ServerId, InUse>,
    /// What the other servers were told last that is held of this one.
    told: InUse,
}

/// A bucket of what may be used in a second or a day. It keeps the time at which it will be full.
#[derive(Debug, Default)]
struct Bucket {
    full: Option<Instant>,
    /// How many were taken since the other servers were told.
    untold: u64,
}

impl Bucket {
    /// Takes one of so many in this time, or answers after how long there will be one.
    fn take(&mut self, now: Instant, (most, time): (u64, Duration)) -> Result<(), Duration> {
        let full = self.full.filter(|full| *full > now).unwrap_or(now) + each(most, time);
        match full.saturating_duration_since(now).checked_sub(time) {
            Some(missing) if !missing.is_zero() => Err(missing),
            _ => {
                self.full = Some(full);
                self.untold += 1;
                Ok(())
            }
        }
    }

    /// Puts one back that was taken and not used.
    fn put_back(&mut self, (most, time): (u64, Duration)) {
        self.full = self.full.and_then(|full| full.checked_sub(each(most, time)));
        self.untold = self.untold.saturating_sub(1);
    }

    /// Takes what others took, as far as there is any.
    fn take_over(&mut self, taken: u64, now: Instant, (most, time): (u64, Duration)) {
        let taken = each(most, time).saturating_mul(u32::try_from(taken).unwrap_or(u32::MAX));
        let full = self.full.filter(|full| *full > now).unwrap_or(now);
        self.full = Some((full + taken.min(time)).min(now + time));
    }

    fn is_full(&self, now: Instant) -> bool {
        self.full.is_none_or(|full| full <= now)
    }
}

/// After how long there is one more.
fn each(most: u64, time: Duration) -> Duration {
    time / u32::try_from(most).unwrap_or(u32::MAX).max(1)
}

impl Uses {
    /// Where uses of this limit are counted, and how many there may be; `None` for what is no count.
    const fn count(&mut self, limit: Limit, allowed: &Allowance) -> Option<(&mut u64, u64)> {
        match limit {
            Limit::CallsPerSecond | Limit::BatchesPerDay => None,
            Limit::Streams => Some((&mut self.held.streams, allowed.streams)),
            Limit::BytesInFlight => Some((&mut self.held.bytes, allowed.bytes_in_flight)),
            Limit::Questions => Some((&mut self.held.questions, allowed.questions)),
            // What is stored counts as well: `Account::store`.
            Limit::StoredBytes => Some((&mut self.storing, u64::MAX)),
        }
    }

    /// How much the other servers have of it.
    fn of_others(&self, limit: Limit) -> u64 {
        let held = |of: fn(&InUse) -> u64| self.others.values().map(of).fold(0, u64::saturating_add);
        match limit {
            Limit::Streams => held(|held| held.streams),
            Limit::BytesInFlight => held(|held| held.bytes),
            Limit::Questions => held(|held| held.questions),
            Limit::CallsPerSecond | Limit::BatchesPerDay | Limit::StoredBytes => 0,
        }
    }

    /// Whether what the others know is off by more than little, or they believe that something is held and nothing is.
    fn is_untold(&self, allowed: &Allowance) -> bool {
        let (now, told) = (self.held, self.told);
        let differs = |now: u64, told: u64, most: u64| now.abs_diff(told) > most / LITTLE;
        differs(now.streams, told.streams, allowed.streams)
            || differs(now.bytes, told.bytes, allowed.bytes_in_flight)
            || differs(now.questions, told.questions, allowed.questions)
            || differs(self.calls.untold, 0, allowed.calls_per_second)
            || differs(self.batches.untold, 0, allowed.batches_per_day)
            || (now == InUse::default() && now != told)
    }
}

impl Account {
    pub(super) fn new(subject: Subject) -> Arc<Self> {
        Arc::new(Self { subject, used: Mutex::default() })
    }

    pub(super) const fn subject(&self) -> &Subject {
        &self.subject
    }

    fn lock(&self) -> MutexGuard<'_, Uses> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it differs from a new one. One that is shared is in use.
    pub(super) fn is_new(self: &Arc<Self>) -> bool {
        let (used, now) = (self.lock(), Instant::now());
        let is_full = used.calls.is_full(now) && used.batches.is_full(now);
        Arc::strong_count(self) == 1 && is_full && used.others.is_empty() && used.told == InUse::default()
    }

    /// Counts a call.
    pub(super) fn call(&self, allowed: &Allowance) -> Result<(), Box<OverLimit>> {
        let per_second = allowed.calls_per_second;
        let taken = self.lock().calls.take(Instant::now(), (per_second, SECOND));
        taken.map_err(|missing| OverLimit::new(&self.subject, Limit::CallsPerSecond, per_second, missing))
    }

    /// Counts a batch that is about to be stored.
    pub(super) fn batch(self: &Arc<Self>, allowed: &Allowance) -> Result<Reserved, Box<OverLimit>> {
        let most = allowed.batches_per_day;
        let taken = self.lock().batches.take(Instant::now(), (most, DAY));
        let over = |missing| OverLimit::new(&self.subject, Limit::BatchesPerDay, most, missing);
        taken.map_err(over)?;
        Ok(Reserved { account: Arc::clone(self), most, is_stored: false })
    }

    /// Takes so much of what can be given back.
    pub(super) fn take(
        self: &Arc<Self>,
        limit: Limit,
        amount: u64,
        allowed: &Allowance,
    ) -> Result<Held, Box<OverLimit>> {
        let over = |value| OverLimit::new(&self.subject, limit, value, IN_USE);
        let mut uses = self.lock();
        let others = uses.of_others(limit);
        if let Some((used, most)) = uses.count(limit, allowed) {
            let sum = used.saturating_add(amount);
            if sum.saturating_add(others) > most {
                return Err(over(most));
            }
            *used = sum;
        }
        drop(uses);
        Ok(Held { account: Arc::clone(self), limit, amount })
    }
}

impl Account {
    /// Counts bytes that are about to be stored; answers how many are, with them. Whoever counts first and learns afterwards how many
    /// are stored misses none: each that was counted before is still counted, or is stored.
    pub(super) fn store(self: &Arc<Self>, bytes: u64) -> (Held, u64) {
        let storing = {
            let mut used = self.lock();
            used.storing = used.storing.saturating_add(bytes);
            used.storing
        };
        (Held { account: Arc::clone(self), limit: Limit::StoredBytes, amount: bytes }, storing)
    }
}

impl Account {
    /// What the other servers are told of it next, if they do not know.
    pub(super) fn untold(&self, server: ServerId, allowed: &Allowance) -> Option<Told> {
        let mut uses = self.lock();
        if !uses.is_untold(allowed) {
            return None;
        }
        uses.told = uses.held;
        let calls = std::mem::take(&mut uses.calls.untold);
        let batches = std::mem::take(&mut uses.batches.untold);
        Some(Told { server, subject: self.subject.to_string(), held: uses.held, calls, batches })
    }

    /// Has the other servers be told again what is held.
    pub(super) fn tell_anew(&self) {
        self.lock().told = InUse::default();
    }

    /// Counts what another server tells.
    pub(super) fn hear(&self, told: &Told, allowed: &Allowance) {
        let (mut uses, now) = (self.lock(), Instant::now());
        uses.calls.take_over(told.calls, now, (allowed.calls_per_second, SECOND));
        uses.batches.take_over(told.batches, now, (allowed.batches_per_day, DAY));
        if told.held == InUse::default() {
            uses.others.remove(&told.server);
        } else {
            uses.others.insert(told.server, told.held);
        }
    }

    /// Counts no more what servers have that died.
    pub(super) fn forget(&self, dead: &HashSet<ServerId>) {
        self.lock().others.retain(|server, _| !dead.contains(server));
    }
}

/// A batch that is counted, and not stored yet: counted no more if it is dropped before.
#[derive(Debug)]
pub struct Reserved {
    account: Arc<Account>,
    most: u64,
    is_stored: bool,
}

impl Reserved {
    /// Notes that the batch is stored.
    pub(crate) fn stored(mut self) {
        self.is_stored = true;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.is_stored {
            self.account.lock().batches.put_back((self.most, DAY));
        }
    }
}

/// What a call holds of a limit; given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    account: Arc<Account>,
    limit: Limit,
    amount: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        // The limits of now do not matter for giving back.
        if let Some((used, _)) = self.account.lock().count(self.limit, &Allowance::default()) {
            *used = used.saturating_sub(self.amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Arc<Account> {
        Account::new(Subject::Token("t".parse().unwrap()))
    }

    #[tokio::test(start_paused = true)]
    async fn one_seconds_calls_come_at_once_and_then_one_after_the_other() {
        for rate in [1, 3, 10_000] {
            let (account, allowed) = (account(), Allowance { calls_per_second: rate, ..Allowance::default() });
            for _ in 0..rate {
                account.call(&allowed).unwrap();
            }
            let over = account.call(&allowed).unwrap_err();
            assert_eq!((over.limit, over.value), (Limit::CallsPerSecond, rate));
            let one = SECOND / u32::try_from(rate).unwrap();
            assert!(over.retry <= one && !over.retry.is_zero(), "{:?}", over.retry);
            // Refused calls cost nothing.
            assert_eq!(account.call(&allowed).unwrap_err().retry, over.retry);
            tokio::time::advance(over.retry).await;
            account.call(&allowed).unwrap();
            assert!(account.call(&allowed).is_err());
            assert!(!account.is_new());
            tokio::time::advance(SECOND * 2).await;
            assert!(account.is_new());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_counts_for_a_day_once_it_is_stored() {
        let (account, allowed) = (account(), Allowance { batches_per_day: 2, ..Allowance::default() });
        account.batch(&allowed).unwrap().stored();
        for _ in 0..5 {
            // Not stored.
            drop(account.batch(&allowed).unwrap());
        }
        account.batch(&allowed).unwrap().stored();
        let over = account.batch(&allowed).unwrap_err();
        assert_eq!((over.limit, over.value, over.retry), (Limit::BatchesPerDay, 2, DAY / 2));
        tokio::time::advance(DAY / 2).await;
        account.batch(&allowed).unwrap().stored();
        assert!(account.batch(&allowed).is_err());
        assert!(!account.is_new());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_is_counted_until_it_is_given_back() {
        let account = account();
        let allowed = Allowance { streams: 2, bytes_in_flight: 10, questions: 1, ..Allowance::default() };
        let (first, _second) =
            (account.take(Limit::Streams, 1, &allowed).unwrap(), account.take(Limit::Streams, 1, &allowed).unwrap());
        assert_eq!(account.take(Limit::Streams, 1, &allowed).unwrap_err().value, 2);
        drop(first);
        let _third = account.take(Limit::Streams, 1, &allowed).unwrap();
        let _bytes = account.take(Limit::BytesInFlight, 10, &allowed).unwrap();
        assert!(account.take(Limit::BytesInFlight, 1, &allowed).is_err());
        assert!(account.take(Limit::BytesInFlight, u64::MAX, &allowed).is_err());
        // A lower limit takes nothing away from those who hold more.
        let lower = Allowance { streams: 1, ..allowed };
        assert_eq!(account.take(Limit::Streams, 1, &lower).unwrap_err().value, 1);
        let question = account.take(Limit::Questions, 1, &allowed).unwrap();
        assert!(account.take(Limit::Questions, 1, &allowed).is_err());
        drop(question);
        assert!(account.take(Limit::Questions, 1, &allowed).is_ok());
    }
}
