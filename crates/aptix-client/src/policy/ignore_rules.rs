//! Whether a change of a file of ignore rules may open to a server what the file keeps from it.

use aptix_model::path::fold;

/// Names of files that say what is kept from servers.
const NAMES: [&str; 2] = [".gitignore", ".ignore"];

/// The byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether a path is that of a file of ignore rules.
pub(crate) fn is_one(path: &str) -> bool {
    let name = fold(path.rsplit_once('/').map_or(path, |(_, name)| name));
    NAMES.contains(&name.as_str())
}

/// Whether rules that were there are gone or others, or a rule has come that takes back other ones, here or in a file
/// above. Absent text is that of no file.
pub(crate) fn loosens(before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
    let Some(after) = after else { return before.is_some() };
    // A byte order mark is skipped in the first line alone: behind another one it would make its rule another one.
    if let Some(before) = before.filter(|before| before.starts_with(MARK))
        && lines(before).next() != lines(after).next()
    {
        return true;
    }
    let mut old = lines(before.unwrap_or_default()).peekable();
    let takes_back = |line: &[u8]| line.strip_prefix(MARK).unwrap_or(line).starts_with(b"!");
    for line in lines(after) {
        if old.next_if(|expected| *expected == line).is_none() && takes_back(line) {
            return true;
        }
    }
    old.next().is_some()
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let is_there = !text.is_empty();
    text.split(|byte| *byte == b'\n').filter(move |_| is_there).map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_may_come_and_must_not_go() {
        let cases: [(Option<&str>, Option<&str>, bool); 18] = [
            (None, Some("a\nb\n"), false),
            (None, Some("*\n!keep\n"), true),
            (Some("a\n"), Some("a\nb\n"), false),
            (Some("a"), Some("a\nb"), false),
            (Some("a\nb\n"), Some("x\na\ny\r\nb\nz\n"), false),
            (Some("a\nb\n"), Some("a\r\nb\r\n"), false),
            (Some("a\n!b\n"), Some("a\n!b\nc\n"), false),
            (Some("a\n"), Some("a\n!b\n"), true),
            (Some("a\nb\n"), Some("b\na\n"), true),
            (Some("a\nb\n"), Some("a\n"), true),
            (Some("a\n"), Some("ax\n"), true),
            (Some("a\n"), None, true),
            (Some(""), Some("\u{feff}!b"), true),
            // A byte order mark is none, and then a part of its rule, once another line precedes it.
            (Some("\u{feff}a\n"), Some("x\n\u{feff}a\n"), true),
            (Some("\u{feff}a\n"), Some("\u{feff}x\n\u{feff}a\n"), true),
            (Some("\u{feff}a\n"), Some("\u{feff}a\nx\n"), false),
            (Some("\u{feff}"), Some("\u{feff}\nx\n"), false),
            (None, None, false),
        ];
        for (before, after, expected) in cases {
            let found = loosens(before.map(str::as_bytes), after.map(str::as_bytes));
            assert_eq!(found, expected, "{before:?} to {after:?}");
        }
        assert!(is_one(".gitignore") && is_one("sub/.GitIgnore") && is_one("a/.ignore"));
        assert!(!is_one("gitignore") && !is_one(".gitignore/x"));
    }
}
