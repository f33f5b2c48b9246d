//! The clipboards of a session while a batch is planned: what was there before, and what the batch puts there.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::failure::Failure;
use aptix_model::limits::{CLIPBOARD_BYTES, CLIPBOARDS};
use aptix_model::reason::{Detail, Reason};

/// Texts by name, kept from one batch of a session to the next (REQ-PATCH-003).
pub type Clipboards = BTreeMap<String, String>;

/// Clipboards that a refusal names.
const LISTED: usize = 20;

/// Clipboards as the next change of a batch sees them.
#[derive(Clone, Debug)]
pub(crate) struct Pasteboard<'s> {
    session: &'s Clipboards,
    changed: Clipboards,
}

impl<'s> Pasteboard<'s> {
    pub(crate) const fn new(session: &'s Clipboards) -> Self {
        Self { session, changed: Clipboards::new() }
    }

    /// The text of a clipboard.
    ///
    /// # Errors
    /// When there is no such clipboard.
    pub(crate) fn get(&self, name: &str) -> Result<&str, Failure> {
        let found = self.changed.get(name).or_else(|| self.session.get(name));
        found.map(|text| text.as_str()).ok_or_else(|| {
            let message = format!("there is no clipboard {name:?}: {}", self.listed());
            Failure::new(Reason::ClipboardMissing, message)
                .hint("fill it first, with toClipboard on a replace above this change or in an earlier call")
        })
    }

    /// Puts text on a clipboard.
    ///
    /// # Errors
    /// When it is too long, or there are too many clipboards.
    pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let refuse = |message| Failure::new(Reason::ResourceExhausted, message).detail(Detail::Clipboard);
        if text.len() > CLIPBOARD_BYTES {
            let message =
                format!("a clipboard holds at most {CLIPBOARD_BYTES} bytes, and this text has {}", text.len());
            return Err(refuse(message).hint("leave toClipboard out, or move the text in smaller parts"));
        }
        let is_new = !self.changed.contains_key(name) && !self.session.contains_key(name);
        if is_new && self.count() >= CLIPBOARDS {
            let message = format!("a session has at most {CLIPBOARDS} clipboards");
            return Err(refuse(message).hint("use the name of a clipboard that is no longer needed"));
        }
        self.changed.insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    /// The clipboards that the batch changes.
    pub(crate) fn into_changed(mut self) -> Clipboards {
        self.changed.retain(|name, text| self.session.get(name) != Some(text));
        self.changed
    }

    /// Which clipboards there are.
    fn listed(&self) -> String {
        let names: BTreeSet<&String> = self.session.keys().chain(self.changed.keys()).collect();
        if names.is_empty() {
            return "this session has none".to_owned();
        }
        let shown: Vec<String> = names.iter().take(LISTED).map(|name| format!("{name:?}")).collect();
        let more = if names.len() > shown.len() { ", ..." } else { "" };
        format!("this session has {}{more}", shown.join(", "))
    }

    fn count(&self) -> usize {
        self.session.len() + self.changed.keys().filter(|name| !self.session.contains_key(*name)).count()
    }
}
