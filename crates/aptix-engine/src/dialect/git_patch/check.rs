//! The hunks of a git patch: lines that are lines, in order, and of the kinds that fit what happens to the file. The parts of a
//! series: each can follow the one before.

use alloc::string::{String, ToString};

use aptix_model::batch::{GitKind, GitPatch, Hunk, HunkLine, LineKind};
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use memchr::memchr;

use super::counts::{Counts, ends_openly, is_cut_off, unterminated, whole};
use super::evidence;
use crate::checking::site::Site;
use crate::checking::violation::Violation;
use crate::readings::may_create;
use crate::target::Base;

/// What is wrong with one file of a diff.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum Malformed {
    #[error("nothing happens to the file: it has neither hunks nor a mode")]
    Nothing,
    #[error("a hunk has lines, and this has none")]
    EmptyHunk,
    #[error("a line of a hunk has a text or a terminator, and lines[{line}] has neither")]
    EmptyLine { line: usize },
    #[error("a line feed ends a line, and lines[{line}] continues after one")]
    EmbeddedNewline { line: usize },
    #[error("only the last line of a file lacks a terminator, and more lines follow lines[{line}]")]
    Unterminated { line: usize },
    #[error("a line number is not negative")]
    Negative,
    #[error("the hunk begins at line {line}, and hunk {} reaches down to line {last}", other + 1)]
    Order { line: i64, other: usize, last: i64 },
    #[error("{what}, and lines[{line}] is another one")]
    Kind { what: &'static str, line: usize },
    #[error("a blob's id has 7 to 64 hexadecimal digits, found {found:?}")]
    Id { found: String },
}

impl Malformed {
    fn failure(&self) -> Failure {
        let (reason, detail, hint) = match self {
            Self::Nothing | Self::EmptyHunk => {
                (Reason::PatchMalformed, Detail::Empty, "leave out what changes nothing")
            }
            Self::EmptyLine { .. } | Self::EmbeddedNewline { .. } => (
                Reason::PatchMalformed,
                Detail::EmbeddedNewline,
                "give each line an entry of its own, with its terminator",
            ),
            Self::Unterminated { .. } => {
                (Reason::PatchMalformed, Detail::EndOfFile, "end every line but the last one of a file")
            }
            Self::Negative => (Reason::LineRange, Detail::Negative, "lines are counted from 1"),
            Self::Order { .. } => {
                (Reason::PatchMalformed, Detail::HunkOrder, "list the hunks of a file top to bottom, none into another")
            }
            Self::Kind { .. } => (
                Reason::PatchMalformed,
                Detail::LineKind,
                "a created file has added lines only, and a deleted file has removed lines only",
            ),
            Self::Id { .. } => {
                (Reason::InvalidRequest, Detail::IdFormat, "give the id as the index line has it, or leave it out")
            }
        };
        Failure::new(reason, self.to_string()).detail(detail).hint(hint)
    }
}

/// Checks one file of a diff.
pub(crate) fn check(patch: &GitPatch, site: &mut Site<'_, '_>) -> Option<Base> {
    let mut is_valid = true;
    for (field, id) in [("baseId", &patch.base_id), ("resultId", &patch.result_id)] {
        if let Some(found) = id.as_ref().filter(|id| !is_id(id)) {
            is_valid = false;
            site.refuse(field, || Malformed::Id { found: found.chars().take(80).collect() }.failure());
        }
    }
    if patch.kind == GitKind::Modify && patch.hunks.is_empty() && patch.executable.is_none() {
        is_valid = false;
        site.refuse("hunks", || Malformed::Nothing.failure());
    }
    let base = match patch.kind {
        GitKind::Create | GitKind::Copy { .. } => Base::MustNotExist,
        GitKind::Modify if may_create(patch) => Base::Any,
        GitKind::Delete | GitKind::Modify | GitKind::Rename { .. } => Base::MustExist,
    };
    let mut above = Above::default();
    for (index, hunk) in patch.hunks.iter().enumerate() {
        site.change = Some(index);
        is_valid &= check_hunk(patch, index, hunk, &mut above, site);
    }
    site.change = None;
    let created = patch.hunks.iter().flat_map(every_line).map(|line| line.bytes.len() as u64);
    let (found, limit) = (created.sum::<u64>(), site.limits.created_bytes);
    if patch.kind == GitKind::Create && found > limit {
        is_valid = false;
        site.report("hunks", || Violation::Content { found, limit });
    }
    is_valid.then_some(base)
}

/// What the hunks so far reach down to.
#[derive(Default)]
struct Above {
    /// The last line of the file that the last one is about.
    last: i64,
    /// How many lines they have, of a file that is created.
    made: i64,
}

/// Checks one hunk, by itself and against those above it.
fn check_hunk(patch: &GitPatch, index: usize, hunk: &Hunk, above: &mut Above, site: &mut Site<'_, '_>) -> bool {
    if is_cut_off(hunk, index + 1 == patch.hunks.len()) {
        site.refuse("lines", || hunk.truncated());
        return false;
    }
    if patch.result_id.is_none() && ends_openly(hunk) {
        site.refuse("lines", || evidence::unproven(patch));
        return false;
    }
    if [hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count].iter().any(|number| *number < 0) {
        site.refuse("lines", || Malformed::Negative.failure());
        return false;
    }
    let mut is_valid = true;
    if let Some(malformed) = malformed_lines(hunk).or_else(|| other_kind(&patch.kind, hunk)) {
        is_valid = false;
        site.refuse("lines", || malformed.failure());
    }
    is_valid &= check_bytes(hunk, site);
    if hunk.is_unnumbered {
        return is_valid;
    }
    let (old, _) = hunk.line_counts();
    let start = if old == 0 { hunk.old_start } else { hunk.old_start - 1 };
    // A created file has no lines between which a hunk could be.
    let is_between = patch.kind == GitKind::Create && start != above.made && patch.hunks.len() > 1;
    let is_whole_file = matches!(patch.kind, GitKind::Create | GitKind::Delete);
    above.made += i64::try_from(hunk.lines.len()).unwrap_or(i64::MAX);
    if is_between || start < above.last && start >= 0 && index > 0 && !is_whole_file {
        let order = Malformed::Order { line: hunk.old_start, other: index.saturating_sub(1), last: above.last };
        is_valid = false;
        site.refuse("oldStart", || order.failure());
    }
    above.last = start.max(0).saturating_add(i64::try_from(old).unwrap_or(i64::MAX));
    is_valid
}

/// The first line of a kind that the diff of a created or deleted file cannot have.
fn other_kind(kind: &GitKind, hunk: &Hunk) -> Option<Malformed> {
    let (only, what) = match kind {
        GitKind::Create => (LineKind::Added, "a created file has added lines"),
        GitKind::Delete => (LineKind::Removed, "a deleted file has removed lines"),
        GitKind::Modify | GitKind::Rename { .. } | GitKind::Copy { .. } => return None,
    };
    let line = hunk.lines.iter().position(|line| line.kind != only)?;
    Some(Malformed::Kind { what, line })
}

fn is_id(id: &str) -> bool {
    (7..=64).contains(&id.len()) && id.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Lines that are no lines, or that no file could have in this order.
fn malformed_lines(hunk: &Hunk) -> Option<Malformed> {
    if every_line(hunk).next().is_none() {
        return Some(Malformed::EmptyHunk);
    }
    for (line, HunkLine { bytes, .. }) in every_line(hunk).enumerate() {
        if bytes.is_empty() {
            return Some(Malformed::EmptyLine { line });
        }
        let feed = memchr(b'\n', bytes);
        if feed.is_some_and(|feed| feed + 1 < bytes.len()) {
            return Some(Malformed::EmbeddedNewline { line });
        }
    }
    let line = match Counts::of(hunk) {
        Counts::Surplus(_) => unterminated(&hunk.lines),
        _ => unterminated(&whole(hunk).lines),
    };
    line.map(|line| Malformed::Unterminated { line })
}

/// The lines of a hunk, and those below that may belong to it.
fn every_line(hunk: &Hunk) -> impl Iterator<Item = &HunkLine> {
    hunk.lines.iter().chain(&hunk.surplus)
}

/// Whether the added lines can be lines of a text.
fn check_bytes(hunk: &Hunk, site: &mut Site<'_, '_>) -> bool {
    let limit = site.limits.line_bytes;
    let mut is_valid = true;
    for line in every_line(hunk).filter(|line| line.kind == LineKind::Added) {
        let found = line.bytes.len();
        let violation = if found > limit {
            Violation::LongLine { found, limit }
        } else if memchr(0, &line.bytes).is_some() {
            Violation::Nul
        } else {
            continue;
        };
        is_valid = false;
        site.report("lines", || violation);
    }
    is_valid
}

/// Why parts are no series.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
enum Unordered {
    #[error("a series has at least two parts")]
    Short,
    #[error("a part creates the file, and the parts above it leave one")]
    Exists,
    #[error("a part changes the file, and a part above it deletes the file")]
    Gone,
    #[error("a part copies the file, and parts above it change the file")]
    Copy,
    #[error("a part renames the file, and another one creates, copies, renames or deletes it")]
    Renamed,
    #[error("the parts of the diff make the file and delete it again: nothing would change")]
    Nothing,
}

/// Checks all parts, and whether there is a file where one is changed, and none where one is made.
pub(crate) fn check_series(parts: &[GitPatch], site: &mut Site<'_, '_>) -> Option<Base> {
    let mut base = None;
    let mut above = 0;
    for part in parts {
        let checked = site.below(above, |site| check(part, site))?;
        base.get_or_insert(checked);
        above += part.hunks.len();
    }
    if let Err(unordered) = order(parts) {
        site.refuse("parts", || {
            Failure::new(Reason::InvalidRequest, unordered.to_string())
                .detail(Detail::DuplicatePath)
                .hint("send one diff that says what becomes of the file as a whole")
        });
        return None;
    }
    base
}

fn order(parts: &[GitPatch]) -> Result<(), Unordered> {
    let [first, rest @ ..] = parts else { return Err(Unordered::Short) };
    let is_new = matches!(first.kind, GitKind::Create | GitKind::Copy { .. });
    let mut is_there = first.kind != GitKind::Delete;
    for part in rest {
        match (&part.kind, is_there) {
            (GitKind::Create, true) => return Err(Unordered::Exists),
            (GitKind::Modify | GitKind::Delete | GitKind::Rename { .. }, false) => return Err(Unordered::Gone),
            (GitKind::Copy { .. }, _) => return Err(Unordered::Copy),
            _ => is_there = part.kind != GitKind::Delete,
        }
    }
    let renames = parts.iter().filter(|part| matches!(part.kind, GitKind::Rename { .. })).count();
    let deletes = parts.iter().any(|part| part.kind == GitKind::Delete);
    if renames > 1 || (renames == 1 && (deletes || is_new)) {
        return Err(Unordered::Renamed);
    }
    if rest.is_empty() {
        return Err(Unordered::Short);
    }
    if is_new && !is_there { Err(Unordered::Nothing) } else { Ok(()) }
}
