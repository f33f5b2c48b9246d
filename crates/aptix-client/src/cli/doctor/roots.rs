//! Checks of the roots: whether each can be opened, read and written.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::slice;

use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::fs::shell_word::shell_word;
use crate::workspace::fs::volume;
use crate::workspace::open::OpenError;
use crate::workspace::roots::root::{Root, RootError, RootSpec};
use crate::workspace::roots::workspace::Workspace;

use super::disk::{access_hint, check_room, refused};
use super::finding::{Finding, Subject};

const CHECK: &str = "root";

/// Checks each root, and opens those that can be opened; none where they cannot be opened together.
pub(super) fn check(specs: &[RootSpec], state_home: &Path) -> (Vec<Finding>, Option<Workspace>) {
    let state = state_home.join("aptix");
    let hold = |specs: &[RootSpec]| Workspace::hold(specs, &state, Box::new(SystemDisk)).map_err(OpenError::from);
    let (mut found, mut usable) = (Vec::new(), Vec::new());
    for spec in specs {
        match hold(slice::from_ref(spec)) {
            Ok(workspace) => {
                found.extend(workspace.roots().iter().flat_map(check_root));
                usable.push(spec.clone());
            }
            Err(error) => found.push(check_unopened(Subject::at(CHECK, &spec.dir), &error)),
        }
    }
    if usable.is_empty() {
        return (found, None);
    }
    match hold(&usable) {
        Ok(workspace) => (found, Some(workspace)),
        Err(error) => {
            found.push(check_unopened(Subject("roots", None), &error));
            (found, None)
        }
    }
}

fn check_unopened(subject: Subject, error: &OpenError) -> Finding {
    let hint = match error {
        OpenError::Root(RootError::Open { dir, source }) => match source.kind() {
            ErrorKind::NotFound => Some(format!("run `mkdir -p {}`, or name another directory", shell_word(dir))),
            ErrorKind::NotADirectory => Some("name a directory with --root".to_owned()),
            kind => access_hint(dir, kind, "u+rwx"),
        },
        _ => None,
    };
    let mut failure = error.failure();
    failure.hint = hint.or(failure.hint);
    subject.failed(failure, "name another directory with --root")
}

fn check_root(root: &Root) -> Vec<Finding> {
    let subject = || Subject::at(CHECK, root.path());
    let access = volume::check_readable(root.path())
        .map_err(|error| ("read", error))
        .and_then(|()| volume::check_writable(root.path()).map_err(|error| ("written", error)));
    let git = match git_top(root) {
        Some(top) => format!("in the git repository {}", top.display()),
        None => "in no git repository".to_owned(),
    };
    let access = match access {
        Ok(()) => subject().ok(format!("can be read and written; {git}")),
        Err((doing, error)) => refused(subject(), root.path(), doing, &error),
    };
    // Room that suffices is no news here.
    std::iter::once(access).chain(check_room(CHECK, root.path()).err()).collect()
}

/// The top of the git repository that a root is in.
pub(super) fn git_top(root: &Root) -> Option<PathBuf> {
    let is_top = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
    root.path().ancestors().find(is_top).map(Path::to_owned)
}
