//! Edits that show lines around what they change, between the wire and the model: git patches and context patches.

use super::field::{each, each_below, missing, note, unexpected, unknown_enum, with_id};
use super::v1;
use crate::batch::{Chunk, ChunkLine, ContextPatch, GitKind, GitPatch, Hunk, HunkLine, LineKind};
use crate::failure::Failure;
use crate::id::ChangeId;

pub(super) fn git_patch(file: usize, patch: v1::GitPatch, failures: &mut Vec<Failure>) -> Result<GitPatch, Failure> {
    git_part((file, 0), &format!("files[{file}].gitPatch"), patch, failures)
}

/// Reads one part of a file, whose hunks follow so many others.
fn git_part(
    (file, above): (usize, usize),
    field: &str,
    patch: v1::GitPatch,
    failures: &mut Vec<Failure>,
) -> Result<GitPatch, Failure> {
    let raw = (patch.kind, patch.kind());
    let hunks = each_below((file, above), patch.hunks, failures, hunk);
    let kind = git_kind(field, raw, patch.rename_to, patch.copy_from);
    Ok(GitPatch {
        kind: kind?,
        executable: patch.executable,
        base_id: patch.base_id,
        result_id: patch.result_id,
        is_unprefixed: patch.is_unprefixed,
        hunks,
    })
}

pub(super) fn git_series(file: usize, series: v1::GitSeries, failures: &mut Vec<Failure>) -> Vec<GitPatch> {
    let mut above = 0;
    let mut parts = Vec::with_capacity(series.parts.len());
    for (index, part) in series.parts.into_iter().enumerate() {
        let count = part.hunks.len();
        let field = format!("files[{file}].gitSeries.parts[{index}]");
        let part = git_part((file, above), &field, part, failures);
        parts.extend(part.map_err(|failure| note(failures, failure)));
        above += count;
    }
    parts
}

pub(super) fn git_series_message(parts: Vec<GitPatch>, ids: &[ChangeId]) -> v1::GitSeries {
    let mut ids = ids;
    let parts = parts.into_iter().map(|part| {
        let (own, rest) = ids.split_at_checked(part.hunks.len()).unwrap_or((ids, &[]));
        ids = rest;
        git_patch_message(part, own)
    });
    v1::GitSeries { parts: parts.collect() }
}

fn git_kind(
    field: &str,
    (number, kind): (i32, v1::GitKind),
    rename_to: String,
    copy_from: String,
) -> Result<GitKind, Failure> {
    if !rename_to.is_empty() && kind != v1::GitKind::Rename {
        return Err(unexpected(&format!("{field}.renameTo"), "with GIT_KIND_RENAME"));
    }
    if !copy_from.is_empty() && kind != v1::GitKind::Copy {
        return Err(unexpected(&format!("{field}.copyFrom"), "with GIT_KIND_COPY"));
    }
    match kind {
        v1::GitKind::Modify => Ok(GitKind::Modify),
        v1::GitKind::Create => Ok(GitKind::Create),
        v1::GitKind::Delete => Ok(GitKind::Delete),
        v1::GitKind::Rename if rename_to.is_empty() => Err(missing(&format!("{field}.renameTo"), "the new path")),
        v1::GitKind::Rename => Ok(GitKind::Rename { to: rename_to }),
        v1::GitKind::Copy if copy_from.is_empty() => Err(missing(&format!("{field}.copyFrom"), "the file copied")),
        v1::GitKind::Copy => Ok(GitKind::Copy { from: copy_from }),
        v1::GitKind::Unspecified => Err(unknown_enum(&format!("{field}.kind"), number)),
    }
}

fn hunk(field: &str, hunk: v1::Hunk) -> Result<Hunk, Failure> {
    let (mut lines, mut surplus) = (Vec::new(), Vec::new());
    for (index, line) in hunk.lines.into_iter().enumerate() {
        match KINDS.into_iter().find(|kind| numbers(*kind).1 == line.kind) {
            Some(kind) => surplus.push(HunkLine { kind, bytes: line.content.into() }),
            None if surplus.is_empty() => {
                lines.push(HunkLine { kind: line_kind(field, index, line.kind)?, bytes: line.content.into() });
            }
            None => return Err(unexpected(&format!("{field}.lines[{index}]"), "above the surplus lines")),
        }
    }
    let numbers = [hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count];
    if hunk.is_unnumbered && (!surplus.is_empty() || numbers != [0; 4]) {
        return Err(unexpected(&format!("{field}.isUnnumbered"), "without numbers and surplus lines"));
    }
    Ok(Hunk {
        old_start: hunk.old_start,
        old_count: hunk.old_count,
        new_start: hunk.new_start,
        new_count: hunk.new_count,
        is_unnumbered: hunk.is_unnumbered,
        lines,
        surplus,
    })
}

pub(super) fn git_patch_message(patch: GitPatch, ids: &[ChangeId]) -> v1::GitPatch {
    let (mut rename_to, mut copy_from) = (String::new(), String::new());
    let kind = match patch.kind {
        GitKind::Modify => v1::GitKind::Modify,
        GitKind::Create => v1::GitKind::Create,
        GitKind::Delete => v1::GitKind::Delete,
        GitKind::Rename { to } => {
            rename_to = to;
            v1::GitKind::Rename
        }
        GitKind::Copy { from } => {
            copy_from = from;
            v1::GitKind::Copy
        }
    };
    v1::GitPatch {
        kind: kind.into(),
        rename_to,
        copy_from,
        executable: patch.executable,
        base_id: patch.base_id,
        result_id: patch.result_id,
        is_unprefixed: patch.is_unprefixed,
        hunks: with_id(patch.hunks, ids, hunk_message),
    }
}

fn hunk_message(hunk: Hunk, change_id: String) -> v1::Hunk {
    let lines = hunk.lines.into_iter().map(|line| (numbers(line.kind).0, line.bytes));
    let surplus = hunk.surplus.into_iter().map(|line| (numbers(line.kind).1, line.bytes));
    v1::Hunk {
        change_id,
        old_start: hunk.old_start,
        old_count: hunk.old_count,
        new_start: hunk.new_start,
        new_count: hunk.new_count,
        is_unnumbered: hunk.is_unnumbered,
        lines: lines.chain(surplus).map(|(kind, bytes)| v1::HunkLine { kind, content: bytes.into() }).collect(),
    }
}

pub(super) fn context_patch(file: usize, patch: v1::ContextPatch, failures: &mut Vec<Failure>) -> ContextPatch {
    ContextPatch { move_to: patch.move_to, chunks: each(file, patch.chunks, failures, chunk) }
}

fn chunk(field: &str, chunk: v1::Chunk) -> Result<Chunk, Failure> {
    let lines = chunk
        .lines
        .into_iter()
        .enumerate()
        .map(|(index, line)| Ok(ChunkLine { kind: line_kind(field, index, line.kind)?, text: line.text }));
    Ok(Chunk { anchors: chunk.anchors, lines: lines.collect::<Result<_, Failure>>()?, is_at_end: chunk.is_at_end })
}

pub(super) fn chunk_message(chunk: Chunk, change_id: String) -> v1::Chunk {
    let lines = chunk.lines.into_iter();
    v1::Chunk {
        change_id,
        anchors: chunk.anchors,
        lines: lines.map(|line| v1::ChunkLine { kind: numbers(line.kind).0, text: line.text }).collect(),
        is_at_end: chunk.is_at_end,
    }
}

const KINDS: [LineKind; 3] = [LineKind::Context, LineKind::Removed, LineKind::Added];

/// The numbers of a kind: of a line that the counts of its hunk include, and of a surplus line.
fn numbers(kind: LineKind) -> (i32, i32) {
    let (counted, surplus) = match kind {
        LineKind::Context => (v1::LineKind::Context, v1::LineKind::SurplusContext),
        LineKind::Removed => (v1::LineKind::Removed, v1::LineKind::SurplusRemoved),
        LineKind::Added => (v1::LineKind::Added, v1::LineKind::SurplusAdded),
    };
    (counted.into(), surplus.into())
}

/// The kind of a line that is no surplus; chunks have no counts, so that they have no surplus.
fn line_kind(field: &str, index: usize, number: i32) -> Result<LineKind, Failure> {
    let known = KINDS.into_iter().find(|kind| numbers(*kind).0 == number);
    known.ok_or_else(|| unknown_enum(&format!("{field}.lines[{index}].kind"), number))
}
