//! The tokens of a store, in memory: looked up with every call, ended at once.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::reason::Reason;
use aptix_model::record::UnixMillis;
use aptix_model::token::{Ended, Ending, Role, Scope, Token};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::codegen::http::{HeaderMap, header};

use super::{Held, Principal, Secret, unauthenticated};
use crate::caller::Caller;
use crate::dispatcher::clock::Clock;
use crate::dispatcher::refusal::{Refusal, no_workspace};
use crate::store::access::{KeptToken, TOKENS, TokenAdded};
use crate::store::{Store, StoreError};

/// How often tokens are looked at that may have expired: an open stream lives this much longer than its token at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The tokens of a store.
pub struct Registry {
    store: Arc<dyn Store>,
    clock: Clock,
    known: RwLock<Known>,
}

struct Known {
    /// Those that have not ended.
    good: HashMap<Sha256Digest, Arc<Held>>,
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
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let tokens = store.tokens().await?;
        for why in &tokens.damaged {
            tracing::error!(why, "a token is of no use: its record is damaged");
        }
        let closed = CancellationToken::new();
        if !tokens.is_empty() {
            closed.cancel();
        }
        let clock = Clock::default();
        // Where the clock was set back while no server ran, a token is at least as old as the newest.
        let all = tokens.readable.iter().map(|kept| &kept.token);
        let times = all.flat_map(|token| [Some(token.created), token.ended.map(|ended| ended.at)]);
        times.flatten().max().into_iter().for_each(|newest| clock.raise(newest));
        let good = tokens.readable.into_iter().filter(|kept| kept.token.ended.is_none()).map(entry).collect();
        Ok(Self { store, clock, known: RwLock::new(Known { good, closed }) })
    }

    /// Whether calls need a token.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.read().closed.is_cancelled()
    }

    /// Who makes a call that came over this connection with these headers.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, the same whatever is wrong with the token.
    pub fn authenticate(&self, caller: Caller, headers: &HeaderMap) -> Result<Principal, Failure> {
        if caller == Caller::Owner {
            return Ok(Principal::Owner);
        }
        let known = self.read();
        if !known.closed.is_cancelled() {
            return Ok(Principal::Anyone(known.closed.clone()));
        }
        let held = bearer(headers).and_then(|secret| known.good.get(&secret.digest()));
        let held = held.filter(|held| held.token.is_good(self.clock.now()));
        held.map(|held| Principal::Holder(Arc::clone(held))).ok_or_else(unauthenticated)
    }

    /// Makes a token; its secret is in this answer and nowhere else.
    ///
    /// # Errors
    /// When what is asked is not acceptable, the name is used, or the store fails.
    pub async fn create(&self, asked: NewToken) -> Result<(Token, Secret), Refusal> {
        let now = self.clock.now();
        if asked.expires.is_some_and(|expires| expires <= now) {
            return Err(past("expireTime").into());
        }
        if asked.role == Role::Operator && asked.scope != Scope::All {
            return Err(operators_of_one().into());
        }
        let secret =
            Secret::mint().map_err(|error| StoreError::Failed { action: "make a token", cause: error.to_string() })?;
        let NewToken { name, role, scope, expires } = asked;
        let token = Token { name, role, scope, created: now, expires, ended: None };
        let kept = KeptToken { token: token.clone(), digest: secret.digest() };
        match self.store.add_token(kept.clone()).await? {
            TokenAdded::New => {}
            TokenAdded::NameUsed => return Err(Refusal::denied(name_used(&token.name))),
            TokenAdded::TooMany => return Err(Refusal::denied(too_many())),
            TokenAdded::NoWorkspace => {
                let Scope::One(workspace) = &token.scope else { return Err(Refusal::denied(too_many())) };
                return Err(Refusal::denied(no_workspace(workspace)));
            }
        }
        let mut known = self.write();
        known.good.extend([entry(kept)]);
        known.closed.cancel();
        Ok((token, secret))
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
    pub async fn revoke(&self, name: TokenName) -> Result<Token, Refusal> {
        let ended = self.end(name.clone(), Ending::Revoked).await?;
        ended.ok_or_else(|| Refusal::denied(no_token(&name)))
    }

    /// Creates a workspace; answers whether there was none.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn create_workspace(&self, workspace: WorkspaceId) -> Result<bool, StoreError> {
        self.store.create_workspace(workspace).await
    }

    /// Ends tokens whose time is over, for as long as it is polled.
    pub async fn expire(&self) -> Infallible {
        loop {
            sleep(LOOK_EVERY).await;
            let now = self.clock.now();
            let expired: Vec<_> = self
                .read()
                .good
                .values()
                .filter(|held| !held.token.is_good(now))
                .map(|held| held.token.name.clone())
                .collect();
            for name in expired {
                if let Err(error) = self.end(name.clone(), Ending::Expired).await {
                    tracing::warn!(token = %name, %error, "the end of a token could not be kept");
                }
            }
        }
    }

    async fn end(&self, name: TokenName, how: Ending) -> Result<Option<Token>, StoreError> {
        self.write().good.retain(|_, held| {
            let stays = held.token.name != name;
            if !stays {
                held.ended.cancel();
            }
            stays
        });
        self.store.end_token(name, Ended { at: self.clock.now(), how }).await
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry(kept: KeptToken) -> (Sha256Digest, Arc<Held>) {
    let KeptToken { token, digest } = kept;
    (digest, Arc::new(Held { token, ended: CancellationToken::new() }))
}

/// The secret of a call that has exactly one.
fn bearer(headers: &HeaderMap) -> Option<Secret> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let (scheme, secret) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| Secret::read(secret)).flatten()
}

fn past(field: &str) -> Failure {
    Failure::new(Reason::InvalidRequest, format!("{field} is in the past"))
        .field(field)
        .hint("give a later time, or none")
}

fn operators_of_one() -> Failure {
    Failure::new(Reason::InvalidRequest, "the role operator is for all workspaces, and one is named")
        .field("workspaceId")
        .hint("leave the workspace out, or choose another role")
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
