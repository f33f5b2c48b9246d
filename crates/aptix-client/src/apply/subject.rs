//! The digest that binds a person's agreement to what they saw: the batch, the roots, and each file before and after.
//!
//! It is compared within one process and never stored, so that it may depend on the build.

use std::hash::{Hash, Hasher};

use aptix_model::batch::Batch;
use aptix_model::digest::Sha256Digest;
use sha2::{Digest, Sha256};

use crate::workspace::commit::change::{Becomes, Change, Content};
use crate::workspace::read::place::Place;
use crate::workspace::roots::workspace::Workspace;

/// The digest of a change. A commit holds each file to the same digests, of what is there and of what it writes.
pub(crate) fn digest(workspace: &Workspace, batch: &Batch, changes: &[Change<'_>]) -> Sha256Digest {
    let changes: Vec<_> = changes.iter().map(change).collect();
    digest_of(&(batch, roots(workspace), changes))
}

/// The digest of each file's change by itself.
pub(crate) fn parts(workspace: &Workspace, changes: &[Change<'_>]) -> Vec<Sha256Digest> {
    let roots = roots(workspace);
    changes.iter().map(|one| digest_of(&(&roots, change(one)))).collect()
}

fn roots(workspace: &Workspace) -> Vec<impl Hash> {
    workspace.roots().iter().map(|root| (root.path().as_os_str(), root.identity())).collect()
}

fn change(change: &Change<'_>) -> impl Hash {
    let place = |place: &Place| (place.root(), place.real());
    let content = |content: &Content<'_>| (*content.digest.as_bytes(), content.executable);
    let before = change.before.map(|digest| *digest.as_bytes());
    let after = match &change.becomes {
        Becomes::Content(after) => (Some(content(after)), None),
        Becomes::Moved(to, after) => (Some(content(after)), Some(place(to))),
        Becomes::Nothing => (None, None),
    };
    (place(change.place), before, after)
}

/// The SHA-256 of what a value puts into its hash, which keeps its parts and their lengths apart.
pub(crate) fn digest_of(value: &impl Hash) -> Sha256Digest {
    let mut hasher = Sha256Hasher(Sha256::new());
    value.hash(&mut hasher);
    Sha256Digest::from_bytes(hasher.0.finalize().into())
}

struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.clone().finalize().first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }
}
