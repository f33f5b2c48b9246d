//! What the files of a batch share while they are planned one after the other.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use core::mem;

use aptix_model::failure::Failure;
use aptix_model::path::WorkspacePath;
use aptix_model::reason::{Detail, Reason};

use crate::planning::clipboards::Pasteboard;
use crate::planning::settings::Settings;
use crate::text::find::{Budget, Searches};

/// What the files of a batch share while they are planned one after the other.
#[derive(Debug)]
pub(crate) struct Work<'s> {
    pub(crate) settings: &'s Settings<'s>,
    /// Searches of whole files for what an author may have meant.
    pub(crate) searches: Searches,
    /// How much more may be searched for.
    pub(crate) budget: Budget,
    pub(crate) clipboards: Pasteboard<'s>,
    /// Where the files are that the batch renames, by key and path.
    leaving: BTreeSet<(String, WorkspacePath)>,
    /// Bytes of new text that there still is room for.
    room: u64,
}

impl<'s> Work<'s> {
    /// For a batch whose files that are searched have so many bytes, and that leaves these places.
    pub(crate) fn new(settings: &'s Settings<'s>, searched: usize, leaving: BTreeSet<(String, WorkspacePath)>) -> Self {
        Self {
            settings,
            searches: Searches::new(),
            budget: Budget::new(searched),
            clipboards: Pasteboard::new(settings.clipboards),
            leaving,
            room: settings.limits.batch_bytes,
        }
    }

    /// Does work whose outcome is only looked at: of what the files share, nothing but the budget of searches changes.
    pub(crate) fn rehearse<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let mut rehearsal = Self {
            settings: self.settings,
            searches: Searches::none(),
            budget: mem::replace(&mut self.budget, Budget::spent()),
            clipboards: self.clipboards.clone(),
            leaving: mem::take(&mut self.leaving),
            room: self.settings.limits.batch_bytes,
        };
        let result = work(&mut rehearsal);
        (self.budget, self.leaving) = (rehearsal.budget, rehearsal.leaving);
        result
    }

    /// Whether the batch renames the file at the place of another.
    pub(crate) fn leaves(&self, doc_path: &str, path: &WorkspacePath) -> bool {
        self.leaving.contains(&(doc_path.to_string(), path.clone()))
    }

    /// Refuses so many bytes of new text for a file of so many.
    pub(crate) fn check_growth(&self, bytes: usize, growth: u64) -> Result<(), Failure> {
        let limit = self.settings.limits.file_bytes;
        if growth == 0 || growth.saturating_add(bytes as u64) <= limit {
            return Ok(());
        }
        let message = format!("a file to be edited has at most {limit} bytes, and this would grow beyond that");
        Err(Failure::new(Reason::TooLarge, message).detail(Detail::File).hint("make smaller changes"))
    }

    /// Takes room for so many bytes of new text.
    pub(crate) fn take_room(&mut self, bytes: usize) -> Result<(), Failure> {
        let left = self.room.checked_sub(bytes as u64);
        self.room = left.ok_or_else(|| {
            let limit = self.settings.limits.batch_bytes;
            let message = format!("the new texts of a batch have at most {limit} bytes, and these have more");
            Failure::new(Reason::TooLarge, message).detail(Detail::File).hint("split the batch")
        })?;
        Ok(())
    }
}
