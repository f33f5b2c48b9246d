//! Diffs that both apply, to different trees.

use super::class::Class;
use crate::memory::{File, Tree};

/// Written as git writes them, both make the same bytes of them.
pub(super) const SAME_BYTES: &[Class] = &[
    Class {
        name: "/dev/null is no file",
        reason: "The line `deleted file mode` is missing above `+++ /dev/null`. Git leaves an empty file `dev/null`, Aptix deletes the file.",
        is_it: |seen| seen.trees().is_some_and(|(_, theirs)| theirs.contains_key("dev/null")),
    },
    Class {
        name: "backslashes in a new name",
        reason: "A name has backslashes for slashes. Git makes a file with backslashes in its name.",
        is_it: |seen| seen.trees().is_some_and(|(_, theirs)| theirs.keys().any(|path| path.contains('\\'))),
    },
    Class {
        name: "sections with and without prefixes",
        reason: "The names of one section have prefixes and those of another have none. Aptix reads each as it is written; `NO_PREFIX` warns. Git takes one `-p` for all.",
        is_it: |seen| {
            seen.warns("NO_PREFIX") && seen.has_prefixed_section() && seen.trees().is_some_and(have_same_contents)
        },
    },
    Class {
        name: "a new name without its prefix",
        reason: "The name below `+++` lost its prefix, and the diff has CRLF. Git does not read the name in `diff --git` then, and strips a directory.",
        is_it: |seen| seen.warns("CRLF_DIFF") && seen.trees().is_some_and(have_same_contents),
    },
    Class {
        name: "more added lines than counted",
        reason: "A hunk has more added lines than its header counts, up to the next header. Aptix adds them all; `HUNK_COUNTS` warns. Git ignores those below the counted ones.",
        is_it: |seen| seen.warns("HUNK_COUNTS"),
    },
    Class {
        name: "one file in several parts",
        reason: "One part of a diff changes a file, and a later one deletes, renames or copies it. Aptix applies each part to the result of the one before; git deletes first and writes afterwards, and moves the file as it was.",
        is_it: |seen| seen.is_in_parts(),
    },
    Class {
        name: "no context, the stated line",
        reason: "The hunk has no line of context, and its old lines stand at several places. Aptix takes the line of the old file that the header states, git the one of the new file, or the nearest.",
        is_it: |seen| seen.has_hunk_without_context(),
    },
    Class {
        name: "a short marker",
        reason: "The marker `\\ No newline at end of file` is cut short, and its line is not. Aptix takes every line with a backslash below a hunk's line for the marker, git only one with at least 12 bytes.",
        is_it: |seen| seen.has_line(|line| line.starts_with(b"\\ ") && line.len() < 12),
    },
    Class {
        name: "a last line in the middle",
        reason: "The diff says that an old line is the last one and has no newline. Aptix takes it at the end of the file; git at the stated line, and joins it with what follows.",
        is_it: |seen| seen.has_line(|line| line.starts_with(b"\\ ")),
    },
];

/// Written as git writes them, both make the same lines of them.
pub(super) const SAME_LINES: &[Class] = &[
    Class {
        name: "at a byte order mark",
        reason: "A hunk without context is about the top of a file with a byte order mark, and does not show the mark. Git adds lines above it, and looks for removed ones elsewhere; Aptix does both below it.",
        is_it: |seen| {
            let is_marked = |file: &File| file.bytes.starts_with(b"\xef\xbb\xbf");
            seen.has_hunk_without_context() && seen.our_tree().is_some_and(|ours| ours.values().any(is_marked))
        },
    },
    Class {
        name: "a last newline in a context line",
        reason: "The diff says of a line of context that it is the last one and has no newline, and in the file it has one. Git takes it away, Aptix keeps it; `LINE_ENDINGS_KEPT` warns.",
        is_it: |seen| {
            seen.warns("LINE_ENDINGS_KEPT")
                && seen.unlike().is_some_and(|files| files.iter().all(|(ours, theirs)| without_end(ours) == *theirs))
        },
    },
    Class {
        name: "other line ends at the stated line",
        reason: "The old lines of a hunk stand at the stated line with other ends, and with theirs elsewhere, or a last line has no newline in the diff and one in the file. Aptix takes the stated line and keeps its ends; `LINE_ENDINGS_KEPT` warns. Git takes the other place, or the diff's ends.",
        is_it: |seen| seen.warns("LINE_ENDINGS_KEPT"),
    },
];

/// Whether two trees have the same files, under whatever names.
fn have_same_contents((ours, theirs): (&Tree, &Tree)) -> bool {
    let contents = |tree: &Tree| {
        let mut contents: Vec<Vec<u8>> = tree.values().map(|file| file.bytes.clone()).collect();
        contents.sort();
        contents
    };
    contents(ours) == contents(theirs)
}

/// Bytes without their last terminator.
fn without_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}
