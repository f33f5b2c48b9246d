//! Files of ignore rules as git reads them, and which ones the configuration of a repository names.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::io::Errno;

/// Configurations that include one another, at most so deep.
const INCLUDES: usize = 5;

/// The classes that git knows by name and the matcher does not.
const CLASSES: [(&str, &str); 9] = [
    ("[:alnum:]", "a-zA-Z0-9"),
    ("[:alpha:]", "a-zA-Z"),
    ("[:blank:]", " \t"),
    ("[:digit:]", "0-9"),
    ("[:lower:]", "a-z"),
    ("[:punct:]", ",-/!-+:-@[-`{-~"),
    ("[:space:]", " \t"),
    ("[:upper:]", "A-Z"),
    ("[:xdigit:]", "0-9a-fA-F"),
];

/// The rules of a file `.gitignore`; a line that is no rule is passed over, as by git.
///
/// # Errors
/// `E2BIG` when there are too many rules to be compiled: that is never taken for no rules.
pub(crate) fn of_git(bytes: &[u8]) -> Result<Gitignore, Errno> {
    compiled(bytes, of_matcher)
}

/// As [`of_git`], for a file `.ignore`, in which `{a,b}` is either.
pub(crate) fn of_searches(bytes: &[u8]) -> Result<Gitignore, Errno> {
    compiled(bytes, str::to_owned)
}

fn compiled(bytes: &[u8], read: impl Fn(&str) -> String) -> Result<Gitignore, Errno> {
    let mut builder = GitignoreBuilder::new(".");
    let text = String::from_utf8_lossy(bytes);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        let _ = builder.add_line(None, &read(line));
    }
    builder.build().map_err(|_| Errno::TOOBIG)
}

/// A rule of git in the words of the matcher, to which braces mean something.
fn of_matcher(rule: &str) -> String {
    let mut text = String::with_capacity(rule.len());
    let mut rest = rule;
    while let Some(next) = rest.chars().next() {
        let (taken, written) = match next {
            '\\' => (rest.chars().take(2).map(char::len_utf8).sum(), None),
            '{' | '}' => (1, Some(format!("\\{next}"))),
            '[' => {
                let length = class_length(rest).unwrap_or(1);
                let mut class = rest.split_at(length).0.to_owned();
                for (name, members) in CLASSES {
                    class = class.replace(name, members);
                }
                (length, Some(class))
            }
            _ => (next.len_utf8(), None),
        };
        let (part, after) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        text.push_str(written.as_deref().unwrap_or(part));
        rest = after;
    }
    text
}

/// The bytes of the class that a text begins with, if that has an end.
fn class_length(text: &str) -> Option<usize> {
    let negation = usize::from(text.get(1..)?.starts_with(['!', '^']));
    let mut at = 1 + negation;
    at += usize::from(text.get(at..)?.starts_with(']'));
    loop {
        let rest = text.get(at..)?;
        if let Some((name, _)) = CLASSES.iter().find(|(name, _)| rest.starts_with(name)) {
            at += name.len();
            continue;
        }
        let next = rest.chars().next()?;
        at += next.len_utf8();
        if next == ']' {
            return Some(at);
        }
    }
}

/// The files that a git configuration names as `core.excludesFile`, by itself or by what it includes under whatever
/// condition. `read` gives the text of a file, `top` is where relative names begin.
pub(crate) fn named_in(
    config: &Path,
    top: &Path,
    read: &impl Fn(&Path) -> Result<Option<Vec<u8>>, Errno>,
) -> Result<Vec<PathBuf>, Errno> {
    let mut named = Vec::new();
    add_named(config, top, read, INCLUDES, &mut named)?;
    Ok(named)
}

fn add_named(
    config: &Path,
    top: &Path,
    read: &impl Fn(&Path) -> Result<Option<Vec<u8>>, Errno>,
    depth: usize,
    named: &mut Vec<PathBuf>,
) -> Result<(), Errno> {
    let Some(bytes) = read(config)? else { return Ok(()) };
    let text = String::from_utf8_lossy(&bytes);
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some((head, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            section = head.split_whitespace().next().unwrap_or_default().to_lowercase();
            line = rest.trim();
        }
        let Some((key, text)) = line.split_once('=') else { continue };
        let Some(path) = Some(value(text)).filter(|path| !path.is_empty()) else { continue };
        match (section.as_str(), key.trim().to_lowercase().as_str()) {
            ("core", "excludesfile") => named.push(located(&path, top)),
            ("include" | "includeif", "path") if depth > 0 => {
                let beside = config.parent().unwrap_or(top);
                add_named(&located(&path, beside), top, read, depth - 1, named)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A value without its quotes, escapes and comment.
fn value(text: &str) -> String {
    let (mut value, mut is_quoted, mut characters) = (String::new(), false, text.trim().chars());
    while let Some(next) = characters.next() {
        match next {
            '"' => is_quoted = !is_quoted,
            '\\' => value.extend(characters.next()),
            '#' | ';' if !is_quoted => break,
            _ => value.push(next),
        }
    }
    value.trim_end().to_owned()
}

fn located(path: &str, from: &Path) -> PathBuf {
    match path.strip_prefix("~/").zip(std::env::home_dir()) {
        Some((rest, home)) => home.join(rest),
        None => from.join(path),
    }
}
