//! The chunks of a context patch: that there are any, and that their lines are lines.

use alloc::format;

use aptix_model::batch::{ContextPatch, LineKind};

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
            site.check_line(|| format!("anchors[{position}]"), false, anchor);
        }
        for (position, line) in chunk.lines.iter().enumerate() {
            let is_new = line.kind == LineKind::Added;
            site.check_line(|| format!("lines[{position}].text"), is_new, &line.text);
        }
    }
    site.change = None;
    Some(patch)
}
