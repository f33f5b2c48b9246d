//! The differences between Aptix and git that are meant: who applies the diff, when, and why the other does not. The page
//! `docs/reference/git-patch.md` has a row for each.

use anyhow::{Result, ensure};

use crate::family::Case;
use crate::git::Theirs;
use crate::memory::{File, Tree};
use crate::ours::Ours;
use crate::perturb::Perturbation;

/// Who applies a diff of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    Git,
    Aptix,
    /// Both, to different trees.
    Both,
}

/// A difference that is meant.
pub(crate) struct Class {
    /// As the page calls it.
    pub(crate) name: &'static str,
    by: By,
    /// Why, as the page says it.
    reason: &'static str,
    is_it: fn(&Seen<'_>) -> bool,
}

/// A case with what both sides did.
pub(crate) struct Seen<'a> {
    pub(crate) case: &'a Case,
    pub(crate) ours: &'a Ours,
    pub(crate) theirs: &'a Theirs,
    /// What git does without its rule for the edges of a file, where it refuses the place of a hunk that Aptix applies.
    pub(crate) unanchored: Option<&'a Theirs>,
}

impl Seen<'_> {
    fn by(&self) -> Option<By> {
        match (self.ours, self.theirs) {
            (Ours::Applied { .. }, Theirs::Applied(_)) => Some(By::Both),
            (Ours::Applied { .. }, Theirs::Refused(_)) => Some(By::Aptix),
            (Ours::Refused(_), Theirs::Applied(_)) => Some(By::Git),
            (Ours::Refused(_), Theirs::Refused(_)) => None,
        }
    }

    /// Whether Aptix refuses with one of these reasons, or of these reasons and details.
    fn refuses(&self, codes: &[&str]) -> bool {
        let Ours::Refused(failure) = self.ours else { return false };
        let code = Ours::code(failure);
        codes
            .iter()
            .any(|wanted| code == *wanted || code.strip_prefix(*wanted).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Whether Aptix warns of something.
    fn warns(&self, code: &str) -> bool {
        matches!(self.ours, Ours::Applied { warnings, .. } if warnings.iter().any(|warning| warning == code))
    }

    /// Whether git says one of these things.
    fn git_says(&self, kinds: &[&str]) -> bool {
        matches!(self.theirs, Theirs::Refused(message) if kinds.contains(&kind(message).as_str()))
    }

    fn has_line(&self, is_it: impl Fn(&[u8]) -> bool) -> bool {
        self.case.diff.split(|byte| *byte == b'\n').any(is_it)
    }

    /// Whether a hunk has no line of context.
    fn has_hunk_without_context(&self) -> bool {
        let mut hunks = self.case.diff.split(|byte| *byte == b'\n').fold(Vec::new(), |mut hunks: Vec<bool>, line| {
            match line.first() {
                Some(b'@') if line.starts_with(b"@@ -") => hunks.push(false),
                Some(b' ') => hunks.last_mut().into_iter().for_each(|has_context| *has_context = true),
                _ => {}
            }
            hunks
        });
        hunks.retain(|has_context| !has_context);
        !hunks.is_empty()
    }

    /// The files that are not alike in the trees of both, ours first.
    fn unlike(&self) -> Option<Vec<(&[u8], &[u8])>> {
        let (ours, theirs) = self.trees()?;
        let is_same = ours.len() == theirs.len()
            && ours
                .iter()
                .zip(theirs)
                .all(|((path, ours), (other, theirs))| path == other && ours.is_executable == theirs.is_executable);
        let pairs = ours.values().zip(theirs.values()).filter(|(ours, theirs)| ours != theirs);
        is_same.then(|| pairs.map(|(ours, theirs)| (ours.bytes.as_slice(), theirs.bytes.as_slice())).collect())
    }

    /// The lines that begin the sections, and those that name files that move.
    fn headers(&self) -> impl Iterator<Item = String> {
        const NAMING: [&[u8]; 5] = [b"diff --git ", b"rename from ", b"rename to ", b"copy from ", b"copy to "];
        let lines = self.case.diff.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| NAMING.iter().any(|start| line.starts_with(start)));
        lines.map(|line| String::from_utf8_lossy(line).replace('\\', "/"))
    }

    fn has_crlf_header(&self) -> bool {
        self.has_line(|line| line.starts_with(b"diff --git ") && line.ends_with(b"\r"))
    }

    fn has_blank_line(&self) -> bool {
        self.has_line(|line| line.trim_ascii().is_empty() && !line.starts_with(b" "))
    }

    /// The trees of both.
    fn trees(&self) -> Option<(&Tree, &Tree)> {
        match (self.ours, self.theirs) {
            (Ours::Applied { tree, .. }, Theirs::Applied(theirs)) => Some((tree, theirs)),
            _ => None,
        }
    }
}

const CLASSES: &[Class] = &[
    Class {
        name: "already applied",
        by: By::Git,
        reason: "The hunk only adds lines, and its whole new side stands where it would go. Git adds them once more.",
        is_it: |seen| seen.refuses(&["ALREADY_APPLIED"]),
    },
    Class {
        name: "several places",
        by: By::Git,
        reason: "The old lines are not at the stated line, or would be again afterwards, and stand at several places. Git takes the nearest.",
        is_it: |seen| seen.refuses(&["TEXT_NOT_UNIQUE"]),
    },
    Class {
        name: "another version by its id",
        by: By::Git,
        reason: "The `index` line names another content in full, or the empty one for a file with text. Git compares only for binary files.",
        is_it: |seen| {
            let states =
                |line: &[u8]| line.starts_with(b"index ") && line.len() > 80 || line.starts_with(b"index e69de29");
            seen.refuses(&["INDEX_MISMATCH"]) && seen.has_line(states)
        },
    },
    Class {
        name: "a name that is refused",
        by: By::Git,
        reason: "The name has a quotation mark, a colon, a control character or a dot or blank at an end. Not every system allows it, and no review shows it.",
        is_it: |seen| seen.refuses(&["INVALID_PATH"]),
    },
    Class {
        name: "two readings of a name",
        by: By::Git,
        reason: "The names can be read with and without the prefixes `a/` and `b/`, and the files that exist do not say which is meant. Git goes by `-p`.",
        is_it: |seen| seen.refuses(&["AMBIGUOUS_PATH.NAMES"]),
    },
    Class {
        name: "no context",
        by: By::Git,
        reason: "The hunk has no line of context, so that its line number alone says where it goes; that can mean two places, or one where its old lines do not stand. Git looks for them elsewhere.",
        is_it: |seen| {
            seen.refuses(&["PATCH_UNSUPPORTED.NO_CONTEXT", "EXPECTED_MISMATCH.NO_CONTEXT"])
                || seen.refuses(&["EXPECTED_MISMATCH"]) && seen.has_hunk_without_context()
        },
    },
    Class {
        name: "parts out of order",
        by: By::Git,
        reason: "The diff has several parts of one file, and the same one twice, or one that creates, renames or copies a file that another changes: which comes first is not sure. Git goes by the order of the text, or by the files as they were.",
        is_it: |seen| seen.refuses(&["INVALID_REQUEST.DUPLICATE_PATH"]),
    },
    Class {
        name: "hunks out of order",
        by: By::Git,
        reason: "A hunk goes above the one before it. Git applies them in any order, which says nothing sure about the line numbers.",
        is_it: |seen| seen.refuses(&["PATCH_MALFORMED.HUNK_ORDER"]),
    },
    Class {
        name: "binary",
        by: By::Git,
        reason: "The file has NUL bytes, or the diff is of binary files. Nobody can review it.",
        is_it: |seen| seen.refuses(&["PATCH_UNSUPPORTED.BINARY", "NOT_TEXT"]),
    },
    Class {
        name: "cut off",
        by: By::Git,
        reason: "A section ends in the middle of its header, of a hunk or of a marker. Git ignores a header or marker that is not complete.",
        is_it: |seen| {
            let is_open = !seen.case.diff.ends_with(b"\n");
            seen.refuses(&["PATCH_TRUNCATED"]) || is_open && seen.refuses(&["EXPECTED_MISMATCH"])
        },
    },
    Class {
        name: "a damaged header",
        by: By::Git,
        reason: "A line of the header is not as git writes it, or contradicts another one. Git ignores lines that it does not understand.",
        is_it: |seen| {
            // Another name shows prefixes, so that there is no such file.
            let has_other_name = seen.case.perturbed.contains(&Perturbation::HeaderChanged);
            has_other_name && seen.refuses(&["FILE_MISSING"])
                || seen.refuses(&[
                    "PATCH_MALFORMED.NAMES",
                    "PATCH_MALFORMED.MODE",
                    "PATCH_MALFORMED.QUOTE",
                    "PATCH_MALFORMED.HUNK_HEADER",
                    "PATCH_MALFORMED.EMPTY",
                    "PATCH_MALFORMED.GARBAGE",
                ])
        },
    },
    Class {
        name: "lines below a hunk",
        by: By::Git,
        reason: "More added lines follow than the hunk counts, and text after them: which of them belong to it is not sure. Git ignores them all.",
        is_it: |seen| seen.refuses(&["PATCH_MALFORMED.COUNTS"]),
    },
    Class {
        name: "a last line that is not the last",
        by: By::Git,
        reason: "The diff says that an old line is the last one and has no newline, and in the file more follows it. Git compares the beginning of the line, and joins it with what follows or drops that.",
        is_it: |seen| {
            let has_marker = seen.has_line(|line| line.starts_with(b"\\ "));
            seen.refuses(&["EXPECTED_MISMATCH.LINE_ENDINGS"]) || seen.refuses(&["EXPECTED_MISMATCH"]) && has_marker
        },
    },
    Class {
        name: "a marker too many",
        by: By::Git,
        reason: "`\\ No newline at end of file` stands below no line that could be the last one. Git ignores it.",
        is_it: |seen| seen.refuses(&["PATCH_MALFORMED.END_OF_FILE"]),
    },
    Class {
        name: "suspect content",
        by: By::Git,
        reason: "The new text looks like something that a program forgot to take away: a diff, a fence, an omission.",
        is_it: |seen| seen.refuses(&["SUSPECT_CONTENT"]),
    },
    Class {
        name: "other line ends",
        by: By::Aptix,
        reason: "Lines are equal except for their ends, and removed and added lines end alike. The file's ends are kept; `LINE_ENDINGS_KEPT` warns.",
        is_it: |seen| seen.warns("LINE_ENDINGS_KEPT") && seen.git_says(&["does not apply"]),
    },
    Class {
        name: "not at an edge of the file",
        by: By::Aptix,
        reason: "The hunk has fewer lines of context on one side. Git then applies it at the top or at the end of the file only; Aptix at the stated line, or at the only place, of which `HUNK_OFFSET` warns.",
        is_it: |seen| {
            let Ours::Applied { tree, .. } = seen.ours else { return false };
            // Git does not look for every place that Aptix finds, and holds parts of one file against each other. At the
            // stated line it has to agree, or the tree is the one that the diff was made of.
            let is_elsewhere =
                seen.warns("HUNK_OFFSET") || ["mail", "series"].iter().any(|way| seen.case.is_written(way));
            let is_known = is_elsewhere || seen.case.truth.as_ref() == Some(tree);
            seen.git_says(&["does not apply"]) && is_known
                || matches!(seen.unanchored, Some(Theirs::Applied(theirs)) if theirs == tree)
        },
    },
    Class {
        name: "a byte order mark that is not shown",
        by: By::Aptix,
        reason: "The file begins with a byte order mark, and the diff does not show it. Aptix does not count the mark as part of the first line, and keeps it.",
        is_it: |seen| {
            const MARK: &[u8] = b"\xef\xbb\xbf";
            let Ours::Applied { tree, .. } = seen.ours else { return false };
            // Under its name, or under a new one.
            let is_kept = |(path, before): (&String, &File)| {
                let is_it = |(name, after): (&String, &File)| {
                    let may_be = name == path && after != before || !seen.case.tree.contains_key(name);
                    may_be && after.bytes.starts_with(MARK)
                };
                before.bytes.starts_with(MARK) && tree.iter().any(is_it)
            };
            seen.git_says(&["does not apply"]) && seen.case.tree.iter().any(is_kept)
        },
    },
    Class {
        name: "a diff with CRLF",
        by: By::Aptix,
        reason: "The diff itself was converted to CRLF. Git takes the carriage returns for part of the names and modes.",
        is_it: |seen| {
            seen.has_crlf_header()
                && seen.git_says(&["lacks filename information", "invalid mode", "No such file", "inconsistent"])
        },
    },
    Class {
        name: "an unterminated last line",
        by: By::Aptix,
        reason: "The diff's last line has no newline, its hunk is complete by its counts, and the file has the line, or the new `index` id fits the result, of which `DIFF_UNTERMINATED` warns; or it repeats a name that stands above. Git calls the patch corrupt.",
        is_it: |seen| {
            !seen.case.diff.ends_with(b"\n")
                && seen.git_says(&["corrupt patch", "patch with only garbage", "lacks filename information"])
        },
    },
    Class {
        name: "blank lines around hunks",
        by: By::Aptix,
        reason: "A blank line sets a hunk apart from its header or from the hunk above. Git takes it for the end of the file's section.",
        is_it: |seen| {
            seen.has_blank_line() && seen.git_says(&["patch fragment without header", "patch with only garbage"])
        },
    },
    Class {
        name: "a blank line without its blank",
        by: By::Aptix,
        reason: "A context line that is empty lost its leading blank, and ends with CRLF. Git knows only the bare newline.",
        is_it: |seen| seen.has_blank_line() && seen.git_says(&["corrupt patch"]),
    },
    Class {
        name: "/dev/null without its header",
        by: By::Aptix,
        reason: "The line `new file mode` or `deleted file mode` is missing, and a side is `/dev/null`, which says the same. Git looks for a file `dev/null`.",
        is_it: |seen| {
            seen.has_line(|line| line.ends_with(b" /dev/null")) && seen.git_says(&["No such file", "invalid path"])
        },
    },
    Class {
        name: "backslashes",
        by: By::Aptix,
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
        by: By::Aptix,
        reason: "The names of one section have prefixes and those of another have none; each file is there under one name alone. `NO_PREFIX` warns. Git takes one `-p` for all.",
        is_it: |seen| {
            let is_prefixed = |line: &[u8]| line.starts_with(b"diff --git a/") || line.starts_with(b"diff --git \"a/");
            seen.warns("NO_PREFIX")
                && seen.has_line(is_prefixed)
                && seen.git_says(&["No such file", "lacks filename information"])
        },
    },
    Class {
        name: "a new file without /dev/null",
        by: By::Aptix,
        reason: "The file is not there, and the only hunk is `@@ -0,0 +1,n @@`. Git wants `new file mode` or `/dev/null`.",
        is_it: |seen| seen.has_line(|line| line.starts_with(b"@@ -0,0 +1")) && seen.git_says(&["No such file"]),
    },
    Class {
        name: "one name without its prefix",
        by: By::Aptix,
        reason: "One of the names of a section lost its prefix, and the others say which file is meant.",
        is_it: |seen| seen.git_says(&["inconsistent"]),
    },
    Class {
        name: "a name that the diff frees",
        by: By::Aptix,
        reason: "A file takes over the name of one that the same diff, or an earlier part of it, renames or deletes. Git finds the name taken, or the other file gone.",
        is_it: |seen| {
            let says = |words: &str| matches!(seen.theirs, Theirs::Refused(message) if message.contains(words));
            says("has been renamed/deleted") || says("already exists in working directory")
        },
    },
    Class {
        name: "/dev/null is no file",
        by: By::Both,
        reason: "The line `deleted file mode` is missing above `+++ /dev/null`. Git leaves an empty file `dev/null`, Aptix deletes the file.",
        is_it: |seen| {
            seen.trees().is_some_and(|(ours, theirs)| {
                let others = |(path, _): &(&String, _)| path.as_str() != "dev/null";
                theirs.contains_key("dev/null") && theirs.iter().filter(others).eq(ours.iter())
            })
        },
    },
    Class {
        name: "a last newline in a context line",
        by: By::Both,
        reason: "The diff says of a line of context that it is the last one and has no newline, and in the file it has one. Git takes it away, Aptix keeps it; `LINE_ENDINGS_KEPT` warns.",
        is_it: |seen| {
            seen.warns("LINE_ENDINGS_KEPT")
                && seen.unlike().is_some_and(|files| files.iter().all(|(ours, theirs)| without_end(ours) == *theirs))
        },
    },
    Class {
        name: "no context, the stated line",
        by: By::Both,
        reason: "The hunk has no line of context, and its old lines stand at several places. Aptix takes the line of the old file that the header states, git the one of the new file, or the nearest.",
        is_it: |seen| {
            let letters = |bytes: &[u8]| {
                let mut letters: Vec<u8> = bytes.iter().copied().filter(|byte| !b"\r\n".contains(byte)).collect();
                letters.sort_unstable();
                letters
            };
            let are_moved = |files: Vec<(&[u8], &[u8])>| files.iter().all(|(one, two)| letters(one) == letters(two));
            seen.has_hunk_without_context() && seen.unlike().is_some_and(are_moved)
        },
    },
    Class {
        name: "sections with and without prefixes",
        by: By::Both,
        reason: "The names of one section have prefixes and those of another have none. Aptix reads each as it is written; `NO_PREFIX` warns. Git takes one `-p` for all.",
        is_it: |seen| {
            let is_prefixed = |line: &[u8]| line.starts_with(b"diff --git a/") || line.starts_with(b"diff --git \"a/");
            let contents = |tree: &Tree| {
                let mut contents: Vec<Vec<u8>> = tree.values().map(|file| file.bytes.clone()).collect();
                contents.sort();
                contents
            };
            let are_moved = |(ours, theirs): (&Tree, &Tree)| contents(ours) == contents(theirs);
            seen.warns("NO_PREFIX") && seen.has_line(is_prefixed) && seen.trees().is_some_and(are_moved)
        },
    },
    Class {
        name: "other line ends at the stated line",
        by: By::Both,
        reason: "The old lines of a hunk stand at the stated line with other ends, and with theirs elsewhere, or a last line has no newline in the diff and one in the file. Aptix takes the stated line and keeps its ends; `LINE_ENDINGS_KEPT` warns. Git takes the other place, or the diff's ends.",
        is_it: |seen| {
            let have_same_lines =
                |(ours, theirs): &(&[u8], &[u8])| lines_but_for_ends(ours) == lines_but_for_ends(theirs);
            let is_stated =
                |files: Vec<(&[u8], &[u8])>| seen.has_hunk_without_context() || files.iter().all(have_same_lines);
            seen.warns("LINE_ENDINGS_KEPT") && seen.unlike().is_some_and(is_stated)
        },
    },
    Class {
        name: "one file in several parts",
        by: By::Both,
        reason: "One part of a diff changes a file, and a later one deletes, renames or copies it. Aptix applies each part to the result of the one before; git deletes first and writes afterwards, and moves the file as it was.",
        is_it: |seen| {
            let headers: Vec<String> = seen.headers().collect();
            seen.trees().is_some_and(|(ours, theirs)| {
                let mut unlike = ours.keys().chain(theirs.keys()).filter(|path| ours.get(*path) != theirs.get(*path));
                // Git quotes other names.
                let is_twice = |path: &String| {
                    !path.is_ascii() || headers.iter().filter(|line| line.contains(path.as_str())).count() > 1
                };
                ["mail", "series"].iter().any(|kind| seen.case.is_written(kind)) && unlike.all(is_twice)
            })
        },
    },
    Class {
        name: "more added lines than counted",
        by: By::Both,
        reason: "A hunk has more added lines than its header counts, up to the next header. Aptix adds them all; `HUNK_COUNTS` warns. Git ignores those below the counted ones.",
        is_it: |seen| {
            seen.warns("HUNK_COUNTS")
                && seen.unlike().is_some_and(|files| files.iter().all(|(ours, theirs)| has_lines_of(ours, theirs)))
        },
    },
    Class {
        name: "backslashes in a new name",
        by: By::Both,
        reason: "A name has backslashes for slashes. Git makes a file with backslashes in its name.",
        is_it: |seen| seen.trees().is_some_and(|(_, theirs)| theirs.keys().any(|path| path.contains('\\'))),
    },
    Class {
        name: "above a byte order mark",
        by: By::Both,
        reason: "A hunk without context adds lines at the top of a file with a byte order mark. Git puts them above the mark, Aptix below it.",
        is_it: |seen| {
            const MARK: &[u8] = b"\xef\xbb\xbf";
            let is_moved = |(ours, theirs): &(&[u8], &[u8])| {
                let at = theirs.windows(3).position(|bytes| bytes == MARK);
                ours.strip_prefix(MARK)
                    .zip(at)
                    .is_some_and(|(ours, at)| ours == [&theirs[..at], &theirs[at + 3..]].concat())
            };
            seen.has_hunk_without_context() && seen.unlike().is_some_and(|files| files.iter().all(is_moved))
        },
    },
];

/// Bytes without their last terminator.
fn without_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// The lines of some bytes, without their terminators.
fn lines_but_for_ends(bytes: &[u8]) -> Vec<&[u8]> {
    without_end(bytes).split(|byte| *byte == b'\n').map(without_end).collect()
}

/// Whether some bytes have all lines of others, in their order.
fn has_lines_of(bytes: &[u8], others: &[u8]) -> bool {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    others.split_inclusive(|byte| *byte == b'\n').all(|other| lines.any(|line| line == other))
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Class> {
    CLASSES.iter()
}

/// The class of a difference.
pub(crate) fn of(seen: &Seen<'_>) -> Option<&'static Class> {
    let by = seen.by()?;
    CLASSES.iter().find(|class| class.by == by && (class.is_it)(seen))
}

/// Holds the table of the page against the classes.
pub(crate) fn check_page() -> Result<()> {
    const PAGE: &str = include_str!("../../../docs/reference/git-patch.md");
    let rows: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| ") && line.contains(" applies it")).collect();
    let row = |class: &Class| {
        let by = match class.by {
            By::Git => "git alone applies it",
            By::Aptix => "Aptix alone applies it",
            By::Both => "each applies it in its own way",
        };
        format!("| {} | {by} | {} |", class.name, class.reason)
    };
    let expected: Vec<String> = CLASSES.iter().map(row).collect();
    for row in &expected {
        ensure!(rows.contains(&row.as_str()), "docs/reference/git-patch.md has no row\n{row}");
    }
    for row in rows {
        ensure!(expected.iter().any(|known| known == row), "docs/reference/git-patch.md has a row of no class\n{row}");
    }
    Ok(())
}

/// What git says, without names and numbers.
pub(crate) fn kind(message: &str) -> String {
    const KINDS: [&str; 20] = [
        "patch with only garbage",
        "No valid patches",
        "corrupt patch",
        "patch fragment without header",
        "does not apply",
        "No such file",
        "already exists in working directory",
        "does not exist in index",
        "lacks filename information",
        "inconsistent",
        "removal patch leaves file contents",
        "depends on old contents",
        "cannot apply binary patch",
        "unrecognized input",
        "git diff header",
        "invalid mode",
        "wrong type",
        "has type",
        "invalid path",
        "unable to",
    ];
    let known = KINDS.iter().find(|kind| message.contains(**kind));
    let first = || message.lines().find(|line| line.starts_with("error")).unwrap_or(message).to_owned();
    known.map_or_else(first, |kind| (*kind).to_owned())
}
