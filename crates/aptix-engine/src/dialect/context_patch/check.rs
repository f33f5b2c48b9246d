//! The chunks of a context patch: that there are any, and that their lines are lines.

use alloc::format;

use aptix_model::batch::{ContextPatch, LineKind};
use memchr::{memchr, memchr3};

use crate::checking::site::Site;
use crate::checking::violation::Violation;

/// Checks chunks one by one; `None` when there are none and the file does not move either.
pub(crate) fn check<'a>(patch: &'a ContextPatch, site: &mut Site<'_, 'a>) -> Option<&'a ContextPatch> {
    if patch.chunks.is_empty() && patch.move_to.is_none() {
        site.report("chunks", || Violation::Empty { what: "chunk" });
        return None;
    }
    for (index, chunk) in patch.chunks.iter().enumerate() {
        site.change = Some(index);
        if chunk.lines.is_empty() {
            site.report("lines", || Violation::Empty { what: "line" });
        }
        for (position, anchor) in chunk.anchors.iter().enumerate() {
            check_line(&format!("anchors[{position}]"), LineKind::Context, anchor, site);
        }
        for (position, line) in chunk.lines.iter().enumerate() {
            check_line(&format!("lines[{position}].text"), line.kind, &line.text, site);
        }
    }
    site.change = None;
    Some(patch)
}

/// A line that comes has nothing in it that would make it several, or binary; one that is there may be anything.
fn check_line(field: &str, kind: LineKind, line: &str, site: &mut Site<'_, '_>) {
    let offset = match kind {
        LineKind::Added => memchr3(b'\n', b'\r', 0, line.as_bytes()),
        LineKind::Context | LineKind::Removed => memchr(b'\n', line.as_bytes()),
    };
    let (found, limit) = (line.len(), site.limits.line_bytes);
    let violation = match offset.and_then(|offset| Some((offset, line.as_bytes().get(offset)?))) {
        Some((offset, b'\n')) => Violation::EmbeddedNewline { offset },
        Some((offset, b'\r')) => Violation::EmbeddedCr { offset },
        Some(_) => Violation::Nul,
        None if found > limit => Violation::LongLine { found, limit },
        None => return,
    };
    site.report(field, || violation);
}
