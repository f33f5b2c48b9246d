//! Checks of what Aptix keeps on this machine about the roots.

use std::path::Path;

use crate::policy::caller::Caller;
use crate::undo::failure::history_failure;
use crate::workspace::examine::{ExamineError, Kept, examine};
use crate::workspace::fs::shell_word::shell_word;
use crate::workspace::fs::volume;
use crate::workspace::roots::exposed::{other_owner, own_id};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::state::StateError;
use crate::workspace::roots::workspace::Workspace;

use super::disk::{check_room, refused};
use super::finding::{Finding, Subject};
use super::policy::check_above;

const CHECK: &str = "state";

/// Checks the directory of all state, and of each root what is kept about it.
pub(super) fn check(state_home: &Path, workspace: Option<&Workspace>) -> Vec<Finding> {
    let all = state_home.join("aptix");
    let mut found = vec![check_place(&all)];
    found.extend(check_above(CHECK, &all.join("roots")));
    let roots = workspace.map(Workspace::roots).unwrap_or_default();
    let known = roots.iter().filter(|root| root.state().exists());
    found.extend(known.flat_map(|root| workspace.into_iter().flat_map(move |all| check_kept(all, root))));
    found
}

/// Checks that the directory can be written, or made, and that there is room.
fn check_place(dir: &Path) -> Finding {
    let subject = || Subject::at(CHECK, dir);
    let existing = dir.ancestors().find(|dir| dir.symlink_metadata().is_ok()).unwrap_or(dir);
    if let Err(error) = volume::check_writable(existing) {
        let doing = if existing == dir { "written" } else { "made" };
        return refused(subject(), existing, doing, &error);
    }
    let room = match check_room(CHECK, existing) {
        Ok(room) => room,
        Err(finding) => return finding,
    };
    if existing == dir {
        subject().ok(format!("can be written; {room}"))
    } else {
        subject().ok(format!("does not exist yet and can be made; {room}"))
    }
}

/// Checks what is kept about one root.
fn check_kept(workspace: &Workspace, root: &Root) -> Vec<Finding> {
    match examine(workspace.disk(), root.state()) {
        Ok(kept) => found(root, kept),
        Err(error) => vec![unusable(root, &error)],
    }
}

fn found(root: &Root, kept: Kept) -> Vec<Finding> {
    let dir = root.state().path();
    let mut found =
        vec![Subject::at(CHECK, dir).ok(format!("is yours alone, and kept about {}", root.path().display()))];
    if kept.is_under_way {
        let look =
            format!("run `aptix log --root {}`, which completes the batch or rolls it back", shell_word(root.path()));
        let message = "a batch is being applied at this moment, or was cut short";
        found.push(Subject::at("unfinished", root.path()).warning(message, look));
    }
    if let Some(damaged) = kept.damaged {
        let message = "holds files that were damaged and moved aside";
        let look = format!("look at them, then run `rm -r {}`", shell_word(&damaged));
        found.push(Subject::at("damaged", &damaged).warning(message, look));
    }
    let history = kept.history;
    found.extend(history.damaged.iter().map(|path| {
        Subject::at("history", path).warning(
            "is damaged; its batch cannot be undone",
            format!("run `rm {}` to forget the batch", shell_word(path)),
        )
    }));
    let count = history.entries;
    found.push(Subject::at("history", root.path()).ok(format!("batches that can be read: {count}")));
    found
}

fn unusable(root: &Root, error: &ExamineError) -> Finding {
    let dir = root.state().path();
    let subject = Subject::at(CHECK, dir);
    let failure = match error {
        ExamineError::State(StateError::Open(path)) => {
            let path = shell_word(path);
            let mending = match other_owner(dir) {
                Ok(None) => format!("run `chmod go= {path}`"),
                _ => format!("run `sudo chown -R {} {path} && chmod go= {path}`", own_id()),
            };
            return subject.problem("is open to others, or belongs to another user", mending);
        }
        ExamineError::State(error) => error.failure(),
        ExamineError::Journal(error) => error.failure(),
        ExamineError::History(error) => history_failure(error, Caller::Shell),
    };
    subject.failed(failure, "give yourself access to it")
}
