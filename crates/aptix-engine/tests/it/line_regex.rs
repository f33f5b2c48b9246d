//! Regular expressions over lines: what they match, and that compiling and searching are bounded.

use std::time::Duration;

use aptix_engine::text::line_regex::{COMPILED_BYTES, CompileError, Letters, LineRegex, WRITTEN_BYTES};

use crate::cost::cost;

/// The least time of a few rounds, which whatever else happens on the machine does not make longer.
fn least<T>(mut work: impl FnMut() -> T) -> (Duration, T) {
    let mut best = cost(&mut work);
    for _ in 0..2 {
        let next = cost(&mut work);
        best = if next.0 < best.0 { next } else { best };
    }
    best
}

/// Patterns that cost an engine of regular expressions as much as they can.
fn costly() -> Vec<String> {
    let written = [
        r"\w{1,30}",
        r"\w{1,1000}",
        r"(a{1000}){1000}",
        r"((((a{9}){9}){9}){9}){9}",
        r"(?:a|b)*a(?:a|b){20}c",
        r"a[ab]{400}$",
        r"a[ab]{9000}c",
        r"(\w+\s*)*zz",
        r"(\w+\s*){10}$z",
        r"(?:\w{1,12}\b){3}zz",
        r"\b(\w+\W*){9}zz",
        r"(\w{1,8}\s*[a-f]*){3}$z",
        r"[a-z]{500}[A-Z]|[a-m]{400}x|[c-z]{300}y",
        r"(.*)(.*)(.*)(.*)(.*)[ab]{400}c",
        r"\bfoo\b",
    ];
    let mut patterns: Vec<String> = written.iter().map(|pattern| (*pattern).to_owned()).collect();
    patterns.push(r"[^a]".repeat(500));
    patterns.push(format!("(?i){}", r"[^a]".repeat(500)));
    patterns.push(r"\w".repeat(1000));
    patterns.push(format!("(?i){}", r"[\w--a]".repeat(290)));
    patterns.push((0..500).map(|number| format!("{number}")).collect::<Vec<_>>().join("|"));
    patterns.push(format!("{}a{}", "(".repeat(200), ")*".repeat(200)));
    patterns
}

fn texts() -> [(&'static str, Vec<u8>); 4] {
    let mut state = 7_u64;
    let mut random = |of: &'static [u8]| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        of[usize::try_from(state >> 33).unwrap() % of.len()]
    };
    let mut text = |of| (0..1 << 20).map(|_| random(of)).collect::<Vec<u8>>();
    [
        ("one line of two letters", text(b"ab")),
        ("lines of words", text(b"abcdefghi jklmnop \n")),
        ("short lines", text(b"ab\n")),
        ("not ASCII", "\u{65e5}\u{672c}\u{8a9e} x".repeat((1 << 20) / 11).into_bytes()),
    ]
}

/// A search of 1 MiB costs at most 24 times a search of the same text for one letter, and a compile at most 8 times such a search of short
/// lines. What would cost more is refused or given up within that.
#[test]
fn a_compile_and_a_search_of_one_mebibyte_are_bounded() {
    let search = |regex: &LineRegex, text: &[u8]| {
        least(|| {
            let mut search = regex.search(text.len());
            let fits = text.split(|byte| *byte == b'\n').map(|line| regex.is_match(&mut search, line));
            fits.collect::<Result<Vec<_>, _>>().is_ok()
        })
    };
    let letter = LineRegex::new("q", Letters::Exact, COMPILED_BYTES).unwrap();
    let texts = texts().map(|(name, text)| (name, search(&letter, &text).0 * 24, text));
    let compiling = search(&letter, b"ab\n".repeat((1 << 20) / 3).as_slice()).0 * 8;
    let (mut refused, mut given_up) = (0, 0);
    for pattern in costly() {
        let (took, regex) = least(|| LineRegex::new(&pattern, Letters::Exact, COMPILED_BYTES));
        assert!(took < compiling, "{pattern:.60} takes {took:?} to compile, at most {compiling:?}");
        let Ok(regex) = regex else {
            refused += 1;
            continue;
        };
        for (name, most, text) in &texts {
            let (took, found) = search(&regex, text);
            assert!(took < *most, "{pattern:.60} takes {took:?} in {name}, at most {most:?}");
            given_up += usize::from(!found);
        }
    }
    assert!(refused > 3 && given_up > 3, "the costly ones are met: {refused} refused, {given_up} given up");
}

#[test]
fn lines_match_as_they_should() {
    let cases: &[(&str, Letters, &[&str], &[&str])] = &[
        ("^fn main", Letters::Exact, &["fn main() {"], &[" fn main", "FN MAIN"]),
        ("^FN m", Letters::AnyCase, &["fn main"], &["f"]),
        (r"\bfoo\b", Letters::Exact, &["a foo b", "\u{65e5} foo"], &["\u{65e5}foo", "food"]),
        (r"\d+$", Letters::Exact, &["x1", "\u{661}"], &["1x"]),
        ("", Letters::Exact, &["", "x"], &[]),
        ("a.c", Letters::Exact, &["a\u{65e5}c"], &["ac"]),
    ];
    for (pattern, letters, fitting, other) in cases {
        let regex = LineRegex::new(pattern, *letters, COMPILED_BYTES).unwrap();
        let mut search = regex.search(100);
        for (lines, expected) in [(fitting, true), (other, false)] {
            for line in *lines {
                assert_eq!(regex.is_match(&mut search, line.as_bytes()), Ok(expected), "{pattern} and {line}");
            }
        }
    }
    assert!(matches!(LineRegex::new("(", Letters::Exact, COMPILED_BYTES), Err(CompileError::Syntax(_))));
    assert!(matches!(LineRegex::new("a{1000}", Letters::Exact, 1000), Err(CompileError::Compiled { limit: 1000 })));
    let long = "a".repeat(WRITTEN_BYTES + 1);
    assert!(matches!(LineRegex::new(&long, Letters::Exact, COMPILED_BYTES), Err(CompileError::Written { .. })));
}
