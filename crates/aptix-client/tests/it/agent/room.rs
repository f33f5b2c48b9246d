//! The agent on a disk that is full, and in a directory that is no more.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Approve, Scene, batch, create, eventually, insert, v1};
use crate::faulty_disk::FaultyDisk;

/// A report that cannot be kept is not sent either: no batch is reported as refused that might be applied after a restart.
#[tokio::test]
async fn a_report_waits_until_there_is_room_for_it() {
    let scene = Scene::set(Approve::Auto);
    scene.server.send(insert(1));
    scene.report(1, 1).await;
    eventually("the report is not owed any more", || scene.outbox() == 0).await;
    assert_waits(scene, |disk| &disk.full).await;
}

/// While this fault of the disk lasts, a second batch is tried again and again, and not reported.
async fn assert_waits(mut scene: Scene, fault: fn(&FaultyDisk) -> &AtomicBool) {
    fault(&scene.disk).store(true, Ordering::SeqCst);
    let operations = || scene.disk.count.load(Ordering::SeqCst);
    let before = operations();
    scene.server.send(batch(2, "../x.txt", create("x")));
    eventually("it was tried more than once", || operations() > before + 1).await;
    assert_eq!(scene.server.script.lock().unwrap().reports.len(), 1);
    fault(&scene.disk).store(false, Ordering::SeqCst);
    assert_eq!(scene.report(2, 2).await.failures[0].reason, "INVALID_PATH");
    scene.stop().await;
}

/// A batch of many files takes all descriptors for a moment, while the agent looks for the reports of other batches.
#[tokio::test]
async fn a_batch_waits_until_a_file_can_be_opened() {
    let scene = Scene::set(Approve::Auto);
    scene.server.send(insert(1));
    scene.report(1, 1).await;
    eventually("the report is not owed any more", || scene.outbox() == 0).await;
    // Another process has written the log anew: it has to be opened again.
    let roots = std::fs::read_dir(scene.place.path().join("aptix/roots")).unwrap();
    let outbox = roots.map(|root| root.unwrap().path().join("outbox")).find(|outbox| outbox.exists()).unwrap();
    std::fs::copy(outbox.join("log"), outbox.join("copy")).unwrap();
    std::fs::rename(outbox.join("copy"), outbox.join("log")).unwrap();
    assert_waits(scene, |disk| &disk.crowded).await;
}

/// What is written in a directory that is no more would never be found.
#[tokio::test]
async fn an_agent_whose_root_was_removed_ends_and_says_what_to_do() {
    let mut scene = Scene::set(Approve::Auto);
    scene.server.send(insert(1));
    scene.report(1, 1).await;
    std::fs::remove_dir_all(scene.place.path().join("ws")).unwrap();
    scene.server.send(batch(2, "x.txt", create("x")));
    let ended = scene.agents.join_next().await.unwrap().unwrap().unwrap_err().to_string();
    assert!(ended.contains("/ws was removed after it was opened\nhint: bring the directory back"), "{ended}");
    assert_eq!(scene.server.script.lock().unwrap().reports.len(), 1, "the batch waits for a person");
    // The same batch is applied once there is a root again.
    std::fs::create_dir(scene.place.path().join("ws")).unwrap();
    scene.start(Approve::Auto);
    assert_eq!(scene.report(2, 2).await.outcome(), v1::Outcome::Applied);
    assert_eq!(scene.file("x.txt"), "x");
}
