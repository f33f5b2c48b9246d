//! A server that sends what no server should.

use super::{Approve, Scene, batch, blob, create, eventually, find, id, sha256, v1, write};

/// Guarantee 8: what a hostile server sends costs a line in the log and nothing else.
#[tokio::test]
async fn a_hostile_server_costs_nothing_but_a_line_in_the_log() {
    let scene = Scene::set(Approve::Auto);
    // A content that never ends is cut off where it should have.
    let endless = sha256(b"endless").to_string();
    scene.server.script.lock().unwrap().endless.insert(endless.clone());
    scene.server.send(batch(1, "x.txt", blob(&endless, 3 << 20)));
    let report = scene.report(1, 1).await;
    assert_eq!((report.outcome(), report.failures[0].reason.as_str()), (v1::Outcome::Failed, "HASH_FAILED"));
    // The same batch thrice.
    for number in [2, 3, 2, 4, 2] {
        scene.server.send(batch(number, &format!("{number}.txt"), create("once\n")));
    }
    scene.report(6, 4).await;
    scene.server.send(batch(5, "5.txt", create("once\n")));
    assert_eq!(scene.report(7, 5).await.outcome(), v1::Outcome::Applied);
    let script = || scene.server.script.lock().unwrap();
    let count = |number| script().reports.iter().filter(|report| report.batch_id == id(number)).count();
    assert_eq!([2, 3, 4, 5].map(count), [3, 1, 1, 1], "what comes again is reported again, and not applied");
    assert_eq!(script().watched_after.len(), 1, "one connection is enough");
}

/// Events that leave one out, repeat one or go back end the stream. The agent does nothing with such an event, and reads
/// on from the last revision that it dealt with.
#[tokio::test]
async fn an_event_that_is_not_the_next_one_ends_the_stream() {
    let scene = Scene::set(Approve::Auto);
    let script = || scene.server.script.lock().unwrap();
    for (number, wrong) in (1..).zip([3, 1, 1, 0, 1 << 40, u64::MAX]) {
        let text = format!("{number}\n");
        script().revisions = [wrong].into();
        let watched = script().watched_after.len();
        scene.server.send(batch(number, "x.txt", write(&text, true)));
        let count = usize::try_from(number).unwrap();
        assert_eq!(scene.report(count, number).await.outcome(), v1::Outcome::Applied);
        assert_eq!(scene.file("x.txt"), text);
        assert_eq!(script().watched_after.len(), watched.max(1) + 1, "{wrong}");
        assert!(script().watched_after.last().unwrap() < &u64::from(number), "{wrong}");
        assert_eq!(script().reports.len(), count, "what came out of order was not applied");
    }
    // A heartbeat states what was sent so far.
    script().heartbeats = [7].into();
    let watched = script().watched_after.len();
    eventually("it connects again", || script().watched_after.len() > watched).await;
    assert_eq!(script().watched_after.last(), Some(&6));
}

/// A message that is larger than any may be ends the connection, again and again, and nothing is written.
#[tokio::test]
async fn a_message_that_is_too_large_is_not_read() {
    let scene = Scene::set(Approve::Auto);
    scene.server.send(batch(1, "x.txt", create(&"x".repeat(8 << 20))));
    eventually("it connects again", || scene.server.script.lock().unwrap().watched_after.len() >= 3).await;
    assert!(!scene.place.path().join("ws/x.txt").exists());
    assert!(scene.server.script.lock().unwrap().reports.is_empty());
}

/// A position that an earlier server gave is in no named history. Once the server names one, what was skipped in it, if it
/// was put back meanwhile, is found by starting over.
#[tokio::test]
async fn a_position_without_a_history_is_given_up_once_the_server_names_one() {
    let mut scene = Scene::set(Approve::Auto);
    scene.server.send(batch(1, "b.txt", create("")));
    scene.server.send(batch(2, "c.txt", create("")));
    scene.report(2, 2).await;
    scene.stop().await;
    scene.server.script.lock().unwrap().bound_after = Some(2);
    scene.start(Approve::Auto);
    scene.server.send(batch(3, "d.txt", create("")));
    eventually("the third is applied", || scene.place.path().join("ws/d.txt").exists()).await;
    let watched = || scene.server.script.lock().unwrap().watched_after.clone();
    eventually("it starts over", || watched().len() >= 3).await;
    assert_eq!(watched(), [0, 2, 0]);
    let reported = || scene.server.script.lock().unwrap().reports.iter().any(|report| report.batch_id == id(3));
    eventually("the third is reported", reported).await;
    scene.stop().await;
    assert!(find(scene.place.path(), "cursor").contains("018f6d2e-7c1a-7b3e-9d55-0123456789ab"));
    let reports = scene.server.script.lock().unwrap().reports.clone();
    let applied = |report: &v1::ReportBatchRequest| report.report.as_ref().unwrap().outcome() == v1::Outcome::Applied;
    assert!(reports.iter().all(applied), "nothing is carried out twice: {reports:?}");
}
