//! Old text whose lines occur in exactly one place of the file, white space aside.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use aptix_model::batch::{EditorCommand, SearchChange, SearchOperation};

use crate::text::find::Opener;
use crate::text::lines::Text;

/// Places that are held against the old text at most.
const PLACES: usize = 1000;

/// Gives a change the old text that the file has, and its new text the same white space at the start of lines. `None` if
/// it is not clear which lines are meant, or how the new ones begin.
pub(super) fn correct(change: &mut SearchChange, text: &Text<'_>) -> Option<()> {
    let SearchOperation::Replace { old_text } = &mut change.operation else { return None };
    if change.reindent.is_some() {
        return None;
    }
    let new_text = change.new_text.as_mut().filter(|_| change.from_clipboard.is_none());
    correct_texts(old_text, new_text, text)
}

/// Does the same for a command of the text-editor tool.
pub(super) fn correct_command(command: &mut EditorCommand, text: &Text<'_>) -> Option<()> {
    let EditorCommand::StrReplace { old_text, new_text } = command else { return None };
    correct_texts(old_text, Some(new_text), text)
}

fn correct_texts(old_text: &mut String, new_text: Option<&mut String>, text: &Text<'_>) -> Option<()> {
    let old: Vec<&str> = old_text.lines().collect();
    let found = only_place(&old, text)?;
    let mut starts = BTreeMap::new();
    for (old, found) in old.iter().zip(&found).filter(|(old, _)| !old.trim().is_empty()) {
        if *starts.entry(blanks(old)).or_insert(blanks(found)) != blanks(found) {
            return None;
        }
    }
    if let Some(new_text) = new_text {
        let moved = new_text.split_inclusive('\n').map(|line| match line.trim() {
            "" => Some(line.to_string()),
            _ => Some([*starts.get(blanks(line))?, line.trim_start_matches([' ', '\t'])].concat()),
        });
        let as_it_is = starts.iter().all(|(old, found)| old == found);
        // White space at the start of lines may be part of a value.
        if !as_it_is && Opener::first_in(old.iter().copied().chain(new_text.lines()).map(str::as_bytes)).is_some() {
            return None;
        }
        if !as_it_is {
            *new_text = moved.collect::<Option<String>>()?;
        }
    }
    let ends_line = old_text.ends_with('\n');
    *old_text = found.join("\n");
    if ends_line {
        old_text.push('\n');
    }
    Some(())
}

/// The lines of the one place that differs from these in white space alone, if there is exactly one.
fn only_place(old: &[&str], text: &Text<'_>) -> Option<Vec<String>> {
    let (above, anchor) = old.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    if anchor.trim().is_empty() {
        return None;
    }
    let mut budget = PLACES;
    let mut place = None;
    for (number, line) in text.cursor().enumerate() {
        let Some(first) = number.checked_sub(above).filter(|_| is_like(anchor, line)) else { continue };
        budget = budget.checked_sub(1)?;
        let mut cursor = text.cursor();
        cursor.seek(first).ok()?;
        let found: Vec<&[u8]> = cursor.take(old.len()).collect();
        let fits = found.len() == old.len() && old.iter().zip(&found).all(|(old, found)| is_like(old, found));
        if fits && place.replace(found).is_some() {
            return None;
        }
    }
    place?.into_iter().map(|line| core::str::from_utf8(line).ok().map(ToString::to_string)).collect()
}

/// Whether two lines have the same words.
fn is_like(old: &str, found: &[u8]) -> bool {
    core::str::from_utf8(found).is_ok_and(|found| old.split_whitespace().eq(found.split_whitespace()))
}

fn blanks(line: &str) -> &str {
    let words = line.trim_start_matches([' ', '\t']);
    line.split_at(line.len() - words.len()).0
}
