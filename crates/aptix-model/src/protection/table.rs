//! A table of file names and how a path is compared with it.

use alloc::string::String;

use super::spelling::{self, ShortName};

/// Names in lower case. One `*` in a name stands for any characters, also for none.
pub(super) struct Table {
    /// Names of directories: everything in one of them matches, at any depth.
    pub(super) directories: &'static [&'static str],
    /// Names of files, at any depth.
    pub(super) files: &'static [&'static str],
    /// Several names in a row, at any depth, or from the root on after a leading `/`. They name a file; after a trailing
    /// `/`, a directory and everything in it.
    pub(super) paths: &'static [&'static str],
}

impl Table {
    /// Whether the table has a path, given by its canonical names.
    pub(super) fn has(&self, names: &[String]) -> bool {
        let is_in = |name: &str, table: &[&str]| table.iter().any(|pattern| is_named(name, pattern));
        names.last().is_some_and(|name| is_in(name, self.files))
            || names.iter().any(|name| is_in(name, self.directories))
            || self.paths.iter().any(|pattern| is_at(names, pattern))
    }
}

/// Whether a pattern of several names has a path.
fn is_at(names: &[String], pattern: &str) -> bool {
    let (is_rooted, pattern) = pattern.strip_prefix('/').map_or((false, pattern), |rest| (true, rest));
    let (is_directory, pattern) = pattern.strip_suffix('/').map_or((false, pattern), |rest| (true, rest));
    let length = pattern.split('/').count();
    let Some(last_start) = names.len().checked_sub(length) else { return false };
    let starts = if is_directory { 0..=last_start } else { last_start..=last_start };
    let fits = |names: &[String]| names.iter().zip(pattern.split('/')).all(|(name, part)| is_named(name, part));
    starts.filter(|start| !is_rooted || *start == 0).any(|start| names.get(start..).is_some_and(fits))
}

/// Whether a canonical name matches a pattern, or is the short name of one that does.
pub(super) fn is_named(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern || (name.contains('~') && spelling::is_short_for(name, pattern)),
        Some((start, end)) => {
            let rest = name.strip_prefix(start);
            rest.is_some_and(|rest| rest.ends_with(end)) || (name.contains('~') && is_short_for_any(name, start, end))
        }
    }
}

/// Whether NTFS may have generated a name for one with this start and end. A start that is too short to be distinguished from
/// others in six characters does not count.
fn is_short_for_any(name: &str, start: &str, end: &str) -> bool {
    let Some(short) = ShortName::parse(name) else { return false };
    let extension: String = end.rsplit_once('.').map_or("", |(_, extension)| extension).chars().take(3).collect();
    let stem: String = start.chars().filter(|character| *character != '.').take(6).collect();
    let has_stem = if start.is_empty() { !extension.is_empty() } else { stem.len() >= 3 && short.stem == stem };
    has_stem && (extension.is_empty() || short.extension == extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table = Table {
        directories: &[".ssh", "prefix*"],
        files: &["file.json", "*.key", "service*.json"],
        paths: &[".config/gh/", ".docker/config.json", "/rooted", "/a/b/"],
    };

    #[test]
    fn a_path_is_compared_name_by_name() {
        let has = |path: &str| TABLE.has(&spelling::canonical_names(path));
        for path in [
            ".ssh",
            ".ssh/x",
            "a/.SSH/x/y",
            "ssh~1/x",
            "prefixed/x",
            "prefix",
            "file.json",
            "a/FILE.json",
            "file~2.jso",
            "x.key",
            "a/.key",
            "abcdef~1.key",
            "service.json",
            "service-1.json",
            "servic~1.jso",
            ".config/gh",
            "a/.config/gh/hosts.yml",
            "config~1/gh/x",
            ".docker/config.json",
            "a/.docker/config.json",
            "rooted",
            "a/b",
            "a/b/c/d",
        ] {
            assert!(has(path), "{path:?}");
        }
        for path in [
            "ssh/x",
            "file.json/x",
            "key",
            "x.key/y",
            "x.key.ts",
            "service.yml",
            "servic~1.txt",
            ".config/ghost",
            ".config",
            "gh/x",
            ".docker/x/config.json",
            ".docker/config.json/x",
            "a/rooted",
            "x/a/b",
            "a/c/b",
            "",
        ] {
            assert!(!has(path), "{path:?}");
        }
    }
}
