//! The new text of a change, and the notes about it.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use aptix_model::batch::Reindent;
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::{Normalization, Warning};

use super::check::{Source, ValidSearch};
use crate::planning::work::Work;
use crate::text::new_text::Fitted;

/// What is reported beside the changes.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) normalized: Vec<Normalization>,
    pub(super) warnings: Vec<Warning>,
    /// Whether a change that only adds would be known for made the second time.
    pub(super) is_made_once: bool,
}

impl Notes {
    /// Reports that lines of new text were ended as the file's are.
    pub(super) fn note_line_endings(&mut self, fitted: &Fitted) {
        if fitted.has_other_ends && !self.normalized.contains(&Normalization::LineEndings) {
            self.normalized.push(Normalization::LineEndings);
        }
    }
}

/// The new text, reindented if that is asked for.
pub(super) fn new_text<'c>(change: &ValidSearch<'c>, work: &Work<'_>) -> Result<Cow<'c, str>, Failure> {
    let text = match change.source {
        Source::Text(text) => Cow::Borrowed(text),
        Source::Clipboard(name) => Cow::Owned(work.clipboards.get(name)?.to_string()),
        Source::Found => Cow::Borrowed(""),
    };
    match change.reindent {
        Some(reindent) => reindented(&text, reindent).map(Cow::Owned),
        None => Ok(text),
    }
}

/// Takes one prefix from every line that has anything in it, and puts another before it (REQ-PATCH-004).
fn reindented(text: &str, Reindent { strip, add }: &Reindent) -> Result<String, Failure> {
    let mut result = String::with_capacity(text.len());
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_end_matches(['\r', '\n']).is_empty() {
            result.push_str(line);
            continue;
        }
        let Some(rest) = line.strip_prefix(strip.as_str()) else {
            let message =
                format!("line {} of the new text does not begin with {strip:?}, which is to be stripped", index + 1);
            return Err(Failure::new(Reason::ReindentPrecondition, message)
                .hint("give in reindent.strip only what every line that is not empty begins with"));
        };
        result.push_str(add);
        result.push_str(rest);
    }
    Ok(result)
}
