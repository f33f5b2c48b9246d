//! What groups of writes expect without having read it, as most writes find it: it is compared as well.

use aptix_model::digest::Sha256Digest;
use aptix_model::record::UnixMillis;
use aptix_model::session::SessionMode;
use aptix_server::store::fleet::Granted;
use aptix_server::store::{Appended, LeaseProof, LocalAppended, Store};

use crate::fleet_store::{grant, member};
use crate::postgres_known::{Shared, mode, trips};
use crate::sample::of_workstation;
use crate::store_contract::{append, batch, workspace};

/// A lease is granted without a look at who holds it, and refused all the same while an agent of another server does, or where the
/// server itself counts as dead.
#[tokio::test]
async fn who_holds_a_lease_is_noticed() {
    let Some(Shared { store, other, client, connection: _served }) = Shared::new().await else { return };
    // They count as alive, and still hear nothing of each other.
    let live = "INSERT INTO servers (id, knows, secret, until) \
        SELECT id, 1, 'secret', 'infinity' FROM unnest($1::uuid[]) AS n(id)";
    client.execute(live, &[&[1, 2].map(|number| member(number).id.0).as_slice()]).await.unwrap();
    append(&store, batch(1, "w", "r1")).await;
    let (granted, cost) = trips(&store, store.take_lease(grant(1, 1, None))).await;
    assert_eq!((granted, cost), (Ok(Granted::Epoch(1)), 1));
    assert_eq!(other.take_lease(grant(2, 2, Some(1))).await, Ok(Granted::Epoch(2)));
    let held = Ok(Granted::Held(UnixMillis(1002)));
    let take = async || trips(&store, store.take_lease(grant(1, 3, None))).await;
    assert_eq!(take().await, (held.clone(), 3));
    assert_eq!(take().await, (held.clone(), 2), "it is not expected to be free again");
    append(&store, batch(2, "w", "r2")).await;
    assert_eq!(take().await, (held.clone(), 3), "the row is known again");
    append(&store, batch(3, "w", "r3")).await;
    // One group, which reads how many batches of the session are in flight.
    let change = store.set_mode(mode("m1", SessionMode::Unrestricted));
    let (changed, refused) = tokio::join!(change, store.take_lease(grant(1, 3, None)));
    assert_eq!((changed.is_ok(), refused), (true, held));
    assert_eq!(trips(&store, append(&store, batch(5, "w", "r5"))).await.1, 2, "the row is as good as unknown");
    // With the secret of the one that is held it is taken over.
    let (granted, cost) = trips(&store, store.take_lease(grant(1, 3, Some(2)))).await;
    assert_eq!((granted, cost), (Ok(Granted::Epoch(3)), 3));
    other.leave(member(2).id).await.unwrap();
    assert_eq!(take().await, (Ok(Granted::Epoch(4)), 1));
    store.leave(member(1).id).await.unwrap();
    assert_eq!(take().await, (Ok(Granted::Dead), 3));
}

/// A batch of the workstation whose id is in use, in whatever workspace, is the one that is stored.
#[tokio::test]
async fn a_batch_of_the_workstation_that_another_server_stored_is_known() {
    let Some(Shared { store, other, .. }) = Shared::new().await else { return };
    store.grant_lease(workspace("w"), Sha256Digest::EMPTY, Vec::new()).await.unwrap();
    let lease = LeaseProof { epoch: 1, secret: Some(Sha256Digest::EMPTY) };
    let own = |number, request| store.append_local(of_workstation(batch(number, "w", request), lease, Vec::new()));
    let theirs = append(&other, batch(2, "v", "theirs")).await;
    let (known, cost) = trips(&store, own(2, "r2")).await;
    assert_eq!((known, cost), (Ok(LocalAppended::Known(Box::new(theirs))), 3));
    let (stored, cost) = trips(&store, own(3, "r3")).await;
    assert!(matches!(stored, Ok(LocalAppended::New(_))), "{stored:?}");
    assert_eq!(cost, 1);
    let (known, cost) = trips(&store, own(3, "r3")).await;
    assert!(matches!(known, Ok(LocalAppended::Known(_))), "{known:?}");
    assert_eq!(cost, 2);
}

/// The first batch of a session is stored without a look for the session, unless another server knows that one already.
#[tokio::test]
async fn a_new_session_is_noticed_where_it_is_not_new() {
    let Some(Shared { store, other, .. }) = Shared::new().await else { return };
    let of = |number: u128, session: &str| {
        let mut batch = batch(number, "w", &format!("r{number}"));
        batch.origin.session_id = Some(session.to_owned());
        batch
    };
    append(&store, of(1, "one")).await;
    assert_eq!(trips(&store, append(&store, of(2, "two"))).await.1, 1);
    append(&other, of(3, "session")).await;
    other.set_mode(mode("m1", SessionMode::Restricted)).await.unwrap();
    append(&store, of(4, "one")).await;
    let (refused, cost) = trips(&store, store.append(of(5, "session"))).await;
    assert!(matches!(refused, Ok(Appended::Restricted(_))), "{refused:?}");
    assert_eq!(cost, 3);
}
