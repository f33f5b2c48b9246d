//! What writes cost on the wire, counted between the store and PostgreSQL: how often the committer sends something and waits for what
//! is answered, and how often it commits.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::Uuid;
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;
use aptix_server::store::fleet::Granted;
use aptix_server::store::postgres::PostgresStore;
use aptix_server::store::{LeaseProof, LocalAppended, Store, Transition, Twins, UploadId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::cluster::{self, Cluster};
use crate::fleet_store::{LONG, grant, member};
use crate::postgres_known::take;
use crate::sample::{file, of_workstation};
use crate::store_contract::{append, batch, step, workspace};

/// The database of the test.
const NAME: &str = "wire";

/// How the name of a socket begins, before its port.
const SOCKET: &str = ".s.PGSQL.5432";

/// What the committer begins its groups with, and ends them with.
const GROUPED: &[u8] = b"aptix.grouped";
const COMMIT: &[u8] = b"COMMIT\0";

/// What was sent over the connections of the committer.
#[derive(Default)]
struct Sent {
    /// How often something was sent after everything before was answered.
    turns: AtomicU64,
    commits: AtomicU64,
}

/// A way to the cluster that counts.
struct Wire {
    dir: tempfile::TempDir,
    sent: Arc<Sent>,
    _carried: JoinSet<()>,
}

impl Wire {
    fn new(cluster: &Cluster) -> Self {
        let (dir, sent) = (tempfile::tempdir().unwrap(), Arc::<Sent>::default());
        let listener = UnixListener::bind(dir.path().join(SOCKET)).unwrap();
        let (target, counted) = (cluster.home().join(SOCKET), Arc::clone(&sent));
        let mut carried = JoinSet::new();
        carried.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let far = UnixStream::connect(&target).await.unwrap();
                connections.spawn(carry(near, far, Arc::clone(&counted)));
            }
        });
        Self { dir, sent, _carried: carried }
    }

    fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// What a write costs: how often something is sent and waited for, and how often it is committed.
    async fn cost<T>(&self, write: impl Future<Output = T>) -> (T, [u64; 2]) {
        let so_far = || [&self.sent.turns, &self.sent.commits].map(|count| count.load(Ordering::SeqCst));
        let before = so_far();
        let written = write.await;
        let after = so_far();
        (written, [after[0] - before[0], after[1] - before[1]])
    }
}

/// Carries a connection, and counts if it is one of the committer.
async fn carry(mut near: UnixStream, mut far: UnixStream, sent: Arc<Sent>) {
    let (mut there, mut back) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let (mut is_committer, mut is_waiting) = (false, false);
    let find = |bytes: &[u8], wanted: &[u8]| bytes.windows(wanted.len()).filter(|found| *found == wanted).count();
    loop {
        let (bytes, to) = tokio::select! {
            read = near.read(&mut there) => {
                let bytes = &there[..read.unwrap_or(0)];
                is_committer |= find(bytes, GROUPED) > 0;
                if is_committer {
                    sent.turns.fetch_add(u64::from(!is_waiting), Ordering::SeqCst);
                    sent.commits.fetch_add(find(bytes, COMMIT) as u64, Ordering::SeqCst);
                }
                is_waiting = true;
                (bytes, &mut far)
            }
            read = far.read(&mut back) => {
                is_waiting = false;
                (&back[..read.unwrap_or(0)], &mut near)
            }
        };
        if bytes.is_empty() || to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

/// Has a lease taken with the secret of the one before.
async fn lease(store: &PostgresStore, secret: u8) {
    let held = secret.checked_sub(1).filter(|held| *held > 0);
    assert_eq!(store.take_lease(grant(1, secret, held)).await, Ok(Granted::Epoch(u64::from(secret))));
}

/// An append, a lease, each step of a batch up to a report with files, and a batch of the workstation is one thing that is sent and waited for, with one commit.
#[tokio::test]
async fn each_write_of_a_life_is_sent_and_waited_for_once() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.create_database(NAME);
    let wire = Wire::new(&cluster);
    let address = format!("postgres://{}@/{NAME}?host={}", cluster::USER, wire.directory().display());
    let store = Arc::new(cluster::open(&address).await);
    store.join(member(1), LONG).await.unwrap();
    let blob = BlobRef { sha256: Sha256Digest::EMPTY, size_bytes: 0 };
    store.commit_upload(UploadId(Uuid::from_u128(1)), workspace("w"), blob).await.unwrap();
    let report = |stored: &BatchRecord| Transition {
        files: vec![file("app/new.txt", Some(blob), Twins::Gone), file("app/old.txt", None, Twins::MayExist)],
        ..step(stored, BatchState::Applied)
    };
    // The first ones read the workspace and prepare statements.
    for number in 1..=3_u8 {
        let counted = store.asked();
        let new = append(&store, batch(u128::from(number), "w", &format!("r{number}")));
        let (stored, of_append) = wire.cost(new).await;
        let ((), of_lease) = wire.cost(lease(&store, number)).await;
        let (stored, of_approval) = wire.cost(take(&store, step(&stored, BatchState::Approved))).await;
        let (stored, of_delivery) = wire.cost(take(&store, step(&stored, BatchState::Preparing))).await;
        let (_, of_report) = wire.cost(take(&store, report(&stored))).await;
        let own = batch(1000 + u128::from(number), "w", &format!("own{number}"));
        let lease = LeaseProof { epoch: number.into(), secret: Some(Sha256Digest::from_bytes([number; 32])) };
        let own = of_workstation(own, lease, vec![file("app/own.txt", Some(blob), Twins::MayExist)]);
        let (own, of_local) = wire.cost(store.append_local(own)).await;
        assert!(matches!(own, Ok(LocalAppended::New(_))), "{own:?}");
        let costs = [of_append, of_lease, of_approval, of_delivery, of_report, of_local];
        let asked = [store.asked().round_trips - counted.round_trips, store.asked().commits - counted.commits];
        assert!(number < 3 || costs == [[1, 1]; 6], "{costs:?}");
        assert!(number < 3 || asked == [6, 6], "it counts as much itself: {asked:?}");
    }
    let listed = store.files(workspace("w"), None, 10).await.unwrap();
    assert_eq!(listed.len(), 2);
    // Writes that wait for each other share commits.
    let new = (100..164).map(|number| {
        let store = Arc::clone(&store);
        async move { drop(append(&store, batch(number, "w", &format!("r{number}"))).await) }
    });
    let ((), [_, commits]) = wire.cost(async { drop(new.collect::<JoinSet<_>>().join_all().await) }).await;
    assert!((1..=4).contains(&commits), "{commits}");
}
