//! Diffs that Aptix alone applies. Written as git writes them, git applies them too, to the same files.

use super::class::Class;
use crate::git::Theirs;
use crate::memory::File;
use crate::perturb::HEADER_CHANGED;

/// Written as git writes them, git makes the same lines of them.
pub(super) const SAME_LINES: &[Class] = &[
    Class {
        name: "other line ends",
        reason: "Lines are equal except for their ends, and removed and added lines end alike. The file's ends are kept; `LINE_ENDINGS_KEPT` warns.",
        is_it: |seen| seen.warns("LINE_ENDINGS_KEPT"),
    },
    Class {
        name: "a byte order mark that is not shown",
        reason: "The file begins with a byte order mark, and the diff does not show it. Aptix does not count the mark as part of the first line, and keeps it.",
        is_it: |seen| {
            const MARK: &[u8] = b"\xef\xbb\xbf";
            let Some(tree) = seen.our_tree() else { return false };
            // Under its name, or under a new one.
            let is_kept = |(path, before): (&String, &File)| {
                let is_it = |(name, after): (&String, &File)| {
                    let may_be = name == path && after != before || !seen.case.tree.contains_key(name);
                    may_be && after.bytes.starts_with(MARK)
                };
                before.bytes.starts_with(MARK) && tree.iter().any(is_it)
            };
            // Or an earlier part of the diff adds it.
            let is_added = || tree.values().any(|after| after.bytes.starts_with(MARK)) && seen.is_in_parts();
            seen.case.tree.iter().any(is_kept) || is_added()
        },
    },
];

/// Written as git writes them, git makes the same bytes of them.
pub(super) const SAME_BYTES: &[Class] = &[
    Class {
        name: "a diff with CRLF",
        reason: "The diff itself was converted to CRLF. Git takes the carriage returns for part of the names and modes.",
        is_it: |seen| {
            let kinds = ["lacks filename information", "invalid mode", "No such file", "inconsistent", "invalid path"];
            let is_header = |line: &[u8]| line.starts_with(b"diff --git ") || line.starts_with(b"+++ ");
            seen.has_line(|line| is_header(line) && line.ends_with(b"\r")) && seen.git_says(&kinds)
        },
    },
    Class {
        name: "an unterminated last line",
        reason: "The diff's last line has no newline, its hunk is complete by its counts, and the file has the line, or the new `index` id fits the result, of which `DIFF_UNTERMINATED` warns; or it repeats a name that occurs above, or says that an empty file is deleted. Git calls the patch corrupt.",
        is_it: |seen| {
            let kinds = ["corrupt patch", "patch with only garbage", "lacks filename information", "No valid patches"];
            !seen.case.diff.ends_with(b"\n") && seen.git_says(&kinds)
        },
    },
    Class {
        name: "blank lines around hunks",
        reason: "A blank line sets a hunk apart from its header or from the hunk above. Git takes it for the end of the file's section.",
        is_it: |seen| {
            seen.has_blank_line() && seen.git_says(&["patch fragment without header", "patch with only garbage"])
        },
    },
    Class {
        name: "a blank line without its blank",
        reason: "A context line that is empty lost its leading blank, and ends with CRLF. Git knows only the bare newline.",
        is_it: |seen| seen.has_blank_line() && seen.git_says(&["corrupt patch"]),
    },
    Class {
        name: "one mode twice",
        reason: "A section without hunks has the same mode in `old mode` and `new mode`. Aptix gives it to the file; git calls the section garbage.",
        is_it: |seen| {
            seen.has_line(|line| line.starts_with(b"old mode ")) && seen.git_says(&["patch with only garbage"])
        },
    },
    Class {
        name: "/dev/null without its header",
        reason: "The line `new file mode` or `deleted file mode` is missing, and a side is `/dev/null`, which says the same. Git looks for a file `dev/null`.",
        is_it: |seen| {
            seen.has_line(|line| line.ends_with(b" /dev/null")) && seen.git_says(&["No such file", "invalid path"])
        },
    },
    Class {
        name: "backslashes",
        reason: "A name has backslashes for slashes; `BACKSLASH` warns. Git takes them for part of the name.",
        is_it: |seen| {
            // Git names every file that it does not find, after others perhaps.
            let is_missing = matches!(seen.theirs, Theirs::Refused(message) if message.contains("No such file"));
            seen.warns("BACKSLASH")
                && (is_missing || seen.git_says(&["lacks filename information", "No such file", "inconsistent"]))
        },
    },
    Class {
        name: "prefixes in some sections",
        reason: "The names of one section have prefixes and those of another have none; each file is there under one name alone. `NO_PREFIX` warns. Git takes one `-p` for all.",
        is_it: |seen| {
            // Later parts of a file warn of nothing.
            let is_said = seen.warns("NO_PREFIX") && seen.git_says(&["No such file"]);
            seen.has_prefixed_section() && (is_said || seen.git_says(&["lacks filename information"]))
        },
    },
    Class {
        name: "a directory or a prefix",
        reason: "The names of all sections begin with `a/` or `b/` on both sides, and only the files behind it exist. Git takes it as a directory only with `-p`.",
        is_it: |seen| {
            let is_alike = |line: String| {
                let names = line.strip_prefix("diff --git ").map(|names| names.split_at(names.len() / 2));
                names.is_none_or(|(old, new)| old == new.trim_start() && old.starts_with(['a', 'b']))
            };
            seen.case.is_written("--no-prefix") && seen.headers().all(is_alike) && seen.git_says(&["No such file"])
        },
    },
    Class {
        name: "a new file without /dev/null",
        reason: "The file is not there, and the only hunk begins `@@ -0,0`. Git wants `new file mode` or `/dev/null`.",
        is_it: |seen| seen.has_line(|line| line.starts_with(b"@@ -0,0 +")) && seen.git_says(&["No such file"]),
    },
    Class {
        name: "two names of a plain diff",
        reason: "A diff without `diff --git` has two names, of which one is that of a file; `NAMES_DIFFER` warns. Git takes the shorter one, or the new one.",
        is_it: |seen| seen.warns("NAMES_DIFFER") && seen.git_says(&["No such file"]),
    },
    Class {
        name: "one name without its prefix",
        reason: "One of the names of a section lost its prefix, and the others say which file is meant.",
        is_it: |seen| {
            let is_changed = seen.case.perturbed.contains(&HEADER_CHANGED);
            seen.git_says(&["inconsistent"]) || is_changed && seen.git_says(&["No such file"])
        },
    },
    Class {
        name: "a name that the diff frees",
        reason: "A file takes over the name of one that the same diff, or an earlier part of it, renames or deletes. Git finds the name taken, or the other file gone.",
        is_it: |seen| {
            let says = |words: &str| matches!(seen.theirs, Theirs::Refused(message) if message.contains(words));
            says("has been renamed/deleted") || says("already exists in working directory")
        },
    },
    Class {
        name: "not at an edge of the file",
        reason: "The hunk has fewer lines of context on one side. Git then applies it at the top or at the end of the file only; Aptix at the stated line, or at the only place, of which `HUNK_OFFSET` warns.",
        is_it: |seen| seen.git_says(&["does not apply"]),
    },
];
