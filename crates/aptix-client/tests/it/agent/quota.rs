//! A server whose batches are refused too often waits; nothing is lost by that, and what waits can be withdrawn.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

use super::{Approve, Scene, batch, create, eventually, find, id, v1};

/// What is logged on the thread of a test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn has(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.0.lock().unwrap()).contains(text)
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn too_many_refusals_keep_the_next_batch_waiting_until_it_is_withdrawn() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let mut scene = Scene::set(Approve::Auto);
    scene.put_policy("deny = ['no']\nlimits = { refused_per_minute = 2 }");
    for number in [1, 2] {
        scene.server.send(batch(number, "no/x.txt", create("x")));
        assert_eq!(scene.report(number as usize, number).await.failures[0].reason, "POLICY_DENIED");
    }
    // It would be applied, which is not known before it is its turn.
    scene.server.send(batch(3, "yes.txt", create("x")));
    scene.server.send(batch(4, "later.txt", create("x")));
    eventually("they wait", || log.has("so many batches were refused")).await;
    let cancelled = v1::BatchState::Cancelled.into();
    scene.server.send(v1::Batch { edit: None, state: cancelled, ..batch(3, "yes.txt", create("x")) });
    eventually("it is withdrawn", || log.has("Batch.Withdrawn")).await;
    scene.stop().await;
    assert_eq!(scene.server.script.lock().unwrap().reports.len(), 2);
    let exists = |name: &str| scene.place.path().join("ws").join(name).exists();
    assert!(!exists("yes.txt") && !exists("later.txt"));
    let cursor = find(scene.place.path(), "cursor");
    let dealt_with = cursor.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).max();
    assert_eq!(dealt_with, Some(3), "what was withdrawn is done with, what waits is not: {cursor}");
    // What waited comes again, with a new minute.
    scene.start(Approve::Auto);
    assert_eq!(scene.report(3, 4).await.outcome(), v1::Outcome::Applied);
    assert!(scene.server.script.lock().unwrap().reports.iter().all(|report| report.batch_id != id(3)));
}
