//! What every store promises, held against each of them; and what the one on disk promises beyond the end of a process.

use std::sync::Arc;

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch::{Batch, BlobRef, Content, CreateFile, FileEdit, FilePatch, Origin, Target};
use aptix_model::batch_event::{EventFacts, EventKind};
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Revision, Uuid, WorkspaceId};
use aptix_model::id_block;
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::plan::Plan;
use aptix_model::record::{BatchRecord, Preparation, Sent, Source, UnixMillis};
use aptix_model::report::{Outcome, Report};
use aptix_model::state::BatchState;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::{
    Appended, BatchSelector, CloudFile, Due, FileUpdate, Known, Lease, LeaseProof, Listed, Store, StoreError,
    Transition, Transitioned, Twins, UploadId,
};

use crate::place::promised;

/// With the blob that files here have, in the workspace `w`.
pub(crate) async fn with_empty_blob<S: Store>(store: S) -> Arc<S> {
    let blob = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 0 };
    store.commit_upload(UploadId(Uuid::from_u128(1)), workspace("w"), blob).await.unwrap();
    Arc::new(store)
}

promised! {
    what_is_stored_is_found_again,
    revisions_have_no_gap_and_begin_at_one,
    one_request_id_stores_one_batch,
    a_step_is_taken_from_the_expected_state_and_lease_alone,
    prepared_batches_expire_and_are_replaced,
    a_step_makes_files_at_the_same_instant,
    a_file_without_twins_takes_the_place_of_what_is_kept_of_them,
    a_deleted_file_is_not_found_any_more,
    lists_go_backwards_and_events_forwards,
    each_commit_has_a_digest_of_its_own,
    an_event_says_what_happened,
    blobs_are_seen_when_they_are_whole,
    a_closed_store_takes_nothing,
}

pub(crate) fn workspace(name: &str) -> WorkspaceId {
    name.parse().unwrap()
}

pub(crate) fn batch(number: u128, in_workspace: &str, request: &str) -> BatchRecord {
    let id = id_block::batch_id(Uuid::from_u128(number << 64));
    let create =
        CreateFile { content: Content::Text(format!("text {number}")), overwrite: false, content_format: None };
    let file = FilePatch {
        target: Target::Path("a.txt".to_owned()),
        key: Some("key".to_owned()),
        label: None,
        edit: FileEdit::CreateFile(create),
    };
    let batch = Batch { label: Some("label".to_owned()), files: vec![file], ..Batch::default() };
    BatchRecord {
        id,
        workspace: workspace(in_workspace),
        revision: Revision::default(),
        state: BatchState::Approved,
        ids: id_block::of(id, &batch),
        batch,
        origin: Origin { session_id: Some("session".to_owned()), conversation_id: None, turn_id: Some("7".to_owned()) },
        request_id: request.parse().unwrap(),
        created: UnixMillis(1_700_000_000_123),
        updated: UnixMillis(1_700_000_000_123),
        report: None,
        source: Source::Submitted,
        reverted_by: None,
        is_restricted: false,
        removed_content: None,
        sent: Sent::default(),
    }
}

fn report() -> Report {
    Report {
        outcome: Outcome::Applied,
        files: vec![],
        failures: vec![],
        warnings: Vec::new(),
        diff: "diff".to_owned(),
        diff_omitted: false,
    }
}

pub(crate) fn step(batch: &BatchRecord, to: BatchState) -> Transition {
    Transition {
        workspace: batch.workspace.clone(),
        batch: batch.id,
        kind: EventKind::Reported,
        actor: Actor { kind: ActorKind::Agent, name: Some("laptop".to_owned()) },
        reason: Some("as planned".to_owned()),
        from: batch.state,
        to,
        at: UnixMillis(1_800_000_000_000),
        lease: None,
        report: Some(report()),
        files: Vec::new(),
        freed: None,
    }
}

pub(crate) async fn append(store: &Arc<impl Store + ?Sized>, record: BatchRecord) -> BatchRecord {
    match store.append(record).await.unwrap() {
        Appended::New(stored) => *stored,
        other => panic!("not stored: {other:?}"),
    }
}

/// TUL-002-7.1.4, TUL-002-8.6.3: under its id.
async fn what_is_stored_is_found_again(store: Arc<impl Store>) {
    let (w, v) = (workspace("w"), workspace("w.v"));
    assert_eq!(store.newest(w.clone()).await, Ok(None));
    let stored = append(&store, batch(1, "w", "r1")).await;
    assert_eq!(stored, BatchRecord { revision: Revision(1), ..batch(1, "w", "r1") });
    for which in [BatchSelector::Id(stored.id), BatchSelector::Request(stored.request_id.clone())] {
        assert_eq!(store.batch(w.clone(), which.clone()).await, Ok(Some(stored.clone())));
        assert_eq!(store.batch(v.clone(), which).await, Ok(None));
    }
    assert_eq!(store.newest(w).await, Ok(Some(Revision(1))));
    assert_eq!(store.newest(v).await, Ok(None));
}

async fn revisions_have_no_gap_and_begin_at_one(store: Arc<impl Store>) {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200_u128 {
        let store = Arc::clone(&store);
        let name = if number % 2 == 0 { "w" } else { "v" };
        tasks.spawn(async move { append(&store, batch(number + 1, name, &format!("r{number}"))).await });
    }
    let mut stored = tasks.join_all().await;
    stored.sort_by_key(|batch| (batch.workspace.clone(), batch.revision));
    for (index, batch) in stored.iter().enumerate() {
        assert_eq!(batch.revision, Revision(index as u64 % 100 + 1));
    }
    let events = store.events(workspace("w"), Revision(0), 1000).await.unwrap();
    let expected: Vec<_> = stored.iter().filter(|batch| batch.workspace.as_str() == "w").collect();
    assert_eq!(events.len(), 100);
    for (event, batch) in events.into_iter().zip(expected) {
        let event = event.unwrap();
        assert_eq!((event.revision, event.batch), (batch.revision, batch.id));
    }
}

async fn one_request_id_stores_one_batch(store: Arc<impl Store>) {
    let first = append(&store, batch(1, "w", "same")).await;
    let offered = batch(2, "w", "same");
    let known = Known { stored: first.clone(), offered: offered.clone() };
    assert_eq!(store.append(offered).await, Ok(Appended::Known(Box::new(known))));
    assert_eq!(store.newest(workspace("w")).await, Ok(Some(Revision(1))));
    append(&store, batch(3, "v", "same")).await;
}

async fn a_step_is_taken_from_the_expected_state_and_lease_alone(store: Arc<impl Store>) {
    let first = append(&store, batch(1, "w", "r1")).await;
    let secrets = [1, 2, 3].map(|byte| Sha256Digest::from_bytes([byte; 32]));
    let with =
        |epoch, secret| Transition { lease: Some(LeaseProof { epoch, secret }), ..step(&first, BatchState::Applied) };
    let with_lease = |epoch| with(epoch, Some(secrets[1]));
    for epoch in [0, 1] {
        assert_eq!(store.transition(with_lease(epoch)).await, Ok(Transitioned::OtherLease));
    }
    assert_eq!(store.lease(workspace("w")).await, Ok(Lease::default()));
    assert_eq!(store.grant_lease(workspace("w"), secrets[0], Vec::new()).await, Ok(1));
    assert_eq!(store.grant_lease(workspace("w"), secrets[1], vec!["app".to_owned()]).await, Ok(2));
    assert_eq!(store.grant_lease(workspace("v"), secrets[2], Vec::new()).await, Ok(1));
    assert_eq!(store.lease(workspace("w")).await, Ok(Lease { epoch: 2, secret: Some(secrets[1]) }));
    for secret in [None, Some(secrets[0]), Some(secrets[2])] {
        assert_eq!(store.transition(with(2, secret)).await, Ok(Transitioned::OtherLease), "an epoch alone is no lease");
    }
    assert_eq!(store.newest(workspace("v")).await, Ok(Some(Revision(0))), "an agent makes a workspace known");
    assert_eq!(store.transition(with_lease(1)).await, Ok(Transitioned::OtherLease));
    let elsewhere = Transition { workspace: workspace("v"), ..with_lease(1) };
    assert_eq!(store.transition(elsewhere).await, Ok(Transitioned::Unknown));
    let applied = BatchRecord {
        revision: Revision(2),
        state: BatchState::Applied,
        updated: UnixMillis(1_800_000_000_000),
        report: Some(report()),
        ..first.clone()
    };
    assert_eq!(store.transition(with_lease(2)).await, Ok(Transitioned::Done(applied.clone())));
    assert_eq!(store.transition(with_lease(2)).await, Ok(Transitioned::OtherState(applied.clone())));
    assert_eq!(store.batch(workspace("w"), BatchSelector::Id(first.id)).await, Ok(Some(applied)));
}

fn file(path: &str, size_bytes: u64) -> FileUpdate {
    FileUpdate {
        path: RootedPath::new(path).unwrap(),
        doc_path: DocPath::new(&path.to_lowercase()).unwrap(),
        content: Some(BlobRef { sha256: Sha256Digest::EMPTY, size_bytes }),
        twins: Twins::MayExist,
    }
}

/// A prepared batch that can be applied until a time.
pub(crate) fn prepared(number: u128, request: &str, expires: u64, replaces: Option<BatchId>) -> BatchRecord {
    let (owner, expires) = ("ann".parse().unwrap(), UnixMillis(expires));
    let plan = Some(Plan { report: report(), places: vec![], evidence: vec![] });
    let preparation = Preparation { owner, expires, plan, replaces, hunk: None, freed: None };
    let source = Source::Prepared(Box::new(preparation));
    BatchRecord { state: BatchState::Prepared, source, ..batch(number, "w", request) }
}

/// A prepared batch is found by when it expires until it is applied or replaced; it is replaced in one step with the new one.
async fn prepared_batches_expire_and_are_replaced(store: Arc<impl Store>) {
    let (w, due) = (workspace("w"), |at| store.due(UnixMillis(at), None, 10));
    let place = |expires, batch: &BatchRecord| Due { key: (UnixMillis(expires), batch.id), workspace: workspace("w") };
    let first = append(&store, prepared(1, "r1", 300, None)).await;
    let second = append(&store, prepared(2, "r2", 200, None)).await;
    assert_eq!(store.batch(w.clone(), BatchSelector::Id(first.id)).await, Ok(Some(first.clone())));
    assert_eq!(due(199).await, Ok(vec![]));
    assert_eq!(due(300).await, Ok(vec![place(200, &second), place(300, &first)]));
    let after = |due: Due| store.due(UnixMillis(300), Some(due.key), 10);
    assert_eq!(after(place(200, &second)).await, Ok(vec![place(300, &first)]), "the next page");
    assert_eq!(after(place(300, &first)).await, Ok(vec![]));
    let third = append(&store, prepared(3, "r3", 900, Some(first.id))).await;
    assert_eq!(third.revision, Revision(4), "the step of the one that it replaces has a revision of its own");
    let replaced = store.batch(w.clone(), BatchSelector::Id(first.id)).await.unwrap().unwrap();
    assert_eq!((replaced.state, replaced.revision), (BatchState::Cancelled, Revision(3)));
    let again = store.append(prepared(4, "r4", 900, Some(first.id))).await;
    assert_eq!(again, Ok(Appended::NotReplaced(Some(Box::new(replaced)))));
    let unknown = BatchId(Uuid::from_u128(99));
    assert_eq!(store.append(prepared(4, "r4", 900, Some(unknown))).await, Ok(Appended::NotReplaced(None)));
    assert_eq!(store.newest(w.clone()).await, Ok(Some(Revision(4))), "what replaces nothing is not stored");
    let free = Transition {
        kind: EventKind::Freed,
        freed: Some("apply".parse().unwrap()),
        report: None,
        ..step(&second, BatchState::Approved)
    };
    let Ok(Transitioned::Done(freed)) = store.transition(free).await else { panic!("the step is taken") };
    assert_eq!(freed.preparation().unwrap().freed, Some("apply".parse().unwrap()));
    let Ok(Transitioned::Done(applied)) = store.transition(step(&freed, BatchState::Applied)).await else {
        panic!("the step is taken")
    };
    assert_eq!(applied.preparation(), freed.preparation(), "what had it applied stays");
    assert_eq!(store.batch(w.clone(), BatchSelector::Id(second.id)).await, Ok(Some(applied)));
    assert_eq!(due(u64::MAX).await, Ok(vec![place(900, &third)]));
    assert_eq!(store.counts(workspace("w")).await.unwrap().unwrap().open_batches, 1);
}

/// TUL-002-8.6.8: the uploaded files are cloud files once the report is stored.
async fn a_step_makes_files_at_the_same_instant(store: Arc<impl Store>) {
    let w = workspace("w");
    let first = append(&store, batch(1, "w", "r1")).await;
    let second = append(&store, batch(2, "w", "r2")).await;
    let files = vec![file("app/B", 1), file("app/a", 2), file("app/A", 3), file("app/a/b", 4)];
    store.transition(Transition { files, ..step(&first, BatchState::Applied) }).await.unwrap();
    store.transition(Transition { files: vec![file("app/B", 9)], ..step(&second, BatchState::Applied) }).await.unwrap();
    let paths = |files: Vec<aptix_server::store::CloudFile>| -> Vec<(String, u64, u64)> {
        files.into_iter().map(|file| (file.path.to_string(), file.content.size_bytes, file.revision.0)).collect()
    };
    let all = paths(listed_files(&store, None, 10).await);
    let expected = [("app/A", 3, 3), ("app/B", 9, 4), ("app/a", 2, 3), ("app/a/b", 4, 3)];
    assert_eq!(all, expected.map(|(path, size, revision)| (path.to_owned(), size, revision)));
    let after = Some(RootedPath::new("app/B").unwrap());
    assert_eq!(paths(listed_files(&store, after, 1).await), all[2..3]);
    let twins = store.files_with_key(w.clone(), DocPath::new("app/a").unwrap()).await.unwrap();
    assert_eq!(paths(twins).len(), 2);
    assert_eq!(store.file(w, RootedPath::new("app/b").unwrap()).await, Ok(None));
    assert_eq!(store.files(workspace("v"), None, 10).await, Ok(vec![]));
}

async fn a_file_without_twins_takes_the_place_of_what_is_kept_of_them(store: Arc<impl Store>) {
    let w = workspace("w");
    let mut batches = Vec::new();
    for number in 1..=3 {
        batches.push(append(&store, batch(number, "w", &format!("r{number}"))).await);
    }
    let update = |batch, files| {
        let step = Transition { files, ..step(batch, BatchState::Applied) };
        store.transition(step)
    };
    let alone = |path| FileUpdate { twins: Twins::Gone, ..file(path, 7) };
    // The three go into one group of writes, or into several.
    let (first, second, third) = tokio::join!(
        update(&batches[0], vec![file("app/a", 1), file("app/A", 2), file("app/a.b", 3)]),
        update(&batches[1], vec![alone("app/A")]),
        update(&batches[2], vec![file("app/a", 4), alone("app/A.b"), alone("app/c")]),
    );
    for answer in [first, second, third] {
        assert!(matches!(answer, Ok(Transitioned::Done(_))));
    }
    let files = listed_files(&store, None, 10).await;
    let kept: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.content.size_bytes)).collect();
    assert_eq!(kept, [("app/A", 7), ("app/A.b", 7), ("app/a", 4), ("app/c", 7)]);
    let with_key = store.files_with_key(w, DocPath::new("app/a.b").unwrap()).await.unwrap();
    assert_eq!(with_key.len(), 1);
}

async fn a_deleted_file_is_not_found_any_more(store: Arc<impl Store>) {
    let w = workspace("w");
    let mut batches = Vec::new();
    for number in 1..=4 {
        batches.push(append(&store, batch(number, "w", &format!("r{number}"))).await);
    }
    let update = |batch, files| {
        let step = Transition { files, ..step(batch, BatchState::Applied) };
        store.transition(step)
    };
    let gone = |path| FileUpdate { content: None, ..file(path, 0) };
    let alone = |update| FileUpdate { twins: Twins::Gone, ..update };
    // Deletions happen before creations, in any order of the updates: `app/b` moves to `app/B`, and `app/c`
    // is deleted to make room for another.
    let (first, second, third, fourth) = tokio::join!(
        update(&batches[0], vec![file("app/a", 1), file("app/A", 2), file("app/b", 3), file("app/c", 4)]),
        update(&batches[1], vec![gone("app/a"), gone("app/never")]),
        update(&batches[2], vec![file("app/B", 5), alone(gone("app/b")), file("app/c", 6), gone("app/c")]),
        update(&batches[3], vec![file("app/d", 7)]),
    );
    assert!([first, second, third, fourth].iter().all(|answer| matches!(answer, Ok(Transitioned::Done(_)))));
    let files = listed_files(&store, None, 10).await;
    let kept: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.content.size_bytes)).collect();
    assert_eq!(kept, [("app/A", 2), ("app/B", 5), ("app/c", 6), ("app/d", 7)]);
    assert_eq!(store.file(w.clone(), RootedPath::new("app/a").unwrap()).await, Ok(None));
    for (key, count) in [("app/a", 1), ("app/b", 1), ("app/c", 1), ("app/never", 0)] {
        assert_eq!(store.files_with_key(w.clone(), DocPath::new(key).unwrap()).await.unwrap().len(), count, "{key}");
    }
    let last = append(&store, batch(9, "w", "r9")).await;
    let all = ["app/A", "app/B", "app/c", "app/d"];
    update(&last, all.map(gone).to_vec()).await.unwrap();
    assert_eq!(store.files(w, None, 10).await, Ok(vec![]));
}

async fn lists_go_backwards_and_events_forwards(store: Arc<impl Store>) {
    let w = workspace("w");
    let mut stored = Vec::new();
    for number in 1..=5 {
        stored.push(append(&store, batch(number, "w", &format!("r{number}"))).await);
    }
    store.transition(step(&stored[0], BatchState::Cancelled)).await.unwrap();
    append(&store, batch(9, "w1", "r")).await;
    let listed = |list: Vec<Listed>| list.into_iter().map(|event| event.unwrap().revision.0).collect::<Vec<_>>();
    assert_eq!(listed(store.batches(w.clone(), None, 3).await.unwrap()), [5, 4, 3]);
    assert_eq!(listed(store.batches(w.clone(), Some(Revision(3)), 3).await.unwrap()), [2, 1]);
    assert_eq!(listed(store.events(w.clone(), Revision(0), 2).await.unwrap()), [1, 2]);
    let events = store.events(w.clone(), Revision(4), 9).await.unwrap();
    assert_eq!((listed(events.clone()), events[1].as_ref().unwrap().batch), (vec![5, 6], stored[0].id));
    assert_eq!(store.events(w.clone(), Revision(6), 9).await, Ok(vec![]));
    assert_eq!(store.events(w, Revision(u64::MAX), 9).await, Ok(vec![]));
}

/// Also of a batch that went on since.
async fn an_event_says_what_happened(store: Arc<impl Store>) {
    let stored = append(&store, batch(1, "w", "r1")).await;
    let ended = step(&stored, BatchState::Failed);
    store.transition(ended.clone()).await.unwrap();
    let events = store.events(workspace("w"), Revision(0), 10).await.unwrap();
    let facts: Vec<_> = events.into_iter().map(|event| event.unwrap().facts.unwrap()).collect();
    let submitted = EventFacts {
        kind: EventKind::Submitted,
        state: BatchState::Approved,
        at: stored.created,
        actor: Actor::unnamed(ActorKind::Author),
        reason: None,
    };
    let reported = EventFacts {
        kind: EventKind::Reported,
        state: BatchState::Failed,
        at: ended.at,
        actor: ended.actor,
        reason: ended.reason,
    };
    // The steps of a batch alone, whatever happened beside it.
    append(&store, batch(2, "w", "r2")).await;
    let steps = store.steps(workspace("w"), stored.id, Revision(2)).await.unwrap();
    let steps: Vec<_> = steps.into_iter().map(|event| (event.revision.0, event.facts.unwrap())).collect();
    assert_eq!(steps, [(2, reported.clone()), (1, submitted.clone())]);
    assert_eq!(facts, [submitted, reported]);
}

async fn each_commit_has_a_digest_of_its_own(store: Arc<impl Store>) {
    let w = workspace("w");
    let stored = append(&store, batch(1, "w", "r1")).await;
    store.transition(step(&stored, BatchState::Cancelled)).await.unwrap();
    append(&store, batch(2, "w", "r2")).await;
    let events = store.events(w.clone(), Revision(0), 9).await.unwrap();
    let mut digests = Vec::new();
    for event in events {
        let event = event.unwrap();
        assert_eq!(store.digest(w.clone(), event.revision).await, Ok(event.digest));
        digests.push(event.digest.unwrap());
    }
    assert_eq!(digests.len(), 3);
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 3);
    assert_eq!(store.digest(w.clone(), Revision(0)).await, Ok(None));
    assert_eq!(store.digest(w, Revision(4)).await, Ok(None));
}

async fn listed_files(store: &Arc<impl Store>, after: Option<RootedPath>, limit: usize) -> Vec<CloudFile> {
    store.files(workspace("w"), after, limit).await.unwrap().into_iter().collect::<Result<_, _>>().unwrap()
}

async fn blobs_are_seen_when_they_are_whole(store: Arc<impl Store>) {
    let w = workspace("w");
    let (upload, blob) =
        (UploadId(Uuid::from_u128(5)), BlobRef { sha256: Sha256Digest::from_bytes([7; 32]), size_bytes: 5 });
    let sizes = || store.blob_sizes(workspace("w"), vec![Sha256Digest::from_bytes([6; 32]), blob.sha256]);
    store.put_chunk(upload, 0, b"abc".as_slice().into()).await.unwrap();
    assert_eq!(sizes().await, Ok(vec![None, None]));
    assert_eq!(store.blob_chunk(w.clone(), blob.sha256, 0).await, Ok(None));
    store.put_chunk(upload, 1, b"de".as_slice().into()).await.unwrap();
    store.commit_upload(upload, w.clone(), blob).await.unwrap();
    assert_eq!(sizes().await, Ok(vec![None, Some(5)]));
    // Neither a late discard nor another upload of the same blob takes anything away.
    store.discard_upload(upload);
    let again = UploadId(Uuid::from_u128(6));
    store.put_chunk(again, 0, b"abcde".as_slice().into()).await.unwrap();
    store.commit_upload(again, w.clone(), blob).await.unwrap();
    let dropped = UploadId(Uuid::from_u128(7));
    store.put_chunk(dropped, 0, b"x".as_slice().into()).await.unwrap();
    store.discard_upload(dropped);
    for (index, expected) in [(0, Some(b"abc".as_slice())), (1, Some(b"de")), (2, None)] {
        let chunk = store.blob_chunk(w.clone(), blob.sha256, index).await.unwrap();
        assert_eq!(chunk.as_deref(), expected);
    }
    assert_eq!(store.blob_sizes(workspace("v"), vec![blob.sha256]).await, Ok(vec![None]));
    assert_eq!(store.newest(w).await, Ok(None), "an upload makes no workspace known");
}

async fn a_closed_store_takes_nothing(store: Arc<impl Store>) {
    append(&store, batch(1, "w", "r1")).await;
    store.close().await.unwrap();
    assert_eq!(store.append(batch(2, "w", "r2")).await, Err(StoreError::Closed));
}

/// What was acknowledged is there when the store is opened again, and counting continues where it was.
#[tokio::test]
async fn what_is_acknowledged_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_empty_blob(EmbeddedStore::open(dir.path()).unwrap()).await;
    let w = workspace("w");
    let stored = append(&store, batch(1, "w", "r1")).await;
    let names = vec!["app".to_owned(), "lib".to_owned()];
    store.grant_lease(w.clone(), Sha256Digest::EMPTY, names.clone()).await.unwrap();
    let applied = Transition { files: vec![file("app/a", 1)], ..step(&stored, BatchState::Applied) };
    let Ok(Transitioned::Done(applied)) = store.transition(applied).await else { panic!("the step is taken") };
    let blob = BlobRef { sha256: Sha256Digest::from_bytes([7; 32]), size_bytes: 1 };
    store.put_chunk(UploadId(Uuid::from_u128(5)), 0, b"a".as_slice().into()).await.unwrap();
    store.commit_upload(UploadId(Uuid::from_u128(5)), w.clone(), blob).await.unwrap();
    store.put_chunk(UploadId(Uuid::from_u128(6)), 0, b"unfinished".as_slice().into()).await.unwrap();
    assert!(EmbeddedStore::open(dir.path()).err().unwrap().to_string().contains("in use"));
    store.close().await.unwrap();
    drop(store);

    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    assert_eq!(store.batch(w.clone(), BatchSelector::Id(stored.id)).await, Ok(Some(applied)));
    assert_eq!(store.blob_chunk(w.clone(), blob.sha256, 0).await.unwrap().as_deref(), Some(b"a".as_slice()));
    assert_eq!(store.files(w.clone(), None, 9).await.unwrap().len(), 1);
    assert_eq!(store.roots(w.clone()).await, Ok(names));
    assert_eq!(store.grant_lease(w.clone(), Sha256Digest::EMPTY, Vec::new()).await, Ok(2));
    assert_eq!(append(&store, batch(2, "w", "r2")).await.revision, Revision(3));
    assert!(matches!(store.append(batch(3, "w", "r1")).await, Ok(Appended::Known(_))));
}
