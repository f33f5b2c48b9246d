//! What servers on one store learn of each other through it, and who holds a lease: the same for every store that is shared.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{Revision, Uuid};
use aptix_model::presence::Presence;
use aptix_model::record::UnixMillis;
use aptix_model::token::{Ended, Ending, Role, Scope, Token};
use aptix_server::store::access::{KeptToken, TokenAdded};
use aptix_server::store::fleet::{Grant, Granted, Hint, Hints, Holder, Member, ServerId};
use aptix_server::store::memory::shared::SharedMemory;
use aptix_server::store::{LeaseProof, Store};

use crate::server::SOON;
use crate::store_contract::{append, batch, workspace};
use crate::until::until;

pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) fn member(number: u128) -> Member {
    let address = (number != 2).then(|| format!("http://server-{number}"));
    Member { id: ServerId(Uuid::from_u128(number)), address, secret: format!("secret {number}") }
}

fn digest(byte: u8) -> Sha256Digest {
    Sha256Digest::from_bytes([byte; 32])
}

fn presence() -> Presence {
    Presence { version: "1".to_owned(), roots: vec!["app".to_owned()], mode: None, features: vec!["read".to_owned()] }
}

fn holder(server: u128) -> Holder {
    let agent = format!("agent-{server}").parse().unwrap();
    Holder {
        server: ServerId(Uuid::from_u128(server)),
        agent,
        since: UnixMillis(1000 + server as u64),
        presence: presence(),
    }
}

pub(crate) fn grant(server: u128, secret: u8, held: Option<u8>) -> Grant {
    Grant { workspace: workspace("w"), secret: digest(secret), held: held.map(digest), holder: holder(server) }
}

fn token(name: &str) -> KeptToken {
    let token = Token {
        name: name.parse().unwrap(),
        role: Role::Reader,
        scope: Scope::One(workspace("w")),
        created: UnixMillis(1),
        expires: None,
        ended: None,
        certificate: None,
    };
    KeptToken { token, digest: digest(9) }
}

/// Waits for a hint.
async fn hint(hints: &mut Hints, wanted: impl Fn(&Hint) -> bool) {
    while !wanted(&tokio::time::timeout(SOON, hints.recv()).await.expect("a hint comes in time").unwrap()) {}
}

/// A lease has one holder, which is told at every server; it is free when its server dies, leaves, or gives it back.
async fn a_lease_has_one_holder(a: Arc<dyn Store>, b: Arc<dyn Store>) {
    let w = || workspace("w");
    assert_eq!(a.take_lease(grant(1, 1, None)).await, Ok(Granted::Dead), "its server does not live");
    a.join(member(1), LONG).await.unwrap();
    assert_eq!(b.join(member(2), LONG).await.unwrap().others, [member(1)]);
    assert_eq!(a.renew(member(1).id, LONG).await.unwrap().unwrap().others, [member(2)]);
    assert_eq!(a.holder(w()).await, Ok(None));
    assert_eq!(a.take_lease(grant(1, 1, None)).await, Ok(Granted::Epoch(1)));
    assert_eq!(b.holder(w()).await, Ok(Some((holder(1), member(1)))));
    assert_eq!(b.roots(w()).await.unwrap(), ["app"]);
    assert_eq!(b.take_lease(grant(2, 2, None)).await, Ok(Granted::Held(UnixMillis(1001))));
    assert_eq!(b.take_lease(grant(2, 2, Some(7))).await, Ok(Granted::Held(UnixMillis(1001))), "another secret");
    let proof = |epoch, secret| LeaseProof { epoch, secret: Some(digest(secret)) };
    assert!(b.lease(w()).await.unwrap().admits(proof(1, 1)));
    // With its secret the lease goes to another server, and what is left of the former one frees nothing.
    assert_eq!(b.take_lease(grant(2, 2, Some(1))).await, Ok(Granted::Epoch(2)));
    assert!(!a.lease(w()).await.unwrap().admits(proof(1, 1)));
    a.release_leases(vec![(w(), digest(1))]).await.unwrap();
    assert_eq!(a.holder(w()).await, Ok(Some((holder(2), member(2)))));
    b.release_leases(vec![(w(), digest(2))]).await.unwrap();
    assert_eq!(a.holder(w()).await, Ok(None));
    // A server knows itself which of its own agents holds a lease.
    assert_eq!(a.take_lease(grant(1, 9, None)).await, Ok(Granted::Epoch(3)));
    assert_eq!(a.take_lease(grant(1, 3, None)).await, Ok(Granted::Epoch(4)));
    a.leave(member(1).id).await.unwrap();
    assert_eq!((b.holder(w()).await, a.renew(member(1).id, LONG).await), (Ok(None), Ok(None)));
    assert_eq!(b.take_lease(grant(2, 4, None)).await, Ok(Granted::Epoch(5)));
    // Time alone ends a server, and the former name of one that comes back is dead.
    b.leave(member(2).id).await.unwrap();
    a.join(member(3), Duration::from_millis(20)).await.unwrap();
    until(async || {
        let taken = a.take_lease(grant(3, 5, None)).await.unwrap();
        (taken == Granted::Dead).then_some(())
    })
    .await;
    assert_eq!((a.renew(member(3).id, LONG).await, b.holder(w()).await), (Ok(None), Ok(None)));
    assert!(b.join(member(4), LONG).await.unwrap().others.is_empty());
}

/// What changes is seen, and hinted at to the others.
async fn what_changes_is_seen(a: Arc<dyn Store>, b: Arc<dyn Store>) {
    let w = || workspace("w");
    let seen = async |store: &Arc<dyn Store>| store.look(vec![workspace("none"), w()]).await.unwrap().seen;
    let tokens = async |store: &Arc<dyn Store>| store.look(Vec::new()).await.unwrap().tokens;
    a.join(member(1), LONG).await.unwrap();
    b.join(member(2), LONG).await.unwrap();
    a.renew(member(1).id, LONG).await.unwrap().unwrap();
    let before = tokens(&b).await;
    assert_eq!(seen(&a).await, [None, None]);
    let mut hints = b.hints().expect("a shared store gives hints");
    let first = hinted(&a, &mut hints).await;
    let created = seen(&b).await[1].unwrap();
    assert_eq!((created.newest, created.lease.epoch), (first, 0));
    assert_eq!(a.take_lease(grant(1, 1, None)).await, Ok(Granted::Epoch(1)));
    hint(&mut hints, |hint| *hint == Hint::Workspace(w())).await;
    let leased = seen(&b).await[1].unwrap();
    assert_eq!((leased.instance, leased.newest, leased.lease.epoch), (created.instance, first, 1));
    assert_eq!(a.add_token(token("t")).await, Ok(TokenAdded::New));
    hint(&mut hints, |hint| *hint == Hint::Tokens).await;
    let made = tokens(&b).await;
    assert_ne!(made, before);
    let ended = Ended { at: UnixMillis(5), how: Ending::Revoked };
    assert!(b.begin_deletion(w(), ended).await.is_err(), "an agent serves it");
    assert!(seen(&b).await[1].is_some(), "it is not being deleted");
    a.release_leases(vec![(w(), digest(1))]).await.unwrap();
    assert_eq!(a.begin_deletion(w(), ended).await, Ok(Some(vec!["t".parse().unwrap()])));
    hint(&mut hints, |hint| *hint == Hint::Tokens).await;
    hint(&mut hints, |hint| *hint == Hint::Workspace(w())).await;
    assert_ne!(tokens(&b).await, made);
    assert_eq!((seen(&b).await, b.holder(w()).await), (vec![None, None], Ok(None)));
    until(async || b.continue_deletion(w()).await.unwrap().is_none_or(|step| step.is_done).then_some(())).await;
    append(&a, batch(900, "w", "again")).await;
    let again = seen(&b).await[1].unwrap();
    assert_eq!((again.newest, again.lease.epoch), (Revision(1), 0));
    assert_ne!(again.instance, created.instance, "another workspace of the same name");
}

/// Stores batches until a hint of one comes, as it does once the other server listens; answers the newest revision.
async fn hinted(a: &Arc<dyn Store>, hints: &mut Hints) -> Revision {
    let mut number = 0;
    loop {
        number += 1;
        let stored = append(a, batch(number, "w", &format!("r{number}"))).await;
        let of_batch = |hint: &Hint| *hint == Hint::Event(workspace("w"), stored.id);
        if tokio::time::timeout(Duration::from_millis(500), hint(hints, of_batch)).await.is_ok() {
            return stored.revision;
        }
    }
}

#[tokio::test]
async fn in_memory() {
    let a = Arc::new(SharedMemory::default());
    let b = a.another();
    a_lease_has_one_holder(a, b).await;
    let a = Arc::new(SharedMemory::default());
    let b = a.another();
    what_changes_is_seen(a, b).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn in_postgresql() {
    let Some(database) = crate::cluster::Database::new() else { return };
    a_lease_has_one_holder(Arc::new(database.open().await), Arc::new(database.open().await)).await;
    let Some(database) = crate::cluster::Database::new() else { return };
    what_changes_is_seen(Arc::new(database.open().await), Arc::new(database.open().await)).await;
}
