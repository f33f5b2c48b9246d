//! The commands of the program under test, and the documents that they read.

use std::path::Path;
use std::process::Output;

use anyhow::Result;

use crate::sequence::Sequence;

/// A command of the program under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// `aptix apply`: from a generation to the next.
    Apply,
    /// `aptix undo`: back from it.
    Undo,
}

impl Action {
    /// What it does in a place, by what [`prepare`] put there.
    pub(crate) const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Apply => &["apply", "--yes", "--json", "--root", "ws", "document.diff"],
            Self::Undo => &["undo", "--yes", "--json", "--root", "ws"],
        }
    }
}

/// A command that does nothing but look, once it has brought to an end what was left half-way.
pub(crate) const LOOK: [&str; 5] = ["apply", "--dry-run", "--root", "ws", "harmless.json"];

/// Puts into a place what the commands read there: the document that leads on from a generation.
pub(crate) fn prepare(place: &Path, sequence: &Sequence, generation: usize) -> Result<()> {
    std::fs::write(place.join("document.diff"), sequence.document(generation))?;
    let harmless = r#"{"files": [{"path": "nothing.txt", "operation": "create", "content": ""}]}"#;
    Ok(std::fs::write(place.join("harmless.json"), harmless)?)
}

/// What a process printed, its answer first.
pub(crate) fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).concat()
}
