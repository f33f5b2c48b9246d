//! Diffs as a person would mend them before asking git again: lines of context have the blanks again that they lost, or,
//! where the counts of a hunk do not fit at all, the hunk counts the lines that it has.

/// The same diff, where every hunk counts the lines that it has.
pub(crate) fn mend(diff: &[u8]) -> Vec<u8> {
    mend_some(diff, |_| true).0
}

/// The same diff, where some of the hunks whose counts do not fit count the lines that they have; and how many do not fit.
pub(crate) fn mend_some(diff: &[u8], is_chosen: impl Fn(usize) -> bool) -> (Vec<u8>, usize) {
    let lines: Vec<&[u8]> = diff.split_inclusive(|byte| *byte == b'\n').collect();
    let mut text = Vec::with_capacity(diff.len());
    let (mut at, mut unfit) = (0, 0);
    while let Some(line) = lines.get(at) {
        at += 1;
        let Some(counts) = Counts::read(line) else {
            text.extend_from_slice(line);
            continue;
        };
        let fitting = counts.fitting_end(&lines, at);
        unfit += usize::from(fitting.is_none());
        if fitting.is_some() || !is_chosen(unfit - 1) {
            let end = fitting.unwrap_or_else(|| counts.end(&lines, at));
            text.extend_from_slice(line);
            text.extend(lines[at..end].iter().flat_map(|line| with_sign(line)));
            at = end;
            continue;
        }
        let end = (at..lines.len()).find(|index| ends(&lines, *index)).unwrap_or(lines.len());
        // Blank lines at the end only set the hunk apart from what follows.
        let is_blank = |line: &&&[u8]| line.trim_ascii().is_empty();
        let blank = lines[at..end].iter().rev().take_while(is_blank).count();
        let body = &lines[at..end - blank];
        let count = |other: u8| body.iter().filter(|line| line[0] != b'\\' && line[0] != other).count() as i64;
        text.extend(Counts { old: count(b'+'), new: count(b'-'), ..counts }.header().bytes());
        text.extend(body.iter().flat_map(|line| with_sign(line)));
        at += body.len();
    }
    (text, unfit)
}

/// A line of a hunk, whose blank may be lost.
fn with_sign(line: &[u8]) -> Vec<u8> {
    let has_sign = matches!(line.first(), Some(b' ' | b'+' | b'-' | b'\\'));
    if has_sign { line.to_vec() } else { [b" ", line].concat() }
}

/// The numbers in the header of a hunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) old_start: i64,
    pub(crate) old: i64,
    pub(crate) new_start: i64,
    pub(crate) new: i64,
}

impl Counts {
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(line);
        let (sides, _) = text.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = sides.split_once(" +")?;
        let start = |side: &str| side.split(',').next().and_then(|number| number.parse().ok());
        let count = |side: &str| side.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
        Some(Self { old_start: start(old)?, old: count(old)?, new_start: start(new)?, new: count(new)? })
    }

    pub(crate) fn header(&self) -> String {
        let Self { old_start, old, new_start, new } = self;
        format!("@@ -{old_start},{old} +{new_start},{new} @@\n")
    }

    /// The same hunk where the new side begins as the old one says, below hunks that made the file so much longer. No line
    /// is above the first.
    pub(crate) fn renumbered(self, longer: i64) -> Self {
        let old_start = self.old_start.max(i64::from(self.old > 0));
        // Git looks below the line before the new start, for removed lines too.
        let start = old_start + i64::from(self.old == 0);
        Self { old_start, new_start: (start + longer).max(i64::from(self.new > 0)), ..self }
    }

    /// Where the hunk ends by its counts, or before that where another section or hunk begins.
    pub(crate) fn end(&self, lines: &[&[u8]], mut at: usize) -> usize {
        let (mut old, mut new) = (self.old, self.new);
        while let Some(line) = lines.get(at).filter(|_| old > 0 || new > 0) {
            match line.first() {
                Some(b'\\') => {}
                Some(b'+') => new -= 1,
                Some(b'-') => old -= 1,
                _ if line.starts_with(b"diff --git ") || line.starts_with(b"@@ -") => break,
                _ => (old, new) = (old - 1, new - 1),
            }
            at += 1;
        }
        at + usize::from(lines.get(at).is_some_and(|line| line.starts_with(b"\\")))
    }

    /// Where the hunk ends by its counts, if nothing that could be one of its lines follows there.
    fn fitting_end(&self, lines: &[&[u8]], at: usize) -> Option<usize> {
        let end = self.end(lines, at);
        let body = &lines[at..end];
        let is_over =
            lines.get(end).is_none_or(|line| !matches!(line.first(), Some(b' ' | b'+' | b'-'))) || ends(lines, end);
        let counted = |other: u8| body.iter().filter(|line| line[0] != b'\\' && line[0] != other).count() as i64;
        (counted(b'+') == self.old && counted(b'-') == self.new && is_over).then_some(end)
    }
}

/// Whether a line is no line of the hunk above it.
fn ends(lines: &[&[u8]], index: usize) -> bool {
    let (line, below) = (lines[index], lines.get(index + 1));
    let is_signature =
        line.trim_ascii() == b"--" && below.is_none_or(|below| below.starts_with(b"2.") || *below == b"\n");
    let is_side = line.starts_with(b"--- ") && below.is_some_and(|below| below.starts_with(b"+++ "));
    is_signature || is_side || !matches!(line.first(), Some(b' ' | b'+' | b'-' | b'\\' | b'\n' | b'\r'))
}
