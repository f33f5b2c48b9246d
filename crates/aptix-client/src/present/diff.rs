//! Diffs as people read them: a header is detected by its place, never by how a line begins.

use std::collections::HashMap;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use aptix_model::failure::Visible;
use aptix_model::report::{FileReport, Tier};

use super::untrusted::Untrusted;

/// A line of a diff as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DiffLine {
    pub(crate) style: Style,
    /// With its sign where it is one of a file; tabs are left as they are.
    pub(crate) text: String,
    pub(crate) kind: LineKind,
}

/// Whose line of a diff it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LineKind {
    /// Not of a file: a header, or a remark about a line.
    Header,
    /// Of the file before and after.
    Kept,
    Added,
    Removed,
}

/// Splits a diff into the lines that are shown.
pub(crate) fn diff_lines(diff: &[u8]) -> Vec<DiffLine> {
    let mut place = Place::Header;
    // Only a line feed ends a line of a diff; a carriage return before it is something to see.
    let lines = diff.strip_suffix(b"\n").unwrap_or(diff).split(|byte| *byte == b'\n');
    let lines = lines.filter(|_| !diff.is_empty()).map(|line| {
        let (style, kind) = place.step(line);
        (line, style, kind)
    });
    let lines: Vec<_> = lines.collect();
    let mut shown = Vec::with_capacity(lines.len());
    for run in lines.chunk_by(|(.., one), (.., other)| is_change(*one) && is_change(*other)) {
        let blanks = Blanks::of(run);
        shown.extend(run.iter().map(|&(line, style, kind)| {
            let text = match kind {
                LineKind::Header => ShownLine(&Untrusted(line).to_string()).to_string(),
                _ => content(line, kind, blanks.are_shown(line, kind)),
            };
            DiffLine { style, text, kind }
        }));
    }
    shown
}

/// A line of a file as a diff shows it that does not change it.
pub(crate) fn kept_line(line: &[u8]) -> DiffLine {
    DiffLine { style: Style::new(), text: format!(" {}", Untrusted(line)), kind: LineKind::Kept }
}

const fn is_change(kind: LineKind) -> bool {
    matches!(kind, LineKind::Added | LineKind::Removed)
}

/// Adds a diff.
pub(crate) fn show_diff(text: &mut String, diff: &[u8]) {
    for DiffLine { style, text: line, .. } in diff_lines(diff) {
        let _ = writeln!(text, "{style}{line}{style:#}");
    }
}

/// Adds what there is to know about a file's change besides the diff.
pub(crate) fn add_notes(text: &mut String, file: &FileReport) {
    for warning in &file.warnings {
        let _ = writeln!(text, "  warning: {}: {}", Visible(&warning.code), Visible(&warning.message));
    }
    for (index, change) in file.changes.iter().enumerate() {
        let differs = match change.tier {
            Tier::Exact | Tier::Eol => continue,
            Tier::Trailing => "in white space at the ends of lines",
            Tier::Indent => "in its indentation",
            Tier::BlankEdges => "in blank lines above or below",
        };
        let _ = writeln!(text, "  change {}: its old text differs from the file's {differs}", index + 1);
    }
    for normalization in &file.normalized {
        let _ = writeln!(text, "  normalized: {}", normalization.word());
    }
}

/// Where in a diff the next line is.
enum Place {
    /// Before a file's first hunk.
    Header,
    /// In a hunk, with so many lines of the old and of the new text to come.
    Hunk { old: usize, new: usize },
}

impl Place {
    /// Passes over a line, and returns how it is shown and whose it is.
    fn step(&mut self, line: &[u8]) -> (Style, LineKind) {
        if let Self::Hunk { old, new } = self
            && (*old > 0 || *new > 0 || line.starts_with(b"\\"))
        {
            let (style, kind) = match line.first() {
                Some(b'+') => (AnsiColor::Green.on_default(), LineKind::Added),
                Some(b'-') => (AnsiColor::Red.on_default(), LineKind::Removed),
                Some(b'\\') => (Style::new(), LineKind::Header),
                _ => (Style::new(), LineKind::Kept),
            };
            *old = old.saturating_sub(usize::from(matches!(kind, LineKind::Removed | LineKind::Kept)));
            *new = new.saturating_sub(usize::from(matches!(kind, LineKind::Added | LineKind::Kept)));
            return (style, kind);
        }
        match std::str::from_utf8(line).ok().and_then(hunk) {
            Some((old, new)) => {
                *self = Self::Hunk { old, new };
                (AnsiColor::Cyan.on_default(), LineKind::Header)
            }
            None => {
                *self = Self::Header;
                (Style::new().bold(), LineKind::Header)
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
pub(crate) struct ShownLine<'a>(pub(crate) &'a str);

impl std::fmt::Display for ShownLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<_> = self.0.split('\t').map(|part| Visible(part).to_string()).collect();
        f.write_str(&parts.join("\t"))
    }
}

/// Shows a line of a file in a diff, so that what is not the same never looks the same: blanks at the end of a line that is
/// added or removed are escaped, and with `has_blanks_shown` all its tabs.
fn content(line: &[u8], kind: LineKind, has_blanks_shown: bool) -> String {
    let (sign, text) = line.split_at_checked(1).unwrap_or((line, &[]));
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let end = text.iter().rposition(|byte| !is_blank(byte)).map_or(0, |last| last + 1);
    let (kept, blanks) = text.split_at(if is_change(kind) { end } else { text.len() });
    let mut shown = Untrusted(kept).to_string();
    if has_blanks_shown {
        shown = shown.replace('\t', "\\u{9}");
    }
    shown.extend(blanks.iter().flat_map(|blank| char::from(*blank).escape_unicode()));
    format!("{}{shown}", Untrusted(sign))
}

/// Which lines of a run of removed and added ones differ from one of the other side in blanks alone.
struct Blanks {
    removed: HashMap<Vec<u8>, Vec<u8>>,
    added: HashMap<Vec<u8>, Vec<u8>>,
}

impl Blanks {
    fn of(run: &[(&[u8], Style, LineKind)]) -> Self {
        let of = |wanted| {
            let lines = run.iter().filter(|(.., kind)| *kind == wanted);
            lines.map(|(line, ..)| (squeezed(line), text_of(line).to_vec())).collect()
        };
        Self { removed: of(LineKind::Removed), added: of(LineKind::Added) }
    }

    fn are_shown(&self, line: &[u8], kind: LineKind) -> bool {
        let others = match kind {
            LineKind::Added => &self.removed,
            LineKind::Removed => &self.added,
            LineKind::Header | LineKind::Kept => return false,
        };
        others.get(&squeezed(line)).is_some_and(|other| other != text_of(line))
    }
}

fn text_of(line: &[u8]) -> &[u8] {
    line.get(1..).unwrap_or_default()
}

/// A line without its sign and its blanks.
fn squeezed(line: &[u8]) -> Vec<u8> {
    text_of(line).iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_content_is_never_shown_as_a_header() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n---- a\n+++ b/y\n+diff\n+@@ -9 +9 @@\n kept\n\\ No newline\n\
                    @@ -9 +10,0 @@\n--- a/z\n--- a/w\n+++ b/w\n@@ -0,0 +1 @@\n+new\n";
        let mut place = Place::Header;
        let shown: Vec<_> = diff.lines().map(|line| (line, place.step(line.as_bytes()).0)).collect();
        let [bold, plain, cyan] = [Style::new().bold(), Style::new(), AnsiColor::Cyan.on_default()];
        let [green, red] = [AnsiColor::Green.on_default(), AnsiColor::Red.on_default()];
        let first = [bold, bold, cyan, red, green, green, green, plain, plain];
        let second = [cyan, red, bold, bold, cyan, green];
        let styles: Vec<_> = shown.iter().map(|(_, style)| *style).collect();
        assert_eq!(styles, [&first[..], &second].concat(), "{shown:?}");
    }

    fn shown(lines: &[&[u8]]) -> Vec<String> {
        let count = |sign| lines.iter().filter(|line| line.first() != Some(&sign)).count();
        let head = format!("@@ -1,{} +1,{} @@\n", count(b'+'), count(b'-'));
        let diff = [head.as_bytes(), &lines.join(&b"\n"[..]), b"\n"].concat();
        diff_lines(&diff).into_iter().skip(1).map(|line| line.text).collect()
    }

    #[test]
    fn what_is_not_the_same_never_looks_the_same() {
        let cases: [(&str, &str); 11] = [
            ("+x  ", "+x\\u{20}\\u{20}"),
            ("-x\t", "-x\\u{9}"),
            (" x ", " x "),
            ("+", "+"),
            ("+ ", "+\\u{20}"),
            ("", ""),
            ("+\tx \r", "+\tx \\u{d}"),
            ("+a\\u{d}", "+a\\u{5c}u{d}"),
            ("+a\\ud \\n", "+a\\ud \\n"),
            ("-\\xfe", "-\\u{5c}xfe"),
            ("+a\u{a0}b\u{2003}c\u{2800}d\u{3000}e\u{fffc}", "+a\\u{a0}b\\u{2003}c\\u{2800}d\\u{3000}e\\u{fffc}"),
        ];
        for (line, expected) in cases {
            assert_eq!(shown(&[line.as_bytes()]), [expected], "{line:?}");
        }
        assert_eq!(shown(&[b"-caf\xe9", b"+caf\xe8"]), ["-caf\\xe9", "+caf\\xe8"]);
    }

    #[test]
    fn a_change_of_blanks_alone_is_seen() {
        let lines: [&[u8]; 5] = [b"-\tx = 1", b"-\ty", b"+        x = 1", b"+\tz", b" \tw"];
        assert_eq!(shown(&lines), ["-\\u{9}x = 1", "-\ty", "+        x = 1", "+\tz", " \tw"]);
        assert_eq!(shown(&[b"-end\r", b"+end"]), ["-end\\u{d}", "+end"]);
    }

    #[test]
    fn a_note_is_one_line_whatever_a_server_sends() {
        use aptix_model::report::{FileStatus, Warning};
        let warning = Warning { code: "A\n\u{1b}[2J".to_owned(), message: "b\nc".to_owned(), line: None };
        let file = FileReport::new("x".to_owned(), "ws/x".to_owned(), FileStatus::Modified);
        let file = FileReport { warnings: vec![warning], ..file };
        let mut text = String::new();
        add_notes(&mut text, &file);
        assert_eq!(text, "  warning: A\\u{a}\\u{1b}[2J: b\\u{a}c\n");
    }
}
