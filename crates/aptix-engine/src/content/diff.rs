//! Texts that are a diff and nothing else, by the form of each line; counts and names are not looked at.

use super::scan::lines;

/// What a line between the names of a file and its hunks begins with, in a diff as git or another program writes it.
const HEADERS: [&[u8]; 16] = [
    b"index ",
    b"old mode ",
    b"new mode ",
    b"deleted file mode ",
    b"new file mode ",
    b"similarity index ",
    b"dissimilarity index ",
    b"rename from ",
    b"rename to ",
    b"copy from ",
    b"copy to ",
    b"Binary files ",
    b"Index: ",
    b"===========",
    b"diff ",
    b"Only in ",
];

/// The offset of the first line, if every line of a text belongs to a diff or to a patch between `*** Begin Patch` and
/// `*** End Patch`.
pub(super) fn is_diff(text: &[u8]) -> Option<usize> {
    let (offset, first) = lines(text).find(|(_, line)| !line.trim_ascii().is_empty())?;
    let rest = || lines(text).skip_while(|(at, _)| *at < offset).map(|(_, line)| line);
    let fits = if first.trim_ascii_end() == b"*** Begin Patch" { is_codex(rest()) } else { is_unified(rest()) };
    fits.then_some(offset)
}

fn is_codex<'t>(mut lines: impl Iterator<Item = &'t [u8]>) -> bool {
    lines.all(|line| {
        matches!(line.first(), None | Some(b' ' | b'+' | b'-')) || line.starts_with(b"*** ") || line.starts_with(b"@@")
    })
}

fn is_unified<'t>(lines: impl Iterator<Item = &'t [u8]>) -> bool {
    let mut lines = lines.peekable();
    let (mut in_hunk, mut is_diff) = (false, false);
    while let Some(line) = lines.next() {
        let names = line.starts_with(b"--- ") && lines.peek().is_some_and(|next| next.starts_with(b"+++ "));
        if names {
            lines.next();
            (in_hunk, is_diff) = (false, true);
        } else if is_hunk_header(line) || line.starts_with(b"diff --git ") {
            in_hunk = line.starts_with(b"@@");
            is_diff = true;
        } else if in_hunk && matches!(line.first(), None | Some(b' ' | b'+' | b'-' | b'\\')) {
            continue;
        } else if !(line.is_empty() || HEADERS.iter().any(|head| line.starts_with(head))) {
            return false;
        } else if !line.is_empty() {
            in_hunk = false;
        }
    }
    is_diff
}

/// Whether a line is `@@ -1,2 +3,4 @@` with any numbers, the second of each pair optional, and any text behind.
fn is_hunk_header(line: &[u8]) -> bool {
    let span = |line: &'_ [u8]| {
        let count = line.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b',').count();
        (count > 0).then_some(count)
    };
    let Some(old) = line.strip_prefix(b"@@ -") else { return false };
    let Some(new) = span(old).and_then(|count| old.get(count..)?.strip_prefix(b" +")) else { return false };
    span(new).and_then(|count| new.get(count..)).is_some_and(|rest| rest.starts_with(b" @@"))
}
