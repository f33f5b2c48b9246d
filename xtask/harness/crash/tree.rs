//! Everything there is beneath a directory.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// One thing in a tree.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A file, its bytes, and whether it can be run.
    File { bytes: Vec<u8>, runs: bool },
    /// A directory.
    Dir,
    /// Anything else; links with where they lead.
    Other(String),
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { bytes, runs } => {
                let shown = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
                write!(f, "{} bytes {:?}", bytes.len(), String::from_utf8_lossy(shown))?;
                if *runs { write!(f, " that can be run") } else { Ok(()) }
            }
            Self::Dir => write!(f, "a directory"),
            Self::Other(what) => write!(f, "{what}"),
        }
    }
}

/// A whole tree, by path with `/`.
pub(crate) type Tree = BTreeMap<String, Entry>;

/// Reads a tree, following no link.
pub(crate) fn read(top: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut open = vec![(top.to_owned(), String::new())];
    while let Some((dir, prefix)) = open.pop() {
        for entry in std::fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
            let entry = entry?;
            let (path, name) = (entry.path(), format!("{prefix}{}", entry.file_name().to_string_lossy()));
            let metadata = path.symlink_metadata().with_context(|| format!("cannot look at {}", path.display()))?;
            let found = if metadata.is_dir() {
                open.push((path, format!("{name}/")));
                Entry::Dir
            } else if metadata.is_file() {
                let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                Entry::File { bytes, runs: metadata.permissions().mode() & 0o111 != 0 }
            } else if metadata.is_symlink() {
                Entry::Other(format!("a link to {}", std::fs::read_link(&path)?.display()))
            } else {
                Entry::Other("something that is no file".to_owned())
            };
            tree.insert(name, found);
        }
    }
    Ok(tree)
}

/// Makes a directory as a tree says.
pub(crate) fn lay_out(place: &Path, tree: &Tree) -> Result<()> {
    std::fs::create_dir_all(place)?;
    for (path, entry) in tree {
        let path = place.join(path);
        match entry {
            Entry::Dir => std::fs::create_dir_all(&path)?,
            Entry::File { bytes, runs } => {
                if let Some(parent) = path.parent() {
                    std::fs::create_dir_all(parent)?;
                }
                std::fs::write(&path, bytes)?;
                if *runs {
                    let mode = path.metadata()?.permissions().mode();
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode | (mode & 0o444) >> 2))?;
                }
            }
            Entry::Other(kind) => anyhow::bail!("{} cannot be made: {kind}", path.display()),
        }
    }
    Ok(())
}

/// Checks that nothing of a commit is left in the state directory: what is there is locks, directories, the names of
/// batches that have ended, and what it takes to undo them.
pub(crate) fn check_state(state: &Path) -> Result<()> {
    let left = read(state)?.into_iter().filter(|(name, entry)| {
        let is_history = name.contains("/refused/") || (name.contains("/history/") && !name.ends_with(".draft"));
        let is_displaced = name.contains("/displaced/") && !name.ends_with(".part");
        let own = ["lock", "/outbox/log", "/index/history-1"];
        let is_own = own.iter().any(|end| name.ends_with(end)) || name.contains("/unfinished/");
        let is_kept = is_own || name.contains("/ended/") || is_history || is_displaced;
        !is_kept && *entry != Entry::Dir
    });
    let left: Vec<_> = left.collect();
    ensure!(left.is_empty(), "left in the state directory: {left:?}");
    Ok(())
}
