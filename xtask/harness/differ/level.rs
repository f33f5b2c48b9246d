//! Trees and diffs without what line ends and byte order marks say: all lines end with a newline, and none begins with a mark.
//! What makes an empty line at the end of a file is such an end too.

use crate::memory::Tree;

const MARK: &[u8] = b"\xef\xbb\xbf";

/// A tree where some files are level.
pub(crate) fn tree(tree: &Tree, is_level: impl Fn(&str) -> bool) -> Tree {
    changed(tree, is_level, bytes)
}

/// A tree where some files have no blank lines at their ends.
pub(crate) fn trimmed(tree: &Tree, is_level: impl Fn(&str) -> bool) -> Tree {
    changed(tree, is_level, |bytes| {
        let end = bytes.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1);
        bytes[..end].to_vec()
    })
}

fn changed(tree: &Tree, is_level: impl Fn(&str) -> bool, change: impl Fn(&[u8]) -> Vec<u8>) -> Tree {
    let mut tree = tree.clone();
    let files = tree.iter_mut().filter(|(path, _)| is_level(path));
    files.for_each(|(_, file)| file.bytes = change(&file.bytes));
    tree
}

fn bytes(bytes: &[u8]) -> Vec<u8> {
    bytes.split_inclusive(|byte| *byte == b'\n').flat_map(line).collect()
}

/// The lines of a hunk, level.
pub(crate) fn hunk(lines: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let lines = lines.iter().filter(|line| !line.starts_with(b"\\")).map(|line| line.split_at(1));
    lines.map(|(sign, text)| [sign, &line(text)].concat()).collect()
}

/// A line that ends with a newline, and begins with no mark.
fn line(line: &[u8]) -> Vec<u8> {
    let text = line.strip_prefix(MARK).unwrap_or(line);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    [text.strip_suffix(b"\r").unwrap_or(text), b"\n"].concat()
}
