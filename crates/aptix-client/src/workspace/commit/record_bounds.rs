//! What a record in the state directory may name. A checksum says that a record is as it was written, not who wrote it:
//! what leads out of a root, into what is protected, or beside our own files is never acted on.

use std::path::Path;

use aptix_model::id::Uuid;
use aptix_model::protection::{self, Protection};

use crate::workspace::commit::record::{FileStep, Record};
use crate::workspace::commit::staged_name;
use crate::workspace::commit::taken::Taken;

/// Whether a record of a commit names nothing but what a commit leaves.
pub(crate) fn holds(record: &Record) -> bool {
    let in_roots = |root: usize| root < record.roots.len();
    let dirs =
        || record.dirs.iter().chain(&record.emptied).all(|dir| in_roots(dir.root) && is_entry(&dir.parent, &dir.name));
    let files = || {
        let fits = |file: &FileStep| is_entry(&file.dir, &file.name) && staged_name::is_staged(&file.staged);
        record.files.iter().all(|file| in_roots(file.root) && fits(file))
    };
    let roots = || record.roots.iter().all(|mark| Path::new(&mark.path).is_absolute());
    let ids = || [&record.history, &record.batch].into_iter().flatten().all(|id| is_id(id));
    let session = || record.clipboards.as_ref().is_none_or(Taken::is_named);
    roots() && dirs() && files() && ids() && session()
}

/// Whether a name in a directory of a root is one that a batch may have.
pub(crate) fn is_entry(dir: &str, name: &str) -> bool {
    let path = if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
    !name.contains('/') && is_inner(&path)
}

/// Whether a path leads from a root to something in it that a batch may change.
pub(crate) fn is_inner(path: &str) -> bool {
    let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    path.split('/').all(is_plain) && protection::of(path) != Some(Protection::Protected)
}

fn is_id(text: &str) -> bool {
    Uuid::try_parse(text).is_ok_and(|id| id.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_in_a_root_is_inner() {
        for path in ["a", "a/b", ".env", "a b/c:d", ".github/x", "..a/b."] {
            assert!(is_inner(path), "{path}");
        }
        for path in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "../a",
            "a/../b",
            "a/./b",
            "a/..",
            "a\0b",
            ".git/config",
            "a/.GIT/x",
        ] {
            assert!(!is_inner(path), "{path:?}");
        }
        assert!(is_entry("", "a") && is_entry("a/b", "c"));
        assert!(!is_entry("", "a/b") && !is_entry("a", "") && !is_entry("a", "..") && !is_entry("..", "a"));
        assert!(!is_entry("a/", "b") && !is_entry(".git", "config") && !is_entry("/a", "b"));
    }
}
