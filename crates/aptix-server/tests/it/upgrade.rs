//! Data directories of other formats: an older one is upgraded with a copy kept, and read without an upgrade; a newer one is
//! refused untouched.

#![expect(clippy::disallowed_methods, reason = "the test makes data directories of other versions")]

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use aptix_model::path::DocPath;
use aptix_server::store::embedded::verify::verify;
use aptix_server::store::embedded::{EmbeddedStore, format};
use aptix_server::store::{Appended, BatchSelector, Store, StoreError};
use fjall::KeyspaceCreateOptions;

use crate::process::Program;
use crate::sample;
use crate::store_contract::{batch, workspace};

/// What a server of format 1 wrote, when `sample::fill` filled its store: a line for each record.
const RECORDS: &str = include_str!("format_1.txt");

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// A data directory as that server left it.
pub(crate) fn of_format_1() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let database = fjall::Database::builder(dir.path()).open().unwrap();
    let marks = File::options().create_new(true).write(true).open(dir.path().join("acknowledged")).unwrap();
    for line in RECORDS.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["length", length] => marks.set_len(length.parse().unwrap()).unwrap(),
            ["acknowledged", at, slot] => marks.write_all_at(&bytes(slot), at.parse().unwrap()).unwrap(),
            [table, key, value] => {
                let table = database.keyspace(table, KeyspaceCreateOptions::default).unwrap();
                table.insert(bytes(key), bytes(value)).unwrap();
            }
            _ => panic!("{line}"),
        }
    }
    database.persist(fjall::PersistMode::SyncAll).unwrap();
    std::fs::write(dir.path().join("tokens-needed"), "yes").unwrap();
    dir
}

/// The content of every file that a look at the directory must not change.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else if entry.file_name() != "server.lock" && entry.file_type().unwrap().is_file() {
            found.insert(entry.path(), std::fs::read(entry.path()).unwrap());
        }
    }
    found
}

fn copies(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("before-format-")).collect()
}

fn run(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    let output = command.args(arguments).arg("--data-dir").arg(dir).output().unwrap();
    (output.status.code(), [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat())
}

/// Holds a store that was upgraded against one that was filled as it was.
async fn is_as_filled(dir: &Path) {
    let (filled, store) = (tempfile::tempdir().unwrap(), Arc::new(EmbeddedStore::open(dir).unwrap()));
    let expected = Arc::new(EmbeddedStore::open(filled.path()).unwrap());
    sample::fill(&expected).await;
    for name in ["w", "v", "empty"] {
        let id = workspace(name);
        assert_eq!(store.counts(id.clone()).await, expected.counts(id.clone()).await);
        assert_eq!(store.used_bytes(id.clone()).await, expected.used_bytes(id.clone()).await);
        let events = store.events(id.clone(), Default::default(), 100).await.unwrap();
        assert_eq!(Ok(events.clone()), expected.events(id.clone(), Default::default(), 100).await);
        for event in events {
            let which = || BatchSelector::Id(event.as_ref().unwrap().batch);
            let batch = store.batch(id.clone(), which()).await.unwrap();
            assert_eq!(Ok(batch), expected.batch(id.clone(), which()).await);
        }
        assert_eq!(store.files(id.clone(), None, 10).await, expected.files(id.clone(), None, 10).await);
        for key in ["main/a.txt", "main/b.txt", "main/c.txt"].map(|key| DocPath::new(key).unwrap()) {
            let found = store.files_with_key(id.clone(), key.clone()).await;
            assert_eq!(found, expected.files_with_key(id.clone(), key).await);
        }
    }
    assert_eq!(store.tokens().await, expected.tokens().await);
    // A retry of what was stored then is still one.
    assert!(matches!(store.append(batch(77, "w", "r1")).await, Ok(Appended::Known(_))));
    store.close().await.unwrap();
}

#[tokio::test]
async fn an_older_directory_is_upgraded_and_its_copy_kept() {
    let dir = of_format_1();
    let before = std::fs::read(dir.path().join("acknowledged")).unwrap();
    assert_eq!(verify(dir.path()).unwrap().damages, Vec::<String>::new());
    assert_eq!(format::is_old(dir.path()), Ok(true));
    is_as_filled(dir.path()).await;
    assert_eq!(verify(dir.path()).unwrap().damages, Vec::<String>::new());
    assert_eq!(format::is_old(dir.path()), Ok(false));
    is_as_filled(dir.path()).await;
    let [copy] = &copies(dir.path())[..] else { panic!("one copy") };
    assert_eq!(std::fs::read(copy.join("acknowledged")).unwrap(), before);
    assert!(copy.join("tokens-needed").exists() && !copy.join("format").exists());
    assert_eq!(verify(copy).unwrap().damages, Vec::<String>::new());
    // The copy is a data directory of the older format.
    is_as_filled(copy).await;
}

#[test]
fn a_directory_of_a_newer_format_is_refused_untouched() {
    let dir = of_format_1();
    std::fs::write(dir.path().join("format"), "aptix-server data directory, format 3\n").unwrap();
    let before = files(dir.path());
    for arguments in [&["verify"][..], &["token", "list"], &["workspace", "create", "x"], &[]] {
        let (code, text) = run(dir.path(), arguments);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains("has format 3, and this server reads formats 1 to 2; nothing was changed"), "{text}");
    }
    assert_eq!(files(dir.path()), before);
    std::fs::write(dir.path().join("format"), "something else").unwrap();
    let refused = EmbeddedStore::open(dir.path()).map(drop);
    assert!(matches!(&refused, Err(StoreError::Corrupt { why, .. }) if why.contains("something else")), "{refused:?}");
}

#[test]
fn commands_that_read_upgrade_nothing() {
    let dir = of_format_1();
    let before = files(dir.path());
    let (code, listed) = run(dir.path(), &["token", "list"]);
    assert_eq!(code, Some(0), "{listed}");
    assert!(listed.contains("gone") && listed.contains("revoked") && listed.contains("operator"), "{listed}");
    assert_eq!(run(dir.path(), &["workspace", "list"]).1, "empty\nv\nw\n");
    let (code, found) = run(dir.path(), &["verify"]);
    assert_eq!(code, Some(0), "{found}");
    assert_eq!(files(dir.path()), before);
    assert!(run(dir.path(), &["workspace", "create", "new"]).1.contains("created workspace new"));
    assert_eq!((format::is_old(dir.path()), copies(dir.path()).len()), (Ok(false), 1));
}

/// Killed when it begins to copy, when the copy is kept, and when the format is named.
#[tokio::test]
async fn an_upgrade_that_is_killed_goes_on_at_the_next_start() {
    for stage in [".view-", "before-format-", "format"] {
        let dir = of_format_1();
        let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
        command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.path());
        let mut server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let has_come = |name: &str| {
            let entries = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
            entries.into_iter().any(|found| found.to_str().unwrap().starts_with(name))
        };
        // A stage may be over before it is seen; the next one is then.
        while !has_come(stage) && !has_come("format") {
            std::thread::yield_now();
        }
        server.kill().unwrap();
        server.wait().unwrap();
        Program::start(dir.path(), &[]);
        assert_eq!(verify(dir.path()).unwrap().damages, Vec::<String>::new(), "killed at {stage}");
        is_as_filled(dir.path()).await;
        assert_eq!(copies(dir.path()).len(), 1, "killed at {stage}");
        assert!(!has_come(".view-"), "killed at {stage}");
    }
}

/// Files of an older format over those of a newer one, whose `format` stayed: the first start refuses, the next keeps a copy.
#[test]
fn records_older_than_the_named_format_are_upgraded_with_a_copy_kept() {
    let dir = of_format_1();
    std::fs::write(dir.path().join("format"), "aptix-server data directory, format 2\n").unwrap();
    let (code, said) = run(dir.path(), &["workspace", "create", "x"]);
    assert!(code == Some(3) && said.contains("start again") && copies(dir.path()).is_empty(), "{said}");
    let (code, said) = run(dir.path(), &["workspace", "create", "x"]);
    assert_eq!((code, copies(dir.path()).len()), (Some(0), 1), "{said}");
}
