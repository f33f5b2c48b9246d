//! What one subject uses at present: a bucket that fills by a monotonic clock, and counts of what is held.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aptix_model::id::Uuid;
use tokio::time::Instant;

use super::used::{InUse, Used as Told};
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

#[derive(Debug)]
struct Uses {
    calls: Bucket,
    batches: Bucket,
    now: InUse,
    /// Bytes that are about to be stored.
    storing: u64,
    /// What is used of the other servers, and when they told it.
    others: HashMap<Uuid, (InUse, Instant)>,
    untold: Untold,
}

/// What the other servers do not know.
#[derive(Debug)]
struct Untold {
    /// What they were told last.
    told: InUse,
    /// Whether they are told again although nothing changed.
    is_stale: bool,
    /// Calls since this time.
    calls: (u64, Instant),
    /// Batches that were stored since they were told.
    batches: u64,
}

/// A bucket of what may be used in a second or a day. It keeps the time at which it will be full.
#[derive(Debug, Default)]
struct Bucket {
    full: Option<Instant>,
}

impl Bucket {
    /// Takes one of so many in this time, or answers after how long there will be one.
    fn take(&mut self, now: Instant, (most, time): (u64, Duration)) -> Result<(), Duration> {
        let full = self.full.filter(|full| *full > now).unwrap_or(now) + each(most, time);
        match full.saturating_duration_since(now).checked_sub(time) {
            Some(missing) if !missing.is_zero() => Err(missing),
            _ => {
                self.full = Some(full);
                Ok(())
            }
        }
    }

    /// Puts one back that was taken and not used.
    fn put_back(&mut self, (most, time): (u64, Duration)) {
        self.full = self.full.and_then(|full| full.checked_sub(each(most, time)));
    }

    /// Takes what others took, also where there is none left: then it is owed, but for no longer than the time of the bucket.
    fn take_over(&mut self, taken: u64, now: Instant, (most, time): (u64, Duration)) {
        let taken = each(most, time).saturating_mul(u32::try_from(taken).unwrap_or(u32::MAX));
        let full = self.full.filter(|full| *full > now).unwrap_or(now);
        self.full = Some((full + taken.min(2 * time)).min(now + 2 * time));
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
            Limit::Streams => Some((&mut self.now.streams, allowed.streams)),
            Limit::BytesInFlight => Some((&mut self.now.bytes, allowed.bytes_in_flight)),
            Limit::Questions => Some((&mut self.now.questions, allowed.questions)),
            // What is stored counts as well: `Account::store`.
            Limit::StoredBytes => Some((&mut self.storing, u64::MAX)),
        }
    }

    /// How much the other servers have of it.
    fn of_others(&self, limit: Limit) -> u64 {
        let used = |of: fn(&InUse) -> u64| self.others.values().map(|(now, _)| of(now)).fold(0, u64::saturating_add);
        match limit {
            Limit::CallsPerSecond => used(|now| now.calls),
            Limit::Streams => used(|now| now.streams),
            Limit::BytesInFlight => used(|now| now.bytes),
            Limit::Questions => used(|now| now.questions),
            Limit::BatchesPerDay | Limit::StoredBytes => 0,
        }
    }

    /// How many calls a second this server lets through: what the others leave, and as much as each of those has that is called
    /// if all are called more often than the limit allows.
    fn calls_per_second(&self, most: u64) -> u64 {
        let called = 1 + self.others.values().filter(|(now, _)| now.calls > 0).count() as u64;
        most.saturating_sub(self.of_others(Limit::CallsPerSecond)).max(most / called).max(1)
    }

    /// Counts how many calls there are a second.
    fn measure(&mut self, now: Instant) {
        let (calls, since) = std::mem::replace(&mut self.untold.calls, (0, now));
        // The first calls of a new account are no rate yet.
        let millis = u64::try_from(now.saturating_duration_since(since).as_millis()).unwrap_or(u64::MAX).max(1000);
        let (measured, told) = (calls.saturating_mul(1000) / millis, self.untold.told.calls);
        // Halfway each time: servers that answer to each other settle, and do not swing.
        self.now.calls = match measured.checked_sub(told) {
            Some(more) => told + more.div_ceil(2),
            None => told - (told - measured).div_ceil(2),
        };
    }

    /// Whether what the others know is off by more than little, or they believe that something is used and nothing is.
    fn is_untold(&self, allowed: &Allowance) -> bool {
        let (now, Untold { told, is_stale, batches, .. }) = (self.now, &self.untold);
        let differs = |now: u64, told: u64, most: u64| now.abs_diff(told) > most / LITTLE;
        *is_stale
            || differs(now.calls, told.calls, allowed.calls_per_second)
            || differs(now.streams, told.streams, allowed.streams)
            || differs(now.bytes, told.bytes, allowed.bytes_in_flight)
            || differs(now.questions, told.questions, allowed.questions)
            || differs(*batches, 0, allowed.batches_per_day)
            || (now == InUse::default() && now != *told)
    }
}

impl Account {
    pub(super) fn new(subject: Subject) -> Arc<Self> {
        let (told, calls) = (InUse::default(), (0, Instant::now()));
        let untold = Untold { told, is_stale: false, calls, batches: 0 };
        let (calls, batches) = (Bucket::default(), Bucket::default());
        let used = Uses { calls, batches, now: told, storing: 0, others: HashMap::new(), untold };
        Arc::new(Self { subject, used: Mutex::new(used) })
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
        let is_told = used.untold.told == InUse::default() && !used.untold.is_stale;
        Arc::strong_count(self) == 1 && is_full && used.others.is_empty() && is_told
    }

    /// Counts a call.
    pub(super) fn call(&self, allowed: &Allowance) -> Result<(), Box<OverLimit>> {
        let per_second = allowed.calls_per_second;
        let taken = {
            let mut uses = self.lock();
            let here = uses.calls_per_second(per_second);
            let taken = uses.calls.take(Instant::now(), (here, SECOND));
            uses.untold.calls.0 += u64::from(taken.is_ok());
            taken
        };
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
    /// What others told before `forgotten` counts no more.
    pub(super) fn untold(&self, server: Uuid, allowed: &Allowance, forgotten: Option<Instant>) -> Option<Told> {
        let mut uses = self.lock();
        uses.others.retain(|_, (_, at)| Some(*at) > forgotten);
        uses.measure(Instant::now());
        if !uses.is_untold(allowed) {
            return None;
        }
        let now = uses.now;
        (uses.untold.told, uses.untold.is_stale) = (now, false);
        let batches = std::mem::take(&mut uses.untold.batches);
        Some(Told { server, subject: self.subject.clone(), now, batches })
    }

    /// Has the other servers be told again what they were told.
    pub(super) fn tell_anew(&self) {
        let mut uses = self.lock();
        uses.untold.is_stale |= uses.untold.told != InUse::default();
    }

    /// Counts what another server tells.
    pub(super) fn hear(&self, told: &Told, allowed: &Allowance) {
        let (mut uses, now) = (self.lock(), Instant::now());
        uses.batches.take_over(told.batches, now, (allowed.batches_per_day, DAY));
        if told.now == InUse::default() {
            uses.others.remove(&told.server);
        } else {
            uses.others.insert(told.server, (told.now, now));
        }
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
        self.account.lock().untold.batches += 1;
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

    /// Servers that tell each other every two seconds let through what one server does, however many of them are called how often.
    #[tokio::test(start_paused = true)]
    async fn servers_let_through_as_many_calls_as_one_of_them() {
        let allowed = Allowance { calls_per_second: 100, ..Allowance::default() };
        // How often each is called a second, how many calls pass at all of them, and whether any is refused.
        let cases: [(&[u64], std::ops::RangeInclusive<u64>, bool); 6] = [
            (&[300], 95..=105, true),
            (&[300, 300], 90..=110, true),
            (&[300, 300, 300], 85..=120, true),
            (&[300, 0, 0], 95..=105, true),
            (&[300, 20], 90..=115, true),
            (&[50, 10], 60..=60, false),
        ];
        for (called, passing, is_refused) in cases {
            let accounts: Vec<_> = called.iter().map(|_| account()).collect();
            let (mut passed, mut refused) = (0, 0);
            for tenth in 0..600 {
                for (account, called) in accounts.iter().zip(called) {
                    for _ in 0..called / 10 {
                        match account.call(&allowed) {
                            Ok(()) => passed += u64::from(tenth >= 200),
                            Err(_) => refused += 1,
                        }
                    }
                }
                tokio::time::advance(Duration::from_millis(100)).await;
                if tenth % 20 == 19 {
                    for (one, account) in accounts.iter().enumerate() {
                        let Some(told) = account.untold(server(one), &allowed, None) else { continue };
                        let others = accounts.iter().enumerate().filter(|(other, _)| *other != one);
                        others.for_each(|(_, other)| other.hear(&told, &allowed));
                    }
                }
            }
            assert!(passing.contains(&(passed / 40)), "{called:?}: {passed} calls in 40 s");
            assert_eq!(refused > 0, is_refused, "{called:?}");
        }
    }

    fn server(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    /// What is used less, and what a server used that is not heard of any more, is known of in the end, also if it was told in vain.
    #[tokio::test(start_paused = true)]
    async fn what_others_use_is_known_in_the_end() {
        let (one, other) = (account(), account());
        let allowed = Allowance { streams: 2, batches_per_day: 2, ..Allowance::default() };
        let held = one.take(Limit::Streams, 2, &allowed).unwrap();
        other.hear(&one.untold(server(1), &allowed, None).unwrap(), &allowed);
        other.take(Limit::Streams, 1, &allowed).unwrap_err();
        drop(held);
        assert!(one.untold(server(1), &allowed, None).is_some(), "told in vain");
        assert_eq!(one.untold(server(1), &allowed, None), None);
        one.tell_anew();
        assert_eq!(one.untold(server(1), &allowed, None), None, "the last word was that nothing is used");
        other.take(Limit::Streams, 1, &allowed).unwrap_err();
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(other.untold(server(2), &allowed, Some(Instant::now())), None);
        drop(other.take(Limit::Streams, 2, &allowed).unwrap());
        // A day's batches elsewhere count here beside the one of today.
        one.batch(&allowed).unwrap().stored();
        one.batch(&allowed).unwrap().stored();
        drop(one.batch(&allowed).unwrap_err());
        let told = one.untold(server(1), &allowed, None).unwrap();
        assert_eq!(told.batches, 2);
        other.batch(&allowed).unwrap().stored();
        other.hear(&told, &allowed);
        tokio::time::advance(DAY - SECOND).await;
        other.batch(&allowed).unwrap_err();
        tokio::time::advance(2 * SECOND).await;
        other.batch(&allowed).unwrap();
    }
}
