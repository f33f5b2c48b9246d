//! The bytes of the files of an entry before and after its batch, also where the entry keeps passages alone: then with the help
//! of the file on disk.

use aptix_engine::digest::sha256;
use aptix_model::path::WorkspacePath;

use super::entries::{self, Entry, HistoryError};
use super::passages::Passages;
use super::past_file::{Images, Kept, PastFile};
use crate::workspace::read::listing::Listings;
use crate::workspace::read::{resolve, snapshot};
use crate::workspace::roots::workspace::Workspace;

/// The bytes of each file before and after. Of a file of which the entry keeps passages they are known if the file on disk is as
/// the batch left it, or as it was before.
///
/// # Errors
/// As [`entries::kept`].
pub(crate) fn images(workspace: &Workspace, entry: &Entry) -> Result<Vec<Images>, HistoryError> {
    let known = |(kept, file)| match kept {
        Kept::Images(images) => images,
        Kept::Passages(passages) => complete(workspace, file, &passages).unwrap_or_default(),
    };
    Ok(entries::kept(entry)?.into_iter().zip(&entry.files).map(known).collect())
}

fn complete(workspace: &Workspace, file: &PastFile, passages: &Passages) -> Option<Images> {
    let root = workspace.roots().iter().position(|root| root.path() == file.root)?;
    let read = |path: &str, size: usize| {
        let mut listings = Listings::default();
        let place = resolve::resolve_in(workspace, &mut listings, root, &WorkspacePath::new(path).ok()?).ok()?;
        Some(snapshot::read(workspace, &mut listings, &place, size as u64).ok()??.bytes)
    };
    let is_before = |bytes: &Vec<u8>| file.digest_before() == Some(sha256(bytes));
    let is_after = |bytes: &Vec<u8>| file.digest_after() == Some(sha256(bytes));
    if let Some(after) = read(file.left_at(), passages.size_after()).filter(is_after) {
        let before = passages.before(&after).filter(is_before);
        return Some(Images { before, after: Some(after) });
    }
    let before = read(&file.path, passages.size_before()).filter(is_before)?;
    Some(Images { after: passages.after(&before).filter(is_after), before: Some(before) })
}
