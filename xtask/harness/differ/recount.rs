//! Diffs as a person would mend them before asking git again: the hunks count the lines that they have, or lines of
//! context have the blanks again that they lost.

/// The same diff, with the counts of each hunk's header those of the lines below it.
pub(crate) fn recount(diff: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = diff.split_inclusive(|byte| *byte == b'\n').collect();
    let mut text = Vec::with_capacity(diff.len());
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        let Some((old, new, rest)) = header(line) else {
            text.extend_from_slice(line);
            continue;
        };
        let end = (at..lines.len()).find(|index| ends(&lines, *index)).unwrap_or(lines.len());
        let body = &lines[at..end];
        // A bare newline is a line of context only where more of the hunk follows.
        let blank =
            body.iter().rev().take_while(|line| line.trim_ascii().is_empty() && !line.starts_with(b" ")).count();
        let body = &body[..body.len() - blank];
        let count =
            |other: u8| body.iter().filter(|line| !matches!(line.first(), Some(b'\\')) && line[0] != other).count();
        text.extend(format!("@@ -{old},{} +{new},{} @@{rest}", count(b'+'), count(b'-')).bytes());
        text.extend_from_slice(&body.concat());
        at += body.len();
    }
    text
}

/// The same diff, with a blank before each line of a hunk, by its counts, that begins with no sign.
pub(crate) fn with_blanks(diff: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(diff.len());
    let (mut old, mut new) = (0_i64, 0_i64);
    for line in diff.split_inclusive(|byte| *byte == b'\n') {
        if old <= 0 && new <= 0 {
            (old, new) = counts(line).unwrap_or_default();
            text.extend_from_slice(line);
            continue;
        }
        match line.first() {
            Some(b'\\') => {}
            Some(b'+') => new -= 1,
            Some(b'-') => old -= 1,
            Some(b' ') => (old, new) = (old - 1, new - 1),
            _ => {
                (old, new) = (old - 1, new - 1);
                text.push(b' ');
            }
        }
        text.extend_from_slice(line);
    }
    text
}

/// The counts of a header.
fn counts(line: &[u8]) -> Option<(i64, i64)> {
    let text = String::from_utf8_lossy(line);
    let (old, new) = text.strip_prefix("@@ -")?.split_once(" @@")?.0.split_once(" +")?;
    let count = |side: &str| side.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
    Some((count(old)?, count(new)?))
}

/// The first lines that a header names, and what stands behind it.
fn header(line: &[u8]) -> Option<(u64, u64, String)> {
    let text = String::from_utf8_lossy(line).into_owned();
    let (sides, rest) = text.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = sides.split_once(" +")?;
    let start = |side: &str| side.split(',').next().and_then(|number| number.parse().ok());
    Some((start(old)?, start(new)?, rest.to_owned()))
}

/// Whether a line is no line of the hunk above it.
fn ends(lines: &[&[u8]], index: usize) -> bool {
    let line = lines[index];
    let is_signature = line == b"-- \n" && lines.get(index + 1).is_none_or(|next| next.starts_with(b"2."));
    is_signature || !matches!(line.first(), Some(b' ' | b'+' | b'-' | b'\\' | b'\n' | b'\r'))
}
