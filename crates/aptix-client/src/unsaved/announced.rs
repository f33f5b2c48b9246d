//! Finds the file that an editor announces, and whether its text differs from what is on disk.

use std::path::Path;
use std::sync::Arc;

use aptix_engine::target::ValidTarget;
use aptix_model::failure::Failure;
use aptix_model::path::{DocPath, PathError, WorkspacePath};
use aptix_model::reason::Reason;

use super::Unsaved;
use super::buffer::Buffer;
use super::buffers::Editor;
use super::protocol::FileName;
use crate::workspace::read::listing::Listings;
use crate::workspace::read::open_file::OpenFile;
use crate::workspace::read::place::Place;
use crate::workspace::read::resolve::{resolve, resolve_in};
use crate::workspace::roots::workspace::Workspace;

/// Holds what an editor announces; returns whether it differs from the file on disk. One that does not is not held: it would
/// look unsaved once a batch has changed the file.
///
/// # Errors
/// The name leads to no file that can be edited here, the text is too large, or there are too many buffers.
pub(crate) fn announce(
    workspace: &Workspace,
    editor: &Editor,
    name: &FileName,
    text: Option<String>,
) -> Result<bool, Failure> {
    let mut listings = Listings::default();
    let place = place(workspace, &mut listings, name)?;
    let buffer = Buffer {
        root: place.root(),
        path: place.path.as_str().to_owned(),
        real: place.real(),
        doc_path: place.doc_path.clone(),
        text: text.map(Arc::from),
    };
    let file = OpenFile::at(workspace, &mut listings, &place).map_err(|error| error.failure())?;
    let alone = Unsaved(vec![buffer.clone()]);
    let is_unsaved = alone.beside(&place, file.as_ref()).map_err(|error| error.failure())?.is_some();
    if is_unsaved {
        editor.announce(name.as_str(), buffer)?;
    } else {
        editor.withdraw(name.as_str());
    }
    Ok(is_unsaved)
}

fn place(workspace: &Workspace, listings: &mut Listings, name: &FileName) -> Result<Place, Failure> {
    let refused = |error: PathError| {
        Failure::new(Reason::InvalidPath, format!("{:?} names no file here: {error}", name.as_str()))
            .hint("announce regular files below the root of the socket, by absolute path or docPath")
    };
    let found = match name {
        FileName::DocPath(key) => {
            resolve(workspace, listings, &ValidTarget::DocPath(DocPath::new(key).map_err(refused)?))
        }
        FileName::Path(path) => {
            let (root, rest) = in_root(workspace, Path::new(path))?;
            resolve_in(workspace, listings, root, &WorkspacePath::new(&rest).map_err(refused)?)
        }
    };
    found.map_err(|error| error.failure())
}

/// The root that an absolute path is in, and the path in it. An editor may know the root by another path than we do.
fn in_root(workspace: &Workspace, path: &Path) -> Result<(usize, String), Failure> {
    let refused = |message: String| {
        let roots: Vec<_> = workspace.roots().iter().map(|root| root.path().display().to_string()).collect();
        Failure::new(Reason::InvalidPath, message)
            .field("path")
            .hint(format!("announce files below {} alone, by their absolute paths", roots.join(" and ")))
    };
    if !path.is_absolute() {
        return Err(refused(format!("{} is not an absolute path", path.display())));
    }
    let within = |path: &Path| {
        let mut roots = workspace.roots().iter().enumerate();
        roots.find_map(|(index, root)| Some((index, path.strip_prefix(root.path()).ok()?.to_str()?.to_owned())))
    };
    let real = || {
        let directory = path.parent()?.canonicalize().ok()?;
        within(&directory.join(path.file_name()?))
    };
    within(path).or_else(real).ok_or_else(|| refused(format!("{} is in no root of this agent", path.display())))
}
