//! A file's change in the words of each dialect, or why the dialect has none for it.

pub(crate) mod reach;
mod text;

use anyhow::Result;
use aptix_engine::digest::sha256;
use aptix_model::documents::Dialect;
use aptix_model::path::{WorkspacePath, lowercase};
use aptix_model::protection;
use serde_json::{Value, json};

use crate::history::FileChange;
use crate::lines::{BOM, Line, beyond_lines, changes, lines};
use crate::memory::File;

use reach::{Reach, Unsaid, utf8};
use text::{Block, Edit};

/// One file's part of a document.
#[derive(Debug)]
pub(crate) enum Part {
    Json(Value),
    Text(Vec<u8>),
}

/// Says one file's change in a dialect.
pub(crate) fn part(dialect: Dialect, file: &FileChange, reach: Reach) -> Result<Part, Unsaid> {
    if WorkspacePath::new(&file.path).is_err() {
        return Err("the path is none that is accepted");
    }
    if protection::of(&file.path).is_some() {
        return Err("the path is protected");
    }
    if !matches!(dialect, Dialect::FileBundle | Dialect::CreateFile) && brings_foreign_text(file) {
        return Err("text beyond ASCII comes into a file that is not UTF-8");
    }
    match dialect {
        Dialect::GitPatch => git_patch(file, reach),
        // An answer is text, and says it as a diff.
        Dialect::Chat => match git_patch(file, reach)? {
            Part::Text(patch) if utf8(&patch).is_err() => Err("not UTF-8 where it changes"),
            part => Ok(part),
        },
        Dialect::FileBundle => bundle(file),
        Dialect::CreateFile => create_file(file),
        _ => {
            keeps_mode(file)?;
            let (before, after) = (file.before.as_ref(), file.after.as_ref());
            match (before, after) {
                (Some(before), Some(after)) => edited(dialect, &file.path, (&before.bytes, &after.bytes), reach),
                (None, Some(after)) => created(dialect, &file.path, after),
                (_, None) => deleted(dialect, &file.path),
            }
        }
    }
}

/// Whether lines beyond ASCII come into a file that is not UTF-8.
fn brings_foreign_text(file: &FileChange) -> bool {
    let (Some(before), Some(after)) = (&file.before, &file.after) else { return false };
    if std::str::from_utf8(&before.bytes).is_ok() {
        return false;
    }
    let (before, after) = (lines(&before.bytes), lines(&after.bytes));
    let changes = changes(&before, &after);
    changes.iter().any(|change| after[change.new.clone()].iter().any(|line| !line.whole.is_ascii()))
}

fn keeps_mode(file: &FileChange) -> Result<(), Unsaid> {
    let (before, after) = (file.before.as_ref(), file.after.as_ref());
    let was = before.is_some_and(|file| file.is_executable);
    if after.is_some_and(|file| file.is_executable != was) { Err("the executable bit changes") } else { Ok(()) }
}

/// A file's whole new content, as text.
fn content(file: &FileChange) -> Result<&str, Unsaid> {
    keeps_mode(file)?;
    let after = file.after.as_ref().ok_or("a file goes")?;
    utf8(&after.bytes)
}

fn bundle(file: &FileChange) -> Result<Part, Unsaid> {
    if file.after.is_none() {
        return Ok(Part::Json(json!({ "path": file.path, "operation": "delete" })));
    }
    if let (Some(before), Some(after)) = (&file.before, &file.after)
        && !after.bytes.is_empty()
    {
        let count = |bytes: &[u8], part: &[u8]| memchr::memmem::find_iter(bytes, part).count();
        let returns = count(&before.bytes, b"\r\n");
        let is_crlf = returns > 0 && returns == count(&before.bytes, b"\n");
        if is_crlf && count(&after.bytes, b"\n") > 0 && count(&after.bytes, b"\r\n") == 0 {
            return Err("line terminators change");
        }
        if before.bytes.starts_with(BOM) && !after.bytes.starts_with(BOM) {
            return Err("the byte order mark changes");
        }
    }
    let operation = if file.before.is_some() { "replace" } else { "create" };
    Ok(Part::Json(json!({ "path": file.path, "operation": operation, "content": content(file)? })))
}

fn create_file(file: &FileChange) -> Result<Part, Unsaid> {
    let content = content(file)?;
    if content.starts_with('\u{feff}') || content.contains("\r\n") {
        return Err("created files have neither byte order mark nor CRLF");
    }
    Ok(Part::Json(json!({ "path": file.path, "content": content, "overwrite": file.before.is_some() })))
}

fn git_patch(file: &FileChange, reach: Reach) -> Result<Part, Unsaid> {
    let empty = File::default();
    let (before, after) = (file.before.as_ref(), file.after.as_ref());
    let (old, new) = (&before.unwrap_or(&empty).bytes, &after.unwrap_or(&empty).bytes);
    if [old, new].iter().any(|bytes| memchr::memchr(0, bytes).is_some()) {
        return Err("NUL bytes");
    }
    text::unified(&file.path, before, after, reach).map(Part::Text)
}

fn created(dialect: Dialect, path: &str, after: &File) -> Result<Part, Unsaid> {
    let content = utf8(&after.bytes)?;
    match dialect {
        Dialect::SearchPatch => {
            Ok(Part::Json(json!({ "path": path, "patches": [{ "operation": "overwrite", "newText": content }] })))
        }
        Dialect::StrReplace => Ok(Part::Json(json!({ "command": "create", "path": path, "file_text": content }))),
        Dialect::CodexPatch | Dialect::SearchReplace => text::created(dialect, path, content).map(Part::Text),
        _ => Err("a file comes"),
    }
}

fn deleted(dialect: Dialect, path: &str) -> Result<Part, Unsaid> {
    match dialect {
        Dialect::CodexPatch => Ok(Part::Text(format!("*** Delete File: {path}\n").into_bytes())),
        _ => Err("a file goes"),
    }
}

fn edited(dialect: Dialect, path: &str, (old, new): (&[u8], &[u8]), reach: Reach) -> Result<Part, Unsaid> {
    if memchr::memchr(0, old).is_some() || memchr::memchr(0, new).is_some() {
        return Err("NUL bytes");
    }
    let (before, after) = (lines(old), lines(new));
    let changes = changes(&before, &after);
    if changes.is_empty() {
        return Err("nothing but the mode changes");
    }
    if let Some(reason) = beyond_lines(&before, &after, &changes) {
        return Err(reason);
    }
    let edit = Edit { path, old, before: &before, after: &after, changes: &changes, reach };
    match dialect {
        Dialect::LinePatch => line_patch(edit).map(Part::Json),
        Dialect::SearchPatch => {
            if before.is_empty() {
                return Ok(Part::Json(
                    json!({ "path": path, "patches": [{ "operation": "overwrite", "newText": utf8(new)? }] }),
                ));
            }
            let blocks = text::in_original(edit)?;
            let patches = blocks.iter().map(|block| {
                Ok(json!({ "operation": "replace", "oldText": utf8(&block.old)?, "newText": utf8(&block.new)? }))
            });
            Ok(Part::Json(json!({ "path": path, "patches": patches.collect::<Result<Vec<_>, Unsaid>>()? })))
        }
        Dialect::StructuredPatch => {
            if before.is_empty() {
                return Err("the file is empty");
            }
            let steps = text::one_by_one(edit)?
                .into_iter()
                .map(|Block { old, new }| Ok(json!({ "find": utf8(&old)?, "replace": utf8(&new)? })));
            Ok(Part::Json(json!({ "path": path, "replacements": steps.collect::<Result<Vec<_>, Unsaid>>()? })))
        }
        Dialect::StrReplace => {
            if before.is_empty() {
                return Ok(Part::Json(
                    json!({ "command": "insert", "path": path, "insert_line": 0, "insert_text": utf8(new)? }),
                ));
            }
            let blocks = text::in_original(Edit { changes: &[text::as_one(&changes)], ..edit })?;
            let [block] = blocks.as_slice() else { return Err("no single place") };
            Ok(Part::Json(json!({
                "command": "str_replace", "path": path, "old_str": utf8(&block.old)?, "new_str": utf8(&block.new)?,
            })))
        }
        Dialect::SearchReplace => text::search_replace(edit).map(Part::Text),
        Dialect::CodexPatch => text::codex(edit).map(Part::Text),
        _ => Err("no dialect of files"),
    }
}

/// The texts of lines, without terminators and byte order mark.
fn texts<'a>(lines: &[Line<'a>]) -> Result<Vec<&'a str>, Unsaid> {
    lines.iter().map(|line| utf8(line.text().strip_prefix(BOM).unwrap_or(line.text()))).collect()
}

fn line_patch(edit: Edit<'_>) -> Result<Value, Unsaid> {
    let Edit { path, old, before, after, changes, .. } = edit;
    let listed = changes.iter().map(|change| {
        let (old, new) = (texts(&before[change.old.clone()])?, texts(&after[change.new.clone()])?);
        let (start, end) = (change.old.start + 1, change.old.end);
        Ok(match (old.is_empty(), new.is_empty()) {
            (true, _) => json!({ "operation": "insert", "afterLine": start - 1, "newLines": new }),
            (false, true) => {
                json!({ "operation": "delete", "startLine": start, "endLine": end, "expectedOriginalLines": old })
            }
            (false, false) => json!({
                "operation": "replace", "startLine": start, "endLine": end,
                "expectedOriginalLines": old, "newLines": new,
            }),
        })
    });
    let listed = listed.collect::<Result<Vec<_>, Unsaid>>()?;
    let doc_path = format!("repo/{}", lowercase(path));
    Ok(json!({ "docPath": doc_path, "originalSha256": sha256(old).to_string(), "changes": listed }))
}

/// Puts the parts of a step together: into one document where the dialect can name several files.
pub(crate) fn documents(dialect: Dialect, parts: Vec<Part>) -> Result<Vec<Vec<u8>>> {
    let mut values = Vec::new();
    let mut text = Vec::new();
    for part in parts {
        match part {
            Part::Json(value) => values.push(value),
            Part::Text(part) => text.extend(part),
        }
    }
    let whole = match dialect {
        Dialect::LinePatch | Dialect::FileBundle => json!({ "files": values }),
        Dialect::StructuredPatch => json!({ "root": ".", "patches": values }),
        Dialect::CreateFile | Dialect::SearchPatch | Dialect::StrReplace => {
            return Ok(values.iter().map(|value| value.to_string().into_bytes()).collect());
        }
        Dialect::CodexPatch => {
            return Ok(vec![[b"*** Begin Patch\n", text.as_slice(), b"*** End Patch\n"].concat()]);
        }
        Dialect::GitPatch | Dialect::SearchReplace => return Ok(vec![text]),
        Dialect::Chat => {
            // A fence is longer than any run of backticks in the block.
            let longest = text.split(|byte| *byte != b'`').map(<[u8]>::len).max().unwrap_or_default();
            let fence = "`".repeat(longest.max(2) + 1);
            let head = format!("This is the change.\n\n{fence}patch\n");
            return Ok(vec![[head.as_bytes(), text.as_slice(), fence.as_bytes(), b"\n\nThat is all.\n"].concat()]);
        }
    };
    Ok(vec![whole.to_string().into_bytes()])
}
