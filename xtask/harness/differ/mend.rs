//! Diffs as a person would mend them before asking git again: lines of context have the blanks again that they lost, or,
//! where the counts of a hunk do not fit at all, the hunk counts the lines that it has.

/// The same diff, mended.
pub(crate) fn mend(diff: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = diff.split_inclusive(|byte| *byte == b'\n').collect();
    let mut text = Vec::with_capacity(diff.len());
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        let Some(header) = Header::read(line) else {
            text.extend_from_slice(line);
            continue;
        };
        if let Some(end) = header.counted_end(&lines, at) {
            text.extend_from_slice(line);
            for line in &lines[at..end] {
                let has_sign = matches!(line.first(), Some(b' ' | b'+' | b'-' | b'\\'));
                text.extend((!has_sign).then_some(b' '));
                text.extend_from_slice(line);
            }
            at = end;
            continue;
        }
        let end = (at..lines.len()).find(|index| ends(&lines, *index)).unwrap_or(lines.len());
        // Blank lines at the end only set the hunk apart from what follows.
        let is_blank = |line: &&&[u8]| line.trim_ascii().is_empty() && !line.starts_with(b" ");
        let blank = lines[at..end].iter().rev().take_while(is_blank).count();
        let body = &lines[at..end - blank];
        let count = |other: u8| body.iter().filter(|line| line[0] != b'\\' && line[0] != other).count();
        let Header { old_start, new_start, rest, .. } = header;
        text.extend(format!("@@ -{old_start},{} +{new_start},{} @@{rest}", count(b'+'), count(b'-')).bytes());
        text.extend_from_slice(&body.concat());
        at += body.len();
    }
    text
}

/// The header of a hunk.
struct Header {
    old_start: u64,
    old_count: i64,
    new_start: u64,
    new_count: i64,
    /// What stands behind the numbers, with the line's end.
    rest: String,
}

impl Header {
    fn read(line: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(line).into_owned();
        let (sides, rest) = text.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = sides.split_once(" +")?;
        let start = |side: &str| side.split(',').next().and_then(|number| number.parse().ok());
        let count = |side: &str| side.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
        Some(Self {
            old_start: start(old)?,
            old_count: count(old)?,
            new_start: start(new)?,
            new_count: count(new)?,
            rest: rest.to_owned(),
        })
    }

    /// Where the hunk ends by its counts, if nothing that could be one of its lines follows there.
    fn counted_end(&self, lines: &[&[u8]], mut at: usize) -> Option<usize> {
        let (mut old, mut new) = (self.old_count, self.new_count);
        while old > 0 || new > 0 {
            let line = lines.get(at)?;
            match line.first() {
                Some(b'\\') => {}
                Some(b'+') => new -= 1,
                Some(b'-') => old -= 1,
                _ if line.starts_with(b"diff --git ") || line.starts_with(b"@@ -") => return None,
                _ => (old, new) = (old - 1, new - 1),
            }
            at += 1;
        }
        if lines.get(at).is_some_and(|line| line.starts_with(b"\\")) {
            at += 1;
        }
        let is_over =
            lines.get(at).is_none_or(|line| !matches!(line.first(), Some(b' ' | b'+' | b'-'))) || ends(lines, at);
        (old == 0 && new == 0 && is_over).then_some(at)
    }
}

/// Whether a line is no line of the hunk above it.
fn ends(lines: &[&[u8]], index: usize) -> bool {
    let line = lines[index];
    let is_signature = line == b"-- \n" && lines.get(index + 1).is_none_or(|next| next.starts_with(b"2."));
    is_signature || !matches!(line.first(), Some(b' ' | b'+' | b'-' | b'\\' | b'\n' | b'\r'))
}
