//! The one convention of paths: from the workspace root down, with forward slashes. A path from the root of the file system
//! that leads into a root of the workspace is taken for the path in that root; any other one is refused like a bad path.

use crate::batch::{Batch, ContextPatch, FileEdit, FilePatch, Target};
use crate::failure::Failure;
use crate::path::{WorkspacePath, document_spelling, fold};
use crate::question::Located;
use crate::reason::Reason;

/// Finds the file that a path leads to.
pub type Locate<'f> = dyn FnMut(&str) -> Option<Located> + 'f;

/// The directories of this machine that are roots of the workspace; none where the caller is on another machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Roots(Vec<Root>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Root {
    name: String,
    directories: Vec<String>,
}

impl Roots {
    /// Adds a root: its name, and the absolute paths that it is known by.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, directories: impl IntoIterator<Item = String>) -> Self {
        let directories = directories.into_iter().map(|path| path.trim_end_matches('/').to_owned());
        self.0.push(Root { name: name.into(), directories: directories.filter(|path| !path.is_empty()).collect() });
        self
    }

    /// The root and the path in it of an absolute path, empty for the root itself.
    fn within<'t>(&self, text: &'t str) -> Option<(&Root, &'t str)> {
        self.0.iter().find_map(|root| {
            let mut directories = root.directories.iter();
            let rest = directories.find_map(|directory| match text.strip_prefix(directory.as_str())? {
                "" => Some(""),
                rest => rest.strip_prefix('/'),
            })?;
            Some((root, rest))
        })
    }

    /// A path as a model wrote it, in the spelling of documents, with its root's name in front where there are several; empty for
    /// the only root itself.
    #[must_use]
    pub fn spelled(&self, text: &str) -> String {
        let text = document_spelling(text);
        let Some((root, rest)) = self.within(&text) else { return text };
        match (self.0.as_slice(), rest) {
            ([_], rest) => rest.to_owned(),
            (_, "") => root.name.clone(),
            (_, rest) => format!("{}/{rest}", root.name),
        }
    }

    /// Parses the path of a file.
    ///
    /// # Errors
    /// When it is no valid path of the workspace.
    pub(super) fn file(&self, text: &str) -> Result<WorkspacePath, Failure> {
        WorkspacePath::new(&self.spelled(text)).map_err(|error| {
            Failure::new(Reason::InvalidPath, format!("{error}"))
                .detail(error.detail())
                .field("path")
                .hint("give the path from the workspace's root down, such as src/main.rs")
        })
    }

    /// Parses the path of a directory; `None` for the root: an empty path, a dot, or nothing.
    ///
    /// # Errors
    /// When it is no valid path of the workspace.
    pub(super) fn directory(&self, text: Option<&str>) -> Result<Option<WorkspacePath>, Failure> {
        let text = self.spelled(text.unwrap_or_default());
        let text = text.trim_end_matches('/');
        if matches!(text, "" | ".") { Ok(None) } else { self.file(text).map(Some) }
    }

    /// The file that an absolute path leads to, if it leads into a root.
    #[must_use]
    pub fn locate(&self, text: &str) -> Option<Located> {
        let (root, rest) = self.within(text)?;
        Some(Located { path: self.spelled(text), doc_path: format!("{}/{}", root.name, fold(rest)) })
    }
}

/// Gives the files of a batch their paths in the workspace: each that `locate` finds, as it finds it.
pub(super) fn relocate(batch: &mut Batch, locate: &mut Locate<'_>) {
    batch.files.iter_mut().for_each(|file| relocate_file(file, locate));
}

/// Gives a file its path in the workspace.
pub(super) fn relocate_file(file: &mut FilePatch, locate: &mut Locate<'_>) {
    let mut spell = |path: &mut String| {
        let text = document_spelling(path);
        *path = locate(&text).map_or(text, |found| found.path);
    };
    if let FileEdit::ContextPatch(ContextPatch { move_to: Some(path), .. }) = &mut file.edit {
        spell(path);
    }
    match &mut file.target {
        Target::Path(path) => spell(path),
        Target::DocPath(key) => {
            if let Some(found) = locate(key) {
                *key = found.doc_path;
            }
        }
        // Names of diffs are relative to the directory that the diff is applied in.
        Target::Readings(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_path_inside_a_root_is_the_path_in_it() {
        let roots = Roots::default().with("ws", ["/srv/ann/ws".to_owned(), "/data/ws/".to_owned()]);
        for (text, expected) in [
            ("/srv/ann/ws/src/a.rs", "src/a.rs"),
            ("/data/ws/a", "a"),
            ("/srv/ann/ws", ""),
            ("/srv/ann/ws2/a", "/srv/ann/ws2/a"),
            ("/etc/passwd", "/etc/passwd"),
            ("./src\\a.rs", "src/a.rs"),
            ("/srv/ann/ws/../x", "../x"),
        ] {
            assert_eq!(roots.spelled(text), expected, "{text}");
        }
        assert_eq!(roots.file("/data/ws/a").unwrap().as_str(), "a");
        assert!(roots.file("/srv/ann/ws/../x").is_err());
        assert_eq!(roots.directory(Some("/data/ws/")).unwrap(), None);
        assert!(Roots::default().file("/data/ws/a").is_err());
        let linked = Roots::default().with("ws", ["/srv/ws".to_owned(), "/srv/ws-link".to_owned()]);
        assert_eq!(linked.spelled("/srv/ws-link/a"), "a");
        let both = roots.with("lib", ["/srv/lib".to_owned()]);
        for (text, expected) in [("/srv/lib/a.rs", "lib/a.rs"), ("/data/ws/", "ws"), ("lib/a.rs", "lib/a.rs")] {
            assert_eq!(both.spelled(text).trim_end_matches('/'), expected, "{text}");
        }
    }
}
