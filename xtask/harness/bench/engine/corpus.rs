//! Real edits: files that differ between two versions of a crate, each as a minimal line patch.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use aptix_engine::digest::sha256;
use aptix_model::batch::{Batch, Change, FileEdit, FilePatch, LinePatch, Operation, Target};
use similar::{Algorithm, DiffTag, capture_diff_slices};

/// One file's change.
pub(crate) struct Edit {
    pub(crate) name: String,
    pub(crate) before: Vec<u8>,
    pub(crate) before_text: String,
    pub(crate) after: Vec<u8>,
    pub(crate) batch: Batch,
    pub(crate) changes: usize,
    /// The same change as a unified diff, for the peer.
    pub(crate) diff: String,
}

/// All of them.
pub(crate) struct Corpus {
    pub(crate) edits: Vec<Edit>,
    /// Pairs whose difference is not one of lines: line endings, the last newline, text that is not UTF-8.
    pub(crate) left_out: usize,
}

pub(crate) fn read(folders: &[PathBuf]) -> Result<Corpus> {
    let mut corpus = Corpus { edits: Vec::new(), left_out: 0 };
    for pair in folders.chunks_exact(2) {
        let [before, after] = pair else { continue };
        visit(before, after, &mut corpus)?;
    }
    // Lines that lie side by side, as a parser leaves them, and not in the gaps that making the diffs left.
    for edit in &mut corpus.edits {
        edit.batch = edit.batch.clone();
    }
    Ok(corpus)
}

fn visit(before: &Path, after: &Path, corpus: &mut Corpus) -> Result<()> {
    for entry in fs::read_dir(before).with_context(|| format!("{} cannot be read", before.display()))? {
        let path = entry?.path();
        let Some(twin) = path.file_name().map(|name| after.join(name)) else { continue };
        if path.is_dir() {
            visit(&path, &twin, corpus)?;
        } else if twin.is_file()
            && path.extension().is_some_and(|kind| ["rs", "md", "toml", "c", "h"].iter().any(|known| kind == *known))
        {
            let (before, after) = (fs::read(&path)?, fs::read(&twin)?);
            if before != after {
                match edit(path.display().to_string(), before, after) {
                    Some(edit) => corpus.edits.push(edit),
                    None => corpus.left_out += 1,
                }
            }
        }
    }
    Ok(())
}

/// The edit as a line patch; nothing where lines alone do not say it.
fn edit(name: String, before: Vec<u8>, after: Vec<u8>) -> Option<Edit> {
    let (old, new) = (String::from_utf8(before.clone()).ok()?, String::from_utf8(after.clone()).ok()?);
    let plain = |text: &str| text.ends_with('\n') && !text.contains(['\r', '\u{feff}']);
    if !plain(&old) || !plain(&new) {
        return None;
    }
    let batch = line_patch(&old, &new);
    let FileEdit::LinePatch(patch) = &batch.files.first()?.edit else { return None };
    let (changes, diff) = (patch.changes.len(), diffy::create_patch(&old, &new).to_string());
    Some(Edit { name, before, before_text: old, after, batch, changes, diff })
}

/// The minimal line patch from one text to another.
pub(crate) fn line_patch(old: &str, new: &str) -> Batch {
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let owned = |lines: &[&str], range: Range<usize>| {
        lines.get(range).unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let changes = capture_diff_slices(Algorithm::Histogram, &old_lines, &new_lines).into_iter().filter_map(|op| {
        let (tag, gone, come) = op.as_tag_tuple();
        let expected_original_lines = owned(&old_lines, gone.clone());
        let (start_line, end_line) = (gone.start as i64 + 1, gone.end as i64);
        let operation = match tag {
            DiffTag::Equal => return None,
            DiffTag::Insert => Operation::Insert { after_line: gone.start as i64, new_lines: owned(&new_lines, come) },
            DiffTag::Delete => Operation::Delete { start_line, end_line, expected_original_lines },
            DiffTag::Replace => {
                Operation::Replace { start_line, end_line, expected_original_lines, new_lines: owned(&new_lines, come) }
            }
        };
        Some(Change { key: None, description: None, operation })
    });
    batch(old, changes.collect())
}

/// A batch of one line patch on a text.
pub(crate) fn batch(old: &str, changes: Vec<Change>) -> Batch {
    let original_sha256 = sha256(old.as_bytes()).to_string();
    let edit = FileEdit::LinePatch(LinePatch { original_sha256, changes });
    let file = FilePatch { target: Target::DocPath("r/file".into()), key: None, label: None, edit };
    Batch { files: vec![file], ..Batch::default() }
}
