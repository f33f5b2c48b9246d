//! What begins a text over several lines, in which the white space at the start of a line is part of a value.

use super::here_document;

use crate::text::edit::slice;

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
    pub(crate) fn first_in<'l>(lines: impl IntoIterator<Item = &'l [u8], IntoIter: Clone>) -> Option<Self> {
        let lines = lines.into_iter();
        let first = lines.clone().find_map(Self::of);
        first.or_else(|| here_document::is_ended_in(lines).then_some(Self::HereDocument))
    }

    fn of(line: &[u8]) -> Option<Self> {
        let has = |part: &[u8]| memchr::memmem::find(line, part).is_some();
        let found = [
            (Self::Quotes, has(b"\"\"\"")),
            (Self::SingleQuotes, has(b"'''")),
            (Self::Backtick, has_lone_backtick(line)),
            (Self::HereDocument, here_document::is_begun_in(line)),
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

/// Whether `r` precedes marks and a quote.
fn has_raw_string(line: &[u8]) -> bool {
    memchr::memmem::find_iter(line, b"r#").any(|at| {
        let rest = slice(line, at + 1..line.len());
        rest.trim_ascii_start().iter().find(|byte| **byte != b'#') == Some(&b'"')
    })
}

/// Whether `R"` precedes a parenthesis, perhaps with a delimiter between.
fn has_raw_string_of_cpp(line: &[u8]) -> bool {
    memchr::memmem::find_iter(line, b"R\"").any(|at| {
        let rest = slice(line, at + 2..line.len());
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
    fn what_begins_a_text_over_several_lines_is_recognized() {
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
            ("cat << EOF", "<<WORD"),
            ("cat<<-'EOF'", "<<WORD"),
            ("x = <<<EOF", "<<WORD"),
            ("cat << eof\n  a\n  eof", "<<WORD"),
            ("exec 3<<x-1 | y\nx-1\r", "<<WORD"),
        ] {
            let lines = line.split('\n').map(str::as_bytes);
            assert_eq!(Opener::first_in(lines).map(Opener::word), Some(word), "{line}");
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
            "0x1 << SHIFT",
            "a[i] << SHIFT)",
            "a << SHIFT + 1",
            "cout << \"a\"",
        ] {
            assert_eq!(Opener::first_in([line.as_bytes()]), None, "{line}");
        }
    }
}
