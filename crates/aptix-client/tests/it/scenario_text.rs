//! What the texts of scenarios stand for: bytes that cannot be written in them, and digests of the files that they describe.

use std::path::Path;
use std::process::Command;

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
