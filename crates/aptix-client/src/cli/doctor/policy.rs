//! Checks of the policy files.

use std::path::Path;

use crate::policy::caller::Caller;
use crate::policy::files::{PolicyError, PolicyFiles};
use crate::workspace::roots::exposed::{self, Exposed, Others};
use crate::workspace::roots::state::real_path;
use crate::workspace::roots::workspace::Workspace;

use super::finding::{Finding, Subject};

const CHECK: &str = "policy";

/// Checks the user's own policy file, those of the roots, and who else can put another file in the place of the user's own.
pub(super) fn check(config_home: &Path, workspace: Option<&Workspace>) -> Vec<Finding> {
    let policies = PolicyFiles::new(config_home, Caller::Shell);
    let looks = match workspace {
        Some(workspace) => policies.look(workspace),
        None => vec![(policies.own().to_owned(), policies.look_own(&[]))],
    };
    let is_own = |path: &Path| path == policies.own();
    let files = looks.into_iter().map(|(path, found)| check_file(&path, found, is_own(&path)));
    files.chain(check_above(CHECK, policies.own())).collect()
}

fn check_file(path: &Path, found: Result<bool, PolicyError>, is_own: bool) -> Finding {
    let subject = Subject::at(CHECK, path);
    match found {
        Ok(true) if is_own => subject.ok("can be followed, and no other user can write it"),
        Ok(true) => subject.ok("can be followed"),
        Ok(false) if is_own => subject.ok("does not exist; the defaults hold"),
        Ok(false) => subject.ok("does not exist"),
        Err(error) => {
            let failure = error.failure();
            let message = error.source.to_string();
            subject.problem(message, failure.hint.unwrap_or_else(|| "correct the file".to_owned()))
        }
    }
}

/// Checks who else can replace what this user keeps at a path, or a directory above it.
pub(super) fn check_above(check: &'static str, path: &Path) -> Vec<Finding> {
    // What is above the real place decides.
    let found = real_path(path).and_then(|path| exposed::above(&path));
    match found {
        Ok(found) => found.iter().map(|exposed| check_exposed(check, path, exposed)).collect(),
        Err(error) => {
            let message = format!("the directories above it cannot be checked: {error}");
            vec![Subject::at(check, path).warning(message, "give yourself access to them with `chmod u+x`")]
        }
    }
}

fn check_exposed(check: &'static str, path: &Path, exposed: &Exposed) -> Finding {
    let by = match exposed.to {
        Others::Owner(id) => format!("it belongs to the user with the id {id}"),
        Others::Mode(mode) => format!("it has the mode {mode:04o}"),
    };
    let message = format!("another user can replace {}: {by}", path.display());
    Subject::at(check, &exposed.path).warning(message, format!("run `{}`", exposed.mending()))
}
