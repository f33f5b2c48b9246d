//! The clipboards of sessions: kept from one process to the next, changed by nothing but a batch that is carried out.

use std::path::Path;
use std::sync::atomic::Ordering;

use aptix_client::apply::acting::Acting;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, Refusal, apply};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_client::workspace::keep::clipboards;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::batch::{Batch, FileEdit, FilePatch, Origin, SearchChange, SearchOperation, SearchPatch, Target};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{FileStatus, Report};

use crate::faults::{self, Fault, FaultyDisk};
use crate::scenarios::assert_no_debris;
use crate::tree;

/// Takes the line `two` of a file up.
fn cut(path: &str, clipboard: &str) -> FilePatch {
    let operation = SearchOperation::Replace { old_text: "two\n".to_owned() };
    patch(path, SearchChange { to_clipboard: Some(clipboard.to_owned()), ..change(operation) })
}

/// Takes the line `two` of a file up in a session.
pub(crate) fn take_up(workspace: &Workspace, session: &str, path: &str) {
    run(workspace, Some(session), vec![cut(path, "c")]).unwrap();
}

/// Puts a clipboard down at the end of a file.
fn paste(path: &str, clipboard: &str) -> FilePatch {
    patch(path, SearchChange { from_clipboard: Some(clipboard.to_owned()), ..change(SearchOperation::AppendEof) })
}

fn change(operation: SearchOperation) -> SearchChange {
    let new_text = Some(String::new());
    SearchChange { operation, new_text, to_clipboard: None, from_clipboard: None, reindent: None }
}

fn patch(path: &str, change: SearchChange) -> FilePatch {
    let edit = FileEdit::SearchPatch(SearchPatch { changes: vec![change] });
    FilePatch { target: Target::Path(path.to_owned()), key: None, label: None, edit }
}

fn run(workspace: &Workspace, session: Option<&str>, files: Vec<FilePatch>) -> Result<Report, Refusal> {
    run_as(workspace, session, files, Mode::Commit)
}

fn run_as(
    workspace: &Workspace,
    session: Option<&str>,
    files: Vec<FilePatch>,
    mode: Mode<'_>,
) -> Result<Report, Refusal> {
    let policy = Policy::unstated(Caller::Shell);
    let origin = Origin { session_id: session.map(str::to_owned), ..Origin::default() };
    let options = ApplyOptions {
        policy: &policy,
        origin: &origin,
        diff_bytes: 1 << 20,
        mode,
        prepared: None,
        acting: Acting::UNKNOWN,
    };
    apply(workspace, &Batch { files, ..Batch::default() }, options, &mut |_| Decision::Apply)
}

#[track_caller]
fn assert_missing(outcome: Result<Report, Refusal>) {
    let refusal = outcome.unwrap_err();
    assert_eq!(refusal.failures[0].reason, Reason::ClipboardMissing, "{}", refusal.failures[0]);
}

fn open(place: &Path) -> Workspace {
    faults::open(place, Fault::None).unwrap().0
}

fn read(place: &Path, path: &str) -> String {
    std::fs::read_to_string(place.join("ws").join(path)).unwrap()
}

/// REQ-PATCH-003.1, REQ-PATCH-003.3, REQ-PATCH-003.5
#[test]
fn what_is_taken_up_is_there_for_later_calls_of_the_session_alone() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    run(&open(place.path()), Some("s"), vec![cut("a.txt", "c")]).unwrap();
    assert_eq!(read(place.path(), "a.txt"), "one\nthree\n");

    let workspace = open(place.path());
    for session in [Some("t"), Some(""), None] {
        assert_missing(run(&workspace, session, vec![paste("dir/b.txt", "c")]));
    }
    assert_missing(run(&workspace, Some("s"), vec![paste("dir/b.txt", "d")]));
    run(&workspace, Some("s"), vec![paste("dir/b.txt", "c"), paste("a.txt", "c")]).unwrap();
    assert_eq!(read(place.path(), "dir/b.txt"), "one\ntwo\nthree\ntwo\n");
    assert_eq!(read(place.path(), "a.txt"), "one\nthree\ntwo\n");
    assert_no_debris(place.path(), "clipboards");
}

/// What a user or a model may take up is withheld from a server: a server that knows the id of their session gets none of it.
#[test]
fn callers_share_no_clipboards() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let workspace = open(place.path());
    let call = |caller, file| {
        let policy = Policy::unstated(caller);
        let origin = Origin { session_id: Some("s".to_owned()), ..Origin::default() };
        let options = ApplyOptions {
            policy: &policy,
            origin: &origin,
            diff_bytes: 0,
            mode: Mode::Commit,
            prepared: None,
            acting: Acting::UNKNOWN,
        };
        apply(&workspace, &Batch { files: vec![file], ..Batch::default() }, options, &mut |_| Decision::Apply)
    };
    let callers = [Caller::Shell, Caller::Model, Caller::Server];
    for (index, caller) in callers.into_iter().enumerate() {
        let name = format!("c{index}");
        std::fs::write(place.path().join("ws/dir/b.txt"), "two\n").unwrap();
        std::fs::write(place.path().join("ws/a.txt"), "one\n").unwrap();
        call(caller, cut("dir/b.txt", &name)).unwrap();
        for other in callers.into_iter().filter(|other| *other != caller) {
            assert_missing(call(other, paste("a.txt", &name)));
        }
        call(caller, paste("a.txt", &name)).unwrap();
    }
}

/// REQ-PATCH-003.6: what is only copied leaves the file as it is, and is on the clipboard all the same.
#[test]
fn a_copy_changes_no_file() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let workspace = open(place.path());
    let mut copy = cut("a.txt", "c");
    if let FileEdit::SearchPatch(patch) = &mut copy.edit {
        patch.changes[0].from_clipboard = Some("c".to_owned());
    }
    let report = run(&workspace, Some("s"), vec![copy]).unwrap();
    assert_eq!(report.files[0].status, FileStatus::Unchanged);
    run(&workspace, Some("s"), vec![paste("a.txt", "c")]).unwrap();
    assert_eq!(read(place.path(), "a.txt"), "one\ntwo\nthree\ntwo\n");
}

#[test]
fn without_a_session_clipboards_last_as_long_as_the_batch() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let workspace = open(place.path());
    run(&workspace, None, vec![cut("a.txt", "c"), paste("dir/b.txt", "c")]).unwrap();
    assert_eq!(read(place.path(), "dir/b.txt"), "one\ntwo\nthree\ntwo\n");
    assert_missing(run(&workspace, None, vec![paste("dir/b.txt", "c")]));
    assert!(!tree::read(&place.path().join("state")).keys().any(|path| path.contains("clipboards")));
}

#[test]
fn what_is_refused_or_only_tried_changes_no_clipboard() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let workspace = open(place.path());
    run(&workspace, Some("s"), vec![cut("a.txt", "c")]).unwrap();
    let before = clipboards::read(&workspace, "s").unwrap();
    assert_eq!(before.iter().collect::<Vec<_>>(), [(&"c".to_owned(), &"two\n".to_owned())]);

    let other = SearchChange {
        to_clipboard: Some("c".to_owned()),
        ..change(SearchOperation::Replace { old_text: "one\n".to_owned() })
    };
    run_as(&workspace, Some("s"), vec![patch("a.txt", other.clone())], Mode::DryRun).unwrap();
    let absent = patch("dir/b.txt", change(SearchOperation::Replace { old_text: "absent".to_owned() }));
    run(&workspace, Some("s"), vec![patch("a.txt", other.clone()), absent]).unwrap_err();
    let policy = Policy::unstated(Caller::Shell);
    let origin = Origin { session_id: Some("s".to_owned()), ..Origin::default() };
    let options = ApplyOptions {
        policy: &policy,
        origin: &origin,
        diff_bytes: 0,
        mode: Mode::Commit,
        prepared: None,
        acting: Acting::UNKNOWN,
    };
    let batch = Batch { files: vec![patch("a.txt", other)], ..Batch::default() };
    let no = aptix_model::failure::Failure::new(Reason::Rejected, "no");
    apply(&workspace, &batch, options, &mut |_| Decision::Refuse(vec![no.clone()])).unwrap_err();
    assert_eq!(clipboards::read(&workspace, "s").unwrap(), before);
}

/// Files and clipboards are old together or new together, wherever the commit stops.
#[test]
fn stopping_after_any_operation_leaves_clipboards_as_old_or_as_new_as_the_files() {
    let files = || vec![cut("a.txt", "c"), cut("dir/b.txt", "d")];
    let operations = {
        let place = tempfile::tempdir().unwrap();
        faults::lay_out(place.path());
        let (workspace, count) = faults::open(place.path(), Fault::None).unwrap();
        run(&workspace, Some("s"), files()).unwrap();
        count.load(Ordering::SeqCst)
    };
    let mut ends = (0, 0);
    for last in 0..=operations {
        let what = format!("stopped after {last} of {operations}");
        let place = tempfile::tempdir().unwrap();
        faults::lay_out(place.path());
        let (workspace, _) = faults::open(place.path(), Fault::StopAfter(last)).unwrap();
        let outcome = run(&workspace, Some("s"), files());
        drop(workspace);
        let workspace = open(place.path());
        let texts: Vec<_> = clipboards::read(&workspace, "s").unwrap().into_values().collect();
        let is_new = read(place.path(), "a.txt") == "one\nthree\n";
        assert_eq!(read(place.path(), "dir/b.txt") == "one\nthree\n", is_new, "{what}");
        assert_eq!(texts, vec!["two\n"; if is_new { 2 } else { 0 }], "{what}");
        assert!(is_new || outcome.is_err(), "{what}");
        assert_no_debris(place.path(), &what);
        if is_new { ends.1 += 1 } else { ends.0 += 1 }
    }
    assert!(ends.0 > 0 && ends.1 > 0, "both ends are met: {ends:?}");
}

#[test]
fn clipboards_expire_with_their_session() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    run(&open(place.path()), Some("s"), vec![cut("a.txt", "c")]).unwrap();
    let after = |days| faults::open_on(place.path(), FaultyDisk::new(Fault::None).later(days)).unwrap().0;
    run(&after(6), Some("s"), vec![paste("a.txt", "c")]).unwrap();
    // That was a use of them, too.
    let late = after(14);
    assert_missing(run(&late, Some("s"), vec![paste("a.txt", "c")]));
    // Another session clears away what is left of it, and what it takes up anew has nothing of the old.
    run(&late, Some("t"), vec![cut("dir/b.txt", "c")]).unwrap();
    let left = tree::read(&place.path().join("state"));
    let kept = left.keys().filter(|path| path.contains("clipboards/")).count();
    assert_eq!(kept, 1);
    assert!(clipboards::read(&open(place.path()), "s").unwrap().is_empty());
}

/// Of too many sessions the oldest make room, and a session never keeps more than it may.
#[test]
fn clipboards_are_bounded() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let workspace = open(place.path());
    for session in 0..102 {
        let mut copy = cut("a.txt", "c");
        if let FileEdit::SearchPatch(patch) = &mut copy.edit {
            patch.changes[0].from_clipboard = Some("c".to_owned());
        }
        run(&workspace, Some(&format!("s{session}")), vec![copy]).unwrap();
    }
    let left = tree::read(&place.path().join("state"));
    assert_eq!(left.keys().filter(|path| path.contains("clipboards/")).count(), 100);
    assert_eq!(clipboards::read(&workspace, "s101").unwrap().len(), 1);

    let texts = |count: usize| (0..count).map(|index| (format!("c{index}"), "x".repeat(1 << 20))).collect();
    let before = clipboards::read(&workspace, "s101").unwrap();
    let failure = clipboards::taken(&workspace, "s101", &before, texts(16)).unwrap_err().failure();
    assert_eq!((failure.reason, failure.detail), (Reason::ResourceExhausted, Some(Detail::Clipboard)), "{failure}");
    // What a name is given anew does not count twice.
    assert!(clipboards::taken(&workspace, "s101", &texts(15), texts(15)).unwrap().is_some());
}

/// A file that cannot be read is as good as none: the session can go on.
#[test]
fn damaged_clipboards_count_for_nothing() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let workspace = open(place.path());
    run(&workspace, Some("s"), vec![cut("a.txt", "c")]).unwrap();
    let state = place.path().join("state");
    let left = tree::read(&state);
    let file = left.keys().find(|path| path.contains("clipboards/")).unwrap();
    std::fs::write(state.join(file), "{\"c\":").unwrap();
    assert_missing(run(&workspace, Some("s"), vec![paste("a.txt", "c")]));
    run(&workspace, Some("s"), vec![cut("dir/b.txt", "c"), paste("a.txt", "c")]).unwrap();
    assert_eq!(read(place.path(), "a.txt"), "one\nthree\ntwo\n");
}

/// REQ-PATCH-006.6, REQ-PATCH-006.7: as an author writes it, one call after the other.
#[test]
fn a_session_on_the_command_line_has_its_own_clipboards() {
    let place = tempfile::tempdir().unwrap();
    faults::lay_out(place.path());
    let call = |session: &[&str], document: &str| {
        let arguments = [&["apply", "--json"], session].concat();
        let output = crate::command_line::aptix(place.path(), &arguments, document);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), answer["errors"][0]["code"].as_str().unwrap_or_default().to_owned())
    };
    let done = (Some(0), String::new());
    let missing = (Some(1), "CLIPBOARD_MISSING".to_owned());
    let cut =
        r#"{"path":"a.txt","patches":[{"operation":"replace","oldText":"two\n","newText":"","toClipboard":"c"}]}"#;
    let paste = r#"{"path":"dir/b.txt","patches":[{"operation":"append_eof","fromClipboard":"c"}]}"#;
    assert_eq!(call(&["--session", "s", "--dry-run"], cut), done);
    assert_eq!(call(&["--session", "s"], paste), missing);
    assert_eq!(call(&["--session", "s"], cut), done);
    assert_eq!(call(&["--session", "t"], paste), missing);
    assert_eq!(call(&[], paste), missing);
    assert_eq!(call(&["--session", "s"], paste), done);
    assert_eq!(
        (read(place.path(), "a.txt").as_str(), read(place.path(), "dir/b.txt").as_str()),
        ("one\nthree\n", "one\ntwo\nthree\ntwo\n")
    );
}
