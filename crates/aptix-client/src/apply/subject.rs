//! What exactly a person agrees to: one digest over the batch, the roots, and every file before and after.

use aptix_model::batch::Batch;
use aptix_model::digest::Sha256Digest;
use aptix_model::wire::bytes::batch_to_bytes;
use sha2::{Digest, Sha256};

use crate::workspace::Workspace;
use crate::workspace::change::{Becomes, Change, Content};
use crate::workspace::resolve::Place;

/// Digests of another make never equal these.
const MAKE: &[u8] = b"aptix subject 1";

/// The digest of a change. A commit holds each file to the same digests, of what is there and of what it writes.
pub(crate) fn digest(workspace: &Workspace, batch: &Batch, changes: &[Change<'_>]) -> Sha256Digest {
    let mut subject = Subject(Sha256::new());
    subject.part(MAKE);
    subject.part(&batch_to_bytes(batch));
    for root in workspace.roots() {
        let (device, inode) = root.identity();
        subject.part(root.path().as_os_str().as_encoded_bytes());
        subject.part(&device.to_be_bytes());
        subject.part(&inode.to_be_bytes());
    }
    for change in changes {
        subject.place(change.place);
        subject.part(change.before.as_ref().map_or(&[][..], |digest| digest.as_bytes()));
        match change.becomes {
            Becomes::Content(content) => subject.content("content", &content),
            Becomes::Moved(place, content) => {
                subject.content("moved", &content);
                subject.place(place);
            }
            Becomes::Nothing => subject.part(b"nothing"),
        }
    }
    Sha256Digest::from_bytes(subject.0.finalize().into())
}

struct Subject(Sha256);

impl Subject {
    /// Adds bytes so that no other parts come to the same.
    fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn place(&mut self, place: &Place) {
        self.part(&(place.root() as u64).to_be_bytes());
        self.part(place.real().as_bytes());
    }

    fn content(&mut self, word: &str, content: &Content<'_>) {
        self.part(word.as_bytes());
        self.part(content.digest.as_bytes());
        self.part(match content.executable {
            None => b"as before",
            Some(true) => b"executable",
            Some(false) => b"plain",
        });
    }
}
