//! The edits of an answer as one batch: of different files, whatever their kinds (FILE-SPEC 5.4).

use std::collections::BTreeMap;

use super::fence::Block;
use super::kind::Kind;
use super::place::{at_its_lines, place, within};
use crate::batch::{FilePatch, PartialBatch, Target};
use crate::documents::dialect::{Parsed, parsed};
use crate::documents::git_patch::lines::Extent;
use crate::documents::{codex_patch, git_patch, json, search_replace};
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// Reads all edits, in their order, and puts them together.
///
/// # Errors
/// What is wrong with each of them; or two are about one file.
pub(super) fn merge(edits: &[(Kind, Block)]) -> Parsed {
    let items =
        edits.iter().filter(|(kind, _)| matches!(kind, Kind::Json(_))).map(|(_, block)| json::items(&block.text));
    json::check_items(items.sum())?;
    let (mut whole, mut warnings) = (PartialBatch::default(), Vec::new());
    let mut seen = BTreeMap::new();
    // How many files the blocks above have, as far as that is known.
    let mut above = 0;
    for (kind, block) in edits {
        let part = match read_block(*kind, block) {
            Ok((batch, found)) => {
                warnings.extend(found);
                batch.into()
            }
            Err(part) => part,
        };
        whole.batch.label = whole.batch.label.or(part.batch.label);
        whole.batch.key = whole.batch.key.or(part.batch.key);
        let mut count = 0;
        for (index, file) in part.positions.into_iter().zip(part.batch.files) {
            count = count.max(index + 1);
            whole.add_file(above + index, |failures| {
                let check = check_other_blocks(&file, block, &mut seen);
                check.map_err(|failure| failures.push(failure)).ok().map(|()| file)
            });
        }
        for failure in part.failures {
            let index = failure.file_index;
            count = count.max(index.map_or(1, |index| index + 1));
            whole.failures.push(Failure { file_index: index.map(|index| above + index), ..failure });
        }
        above += count;
    }
    parsed(whole, warnings)
}

/// Reads the edit in a block; what it is refused for has the lines of the answer.
fn read_block(kind: Kind, block: &Block) -> Parsed {
    let read = |text: &str| match kind {
        Kind::SearchReplace => search_replace::parse_in_answer(text),
        Kind::Diff => git_patch::parse(text.as_bytes(), Extent::Fence),
        Kind::BareDiff => git_patch::parse(text.as_bytes(), Extent::Document),
        Kind::Envelope => codex_patch::parse(text),
        Kind::Json(dialect) => dialect.parse(text.as_bytes()),
    };
    read(&block.text).map_err(|part| {
        let again = read(&at_its_lines(block)).err().unwrap_or(part);
        let failures = again.failures.into_iter().map(|failure| within(block, failure)).collect();
        PartialBatch { failures, ..again }
    })
}

/// Refuses a file that another block of the answer is about.
fn check_other_blocks<'b>(
    file: &FilePatch,
    block: &'b Block,
    seen: &mut BTreeMap<(bool, String), &'b Block>,
) -> Result<(), Failure> {
    let is_doc_path = matches!(file.target, Target::DocPath(_));
    for path in [Some(file.target.as_str()), file.edit.moved_to()].into_iter().flatten() {
        let other = *seen.entry((is_doc_path, path.to_lowercase())).or_insert(block);
        if other.first_line != block.first_line {
            let message = format!("{path:?} is edited by the {} and by the {}", place(other), place(block));
            return Err(Failure::new(Reason::InvalidRequest, message)
                .detail(Detail::DuplicatePath)
                .hint("put all changes of one file into one block, and each change once"));
        }
    }
    Ok(())
}
