//! Where an agent goes on in the events of its server.

use aptix_client::agent::Approve;
use aptix_model::wire::v1;
use tonic::Code;

use super::scene::{Scene, batch, create, eventually, insert, write};
use crate::fake_server::refusal;

#[tokio::test]
async fn reading_resumes_where_it_ended_or_where_the_server_can() {
    let mut scene = Scene::set(Approve::Auto);
    scene.server.send(batch(1, "a.txt", write("theirs\n", true)));
    scene.report(1, 1).await;
    scene.server.send(v1::Batch { edit: None, state: v1::BatchState::Applied.into(), ..insert(1) });
    scene.server.send(batch(2, "b.txt", create("")));
    scene.report(2, 2).await;
    scene.stop().await;
    scene.put("a.txt", "mine\n");
    let future = refusal(Code::InvalidArgument, "INVALID_REQUEST", &[("detail", "FUTURE_REVISION")]);
    let compacted = refusal(Code::OutOfRange, "COMPACTED", &[("oldest", "1")]);
    scene.server.script.lock().unwrap().refuse_watch = [future, compacted].into();
    scene.start(Approve::Auto);
    let watched = || scene.server.script.lock().unwrap().watched_after.clone();
    eventually("it reads again", || watched().len() >= 4).await;
    assert_eq!(watched(), [0, 3, 0, 0]);
    scene.server.send(batch(4, "c.txt", create("")));
    scene.report(5, 4).await;
    assert_eq!(scene.file("a.txt"), "mine\n", "what was applied is not applied again over what came after it");
}

/// Where the server names the position at which its events begin, the agent comes back with all of it: a server that was restored since
/// then answers that its history is another one, and the agent starts over.
#[tokio::test]
async fn after_compaction_the_agent_resumes_with_the_position_that_the_server_named() {
    let mut scene = Scene::set(Approve::Auto);
    scene.server.send(batch(1, "a.txt", create("")));
    scene.report(1, 1).await;
    scene.stop().await;
    let (history, digest) = ("018f6d2e-7c1a-7b3e-9d55-0123456789ab", "ab".repeat(32));
    let compacted =
        refusal(Code::OutOfRange, "COMPACTED", &[("oldest", "8"), ("history", history), ("digest", &digest)]);
    let restored = refusal(Code::FailedPrecondition, "HISTORY_CHANGED", &[]);
    scene.server.script.lock().unwrap().refuse_watch = [compacted, restored].into();
    scene.start(Approve::Auto);
    let hellos = || scene.server.script.lock().unwrap().hellos.clone();
    eventually("it starts over", || hellos().len() >= 4).await;
    let hellos = hellos();
    let cursor = v1::Cursor { history_id: history.to_owned(), revision: 7, digest };
    assert_eq!(hellos[2].cursor.as_ref(), Some(&cursor));
    assert_eq!((hellos[3].cursor.as_ref(), hellos[3].after_revision), (None, 0));
}
