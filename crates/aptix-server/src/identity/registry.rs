//! The tokens of a store, in memory: looked up with every call, ended at once.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::reason::Reason;
use aptix_model::record::UnixMillis;
use aptix_model::token::{CertificateName, Ended, Ending, Role, Scope, Token};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::codegen::http::{HeaderMap, header};

use super::{Held, Principal, Secret, unauthenticated};
use crate::caller::Caller;
use crate::dispatcher::refusal::{Refusal, no_workspace};
use crate::mint;
use crate::steady_clock::{HELD, SteadyClock};
use crate::store::access::{KeptToken, TOKENS, TokenAdded};
use crate::store::{Store, StoreError};

/// How often tokens are looked at that may have expired: an open stream lives this much longer than its token at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The tokens of a store.
pub struct Registry {
    store: Arc<dyn Store>,
    clock: SteadyClock,
    /// The time when the tokens were read: one that expired later did so while this was looked at.
    began: UnixMillis,
    known: RwLock<Known>,
    /// Held while a token is made or ended, in the store and in memory.
    changes: Mutex<()>,
    /// Whether the store may have a token that is not known here: a write of it failed.
    is_uncertain: AtomicBool,
    /// Changes that were begun; they are finished also when nobody waits for them any more.
    tasks: TaskTracker,
}

struct Known {
    /// Those that have not ended.
    good: HashMap<Sha256Digest, Arc<Held>>,
    /// Those that ended since the start: a write that failed may have left them as they were in the store.
    ended: HashSet<TokenName>,
    /// Cancelled once a token was made: until then callers need none.
    closed: CancellationToken,
}

/// What is asked of a new token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewToken {
    /// Its name.
    pub name: TokenName,
    /// What its holder may do.
    pub role: Role,
    /// The workspaces it is for.
    pub scope: Scope,
    /// When it expires.
    pub expires: Option<UnixMillis>,
    /// The name of a certificate that proves who its holder is, in the place of a secret.
    pub certificate: Option<CertificateName>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl Registry {
    /// Reads the tokens of a store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn load(store: Arc<dyn Store>) -> Result<Arc<Self>, StoreError> {
        let tokens = store.tokens().await?;
        for why in &tokens.damaged {
            tracing::error!(why, "a token is of no use: its record is damaged");
        }
        let closed = CancellationToken::new();
        if !tokens.is_empty() {
            closed.cancel();
        }
        let clock = SteadyClock::default();
        let now = clock.now();
        let mut open: Vec<_> = tokens.readable.into_iter().filter(|kept| kept.token.ended.is_none()).collect();
        // Of several that were for one certificate, one alone has not expired: it counts.
        open.sort_by_key(|kept| kept.token.is_good(now));
        let good = open.into_iter().map(entry).collect();
        Ok(Arc::new(Self {
            store,
            clock,
            began: now,
            known: RwLock::new(Known { good, ended: HashSet::new(), closed }),
            changes: Mutex::default(),
            is_uncertain: AtomicBool::new(false),
            tasks: TaskTracker::new(),
        }))
    }

    /// Whether calls need a token.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.read().closed.is_cancelled()
    }

    /// Who makes a call that came over this connection with these headers. A call with a token is that of the token's holder, whatever
    /// certificate the connection has; one without is that of the only token that is for a name of the certificate.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, the same whatever is wrong with the token or the certificate.
    pub fn authenticate(
        &self,
        (caller, names): (Caller, &[CertificateName]),
        headers: &HeaderMap,
    ) -> Result<Principal, Failure> {
        if caller == Caller::Owner {
            return Ok(Principal::Owner);
        }
        let mut digests: Vec<_> = match headers.contains_key(header::AUTHORIZATION) {
            true => bearer(headers).map(|secret| secret.digest()).into_iter().collect(),
            false => names.iter().map(proof).collect(),
        };
        digests.sort_unstable();
        digests.dedup();
        let (known, now) = (self.read(), self.clock.now());
        if !known.closed.is_cancelled() {
            return Ok(Principal::Anyone(known.closed.clone()));
        }
        let held = digests.iter().filter_map(|digest| known.good.get(digest));
        let mut held = held.filter(|held| held.token.is_good(now));
        match (held.next(), held.next()) {
            (Some(held), None) => Ok(Principal::Holder(Arc::clone(held))),
            _ => Err(unauthenticated()),
        }
    }

    /// Whether the caller of a call whose message has come may still call: that is when it is admitted.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`.
    pub fn check(&self, caller: &Principal) -> Result<(), Failure> {
        let is_good = match caller {
            Principal::Holder(held) => !held.ended.is_cancelled() && held.token.is_good(self.clock.now()),
            Principal::Anyone(closed) => !closed.is_cancelled(),
            Principal::Owner | Principal::Member => true,
        };
        if is_good { Ok(()) } else { Err(unauthenticated()) }
    }

    /// Makes a token; its secret is in this answer and nowhere else. One that is for a certificate has none.
    ///
    /// # Errors
    /// When what is asked is not acceptable, the name is used, or the store fails.
    pub async fn create(self: &Arc<Self>, asked: NewToken) -> Result<(Token, Option<Secret>), Refusal> {
        let now = self.clock.now();
        if asked.expires.is_some_and(|expires| expires <= now) {
            return Err(past("expireTime").into());
        }
        if asked.role == Role::Operator && asked.scope != Scope::All {
            return Err(operators_of_one().into());
        }
        let NewToken { name, role, scope, expires, certificate } = asked;
        let (secret, digest) = match &certificate {
            Some(certificate) => (None, proof(certificate)),
            None => {
                let minted = Secret::mint().map_err(|error| no_secret(&error))?;
                let digest = minted.digest();
                (Some(minted), digest)
            }
        };
        let token = Token { name, role, scope, created: now, expires, ended: None, certificate };
        let kept = KeptToken { token: token.clone(), digest };
        let this = Arc::clone(self);
        let added = match finished(self.tasks.spawn(this.add(kept)).await)? {
            Ok(added) => added,
            Err(other) => return Err(Refusal::denied(certificate_used(&other))),
        };
        match added {
            TokenAdded::New => Ok((token, secret)),
            TokenAdded::NameUsed => Err(Refusal::denied(name_used(&token.name))),
            TokenAdded::CertificateUsed(other) => Err(Refusal::denied(certificate_used(&other))),
            TokenAdded::TooMany => Err(Refusal::denied(too_many())),
            TokenAdded::NoWorkspace => match &token.scope {
                Scope::One(workspace) => Err(Refusal::denied(no_workspace(workspace))),
                Scope::All => Err(Refusal::denied(too_many())),
            },
        }
    }

    /// Keeps a token, and knows it before anything else changes. Answers the name of another one that has not ended and that the
    /// same certificate is for.
    async fn add(self: Arc<Self>, kept: KeptToken) -> Result<Result<TokenAdded, TokenName>, StoreError> {
        let _turn = self.changes.lock().await;
        let now = self.clock.now();
        let other = self.read().good.get(&kept.digest).filter(|held| held.token.is_good(now)).cloned();
        if let Some(other) = other {
            return Ok(Err(other.token.name.clone()));
        }
        let added = self.store.add_token(kept.clone()).await;
        match added {
            Ok(TokenAdded::New) => self.know([kept]),
            Ok(_) => {}
            Err(_) => self.is_uncertain.store(true, Ordering::SeqCst),
        }
        added.map(Ok)
    }

    /// From now on calls need a token, and these are of use.
    fn know(&self, kept: impl IntoIterator<Item = KeptToken>) {
        let (mut known, now) = (self.write(), self.clock.now());
        for (digest, held) in kept.into_iter().map(entry) {
            if known.ended.contains(&held.token.name) {
                continue;
            }
            match known.good.entry(digest) {
                // One that has expired and was not looked at yet gives its certificate away.
                Entry::Occupied(mut place) if !place.get().token.is_good(now) => place.insert(held).ended.cancel(),
                Entry::Occupied(_) => {}
                Entry::Vacant(place) => {
                    place.insert(held);
                }
            }
        }
        known.closed.cancel();
    }

    /// How many tokens a call may use now.
    #[must_use]
    pub fn tokens_in_use(&self) -> u64 {
        let (known, now) = (self.read(), self.clock.now());
        known.good.values().filter(|held| held.token.is_good(now)).count() as u64
    }

    /// Every token, by name.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self) -> Result<Vec<Token>, StoreError> {
        let tokens = self.store.tokens().await?.readable;
        Ok(tokens.into_iter().map(|kept| kept.token).collect())
    }

    /// Ends a token at once.
    ///
    /// # Errors
    /// When there is none of this name, or the store fails; in memory it has ended even then.
    pub async fn revoke(self: &Arc<Self>, name: TokenName) -> Result<Token, Refusal> {
        let this = Arc::clone(self);
        let ended = finished(self.tasks.spawn(this.end(name.clone(), Ending::Revoked)).await)?;
        ended.ok_or_else(|| Refusal::denied(no_token(&name)))
    }

    async fn end(self: Arc<Self>, name: TokenName, how: Ending) -> Result<Option<Token>, StoreError> {
        let _turn = self.changes.lock().await;
        self.let_go(|token| token.name == name);
        self.store.end_token(name, Ended { at: self.clock.now(), how }).await
    }

    /// Ends tokens in memory, and answers their names.
    fn let_go(&self, ends: impl Fn(&Token) -> bool) -> Vec<TokenName> {
        let mut known = self.write();
        let gone = known.good.extract_if(|_, held| ends(&held.token)).collect::<Vec<_>>();
        known.ended.extend(gone.iter().map(|(_, held)| held.token.name.clone()));
        drop(known);
        gone.into_iter()
            .map(|(_, held)| {
                held.ended.cancel();
                held.token.name.clone()
            })
            .collect()
    }

    /// Creates a workspace; answers whether there was none.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn create_workspace(&self, workspace: WorkspaceId) -> Result<bool, StoreError> {
        self.store.create_workspace(workspace).await
    }

    /// Begins to delete a workspace in the store, and ends the tokens for it alone, which it names; `None` if there is no such workspace.
    ///
    /// # Errors
    /// When the store fails; in memory those tokens have ended even then.
    pub async fn begin_deletion(self: Arc<Self>, workspace: WorkspaceId) -> Result<Option<Vec<TokenName>>, StoreError> {
        let _turn = self.changes.lock().await;
        let ended = Ended { at: self.clock.now(), how: Ending::Revoked };
        let begun = self.store.begin_deletion(workspace.clone(), ended).await;
        if begun != Ok(None) {
            let of_one = Scope::One(workspace);
            self.let_go(|token| token.scope == of_one);
        }
        begun
    }

    /// Ends tokens whose time is over, for as long as it is polled.
    pub async fn expire(self: &Arc<Self>) -> Infallible {
        let began = Instant::now();
        loop {
            sleep(LOOK_EVERY).await;
            if self.is_uncertain.swap(false, Ordering::SeqCst) {
                self.look_again().await;
            }
            let (now, has_held) = (self.clock.now(), began.elapsed() >= HELD);
            // Those that were over at the start were of no use since: their end can wait until the clock is believed.
            let expired = self.let_go(|token| {
                let is_over = token.is_good(self.began) || (has_held && !token.is_good(mint::now()));
                is_over && !token.is_good(now)
            });
            if !expired.is_empty() {
                self.tasks.spawn(Arc::clone(self).keep_ends(expired));
            }
        }
    }

    /// Follows what other servers make and end, each time that this says there is something, for as long as it is polled.
    pub async fn follow(&self, mut changes: watch::Receiver<u64>) -> Infallible {
        while changes.changed().await.is_ok() {
            self.look_again().await;
        }
        pending().await
    }

    /// Knows what the store has after a write whose end is not known, or one of another server. What has ended here stays so, whatever the
    /// store has of it.
    async fn look_again(&self) {
        let _turn = self.changes.lock().await;
        match self.store.tokens().await {
            Ok(tokens) if tokens.is_empty() => {}
            Ok(tokens) => {
                let (open, ended): (Vec<_>, Vec<_>) =
                    tokens.readable.into_iter().partition(|kept| kept.token.ended.is_none());
                let ended: HashSet<_> = ended.into_iter().map(|kept| kept.token.name).collect();
                self.let_go(|token| ended.contains(&token.name));
                self.know(open);
            }
            Err(_) => self.is_uncertain.store(true, Ordering::SeqCst),
        }
    }

    async fn keep_ends(self: Arc<Self>, names: Vec<TokenName>) {
        for name in names {
            if let Err(error) = Arc::clone(&self).end(name.clone(), Ending::Expired).await {
                tracing::warn!(token = %name, %error, "the end of a token could not be kept");
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of a change.
fn finished<T>(changed: Result<Result<T, StoreError>, JoinError>) -> Result<T, StoreError> {
    changed.unwrap_or_else(|error| Err(StoreError::Failed { action: "change a token", cause: error.to_string() }))
}

fn entry(kept: KeptToken) -> (Sha256Digest, Arc<Held>) {
    static NEWEST: AtomicU64 = AtomicU64::new(0);
    let KeptToken { token, digest } = kept;
    let number = NEWEST.fetch_add(1, Ordering::Relaxed);
    (digest, Arc::new(Held { token, number, ended: CancellationToken::new() }))
}

/// The secret of a call that has exactly one.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<Secret> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let (scheme, secret) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| Secret::read(secret)).flatten()
}

/// What the server keeps of the name of a certificate. No secret has the same: each begins with a word that no name begins with.
fn proof(name: &CertificateName) -> Sha256Digest {
    Sha256Digest::from_bytes(Sha256::digest(name.to_string().as_bytes()).into())
}

fn no_secret(error: &getrandom::Error) -> StoreError {
    StoreError::Failed { action: "make a token", cause: error.to_string() }
}

fn certificate_used(other: &TokenName) -> Failure {
    Failure::new(Reason::AlreadyExists, format!("the certificate is that of token {other}"))
        .field("certificate")
        .hint(format!("revoke token {other} first, or name another certificate"))
}

fn past(field: &str) -> Failure {
    Failure::new(Reason::InvalidRequest, format!("{field} is in the past"))
        .field(field)
        .hint("give a later time, or none")
}

fn operators_of_one() -> Failure {
    Failure::new(Reason::InvalidRequest, "the role operator is for all workspaces, and one is named")
        .field("workspaceId")
        .hint("name all workspaces with `*` (`--workspace '*'`), or choose another role")
}

fn name_used(name: &TokenName) -> Failure {
    Failure::new(Reason::AlreadyExists, format!("the name {name} belongs to another token"))
        .field("name")
        .hint("choose another name: none is used twice, also after its token has ended")
}

fn too_many() -> Failure {
    Failure::new(Reason::ResourceExhausted, format!("the server keeps {TOKENS} tokens already"))
}

fn no_token(name: &TokenName) -> Failure {
    Failure::new(Reason::NotFound, format!("there is no token {name}")).hint("see `aptix-server token list`")
}
