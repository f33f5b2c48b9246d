//! The agent on a state directory in which something is damaged.

use std::path::{Path, PathBuf};

use aptix_client::connection::receipt::{self, Receipt};
use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::keep::outbox;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::report::{Outcome, Report};

use super::{Approve, Code, Scene, batch, create, eventually, id, insert, refusal, v1};

/// Every file in a directory and those below it.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn set_aside(place: &Path) -> usize {
    files(&place.join("aptix/roots")).iter().filter(|file| file.parent().unwrap().ends_with("damaged")).count()
}

#[tokio::test]
async fn no_single_bad_file_in_the_state_directory_ends_an_agent() {
    let mut scene = Scene::set(Approve::Auto);
    scene.server.send(insert(1));
    scene.report(1, 1).await;
    eventually("the receipt is forgotten", || scene.outbox() == 0).await;
    scene.stop().await;
    let state = scene.place.path().join("aptix/roots");
    let whole: Vec<_> = files(&state).into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect();
    let names: Vec<_> =
        whole.iter().map(|(file, _)| file.strip_prefix(&state).unwrap().display().to_string()).collect();
    for part in ["agent/agent-id", "agent/cursor", "outbox/log", "/history/", "/reported/"] {
        assert!(names.iter().any(|name| name.contains(part)), "{part} in {names:?}");
    }
    // An agent whose cursor and log are put back meets all the batches before once more, and refuses them.
    scene.put_policy("limits = { refused_per_minute = 1000 }");
    let mut number = 1;
    for (file, bytes) in &whole {
        let mut flipped = bytes.clone();
        let middle = bytes.len() / 2;
        flipped.iter_mut().skip(middle).take(1).for_each(|byte| *byte ^= 1);
        let other =
            whole.iter().find(|(other, _)| other != file && other.ends_with("agent-id")).map(|(_, bytes)| bytes);
        let other = other.cloned().unwrap_or_else(|| b"agent-9".to_vec());
        let junk = [Vec::new(), b"junk".to_vec(), flipped, other, vec![0; 300], b"aptix-own-7 x\n".to_vec()];
        // A lock holds nothing that could be set aside.
        let is_lock = file.extension().is_some_and(|extension| extension == "lock") || file.ends_with("lock");
        for junk in junk.map(Some).into_iter().chain((!is_lock).then_some(None)) {
            number += 1;
            match &junk {
                Some(junk) => std::fs::write(file, junk).unwrap(),
                None => {
                    std::fs::remove_file(file).unwrap();
                    std::fs::create_dir(file).unwrap();
                }
            }
            scene.start(Approve::Auto);
            let path = format!("{number}.txt");
            scene.server.send(batch(number, &path, create("x")));
            let junk = junk.as_deref().map_or("a directory".into(), String::from_utf8_lossy);
            let what = format!("{} with {junk:?}", file.display());
            let about = |scene: &Scene| {
                let reports = scene.server.script.lock().unwrap().reports.clone();
                reports.into_iter().find(|report| report.batch_id == id(number)).and_then(|report| report.report)
            };
            eventually(&what, || about(&scene).is_some()).await;
            assert_eq!(about(&scene).unwrap().outcome(), v1::Outcome::Applied, "{what}");
            scene.stop().await;
            for (file, bytes) in &whole {
                if file.is_dir() {
                    std::fs::remove_dir(file).unwrap();
                }
                std::fs::write(file, bytes).unwrap();
            }
        }
    }
    assert!(set_aside(scene.place.path()) > 5);
}

/// What two writers at once made of an outbox once: the receipt of one batch under the name of another.
#[tokio::test]
async fn a_receipt_that_does_not_name_its_batch_is_set_aside_and_never_sent() {
    let mut scene = Scene::set(Approve::Auto);
    scene.stop().await;
    {
        let spec = format!("ws={}", scene.place.path().join("ws").display()).parse().unwrap();
        let local = Workspace::open(&[spec], scene.place.path(), Box::new(SystemDisk)).unwrap();
        let report = Report {
            outcome: Outcome::Applied,
            files: Vec::new(),
            failures: Vec::new(),
            warnings: Vec::new(),
            diff: String::new(),
            diff_omitted: false,
        };
        let receipt = Receipt {
            workspace: "w".parse().unwrap(),
            batch: id(6).parse().unwrap(),
            report,
            decided_by: None,
            traceparent: None,
        };
        outbox::put(&local, id(5).parse().unwrap(), &receipt::encode(receipt)).unwrap();
        outbox::put(&local, id(7).parse().unwrap(), b"\xff\xff").unwrap();
    }
    scene.start(Approve::Auto);
    for number in [5, 7] {
        let reports = || scene.server.script.lock().unwrap().reports.clone();
        eventually("the loss is reported", || reports().iter().any(|report| report.batch_id == id(number))).await;
    }
    let reports = scene.server.script.lock().unwrap().reports.clone();
    assert_eq!(reports.len(), 2, "{reports:?}");
    for report in reports {
        let report = report.report.unwrap();
        assert_eq!((report.outcome(), report.failures[0].reason.as_str()), (v1::Outcome::Failed, "NEEDS_OPERATOR"));
        assert!(report.failures[0].message.contains("its report was damaged"), "{report:?}");
    }
    eventually("nothing is owed", || scene.outbox() == 0).await;
    assert_eq!(set_aside(scene.place.path()), 2);
    // Whether it was applied is not known: it is not applied now.
    scene.server.send(batch(5, "new.txt", create("x")));
    scene.server.send(insert(8));
    eventually("what comes later is applied", || scene.file("a.txt") == "1\n2\n").await;
    assert!(!scene.place.path().join("ws/new.txt").exists());
}

/// A scene in which batch 1 is applied, its report waits, and no agent runs.
async fn waiting() -> Scene {
    let mut scene = Scene::set(Approve::Auto);
    scene.server.script.lock().unwrap().refuse_report.push_back(refusal(Code::PermissionDenied, "POLICY_DENIED", &[]));
    scene.server.send(insert(1));
    scene.report(1, 1).await;
    eventually("the file is edited", || scene.file("a.txt") == "1\n2\n").await;
    scene.stop().await;
    assert_eq!(scene.outbox(), 1);
    scene.server.script.lock().unwrap().blobs.clear();
    scene
}

fn find(scene: &Scene, part: &str) -> PathBuf {
    let files = files(&scene.place.path().join("aptix/roots"));
    files.into_iter().find(|file| file.to_str().unwrap().contains(part)).unwrap()
}

#[tokio::test]
async fn a_damaged_content_does_not_keep_the_report_of_its_batch_back() {
    for has_history in [true, false] {
        let mut scene = waiting().await;
        std::fs::write(find(&scene, ".d/"), "damaged").unwrap();
        if !has_history {
            std::fs::remove_file(find(&scene, "/history/")).unwrap();
        }
        scene.start(Approve::Auto);
        let report = scene.report(2, 1).await;
        eventually("nothing is owed", || scene.outbox() == 0).await;
        if has_history {
            assert_eq!(report.outcome(), v1::Outcome::Applied);
            assert_eq!(scene.server.script.lock().unwrap().blobs.len(), 1, "from what is kept for undoing it");
        } else {
            assert_eq!((report.outcome(), report.failures[0].reason.as_str()), (v1::Outcome::Failed, "NEEDS_OPERATOR"));
        }
        scene.stop().await;
    }
}

/// A report that was lost with the log is not missed by a server that waits for it.
#[tokio::test]
async fn after_the_log_was_lost_open_batches_are_asked_for_again() {
    let mut scene = waiting().await;
    std::fs::write(find(&scene, "outbox/log"), "junk").unwrap();
    scene.start(Approve::Auto);
    let report = scene.report(2, 1).await;
    assert_eq!((report.outcome(), report.failures[0].reason.as_str()), (v1::Outcome::Failed, "NEEDS_OPERATOR"));
    eventually("nothing is owed", || scene.outbox() == 0).await;
    scene.stop().await;
    assert_eq!(scene.file("a.txt"), "1\n2\n", "it is not applied twice");
    scene.start(Approve::Auto);
    let watched = || scene.server.script.lock().unwrap().watched_after.clone();
    eventually("three watches", || watched().len() >= 3).await;
    assert_eq!(watched(), [0, 0, 1], "once");
}
