//! What happens to a diff on its way: lines go, come twice, change places, or lose something; the end is missing.

use crate::case::Case;
use crate::random::Random;
use crate::tree::{line, one_in, pick};

/// The lines of a diff.
type Lines = Vec<Vec<u8>>;

/// A perturbation: its name, and what it does, given the index of a random line.
type Perturbation = (&'static str, fn(&mut Lines, usize, &mut Random));

/// The perturbation that changes a line of a header, which classes know.
pub(crate) const HEADER_CHANGED: &str = "header changed";

const ALL: [Perturbation; 20] = [
    ("counts", |lines, _, random| count(lines, random)),
    ("line dropped", |lines, at, _| drop(lines.remove(at))),
    ("line doubled", |lines, at, _| lines.insert(at, lines[at].clone())),
    ("line moved", move_line),
    ("header dropped", drop_header),
    (HEADER_CHANGED, |lines, _, random| change_header(lines, random)),
    ("blank lost", lose_blanks),
    ("CRLF added", |lines, _, _| lines.iter_mut().for_each(|line| set_end(line, b"\r\n"))),
    ("CRLF removed", |lines, _, _| lines.iter_mut().for_each(|line| set_end(line, b"\n"))),
    ("one end changed", |lines, at, _| {
        let end: &[u8] = if lines[at].ends_with(b"\r\n") { b"\n" } else { b"\r\n" };
        set_end(&mut lines[at], end);
    }),
    ("truncated", truncate),
    ("hunks reordered", |lines, _, random| reorder(lines, random, |line| line.starts_with(b"@@ "), ends_hunk)),
    ("sections reordered", |lines, _, random| reorder(lines, random, begins_section, |_| false)),
    ("section doubled", double_section),
    ("prose", add_prose),
    ("spaces trimmed", |lines, _, _| {
        for line in lines {
            let end = if line.ends_with(b"\r\n") { &b"\r\n"[..] } else { b"\n" };
            *line = [line.trim_ascii_end(), end].concat();
        }
    }),
    ("marker lost", |lines, _, _| lines.retain(|line| !line.starts_with(b"\\"))),
    ("line added", |lines, at, random| {
        let sign = *pick(random, b" ++-\\@");
        lines.insert(at, [&[sign][..], line(random).as_bytes(), b"\n"].concat());
    }),
    ("sign changed", |lines, _, random| {
        let body = where_lines(lines, |line| matches!(line.first(), Some(b' ' | b'+' | b'-')));
        if !body.is_empty() {
            lines[*pick(random, &body)][0] = *pick(random, b" +-");
        }
    }),
    ("dated", |lines, _, random| date(lines, random)),
];

/// Perturbs the diff of a case once.
pub(crate) fn perturb(case: &mut Case, random: &mut Random) {
    let (name, change) = pick(random, &ALL);
    case.perturbed.push(name);
    let mut lines: Lines = case.diff.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if !lines.is_empty() {
        let at = random.below(lines.len());
        change(&mut lines, at, random);
        case.diff = lines.concat();
    }
}

fn move_line(lines: &mut Lines, at: usize, random: &mut Random) {
    let line = lines.remove(at);
    let to = if one_in(random, 2) { at.saturating_sub(1) } else { random.below(lines.len() + 1) };
    lines.insert(to, line);
}

fn drop_header(lines: &mut Lines, _: usize, random: &mut Random) {
    let headers = where_lines(lines, is_header);
    if !headers.is_empty() {
        lines.remove(*pick(random, &headers));
    }
}

fn lose_blanks(lines: &mut Lines, _: usize, random: &mut Random) {
    let all = one_in(random, 2);
    for index in where_lines(lines, |line| line.starts_with(b" ")) {
        if if all { lines[index].trim_ascii().is_empty() } else { one_in(random, 6) } {
            lines[index].remove(0);
        }
    }
}

fn truncate(lines: &mut Lines, at: usize, random: &mut Random) {
    if one_in(random, 2) {
        let mut diff = lines.concat();
        diff.truncate(random.below(diff.len()));
        *lines = vec![diff];
    } else {
        lines.truncate(at);
    }
}

fn double_section(lines: &mut Lines, _: usize, random: &mut Random) {
    let starts = where_lines(lines, begins_section);
    if !starts.is_empty() {
        let index = random.below(starts.len());
        let end = starts.get(index + 1).copied().unwrap_or(lines.len());
        let section = lines[starts[index]..end].to_vec();
        lines.splice(end..end, section);
    }
}

fn add_prose(lines: &mut Lines, at: usize, random: &mut Random) {
    const TEXTS: [&[u8]; 7] = [
        b"Here is the change that you asked for:\n\n",
        b"```diff\n",
        b"```\n",
        b"\n",
        b"And then:\n",
        b"-- \n2.47.3\n\n",
        b"- one\n- two\n",
    ];
    let text = pick(random, &TEXTS).to_vec();
    let sections = where_lines(lines, begins_section);
    let at = if sections.is_empty() || one_in(random, 2) { at } else { *pick(random, &sections) };
    let at = if one_in(random, 3) { lines.len() } else { at };
    lines.insert(at, text);
}

fn begins_section(line: &[u8]) -> bool {
    line.starts_with(b"diff --git ")
}

fn where_lines(lines: &[Vec<u8>], is_it: impl Fn(&[u8]) -> bool) -> Vec<usize> {
    (0..lines.len()).filter(|index| is_it(&lines[*index])).collect()
}

const HEADERS: [&[u8]; 15] = [
    b"diff --git ",
    b"index ",
    b"--- ",
    b"+++ ",
    b"old mode ",
    b"new mode ",
    b"new file mode ",
    b"deleted file mode ",
    b"similarity index ",
    b"dissimilarity index ",
    b"rename from ",
    b"rename to ",
    b"copy from ",
    b"copy to ",
    b"@@ ",
];

fn is_header(line: &[u8]) -> bool {
    HEADERS.iter().any(|header| line.starts_with(header))
}

/// Another number in the header of a hunk.
fn count(lines: &mut [Vec<u8>], random: &mut Random) {
    let hunks = where_lines(lines, |line| line.starts_with(b"@@ -"));
    if hunks.is_empty() {
        return;
    }
    let line = &mut lines[*pick(random, &hunks)];
    let end = line.windows(3).skip(2).position(|three| three == b" @@").map_or(line.len(), |at| at + 2);
    let digits: Vec<usize> = (0..end.min(line.len())).filter(|index| line[*index].is_ascii_digit()).collect();
    if !digits.is_empty() {
        let at = *pick(random, &digits);
        line[at] = b'0' + (line[at] - b'0' + 1 + u8::try_from(random.below(9)).unwrap_or(0)) % 10;
    }
}

fn change_header(lines: &mut [Vec<u8>], random: &mut Random) {
    let headers = where_lines(lines, |line| is_header(line) && !line.starts_with(b"@@"));
    if headers.is_empty() {
        return;
    }
    let line = &mut lines[*pick(random, &headers)];
    let text = String::from_utf8_lossy(line).into_owned();
    let other = match random.below(6) {
        0 => text.replacen("a/", "", 1).replacen(" b/", " ", 1),
        1 => text.replace("b/", ""),
        2 => {
            text.trim_end().get(..text.trim_end().len().saturating_sub(1 + random.below(4))).unwrap_or(&text).to_owned()
                + "\n"
        }
        3 => text.replace('/', "\\"),
        4 => text.replacen("100644", "100755", 1).replacen("b/", "a/", 1),
        _ => text.replacen(|char: char| char.is_ascii_hexdigit() && char.is_ascii_digit(), "0", 2),
    };
    *line = other.into_bytes();
}

/// Sections as `diff -u` writes them, with times behind their names, whose tabs may be blanks.
fn date(lines: &mut Vec<Vec<u8>>, random: &mut Random) {
    let gap = *pick(random, &["\t", " ", "  "]);
    let is_of_git = |line: &[u8]| line.starts_with(b"diff --git ") || line.starts_with(b"index ");
    lines.retain(|line| !is_of_git(line));
    for index in 1..lines.len() {
        let [old, new] = &mut lines[index - 1..=index] else { continue };
        if old.starts_with(b"--- ") && new.starts_with(b"+++ ") {
            for (side, time) in [(old, "2024-01-01 10:00:00.000000000 +0000"), (new, "2024-01-02 11:00:00 +0100")] {
                let is_dated = side.windows(7).any(|bytes| bytes == b" 2024-0" || bytes == b"\t2024-0");
                if !side.ends_with(b"/dev/null\n") && !side.ends_with(b"\"\n") && !is_dated {
                    let name = side.trim_ascii_end();
                    *side = [name, gap.as_bytes(), time.as_bytes(), b"\n"].concat();
                }
            }
        }
    }
}

fn set_end(line: &mut Vec<u8>, end: &[u8]) {
    if line.ends_with(b"\n") {
        line.pop();
        if line.ends_with(b"\r") {
            line.pop();
        }
        line.extend_from_slice(end);
    }
}

fn ends_hunk(line: &[u8]) -> bool {
    line.starts_with(b"diff --git ") || line == b"-- \n"
}

/// Two neighbouring parts change places.
fn reorder(
    lines: &mut [Vec<u8>],
    random: &mut Random,
    is_start: impl Fn(&[u8]) -> bool,
    is_end: impl Fn(&[u8]) -> bool,
) {
    let starts = where_lines(lines, &is_start);
    if starts.len() < 2 {
        return;
    }
    let first = random.below(starts.len() - 1);
    let (from, middle) = (starts[first], starts[first + 1]);
    let below = lines[middle + 1..].iter().position(|line| is_start(line) || is_end(line));
    let to = below.map_or(lines.len(), |below| middle + 1 + below);
    lines[from..to].rotate_left(middle - from);
}
