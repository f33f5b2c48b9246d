//! What an author is shown of an anchor edit, before it is applied and after: the place, the lines around it, the
//! blank lines where old and new text meet (WS-MOD 2.1, 5.2).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::batch::{AnchorEdit, AnchorPlace};
use aptix_model::preview::{BlanklineStyle, EditEvidence, Evidence, Preview};

use crate::file_plan::FilePlan;
use crate::shown::cut;

/// Lines shown above and below the place.
const AROUND: usize = 3;
/// Lines shown of the old and of the new text.
const SHOWN: usize = 20;
/// Characters of a line.
const LINE_CHARS: usize = 400;

/// The preview of a planned anchor edit, with at most `diff_bytes` of diff; `None` for a plan without a change.
#[must_use]
pub fn preview(edit: &AnchorEdit, plan: &FilePlan<'_>, diff_bytes: usize) -> Option<Preview> {
    let diff = plan.diff(diff_bytes).map(|diff| String::from_utf8_lossy(&diff).into_owned());
    Preview::of(edit.place.kind(), &plan.report(&plan.content()), edit_evidence(edit, plan)?, diff)
}

/// The place of a planned anchor edit, before and after; `None` for a plan without a change.
#[must_use]
pub fn edit_evidence(edit: &AnchorEdit, plan: &FilePlan<'_>) -> Option<EditEvidence> {
    let change = plan.changes.first()?;
    let content = plan.content();
    let (old, new) = (lines(plan.base().unwrap_or_default()), lines(&content));
    let above = (change.start_line as usize).saturating_sub(1);
    let came = (change.end_line as usize + 1).saturating_sub(change.start_line as usize);
    let gone = (old.len() + came).saturating_sub(new.len());
    let is_whole = matches!(edit.place, AnchorPlace::Whole { .. });
    let style = (!is_whole && !edit.content.is_empty()).then(|| blanklines(&old, above, gone, &edit.content));
    Some(EditEvidence {
        old_lines: gone,
        style_warning: style.and_then(|style| warning(&style, &lines_at(&old, above, gone))),
        blankline_style: style,
        evidence: evidence(&old, above, gone),
        apply_evidence: evidence(&new, above, came),
    })
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
}

fn shown(line: &[u8]) -> String {
    cut(line.strip_suffix(b"\r").unwrap_or(line), LINE_CHARS).into_owned()
}

fn evidence(lines: &[&[u8]], above: usize, count: usize) -> Evidence {
    let part = |from: usize, to: usize| lines.iter().take(to).skip(from).map(|line| shown(line)).collect::<Vec<_>>();
    Evidence {
        before: part(above.saturating_sub(AROUND), above),
        range: part(above, above + count.min(SHOWN)),
        left_out: count.saturating_sub(SHOWN),
        after: part(above + count, above + count + AROUND),
    }
}

fn lines_at<'l>(lines: &[&'l [u8]], above: usize, count: usize) -> Vec<&'l [u8]> {
    lines.iter().skip(above).take(count).copied().collect()
}

const fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

/// How many lines are blank until one is not.
fn blank<'l>(lines: impl Iterator<Item = &'l &'l [u8]>) -> u32 {
    u32::try_from(lines.take_while(|line| is_blank(line)).count()).unwrap_or(u32::MAX)
}

/// Blank lines around new lines that take the place of `gone` lines below `above` ones.
fn blanklines(old: &[&[u8]], above: usize, gone: usize, content: &str) -> BlanklineStyle {
    let (head, tail) = old.split_at(above.min(old.len()));
    let tail = tail.get(gone..).unwrap_or_default();
    let own: Vec<&[u8]> = lines(content.as_bytes());
    BlanklineStyle {
        file_above: blank(head.iter().rev()),
        content_leading: blank(own.iter()),
        content_trailing: blank(own.iter().rev()),
        file_below: blank(tail.iter()),
        has_above: !head.is_empty(),
        has_below: !tail.is_empty(),
    }
}

/// What may look wrong where old and new text meet, unless the lines that go looked the same there.
fn warning(style: &BlanklineStyle, gone: &[&[u8]]) -> Option<String> {
    let joint = |is_there: bool, blanks: u32, before: u32, where_: &str| match blanks {
        _ if !gone.is_empty() && blanks == before => None,
        0 if is_there => Some(format!("no blank line {where_} the new text")),
        2.. if is_there => Some(format!("{blanks} blank lines {where_} the new text")),
        _ => None,
    };
    let (above, below) = (style.file_above + style.content_leading, style.content_trailing + style.file_below);
    let (above_before, below_before) =
        (style.file_above + blank(gone.iter()), blank(gone.iter().rev()) + style.file_below);
    let above = joint(style.has_above, above, above_before, "above");
    let below = joint(style.has_below, below, below_before, "below");
    match (above, below) {
        (Some(above), Some(below)) => Some(format!("{above}; {below}")),
        (above, below) => above.or(below),
    }
}
