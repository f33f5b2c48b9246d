//! Where a document may be cut and be whole all the same: nothing above states that there was more.

use aptix_model::documents::Dialect;

/// What ends where a document may end too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Part {
    /// A hunk of a diff.
    Hunk,
    /// A file of a diff that moves or is copied as it is.
    Move,
    /// A hunk without the marker below it that its last line has no newline.
    Marker,
    /// A change of a file's mode, which is a whole diff without hunks too.
    Mode,
    /// The deletion of an empty file, or the creation of one: a header without hunks.
    Empty,
    /// A block of SEARCH/REPLACE.
    Block,
    /// A fenced block of an answer.
    Fence,
}

impl Part {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hunk => "hunks",
            Self::Move => "moves",
            Self::Marker => "markers",
            Self::Mode => "modes",
            Self::Empty => "empty files",
            Self::Block => "blocks",
            Self::Fence => "fences",
        }
    }
}

/// The offsets below the parts of a document that is well-formed.
pub(crate) fn ends(dialect: Dialect, document: &[u8]) -> Vec<(usize, Part)> {
    match dialect {
        Dialect::GitPatch => hunks(document),
        Dialect::SearchReplace => {
            let ends = below(document, |line| line.starts_with(b">>>>>>> REPLACE"), Part::Block);
            // A blank line sets a block apart from the next one.
            let apart = ends.iter().map(|(end, part)| (end + 1, *part));
            apart.filter(|(end, _)| document.get(end - 1) == Some(&b'\n')).chain(ends.iter().copied()).collect()
        }
        Dialect::Chat => {
            let is_fence = |line: &[u8]| line.starts_with(b"```");
            // Every other one closes.
            below(document, is_fence, Part::Fence).into_iter().skip(1).step_by(2).collect()
        }
        // JSON has an end of its own, and so has a Codex patch.
        _ => Vec::new(),
    }
}

/// The end of a part at which a cut lies: its last newline may be missing, and below a fence there may be prose.
pub(crate) fn end_at<'e>(ends: &'e [(usize, Part)], document: &[u8], at: usize) -> Option<&'e (usize, Part)> {
    ends.iter().rev().find(|(end, part)| {
        if *end >= at {
            matches!(&document[at..*end], b"" | b"\n" | b"\r\n")
        } else {
            *part == Part::Fence && !document[*end..at].contains(&b'`')
        }
    })
}

fn below(document: &[u8], is_end: impl Fn(&[u8]) -> bool, part: Part) -> Vec<(usize, Part)> {
    let mut at = 0;
    let ends = document.split_inclusive(|byte| *byte == b'\n').filter_map(|line| {
        at += line.len();
        is_end(line).then_some((at, part))
    });
    ends.collect()
}

/// Reads a diff by the counts of its hunks, which are right.
fn hunks(document: &[u8]) -> Vec<(usize, Part)> {
    let mut ends = Vec::new();
    let (mut old, mut new, mut at) = (0_i64, 0_i64, 0);
    let mut below_hunk = false;
    for line in document.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        if below_hunk && line.starts_with(b"\\") {
            // Without the marker, the last line is another one.
            let above = ends.pop();
            ends.extend(above.map(|(end, _)| (end, Part::Marker)));
            ends.push((at, Part::Hunk));
            continue;
        }
        below_hunk = false;
        if old > 0 || new > 0 {
            match line.first() {
                Some(b'+') => new -= 1,
                Some(b'-') => old -= 1,
                Some(b'\\') => {}
                _ => (old, new) = (old - 1, new - 1),
            }
        } else if let Some((a, b)) = counts(line) {
            (old, new) = (a, b);
            continue;
        } else {
            let is_moved = line.starts_with(b"rename to ") || line.starts_with(b"copy to ");
            if line.starts_with(b"new mode ") {
                ends.push((at, Part::Mode));
            } else if line.starts_with(b"deleted file mode ")
                || (line.starts_with(b"index ") && document[at..].starts_with(b"diff --git "))
            {
                ends.push((at, Part::Empty));
            } else if is_moved && document[at..].starts_with(b"diff --git ") {
                ends.push((at, Part::Move));
            }
            continue;
        }
        if old <= 0 && new <= 0 {
            ends.push((at, Part::Hunk));
            below_hunk = true;
        }
    }
    ends
}

/// The two counts of a hunk's header.
fn counts(line: &[u8]) -> Option<(i64, i64)> {
    let text = String::from_utf8_lossy(line);
    let (sides, _) = text.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = sides.split_once(" +")?;
    let count = |side: &str| side.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
    Some((count(old)?, count(new)?))
}
