//! A disk that stops after any operation, or fails any one: the tree is entirely old or entirely new, and nothing is left over.

use std::fs::{Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aptix_client::apply::acting::Acting;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, Refusal, apply};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_client::undo::{Undone, undo};
use aptix_client::workspace::keep::history::find::Wanted;
use aptix_client::workspace::keep::outbox;
use aptix_client::workspace::open::OpenError;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_engine::digest::sha256;
use aptix_model::actor::Actor;
use aptix_model::batch::{
    Batch, Change, Content, CreateFile, FileEdit, FilePatch, LinePatch, Operation, Origin, Target,
};
use aptix_model::digest::Sha256Digest;
use aptix_model::id::BatchId;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::Report;
use rustix::io::Errno;
use tempfile::TempDir;

pub(crate) use crate::faulty_disk::{Fault, FaultyDisk, Watcher};
use crate::skip::skip;
use crate::tree::{self, Tree};

/// The files that a batch of the tests changes: some are edited, some are new, one in new directories.
const EDITED: [&str; 2] = ["a.txt", "dir/b.txt"];
const CREATED: [&str; 2] = ["new.txt", "deep/er/new.txt"];

pub(crate) fn lay_out(place: &Path) {
    for path in EDITED {
        let path = place.join("ws").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "one\ntwo\nthree\n").unwrap();
    }
}

/// A place in which the files are laid out, and the root in it.
pub(crate) fn laid_out() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    lay_out(place.path());
    let ws = place.path().join("ws");
    (place, ws)
}

pub(crate) fn patch(path: &str, edit: FileEdit) -> FilePatch {
    FilePatch { target: Target::Path(path.to_owned()), key: None, label: None, edit }
}

/// Writes a whole file.
pub(crate) fn write(path: &str, text: &str, overwrite: bool) -> FilePatch {
    let content = Content::Text(text.to_owned());
    patch(path, FileEdit::CreateFile(CreateFile { content, overwrite, content_format: None }))
}

pub(crate) fn batch_of(files: impl IntoIterator<Item = FilePatch>) -> Batch {
    Batch { files: files.into_iter().collect(), ..Batch::default() }
}

/// Edits the first so many files and creates the first so many.
pub(crate) fn batch(edited: usize, created: usize) -> Batch {
    let sha = sha256(b"one\ntwo\nthree\n").to_string();
    let edits = EDITED.iter().take(edited).map(|path| {
        let operation = Operation::Insert { after_line: 1, new_lines: vec!["inserted".to_owned()] };
        let changes = vec![Change { key: None, description: None, operation }];
        let edit = FileEdit::LinePatch(LinePatch { original_sha256: sha.clone(), changes });
        FilePatch { target: Target::DocPath(format!("ws/{path}")), ..patch(path, edit) }
    });
    let creates = CREATED.iter().take(created).map(|path| write(path, "new\n", false));
    batch_of(edits.chain(creates))
}

pub(crate) fn open(place: &Path, fault: Fault) -> Result<(Workspace, Arc<AtomicUsize>), OpenError> {
    open_on(place, FaultyDisk::new(fault))
}

pub(crate) fn open_on(place: &Path, disk: FaultyDisk) -> Result<(Workspace, Arc<AtomicUsize>), OpenError> {
    let count = Arc::clone(&disk.count);
    let root = format!("ws={}", place.join("ws").display()).parse().unwrap();
    Ok((Workspace::open(&[root], &place.join("state"), Box::new(disk))?, count))
}

/// Opens the root in a place on a disk with a fault, where `watch` is called with the root before each operation that gives a
/// name another meaning or flushes; see [`Watcher`] for the rest.
pub(crate) fn open_watched(
    place: &Path,
    fault: Fault,
    watch: impl Fn(&Path, &str, &str, &str) + Send + Sync + 'static,
) -> Workspace {
    let ws = place.join("ws");
    let watcher: Watcher = Arc::new(move |kind, from, to| watch(&ws, kind, from, to));
    open_on(place, FaultyDisk::watched(fault, watcher)).unwrap().0
}

/// Saves a file as editors do: under another name, which is then renamed.
pub(crate) fn save(ws: &Path, name: &str, text: &str) {
    std::fs::write(ws.join("save"), text).unwrap();
    std::fs::rename(ws.join("save"), ws.join(name)).unwrap();
}

pub(crate) const BATCH: &str = "0190b3a0-0000-7000-8000-000000000001";

pub(crate) fn commit(workspace: &Workspace, batch: &Batch, with_receipt: Receipt) -> Result<Report, Refusal> {
    let encode = |report: &Report, _: Option<&Actor>| Ok(format!("{} files", report.files.len()).into_bytes());
    let mode = match with_receipt {
        Receipt::None => Mode::Commit,
        Receipt::Kept => {
            Mode::CommitWithReceipt { batch: BATCH.parse::<BatchId>().unwrap(), encode: &encode, compare: &|_| false }
        }
    };
    apply(workspace, batch, options(&Policy::unstated(Caller::Shell), mode), &mut |_| Decision::Apply)
}

/// As [`commit`] without a receipt, while something is done between the plan and the commit.
pub(crate) fn apply_while(workspace: &Workspace, batch: &Batch, meanwhile: &dyn Fn()) -> Result<Report, Refusal> {
    apply(workspace, batch, options(&Policy::unstated(Caller::Shell), Mode::Commit), &mut |_| {
        meanwhile();
        Decision::Apply
    })
}

pub(crate) fn take_back(workspace: &Workspace, wanted: Wanted<'_>) -> Result<Undone, Refusal> {
    undo(workspace, wanted, options(&Policy::unstated(Caller::Shell), Mode::Commit), &mut |_| Decision::Apply)
}

pub(crate) fn options<'a>(policy: &'a Policy, mode: Mode<'a>) -> ApplyOptions<'a> {
    static ORIGIN: Origin = Origin { session_id: None, conversation_id: None, turn_id: None };
    ApplyOptions { policy, origin: &ORIGIN, diff_bytes: 1 << 20, mode, prepared: None, acting: Acting::UNKNOWN }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Receipt {
    None,
    Kept,
}

/// The tree before and after a batch without faults, and how many operations it takes.
fn reference(batch: &Batch, receipt: Receipt, fault: Fault) -> (Tree, Tree, usize) {
    let (place, ws) = laid_out();
    let before = tree::read(&ws);
    let (workspace, count) = open(place.path(), fault).unwrap();
    commit(&workspace, batch, receipt).unwrap();
    (before, tree::read(&ws), count.load(Ordering::SeqCst))
}

/// The next process to open the workspace finds it whole; returns whether it is new.
#[track_caller]
pub(crate) fn recovered(place: &Path, before: &Tree, after: &Tree, receipt: Receipt, what: &str) -> bool {
    let (workspace, _) = open(place, Fault::None).unwrap_or_else(|error| panic!("{what}: {error}"));
    let now = tree::read(&place.join("ws"));
    let is_new = now == *after;
    tree::assert_same(&now, if is_new { after } else { before }, what);
    let pending = outbox::waiting(&workspace).unwrap();
    assert_eq!(!pending.is_empty(), is_new && receipt == Receipt::Kept, "{what}: {pending:?}");
    for batch in pending {
        assert!(outbox::content(&workspace, batch, digest_of_new(after)).unwrap().is_some(), "{what}");
        outbox::acknowledge(&workspace, batch, None).unwrap();
    }
    crate::scenarios::assert_no_debris(place, what);
    is_new
}

fn digest_of_new(tree: &Tree) -> Sha256Digest {
    let changed = tree.values().find_map(|entry| match entry {
        tree::Entry::File { bytes, .. } if bytes == b"new\n" || bytes.starts_with(b"one\ninserted") => {
            Some(sha256(bytes))
        }
        _ => None,
    });
    changed.unwrap()
}

fn stop_everywhere(edited: usize, created: usize, receipt: Receipt) {
    stop_everywhere_in(&batch(edited, created), receipt, &format!("{edited} edited, {created} created"));
}

/// Stops a batch after each of its operations: the files are all old or all as the batch leaves them.
pub(crate) fn stop_everywhere_in(batch: &Batch, receipt: Receipt, name: &str) {
    let (before, after, operations) = reference(batch, receipt, Fault::None);
    let mut ends = (0, 0);
    for last in 0..=operations {
        let what = format!("{name}, {receipt:?}, stopped after {last} of {operations}");
        let (place, _) = laid_out();
        let (workspace, _) = open(place.path(), Fault::StopAfter(last)).unwrap();
        let outcome = commit(&workspace, batch, receipt);
        drop(workspace);
        let is_new = recovered(place.path(), &before, &after, receipt, &what);
        match outcome {
            Ok(_) => assert!(is_new, "{what}: it was said to be applied"),
            Err(refusal) => {
                let open = refusal.failures[0].reason == Reason::NeedsOperator;
                assert!(!is_new || open, "{what}: it was said to be refused: {}", refusal.failures[0]);
            }
        }
        if is_new { ends.1 += 1 } else { ends.0 += 1 }
    }
    assert!(ends.0 > 0 && ends.1 > 0, "both ends are met: {ends:?}");
}

#[test]
fn stopping_after_any_operation_on_one_file_leaves_it_old_or_new() {
    // TUL-004-5.1.5.3, TUL-004-5.4.1
    stop_everywhere(1, 0, Receipt::None);
    stop_everywhere(0, 1, Receipt::None);
}

#[test]
fn stopping_after_any_operation_on_several_files_leaves_all_old_or_all_new() {
    stop_everywhere(2, 1, Receipt::None);
    stop_everywhere(1, 2, Receipt::Kept);
}

#[test]
fn stopping_recovery_after_any_operation_is_recovered_from_too() {
    let batch = batch(2, 2);
    let (before, after, operations) = reference(&batch, Receipt::Kept, Fault::None);
    for last in 0..=operations {
        for again in 0..12 {
            let what = format!("stopped after {last}, then recovery after {again}");
            let (place, _) = laid_out();
            let (workspace, _) = open(place.path(), Fault::StopAfter(last)).unwrap();
            let _ = commit(&workspace, &batch, Receipt::Kept);
            drop(workspace);
            let _ = open(place.path(), Fault::StopAfter(again));
            let _ = open(place.path(), Fault::StopAfter(again * 2));
            recovered(place.path(), &before, &after, Receipt::Kept, &what);
        }
    }
}

#[test]
fn any_error_of_any_operation_is_refused_with_its_reason_and_leaves_nothing() {
    // TUL-004-5.1.5.4, TUL-004-5.4.2
    let cases = [
        (Errno::NOSPC, Reason::WriteFailed, Detail::NoSpace),
        (Errno::DQUOT, Reason::WriteFailed, Detail::Quota),
        (Errno::ROFS, Reason::WriteFailed, Detail::ReadOnly),
        (Errno::ACCESS, Reason::WriteFailed, Detail::Permission),
        (Errno::IO, Reason::WriteFailed, Detail::Io),
        (Errno::MFILE, Reason::ResourceExhausted, Detail::Fds),
    ];
    let batch = batch(2, 2);
    let (before, after, operations) = reference(&batch, Receipt::Kept, Fault::None);
    for (errno, reason, detail) in cases {
        let mut refused = 0;
        for at in 1..=operations {
            let what = format!("{errno:?} at operation {at} of {operations}");
            let (place, ws) = laid_out();
            let (workspace, _) = open(place.path(), Fault::FailAt(at, errno)).unwrap();
            match commit(&workspace, &batch, Receipt::Kept) {
                Ok(_) => assert!(recovered(place.path(), &before, &after, Receipt::Kept, &what), "{what}"),
                Err(refusal) => {
                    refused += 1;
                    // The refusal is final at once, not only after the next command has cleared up.
                    tree::assert_same(&tree::read(&ws), &before, &what);
                    crate::scenarios::assert_no_debris(place.path(), &what);
                    let failure = &refusal.failures[0];
                    let expected = [
                        (reason, Some(detail)),
                        (reason, Some(Detail::RolledBack)),
                        (Reason::DirectoryCreateFailed, Some(detail)),
                    ];
                    assert!(expected.contains(&(failure.reason, failure.detail)), "{what}: {failure}");
                    assert!(failure.hint.is_some() && refusal.is_environment(), "{what}");
                    drop(workspace);
                    assert!(!recovered(place.path(), &before, &after, Receipt::Kept, &what), "{what}");
                }
            }
        }
        assert!(refused > operations / 2, "{errno:?}: only {refused} of {operations} were refused");
    }
}

#[test]
fn a_file_system_that_cannot_exchange_names_is_served_as_well() {
    for kind in ["exchange", "rename_new"] {
        let fault = Fault::Without(kind, Errno::INVAL);
        let batch = batch(2, 2);
        let (before, after, _) = reference(&batch, Receipt::None, Fault::None);
        let (_, found, _) = reference(&batch, Receipt::None, fault);
        tree::assert_same(&found, &after, kind);
        assert_ne!(before, after);
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_reported() {
    // TUL-004-5.1.4.2
    let (place, ws) = laid_out();
    let before = tree::read(&ws);
    let (workspace, _) = open(place.path(), Fault::Without("make_dir", Errno::NOSPC)).unwrap();
    let refusal = commit(&workspace, &batch(0, 2), Receipt::None).unwrap_err();
    let failure = &refusal.failures[0];
    assert_eq!((failure.reason, failure.detail), (Reason::DirectoryCreateFailed, Some(Detail::NoSpace)));
    assert_eq!(failure.path.as_deref(), Some("deep/er/new.txt"));
    tree::assert_same(&tree::read(&ws), &before, "no directory");
}

/// Dies in the middle of publishing, and gives the journal's record.
pub(crate) fn die_while_publishing(place: &Path) -> std::path::PathBuf {
    lay_out(place);
    let batch = batch(2, 1);
    let (_, _, operations) = reference(&batch, Receipt::None, Fault::None);
    for last in (0..operations).rev() {
        let (workspace, _) = open(place, Fault::StopAfter(last)).unwrap();
        let _ = commit(&workspace, &batch, Receipt::None);
        drop(workspace);
        let is = |path: &str, text: &str| std::fs::read_to_string(place.join("ws").join(path)).unwrap().contains(text);
        if is("a.txt", "inserted") && !is("dir/b.txt", "inserted") {
            let roots = place.join("state/aptix/roots");
            let root = std::fs::read_dir(roots).unwrap().next().unwrap().unwrap().path();
            return root.join("journal/committed");
        }
        std::fs::remove_dir_all(place.join("state")).unwrap();
        std::fs::remove_dir_all(place.join("ws")).unwrap();
        lay_out(place);
    }
    panic!("there is a moment in which one file is new and one is old");
}

#[test]
fn a_record_with_a_flipped_bit_is_never_carried_on() {
    let place = tempfile::tempdir().unwrap();
    let record = die_while_publishing(place.path());
    let whole = std::fs::read(&record).unwrap();
    let torn = tree::read(&place.path().join("ws"));
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        std::fs::write(&record, &flipped).unwrap();
        let refused = open(place.path(), Fault::None).unwrap_err().failure();
        assert_eq!(refused.reason, Reason::NeedsOperator, "byte {at}: {refused}");
        assert!(refused.message.contains(record.to_str().unwrap()), "{refused}");
        tree::assert_same(&tree::read(&place.path().join("ws")), &torn, "flipped");
    }
    for length in 0..whole.len() {
        std::fs::write(&record, &whole[..length]).unwrap();
        assert!(open(place.path(), Fault::None).is_err(), "cut at {length}");
        tree::assert_same(&tree::read(&place.path().join("ws")), &torn, "cut");
    }
    std::fs::write(&record, &whole).unwrap();
    open(place.path(), Fault::None).unwrap();
    assert!(std::fs::read_to_string(place.path().join("ws/dir/b.txt")).unwrap().contains("inserted"));
}

#[test]
fn what_fits_neither_end_is_left_to_a_person() {
    let place = tempfile::tempdir().unwrap();
    let record = die_while_publishing(place.path());
    // The first file can only go forward, since what was kept of it is gone; the second only back, since another process wrote it.
    let ws = place.path().join("ws");
    let mut staged = tree::read(&ws).into_keys().filter(|name| name.ends_with(".aptix-tmp") && !name.contains('/'));
    let kept = staged.find(|name| std::fs::read(ws.join(name)).unwrap() == b"one\ntwo\nthree\n").unwrap();
    std::fs::remove_file(ws.join(kept)).unwrap();
    std::fs::write(ws.join("dir/b.txt"), "mine too\n").unwrap();
    let torn = tree::read(&place.path().join("ws"));
    for _ in 0..2 {
        let refused = open(place.path(), Fault::None).unwrap_err().failure();
        assert_eq!(refused.reason, Reason::NeedsOperator);
        assert!(refused.message.contains("a.txt") && refused.message.contains(record.to_str().unwrap()), "{refused}");
        tree::assert_same(&tree::read(&place.path().join("ws")), &torn, "untouched");
    }
}

#[test]
fn a_directory_that_is_removed_before_recovery_takes_the_batch_back() {
    let place = tempfile::tempdir().unwrap();
    die_while_publishing(place.path());
    let ws = place.path().join("ws");
    std::fs::remove_dir_all(ws.join("dir")).unwrap();
    open(place.path(), Fault::None).unwrap();
    let left = tree::read(&ws);
    assert_eq!(left.keys().collect::<Vec<_>>(), ["a.txt"]);
    assert_eq!(std::fs::read(ws.join("a.txt")).unwrap(), b"one\ntwo\nthree\n");
    crate::scenarios::assert_no_debris(place.path(), "taken back");
}

/// Edits `a.txt` on a disk, and gives the codes of the warnings.
fn warnings(place: &Path, fault: Fault) -> Result<Vec<String>, Refusal> {
    let (workspace, _) = open(place, fault).unwrap();
    let report = commit(&workspace, &batch(1, 0), Receipt::None)?;
    Ok(report.files[0].warnings.iter().map(|warning| warning.code.clone()).collect())
}

/// Edits `a.txt`, which is of another owner and has a mode, on a disk with a fault; returns the codes of the warnings and the
/// new file's metadata. Nothing where this machine does not let us give files away.
fn edit_of_another_owner(fault: Fault, mode: u32) -> Option<(Vec<String>, Metadata)> {
    let (place, ws) = laid_out();
    let file = ws.join("a.txt");
    if chown(&file, Some(4321), Some(4321)).is_err() {
        skip("only root can give files away");
        return None;
    }
    std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    Some((warnings(place.path(), fault).unwrap(), file.metadata().unwrap()))
}

#[test]
fn a_file_that_cannot_keep_its_owner_gives_no_new_rights() {
    let cases = [
        (Fault::None, 0o6_664, 0o664, (4321, 4321), &["SETUID_CLEARED"][..]),
        (Fault::Without("set_owner", Errno::PERM), 0o664, 0o664, (0, 4321), &["OWNER_CHANGED"]),
    ];
    for (fault, before, after, owner, expected) in cases {
        let Some((codes, found)) = edit_of_another_owner(fault, before) else { return };
        assert_eq!(codes, expected, "{fault:?}");
        assert_eq!((found.uid(), found.gid()), owner, "{fault:?}");
        assert_eq!(found.mode() & 0o7777, after, "{fault:?}");
    }
}

#[test]
fn a_file_that_can_keep_neither_owner_nor_group_lets_the_group_do_no_more_than_everybody() {
    let fault = Fault::WithoutAny(&["set_owner", "set_group"], Errno::PERM);
    let Some((codes, found)) = edit_of_another_owner(fault, 0o674) else { return };
    assert_eq!(codes, ["OWNER_CHANGED"]);
    assert_eq!(found.mode() & 0o7777, 0o644);
}

#[test]
fn an_attribute_that_the_system_keeps_to_itself_is_a_warning_and_one_that_fails_refuses_the_batch() {
    let cases = [
        (Errno::PERM, Some("ATTRIBUTE_LOST")),
        (Errno::OPNOTSUPP, Some("ATTRIBUTE_LOST")),
        (Errno::NOSPC, None),
        (Errno::IO, None),
    ];
    for (errno, code) in cases {
        let (place, _) = laid_out();
        let file = place.path().join("ws/a.txt");
        if rustix::fs::setxattr(&file, "user.mark", b"x", rustix::fs::XattrFlags::empty()).is_err() {
            skip("the file system of temporary files keeps no attributes");
            return;
        }
        match (warnings(place.path(), Fault::Without("set_xattr", errno)), code) {
            (Ok(codes), Some(code)) => assert_eq!(codes, [code], "{errno:?}"),
            (Err(refusal), None) => {
                assert_eq!(refusal.failures[0].reason, Reason::WriteFailed);
                assert_eq!(std::fs::read(&file).unwrap(), b"one\ntwo\nthree\n");
            }
            (outcome, _) => panic!("{errno:?}: {outcome:?}"),
        }
    }
}

#[test]
fn a_file_that_another_process_wrote_before_recovery_keeps_what_was_written() {
    let place = tempfile::tempdir().unwrap();
    die_while_publishing(place.path());
    std::fs::write(place.path().join("ws/dir/b.txt"), "mine\n").unwrap();
    open(place.path(), Fault::None).unwrap();
    let read = |path: &str| std::fs::read_to_string(place.path().join("ws").join(path)).unwrap();
    assert_eq!(read("dir/b.txt"), "mine\n");
    assert_eq!(read("a.txt"), "one\ntwo\nthree\n", "the batch was taken back, since it could not be carried on");
    assert!(!place.path().join("ws/new.txt").exists());
    crate::scenarios::assert_no_debris(place.path(), "taken back");
}
