//! The answer to a read whose path leads to no file. Where the caller is shown nothing, it tells nothing of what is there: no
//! name, no kind, no link.

use aptix_engine::target::ValidTarget;
use aptix_model::failure::Failure;
use aptix_model::protection::{self, Protection};
use aptix_model::reason::Reason;

use crate::policy::disclosure::Disclosure;
use crate::workspace::read::place::join;
use crate::workspace::read::resolve_error::ResolveError;
use crate::workspace::read::walk::Kind;
use crate::workspace::roots::workspace::Workspace;

/// Why a target is not read whose path leads to no file, as far as the caller may know.
pub(super) fn unresolved(
    workspace: &Workspace,
    disclosure: &mut Disclosure<'_>,
    target: &ValidTarget,
    error: ResolveError,
) -> Failure {
    let Some((root, path)) = asked(workspace, target) else { return refused(&error) };
    if let Some(protection) = protection::of(path) {
        return closed(protection);
    }
    let at = match &error {
        ResolveError::Link { real: at, .. }
        | ResolveError::NotRegular { real: at, .. }
        | ResolveError::NotDirectory(at)
        | ResolveError::CrossDevice(at)
        | ResolveError::System { at, .. } => at.clone(),
        ResolveError::Twins { dir, wanted, .. } => join(dir, wanted),
        _ => path.to_owned(),
    };
    for path in [path, &at] {
        if let Some(why) = disclosure.withheld_by_path(root, path, Kind::File) {
            return disclosure.not_read(why);
        }
    }
    let mut is_withheld = |path: &str| {
        let mut is_closed = |kind| disclosure.may_be_searched(root, path, kind).is_err();
        is_closed(Kind::File) || is_closed(Kind::Directory)
    };
    if is_withheld(path) || is_withheld(&at) {
        return absent();
    }
    let ResolveError::Twins { dir, wanted, mut twins } = error else { return refused(&error) };
    twins.retain(|twin| !is_withheld(&join(&dir, twin)));
    if twins.is_empty() { absent() } else { refused(&ResolveError::Twins { dir, wanted, twins }) }
}

/// The root of a target, and its path in that.
fn asked<'t>(workspace: &Workspace, target: &'t ValidTarget) -> Option<(usize, &'t str)> {
    let roots = workspace.roots();
    let (name, path) = match target {
        ValidTarget::DocPath(key) => (key.root(), key.rest()),
        ValidTarget::Path(path) if roots.len() == 1 => return Some((0, path.as_str())),
        ValidTarget::Path(path) => path.as_str().split_once('/')?,
    };
    Some((roots.iter().position(|root| root.name() == name)?, path))
}

/// The failure where there is no file.
pub(super) fn absent() -> Failure {
    Failure::new(Reason::NotFound, "there is no such file")
        .hint("list the files to find its path; paths begin at the root, and case counts")
}

/// The failure of a path that leads to nothing that may be read.
pub(super) fn refused(error: &ResolveError) -> Failure {
    match error {
        ResolveError::Closed { protection, .. } => closed(*protection),
        error => error.failure(),
    }
}

fn closed(protection: Protection) -> Failure {
    Failure::new(Reason::PolicyDenied, "the file belongs to version control or to Aptix itself and is not shown")
        .detail(protection.detail())
        .hint("read another file; no answer opens this one")
}
