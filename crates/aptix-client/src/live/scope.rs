//! Which files a list or a search goes through: those of every root, or those below one directory.

use aptix_model::failure::Failure;
use aptix_model::path::{WorkspacePath, fold};
use aptix_model::path_style::PathStyle;
use aptix_model::protection;
use aptix_model::reason::{Detail, Reason};

use crate::policy::disclosure::Disclosure;
use crate::workspace::read::walk::{Closed, File, Kind, WalkError};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::workspace::Workspace;

/// A root, or a directory in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    /// Which root, from 0.
    pub(crate) index: usize,
    pub(crate) root: &'a Root,
    /// The path in it; absent for all of it.
    pub(crate) path: Option<&'a str>,
    style: PathStyle,
}

impl Scope<'_> {
    /// The path in the workspace, and the lower-case key, of the file at a path in the root.
    pub(crate) fn names(&self, path: &str) -> (String, String) {
        let doc_path = format!("{}/{}", self.root.name(), fold(path));
        (self.style.name(path, &doc_path).into_owned(), doc_path)
    }

    /// The path in the workspace of what is at a path in the root, unless no path can have its name.
    pub(crate) fn nameable(&self, path: &str) -> Option<String> {
        let (path, _) = self.names(path);
        WorkspacePath::new(&path).is_ok().then_some(path)
    }

    /// Whether the path is that of a file, and nothing is below it.
    pub(super) fn is_file(&self, file: &File<'_>) -> bool {
        self.path == Some(&file.path)
    }

    /// The path in this root of a path in the workspace, if it is one.
    pub(super) fn within<'p>(&self, path: &'p str) -> Option<&'p str> {
        match self.style {
            PathStyle::InRoot => Some(path),
            PathStyle::WithRoot => {
                path.split_once('/').filter(|(root, _)| *root == self.root.name()).map(|(_, rest)| rest)
            }
        }
    }
}

/// The failure of a list or a search below a path at which there is no directory.
pub(super) fn no_directory(at: &str) -> Failure {
    failure(&WalkError::Missing { at: at.to_owned() })
}

/// The scopes that a directory stands for, by the names of the roots; everything if there is none.
///
/// # Errors
/// There is no root of its name, or the caller is shown nothing of the directory, whether it exists or not.
pub(super) fn scopes<'a>(
    workspace: &'a Workspace,
    directory: Option<&'a WorkspacePath>,
    disclosure: &mut Disclosure<'_>,
) -> Result<Vec<Scope<'a>>, Failure> {
    let scopes = scopes_of(workspace, directory)?;
    check(&scopes, disclosure)?;
    Ok(scopes)
}

/// The same, whatever the caller is shown.
///
/// # Errors
/// There is no root of its name.
pub(crate) fn scopes_of<'a>(
    workspace: &'a Workspace,
    directory: Option<&'a WorkspacePath>,
) -> Result<Vec<Scope<'a>>, Failure> {
    let roots = workspace.roots();
    let style = PathStyle::among(roots.len());
    let (wanted, path) = match (style, directory.map(WorkspacePath::as_str)) {
        (_, None) => (None, None),
        (PathStyle::InRoot, path) => (None, path),
        (PathStyle::WithRoot, Some(path)) => match path.split_once('/') {
            Some((root, path)) => (Some(root), Some(path)),
            None => (Some(path), None),
        },
    };
    let mut scopes: Vec<_> = roots
        .iter()
        .enumerate()
        .filter(|(_, root)| wanted.is_none_or(|wanted| wanted == root.name()))
        .map(|(index, root)| Scope { index, root, path, style })
        .collect();
    if scopes.is_empty() {
        let known: Vec<_> = roots.iter().map(|root| format!("{:?}", root.name())).collect();
        let message = format!(
            "no root of this workspace is named {:?}, the roots are {}",
            wanted.unwrap_or_default(),
            known.join(", ")
        );
        return Err(Failure::new(Reason::InvalidPath, message)
            .detail(Detail::UnknownRoot)
            .field("directory")
            .hint("begin the path with the name of one of the roots"));
    }
    scopes.sort_by_key(|scope| scope.root.name());
    Ok(scopes)
}

/// Refuses scopes of which the caller is shown nothing, whether they exist or not.
///
/// # Errors
/// Why nothing is shown.
pub(crate) fn check(scopes: &[Scope<'_>], disclosure: &mut Disclosure<'_>) -> Result<(), Failure> {
    for scope in scopes {
        if let Some(path) = scope.path {
            let closed = match protection::of(path) {
                Some(why) => Err(Closed { detail: why.detail(), why: why.to_string() }),
                None => disclosure.may_be_searched(scope.index, path, Kind::Directory),
            };
            closed.map_err(|closed| failure(&WalkError::closed(path, closed)))?;
        }
    }
    Ok(())
}

/// The failure of a walk, as the caller of a list or a search gets it.
pub(super) fn failure(error: &WalkError) -> Failure {
    let failure = error.failure().field("directory");
    match error {
        WalkError::Missing { at } => Failure {
            reason: Reason::NotFound,
            message: format!("there is no directory {at:?}"),
            hint: Some("name a directory above it, or leave directory out".to_owned()),
            ..failure
        },
        WalkError::Closed { .. } | WalkError::Ignored { .. } => {
            failure.hint("name another directory; a person at the workstation decides what servers read")
        }
        _ => failure,
    }
}
