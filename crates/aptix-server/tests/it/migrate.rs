//! The command that moves a store from a data directory into a PostgreSQL database, and back.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use aptix_model::record::UnixMillis;
use aptix_model::token::{Ended, Ending, Role, Scope};
use aptix_server::identity::Registry;
use aptix_server::store::Store;
use aptix_server::store::backup::BackupError;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::postgres::address::Address;
use aptix_server::store::postgres::migration::Source;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::cluster::Database;
use crate::fleet_store::{LONG, member};
use crate::identity::new;
use crate::process::Program;
use crate::sample;
use crate::store_contract::{append, batch, workspace};
use crate::until::until;

/// Workspaces of a store beside those of the sample.
const MANY: u128 = 12;

fn program(arguments: &[&str], store: &str, data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    command.args(arguments).arg("--data-dir").arg(data_dir).env("APTIX_SERVER_STORE", store);
    command.env_remove("APTIX_LOG").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command to its end: its exit code, and all that it printed.
fn run(mut command: Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

const INTO: [&str; 5] = ["migrate", "--from", "embedded", "--to", "postgres"];
const BACK: [&str; 5] = ["migrate", "--from", "postgres", "--to", "embedded"];

/// Runs a migration that is to be done; answers what it printed.
fn migrated(direction: [&str; 5], database: &Database, dir: &Path) -> String {
    let (code, said) = run(program(&direction, &database.address, dir));
    assert_eq!(code, Some(0), "{said}");
    said
}

/// Runs a migration that is to fail with this exit code and these words.
fn failed(direction: [&str; 5], database: &Database, dir: &Path, expected: (i32, &str)) {
    let (code, said) = run(program(&direction, &database.address, dir));
    assert!(code == Some(expected.0) && said.contains(expected.1), "{code:?}: {expected:?} in {said}");
}

/// A data directory with a store that has records of every kind.
async fn filled() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    sample::fill(&store).await;
    for number in 0..MANY {
        append(&store, batch(5000 + number, &format!("many{number:02}"), "r")).await;
    }
    store.close().await.unwrap();
    dir
}

/// The items of the backup that the program makes of a store: without the first, which has the time of it, and the end, which counts its
/// bytes.
fn items(store: &str, dir: &Path) -> Vec<Vec<u8>> {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("backup");
    let (code, said) = run(program(&["backup", "--to", file.to_str().unwrap()], store, dir));
    assert_eq!(code, Some(0), "{said}");
    let backup = std::fs::read(&file).unwrap();
    let (mut rest, mut items) = (&backup[16..], Vec::new());
    while let Some((length, after)) = rest.split_first_chunk() {
        let (item, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        items.push(item.to_vec());
        rest = &after[32..];
    }
    items.remove(0);
    items.pop();
    items
}

/// The names and the content of the files in a directory.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

async fn connect(database: &Database, tasks: &mut JoinSet<()>) -> Client {
    let address = Address::parse(&database.address).unwrap();
    let (client, connection) = address.config().connect(NoTls).await.unwrap();
    tasks.spawn(async move { drop(connection.await) });
    client
}

/// How many workspaces are in a database.
async fn count(client: &Client) -> i64 {
    let counted = client.query_one("SELECT count(*) FROM workspaces", &[]).await;
    counted.map_or(0, |row| row.get(0))
}

/// There and back everything is equal, the source is as it was, and a second run is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_equal_there_and_back() {
    let Some(database) = Database::new() else { return };
    let (dir, other, socket) = (filled().await, tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let before = files(dir.path());
    let said = migrated(INTO, &database, dir.path());
    assert!(said.contains("copied 15 of 15") && said.contains("compared 15 of 15"), "{said}");
    assert!(said.contains("read back and equal: workspaces 15, batches 18"), "{said}");
    assert!(files(dir.path()) == before, "the source is as it was");
    let mut tasks = JoinSet::new();
    let counted = "SELECT reltuples::bigint FROM pg_class WHERE relname = 'batches'";
    let counted = connect(&database, &mut tasks).await.query_one(counted, &[]).await.unwrap();
    assert_eq!(counted.get::<_, i64>(0), 18, "PostgreSQL knows what came");
    failed(INTO, &database, dir.path(), (1, "the whole store"));
    let expected = items("", dir.path());
    assert!(items(&database.address, socket.path()) == expected);
    failed(BACK, &database, dir.path(), (1, "is not empty"));
    migrated(BACK, &database, other.path());
    assert!(items("", other.path()) == expected);
    let history = |dir: &Path| EmbeddedStore::open(dir).unwrap().history();
    assert_eq!(history(dir.path()), history(other.path()));
    let program = Program::spawn(program(&["--listen", "127.0.0.1:0"], &database.address, socket.path()));
    program.signal("-TERM");
    assert_eq!(program.end(), Some(0));
}

/// A migration that is killed at any workspace goes on where it was: what is there is not copied again, and meanwhile no server and no
/// command opens the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_migration_into_a_database_goes_on() {
    let Some(database) = Database::new() else { return };
    let (dir, socket) = (filled().await, tempfile::tempdir().unwrap());
    let mut tasks = JoinSet::new();
    let (observer, mut blocker) = (connect(&database, &mut tasks).await, connect(&database, &mut tasks).await);
    // Its tables are there from the first attempt on.
    failed(BACK, &database, socket.path(), (3, "no tables of a store"));
    let opened = database.open().await;
    opened.close().await.unwrap();
    observer.batch_execute("DELETE FROM store; DELETE FROM store_facts").await.unwrap();
    let mut first = None;
    for (there, name) in [(0, "empty"), (1, "many00"), (7, "many06"), (13, "v"), (14, "w")] {
        // The migration waits at this workspace until it is killed.
        let blocked = blocker.transaction().await.unwrap();
        blocked.execute("INSERT INTO workspaces (name) VALUES ($1)", &[&name]).await.unwrap();
        let mut child = program(&INTO, &database.address, dir.path()).stdout(Stdio::null()).spawn().unwrap();
        let begun = BufReader::new(child.stderr.take().unwrap()).lines().next().unwrap().unwrap();
        assert_eq!(begun, "copied 0 of 15 workspaces");
        until(async || (count(&observer).await == there).then_some(())).await;
        child.kill().unwrap();
        child.wait().unwrap();
        blocked.rollback().await.unwrap();
        let (code, said) = run(program(&["--listen", "127.0.0.1:0"], &database.address, socket.path()));
        assert!(code == Some(3) && said.contains("a migration into it was cut off"), "{said}");
        failed(BACK, &database, socket.path(), (1, "a migration into it was cut off"));
        if there == 1 {
            first = Some(born(&observer, "empty").await);
        }
    }
    // One that is interrupted leaves nothing in the source either.
    let blocked = blocker.transaction().await.unwrap();
    blocked.execute("INSERT INTO workspaces (name) VALUES ('w')", &[]).await.unwrap();
    let mut child = program(&INTO, &database.address, dir.path()).spawn().unwrap();
    let waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until(async || observer.query(waits, &[]).await.unwrap().first().map(drop)).await;
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    blocked.rollback().await.unwrap();
    let left = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let views: Vec<_> = left.filter(|name| name.starts_with(".view-")).collect();
    assert_eq!(views.len(), 5, "those of the killed ones, which the next start of a server removes: {views:?}");
    // Now where everything was compared, and only servers are to be let in.
    let blocked = blocker.transaction().await.unwrap();
    blocked.query_one("SELECT FROM store FOR SHARE", &[]).await.unwrap();
    let mut child = program(&INTO, &database.address, dir.path()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "compared 15 of 15 workspaces"));
    child.kill().unwrap();
    child.wait().unwrap();
    blocked.rollback().await.unwrap();
    failed(BACK, &database, socket.path(), (1, "a migration into it was cut off"));
    migrated(INTO, &database, dir.path());
    assert_eq!(Some(born(&observer, "empty").await), first, "it was not copied again");
    assert!(items(&database.address, socket.path()) == items("", dir.path()));
}

/// What distinguishes the row of a workspace from an earlier one of its name.
async fn born(client: &Client, name: &str) -> String {
    let sql = "SELECT born::text FROM workspaces WHERE name = $1";
    client.query_one(sql, &[&name]).await.unwrap().get(0)
}

/// A source that was served after the migration was cut off is moved as it is then: what it has no more is removed.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_changed_is_moved_as_it_is_then() {
    let Some(database) = Database::new() else { return };
    let (dir, socket) = (filled().await, tempfile::tempdir().unwrap());
    migrated(INTO, &database, dir.path());
    let mut tasks = JoinSet::new();
    let client = connect(&database, &mut tasks).await;
    client.batch_execute("UPDATE store SET filling = true").await.unwrap();
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    append(&store, batch(9000, "many03", "later")).await;
    append(&store, batch(9001, "new", "r")).await;
    let ended = Ended { at: UnixMillis(1), how: Ending::Revoked };
    for name in ["many05", "w"] {
        store.begin_deletion(workspace(name), ended).await.unwrap().unwrap();
        while store.continue_deletion(workspace(name)).await.unwrap().is_some_and(|deletion| !deletion.is_done) {}
    }
    store.close().await.unwrap();
    drop(store);
    migrated(INTO, &database, dir.path());
    assert!(items(&database.address, socket.path()) == items("", dir.path()));
}

/// A directory that a killed migration left is opened by nothing, and filled anew by the same command.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_migration_into_a_directory_begins_anew() {
    let Some(database) = Database::new() else { return };
    let (dir, other) = (filled().await, tempfile::tempdir().unwrap());
    migrated(INTO, &database, dir.path());
    let mut tasks = JoinSet::new();
    let mut blocker = connect(&database, &mut tasks).await;
    for table in ["tokens", "batches", "chunks"] {
        // The migration waits where it reads this table until it is killed.
        let blocked = blocker.transaction().await.unwrap();
        blocked.batch_execute(&format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")).await.unwrap();
        let mut child = program(&BACK, &database.address, other.path()).spawn().unwrap();
        let waits = "SELECT FROM pg_locks WHERE NOT granted AND relation = $1::text::regclass";
        until(async || blocked.query_opt(waits, &[&table]).await.unwrap().map(drop)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        blocked.rollback().await.unwrap();
        let (code, said) = run(program(&["--listen", "127.0.0.1:0"], "embedded", other.path()));
        assert!(code == Some(3) && said.contains("a migration into it was cut off"), "{said}");
    }
    migrated(BACK, &database, other.path());
    assert!(items("", other.path()) == items("", dir.path()));
}

/// A source that a server uses is refused, and so is a target with another store; nothing is changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_in_use_and_another_history_are_refused() {
    let (Some(database), Some(other)) = (Database::new(), Database::new()) else { return };
    let (dir, socket, empty) = (filled().await, tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut tasks = JoinSet::new();
    let client = connect(&database, &mut tasks).await;
    let serving = Program::start(dir.path(), &[]);
    failed(INTO, &database, dir.path(), (1, "is in use"));
    serving.signal("-TERM");
    assert_eq!(serving.end(), Some(0));
    migrated(INTO, &database, dir.path());
    let (_, said) = run(program(&["token", "list"], &database.address, socket.path()));
    assert!(said.contains("agent"), "{said}");
    other.open().await.close().await.unwrap();
    let observer = connect(&other, &mut tasks).await;
    observer.query_one("SELECT pg_advisory_lock($1)", &[&0x4150_5449_584e_i64]).await.unwrap();
    failed(INTO, &other, dir.path(), (1, "another migration into it is under way"));
    observer.query_one("SELECT pg_advisory_unlock($1)", &[&0x4150_5449_584e_i64]).await.unwrap();
    failed(INTO, &other, dir.path(), (1, "was to be moved"));
    client.batch_execute("UPDATE store SET filling = true, history = gen_random_uuid()").await.unwrap();
    failed(INTO, &database, dir.path(), (1, "was to be moved"));
    assert_eq!(count(&client).await, 15, "nothing is removed");
    let serving = Program::spawn(program(&["--listen", "127.0.0.1:0"], &other.address, socket.path()));
    until(async || observer.query_opt("SELECT FROM servers", &[]).await.unwrap().map(drop)).await;
    failed(BACK, &other, empty.path(), (1, "count as alive"));
    serving.signal("-TERM");
    assert_eq!(serving.end(), Some(0));
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
    let nothing = tempfile::tempdir().unwrap();
    failed(INTO, &other, nothing.path(), (3, "--data-dir"));
    failed(["migrate", "--from", "postgres", "--to", "postgres"], &other, nothing.path(), (2, "two kinds"));
    let (code, said) = run(program(&INTO, "embedded", dir.path()));
    assert!(code == Some(3) && said.contains("expected the address"), "{said}");
}

/// A byte that changes in the target after it was written is found, whatever it is of; the next run copies that workspace again.
#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_in_the_target_is_found() {
    let Some(database) = Database::new() else { return };
    let dir = filled().await;
    let flip = |column: &str| format!("set_byte({column}, 20, get_byte({column}, 20) # 1)");
    let damages = [
        ("w", format!("UPDATE batches SET content = {} WHERE workspace = 'w'", flip("content"))),
        (
            "w",
            format!(
                "UPDATE batch_states SET progress = {} WHERE id IN (SELECT id FROM batches WHERE workspace = 'w')",
                flip("progress")
            ),
        ),
        ("w", format!("UPDATE batches SET event = {} WHERE workspace = 'w'", flip("event"))),
        ("v", format!("UPDATE events SET record = {} WHERE workspace = 'v'", flip("record"))),
        ("w", format!("UPDATE chunks SET bytes = {} WHERE index = 1", flip("bytes"))),
        ("many03", format!("UPDATE workspaces SET digest = {} WHERE name = 'many03'", flip("digest"))),
        ("v", "DELETE FROM sessions WHERE workspace = 'v'".to_owned()),
        ("w", "DELETE FROM files WHERE workspace = 'w'".to_owned()),
    ];
    migrated(INTO, &database, dir.path());
    let mut tasks = JoinSet::new();
    let client = connect(&database, &mut tasks).await;
    for (name, damage) in damages {
        // As if it happened while the last workspaces were copied: those that are there are passed over, and then compared.
        assert!(client.execute(&damage, &[]).await.unwrap() > 0, "{damage}");
        client.batch_execute("UPDATE store SET filling = true").await.unwrap();
        if name != "many03" {
            failed(INTO, &database, dir.path(), (3, "differs from the source"));
            let left = "SELECT FROM workspaces WHERE name = $1";
            assert!(
                client.query_opt(left, &[&name]).await.unwrap().is_none(),
                "{damage}: it is the one that is removed"
            );
        }
        migrated(INTO, &database, dir.path());
    }
    let socket = tempfile::tempdir().unwrap();
    assert!(items(&database.address, socket.path()) == items("", dir.path()));
}

/// A server that used the source meanwhile is detected, also after it has left, and so is a token that was made before its server joined.
#[tokio::test]
async fn a_use_of_the_source_meanwhile_is_detected() {
    let Some(database) = Database::new() else { return };
    let (store, address) = (Arc::new(database.open().await), Address::parse(&database.address).unwrap());
    let source = Source::open(&address).await.unwrap();
    source.check_unused().await.unwrap();
    store.join(member(1), LONG).await.unwrap();
    store.leave(member(1).id).await.unwrap();
    let is_refused = |checked: Result<(), BackupError>| {
        let refused = checked.unwrap_err().to_string();
        assert!(refused.contains("a server has used it meanwhile"), "{refused}");
    };
    is_refused(source.check_unused().await);
    let source = Source::open(&address).await.unwrap();
    let registry = Registry::load(store as Arc<dyn Store>).await.unwrap();
    registry.create(new("laptop", Role::Reader, Scope::All, None)).await.unwrap();
    is_refused(source.check_unused().await);
}
