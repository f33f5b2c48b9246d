//! What a tool is: the name it is called by, what the model reads about it, and how its arguments become a call.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::look::Look;
use super::roots::{self, Locate, Roots};
use crate::batch::FilePatch;
use crate::documents::terms::Wording;
use crate::documents::{Dialect, Document, PartialDocument, json};
use crate::failure::Failure;
use crate::id::{BatchId, FilePatchId};

/// Every tool's category (TUL-004 4.1).
pub const CATEGORY: &str = "workspace";
/// Where every tool is executed (TUL-004 4.1).
pub const EXECUTION_LOCATION: &str = "client";

/// A tool.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// The name that calls give.
    pub name: &'static str,
    /// What the model reads: inputs, behaviour and output.
    pub description: &'static str,
    /// The set of tools that it belongs to.
    pub set: Set,
    /// What a call does to files.
    pub effect: Effect,
    /// The form of its answers.
    pub form: Form,
    /// The dialect of its arguments, if they are a document.
    pub dialect: Option<Dialect>,
    /// Generates the schema of the arguments.
    pub(super) input: fn() -> Map<String, Value>,
    /// Generates the schema of the structured answer.
    pub(super) output: fn() -> Map<String, Value>,
    /// Parses the arguments.
    pub(super) parse: fn(&str, &Roots) -> Result<Call, PartialDocument>,
}

/// The sets of tools, of which a caller chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Set {
    /// Enough for every edit, in at most 16 KiB of catalogue.
    Core,
    /// Other ways to the same edits, and prepared edits.
    Other,
}

/// What a tool does to files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing.
    Reads,
    /// Nothing yet: it keeps an edit for a later call.
    Prepares,
    /// It changes them.
    Writes,
}

/// The form of a tool's answers, of those to refused calls as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// The result; of a refused call `success`, `state` and `errors`.
    Plain,
    /// The object that `aptix apply --json` prints.
    Batch,
    /// The envelope of TUL-002 9.
    InvokeResult,
    /// The result of TUL-004 4.3.
    Created,
}

/// What a call asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// Apply a document.
    Document(Document),
    /// Plan an edit.
    Prepare {
        /// The edit.
        patch: FilePatch,
        /// The plan that the new one replaces; absent for a new plan.
        existing: Option<FilePatchId>,
    },
    /// Apply a planned edit.
    Apply {
        /// The plan.
        hunk: FilePatchId,
    },
    /// Edit a file, in the tool's own terms.
    Edit {
        /// The edit.
        patch: FilePatch,
        /// What refusals name the parts of the edit by.
        wording: Wording,
    },
    /// Take back what a batch changed.
    Undo {
        /// The batch.
        batch: BatchId,
        /// Why, if the caller states it.
        reason: Option<String>,
    },
    /// Read, and change nothing.
    Look(Look),
}

impl Tool {
    /// The schema of the arguments, generated from the type that [`Tool::parse`] reads.
    #[must_use]
    pub fn input_schema(&self) -> Map<String, Value> {
        (self.input)()
    }

    /// The schema of the structured answer.
    #[must_use]
    pub fn output_schema(&self) -> Map<String, Value> {
        (self.output)()
    }

    /// Parses the arguments of a call, as the caller wrote them. Absolute paths inside the roots become paths of the workspace.
    ///
    /// # Errors
    /// When they do not have the shape that the schema describes, or a text in them cannot be parsed.
    pub fn parse(&self, arguments: &str, roots: &Roots) -> Result<Call, PartialDocument> {
        let mut call = (self.parse)(arguments, roots)?;
        call.relocate(&mut |text| roots.locate(text));
        Ok(call)
    }
}

impl Call {
    /// Gives the files that it edits their paths in the workspace: each that `locate` finds, as it finds it.
    pub fn relocate(&mut self, locate: &mut Locate<'_>) {
        match self {
            Self::Document(document) => roots::relocate(&mut document.batch, locate),
            Self::Prepare { patch, .. } | Self::Edit { patch, .. } => roots::relocate_file(patch, locate),
            Self::Apply { .. } | Self::Undo { .. } | Self::Look(_) => {}
        }
    }

    /// The absolute paths of the files that it edits, each once and in order.
    pub fn absolute_paths(&mut self) -> Vec<String> {
        let mut found = BTreeSet::new();
        self.relocate(&mut |text| {
            found.extend(text.starts_with('/').then(|| text.to_owned()));
            None
        });
        found.into_iter().collect()
    }
}

/// The text of arguments as they were sent, `{}` if there are none or they are null: one that costs no more to parse than any call
/// is worth.
///
/// # Errors
/// When they are no text, are nested too deeply, or have more objects or items of lists than a batch has changes and lines.
pub fn arguments_text(arguments: &[u8]) -> Result<&str, Failure> {
    if matches!(arguments.trim_ascii(), b"" | b"null") { Ok("{}") } else { json::text(arguments) }
}

/// Parses arguments into their type, and the type into a call.
pub(super) fn read<A: DeserializeOwned>(
    arguments: &str,
    call: impl FnOnce(A) -> Result<Call, Failure>,
) -> Result<Call, PartialDocument> {
    Ok(call(json::from_str(json::text(arguments.as_bytes())?)?)?)
}
