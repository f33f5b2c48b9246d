//! How a line names a file: alone, set off, below a label or a number, in a comment, or behind a fence.

/// Tags that some authors write instead of a fence.
const TAGS: [&str; 6] = ["source", "code", "pre", "codeblock", "sourcecode", "diff"];
/// Tags that some authors write a path between.
const PATH_TAGS: [(&str, &str); 2] = [("<path>", "</path>"), ("<file_path>", "</file_path>")];
/// Words before a colon that say that a file's name follows.
const LABELS: [&str; 12] = [
    "file",
    "filename",
    "file name",
    "filepath",
    "file path",
    "path",
    "new file",
    "create file",
    "edit file",
    "update file",
    "updated file",
    "modified file",
];
/// Keys of the words behind a fence whose value is a file's name.
const KEYS: [&str; 5] = ["title", "file", "filename", "path", "name"];
/// What begins a comment that ends with its line, and what ends it.
const COMMENTS: [(&str, &str); 5] = [("//", ""), ("#", ""), ("--", ""), ("/*", "*/"), ("<!--", "-->")];

/// The name on a line of its own, without what sets names off; with blanks only where something does.
pub(crate) fn of(line: &str) -> Option<&str> {
    let line = line.trim();
    if fence(line).is_some() {
        return None;
    }
    if let Some(path) = tagged(line) {
        return Some(path);
    }
    let title = line.trim_start_matches('#').trim_start();
    let is_heading = title.len() < line.len();
    let text = unnumbered(title);
    // A word below a number may be a step of a list.
    let is_told = |name: &&str| text.is_none() || is_heading || is_path(name);
    let text = text.unwrap_or(title);
    in_comment(line).or_else(|| alone(unlabelled(text).unwrap_or(text)).filter(is_told))
}

/// What a line has between tags for a path, and nothing else.
fn tagged(line: &str) -> Option<&str> {
    let between = |(open, close)| line.strip_prefix(open)?.strip_suffix(close);
    PATH_TAGS.into_iter().find_map(between).map(str::trim).filter(|path| !path.is_empty() && !path.contains('<'))
}

/// The path that a comment of one line holds and nothing else.
pub(crate) fn in_comment(line: &str) -> Option<&str> {
    COMMENTS.into_iter().find_map(|(open, close)| {
        let text = line.trim().strip_prefix(open)?.strip_suffix(close)?.strip_prefix(' ')?.trim();
        match unlabelled(text) {
            Some(text) => alone(text),
            None => alone(text).filter(|name| name.starts_with(|first: char| first.is_alphanumeric() || first == '.')),
        }
        .filter(|name| is_path(name))
    })
}

/// A path that a line has among other words, or what is no name below a label for one.
pub(super) fn among(line: &str) -> Option<&str> {
    let title = line.trim().trim_start_matches('#').trim_start();
    let is_path = |span: &&str| is_word(span) && span.contains('/') && !span.contains(['(', '<']);
    // What is set off is between two marks of the same kind.
    let mut spans = ["`", "**"].into_iter().filter_map(|mark| line.split(mark).skip(1).step_by(2).find(is_path));
    spans.next().or_else(|| unlabelled(unnumbered(title).unwrap_or(title))).or_else(|| title.split(' ').find_map(file))
}

/// The path that a heading names, alone or among other words.
pub(super) fn in_heading(line: &str) -> Option<&str> {
    let title = line.trim();
    let is_heading = title.starts_with(['#', '*', '`']) || unnumbered(title).or_else(|| unlabelled(title)).is_some();
    let path = || of(line).filter(|name| is_path(name)).or_else(|| among(line).filter(|words| is_path(words)));
    if is_heading && fence(line).is_none() { path() } else { None }
}

/// A word that names a file below a directory, with any marks around it.
fn file(word: &str) -> Option<&str> {
    let path =
        word.trim_matches(|character: char| !character.is_alphanumeric() && !matches!(character, '.' | '/' | '_'));
    let path = path.trim_end_matches('.');
    let (_, name) = path.rsplit_once('/').filter(|_| !path.contains(['(', '<', ':', '"']))?;
    let (stem, ending) = name.rsplit_once('.')?;
    (!stem.is_empty() && !ending.is_empty() && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(path)
}

/// What is behind the number of a list or a heading: `1. x` or `1) x`.
fn unnumbered(title: &str) -> Option<&str> {
    let title = title.trim_start_matches('*');
    let rest = title.trim_start_matches(|character: char| character.is_ascii_digit());
    let text = rest.strip_prefix(['.', ')'])?.strip_prefix(' ')?;
    (rest.len() < title.len()).then(|| text.trim_start())
}

/// What is behind a label: `File: x`, `**File:** x`, `**File: x**`.
fn unlabelled(text: &str) -> Option<&str> {
    let (label, rest) = text.trim_start_matches(sets_off).split_once(':')?;
    let label = label.trim_end_matches(sets_off).trim_end();
    let is_known = LABELS.into_iter().any(|known| known.eq_ignore_ascii_case(label));
    Some(rest.trim().trim_matches('*').trim()).filter(|rest| is_known && !rest.is_empty())
}

const fn sets_off(character: char) -> bool {
    matches!(character, '`' | '*')
}

fn alone(title: &str) -> Option<&str> {
    let label = title.strip_suffix(':').unwrap_or(title);
    let name = label.trim_matches(sets_off);
    let inner = name.strip_suffix(':').unwrap_or(name).trim();
    let is_set_off = label.starts_with(sets_off) && label.ends_with(sets_off) && !inner.contains(sets_off);
    let is_name = inner.contains(char::is_alphanumeric)
        && !inner.contains(['<', '>'])
        && (is_word(inner) || is_set_off && is_path(inner));
    is_name.then_some(inner)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// Whether a text has what hardly any word has, and most paths.
pub(crate) fn is_path(text: &str) -> bool {
    text.contains(['/', '\\']) || text.trim_end_matches('.').contains('.')
}

/// What is behind a fence, or a tag that is used as one.
pub(crate) fn fence(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("```") {
        return Some(rest.trim_start_matches('`'));
    }
    if let Some(rest) = line.strip_prefix("~~~") {
        return Some(rest.trim_start_matches('~'));
    }
    let (tag, rest) = line.strip_prefix('<')?.split_once('>')?;
    TAGS.contains(&tag.trim_start_matches('/')).then_some(rest)
}

/// A file that is named behind a fence.
#[derive(Clone, Copy)]
pub(crate) struct Behind<'a> {
    pub(crate) path: &'a str,
    /// Whether it cannot be anything else, such as a language.
    pub(crate) is_sure: bool,
    /// Whether lines of the file are named as well: the block quotes it.
    pub(crate) is_quote: bool,
}

/// The file that is named behind a fence: `src/m.py`, `python:src/m.py`, `python src/m.py`, `python title="src/m.py"`, or
/// `12:15:src/m.py`.
pub(crate) fn behind(info: &str) -> Option<Behind<'_>> {
    let mut words = info.split_whitespace();
    let first = words.next()?;
    let sure = |path| Behind { path, is_sure: true, is_quote: false };
    if let Some((tag, path)) = first.split_once(':').filter(|(tag, _)| is_tag(tag)) {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let quoted = path.split_once(':').filter(|(last, _)| is_number(tag) && is_number(last));
        let named = quoted.map_or(path, |(_, path)| path);
        if is_path(named) && !named.starts_with(['/', '\\']) {
            return Some(Behind { is_quote: quoted.is_some(), ..sure(named) });
        }
    }
    let mut others = words.clone().filter_map(|word| match word.split_once('=') {
        Some((key, value)) => {
            Some(value.trim_matches(['"', '\'', '}'])).filter(|path| KEYS.contains(&key) && is_path(path))
        }
        None => Some(word).filter(|word| word.contains('/')),
    });
    match (others.next(), others.next()) {
        (Some(path), None) => Some(sure(path)),
        (None, _) if words.next().is_none() && is_path(first) => {
            Some(Behind { is_sure: first.contains('/'), ..sure(first) })
        }
        _ => None,
    }
}

/// Whether a text could be a language's, or a line's number.
fn is_tag(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'#' | b'-' | b'_'))
}
