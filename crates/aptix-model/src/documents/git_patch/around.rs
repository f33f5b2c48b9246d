//! The text above, between and below the files of a diff: mails, logs, command lines and prose. It is skipped, unless a line
//! of it may be a part of the diff that lost its place.

use super::header::not_a_header;
use super::letter::Letter;
use super::lines::{Fence, Lines, trim_end};
use super::malformed::GitPatchError;

/// What a text between two files of a diff says of the files below it.
#[derive(Default)]
pub(super) struct Around {
    /// The messages of the mails and commits that begin here.
    pub(super) letters: Vec<Letter>,
    /// How many files a diffstat announces.
    pub(super) announced: Option<usize>,
    /// Files that a comparison of directories found on one side only, and leaves out.
    pub(super) left_out: Vec<String>,
}

/// Reads down to the next file of the diff, or to the end.
pub(super) fn skip(lines: &mut Lines<'_>) -> Result<Around, GitPatchError> {
    let mut around = Around::default();
    let mut is_first = true;
    while let Some(line) = lines.peek() {
        if lines.is_at_file() {
            break;
        }
        let text = trim_end(line);
        if let Some(letter) = Letter::read(lines, is_first)? {
            around.letters.push(letter);
            lines.has_text = true;
            is_first = false;
            continue;
        }
        is_first &= text.trim_ascii().is_empty();
        refuse_lost(*lines)?;
        if let Some(files) = announced(text) {
            around.announced = Some(files);
        }
        if let Some(left_out) = left_out(text) {
            around.left_out.push(left_out);
        }
        lines.has_text |= !is_command(text);
        take_fence(lines);
        lines.skip();
        if text.starts_with(b"Index: ") && !is_file_below_rule(*lines) {
            return Err(GitPatchError::Truncated("an 'Index:' line names a file, and no lines of a diff follow"));
        }
    }
    Ok(around)
}

/// Opens or closes the fence around the diff.
fn take_fence(lines: &mut Lines<'_>) {
    if lines.is_at_closing_fence() {
        lines.fence = None;
    } else if lines.fence.is_none() {
        lines.fence = lines.peek().and_then(Fence::read);
    }
}

/// Whether a line is nothing that an author says: blank, the command that made the diff, or a name and the rule below it.
fn is_command(line: &[u8]) -> bool {
    line.iter().all(|byte| *byte == b'=' || byte.is_ascii_whitespace())
        || line.starts_with(b"diff -")
        || line.starts_with(b"Index: ")
}

/// Whether a file begins below the rule that Subversion draws under the name.
fn is_file_below_rule(mut lines: Lines<'_>) -> bool {
    while lines.peek().is_some_and(|line| line.iter().all(|byte| matches!(byte, b'=' | b'\r' | b'\n'))) {
        lines.skip();
    }
    lines.is_at_file()
}

/// Refuses a line that belongs to a diff, and is outside of one.
fn refuse_lost(lines: Lines<'_>) -> Result<(), GitPatchError> {
    let line = trim_end(lines.peek().unwrap_or_default());
    let names = |what| Err(GitPatchError::Names(what));
    let rest_of = |start: &str| line.strip_prefix(start.as_bytes()).filter(|rest| !rest.trim_ascii().is_empty());
    if is_of_other_format(lines) {
        return Err(not_a_header(lines));
    }
    if line.starts_with(b"@@") {
        return names("a hunk is outside of the diff of a file: text, or lines that are too many, are above it");
    }
    if rest_of("+++ ").is_some() {
        return names("a line '+++' has no line '---' above it");
    }
    if rest_of("--- ").is_some_and(|rest| !rest.ends_with(b"---")) {
        return names("a line '---' names a file, and no line '+++' follows");
    }
    if is_of_header(line) {
        return names("a line of a header is outside of one: the 'diff --git' line above it is missing");
    }
    Ok(())
}

/// Whether a line is one of a kind of diff that is not read.
fn is_of_other_format(mut lines: Lines<'_>) -> bool {
    let line = trim_end(lines.peek().unwrap_or_default());
    lines.skip();
    let next = lines.peek().unwrap_or_default();
    let starts = |start: &str| line.starts_with(start.as_bytes());
    starts("GIT binary patch")
        || (starts("Binary files ") && line.ends_with(b" differ"))
        || starts("Cannot display: file marked as a binary type")
        || starts("diff --c")
        || starts("@@@ -")
        || starts("Property changes on: ")
        || (starts("*** ") && next.starts_with(b"--- "))
        || (super::header::is_command_of_ed(line) && (next.starts_with(b"< ") || next.starts_with(b"> ")))
}

/// Whether a line is one between `diff --git` and `---`.
fn is_of_header(line: &[u8]) -> bool {
    let after = |start: &str| line.strip_prefix(start.as_bytes());
    let is_digit = |rest: &[u8]| rest.first().is_some_and(u8::is_ascii_digit);
    let is_path = |rest: &[u8]| rest.iter().any(|byte| matches!(byte, b'/' | b'.')) && !rest.contains(&b' ');
    let is_id = |rest: &[u8]| {
        let ids = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
        let is_hex = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'.';
        ids.windows(2).any(|pair| pair == b"..") && ids.iter().all(is_hex)
    };
    ["old mode ", "new mode ", "new file mode ", "deleted file mode ", "similarity index ", "dissimilarity index "]
        .iter()
        .filter_map(|start| after(start))
        .any(is_digit)
        || ["rename from ", "rename to ", "copy from ", "copy to "].iter().filter_map(|start| after(start)).any(is_path)
        || after("index ").is_some_and(is_id)
}

/// The number in the last line of a diffstat: ` 2 files changed, 3 insertions(+)`.
fn announced(line: &[u8]) -> Option<usize> {
    let text = core::str::from_utf8(line).ok()?.strip_prefix(' ')?;
    let (number, rest) = text.split_once(' ')?;
    let rest = rest.strip_prefix("files changed").or_else(|| rest.strip_prefix("file changed"))?;
    number.parse().ok().filter(|_| rest.is_empty() || rest.starts_with(','))
}

/// The file that `Only in directory: name` leaves out.
fn left_out(line: &[u8]) -> Option<String> {
    let text = core::str::from_utf8(line).ok()?;
    let (dir, name) = text.strip_prefix("Only in ")?.split_once(": ")?;
    (!dir.is_empty() && !name.is_empty()).then(|| format!("{}/{name}", dir.trim_end_matches('/')))
}
