//! What a file patch asks for, in the manner of a diff, before anybody has seen the file.

use std::fmt::Write as _;

use aptix_model::batch::{Content, FileEdit, FilePatch, Operation};

/// Shows a file patch: the lines it expects and the lines it brings, under the line numbers it states.
pub(super) fn described(patch: &FilePatch) -> String {
    let path = patch.target.as_str();
    let mut text = format!("--- {path}\n+++ {path}\n");
    match &patch.edit {
        FileEdit::CreateFile(create) => match &create.content {
            Content::Text(content) => {
                let _ = writeln!(text, "@@ -0,0 +1,{} @@", content.lines().count());
                add(&mut text, '+', content.lines());
            }
            Content::Blob(blob) => {
                let _ = writeln!(text, "the {} bytes with the SHA-256 {}", blob.size_bytes, blob.sha256);
            }
        },
        FileEdit::LinePatch(lines) => lines.changes.iter().for_each(|change| describe(&mut text, &change.operation)),
        _ => {}
    }
    text
}

fn describe(text: &mut String, operation: &Operation) {
    let (start, head, old, new): (_, _, &[String], &[String]) = match operation {
        Operation::Insert { after_line, new_lines } => {
            (*after_line, format!("insert after line {after_line}"), &[], new_lines)
        }
        Operation::Replace { start_line, end_line, expected_original_lines, new_lines } => {
            let head = format!("replace lines {start_line} to {end_line}");
            (*start_line, head, expected_original_lines, new_lines)
        }
        Operation::Delete { start_line, end_line, expected_original_lines } => {
            (*start_line, format!("delete lines {start_line} to {end_line}"), expected_original_lines, &[])
        }
    };
    // Where the new lines will stand depends on the other changes: both sides are told by the lines of the original.
    let _ = writeln!(text, "@@ -{start},{} +{start},{} @@ {head}", old.len(), new.len());
    add(text, '-', old.iter().map(String::as_str));
    add(text, '+', new.iter().map(String::as_str));
}

fn add<'a>(text: &mut String, sign: char, lines: impl Iterator<Item = &'a str>) {
    for line in lines {
        let _ = writeln!(text, "{sign}{line}");
    }
}
