//! Batches that are applied file by file: which files are applied, failed and skipped, whatever stops or fails on the way.

use std::cell::Cell;
use std::path::Path;

use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{Hidden, Mode, Refusal, apply};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_client::present::log::{Query, log};
use aptix_client::workspace::keep::history::find::Wanted;
use aptix_model::actor::Actor;
use aptix_model::batch::{Atomicity, Batch, FileEdit, FilePatch, Replacement, Replacements, Scope};
use aptix_model::documents;
use aptix_model::report::{Outcome, Report};
use rustix::io::Errno;

use crate::faults::{
    BATCH, Fault, Receipt, batch_of, commit, laid_out, open, options, patch, stop_everywhere_in, take_back, write,
};
use crate::tree;

fn replace(path: &str, find: &str) -> FilePatch {
    let step = Replacement { find: find.to_owned(), replace: "changed".to_owned(), scope: Scope::First };
    patch(path, FileEdit::Replacements(Replacements { steps: vec![step] }))
}

fn edit(path: &str) -> FilePatch {
    replace(path, "two")
}

/// An edit that does not fit.
fn misfit(path: &str) -> FilePatch {
    replace(path, "nowhere to be found")
}

fn parsed(document: &str) -> FilePatch {
    documents::parse(document.as_bytes(), None).unwrap().batch.files.remove(0)
}

fn rename(from: &str, to: &str) -> FilePatch {
    parsed(&format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n"))
}

fn copy(from: &str, to: &str) -> FilePatch {
    parsed(&format!("diff --git a/{from} b/{to}\nsimilarity index 100%\ncopy from {from}\ncopy to {to}\n"))
}

fn delete(path: &str) -> FilePatch {
    patch(path, FileEdit::DeleteFile)
}

/// Takes a line of a file up, or puts one down.
fn clip(path: &str, change: &str) -> FilePatch {
    parsed(&format!(r#"{{"path":"{path}","patches":[{{{change}}}]}}"#))
}

fn per_file(files: impl IntoIterator<Item = FilePatch>) -> Batch {
    Batch { atomicity: Atomicity::PerFile, ..batch_of(files) }
}

/// `path: status` of each file, then `path: reason` of each failure.
fn told(outcome: &Result<Report, Refusal>) -> Vec<String> {
    let failures = match outcome {
        Ok(report) => &report.failures,
        Err(refusal) => &refusal.failures,
    };
    let files = outcome.iter().flat_map(|report| &report.files);
    let files = files.map(|file| format!("{} {}", file.path, file.status));
    let path = |path: &Option<String>| path.clone().unwrap_or_default();
    files.chain(failures.iter().map(|failure| format!("{} {}", path(&failure.path), failure.reason.code()))).collect()
}

/// Files with three lines: `a.txt`, `dir/b.txt`, `c.txt`, and `link`, which leads to `a.txt`.
fn lay_out(ws: &Path) {
    std::fs::write(ws.join("c.txt"), "one\ntwo\nthree\n").unwrap();
    std::fs::write(ws.join(".gitignore"), "*.log\n").unwrap();
    std::fs::write(ws.join("x.log"), "one\ntwo\nthree\n").unwrap();
    std::fs::create_dir(ws.join(".git")).unwrap();
    std::os::unix::fs::symlink("a.txt", ws.join("link")).unwrap();
}

#[test]
fn a_refused_file_takes_along_only_the_files_that_depend_on_it() {
    hold([
        ("all fit", vec![edit("a.txt"), edit("c.txt")], &["a.txt modified", "c.txt modified"]),
        (
            "one fails",
            vec![edit("a.txt"), misfit("c.txt"), write("new.txt", "new\n", false)],
            &["a.txt modified", "c.txt failed", "new.txt created", "c.txt TEXT_NOT_FOUND"],
        ),
        (
            "they fail for different reasons, found one after the other",
            vec![edit("gone.txt"), misfit("c.txt"), edit("a.txt")],
            &["gone.txt failed", "c.txt failed", "a.txt modified", "gone.txt FILE_MISSING", "c.txt TEXT_NOT_FOUND"],
        ),
        ("all fail", vec![misfit("a.txt"), edit("gone")], &["a.txt TEXT_NOT_FOUND", "gone FILE_MISSING"]),
        (
            "a chain of renames",
            vec![rename("a.txt", "c.txt"), rename("c.txt", "d.txt"), misfit("dir/b.txt")],
            &["a.txt renamed", "c.txt renamed", "dir/b.txt failed", "dir/b.txt TEXT_NOT_FOUND"],
        ),
        (
            "a chain of renames whose end is taken",
            vec![rename("a.txt", "c.txt"), rename("c.txt", "dir/b.txt"), write("new.txt", "", false)],
            &["a.txt skipped", "c.txt failed", "new.txt created", "c.txt FILE_EXISTS"],
        ),
        ("a swap", vec![rename("a.txt", "c.txt"), rename("c.txt", "a.txt")], &["a.txt renamed", "c.txt renamed"]),
        (
            "a copy of a file that is refused",
            vec![copy("a.txt", "copy.txt"), misfit("a.txt"), edit("c.txt")],
            &["copy.txt skipped", "a.txt failed", "c.txt modified", "a.txt TEXT_NOT_FOUND"],
        ),
    ]);
}

#[test]
fn what_is_refused_is_refused_alone() {
    hold([
        ("one path twice", vec![edit("a.txt"), edit("a.txt"), edit("c.txt")], &["a.txt INVALID_REQUEST"]),
        (
            "one file by two names",
            vec![edit("a.txt"), edit("link"), edit("c.txt")],
            &["a.txt modified", "link failed", "c.txt modified", "link INVALID_REQUEST"],
        ),
        ("one is wrong in itself", vec![edit("a.txt"), write(".git/config", "", true)], &[".git/config POLICY_DENIED"]),
        (
            "a person would have to agree to one",
            vec![write(".github/workflows/ci.yml", "x: 1\n", false), edit("a.txt")],
            &[".github/workflows/ci.yml failed", "a.txt modified", ".github/workflows/ci.yml APPROVAL_REQUIRED"],
        ),
        (
            "one is withheld",
            vec![edit("a.txt"), edit("x.log")],
            &["a.txt modified", "x.log failed", "x.log APPROVAL_REQUIRED"],
        ),
        (
            "a clipboard",
            vec![
                clip("a.txt", r#""operation":"replace","oldText":"absent","newText":"","toClipboard":"c""#),
                clip("dir/b.txt", r#""operation":"append_eof","newText":"","fromClipboard":"c""#),
                edit("c.txt"),
            ],
            &["a.txt failed", "dir/b.txt skipped", "c.txt modified", "a.txt TEXT_NOT_FOUND"],
        ),
        (
            "a file that is gone already",
            vec![delete("gone"), edit("a.txt")],
            &["gone failed", "a.txt modified", "gone FILE_MISSING"],
        ),
    ]);
}

/// Applies each batch to the same files, and takes back what was applied.
fn hold<const N: usize>(cases: [(&str, Vec<FilePatch>, &[&str]); N]) {
    for (name, files, expected) in cases {
        let (place, ws) = laid_out();
        lay_out(&ws);
        let before = tree::read(&ws);
        let (workspace, _) = open(place.path(), Fault::None).unwrap();
        let encode = |_: &Report, _: Option<&Actor>| Ok(Vec::new());
        let compare = |_: &[Hidden<'_>]| -> bool { panic!("{name}: nobody is asked about withheld files") };
        let mode = Mode::CommitWithReceipt { batch: BATCH.parse().unwrap(), encode: &encode, compare: &compare };
        let policy = Policy::unstated(Caller::Server);
        let outcome = apply(&workspace, &per_file(files), options(&policy, mode), &mut Decision::unattended);
        assert_eq!(told(&outcome), expected, "{name}: {outcome:?}");
        if let Ok(report) = &outcome {
            let is_whole = report.files.iter().all(|file| file.status.is_applied());
            assert_eq!(report.outcome, if is_whole { Outcome::Applied } else { Outcome::Partial }, "{name}");
            take_back(&workspace, Wanted::Newest).unwrap();
        }
        tree::assert_same(&tree::read(&ws), &before, name);
    }
}

/// A file that another process changes after a person has agreed is refused, and the others are applied.
#[test]
fn a_file_that_changes_meanwhile_is_refused_alone() {
    let (place, ws) = laid_out();
    let (workspace, _) = open(place.path(), Fault::None).unwrap();
    let asked = Cell::new(0);
    let policy = Policy::unstated(Caller::Shell);
    let batch = per_file([edit("a.txt"), edit("dir/b.txt")]);
    let outcome = apply(&workspace, &batch, options(&policy, Mode::Commit), &mut |_| {
        if asked.replace(asked.get() + 1) == 0 {
            std::fs::write(ws.join("a.txt"), "theirs\n").unwrap();
        }
        Decision::Apply
    });
    assert_eq!(told(&outcome), ["a.txt failed", "dir/b.txt modified", "a.txt FILE_CHANGED"]);
    assert_eq!(std::fs::read(ws.join("a.txt")).unwrap(), b"theirs\n");
}

/// Stopped anywhere, the files that fit are all old or all new, and the receipt is kept with the new ones.
#[test]
fn stopping_after_any_operation_leaves_all_files_that_fit_old_or_new() {
    let batch = per_file([edit("a.txt"), misfit("dir/b.txt"), write("new.txt", "new\n", false)]);
    stop_everywhere_in(&batch, Receipt::Kept, "file by file");
}

/// Whatever fails, each file is as the report says it is.
#[test]
fn a_failure_of_any_operation_leaves_each_file_as_it_is_reported() {
    let batch = per_file([edit("a.txt"), misfit("dir/b.txt"), write("new.txt", "new\n", false)]);
    let (place, ws) = laid_out();
    let (workspace, count) = open(place.path(), Fault::None).unwrap();
    commit(&workspace, &batch, Receipt::None).unwrap();
    let (operations, mut partial) = (count.load(std::sync::atomic::Ordering::SeqCst), 0);
    let after = tree::read(&ws);
    for errno in [Errno::IO, Errno::ACCESS] {
        for at in 1..=operations {
            let what = format!("{errno:?} at operation {at} of {operations}");
            let (place, ws) = laid_out();
            let before = tree::read(&ws);
            let (workspace, _) = open(place.path(), Fault::FailAt(at, errno)).unwrap();
            let outcome = commit(&workspace, &batch, Receipt::None);
            let files = outcome.as_ref().map_or(&[][..], |report| &report.files);
            let is_applied = |path: &str| files.iter().any(|file| file.path == path && file.status.is_applied());
            let now = tree::read(&ws);
            for path in ["a.txt", "dir/b.txt", "new.txt"] {
                let expected = if is_applied(path) { &after } else { &before };
                assert_eq!(now.get(path), expected.get(path), "{what}: {path}: {outcome:?}");
            }
            partial += usize::from(files.iter().filter(|file| file.status.is_applied()).count() == 1);
            drop(workspace);
            open(place.path(), Fault::None).unwrap();
            crate::scenarios::assert_no_debris(place.path(), &what);
        }
    }
    assert!(partial > 0, "one of the two was applied alone");
}

/// The history has one entry, which names the files that were not applied; its undo takes back the others.
#[test]
fn the_history_keeps_what_was_refused() {
    let (place, ws) = laid_out();
    let before = tree::read(&ws);
    let (workspace, _) = open(place.path(), Fault::None).unwrap();
    let batch = per_file([misfit("a.txt"), edit("dir/b.txt")]);
    commit(&workspace, &batch, Receipt::Kept).unwrap();
    let listed = log(&workspace, Query::default()).unwrap();
    assert!(listed.text().contains("modified dir/b.txt and 1 more  (applied in part)\n"), "{}", listed.text());
    let json = serde_json::to_value(&listed).unwrap();
    let row = &json["batches"][0];
    assert_eq!((&row["state"], row["files"][1]["status"].as_str()), (&"PARTIAL".into(), Some("failed")), "{json}");
    let undone = take_back(&workspace, Wanted::Newest).unwrap();
    assert_eq!(undone.report.files.len(), 1);
    tree::assert_same(&tree::read(&ws), &before, "undone");
}
