//! The form of an entry: a checksum line, a line of JSON that describes the batch, and the compressed bytes.

use std::borrow::Cow;
use std::path::PathBuf;

use aptix_engine::digest::sha256;
use aptix_engine::text::edit::TextEdit;
use aptix_model::protection::{KEY_HEAD_BYTES, is_private_key};
use serde::{Deserialize, Serialize};

use super::edited;
use super::passages::Passages;
use super::past_file::{Images, Kept, PastAfter, PastBefore, PastDir, PastFile, is_whole};
use super::summary::Summary;
use crate::workspace::commit::change::{Becomes, Change};
use crate::workspace::commit::record::{Hex, missing_dirs};
use crate::workspace::commit::record_file;
use crate::workspace::roots::own_file::split_line;
use crate::workspace::roots::workspace::Workspace;

/// The first word of every entry, with the version of its form.
const MAGIC: &str = "aptix-history-1";

/// Into at most so many bytes one byte of what is kept unpacks.
const MOST_PACKED: usize = 255;

/// Bytes of the smallest file of which passages are kept in its place.
const LARGE: usize = 256 << 10;
/// Passages are kept where they take less than such a part of the file, compressed.
const SMALL_PART: usize = 4;

/// What an entry is about: its second line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    /// The name of the entry; earlier versions did not say it.
    #[serde(default)]
    pub(super) id: Option<String>,
    pub(super) batch: Option<String>,
    pub(super) undoes: Option<String>,
    /// Whether the batch that it undoes is an undo.
    #[serde(default, rename = "redo", skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_redo: bool,
    /// When the batch was carried out, in milliseconds since 1970; where it is not said, by the name of the entry.
    #[serde(default)]
    pub(super) time: Option<u64>,
    /// What the age clock showed then, in milliseconds; earlier versions did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) age: Option<u64>,
    /// What it was called, and how it was applied; earlier versions did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<Summary>,
    pub(super) files: Vec<PastFile>,
    /// Parents first.
    #[serde(default)]
    pub(super) dirs: Vec<PastDir>,
}

/// Compressed bytes, one after the other, as long as they are not too many.
struct Packed {
    blob: Vec<u8>,
    limit: u64,
    is_over: bool,
}

impl Packed {
    fn push(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.is_over {
            return None;
        }
        let packed = lz4_flex::compress_prepend_size(bytes);
        self.blob.extend_from_slice(&packed);
        self.is_over = self.blob.len() as u64 > self.limit;
        Some(packed.len())
    }
}

/// The entry of a batch with this head, once it has the files and directories of the changes: in at most `limit` bytes, and
/// whether it has what it takes to undo the batch. If that would take more, it keeps the head alone.
pub(super) fn encode(workspace: &Workspace, changes: &[Change<'_>], head: Head, limit: u64) -> (Vec<u8>, bool) {
    let mut packed = Packed { blob: Vec::new(), limit, is_over: false };
    let root = |index| workspace.root(index).map_or_else(PathBuf::new, |root| root.path().to_owned());
    let files = changes.iter().map(|change| past_file(change, root(change.place.root), &mut packed)).collect();
    let dirs = missing_dirs(changes.iter().flat_map(Change::places)).into_iter();
    let dirs = dirs.map(|dir| PastDir { root: root(dir.root), parent: dir.parent, name: dir.name }).collect();
    let mut head = Head { files, dirs, ..head };
    let bytes = sealed(&head, packed.blob);
    if !packed.is_over && bytes.len() as u64 <= limit {
        return (bytes, true);
    }
    for file in &mut head.files {
        file.before.iter_mut().for_each(|before| before.packed = None);
        file.after.iter_mut().for_each(|after| after.packed = None);
    }
    (sealed(&head, Vec::new()), false)
}

fn past_file(change: &Change<'_>, root: PathBuf, packed: &mut Packed) -> PastFile {
    let (content, moved_to) = match change.becomes {
        Becomes::Content(content) => (Some(content), None),
        Becomes::Moved(to, content) => (Some(content), Some(to.path.to_string())),
        Becomes::Nothing => (None, None),
    };
    let old = change.original.map_or(&[][..], |original| original.bytes.as_slice());
    let new = content.map(|content| (content, content.bytes.bytes(), content.bytes.edit_of(old)));
    let passages =
        new.as_ref().filter(|_| change.before.is_some()).and_then(|(_, new, edit)| passages(old, new, *edit));
    let before = change.original.zip(change.before).map(|(original, digest)| PastBefore {
        digest: Hex(digest),
        attributes: original.attributes.clone(),
        packed: if passages.is_some() { Some(0) } else { packed.push(old) },
    });
    let after = new.as_ref().map(|(content, new, edit)| {
        let Ends { head, tail, between } = common_ends(old, new);
        let edit = edit.filter(|edit| passages.is_none() && edited::length(edit) < between.len());
        let (is_passages, is_edits) = (passages.is_some(), edit.is_some());
        let bytes = passages.clone().or(edit.map(edited::encode)).map_or(Cow::Borrowed(between), Cow::Owned);
        let (digest, executable) = (Hex(content.digest), change.flips());
        PastAfter { digest, executable, is_edits, is_passages, head, tail, packed: packed.push(&bytes) }
    });
    PastFile { root, path: change.place.path.to_string(), moved_to, before, after }
}

/// The passages of a large file, encoded, if they are small beside the file before, compressed.
fn passages(old: &[u8], new: &[u8], edit: Option<&TextEdit>) -> Option<Vec<u8>> {
    // What may be shown of a file depends on how it begins, before and after: for a private key that has to be known.
    let is_key = |bytes: &[u8]| is_private_key("", bytes.get(..KEY_HEAD_BYTES).unwrap_or(bytes));
    if old.len() < LARGE || is_key(old) || is_key(new) {
        return None;
    }
    let Ends { head, tail, between } = common_ends(old, new);
    let edit = edit.cloned().or_else(|| TextEdit::new([(head..old.len() - tail, between)]).ok())?;
    let encoded = Passages::of(old, new, &edit)?.encode();
    let is_small = |whole: usize| encoded.len() < whole / SMALL_PART;
    // Nothing is compressed to less than this.
    let is_small = is_small(old.len() / MOST_PACKED) || is_small(lz4_flex::compress_prepend_size(old).len());
    is_small.then_some(encoded)
}

fn sealed(head: &Head, mut blob: Vec<u8>) -> Vec<u8> {
    // A head is texts and numbers: there is nothing in it that JSON could refuse.
    let mut body = serde_json::to_vec(head).unwrap_or_default();
    body.push(b'\n');
    body.append(&mut blob);
    let mut bytes = format!("{MAGIC} {}\n", sha256(&body)).into_bytes();
    bytes.append(&mut body);
    bytes
}

/// What two texts have in common.
struct Ends<'n> {
    /// So many bytes at their beginnings.
    head: usize,
    /// So many bytes at their ends, after those.
    tail: usize,
    /// What the new one has between them.
    between: &'n [u8],
}

fn common_ends<'n>(old: &[u8], new: &'n [u8]) -> Ends<'n> {
    /// As many bytes are compared at once.
    const STRIDE: usize = 64;
    let strides = old.chunks_exact(STRIDE).zip(new.chunks_exact(STRIDE));
    let head = STRIDE * strides.take_while(|(old, new)| old == new).count();
    let same = |(old, new): &(&u8, &u8)| old == new;
    let head = head + old.iter().skip(head).zip(new.iter().skip(head)).take_while(same).count();
    let (old, new) = (old.split_at(head).1, new.split_at(head).1);
    let strides = old.rchunks_exact(STRIDE).zip(new.rchunks_exact(STRIDE));
    let tail = STRIDE * strides.take_while(|(old, new)| old == new).count();
    let tail = tail + old.iter().rev().skip(tail).zip(new.iter().rev().skip(tail)).take_while(same).count();
    Ends { head, tail, between: new.split_at(new.len() - tail).0 }
}

/// What an entry is about, from its first two lines; `None` if it is damaged.
pub(super) fn decode_head(lines: &[Vec<u8>]) -> Option<Head> {
    let [_, head] = lines.first_chunk().filter(|[first, _]| first.starts_with(MAGIC.as_bytes()))?;
    let head: Head = serde_json::from_slice(head).ok()?;
    let files = || head.files.iter().flat_map(|file| std::iter::once(&file.path).chain(&file.moved_to));
    let is_bounded = files().all(|path| record_file::is_inner(path))
        && head.dirs.iter().all(|dir| record_file::is_entry(&dir.parent, &dir.name));
    is_bounded.then_some(head)
}

/// Why an entry does not give back what it keeps.
pub(super) enum Lack {
    /// Its bytes are not those that were written.
    Damaged,
    /// They were too many to be kept.
    TooMuch,
}

/// What an entry keeps of these files, in their order.
///
/// # Errors
/// When there is not all that is needed to undo the batch.
pub(super) fn decode(bytes: &[u8], files: &[PastFile]) -> Result<Vec<Kept>, Lack> {
    let mut blob = checked(bytes).ok_or(Lack::Damaged)?;
    if !is_whole(files) {
        return Err(Lack::TooMuch);
    }
    files.iter().map(|file| kept(file, &mut blob).ok_or(Lack::Damaged)).collect()
}

fn kept(file: &PastFile, blob: &mut &[u8]) -> Option<Kept> {
    match &file.after {
        Some(after) if after.is_passages && file.before.is_some() => {
            Some(Kept::Passages(Passages::decode(&unpack(blob, after.packed?)?)?))
        }
        _ => images(file, blob).map(Kept::Images),
    }
}

fn images(file: &PastFile, blob: &mut &[u8]) -> Option<Images> {
    let before = match &file.before {
        Some(kept) => Some(unpack(blob, kept.packed?)?),
        None => None,
    };
    let after = match &file.after {
        Some(kept) => {
            let new = unpack(blob, kept.packed?)?;
            let old = before.as_deref().unwrap_or_default();
            match kept.is_edits {
                true => Some(edited::decode(&new, old)?),
                false => {
                    let tail = old.len().checked_sub(kept.tail).and_then(|start| old.get(start..))?;
                    Some([old.get(..kept.head)?, &new, tail].concat())
                }
            }
        }
        None => None,
    };
    let is_right =
        before.as_deref().map(sha256) == file.digest_before() && after.as_deref().map(sha256) == file.digest_after();
    is_right.then_some(Images { before, after })
}

/// The compressed bytes of an entry whose checksum fits.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (head, body) = split_line(bytes)?;
    let stated = std::str::from_utf8(head).ok()?.strip_prefix(MAGIC)?.trim_start();
    if stated.parse() != Ok(sha256(body)) {
        return None;
    }
    split_line(body).map(|(_, blob)| blob)
}

fn unpack(blob: &mut &[u8], length: usize) -> Option<Vec<u8>> {
    let (packed, rest) = blob.split_at_checked(length)?;
    *blob = rest;
    // What is stated of the size is believed only as far as the bytes can come to it.
    let (stated, _) = packed.split_first_chunk()?;
    let stated = usize::try_from(u32::from_le_bytes(*stated)).ok()?;
    (stated <= packed.len().saturating_mul(MOST_PACKED)).then_some(())?;
    lz4_flex::decompress_size_prepended(packed).ok()
}
