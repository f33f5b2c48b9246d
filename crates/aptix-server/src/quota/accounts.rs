//! The accounts of all subjects, and what one call takes of those of its token and of the workspaces that it names.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aptix_model::id::{TokenName, Uuid, WorkspaceId};

use super::account::{Account, Held, Reserved};
use tokio::time::Instant;

use super::used::Used;
use super::{Allowance, CurrentRules, Limit, OverLimit, Subject};

/// Accounts that are kept before those are looked for that are not in use.
const ACCOUNTS: usize = 1024;

/// The accounts of all tokens and workspaces that use anything, and their limits.
pub struct Quotas {
    rules: CurrentRules,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    accounts: HashMap<Subject, Arc<Account>>,
    /// How many there may be before they are looked through.
    room: usize,
    /// With which the other servers are told next.
    next: usize,
}

impl fmt::Debug for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quotas").field("accounts", &self.lock().accounts.len()).finish_non_exhaustive()
    }
}

impl Quotas {
    /// Nothing is used yet.
    #[must_use]
    pub fn new(rules: impl Into<CurrentRules>) -> Arc<Self> {
        let known = Known { accounts: HashMap::new(), room: ACCOUNTS, next: 0 };
        Arc::new(Self { rules: rules.into(), known: Mutex::new(known) })
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allowed(&self, subject: &Subject) -> Allowance {
        self.rules.0.borrow().of(subject)
    }

    /// The account of a subject. Those that are as new ones are let go of at times, so that names which are used once leave
    /// nothing behind; each that only calls stays a second at most, and one that stores batches until they count no more.
    fn account(&self, subject: Subject) -> Arc<Account> {
        let mut known = self.lock();
        if let Some(account) = known.accounts.get(&subject) {
            return Arc::clone(account);
        }
        if known.accounts.len() >= known.room {
            known.accounts.retain(|_, account| !account.is_new());
            known.room = ACCOUNTS.max(2 * known.accounts.len());
        }
        let account = Account::new(subject.clone());
        known.accounts.insert(subject, Arc::clone(&account));
        account
    }

    /// What the other servers are told next, of so many subjects at most. What they told before `forgotten` counts no more.
    pub(crate) fn untold(&self, me: Uuid, most: usize, forgotten: Option<Instant>) -> Vec<Used> {
        let (mut known, rules, mut untold) = (self.lock(), self.rules.0.borrow(), Vec::new());
        let count = known.accounts.len();
        let mut next = known.next.checked_rem(count).unwrap_or_default();
        for account in known.accounts.values().cycle().skip(next).take(count) {
            next += 1;
            untold.extend(account.untold(me, &rules.of(account.subject()), forgotten));
            if untold.len() == most {
                break;
            }
        }
        known.next = next;
        untold
    }

    /// Has the other servers be told again what they were told.
    pub(crate) fn tell_anew(&self) {
        self.lock().accounts.values().for_each(|account| account.tell_anew());
    }

    /// Counts what another server tells.
    pub(crate) fn hear(&self, used: &Used) {
        let allowed = self.allowed(&used.subject);
        self.account(used.subject.clone()).hear(used, &allowed);
    }

    /// The limits of a call: those of its token, if it has one, and of the workspace that it names.
    #[must_use]
    pub fn of_call(self: &Arc<Self>, token: Option<&TokenName>) -> CallQuota {
        let token = token.map(|name| self.account(Subject::Token(name.clone())));
        CallQuota { of: Some((Arc::clone(self), token)) }
    }
}

/// The limits that one call is held to. A call of the server's owner has none.
#[derive(Clone, Debug, Default)]
pub struct CallQuota {
    of: Option<(Arc<Quotas>, Option<Arc<Account>>)>,
}

impl CallQuota {
    fn token(&self) -> Option<(&Arc<Account>, Allowance)> {
        let (quotas, token) = self.of.as_ref()?;
        let account = token.as_ref()?;
        Some((account, quotas.allowed(account.subject())))
    }

    fn workspace(&self, workspace: &WorkspaceId) -> Option<(Arc<Account>, Allowance)> {
        let (quotas, _) = self.of.as_ref()?;
        let account = quotas.account(Subject::Workspace(workspace.clone()));
        let allowed = quotas.allowed(account.subject());
        Some((account, allowed))
    }

    /// Counts a call of the token.
    ///
    /// # Errors
    /// When it had as many this second as it may.
    pub(crate) fn call(&self) -> Result<(), Box<OverLimit>> {
        self.token().map_or(Ok(()), |(account, allowed)| account.call(&allowed))
    }

    /// Counts a call that names a workspace.
    ///
    /// # Errors
    /// When the workspace had as many this second as it may.
    pub(crate) fn call_in(&self, workspace: &WorkspaceId) -> Result<(), Box<OverLimit>> {
        self.workspace(workspace).map_or(Ok(()), |(account, allowed)| account.call(&allowed))
    }

    /// Takes so much of what the token may use; nothing without a token.
    ///
    /// # Errors
    /// When the token uses too much.
    pub(crate) fn take(&self, limit: Limit, amount: usize) -> Result<Option<Held>, Box<OverLimit>> {
        let amount = u64::try_from(amount).unwrap_or(u64::MAX);
        self.token().map(|(account, allowed)| account.take(limit, amount, &allowed)).transpose()
    }

    /// Takes so much of what all callers of a workspace may use together.
    ///
    /// # Errors
    /// When they use too much.
    pub(crate) fn take_in(
        &self,
        workspace: &WorkspaceId,
        limit: Limit,
        amount: usize,
    ) -> Result<Option<Held>, Box<OverLimit>> {
        let amount = u64::try_from(amount).unwrap_or(u64::MAX);
        self.workspace(workspace).map(|(account, allowed)| account.take(limit, amount, &allowed)).transpose()
    }

    /// Takes a question to the agent of a workspace, of the token and of the workspace.
    ///
    /// # Errors
    /// When one of them has as many questions open as it may.
    pub(crate) fn question(&self, workspace: &WorkspaceId) -> Result<[Option<Held>; 2], Box<OverLimit>> {
        Ok([self.take(Limit::Questions, 1)?, self.take_in(workspace, Limit::Questions, 1)?])
    }
}

impl CallQuota {
    /// Counts a batch that is about to be stored in a workspace, for the token and for the workspace.
    ///
    /// # Errors
    /// When one of them had as many in a day as it may.
    pub(crate) fn batch(&self, workspace: &WorkspaceId) -> Result<Vec<Reserved>, Box<OverLimit>> {
        let of_token = self.token().map(|(account, allowed)| account.batch(&allowed)).transpose()?;
        let of_workspace = self.workspace(workspace).map(|(account, allowed)| account.batch(&allowed)).transpose()?;
        Ok(of_token.into_iter().chain(of_workspace).collect())
    }
}

impl CallQuota {
    /// Room for bytes that are about to be stored in a workspace; `None` where it has no limit.
    pub(crate) fn room(&self, workspace: &WorkspaceId, bytes: impl FnOnce() -> u64) -> Option<Storing> {
        let (account, allowed) = self.workspace(workspace)?;
        let (most, bytes) = (allowed.stored_bytes?, bytes());
        let (held, storing) = account.store(bytes);
        Some(Storing { subject: account.subject().clone(), held, bytes, storing, most })
    }
}

/// Bytes that are about to be stored, before it is known whether the workspace has room for them.
#[derive(Debug)]
pub struct Storing {
    subject: Subject,
    held: Held,
    bytes: u64,
    /// Bytes of the workspace that are about to be stored, with these.
    storing: u64,
    most: u64,
}

impl Storing {
    /// Holds the room until the bytes are stored.
    ///
    /// # Errors
    /// When the workspace would store more than it may, beside the `used` bytes that it stores.
    pub(crate) fn beside(self, used: u64) -> Result<Held, Box<OverLimit>> {
        let Self { subject, held, bytes, storing, most } = self;
        let others = used.saturating_add(storing.saturating_sub(bytes));
        match others.checked_add(bytes) {
            Some(sum) if sum <= most => Ok(held),
            _ => Err(OverLimit::stored(&subject, (others, bytes), most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::QuotaRules;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn names_that_are_used_once_leave_nothing_behind() {
        let quotas = Quotas::new(QuotaRules::default());
        let call = quotas.of_call(None);
        let held = call.take_in(&"held".parse().unwrap(), Limit::Streams, 1).unwrap();
        for round in 0..10 {
            for number in 0..ACCOUNTS {
                call.call_in(&format!("w{round}-{number}").parse().unwrap()).unwrap();
            }
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        let known = quotas.lock();
        assert!(known.accounts.len() <= 2 * ACCOUNTS, "{}", known.accounts.len());
        assert!(known.accounts.contains_key(&Subject::Workspace("held".parse().unwrap())));
        drop((known, held));
    }

    #[tokio::test(start_paused = true)]
    async fn a_workspace_has_its_own_limits_and_shares_them_among_tokens() {
        let own = Allowance { streams: 1, ..Allowance::default() };
        let workspaces = [("a".parse().unwrap(), own)].into();
        let quotas = Quotas::new(QuotaRules { workspaces, ..QuotaRules::default() });
        let (one, other) = (quotas.of_call(Some(&"one".parse().unwrap())), quotas.of_call(None));
        let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
        let held = one.take_in(&a, Limit::Streams, 1).unwrap();
        let over = other.take_in(&a, Limit::Streams, 1).unwrap_err();
        assert_eq!((over.subject.to_string().as_str(), over.value), ("workspace:a", 1));
        assert_eq!(over.key(), "streams_per_workspace");
        assert!(other.take_in(&b, Limit::Streams, 1).is_ok());
        drop(held);
        assert!(other.take_in(&a, Limit::Streams, 1).is_ok());
        // Without a token, or for the owner, there is nothing to hold a call to.
        assert!(other.take(Limit::Streams, usize::MAX).unwrap().is_none());
        assert!(CallQuota::default().take_in(&a, Limit::Streams, usize::MAX).unwrap().is_none());
    }
}
