//! Lists of paths in a policy file: patterns, and which of them a file matches.

use std::path::PathBuf;

use aptix_model::path::{compose, fold, lowercase};
use regex::RegexSet;

use super::glob::{self, GlobError};
use crate::workspace::read::place::Place;

/// Patterns that are looked for together: many more at once take many times as long.
const TOGETHER: usize = 64;

/// Patterns of one policy file, in all its lists.
const PATTERNS: usize = 1000;

/// Bytes of one pattern: no path has more.
const PATTERN_BYTES: usize = 4096;

/// Bytes of the regular expressions that the patterns of one policy file come to.
const EXPRESSION_BYTES: usize = 128 << 10;

/// Repetitions in them, which is what makes a path take long: `*.lock` has three, with the directories above and below.
const REPETITIONS: usize = 3000;

/// A file as policy looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    /// Which root, from 0.
    pub root: usize,
    /// Its path in the root as the author named it, in its real case.
    pub path: &'a str,
    /// Its real path in the root, links expanded.
    pub real: &'a str,
}

impl<'a> Named<'a> {
    /// The file at a place, whose real path is `real`.
    pub(crate) fn of(place: &'a Place, real: &'a str) -> Self {
        Self { root: place.root(), path: place.path.as_str(), real }
    }

    /// Every name it has.
    pub(super) fn names(self) -> impl Iterator<Item = &'a str> {
        std::iter::once(self.path).chain(Some(self.real).filter(|real| *real != self.path))
    }
}

/// The lists of one policy file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    /// Files that no batch touches.
    pub(crate) deny: Patterns,
    /// Files that a person has to agree to.
    pub(crate) ask: Patterns,
    /// Files that need no agreement.
    pub(crate) allow: Patterns,
}

/// Which files a server may read, as one policy file says.
#[derive(Clone, Debug)]
pub(crate) enum Reads {
    /// Every file that nothing else withholds.
    All,
    /// No file.
    None,
    /// Those that match.
    Matching(Patterns),
}

/// What one policy file says about paths.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// The root whose files it is about, from 0; every root when absent.
    pub(super) root: Option<usize>,
    /// The policy file, named in messages.
    pub(super) file: PathBuf,
    pub(super) lists: Lists,
    pub(super) reads: Option<Reads>,
}

/// An entry of a list that a file matches.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} has it under {list} as {pattern:?}", file.display())]
pub struct Listed {
    /// Which list.
    pub list: &'static str,
    /// The pattern, as it was written.
    pub pattern: String,
    /// The policy file.
    pub file: PathBuf,
}

impl Rules {
    pub(super) fn is_about(&self, root: usize) -> bool {
        self.root.is_none_or(|own| own == root)
    }

    /// Whether the file is allowed by each of its names.
    pub(super) fn allows(&self, file: Named<'_>) -> bool {
        file.names().all(|path| self.lists.allow.find(path).is_some())
    }

    /// Whether a server may not read the file.
    pub(super) fn closes(&self, file: Named<'_>) -> bool {
        match &self.reads {
            None | Some(Reads::All) => false,
            Some(Reads::None) => true,
            Some(Reads::Matching(patterns)) => !file.names().all(|path| patterns.find(path).is_some()),
        }
    }

    /// The entry of one of its lists that the file matches.
    pub(super) fn listed(&self, list: &'static str, patterns: &Patterns, file: Named<'_>) -> Option<Listed> {
        let pattern = file.names().find_map(|path| patterns.find(path))?;
        Some(Listed { list, pattern: pattern.to_owned(), file: self.file.clone() })
    }
}

/// Patterns of paths in a root. Case and Unicode normal form make no difference.
///
/// One without a slash, other than at its end, is about names in every directory; any other is about paths from the root
/// on. Whatever a pattern names, it names all that is in it as well. `*`, `?` and `[...]` stay in one name, `**` does not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns {
    written: Vec<String>,
    /// One for each pattern, in sets of [`TOGETHER`].
    expressions: Vec<RegexSet>,
}

/// What the patterns of one policy file may still take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    patterns: usize,
    expression_bytes: usize,
    repetitions: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { patterns: PATTERNS, expression_bytes: EXPRESSION_BYTES, repetitions: REPETITIONS }
    }
}

/// Why a text is no pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("{pattern:?} is no pattern: {source}")]
    Glob { pattern: String, source: GlobError },
    #[error("a pattern has at most {PATTERN_BYTES} bytes, this has {0}")]
    Long(usize),
    #[error("a policy file has at most {PATTERNS} patterns; write wider ones")]
    Many,
    #[error(
        "the patterns of a policy file come to at most {EXPRESSION_BYTES} bytes and {REPETITIONS} repetitions, and with \
         this one they are more; write fewer, shorter or simpler ones"
    )]
    Large,
    #[error("the patterns cannot be used: {0}; write fewer or shorter ones")]
    Size(String),
}

impl Patterns {
    /// Reads patterns, which take from `room`.
    ///
    /// # Errors
    /// The position of the first that is none or is one too many, and why.
    pub(crate) fn new<S: AsRef<str>>(written: &[S], room: &mut Room) -> Result<Self, (usize, PatternError)> {
        let written: Vec<_> = written.iter().map(|pattern| pattern.as_ref().to_owned()).collect();
        let mut expressions = Vec::new();
        for (index, pattern) in written.iter().enumerate() {
            room.patterns = room.patterns.checked_sub(1).ok_or((index, PatternError::Many))?;
            if pattern.len() > PATTERN_BYTES {
                return Err((index, PatternError::Long(pattern.len())));
            }
            let of_forms: Result<Vec<_>, _> = forms(pattern).iter().map(|form| glob::expression(form)).collect();
            let of_forms =
                of_forms.map_err(|source| (index, PatternError::Glob { pattern: pattern.clone(), source }))?;
            let expression = of_forms.join("|");
            let repetitions = expression.bytes().filter(|byte| *byte == b'*').count();
            let bytes = room.expression_bytes.checked_sub(expression.len());
            let left = bytes.zip(room.repetitions.checked_sub(repetitions));
            (room.expression_bytes, room.repetitions) = left.ok_or((index, PatternError::Large))?;
            expressions.push(expression);
        }
        let sets = expressions.chunks(TOGETHER).enumerate().map(|(set, expressions)| {
            RegexSet::new(expressions).map_err(|error| (set * TOGETHER, PatternError::Size(error.to_string())))
        });
        Ok(Self { expressions: sets.collect::<Result<_, _>>()?, written })
    }

    /// Whether there are no patterns.
    pub(crate) const fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// The first pattern that a path matches.
    pub(crate) fn find(&self, path: &str) -> Option<&str> {
        if self.written.is_empty() {
            return None;
        }
        let forms = forms(path);
        let first = self.expressions.iter().enumerate().find_map(|(index, set)| {
            let first = forms.iter().filter_map(|form| set.matches(form).iter().next()).min()?;
            Some(index * TOGETHER + first)
        })?;
        self.written.get(first).map(String::as_str)
    }
}

/// The forms in which paths and patterns are compared: folded, where one character may have become two; and, where that
/// may be so, each character by itself, as `?` counts them.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![fold(text)];
    if !text.is_ascii() {
        forms.push(lowercase(&compose(text)));
        forms.dedup();
    }
    forms
}

#[cfg(test)]
mod tests {
    use regex::RegexSetBuilder;

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
            ("{a,b{c,d}}", &["a", "x/bc/y", "bd"], &["b", "ac"]),
            ("./secrets/", &["secrets", "secrets/x"], &["a/secrets"]),
            ("infra//prod", &["infra/prod", "infra/prod/x"], &["prod"]),
            ("//vendor", &["vendor/x"], &["a/vendor"]),
            ("vendor//", &["vendor/x", "a/vendor/x"], &["vendors"]),
            ("a/./b", &["a/b"], &["a/x/b"]),
            ("**/", &["a", "a/b"], &[]),
            ("a/**/", &["a/b"], &["a", "b"]),
            ("a.b+c", &["a.b+c"], &["axb+c", "a.bbc"]),
            ("a**b", &["ab", "axb"], &["a/b"]),
            ("[!a]x", &["bx", "\u{e9}x"], &["ax", "x", "a/x/y"]),
            ("[]-]x", &["]x", "-x"], &["ax"]),
            ("[{,}]x", &["{x", ",x"], &["ax"]),
            // Characters, not bytes, whatever their form.
            ("caf?", &["caf\u{e9}", "cafe\u{301}", "caf\u{c9}/x"], &["caf", "cafee"]),
            ("caf[\u{e9}]", &["caf\u{e9}", "cafe\u{301}", "CAF\u{c9}"], &["cafe", "caf\u{e8}"]),
            ("[\u{c0}-\u{d6}]", &["\u{e9}", "e\u{301}", "\u{c4}"], &["e", "\u{df}"]),
            ("stra?e", &["stra\u{df}e", "STRA\u{df}E"], &["strae"]),
            ("stra\u{df}e", &["strasse", "STRA\u{df}E"], &["strase"]),
            ("\u{65e5}?\u{8a9e}", &["\u{65e5}\u{672c}\u{8a9e}"], &["\u{65e5}\u{8a9e}"]),
            ("?", &["\u{1f980}"], &["\u{1f980}\u{1f980}"]),
        ];
        for (pattern, matched, unmatched) in cases {
            let patterns = Patterns::new(&["never-this", pattern], &mut Room::default()).unwrap();
            for path in *matched {
                assert_eq!(patterns.find(path), Some(*pattern), "{pattern:?} and {path:?}");
            }
            for path in *unmatched {
                assert_eq!(patterns.find(path), None, "{pattern:?} and {path:?}");
            }
        }
    }

    #[test]
    fn what_no_path_can_match_is_refused() {
        let cases = [
            ("", "write \"**\""),
            ("/", "write \"**\""),
            (".", "write \"**\""),
            ("./", "write \"**\""),
            ("{a,}", "names nothing"),
            ("!x", "no exceptions"),
            ("a[", "has no \"]\""),
            ("a[]", "has no \"]\""),
            ("a[b/c]", "has no \"]\""),
            ("[b-a]", "\"b-a\" ends before it begins"),
            ("a{b", "no counterpart"),
            ("a}b", "no counterpart"),
            ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "several patterns"),
            ("sub/../sub", "'..' component"),
            ("..", "'..' component"),
            ("{a,..}/x", "'..' component"),
            ("~/x", "begins with '~'"),
            ("sub\\x", "write \"/\" between names"),
            ("sub\\", "write \"/\" between names"),
            ("sub\\\\x", "separate components with '/'"),
            (" sub", "begins or ends with a blank"),
            ("sub /x", "begins or ends with a blank"),
            ("*. ", "begins or ends with a blank"),
            ("x\n", "U+000A"),
            ("c:/sub/x", "drive letter"),
        ];
        for (pattern, why) in cases {
            let (index, error) = Patterns::new(&["x", pattern], &mut Room::default()).unwrap_err();
            assert!(error.to_string().contains(why), "{pattern:?}: {error}");
            assert_eq!(index, 1, "{pattern:?}");
        }
        for pattern in ["aux", "a:b", "~*", "*~", "a\\ b", "\\!x", "..*"] {
            Patterns::new(&[pattern], &mut Room::default()).unwrap();
        }
    }

    /// As many patterns as a file may have come to so many sets of so many compiled bytes, by which the time is bounded that it takes
    /// to compile them and to match a path; more are refused, before they are compiled.
    #[test]
    fn the_patterns_of_a_file_are_bounded() {
        // A path costs as many steps as it has characters, times the states of each set.
        const SETS: usize = 16;
        const SET_BYTES: usize = 4 << 20;
        let many = |count: usize, pattern: &dyn Fn(usize) -> String| (0..count).map(pattern).collect::<Vec<_>>();
        let names = many(1000, &|number| format!("src/module{number}/*.generated.rs"));
        let fitting = [
            names.clone(),
            many(1000, &|number| format!("a{number}")),
            many(700, &|number| format!("{}{number}", "?".repeat(20))),
            many(130, &|number| format!("{}{number}", "*a?".repeat(20))),
            many(90, &|number| format!("{}{number}", "**/a/".repeat(30))),
            many(3, &|number| format!("{}{number}", "{a,b}".repeat(8))),
        ];
        for patterns in fitting {
            let built = Patterns::new(&patterns, &mut Room::default()).unwrap();
            assert!(
                built.expressions.len() <= SETS,
                "{} and its like are {} sets",
                patterns[0],
                built.expressions.len()
            );
            for set in &built.expressions {
                let fits = RegexSetBuilder::new(set.patterns()).size_limit(SET_BYTES).build();
                assert!(fits.is_ok(), "{} and its like: {fits:?}", patterns[0]);
            }
        }
        let refused = [
            (many(60_000, &|number| format!("a{number}")), 1000, "1000 patterns"),
            (vec!["a".repeat(5000)], 0, "has at most 4096 bytes"),
            (many(500, &|number| format!("{}{number}", "*a?".repeat(20))), 136, "simpler ones"),
            (many(500, &|number| format!("{}{number}", "{a,b}".repeat(8))), 5, "simpler ones"),
            ([names, vec!["x".to_owned()]].concat(), 1000, "1000 patterns"),
        ];
        for (patterns, expected, why) in refused {
            let (index, error) = Patterns::new(&patterns, &mut Room::default()).unwrap_err();
            assert!(error.to_string().contains(why), "{}: {error}", patterns[0]);
            assert_eq!(index, expected, "{}", patterns[0]);
        }
    }
}
