//! What begins a text over several lines, in which the white space at the start of a line is part of a value.

/// How a text over several lines may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opener {
    Quotes,
    SingleQuotes,
    Backtick,
    HereDocument,
    RawString,
    RawStringOfCpp,
}

impl Opener {
    /// As it is written.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Quotes => "\"\"\"",
            Self::SingleQuotes => "'''",
            Self::Backtick => "`",
            Self::HereDocument => "<<WORD",
            Self::RawString => "r#\"",
            Self::RawStringOfCpp => "R\"(",
        }
    }

    /// The first one in lines, each without terminator.
    pub(crate) fn first_in<'l>(lines: impl IntoIterator<Item = &'l [u8]>) -> Option<Self> {
        lines.into_iter().find_map(Self::of)
    }

    fn of(line: &[u8]) -> Option<Self> {
        let has = |part: &[u8]| memchr::memmem::find(line, part).is_some();
        let found = [
            (Self::Quotes, has(b"\"\"\"")),
            (Self::SingleQuotes, has(b"'''")),
            (Self::Backtick, has_lone_backtick(line)),
            (Self::HereDocument, has_here_document(line)),
            (Self::RawString, has_raw_string(line)),
            (Self::RawStringOfCpp, has_raw_string_of_cpp(line)),
        ];
        found.into_iter().find(|(_, is_there)| *is_there).map(|(opener, _)| opener)
    }
}

/// Whether a backtick has no partner in its line; runs of several are fences, and no quotes.
fn has_lone_backtick(line: &[u8]) -> bool {
    let runs = line.chunk_by(|a, b| (*a == b'`') == (*b == b'`'));
    runs.filter(|run| *run == b"`").count() % 2 == 1
}

/// Whether `<<` stands directly before a word, perhaps behind `-` or `~` and in quotes, and is no shift of a value.
fn has_here_document(line: &[u8]) -> bool {
    memchr::memmem::find_iter(line, b"<<").any(|at| {
        let before = at.checked_sub(1).and_then(|at| line.get(at));
        let rest = line.get(at + 2..).unwrap_or_default();
        let rest = rest.strip_prefix(b"<").unwrap_or(rest);
        let rest = rest.strip_prefix(b"-").or(rest.strip_prefix(b"~")).unwrap_or(rest);
        let rest = rest.strip_prefix(b"'").or(rest.strip_prefix(b"\"")).unwrap_or(rest);
        let is_value = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b')' | b']');
        let is_word = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
        !before.is_some_and(is_value) && rest.first().is_some_and(is_word)
    })
}

/// Whether `r` stands before marks and a quote.
fn has_raw_string(line: &[u8]) -> bool {
    memchr::memmem::find_iter(line, b"r#").any(|at| {
        let rest = line.get(at + 1..).unwrap_or_default();
        rest.trim_ascii_start().iter().find(|byte| **byte != b'#') == Some(&b'"')
    })
}

/// Whether `R"` stands before a parenthesis, perhaps behind a delimiter.
fn has_raw_string_of_cpp(line: &[u8]) -> bool {
    memchr::memmem::find_iter(line, b"R\"").any(|at| {
        let rest = line.get(at + 2..).unwrap_or_default();
        let delimiter = rest.iter().take(17).position(|byte| *byte == b'(');
        delimiter.is_some_and(|length| {
            let is_part = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b')' | b'\\' | b'"');
            rest.iter().take(length).all(is_part)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::Opener;

    #[test]
    fn what_begins_a_text_over_several_lines_is_told_from_what_does_not() {
        for (line, word) in [
            ("x = \"\"\"a", "\"\"\""),
            ("'''", "'''"),
            ("const a = `", "`"),
            ("a ``` ` b", "`"),
            ("cat <<EOF", "<<WORD"),
            ("cat <<-'EOF' > x", "<<WORD"),
            ("foo(<<~sql)", "<<WORD"),
            ("$a = <<<\"X\"", "<<WORD"),
            ("let a = r#\"x", "r#\""),
            ("br##\"", "r#\""),
            ("auto a = R\"(x", "R\"("),
            ("R\"sql(x", "R\"("),
        ] {
            assert_eq!(Opener::first_in([line.as_bytes()]).map(Opener::word), Some(word), "{line}");
        }
        for line in [
            "x = \"a\" + 'b'",
            "// the `code` of `it`",
            "```",
            "a << B",
            "1<<SHIFT",
            "f(x)<<y",
            "cout << \"x\"",
            "r#type",
            "R\"x\"",
            "<<<<<<< HEAD",
        ] {
            assert_eq!(Opener::first_in([line.as_bytes()]), None, "{line}");
        }
    }
}
