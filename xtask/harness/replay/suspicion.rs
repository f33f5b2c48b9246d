//! Counts how often content of real files is taken for an edit: none of it may be refused.
//!
//! Each new content of a history is sent in a file bundle, over the file that it replaced and as a new file; so is each
//! file of the repository's newest commit.

use std::path::Path;

use anyhow::{Result, ensure};
use aptix_model::documents::Dialect;
use aptix_model::path::WorkspacePath;
use aptix_model::protection;
use aptix_model::reason::Reason;
use serde_json::json;

use crate::history::{FileChange, Objects, newest_files};
use crate::memory::{Applied, File, apply};

/// Refusals and warnings that are shown in full.
const SHOWN: usize = 20;

/// What was counted.
#[derive(Default)]
pub(crate) struct Suspicion {
    sent: usize,
    warned: Vec<String>,
    refused: Vec<String>,
}

/// What became of one content.
enum Outcome {
    Written,
    Warned(String),
    Refused(String),
}

impl Suspicion {
    /// Sends what a change makes of a file.
    pub(crate) fn add(&mut self, step: &str, file: &FileChange) -> Result<()> {
        let Some(content) = file.after.as_ref().and_then(|after| std::str::from_utf8(&after.bytes).ok()) else {
            return Ok(());
        };
        let is_open = WorkspacePath::new(&file.path).is_ok() && protection::of(&file.path).is_none();
        if !is_open || content.contains('\0') {
            return Ok(());
        }
        let before = file.before.as_ref().map(|before| before.bytes.as_slice());
        for base in [before, None].into_iter().take(1 + usize::from(before.is_some())) {
            self.sent += 1;
            match send(&file.path, content, base)? {
                Outcome::Written => {}
                Outcome::Warned(message) => self.warned.push(format!("{step}, {}: {message}", file.path)),
                Outcome::Refused(failure) => self.refused.push(format!("{step}: {failure}")),
            }
        }
        Ok(())
    }

    /// Sends every file of the newest commit.
    pub(crate) fn add_newest(&mut self, repo: &Path) -> Result<()> {
        let files = newest_files(repo, &mut Objects::of(repo)?)?;
        files.iter().try_for_each(|file| self.add("newest commit", file))
    }

    pub(crate) fn print(&self) {
        let Self { sent, warned, refused } = self;
        println!("contents sent as file bundles, for SUSPECT_CONTENT:");
        println!("  {sent} sent, {} refused, {} warned of", refused.len(), warned.len());
        for (what, lines) in [("refused", refused), ("warned of", warned)] {
            lines.iter().take(SHOWN).for_each(|line| println!("  {what}: {line}"));
        }
    }

    /// # Errors
    /// When content was refused.
    pub(crate) fn verdict(&self) -> Result<()> {
        ensure!(self.refused.is_empty(), "{} contents of real files are suspect", self.refused.len());
        Ok(())
    }
}

fn send(path: &str, content: &str, base: Option<&[u8]>) -> Result<Outcome> {
    let document = json!({ "files": [{ "path": path, "content": content }] }).to_string();
    let base = base.map(|bytes| File { bytes: bytes.to_vec(), is_executable: false });
    let before = base.iter().map(|file| (path, file)).collect();
    Ok(match apply(document.as_bytes(), Dialect::FileBundle, &before)? {
        Ok(Applied { warnings, .. }) => {
            let mut suspect = warnings.into_iter().filter(|warning| warning.code == Reason::SuspectContent.code());
            suspect.next().map_or(Outcome::Written, |warning| Outcome::Warned(warning.message))
        }
        // Content that is too large, and the like, is refused for what it is.
        Err(failure) if failure.reason != Reason::SuspectContent => Outcome::Written,
        Err(failure) => Outcome::Refused(failure.to_string()),
    })
}
