//! Blobs in a bucket of an S3-compatible server: that which the environment names, as `cargo xtask test` does.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::Uuid;
use aptix_model::record::UnixMillis;
use aptix_model::wire::v1;
use aptix_server::store::bucket_address::BucketAddress;
use aptix_server::store::postgres::PostgresStore;
use aptix_server::store::{Store, StoreError, UploadId};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{ObjectStore, ObjectStoreExt, path};
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::rustls::crypto::ring;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

use crate::cluster::Database;
use crate::postgres::run as ended;
use crate::postgres_store::{connect, run};
use crate::process::Program;
use crate::server::{Clients, create_text, part_chunk, part_start, sha256, submit};
use crate::skip::skip;
use crate::store_contract::workspace;
use crate::until::until;

/// The variable that names the bucket, in which each test has a prefix of its own.
const BUCKET: &str = "APTIX_TEST_BUCKET";

/// The variable that says where the S3-compatible server is.
const ENDPOINT: &str = "AWS_ENDPOINT_URL";

const MIB: usize = 1 << 20;

/// A place for blobs; `None`, after announcing that the test is skipped, where the environment names no server.
pub(crate) fn address() -> Option<BucketAddress> {
    let Some(bucket) = std::env::var_os(BUCKET) else {
        skip("APTIX_TEST_BUCKET names no bucket for tests; `cargo xtask test` starts a server with one");
        return None;
    };
    Some(BucketAddress::parse(&format!("{}/{}", bucket.to_str().unwrap(), Uuid::from_u128(rand()))).unwrap())
}

/// A number that no other test has, also in another run.
fn rand() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).unwrap();
    u128::from_le_bytes(bytes)
}

/// The bucket beside the server.
struct Objects {
    bucket: AmazonS3,
    prefix: path::Path,
}

impl Objects {
    fn of(database: &Database) -> Self {
        // As the server does: whatever was installed before is as good.
        let _ = ring::default_provider().install_default();
        let address = database.blobs.as_ref().unwrap();
        let prefix = address.prefix().iter().map(String::as_str).collect();
        Self { bucket: AmazonS3Builder::from_env().with_bucket_name(address.bucket()).build().unwrap(), prefix }
    }

    /// The names of the objects that have chunks.
    async fn chunks(&self) -> Vec<path::Path> {
        let mut listed = self.bucket.list(Some(&self.prefix));
        let mut names = Vec::new();
        while let Some(object) = listed.next().await {
            names.push(object.unwrap().location);
        }
        names.retain(|name| name.filename() != Some("aptix-store"));
        names
    }

    async fn put(&self, name: &path::Path, bytes: &'static [u8]) {
        self.bucket.put(name, bytes.into()).await.unwrap();
    }
}

fn blob(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Sha256Digest::from_bytes(Sha256::digest(bytes).into()), size_bytes: bytes.len() as u64 }
}

/// Uploads chunks of three bytes, and makes a blob of them.
async fn upload(store: &PostgresStore, number: u128, bytes: &'static [u8]) -> UploadId {
    let upload = UploadId(Uuid::from_u128(number));
    for (index, chunk) in (0..).zip(bytes.chunks(3)) {
        store.put_chunk(upload, index, chunk.into()).await.unwrap();
    }
    store.commit_upload(upload, workspace("w"), blob(bytes)).await.unwrap();
    upload
}

async fn read(store: &PostgresStore, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut read = Vec::new();
    for index in 0.. {
        match store.blob_chunk(workspace("w"), blob(bytes).sha256, index).await? {
            Some(chunk) => read.extend(chunk),
            None => break,
        }
    }
    Ok(read)
}

const SECOND_AGO: &str = "UPDATE uploads SET removable = now() - interval '1 second' WHERE removable IS NOT NULL";

/// The database has no bytes of a chunk. Its objects outlive the blob by a day, and then go: also one that no row names, which a server
/// left that died; those of another upload stay.
#[tokio::test]
async fn objects_go_a_day_after_their_blob() {
    let Some(database) = Database::with_bucket() else { return };
    let (store, objects, mut tasks) = (database.open().await, Objects::of(&database), JoinSet::new());
    let client = connect(&database, &mut tasks).await;
    let first = upload(&store, 7, b"abcdefgh").await;
    upload(&store, 8, b"ijk").await;
    let kept = client.query_one("SELECT count(bytes), count(object) FROM chunks", &[]).await.unwrap();
    assert_eq!((kept.get::<_, i64>(0), kept.get::<_, i64>(1)), (0, 4));
    let left = objects.prefix.clone().join(first.0.to_string()).join("5").join("left");
    objects.put(&left, b"left").await;
    assert_eq!(objects.chunks().await.len(), 5);
    assert_eq!(read(&store, b"abcdefgh").await.unwrap(), b"abcdefgh");

    run(&client, &format!("UPDATE blobs SET seen = 0 WHERE upload = '{}'", first.0)).await;
    assert_eq!(store.sweep_blobs(UnixMillis(1)).await, Ok(1));
    assert_eq!(read(&store, b"abcdefgh").await.unwrap(), b"", "the blob is gone");
    store.sweep_blobs(UnixMillis(1)).await.unwrap();
    assert_eq!(objects.chunks().await.len(), 5, "its objects are not");
    let due = "SELECT removable > now() + interval '23 hours' FROM uploads";
    assert!(client.query_one(due, &[]).await.unwrap().get::<_, bool>(0));

    run(&client, SECOND_AGO).await;
    store.sweep_blobs(UnixMillis(1)).await.unwrap();
    let names = objects.chunks().await;
    assert!(names.len() == 1 && names[0].as_ref().contains(&Uuid::from_u128(8).to_string()), "{names:?}");
    assert!(client.query("SELECT FROM uploads", &[]).await.unwrap().is_empty());
    assert_eq!(read(&store, b"ijk").await.unwrap(), b"ijk");
}

/// A chunk that is written again has another object, and the one before goes: otherwise a caller who starts over and over would fill the
/// bucket.
#[tokio::test]
async fn a_chunk_that_is_written_again_has_one_object() {
    let Some(database) = Database::with_bucket() else { return };
    let (store, objects) = (database.open().await, Objects::of(&database));
    let upload = UploadId(Uuid::from_u128(7));
    let mut former = Vec::new();
    for bytes in [b"abc", b"xyz"] {
        store.put_chunk(upload, 0, bytes.as_slice().into()).await.unwrap();
        let names = objects.chunks().await;
        assert!(names.len() == 1 && names != former, "{names:?}");
        former = names;
    }
    store.commit_upload(upload, workspace("w"), blob(b"xyz")).await.unwrap();
    assert_eq!(read(&store, b"xyz").await.unwrap(), b"xyz");
}

/// A server that ran before there was a bucket reads from it what others keep there, removes what is to go, and keeps chunks there itself
/// from then on. What was in the database stays there.
#[tokio::test]
async fn a_bucket_may_be_added_while_servers_run() {
    let Some(database) = Database::with_bucket() else { return };
    let without = Database { address: database.address.clone(), blobs: None };
    let (former, objects, mut tasks) = (without.open().await, Objects::of(&database), JoinSet::new());
    upload(&former, 6, b"before").await;
    let latter = database.open().await;
    assert_eq!(objects.chunks().await.len(), 0);
    upload(&latter, 7, b"abcdef").await;
    for store in [&former, &latter] {
        assert_eq!(read(store, b"abcdef").await.unwrap(), b"abcdef");
        assert_eq!(read(store, b"before").await.unwrap(), b"before");
    }
    upload(&former, 8, b"ghi").await;
    assert_eq!(objects.chunks().await.len(), 3);
    // One that knows nothing of it yet removes objects all the same.
    let ignorant = without.open().await;
    let client = connect(&database, &mut tasks).await;
    run(&client, "UPDATE blobs SET seen = 0").await;
    assert_eq!(ignorant.sweep_blobs(UnixMillis(1)).await, Ok(3));
    run(&client, SECOND_AGO).await;
    ignorant.sweep_blobs(UnixMillis(1)).await.unwrap();
    assert_eq!(objects.chunks().await.len(), 0);
}

/// The database says which bucket has its blobs, and the bucket which store it belongs to.
#[tokio::test]
async fn another_bucket_is_refused_and_so_is_that_of_another_store() {
    let Some(database) = Database::with_bucket() else { return };
    let Some(other) = Database::with_bucket() else { return };
    let store = database.open().await;
    let refused = async |database: Database| database.try_open().await.map(drop).unwrap_err().to_string();
    let elsewhere = Database { address: database.address.clone(), blobs: other.blobs.clone() };
    let (here, there) = (database.blobs.clone().unwrap().to_string(), other.blobs.clone().unwrap().to_string());
    let why = refused(elsewhere).await;
    assert!(why.contains(&format!("expected {here}, where the database has them, found {there}")), "{why}");
    let theirs = Database { address: other.address.clone(), blobs: database.blobs.clone() };
    let why = refused(theirs).await;
    assert!(why.contains(&format!("found those of store {}", store.history())), "{why}");
    // One that has the objects of no store is another one of the same name.
    let objects = Objects::of(&database);
    objects.bucket.delete(&objects.prefix.clone().join("aptix-store")).await.unwrap();
    let why = refused(Database { address: database.address.clone(), blobs: None }).await;
    assert!(why.contains("aptix-store in s3://") && why.contains("found none"), "{why}");
    objects.bucket.put(&objects.prefix.clone().join("aptix-store"), store.history().to_string().into()).await.unwrap();
    // None of them changed anything.
    other.open().await;
    assert_eq!(Database { address: database.address.clone(), blobs: None }.open().await.history(), store.history());
}

/// An object that is gone, or shorter than it was, is named.
#[tokio::test]
async fn a_lost_object_is_named() {
    let Some(database) = Database::with_bucket() else { return };
    let (store, objects) = (database.open().await, Objects::of(&database));
    upload(&store, 7, b"abc").await;
    let name = objects.chunks().await.remove(0);
    let damaged = |read: Result<Vec<u8>, StoreError>, expected: &str| match read {
        Err(StoreError::Corrupt { what, why }) => {
            assert!(what.contains(name.as_ref()) && why.contains(expected), "{what}: {why}");
        }
        other => panic!("{other:?}"),
    };
    objects.put(&name, b"ab").await;
    damaged(read(&store, b"abc").await, "2 bytes in the place of 3");
    objects.bucket.delete(&name).await.unwrap();
    damaged(read(&store, b"abc").await, "missing");
}

/// A command of the program over the database and its bucket.
fn program(arguments: &[&str], database: &Database, data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    command.args(arguments).arg("--data-dir").arg(data_dir).env("APTIX_SERVER_STORE", &database.address);
    command.envs(database.blobs.as_ref().map(|blobs| ("APTIX_SERVER_BLOBS", blobs.to_string())));
    command.env_remove("APTIX_LOG").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn server(database: &Database, data_dir: &Path) -> Command {
    program(&["--listen", "127.0.0.1:0", "--log", "warn"], database, data_dir)
}

async fn channel(program: &Program) -> Channel {
    Endpoint::new(format!("http://{}", program.address)).unwrap().connect().await.unwrap()
}

/// Bytes of which no two chunks are equal.
fn patterned(length: usize) -> Vec<u8> {
    (0..length).map(|index| u8::try_from((index + index / MIB) * 31 % 251).unwrap()).collect()
}

/// An upload whose server is killed goes on at another server, and what is read at each is what was sent. The bucket has nothing that is
/// not the blob's or on its way out.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_goes_on_at_another_server_after_a_kill() {
    let Some(database) = Database::with_bucket() else { return };
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [killed, other] = [0, 1].map(|one: usize| Program::spawn(server(&database, dirs[one].path())));
    let (mut client, all) = (Clients::over(channel(&other).await), patterned(5 * MIB + 9));
    let whole = v1::BlobRef { sha256: sha256(&all), size_bytes: all.len() as u64 };
    let (parts, stream) = tokio::sync::mpsc::channel(8);
    let (mut files, mut calls, mut tasks) =
        (Clients::over(channel(&killed).await).files, JoinSet::new(), JoinSet::new());
    calls.spawn(async move { files.upload_blob(ReceiverStream::new(stream)).await.map(drop) });
    parts.send(part_start("w", whole.clone())).await.unwrap();
    for chunk in all.chunks(MIB).take(3) {
        parts.send(part_chunk(chunk.to_vec())).await.unwrap();
    }
    let received = async |client: &mut Clients| {
        let request = v1::StatUploadRequest { workspace_id: "w".to_owned(), blob: Some(whole.clone()) };
        usize::try_from(client.files.stat_upload(request).await.unwrap().into_inner().received_bytes).unwrap()
    };
    until(async || (received(&mut client.clone()).await >= 2 * MIB).then_some(())).await;
    killed.signal("-KILL");
    while let Some(ended) = calls.join_next().await {
        assert!(ended.unwrap().is_err());
    }
    let offset = received(&mut client).await;
    let mut start = part_start("w", whole.clone());
    if let Some(v1::upload_blob_request::Part::Start(start)) = &mut start.part {
        start.offset = offset as u64;
    }
    let rest = all[offset..].chunks(MIB).map(|chunk| part_chunk(chunk.to_vec()));
    assert_eq!(client.upload_parts(std::iter::once(start).chain(rest).collect()).await.unwrap(), whole);
    let client = connect(&database, &mut tasks).await;
    let known = client.query("SELECT id FROM uploads UNION ALL SELECT upload FROM blobs", &[]).await.unwrap();
    let known: Vec<_> = known.iter().map(|row| row.get::<_, Uuid>(0).to_string()).collect();
    for name in Objects::of(&database).chunks().await {
        assert!(known.iter().any(|upload| name.as_ref().contains(upload)), "{name} is in none of {known:?}");
    }
    let again = Program::spawn(server(&database, dirs[0].path()));
    for server in [&other, &again] {
        assert!(Clients::over(channel(server).await).download("w", &sha256(&all)).await.unwrap() == all);
    }
}

/// A way to the S3-compatible server, which can be closed.
struct Way {
    endpoint: String,
    is_open: watch::Sender<bool>,
    _carried: JoinSet<()>,
}

impl Way {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let target = std::env::var_os(ENDPOINT)
            .unwrap()
            .to_str()
            .unwrap()
            .trim_start_matches("http://")
            .trim_end_matches('/')
            .to_owned();
        let (is_open, watched) = watch::channel(true);
        let mut carried = JoinSet::new();
        carried.spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let (mut watched, target) = (watched.clone(), target.clone());
                streams.spawn(async move {
                    let carry = async {
                        let mut far = TcpStream::connect(target).await.unwrap();
                        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    };
                    tokio::select! {
                        () = carry => {}
                        _ = watched.wait_for(|is_open| !is_open) => {}
                    }
                });
            }
        });
        Self { endpoint, is_open, _carried: carried }
    }
}

/// While the bucket is out of reach, uploads and downloads are refused as what passes, and everything else is served: batches are stored,
/// the server is healthy, another one starts. What comes back goes on.
#[tokio::test(flavor = "multi_thread")]
async fn without_its_bucket_a_server_serves_what_needs_none() {
    let Some(database) = Database::with_bucket() else { return };
    let (way, dirs) = (Way::new().await, [(); 3].map(|()| tempfile::tempdir().unwrap()));
    let start = |dir: usize, database: &Database| {
        let mut command = server(database, dirs[dir].path());
        command.env(ENDPOINT, &way.endpoint);
        command
    };
    let serving = Program::spawn(start(0, &database));
    let channel_to = channel(&serving).await;
    let mut client = Clients::over(channel_to.clone());
    client.upload("w", b"kept").await.unwrap();
    way.is_open.send_replace(false);
    let refused = [
        client.upload("w", b"other").await.map(drop).unwrap_err(),
        client.download("w", &sha256(b"kept")).await.map(drop).unwrap_err(),
    ];
    for status in refused {
        assert!(status.code() == Code::Unavailable && status.message().contains("bucket"), "{status:?}");
    }
    client.submit(submit("w", "r1", vec![create_text("a", "text")])).await.unwrap();
    let mut connections = JoinSet::new();
    let postgres = connect(&database, &mut connections).await;
    let due =
        "INSERT INTO uploads (id, dropped, removable) VALUES (gen_random_uuid(), true, now() - interval '1 second')";
    run(&postgres, due).await;
    client.submit(submit("v", "r1", vec![create_text("a", "text")])).await.unwrap();
    let (code, said) = ended(program(&["workspace", "delete", "v", "--yes"], &database, dirs[0].path()));
    assert_eq!(code, Some(0), "{said}");
    let put_off = "SELECT FROM uploads WHERE dropped AND removable > now()";
    until(async || (!postgres.query(put_off, &[]).await.unwrap().is_empty()).then_some(())).await;
    let healthy = HealthClient::new(channel_to).check(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(healthy.status(), ServingStatus::Serving);
    let another = Program::spawn(start(1, &database));
    let mut there = Clients::over(channel(&another).await);
    there.submit(submit("w", "r2", vec![create_text("a", "text")])).await.unwrap();
    // A bucket that no server used yet has to answer at the first start.
    let fresh = Database::with_bucket().unwrap();
    let (code, said) = ended(start(2, &fresh));
    assert!(code == Some(3) && said.contains(&fresh.blobs.as_ref().unwrap().to_string()), "{code:?}: {said}");
    way.is_open.send_replace(true);
    for client in [&mut client, &mut there] {
        client.upload("w", b"other").await.unwrap();
        assert_eq!(client.download("w", &sha256(b"kept")).await.unwrap(), b"kept");
    }
}

/// A backup has the bytes that are in the bucket; restored and migrated into other places, there and back, they are the same. The bucket of
/// another store is refused before anything is written.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_has_the_bytes_of_the_bucket() {
    let Some(database) = Database::with_bucket() else { return };
    let (Some(second), Some(third)) = (Database::with_bucket(), Database::with_bucket()) else { return };
    let (dir, all) = (tempfile::tempdir().unwrap(), patterned(2 * MIB + 5));
    let at = |name: &str| dir.path().join(name);
    let serving = Program::spawn(server(&database, &at("first")));
    let mut client = Clients::over(channel(&serving).await);
    client.upload("w", &all).await.unwrap();
    client.submit(submit("w", "r1", vec![create_text("a", "text")])).await.unwrap();
    let ran = |arguments: &[&str], database: &Database, dir: &Path| {
        let (code, said) = ended(program(arguments, database, dir));
        assert_eq!(code, Some(0), "{said}");
    };
    let backup = at("backup").to_str().unwrap().to_owned();
    ran(&["backup", "--to", &backup], &database, &at("first"));
    serving.signal("-TERM");
    assert_eq!(serving.end(), Some(0));

    let restore = ["restore", "--from", &backup];
    let none = Database { address: second.address.clone(), blobs: None };
    ran(&restore, &second, &at("second"));
    let objects = Objects::of(&second).chunks().await;
    assert_eq!(objects.len(), 3);
    let migrate = |from, to| ["migrate", "--from", from, "--to", to];
    // Where the bytes are, the database says.
    ran(&migrate("postgres", "embedded"), &none, &at("embedded"));
    let foreign = Database { address: third.address.clone(), blobs: Some(other_store().await) };
    let (code, said) = ended(program(&migrate("embedded", "postgres"), &foreign, &at("embedded")));
    assert!(code == Some(3) && said.contains("found those of store"), "{code:?}: {said}");
    ran(&migrate("embedded", "postgres"), &third, &at("embedded"));
    assert_eq!(Objects::of(&third).chunks().await.len(), 3);
    for (database, name) in [(&none, "a"), (&third, "b")] {
        let serving = Program::spawn(server(database, &at(name)));
        let mut client = Clients::over(channel(&serving).await);
        assert!(client.download("w", &sha256(&all)).await.unwrap() == all);
    }
}

/// The bucket of a store that nobody has to do with.
async fn other_store() -> BucketAddress {
    let database = Database::with_bucket().unwrap();
    database.open().await;
    database.blobs.unwrap()
}

/// A restore that is cut off leaves objects, which are removed once the restore was repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_is_cut_off_leaves_no_object_for_ever() {
    let Some(database) = Database::with_bucket() else { return };
    let Some(target) = Database::with_bucket() else { return };
    let (store, dir) = (Arc::new(database.open().await), tempfile::tempdir().unwrap());
    store.create_workspace(workspace("w")).await.unwrap();
    upload(&store, 7, b"abcdefgh").await;
    let [backup, cut] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    store.back_up(Box::new(backup.reopen().unwrap())).await.unwrap();
    let whole = std::fs::read(backup.path()).unwrap();
    cut.as_file().write_all(&whole[..whole.len() - 60]).unwrap();
    let restore = |from: &tempfile::NamedTempFile| {
        ended(program(&["restore", "--from", from.path().to_str().unwrap()], &target, dir.path()))
    };
    let (code, said) = restore(&cut);
    assert!(code == Some(3) && said.contains("cut off"), "{code:?}: {said}");
    let objects = Objects::of(&target);
    let left = objects.chunks().await.len();
    assert!(left > 0, "it was cut off behind the first chunk");
    let (code, said) = restore(&backup);
    assert_eq!(code, Some(0), "{said}");
    let (opened, mut tasks) = (target.open().await, JoinSet::new());
    opened.sweep_blobs(UnixMillis(1)).await.unwrap();
    assert_eq!(objects.chunks().await.len(), left + 3, "they stay for a day");
    run(&connect(&target, &mut tasks).await, SECOND_AGO).await;
    opened.sweep_blobs(UnixMillis(1)).await.unwrap();
    assert_eq!(objects.chunks().await.len(), 3);
    assert_eq!(read(&opened, b"abcdefgh").await.unwrap(), b"abcdefgh");
}

/// No output has the secret with which the bucket is asked, also not the log of everything.
#[tokio::test(flavor = "multi_thread")]
async fn no_output_has_the_secret_of_the_bucket() {
    let Some(database) = Database::with_bucket() else { return };
    let (dir, log) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let mut command = program(&["--listen", "127.0.0.1:0", "--log", "trace"], &database, dir.path());
    command
        .env("AWS_SECRET_ACCESS_KEY", "hush-hush")
        .env("AWS_SESSION_TOKEN", "hush-too")
        .stderr(log.reopen().unwrap());
    let serving = Program::spawn(command);
    let mut client = Clients::over(channel(&serving).await);
    client.upload("w", b"content").await.unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    check.arg("check-config").env("APTIX_SERVER_STORE", &database.address).env("AWS_SECRET_ACCESS_KEY", "hush-hush");
    check.env("APTIX_SERVER_BLOBS", database.blobs.as_ref().unwrap().to_string());
    let (_, said) = ended(check);
    assert!(said.contains(&format!("blobs = \"{}\"", database.blobs.as_ref().unwrap())), "{said}");
    let logged = std::fs::read_to_string(log.path()).unwrap();
    assert!(!logged.is_empty() && !logged.contains("hush") && !said.contains("hush"));
}
