//! Trees and diffs without what line ends and byte order marks say: all lines end with a newline, and none begins with a mark.
//! What makes an empty line at the end of a file is such an end too.

use crate::memory::{File, Tree};

const MARK: &[u8] = b"\xef\xbb\xbf";

/// A tree with level files.
pub(crate) fn tree(tree: &Tree) -> Tree {
    let file = |file: &File| File { bytes: bytes(&file.bytes), is_executable: file.is_executable };
    tree.iter().map(|(path, found)| (path.clone(), file(found))).collect()
}

/// A level tree without blank lines at the ends of its files.
pub(crate) fn trimmed(tree: &Tree) -> Tree {
    let file = |file: &File| {
        let end = file.bytes.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1);
        File { bytes: file.bytes[..end].to_vec(), is_executable: file.is_executable }
    };
    tree.iter().map(|(path, found)| (path.clone(), file(found))).collect()
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
