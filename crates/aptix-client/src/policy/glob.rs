//! One pattern of a list as a regular expression over the characters of a path, or why it is none. A pattern that no
//! path can match is refused: a list that was meant to close something must not be open in silence.

use std::str::CharIndices;

use aptix_model::path::{PathError, WorkspacePath};
use regex::escape;

/// Patterns that one with braces may expand to.
const EXPANSIONS: usize = 1000;
/// An example of what a wildcard matches: no name with it is a device, dots or blank.
const ANYTHING: char = '_';

/// What is wrong with a pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum GlobError {
    #[error("it names nothing; write \"**\" for every file")]
    Empty,
    #[error("it begins with \"!\", and there are no exceptions from a list: write narrower patterns")]
    Exception,
    #[error("a \"[\" has no \"]\" after what it stands for; write \"\\[\" for the character itself")]
    Class,
    #[error("the range {0:?} ends before it begins")]
    Range(String),
    #[error("a brace has no counterpart; write a backslash before one that is meant as a character")]
    Brace,
    #[error("its braces stand for more than {EXPANSIONS} patterns; write several patterns")]
    Many,
    #[error(
        "it has a backslash where nothing needs one; write \"/\" between names, and a backslash only before one of \
         * ? [ ] {{ }} , ! that is meant as a character"
    )]
    Backslash,
    #[error("no file of a root matches it: {0}; write it as files are named from the root on")]
    NoPath(PathError),
}

/// A regular expression that a path matches, if it is what the pattern names or lies in that. The path has to be in the
/// same form as the pattern, composed and folded.
pub(super) fn expression(pattern: &str) -> Result<String, GlobError> {
    if pattern.starts_with('!') {
        return Err(GlobError::Exception);
    }
    let is_anywhere = !pattern.trim_end_matches('/').contains('/');
    let mut alternatives = Vec::new();
    for plain in expanded(pattern)? {
        alternatives.push(plain_expression(&plain, is_anywhere)?);
    }
    Ok(format!(r"(?s)\A(?:{})\z", alternatives.join("|")))
}

/// The patterns without braces that a pattern expands to.
fn expanded(pattern: &str) -> Result<Vec<String>, GlobError> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        if open.len() + done.len() >= EXPANSIONS {
            return Err(GlobError::Many);
        }
        let Some((before, alternatives, after)) = first_braces(&pattern)? else {
            done.push(pattern);
            continue;
        };
        open.extend(alternatives.iter().map(|alternative| format!("{before}{alternative}{after}")));
    }
    Ok(done)
}

/// The text before the first braces of a pattern, the alternatives in them, and the text behind.
type Braces<'p> = (&'p str, Vec<&'p str>, &'p str);

fn first_braces(pattern: &str) -> Result<Option<Braces<'_>>, GlobError> {
    let (mut depth, mut start, mut part) = (0_usize, 0, 0);
    let mut alternatives = Vec::new();
    let mut rest = pattern.char_indices();
    while let Some((at, character)) = rest.next() {
        match character {
            '\\' => drop(rest.next()),
            '[' => rest = after_class(pattern, at)?.1,
            '{' => {
                depth += 1;
                if depth == 1 {
                    (start, part) = (at, at + 1);
                }
            }
            ',' if depth == 1 => {
                alternatives.extend(pattern.get(part..at));
                part = at + 1;
            }
            '}' if depth == 0 => return Err(GlobError::Brace),
            '}' => {
                depth -= 1;
                if depth == 0 {
                    alternatives.extend(pattern.get(part..at));
                    let (before, after) = (pattern.split_at(start).0, pattern.split_at(at + 1).1);
                    return Ok(Some((before, alternatives, after)));
                }
            }
            _ => {}
        }
    }
    if depth == 0 { Ok(None) } else { Err(GlobError::Brace) }
}

/// The members of the class that begins here, and what is behind it, by its place in the whole pattern.
fn after_class(pattern: &str, at: usize) -> Result<(&str, CharIndices<'_>), GlobError> {
    let (_, inside) = pattern.split_at(at + 1);
    let skipped = inside.len() - inside.strip_prefix(['!', '^']).unwrap_or(inside).len();
    // A bracket that comes first is one of the characters.
    let members = inside.char_indices().find(|(index, character)| *character == ']' && *index > skipped);
    let (end, _) = members.ok_or(GlobError::Class)?;
    let (class, _) = inside.split_at(end);
    if class.contains('/') {
        return Err(GlobError::Class);
    }
    let mut rest = pattern.char_indices();
    rest.by_ref().find(|(index, _)| *index == at + 1 + end);
    Ok((class, rest))
}

fn plain_expression(pattern: &str, is_anywhere: bool) -> Result<String, GlobError> {
    let mut names = pattern.split('/').filter(|name| !matches!(*name, "" | ".")).peekable();
    if names.peek().is_none() {
        return Err(GlobError::Empty);
    }
    let (mut expression, mut sample) = (String::new(), String::new());
    if is_anywhere {
        expression.push_str("(?:.*/)?");
        sample.extend([ANYTHING, '/']);
    }
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        match (name, is_last) {
            ("**", false) => expression.push_str("(?:.*/)?"),
            ("**", true) => expression.push_str(".+"),
            _ => {
                add_name(name, &mut expression, &mut sample)?;
                expression.push_str(if is_last { "(?:/.*)?" } else { "/" });
                sample.push_str(if is_last { "" } else { "/" });
                continue;
            }
        }
        sample.push(ANYTHING);
        sample.push_str(if is_last { "" } else { "/" });
    }
    match WorkspacePath::new(&sample) {
        // There can be a file of that name, and no batch can name it: it is closed already.
        Ok(_) | Err(PathError::Colon | PathError::Char(_) | PathError::Confusable(_) | PathError::Reserved) => {
            Ok(expression)
        }
        Err(error) => Err(GlobError::NoPath(error)),
    }
}

/// Adds the pattern of one name, and an example of what matches it.
fn add_name(name: &str, expression: &mut String, sample: &mut String) -> Result<(), GlobError> {
    let mut rest = name.char_indices();
    while let Some((at, character)) = rest.next() {
        match character {
            '*' => expression.push_str("[^/]*"),
            '?' => expression.push_str("[^/]"),
            '[' => {
                let (class, behind) = after_class(name, at)?;
                add_class(class, expression)?;
                rest = behind;
            }
            _ => {
                let literal = match character {
                    '\\' => rest.next().map(|(_, escaped)| escaped).filter(|escaped| !escaped.is_alphanumeric()),
                    literal => Some(literal),
                };
                let literal = literal.ok_or(GlobError::Backslash)?;
                expression.push_str(&escape(literal.encode_utf8(&mut [0; 4])));
                sample.push(literal);
                continue;
            }
        }
        sample.push(ANYTHING);
    }
    Ok(())
}

/// Adds what one character of a name may be, or with `!` or `^` in front, may not be.
fn add_class(class: &str, expression: &mut String) -> Result<(), GlobError> {
    let members = class.strip_prefix(['!', '^']);
    expression.push_str(if members.is_some() { "[^/" } else { "[" });
    let mut members = members.unwrap_or(class).chars().peekable();
    while let Some(first) = members.next() {
        let mut ahead = members.clone();
        let last = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(last)) => {
                members = ahead;
                last
            }
            _ => first,
        };
        if last < first {
            return Err(GlobError::Range(format!("{first}-{last}")));
        }
        expression.push_str(&format!(r"\x{{{:x}}}-\x{{{:x}}}", u32::from(first), u32::from(last)));
    }
    expression.push(']');
    Ok(())
}
