//! What a quiet token waits behind beside a noisy one, counted by the server: at most one group of writes, and one call of each other
//! token, over however many connections that one calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use aptix_model::wire::v1;
use tempfile::NamedTempFile;
use tokio::task::JoinSet;

use crate::busy::counted;
use crate::identity::with;
use crate::quotas::Limited;
use crate::server::{Clients, create_text, submit};
use crate::until::until;

/// Writers of one token. Each has a connection of its own, and one call at a time: it asks for turns as one that has none.
const WRITERS: usize = 64;

/// Files of a batch that takes some work to check.
const FILES: usize = 300;

/// Calls of the quiet token, one after the other.
const QUIET_CALLS: usize = 60;

/// Submits one batch after the other until all is over.
async fn write(mut clients: Clients, token: String, writer: usize, (over, written): (Arc<AtomicBool>, Arc<AtomicU64>)) {
    for number in 0.. {
        let count = if number % 4 == 0 { 1 } else { FILES };
        let files = (0..count).map(|file| create_text(&format!("f{file}"), "text")).collect();
        let request = submit("noisy", &format!("{writer}-{number}"), files);
        let request = with(&token, v1::SubmitBatchRequest { validate_only: count > 1, ..request });
        clients.batches.submit_batch(request).await.unwrap();
        written.fetch_add(1, Ordering::Relaxed);
        if over.load(Ordering::Relaxed) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_quiet_token_waits_behind_one_call_of_each_other_and_one_group() {
    let dir = tempfile::tempdir().unwrap();
    let log = NamedTempFile::new().unwrap();
    let tokens = [("quiet", "orchestrator", "quiet"), ("noisy", "orchestrator", "noisy")];
    let logged = ("warn,aptix_server::waited=debug", log.reopen().unwrap().into());
    let server = Limited::logging(dir.path(), "", &tokens, logged);
    let [quiet, noisy] = &server.tokens[..] else { panic!("two tokens") };
    // The server numbers connections in the order in which they come.
    let mut client = server.connect().await;
    let (over, written) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let mut writing = JoinSet::new();
    for writer in 0..WRITERS {
        let shared = (Arc::clone(&over), Arc::clone(&written));
        writing.spawn(write(server.connect().await, noisy.clone(), writer, shared));
    }
    until(async || (written.load(Ordering::Relaxed) >= WRITERS as u64).then_some(())).await;
    for number in 0..QUIET_CALLS {
        let text = "x".repeat(if number % 4 == 0 { 1 << 20 } else { 1 });
        let request = submit("quiet", &format!("r{number}"), vec![create_text("a", &text)]);
        let request = v1::SubmitBatchRequest { validate_only: number % 2 == 0, ..request };
        client.batches.submit_batch(with(quiet, request)).await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    writing.join_all().await;
    server.program.signal("-TERM");
    assert_eq!(server.program.end(), Some(0));
    let waited = counted(&std::fs::read_to_string(log.path()).unwrap());
    let most = |is_quiet: bool| {
        let waits = waited.iter().filter(|(connection, ..)| (*connection == 1) == is_quiet);
        waits.fold((0, 0), |most, (_, turns, groups)| (most.0.max(*turns), most.1.max(*groups)))
    };
    let ((turns, groups), of_noisy) = (most(true), most(false));
    println!(
        "most turns and groups: quiet {turns} and {groups}, noisy {of_noisy:?}, {} written",
        written.load(Ordering::Relaxed)
    );
    assert!(turns <= 1, "{turns} calls of the one other token began before a quiet call");
    assert!(groups <= 1, "a quiet call waited for {groups} groups");
    // What is not counted cannot be too much: the noisy one waits for the quiet one.
    assert!(of_noisy.0 > 0 && of_noisy.1 > 0, "{of_noisy:?}");
}
