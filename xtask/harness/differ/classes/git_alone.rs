//! Diffs that git alone applies.

use super::class::Class;
use crate::perturb::HEADER_CHANGED;

pub(super) const CLASSES: &[Class] = &[
    Class {
        name: "already applied",
        reason: "The hunk only adds lines, and its whole new side is already at its place. Git adds them once more.",
        is_it: |seen| seen.refuses(&["ALREADY_APPLIED"]),
    },
    Class {
        name: "several places",
        reason: "The old lines are not at the stated line, or would be again afterwards, and stand at several places. Git takes the nearest.",
        is_it: |seen| seen.refuses(&["TEXT_NOT_UNIQUE"]),
    },
    Class {
        name: "another version by its id",
        reason: "The `index` line names another content in full, or the empty one for a file with text. Git compares only for binary files.",
        is_it: |seen| {
            let states =
                |line: &[u8]| line.starts_with(b"index ") && line.len() > 80 || line.starts_with(b"index e69de29");
            seen.refuses(&["INDEX_MISMATCH"]) && seen.has_line(states)
        },
    },
    Class {
        name: "a name that is refused",
        reason: "The name has a quotation mark, a colon, a control character or a dot or blank at an end. Not every system allows it, and no review shows it.",
        is_it: |seen| seen.refuses(&["INVALID_PATH"]),
    },
    Class {
        name: "two readings of a name",
        reason: "The names can be read with and without the prefixes `a/` and `b/`, and the files that exist do not say which is meant. Git goes by `-p`.",
        is_it: |seen| seen.refuses(&["AMBIGUOUS_PATH.NAMES"]),
    },
    Class {
        name: "no context",
        reason: "The hunk has no line of context, so that its line number alone says where it goes; that can mean two places, or one where its old lines do not stand. Git looks for them elsewhere.",
        is_it: |seen| {
            seen.refuses(&["PATCH_UNSUPPORTED.NO_CONTEXT", "EXPECTED_MISMATCH.NO_CONTEXT"])
                || seen.refuses(&["EXPECTED_MISMATCH"]) && seen.has_hunk_without_context()
        },
    },
    Class {
        name: "a freed name for a file that is not renamed",
        reason: "The diff renames a file and makes another one under its old name, or deletes a file and renames another one to its name. Aptix lets renamed files alone take over each other's names.",
        is_it: |seen| seen.refuses(&["INVALID_REQUEST.DUPLICATE_PATH"]) && seen.has_freed_name(),
    },
    Class {
        name: "backslashes in a name that is taken",
        reason: "A name has backslashes for slashes, and there is a file of the name with slashes. Git makes a file with backslashes in its name.",
        is_it: |seen| {
            seen.refuses(&["FILE_EXISTS"])
                && seen.has_line(|line| line.starts_with(b"rename to ") && line.contains(&b'\\'))
        },
    },
    Class {
        name: "added lines for a missing file",
        reason: "A hunk without `diff --git` only adds lines, below a line of a file that is not there. Git makes a file of them.",
        is_it: |seen| {
            seen.refuses(&["FILE_MISSING"])
                && seen.has_hunk_without_context()
                && seen.has_line(|line| line.starts_with(b"--- "))
                && !seen.has_line(|line| line.starts_with(b"diff --git "))
        },
    },
    Class {
        name: "parts out of order",
        reason: "The diff has several parts of one file, and the same one twice, or one that creates, renames or copies a file that another changes: which comes first is not sure. Git goes by the order of the text, or by the files as they were.",
        is_it: |seen| seen.refuses(&["INVALID_REQUEST.DUPLICATE_PATH"]),
    },
    Class {
        name: "hunks out of order",
        reason: "A hunk goes above the one before it. Git applies them in any order, which says nothing sure about the line numbers.",
        is_it: |seen| seen.refuses(&["PATCH_MALFORMED.HUNK_ORDER"]),
    },
    Class {
        name: "binary",
        reason: "The file has NUL bytes, or the diff is of binary files. No one can review it.",
        is_it: |seen| seen.refuses(&["PATCH_UNSUPPORTED.BINARY", "NOT_TEXT"]),
    },
    Class {
        name: "another format",
        reason: "A line begins a hunk of a combined diff. Git ignores what follows it.",
        is_it: |seen| seen.refuses(&["PATCH_UNSUPPORTED.FORMAT"]) && seen.has_line(|line| line.starts_with(b"@@@ ")),
    },
    Class {
        name: "cut off",
        reason: "A section ends in the middle of its header, of a hunk or of a marker. Git ignores a header or marker that is not complete.",
        is_it: |seen| {
            let is_open = !seen.case.diff.ends_with(b"\n");
            seen.refuses(&["PATCH_TRUNCATED"]) || is_open && seen.refuses(&["EXPECTED_MISMATCH"])
        },
    },
    Class {
        name: "a damaged header",
        reason: "A line of the header is not as git writes it, or contradicts another one. Git ignores lines that it does not understand.",
        is_it: |seen| {
            // Another name shows prefixes, so that there is no such file, or another one.
            let has_other_name = seen.case.perturbed.contains(&HEADER_CHANGED);
            has_other_name && seen.refuses(&["FILE_MISSING", "EXPECTED_MISMATCH"])
                || seen.refuses(&[
                    "PATCH_MALFORMED.NAMES",
                    "PATCH_MALFORMED.MODE",
                    "PATCH_MALFORMED.QUOTE",
                    "PATCH_MALFORMED.HUNK_HEADER",
                    "PATCH_MALFORMED.EMPTY",
                    "PATCH_MALFORMED.GARBAGE",
                    "INVALID_REQUEST.NO_OP",
                ])
        },
    },
    Class {
        name: "lines below a hunk",
        reason: "More added lines follow than the hunk counts, and text after them: which of them belong to it is not sure. Git ignores them all.",
        is_it: |seen| seen.refuses(&["PATCH_MALFORMED.COUNTS"]),
    },
    Class {
        name: "a last line that is not the last",
        reason: "The diff says that an old line is the last one and has no newline, and in the file more follows it. Git compares the beginning of the line, and joins it with what follows or drops that.",
        is_it: |seen| {
            let has_marker = seen.has_line(|line| line.starts_with(b"\\ "));
            seen.refuses(&["EXPECTED_MISMATCH.LINE_ENDINGS"]) || seen.refuses(&["EXPECTED_MISMATCH"]) && has_marker
        },
    },
    Class {
        name: "a marker too many",
        reason: "`\\ No newline at end of file` follows no line that could be the last one. Git ignores it.",
        is_it: |seen| seen.refuses(&["PATCH_MALFORMED.END_OF_FILE"]),
    },
    Class {
        name: "suspect content",
        reason: "The new text looks like something that a program forgot to take away: a diff, a fence, an omission.",
        is_it: |seen| seen.refuses(&["SUSPECT_CONTENT"]),
    },
];
