//! The buffers that the editors of an agent have announced, until they withdraw them or disconnect.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use super::buffer::{Buffer, TEXT_BYTES};

/// Most buffers of an agent, of all its editors together.
pub const BUFFERS: usize = 64;

/// The buffers of an agent.
#[derive(Default, Debug)]
pub struct Buffers {
    held: Mutex<Vec<Held>>,
    editors: AtomicU64,
}

/// A buffer, and whose it is.
#[derive(Debug)]
struct Held {
    editor: u64,
    /// What the editor calls the file.
    name: String,
    buffer: Buffer,
}

/// An editor that is connected. Dropped, it has no buffers any more.
#[derive(Debug)]
pub(crate) struct Editor {
    number: u64,
    buffers: Arc<Buffers>,
}

impl Buffers {
    /// A new editor.
    pub(crate) fn editor(self: &Arc<Self>) -> Editor {
        Editor { number: self.editors.fetch_add(1, Ordering::Relaxed), buffers: Arc::clone(self) }
    }

    /// All of them, in the order in which they were announced.
    pub(crate) fn all(&self) -> Vec<Buffer> {
        self.held().iter().map(|held| held.buffer.clone()).collect()
    }

    fn held(&self) -> MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Editor {
    /// Takes the place of what the editor announced of this name before. Text that is too large is refused; the buffer is held
    /// without it, so that batches wait all the same.
    ///
    /// # Errors
    /// The text is too large, or there are too many buffers.
    pub(crate) fn announce(&self, name: &str, buffer: Buffer) -> Result<(), Failure> {
        let size = buffer.text.as_ref().map_or(0, |text| text.len());
        let text = buffer.text.filter(|text| text.len() <= TEXT_BYTES);
        let buffer = Buffer { text, ..buffer };
        let mut held = self.buffers.held();
        held.retain(|held| !self.has(held, name));
        if held.len() >= BUFFERS {
            let message = format!("{BUFFERS} buffers are announced to this agent, at most {BUFFERS} are held");
            let hint = "save or close another file; until then batches and reads of this one do not know of its buffer";
            return Err(Failure::new(Reason::ResourceExhausted, message).hint(hint));
        }
        held.push(Held { editor: self.number, name: name.to_owned(), buffer });
        if size <= TEXT_BYTES {
            return Ok(());
        }
        let message = format!("the text has {size} bytes, at most {TEXT_BYTES} are shown");
        let hint = "save the file; until then batches and reads of it are refused";
        Err(Failure::new(Reason::TooLarge, message).field("text").hint(hint))
    }

    /// Forgets what the editor announced of this name; nothing happens if that is nothing.
    pub(crate) fn withdraw(&self, name: &str) {
        self.buffers.held().retain(|held| !self.has(held, name));
    }

    /// The buffers of all editors in a root.
    pub(crate) fn list(&self, root: usize) -> Vec<Buffer> {
        self.buffers.all().into_iter().filter(|buffer| buffer.root == root).collect()
    }

    fn has(&self, held: &Held, name: &str) -> bool {
        held.editor == self.number && held.name == name
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.buffers.held().retain(|held| held.editor != self.number);
    }
}
