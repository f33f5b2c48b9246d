//! Edits at a line number or beside a described line, between the wire and the model.

use super::field::{missing, unknown_enum};
use super::v1;
use crate::batch::{Anchor, AnchorEdit, AnchorMatch, AnchorPlace, Occurrence};
use crate::failure::Failure;

pub(super) fn anchor_edit(file: usize, edit: v1::AnchorEdit) -> Result<AnchorEdit, Failure> {
    use v1::anchor_edit::Place as Wire;
    let field = format!("files[{file}].anchorEdit");
    let place = match edit.place {
        Some(Wire::Range(span)) => AnchorPlace::Range { start_line: span.start_line, end_line: span.end_line },
        Some(Wire::Append(v1::AppendLines {})) => AnchorPlace::Append,
        Some(Wire::After(line)) => AnchorPlace::After(anchor(&format!("{field}.after"), line)?),
        Some(Wire::Before(line)) => AnchorPlace::Before(anchor(&format!("{field}.before"), line)?),
        Some(Wire::Between(between)) => AnchorPlace::Between {
            start: given(&format!("{field}.between.start"), between.start)?,
            end: given(&format!("{field}.between.end"), between.end)?,
            takes_anchors: between.takes_anchors,
        },
        Some(Wire::Whole(whole)) => AnchorPlace::Whole { content_format: whole.content_format },
        None => return Err(missing(&format!("{field}.place"), "range, append, after, before, between or whole")),
    };
    Ok(AnchorEdit { place, content: edit.content })
}

fn given(field: &str, line: Option<v1::Anchor>) -> Result<Anchor, Failure> {
    anchor(field, line.ok_or_else(|| missing(field, "an anchor"))?)
}

fn anchor(field: &str, line: v1::Anchor) -> Result<Anchor, Failure> {
    use v1::anchor::Occurrence as Wire;
    let matching = match v1::AnchorMatch::try_from(line.r#match) {
        Ok(v1::AnchorMatch::Unspecified | v1::AnchorMatch::Contains) => AnchorMatch::Contains,
        Ok(v1::AnchorMatch::Equals) => AnchorMatch::Equals,
        Ok(v1::AnchorMatch::Regex) => AnchorMatch::Regex,
        Err(_) => return Err(unknown_enum(&format!("{field}.match"), line.r#match)),
    };
    let occurrence = line.occurrence.map(|occurrence| match occurrence {
        Wire::Number(number) => Occurrence::Number(number),
        Wire::Last(v1::LastLine {}) => Occurrence::Last,
    });
    Ok(Anchor { text: line.text, matching, occurrence })
}

pub(super) fn anchor_edit_message(edit: AnchorEdit, change_id: String) -> v1::AnchorEdit {
    use v1::anchor_edit::Place as Wire;
    let place = match edit.place {
        AnchorPlace::Range { start_line, end_line } => Wire::Range(v1::LineSpan { start_line, end_line }),
        AnchorPlace::Append => Wire::Append(v1::AppendLines {}),
        AnchorPlace::After(line) => Wire::After(anchor_message(line)),
        AnchorPlace::Before(line) => Wire::Before(anchor_message(line)),
        AnchorPlace::Between { start, end, takes_anchors } => Wire::Between(v1::Between {
            start: Some(anchor_message(start)),
            end: Some(anchor_message(end)),
            takes_anchors,
        }),
        AnchorPlace::Whole { content_format } => Wire::Whole(v1::WholeFile { content_format }),
    };
    v1::AnchorEdit { change_id, place: Some(place), content: edit.content }
}

fn anchor_message(line: Anchor) -> v1::Anchor {
    use v1::anchor::Occurrence as Wire;
    let matching = match line.matching {
        AnchorMatch::Contains => v1::AnchorMatch::Contains,
        AnchorMatch::Equals => v1::AnchorMatch::Equals,
        AnchorMatch::Regex => v1::AnchorMatch::Regex,
    };
    let occurrence = line.occurrence.map(|occurrence| match occurrence {
        Occurrence::Number(number) => Wire::Number(number),
        Occurrence::Last => Wire::Last(v1::LastLine {}),
    });
    v1::Anchor { text: line.text, r#match: matching.into(), occurrence }
}
