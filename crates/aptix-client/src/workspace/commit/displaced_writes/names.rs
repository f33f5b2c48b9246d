//! The names of displaced files: they say what a file held and what it was called.

use aptix_model::digest::Sha256Digest;

use crate::workspace::commit::record::FileStep;

/// Bytes of the longest name that file systems take.
const NAME_BYTES: usize = 255;
/// How the name of a displaced file ends that stays in the directory of its file.
const BESIDE: &str = ".aptix-displaced";

/// The name of a displaced file: what no other has, the digest of what it held, and the name of the file, cut if need be.
pub(super) fn name_of(file: &FileStep, digest: Sha256Digest) -> String {
    let unique = file.staged.trim_matches('.').split('.').next().unwrap_or_default();
    let mark = format!("{unique}.{digest}-");
    let room = NAME_BYTES.saturating_sub(mark.len());
    format!("{mark}{}", file.name.split_at(file.name.floor_char_boundary(room)).0)
}

/// The name of a displaced file that stays in the directory of its file.
pub(super) fn beside(name: &str) -> String {
    let unique = name.split('.').next().unwrap_or_default();
    format!(".{unique}{BESIDE}")
}

/// The digest in the name of a displaced file, and what the file was called.
pub(super) fn parse_name(name: &str) -> Option<(Sha256Digest, &str)> {
    let (digest, name) = name.split_once('.')?.1.split_once('-')?;
    Some((digest.parse().ok()?, name))
}
