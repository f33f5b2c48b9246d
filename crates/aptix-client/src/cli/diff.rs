//! Diffs as people read them: what is a header is known by its place, never by how a line begins.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use aptix_model::failure::Visible;
use aptix_model::report::{FileReport, Tier};

/// How people are told which file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Paths {
    /// By the path in the one root there is.
    InRoot,
    /// By the root's name and the path in that root.
    WithRoot,
}

impl Paths {
    /// What says enough when there are so many roots.
    pub(crate) const fn among(roots: usize) -> Self {
        if roots > 1 { Self::WithRoot } else { Self::InRoot }
    }

    /// A file's name, from its path in its root and its lower-case key.
    pub(crate) fn name<'a>(self, path: &'a str, doc_path: &str) -> Cow<'a, str> {
        match (self, doc_path.split_once('/')) {
            (Self::WithRoot, Some((root, _))) => Cow::Owned(format!("{root}/{path}")),
            _ => Cow::Borrowed(path),
        }
    }
}

/// Adds a diff.
pub(crate) fn show_diff(text: &mut String, diff: &str) {
    show_diff_under::<&str>(text, diff, &[]);
}

/// Adds a diff, each file's part under its name; the names are in the order of the parts.
pub(super) fn show_diff_under<S: AsRef<str>>(text: &mut String, diff: &str, names: &[S]) {
    let mut names = names.iter();
    let mut place = Place::Header;
    // Only a line feed ends a line of a diff; a carriage return before it is something to see.
    for line in diff.split_terminator('\n') {
        if !place.is_in_hunk()
            && line.starts_with("diff --git ")
            && let Some(name) = names.next()
        {
            let _ = writeln!(text, "{}:", Visible(name.as_ref()));
        }
        let is_content = place.is_in_hunk();
        let style = place.step(line);
        let _ = if is_content {
            writeln!(text, "{style}{}{style:#}", Content(line))
        } else {
            writeln!(text, "{style}{}{style:#}", ShownLine(line))
        };
    }
}

/// Adds what there is to know about a file's change besides the diff.
pub(crate) fn add_notes(text: &mut String, file: &FileReport) {
    for warning in &file.warnings {
        let _ = writeln!(text, "  warning: {}: {}", warning.code, Visible(&warning.message));
    }
    for (index, change) in file.changes.iter().enumerate() {
        let differs = match change.tier {
            Tier::Exact | Tier::Eol => continue,
            Tier::Trailing => "in white space at the ends of lines",
            Tier::Indent => "in its indentation",
            Tier::BlankEdges => "in blank lines above or below",
        };
        let _ = writeln!(text, "  change {index}: its old text differs from the file's {differs}");
    }
    for normalization in &file.normalized {
        let _ = writeln!(text, "  normalized: {}", normalization.word());
    }
}

/// Where in a diff the next line stands.
enum Place {
    /// Before a file's first hunk.
    Header,
    /// In a hunk, with so many lines of the old and of the new text to come.
    Hunk { old: usize, new: usize },
}

impl Place {
    const fn is_in_hunk(&self) -> bool {
        matches!(self, Self::Hunk { old, new } if *old > 0 || *new > 0)
    }

    /// Passes over a line, and tells how it is shown.
    fn step(&mut self, line: &str) -> Style {
        if let Self::Hunk { old, new } = self
            && (*old > 0 || *new > 0 || line.starts_with('\\'))
        {
            let (style, is_old, is_new) = match line.as_bytes().first() {
                Some(b'+') => (AnsiColor::Green.on_default(), false, true),
                Some(b'-') => (AnsiColor::Red.on_default(), true, false),
                Some(b'\\') => (Style::new(), false, false),
                _ => (Style::new(), true, true),
            };
            *old = old.saturating_sub(usize::from(is_old));
            *new = new.saturating_sub(usize::from(is_new));
            return style;
        }
        match hunk(line) {
            Some((old, new)) => {
                *self = Self::Hunk { old, new };
                AnsiColor::Cyan.on_default()
            }
            None => {
                *self = Self::Header;
                Style::new().bold()
            }
        }
    }
}

/// How many lines of the old and of the new text follow `@@ -1,2 +3,4 @@`.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let count = |range: &str| range.split_once(',').map_or(Ok(1), |(_, count)| count.parse()).ok();
    Some((count(old)?, count(new)?))
}

/// A line of untrusted text: control and invisible characters are shown, tabs are left to the terminal.
pub(super) struct ShownLine<'a>(pub(super) &'a str);

impl std::fmt::Display for ShownLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, part) in self.0.split('\t').enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { "\t" }, Visible(part))?;
        }
        Ok(())
    }
}

/// A line of a file in a diff, so that what is not the same never looks the same: blanks at the end of a line that comes or
/// goes are escaped, and so is a backslash that would look like the beginning of an escape.
struct Content<'a>(&'a str);

impl std::fmt::Display for Content<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sign, text) = self.0.split_at_checked(1).unwrap_or((self.0, ""));
        let kept = if matches!(sign, "+" | "-") { text.trim_end_matches([' ', '\t']) } else { text };
        f.write_str(sign)?;
        for (index, part) in kept.split("\\u{").enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { "\\u{5c}u{" }, ShownLine(part))?;
        }
        let blanks = text.strip_prefix(kept).unwrap_or_default();
        blanks.chars().try_for_each(|blank| write!(f, "{}", blank.escape_unicode()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_content_is_never_shown_as_a_header() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n---- a\n+++ b/y\n+diff\n+@@ -9 +9 @@\n kept\n\\ No newline\n\
                    @@ -9 +10,0 @@\n--- a/z\n--- a/w\n+++ b/w\n@@ -0,0 +1 @@\n+new\n";
        let mut place = Place::Header;
        let shown: Vec<_> = diff.lines().map(|line| (line, place.step(line))).collect();
        let [bold, cyan] = [Style::new().bold(), AnsiColor::Cyan.on_default()];
        let [green, red] = [AnsiColor::Green.on_default(), AnsiColor::Red.on_default()];
        let styles = [
            bold,
            bold,
            cyan,
            red,
            green,
            green,
            green,
            Style::new(),
            Style::new(),
            cyan,
            red,
            bold,
            bold,
            cyan,
            green,
        ];
        assert_eq!(shown.iter().map(|(_, style)| *style).collect::<Vec<_>>(), styles, "{shown:?}");
    }

    #[test]
    fn what_is_not_the_same_never_looks_the_same() {
        let shown = |line: &str| Content(line).to_string();
        let cases = [
            ("+x  ", "+x\\u{20}\\u{20}"),
            ("-x\t", "-x\\u{9}"),
            (" x ", " x "),
            ("+", "+"),
            ("+ ", "+\\u{20}"),
            ("", ""),
            ("+\tx \r", "+\tx \\u{d}"),
            ("+a\\u{d}", "+a\\u{5c}u{d}"),
            ("+a\\ud \\n", "+a\\ud \\n"),
            ("+a\u{a0}b\u{2003}c\u{2800}d\u{3000}e\u{fffc}", "+a\\u{a0}b\\u{2003}c\\u{2800}d\\u{3000}e\\u{fffc}"),
        ];
        for (line, expected) in cases {
            assert_eq!(shown(line), expected, "{line:?}");
        }
    }

    #[test]
    fn each_part_stands_under_its_name() {
        let diff = "diff --git a/x b/x\nnew file mode 100644\ndiff --git a/y b/y\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+1\n\\ No newline\n";
        let mut text = String::new();
        show_diff_under(&mut text, diff, &["one/x", "two/y", "no more"]);
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(plain.starts_with("one/x:\ndiff ") && plain.contains("\ntwo/y:\ndiff "), "{plain}");
        assert!(!plain.contains("no more"), "{plain}");
    }
}
