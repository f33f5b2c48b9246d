//! What a list or a search left out, as the tools' results have it.

use core::fmt::Write as _;

use serde::Serialize;

use crate::live::Skipped;

/// How much was left out that nothing withholds, for each cause, and where some of it is.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the keys are those of the tool's description")]
pub struct SkippedFiles {
    pub too_deep: u32,
    pub too_large: u32,
    pub unreadable: u32,
    pub bad_name: u32,
    pub paths: Vec<String>,
}

impl SkippedFiles {
    /// What was left out; `None` if nothing was.
    #[must_use]
    pub fn of(skipped: Skipped) -> Option<Self> {
        let is_empty = skipped.is_empty();
        let Skipped { too_deep, too_large, unreadable, bad_name, paths } = skipped;
        (!is_empty).then_some(Self { too_deep, too_large, unreadable, bad_name, paths })
    }

    /// As people and models read it: one line.
    #[must_use]
    pub fn text(&self) -> String {
        let counts = [
            (self.too_deep, "directories 64 levels below the root"),
            (self.too_large, "files that are too large"),
            (self.unreadable, "files or directories that could not be read"),
            (self.bad_name, "files or directories whose name no path can have"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let mut text = format!("left out: {}", counts.collect::<Vec<_>>().join(", "));
        if !self.paths.is_empty() {
            let _ = write!(text, "; among them {}", self.paths.join(", "));
        }
        text.push('\n');
        text
    }
}
