//! The one table of tools, and the tools of it that one caller is given: a set, or some by their names.

use super::tool::{Effect, Set, Tool};
use super::{
    append, apply, block_replace, create_file, edit, editor, insert, list_directory, overwrite, past, patch,
    range_edit, read_file, ripgrep, texts, whole_files, write_patch,
};
use crate::documents::{Dialect, json};
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// Every tool, in the order in which models read them.
pub const TOOLS: &[Tool] = &[
    write_patch::TOOL,
    patch::TOOL,
    edit::TOOL,
    create_file::TOOL,
    whole_files::DELETE,
    whole_files::MOVE,
    texts::CODEX,
    editor::TOOL,
    texts::STRUCTURED,
    texts::GIT,
    texts::BUNDLE,
    range_edit::TOOL,
    append::TOOL,
    insert::AFTER,
    insert::BEFORE,
    block_replace::TOOL,
    apply::TOOL,
    overwrite::TOOL,
    past::UNDO,
    read_file::TOOL,
    list_directory::TOOL,
    ripgrep::FILES,
    ripgrep::CONTENT,
    past::HISTORY,
    past::CHANGE,
];

/// Tools that earlier versions had, and those that took their place (WS-MOD 1).
const GONE: [(&str, &str); 5] = [
    ("append_file", "prepare_file_append"),
    ("insert_after", "prepare_file_insert_after"),
    ("insert_before", "prepare_file_insert_before"),
    ("replace_block", "prepare_file_block_replace"),
    ("apply_block_replace", "apply_file_modification"),
];

/// Finds a tool by its name.
///
/// # Errors
/// When there is none, with the name that was most likely meant.
pub fn find(name: &str) -> Result<&'static Tool, Failure> {
    Selection::all().find(name)
}

/// Whether a call of a tool with these arguments only reads.
#[must_use]
pub fn only_reads(tool: &Tool, arguments: &str) -> bool {
    tool.effect == Effect::Reads || (tool.name == editor::TOOL.name && editor::is_view(arguments))
}

/// Some tools of the catalogue, in its order.
#[derive(Clone, Debug)]
pub struct Selection(Vec<&'static Tool>);

impl Selection {
    /// Every tool.
    #[must_use]
    pub fn all() -> Self {
        Self(TOOLS.iter().collect())
    }

    /// Parses `core`, `all`, or names of tools, separated by commas; `core` and `all` may stand among the names.
    ///
    /// # Errors
    /// When a word names no tool and no set.
    pub fn parse(words: &str) -> Result<Self, Failure> {
        let words: Vec<&str> = words.split(',').map(str::trim).collect();
        for word in words.iter().filter(|word| !matches!(**word, "core" | "all")) {
            find(word)?;
        }
        let has = |word: &str| words.contains(&word);
        let is_chosen = |tool: &&Tool| has("all") || has(tool.name) || (has("core") && tool.set == Set::Core);
        Ok(Self(TOOLS.iter().filter(is_chosen).collect()))
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> &[&'static Tool] {
        &self.0
    }

    /// The tool that takes documents of a dialect as its arguments.
    #[must_use]
    pub fn taking(&self, dialect: Dialect) -> Option<&'static Tool> {
        self.0.iter().find(|tool| tool.dialect == Some(dialect)).copied()
    }

    /// Finds a tool of the selection by its name.
    ///
    /// # Errors
    /// When it has none of that name, with the name that was most likely meant.
    pub fn find(&self, name: &str) -> Result<&'static Tool, Failure> {
        self.0.iter().find(|tool| tool.name == name).copied().ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> Failure {
        let shown: String = name.chars().take(40).collect();
        let failure = Failure::new(Reason::InvalidRequest, format!("there is no tool {shown:?}"))
            .detail(Detail::UnknownOperation);
        let names = || self.0.iter().map(|tool| tool.name);
        if let Some((_, now)) = GONE.iter().find(|(gone, now)| *gone == name && names().any(|name| name == *now)) {
            return failure.hint(format!("it was removed; use {now}"));
        }
        match json::nearest(name, names()) {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None => failure.hint(format!("the tools are {}", names().collect::<Vec<_>>().join(", "))),
        }
    }
}
