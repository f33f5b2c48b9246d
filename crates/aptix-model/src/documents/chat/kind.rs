//! Which kind of edit a block of an answer holds, if any.

use super::fence::{Block, Closing};
use super::json;
use super::outside::{self, misplaced_diff};
use super::place::{open_fence, place, refused};
use crate::documents::git_patch::shape::diff_header;
use crate::documents::json_dialect::{JsonDialect, dialect_by_key};
use crate::documents::search_replace;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Json(JsonDialect),
    Envelope,
    Diff,
    /// A diff outside of all blocks, with prose around it.
    BareDiff,
    SearchReplace,
}

impl Kind {
    /// What edits of the kind are called.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Json(_) => "json",
            Self::Envelope => "'*** Begin Patch'",
            Self::Diff | Self::BareDiff => "patch",
            Self::SearchReplace => "SEARCH/REPLACE",
        }
    }
}

/// What a block holds; if that is no edit, why.
///
/// # Errors
/// It is nearly an edit, or one that would be passed over.
pub(super) fn of(block: &Block) -> Result<Result<(Kind, Block), String>, Failure> {
    let tag = block.tag.to_ascii_lowercase();
    if block.text.trim().is_empty() {
        return Ok(Err("it is empty".to_owned()));
    }
    let is_own = json::is_own_tag(&tag);
    let begins_as_json = block.text.trim_start().starts_with(['{', '[']);
    let has_header = || diff_header(&block.text).is_some();
    if json::is_tag(&tag) || (is_own || tag.is_empty()) && begins_as_json {
        if block.closing == Closing::Missing {
            return Err(open_fence(block));
        }
        let edit = if is_own { json::own(block.clone()).map(Ok) } else { json::edit(block) };
        return Ok(edit?.map(|(dialect, block)| (Kind::Json(dialect), block)));
    }
    let is_diff = matches!(tag.as_str(), "patch" | "diff" | "udiff");
    if is_diff || (is_own || tag.is_empty()) && has_header() {
        return Ok(diff(block, &tag)?.map(|()| (Kind::Diff, block.clone())));
    }
    if is_own {
        let message = format!("the {} is in no dialect that is understood", place(block));
        return Err(Failure::new(Reason::InvalidRequest, message)
            .detail(Detail::UnknownDialect)
            .hint("write a file bundle, a structured patch, a search patch, a line patch or a diff into the block"));
    }
    unread(block).map(Err)
}

/// Why a block is passed over whose tag is none of an edit.
///
/// # Errors
/// It holds an edit all the same.
fn unread(block: &Block) -> Result<String, Failure> {
    if let Some(line) = block.text.lines().position(search_replace::is_opening) {
        let line = block.text_line + line;
        return Err(Failure::new(
            Reason::InvalidRequest,
            format!("the {} has an indented SEARCH marker", place(block)),
        )
        .detail(Detail::Marker)
        .field(format!("line {line}"))
        .hint("indent neither the markers nor the fence around them"));
    }
    if let Some(dialect) = dialect_by_key(&block.text) {
        let message = format!("the {} holds a {dialect}; edits in JSON are read from blocks tagged json", place(block));
        return Err(refused(None, message, "write the opening fence as ```json, or leave the block out"));
    }
    if let Some(line) = outside::indented_envelope(&block.text) {
        return Err(outside::misplaced_envelope(block.text_line + line - 1, &format!("the {}", place(block))));
    }
    match diff_header(&block.text) {
        Some(line) => Err(misplaced_diff(block.text_line + line - 1, &format!("the {}", place(block)))),
        None => Ok("it is taken for an example".to_owned()),
    }
}

/// What a block holds that is tagged as a diff. One without any header only shows lines.
fn diff(block: &Block, tag: &str) -> Result<Result<(), String>, Failure> {
    let is_header = |line: &str| ["diff ", "--- ", "+++ ", "@@"].iter().any(|header| line.starts_with(header));
    match block.closing {
        _ if tag != "patch" && !block.text.lines().any(is_header) => Ok(Err("it has no header of a diff".to_owned())),
        Closing::Aligned | Closing::Surrounding => Ok(Ok(())),
        Closing::Missing => Err(open_fence(block)),
        Closing::Shifted => {
            let message = format!("the {} ends at an indented fence, which may be a line of the diff", place(block));
            Err(refused(None, message, "put the diff between longer fences: more backticks than any of its lines has"))
        }
    }
}
