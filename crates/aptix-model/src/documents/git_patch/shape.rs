//! How a diff is known among other texts: by its first lines, or by the mail or the log around it.

use super::letter;

/// What is below the first line of a git diff.
const HEADS: [&str; 6] = ["--- ", "index ", "old mode ", "new file mode ", "deleted file mode ", "similarity index "];

/// Whether a text begins as a diff does, or as a message around one.
pub(in crate::documents) fn is_diff(text: &str) -> bool {
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    first.starts_with("diff -")
        || first.starts_with("@@ -")
        || (first.starts_with("--- ") && second.starts_with("+++ "))
        || (first.starts_with("*** ") && second.starts_with("--- "))
        || (letter::begins(first) && diff_header(text).is_some())
}

/// The first line of the first header of a diff, which nothing but a diff has.
pub(in crate::documents) fn diff_header(text: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let header = |at: &[&str]| match at {
        [old, new, hunk, ..] if old.starts_with("--- ") => new.starts_with("+++ ") && hunk.starts_with("@@"),
        [names, what, ..] => names.starts_with("diff --git ") && HEADS.into_iter().any(|head| what.starts_with(head)),
        _ => false,
    };
    (0..lines.len()).find(|start| header(lines.split_at(*start).1)).map(|index| index + 1)
}
