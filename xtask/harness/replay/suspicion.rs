//! Counts how often content of real files is taken for an edit: none of it may be refused.
//!
//! Each new content of a history is sent in a file bundle, over the file that it replaced and as a new file; so is each
//! file of the repository's newest commit.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use aptix_engine::plan::plan;
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::validate::validate;
use aptix_model::documents::{self, Dialect};
use aptix_model::path::{WorkspacePath, lowercase};
use aptix_model::protection;
use aptix_model::reason::Reason;
use serde_json::json;

use crate::history::{FileChange, Objects, newest_files};

/// Files whose content may be refused, each with the reason.
const EXCEPTIONS: [(&str, &str); 0] = [];
/// Refusals and warnings that are shown in full.
const SHOWN: usize = 20;

/// What was counted.
#[derive(Default)]
pub(crate) struct Suspicion {
    sent: usize,
    warned: Vec<String>,
    excepted: Vec<String>,
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
            let exception = EXCEPTIONS.iter().find(|(path, _)| *path == file.path);
            match (send(&file.path, content, base)?, exception) {
                (Outcome::Written, _) => {}
                (Outcome::Warned(message), _) => self.warned.push(format!("{step}, {}: {message}", file.path)),
                (Outcome::Refused(_), Some((path, reason))) => self.excepted.push(format!("{path}: {reason}")),
                (Outcome::Refused(failure), None) => self.refused.push(format!("{step}: {failure}")),
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
        let Self { sent, warned, excepted, refused } = self;
        println!("contents sent as file bundles, for SUSPECT_CONTENT:");
        println!("  {sent} sent, {} refused, {} warned of, {} excepted", refused.len(), warned.len(), excepted.len());
        for (what, lines) in [("refused", refused), ("excepted", excepted), ("warned of", warned)] {
            lines.iter().take(SHOWN).for_each(|line| println!("  {what}: {line}"));
        }
    }

    /// # Errors
    /// When content was refused that is no exception.
    pub(crate) fn verdict(&self) -> Result<()> {
        ensure!(self.refused.is_empty(), "{} contents of real files are suspect", self.refused.len());
        Ok(())
    }
}

fn send(path: &str, content: &str, base: Option<&[u8]>) -> Result<Outcome> {
    let document = json!({ "files": [{ "path": path, "content": content }] }).to_string();
    let refused = |failures: Vec<_>| -> Result<Outcome> {
        let failure: aptix_model::failure::Failure = failures.into_iter().next().context("a refusal has a failure")?;
        // Content that is too large, and the like, is refused for what it is.
        let is_suspect = failure.reason == Reason::SuspectContent;
        Ok(if is_suspect { Outcome::Refused(failure.to_string()) } else { Outcome::Written })
    };
    let document = match documents::parse(document.as_bytes(), Some(Dialect::FileBundle)) {
        Ok(document) => document,
        Err(failures) => return refused(failures),
    };
    let valid = match validate(&document.batch, &Settings::DEFAULT.limits) {
        Ok(valid) => valid,
        Err(failures) => return refused(failures),
    };
    let snapshot = [Observed {
        path: WorkspacePath::new(path)?,
        doc_path: format!("repo/{}", lowercase(path)),
        content: base,
        digest: None,
        is_executable: false,
        other: None,
    }];
    let plan = match plan(&valid, &snapshot, &Settings::DEFAULT) {
        Ok(plan) => plan,
        Err(failures) => return refused(failures),
    };
    let warnings = plan.files.iter().flat_map(|file| &file.warnings);
    let mut suspect = warnings.filter(|warning| warning.code == Reason::SuspectContent.code());
    Ok(suspect.next().map_or(Outcome::Written, |warning| Outcome::Warned(warning.message.clone())))
}
