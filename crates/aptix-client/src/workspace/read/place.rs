//! Where a file of a batch is, or would be, and which file patches claim it.

use std::collections::HashMap;

use aptix_model::path::{WorkspacePath, fold};
use aptix_model::protection;

/// Where a file of a batch is, or would be.
#[derive(Clone, Debug)]
pub struct Place {
    /// The path in its root, as the author named it, in its real case.
    pub path: WorkspacePath,
    /// The same path as reports have it: with the root's name in front where the workspace has several.
    pub reported: WorkspacePath,
    /// The lower-case key: the root's name and the path.
    pub doc_path: String,
    /// Which root of the workspace, from 0.
    pub(crate) root: usize,
    /// The real path of the file's directory in that root, links expanded, `""` for the root itself.
    pub(crate) dir: String,
    /// The real name in it.
    pub(crate) name: String,
    /// How many of the directory's last components do not exist yet.
    pub(crate) missing: usize,
    /// The device and inode of the file that is there.
    pub(crate) found: Option<(u64, u64)>,
    /// Whether the file, or a link on the way to it, has a name that a person has to approve.
    pub(crate) sensitive: bool,
    /// The real paths of the links on the way to it.
    pub(crate) links: Vec<String>,
}

impl Place {
    /// Records that a file patch claims this place; returns the earlier one that claims the same file, if both cannot.
    pub(crate) fn same_file_as(&self, seen: &mut Claims, index: usize, claim: Claim) -> Option<usize> {
        let by_path = Same::Path(self.root, fold(&self.real()));
        let mut earlier = None;
        for key in [Some(by_path), self.found.map(Same::Inode)].into_iter().flatten() {
            let claims = seen.entry(key).or_default();
            let other = claims.iter().find(|(_, other)| !other.goes_with(claim)).map(|(index, _)| *index);
            claims.push((index, claim));
            earlier = earlier.or(other);
        }
        earlier
    }

    /// Where in the workspace.
    pub(crate) fn at(&self) -> At<'_> {
        (self.root, &self.dir, &self.name)
    }

    /// Which root of the workspace, from 0.
    pub(crate) const fn root(&self) -> usize {
        self.root
    }

    /// Whether the file would be a new dot-file at a root, or in a new dot-directory there, that a tool may execute.
    pub(crate) fn is_new_dot_name(&self) -> bool {
        let depth = self.dir.split('/').filter(|name| !name.is_empty()).count();
        self.found.is_none() && self.missing == depth && protection::is_dot_name(&self.real())
    }

    /// The real path in the root.
    pub(crate) fn real(&self) -> String {
        join(&self.dir, &self.name)
    }
}

/// A root, and the real path of a directory and a name in it.
pub(crate) type At<'p> = (usize, &'p str, &'p str);

/// What a file patch does at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claim {
    /// It renames the file that is there.
    Leaves,
    /// It renames a file to there.
    Arrives,
    /// It does something else.
    Stays,
}

impl Claim {
    /// Whether two file patches can claim one place.
    const fn goes_with(self, other: Self) -> bool {
        matches!((self, other), (Self::Leaves, Self::Arrives) | (Self::Arrives, Self::Leaves))
    }
}

/// The file patches that claim each file.
pub(crate) type Claims = HashMap<Same, Vec<(usize, Claim)>>;

/// What makes two places one file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Same {
    Path(usize, String),
    Inode((u64, u64)),
}

/// The path of a name in a directory, `""` for the top.
pub(crate) fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}
