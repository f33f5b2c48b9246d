//! Lists of paths in a policy file: patterns, and which of them a file matches.

use std::path::PathBuf;

use aptix_model::path::fold;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::Named;

/// The lists of one policy file.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// Files that no batch touches.
    pub deny: Patterns,
    /// Files that a person has to agree to.
    pub ask: Patterns,
    /// Files that nobody is asked about.
    pub allow: Patterns,
}

/// The lists of one policy file, and what they are about.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// The root whose files they are about, from 0; every root when absent.
    pub(super) root: Option<usize>,
    /// Where they stand, to be told.
    pub(super) file: PathBuf,
    pub(super) lists: Lists,
}

/// An entry of a list that a file matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Which list.
    pub list: &'static str,
    /// The pattern, as it was written.
    pub pattern: String,
    /// The policy file.
    pub file: PathBuf,
}

impl std::fmt::Display for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} has it under {} as {:?}", self.file.display(), self.list, self.pattern)
    }
}

impl Rules {
    pub(super) fn denied(&self, file: Named<'_>) -> Option<Listed> {
        self.listed("deny", &self.lists.deny, file)
    }

    pub(super) fn asked(&self, file: Named<'_>) -> Option<Listed> {
        self.listed("ask", &self.lists.ask, file)
    }

    /// Whether the file is allowed by each of its names.
    pub(super) fn allows(&self, file: Named<'_>) -> bool {
        file.names().all(|path| self.lists.allow.find(path).is_some())
    }

    fn listed(&self, list: &'static str, patterns: &Patterns, file: Named<'_>) -> Option<Listed> {
        let pattern = file.names().find_map(|path| patterns.find(path))?;
        Some(Listed { list, pattern: pattern.to_owned(), file: self.file.clone() })
    }
}

/// Patterns of paths in a root. Case and Unicode normal form make no difference.
///
/// One without a slash, other than at its end, is about names in every directory; any other is about paths from the root
/// on. Whatever a pattern names, it names all that is in it as well. `*`, `?` and `[...]` stay in one name, `**` does not.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    written: Vec<String>,
    /// [`FORMS`] for each pattern.
    globs: GlobSet,
}

/// Globs that one pattern becomes.
const FORMS: usize = 2;

/// Why a text is no pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatternError {
    /// There is nothing in it.
    #[error("the pattern {0:?} names nothing")]
    Empty(String),
    /// It begins with `!`, which elsewhere means that it is an exception.
    #[error("{0:?} begins with \"!\"; there are no exceptions from a list: write narrower patterns")]
    Exception(String),
    /// It is not well-formed.
    #[error("{pattern:?} is no pattern: {why}")]
    Glob {
        /// As it was written.
        pattern: String,
        /// What is wrong.
        why: String,
    },
}

impl Patterns {
    /// Reads patterns.
    ///
    /// # Errors
    /// The position of the first that is none, and why.
    pub fn new<S: AsRef<str>>(written: &[S]) -> Result<Self, (usize, PatternError)> {
        let mut globs = GlobSetBuilder::new();
        for (index, pattern) in written.iter().map(AsRef::as_ref).enumerate() {
            let refused = |why: globset::Error| {
                let why = why.kind().to_string();
                (index, PatternError::Glob { pattern: pattern.to_owned(), why })
            };
            for form in forms(pattern).map_err(|error| (index, error))? {
                let glob = GlobBuilder::new(&form).literal_separator(true).backslash_escape(true).build();
                globs.add(glob.map_err(refused)?);
            }
        }
        let globs = globs.build().map_err(|error| {
            let pattern = error.glob().unwrap_or_default().to_owned();
            (0, PatternError::Glob { pattern, why: error.kind().to_string() })
        })?;
        Ok(Self { written: written.iter().map(|pattern| pattern.as_ref().to_owned()).collect(), globs })
    }

    /// The first pattern that a path matches.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&str> {
        if self.written.is_empty() {
            return None;
        }
        let first = self.globs.matches(fold(path)).into_iter().min()?;
        self.written.get(first / FORMS).map(String::as_str)
    }
}

/// A pattern as globs: what it names, and what is in that.
fn forms(pattern: &str) -> Result<[String; FORMS], PatternError> {
    if pattern.starts_with('!') {
        return Err(PatternError::Exception(pattern.to_owned()));
    }
    let named = pattern.strip_suffix('/').unwrap_or(pattern);
    let in_every_directory = if named.contains('/') { "" } else { "**/" };
    let named = named.strip_prefix('/').unwrap_or(named);
    if named.is_empty() {
        return Err(PatternError::Empty(pattern.to_owned()));
    }
    let named = format!("{in_every_directory}{}", fold(named));
    Ok([named.clone(), format!("{named}/**")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_names_anywhere_or_paths_from_the_root_on() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("*.lock", &["Cargo.lock", "a/b/yarn.LOCK", "x.lock/in"], &["lock", "a.lock.txt"]),
            ("secrets", &["secrets", "a/Secrets/b/c", "SECRETS/x"], &["secrets.txt", "a/my-secrets"]),
            ("secrets/", &["secrets/x", "a/secrets/x"], &["secret/x"]),
            ("/Makefile", &["makefile"], &["sub/Makefile"]),
            ("src/*.rs", &["src/a.rs", "SRC/A.RS"], &["src/a/b.rs", "x/src/a.rs"]),
            ("src/**", &["src/a", "src/a/b"], &["srcs/a"]),
            ("src/**/x.rs", &["src/x.rs", "src/a/b/x.rs"], &["x.rs"]),
            ("docs/[a-c]?.md", &["docs/a1.md", "docs/B2.md"], &["docs/d1.md", "docs/a.md"]),
            ("caf\u{e9}", &["cafe\u{301}/x", "CAF\u{c9}"], &["cafe"]),
            ("**", &["a", "a/b"], &[]),
            ("a\\*b", &["a*b"], &["axb"]),
            ("{a,b}/x", &["a/x", "b/x"], &["c/x"]),
        ];
        for (pattern, matched, unmatched) in cases {
            let patterns = Patterns::new(&["never-this", pattern]).unwrap();
            for path in *matched {
                assert_eq!(patterns.find(path), Some(*pattern), "{pattern:?} and {path:?}");
            }
            for path in *unmatched {
                assert_eq!(patterns.find(path), None, "{pattern:?} and {path:?}");
            }
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for pattern in ["", "/", "!x", "a[", "a{b"] {
            assert_eq!(Patterns::new(&["x", pattern]).unwrap_err().0, 1, "{pattern:?}");
        }
    }
}
