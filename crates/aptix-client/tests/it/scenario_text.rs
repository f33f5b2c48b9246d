//! The texts of scenarios: their parts, and what these stand for: bytes that cannot be written in them, and digests of the files
//! that they describe.

use std::path::Path;
use std::process::Command;

/// One part of a scenario: its word, what follows on that line, and the lines below.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) word: String,
    pub(crate) rest: String,
    pub(crate) body: String,
}

/// A scenario: its title, with the ids of the rules that it holds, and its parts.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) title: String,
    pub(crate) parts: Vec<Part>,
}

/// The scenarios of a file. One begins with `== TITLE`, and its parts begin with `--- WORD`.
pub(crate) fn parse(text: &str) -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("== ") {
            scenarios.push(Scenario { title: title.to_owned(), parts: Vec::new() });
            continue;
        }
        let Some(scenario) = scenarios.last_mut() else { continue };
        if let Some(head) = line.strip_prefix("--- ") {
            let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
            scenario.parts.push(Part { word: word.to_owned(), rest: rest.to_owned(), body: String::new() });
        } else if let Some(part) = scenario.parts.last_mut() {
            part.body += line;
            part.body.push('\n');
        }
    }
    // The blank lines before the next scenario are no part of this one.
    for scenario in &mut scenarios {
        if let Some(part) = scenario.parts.last_mut() {
            part.body.truncate(part.body.trim_end_matches('\n').len());
            if !part.body.is_empty() {
                part.body.push('\n');
            }
        }
    }
    scenarios
}

/// The bytes that a part's text describes.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let (byte, length) = match escape.as_bytes() {
            [b'r', ..] => (Some(b'\r'), 1),
            [b'n', ..] => (Some(b'\n'), 1),
            [b't', ..] => (Some(b'\t'), 1),
            [b'0', ..] => (Some(0), 1),
            [b'\\', ..] => (Some(b'\\'), 1),
            [b'c', b'\n', ..] => (None, 2),
            [b'x', ..] => (Some(u8::from_str_radix(&escape[1..3], 16).unwrap()), 3),
            _ => panic!("unknown escape in {text:?}"),
        };
        bytes.extend(byte);
        rest = &escape[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// A document with the digests of the files below `top`, and what else its text only describes.
pub(crate) fn document(text: &str, top: &Path) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((plain, after)) = rest.split_once("{{") {
        let (order, after) = after.split_once("}}").unwrap();
        bytes.extend_from_slice(plain.as_bytes());
        if let Some(path) = order.strip_prefix("sha ") {
            bytes.extend_from_slice(sha256_of(&top.join(path)).as_bytes());
        } else if let Some((count, text)) = order.split_once(" times ") {
            bytes.extend_from_slice(text.repeat(count.parse().unwrap()).as_bytes());
        } else {
            bytes.push(u8::from_str_radix(order.strip_prefix('x').unwrap(), 16).unwrap());
        }
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// The digest of a file, as another program computes it.
pub(crate) fn sha256_of(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim_start_matches('\\')[..64].to_owned()
}
