//! The files of a small project: laid out on a disk, read back, and compared byte by byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context, Result};

/// The mode of a file that is not executable, as the harness lays it out and as a new file gets it here.
pub(crate) const PLAIN: u32 = 0o644;

/// A regular file, or another kind of entry at its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) bytes: Vec<u8>,
    /// Permission bits; 0 for what is no regular file.
    pub(crate) mode: u32,
}

impl Entry {
    pub(crate) const fn plain(bytes: Vec<u8>) -> Self {
        Self { bytes, mode: PLAIN }
    }
}

/// Every file of a project, by its path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, Entry>,
    /// Directories that hold nothing.
    pub(crate) empty: BTreeSet<String>,
}

impl Tree {
    /// Writes the files into a directory that does not exist yet.
    pub(crate) fn lay_out(&self, top: &Path) -> Result<()> {
        fs::create_dir(top).with_context(|| format!("cannot make {}", top.display()))?;
        for (path, entry) in &self.files {
            let file = top.join(path);
            let directory = file.parent().unwrap_or(top);
            fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
            fs::write(&file, &entry.bytes).with_context(|| format!("cannot write {}", file.display()))?;
            fs::set_permissions(&file, fs::Permissions::from_mode(entry.mode))
                .with_context(|| format!("cannot set the mode of {}", file.display()))?;
        }
        Ok(())
    }

    /// Reads the files beneath a directory. Follows no link.
    pub(crate) fn read(top: &Path) -> Result<Self> {
        let mut tree = Self::default();
        let mut open = vec![(top.to_owned(), String::new())];
        while let Some((directory, prefix)) = open.pop() {
            let mut is_empty = true;
            let listed = fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))?;
            for entry in listed {
                is_empty = false;
                let entry = entry?;
                let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
                let metadata = entry.path().symlink_metadata()?;
                if metadata.is_dir() {
                    open.push((entry.path(), format!("{path}/")));
                    continue;
                }
                let found = match metadata.is_file() {
                    true => Entry { bytes: fs::read(entry.path())?, mode: metadata.mode() & 0o7777 },
                    false => Entry { bytes: b"no regular file".to_vec(), mode: 0 },
                };
                tree.files.insert(path, found);
            }
            if is_empty && !prefix.is_empty() {
                tree.empty.insert(prefix);
            }
        }
        Ok(tree)
    }

    /// Paths whose files differ between two trees.
    pub(crate) fn changed<'a>(&'a self, other: &'a Self) -> BTreeSet<&'a str> {
        let paths = self.files.keys().chain(other.files.keys());
        paths.filter(|path| self.files.get(*path) != other.files.get(*path)).map(String::as_str).collect()
    }

    /// How this tree, which was `before`, differs from the expected one; nothing if it does not. A directory that a
    /// deletion emptied may stay; one that is new must hold a file.
    pub(crate) fn difference(&self, expected: &Self, before: &Self) -> Option<String> {
        let mut report = String::new();
        for path in self.changed(expected) {
            let _ = write!(report, "{path}:");
            match (expected.files.get(path), self.files.get(path)) {
                (None, Some(found)) => {
                    let _ = writeln!(report, " must not exist, and holds\n{}", quoted(&found.bytes));
                }
                (Some(_), None) => report.push_str(" is missing\n"),
                (Some(expected), Some(found)) if expected.bytes == found.bytes => {
                    let _ = writeln!(report, " has mode {:o}, expected {:o}", found.mode, expected.mode);
                }
                (Some(expected), Some(found)) => report.push_str(&line_difference(&expected.bytes, &found.bytes)),
                (None, None) => {}
            }
        }
        for directory in &self.empty {
            let was_there = before.files.keys().any(|path| path.starts_with(directory.as_str()));
            if !was_there {
                let _ = writeln!(report, "{directory} is a new directory and empty");
            }
        }
        (!report.is_empty()).then_some(report)
    }
}

fn line_difference(expected: &[u8], found: &[u8]) -> String {
    let split = |bytes: &[u8]| -> Vec<String> {
        bytes.split_inclusive(|byte| *byte == b'\n').map(|line| line.escape_ascii().to_string()).collect()
    };
    let (expected, found) = (split(expected), split(found));
    let same = expected.iter().zip(&found).take_while(|(expected, found)| expected == found).count();
    let rest = expected.iter().rev().zip(found.iter().rev());
    let longest = expected.len().min(found.len()) - same;
    let tail = rest.take(longest).take_while(|(expected, found)| expected == found).count();
    let mut report = format!(" differs from line {}\n", same + 1);
    let mut show = |sign: char, lines: &[String]| {
        for line in lines.get(same..lines.len() - tail).unwrap_or_default().iter().take(20) {
            let _ = writeln!(report, "    {sign} {line}");
        }
    };
    show('-', &expected);
    show('+', &found);
    report
}

fn quoted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().take(12).map(|line| format!("    | {line}\n")).collect()
}
