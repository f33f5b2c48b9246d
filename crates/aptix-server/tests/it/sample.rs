//! A store with records of every kind, made through its trait alone.

use std::sync::Arc;

use aptix_model::batch::BlobRef;
use aptix_model::batch_event::EventKind;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, FilePatchId, Uuid};
use aptix_model::id_block;
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, Preparation, Source, UnixMillis};
use aptix_model::session::SessionMode;
use aptix_model::state::BatchState;
use aptix_model::token::{Ended, Ending, Role, Scope, Token};
use aptix_server::store::access::{KeptToken, TokenAdded};
use aptix_server::store::session::{ModeChange, ModeChanged};
use aptix_server::store::{FileUpdate, LeaseProof, LocalBatch, Store, Transition, Transitioned, Twins, UploadId};
use sha2::{Digest, Sha256};

use crate::store_contract::{append, batch, prepared, step, workspace};

/// The blob that the store has: three chunks.
pub(crate) fn blob() -> (BlobRef, Vec<u8>) {
    let bytes: Vec<u8> = (0..100_u32).flat_map(|number| Sha256::digest(number.to_be_bytes())).collect();
    let sha256 = Sha256Digest::from_bytes(Sha256::digest(&bytes).into());
    (BlobRef { sha256, size_bytes: bytes.len() as u64 }, bytes)
}

/// A file as a report names it.
pub(crate) fn file(path: &str, content: Option<BlobRef>, twins: Twins) -> FileUpdate {
    let doc_path = DocPath::new(&path.to_lowercase()).unwrap();
    FileUpdate { path: RootedPath::new(path).unwrap(), doc_path, content, twins }
}

/// A batch that the workstation carried out by itself, which left these files.
pub(crate) fn of_workstation(batch: BatchRecord, lease: LeaseProof, files: Vec<FileUpdate>) -> LocalBatch {
    let batch = BatchRecord { state: BatchState::Applied, ..batch };
    let Transition { actor, reason, .. } = step(&batch, BatchState::Applied);
    LocalBatch { batch, actor, reason, reverts: None, lease, files }
}

/// A token of this name.
pub(crate) fn token(name: &str, role: Role, scope: Scope) -> KeptToken {
    let name = name.parse().unwrap();
    let token = Token {
        name,
        role,
        scope,
        created: UnixMillis(5),
        expires: Some(UnixMillis(1 << 60)),
        ended: None,
        certificate: None,
    };
    let digest = Sha256Digest::from_bytes(Sha256::digest(token.name.as_str()).into());
    KeptToken { token, digest }
}

async fn take(store: &Arc<impl Store + ?Sized>, step: Transition) -> BatchRecord {
    match store.transition(step).await {
        Ok(Transitioned::Done(batch)) => batch,
        other => panic!("the step is taken, and not {other:?}"),
    }
}

/// Fills a store: batches in several states, files with twins, a plan, sessions, tokens, a blob.
pub(crate) async fn fill(store: &Arc<impl Store + ?Sized>) {
    store.grant_lease(workspace("w"), Sha256Digest::EMPTY, vec!["main".to_owned()]).await.unwrap();
    store.create_workspace(workspace("empty")).await.unwrap();
    upload(store).await;
    let (blob, _) = blob();
    let made = append(store, batch(1, "w", "r1")).await;
    let files = vec![
        file("main/a.txt", Some(blob), Twins::MayExist),
        file("main/A.txt", Some(BlobRef { size_bytes: 9, ..blob }), Twins::MayExist),
        file("main/b.txt", Some(blob), Twins::Gone),
    ];
    take(store, Transition { files, ..step(&made, BatchState::Applied) }).await;
    append(store, batch(2, "w", "r2")).await;
    let cancelled = append(store, batch(3, "v", "r1")).await;
    take(store, Transition { report: None, ..step(&cancelled, BatchState::Cancelled) }).await;
    plans(store).await;
    let change = ModeChange {
        workspace: workspace("v"),
        session: "closed".parse().unwrap(),
        owner: "ann".parse().unwrap(),
        request: "m1".parse().unwrap(),
        to: SessionMode::Restricted,
        by: Some("token ops".to_owned()),
        at: UnixMillis(3),
    };
    assert!(matches!(store.set_mode(change).await, Ok(ModeChanged::Asked(..))));
    for (name, role, scope) in [
        ("agent", Role::Agent, Scope::One(workspace("w"))),
        ("gone", Role::Orchestrator, Scope::All),
        ("operator", Role::Operator, Scope::All),
    ] {
        assert_eq!(store.add_token(token(name, role, scope)).await, Ok(TokenAdded::New));
    }
    let ended = Ended { at: UnixMillis(7), how: Ending::Revoked };
    assert!(store.end_token("gone".parse().unwrap(), ended).await.unwrap().is_some());
}

async fn upload(store: &Arc<impl Store + ?Sized>) {
    let ((blob, bytes), upload) = (blob(), UploadId(Uuid::from_u128(5)));
    for (index, chunk) in (0..).zip(bytes.chunks(1200)) {
        store.put_chunk(upload, index, chunk.to_vec().into()).await.unwrap();
    }
    store.commit_upload(upload, workspace("w"), blob).await.unwrap();
    let empty = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 0 };
    store.commit_upload(UploadId(Uuid::from_u128(6)), workspace("w"), empty).await.unwrap();
}

/// A plan that was replaced and let be applied, and one that waits.
async fn plans(store: &Arc<impl Store + ?Sized>) {
    let (id, one) = (BatchId(Uuid::from_u128(8 << 17)), prepared(8, "p1", 900, None));
    let one = append(store, BatchRecord { id, ids: id_block::of(id, &one.batch), ..one }).await;
    let hunk = Some(FilePatchId(Uuid::from_u128((8 << 17) | 1)));
    let two = prepared(9, "p2", 900, Some(one.id));
    let preparation = Preparation { hunk, ..two.preparation().unwrap().clone() };
    let two = append(store, BatchRecord { source: Source::Prepared(Box::new(preparation)), ..two }).await;
    let freed = Some("p3".parse().unwrap());
    take(store, Transition { kind: EventKind::Freed, freed, report: None, ..step(&two, BatchState::Approved) }).await;
    append(store, prepared(10, "p4", 901, None)).await;
}
