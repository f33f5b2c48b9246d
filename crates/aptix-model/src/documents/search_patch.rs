//! The search-patch document: one file, and changes that are all found in it as it is (REQ-PATCH-006).

use serde::Deserialize;

use super::fields::{listed, required};
use super::json::{self, Bounded, Named, Place};
use super::keys::Keys;
use super::tokens;
use crate::batch::{Batch, FileEdit, FilePatch, Reindent, SearchChange, SearchOperation, SearchPatch, Target};
use crate::failure::Failure;
use crate::limits::{Limits, SEARCH_PATCH_TOKENS};
use crate::path::document_spelling;
use crate::reason::{Detail, Reason};
use crate::report::Warning;

/// How a search patch is recognised.
pub(super) const KEYS: Keys = Keys {
    tells: &[
        "patches.operation",
        "patches.oldText",
        "patches.newText",
        "patches.toClipboard",
        "patches.fromClipboard",
        "patches.reindent",
    ],
    knows: &["path", "patches"],
};

const OPERATIONS: [&str; 4] = ["replace", "append_eof", "prepend_bof", "overwrite"];

#[derive(Deserialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PatchDocument {
    /// The file, relative to the workspace root, with forward slashes: src/main.rs
    #[cfg_attr(feature = "tools", schemars(required))]
    path: Option<String>,
    /// All found in the file as it is now
    #[cfg_attr(feature = "tools", schemars(required))]
    patches: Option<Bounded<ChangeDocument, { Limits::DEFAULT.changes }>>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangeDocument {
    /// What is done
    #[cfg_attr(feature = "tools", schemars(required, extend("enum" = OPERATIONS)))]
    operation: Option<String>,
    /// replace: text that stands in the file exactly once
    old_text: Option<String>,
    /// What comes instead, or is added
    new_text: Option<String>,
    /// replace: the name under which the old text is kept
    to_clipboard: Option<String>,
    /// The name of kept text that is used as new text
    from_clipboard: Option<String>,
    reindent: Option<ReindentDocument>,
}

impl Named for ChangeDocument {
    const PLURAL: &'static str = "changes";
}

#[derive(Deserialize)]
#[cfg_attr(feature = "tools", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReindentDocument {
    /// The prefix that each non-empty line of the new text has, and loses
    strip: Option<String>,
    /// The prefix that each of them gets
    add: Option<String>,
}

pub(super) fn parse(text: &str) -> Result<(Batch, Vec<Warning>), Vec<Failure>> {
    check_tokens(text).map_err(|failure| vec![failure])?;
    let document: PatchDocument = json::from_str(text).map_err(|failure| vec![failure])?;
    let mut failures = Vec::new();
    if document.path.is_none() {
        failures.push(required("path").field("path"));
    }
    if document.patches.is_none() {
        failures.push(required("patches").field("patches"));
    }
    let changes = document.patches.into_iter().flat_map(|patches| patches.0).enumerate();
    let changes = changes.filter_map(|(position, change)| Change { position, failures: &mut failures }.read(change));
    let changes = changes.collect();
    let (Some(path), true) = (document.path, failures.is_empty()) else { return Err(listed(failures)) };
    let edit = FileEdit::SearchPatch(SearchPatch { changes });
    let file = FilePatch { target: Target::Path(document_spelling(&path)), key: None, label: None, edit };
    Ok((Batch { files: vec![file], ..Batch::default() }, Vec::new()))
}

/// Refuses a patch that has more tokens than one call may have (REQ-PATCH-008).
fn check_tokens(text: &str) -> Result<(), Failure> {
    if tokens::has_at_most(SEARCH_PATCH_TOKENS, text) {
        return Ok(());
    }
    let message = format!("the patch has more than {SEARCH_PATCH_TOKENS} tokens, in {} bytes", text.len());
    Err(Failure::new(Reason::TooLarge, message)
        .detail(Detail::Tokens)
        .hint("break it into smaller patches, and send one after the other"))
}

/// One change, and where what is wrong with it goes.
struct Change<'a> {
    position: usize,
    failures: &'a mut Vec<Failure>,
}

impl Change<'_> {
    fn refuse(&mut self, field: &str, failure: Failure) {
        let place = Place::new(format!("patches[{}].{field}", self.position), 0, Some(self.position));
        self.failures.push(place.put_on(failure));
    }

    fn read(&mut self, change: ChangeDocument) -> Option<SearchChange> {
        let operation = match change.operation.as_deref() {
            Some("replace") => {
                if change.old_text.is_none() {
                    self.refuse("oldText", required("oldText"));
                }
                SearchOperation::Replace { old_text: change.old_text? }
            }
            Some("append_eof") => self.at_once("append_eof", &change, SearchOperation::AppendEof),
            Some("prepend_bof") => self.at_once("prepend_bof", &change, SearchOperation::PrependBof),
            Some("overwrite") => self.at_once("overwrite", &change, SearchOperation::Overwrite),
            Some(unknown) => {
                self.unknown_operation(unknown);
                return None;
            }
            None => {
                self.refuse("operation", required("operation"));
                return None;
            }
        };
        let prefixes = |reindent: ReindentDocument| Reindent {
            strip: reindent.strip.unwrap_or_default(),
            add: reindent.add.unwrap_or_default(),
        };
        Some(SearchChange {
            operation,
            new_text: change.new_text,
            to_clipboard: change.to_clipboard,
            from_clipboard: change.from_clipboard,
            reindent: change.reindent.map(prefixes),
        })
    }

    /// An operation that looks for nothing.
    fn at_once(&mut self, name: &str, change: &ChangeDocument, operation: SearchOperation) -> SearchOperation {
        let found = [("oldText", change.old_text.is_some()), ("toClipboard", change.to_clipboard.is_some())];
        for (field, _) in found.into_iter().filter(|(_, is_there)| *is_there) {
            let message = format!("'{field}' does not belong to operation '{name}'");
            let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UnexpectedField);
            self.refuse(field, failure.hint(format!("leave '{field}' out, or use the operation 'replace'")));
        }
        operation
    }

    fn unknown_operation(&mut self, unknown: &str) {
        let shown: String = unknown.chars().take(40).collect();
        let message = format!("unknown operation {shown:?}, expected one of {}", OPERATIONS.join(", "));
        let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownOperation);
        self.refuse("operation", failure.hint(json::instead(unknown, &OPERATIONS)));
    }
}
