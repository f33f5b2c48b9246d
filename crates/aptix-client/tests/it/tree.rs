//! Everything there is beneath a directory: names, types, modes, bytes, link targets.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// One thing in a tree.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    File { mode: u32, bytes: Vec<u8> },
    Dir { mode: u32 },
    Link { target: String },
    Other { kind: u32 },
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { mode, bytes } => {
                let shown = &bytes[..bytes.len().min(2000)];
                write!(f, "file {mode:o} of {} bytes {}", bytes.len(), shown.escape_ascii())
            }
            Self::Dir { mode } => write!(f, "directory {mode:o}"),
            Self::Link { target } => write!(f, "link to {target}"),
            Self::Other { kind } => write!(f, "other {kind:o}"),
        }
    }
}

/// A whole tree, by path with `/`; names that are no UTF-8 are shown escaped.
pub(crate) type Tree = BTreeMap<String, Entry>;

/// Reads a tree. Follows no link and opens nothing but regular files.
pub(crate) fn read(top: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut open = vec![(top.to_owned(), String::new())];
    while let Some((dir, prefix)) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            let name = name.to_str().map_or_else(|| name.as_encoded_bytes().escape_ascii().to_string(), str::to_owned);
            let name = format!("{prefix}{name}");
            let metadata = entry.path().symlink_metadata().unwrap();
            let mode = metadata.permissions().mode() & 0o7777;
            let found = if metadata.is_dir() {
                open.push((entry.path(), format!("{name}/")));
                Entry::Dir { mode }
            } else if metadata.is_file() {
                Entry::File { mode, bytes: std::fs::read(entry.path()).unwrap() }
            } else if metadata.is_symlink() {
                Entry::Link { target: std::fs::read_link(entry.path()).unwrap().to_str().unwrap().to_owned() }
            } else {
                Entry::Other { kind: metadata.mode() & 0o170_000 }
            };
            tree.insert(name, found);
        }
    }
    tree
}

/// Compares two trees, entry by entry.
#[track_caller]
pub(crate) fn assert_same(found: &Tree, expected: &Tree, what: &str) {
    if found == expected {
        return;
    }
    let names: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    let mut differences = String::new();
    for name in names {
        let (found, expected) = (found.get(name), expected.get(name));
        if found != expected {
            differences += &format!("{name}\n  expected {expected:?}\n  found    {found:?}\n");
        }
    }
    panic!("{what}: the tree is not as expected\n{differences}");
}
