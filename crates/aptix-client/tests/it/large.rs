//! Files of many bytes, and of sizes that are refused without being read.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::scenario_text::sha256_of;

fn apply(place: &Path, document: &[u8]) -> serde_json::Value {
    let mut child = Command::new(env!("CARGO_BIN_EXE_aptix"))
        .args(["apply", "--json", "--root", "ws=ws"])
        .current_dir(place)
        .env("XDG_STATE_HOME", place.join("state"))
        .env("XDG_CONFIG_HOME", place.join("config"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A document that is too large is not read to its end.
    let _ = stdin.write_all(document);
    drop(stdin);
    serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap()
}

fn replace_second_line(place: &Path, second: &str) -> serde_json::Value {
    let sha = sha256_of(&place.join("ws/big"));
    let document = format!(
        r#"{{"files":[{{"docPath":"ws/big","originalSha256":"{sha}","changes":[{{"operation":"replace",
        "startLine":2,"endLine":2,"expectedOriginalLines":["{second}"],"newLines":["new"]}}]}}]}}"#
    );
    apply(place, document.as_bytes())
}

fn place(bytes: &[u8]) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ws")).unwrap();
    std::fs::write(place.path().join("ws/big"), bytes).unwrap();
    place
}

#[test]
fn a_file_of_a_hundred_megabytes_keeps_every_other_byte() {
    let rest = "0123456789abcdef0123456789abcdef0123456789abcdef\r\n".repeat(2_000_000);
    let place = place(format!("first\nsecond\n{rest}").as_bytes());
    let answer = replace_second_line(place.path(), "second");
    assert_eq!(answer["success"], true, "{answer}");
    let found = std::fs::read(place.path().join("ws/big")).unwrap();
    assert!(found == format!("first\nnew\n{rest}").as_bytes());
}

#[test]
fn a_line_of_ten_megabytes_is_a_line_like_others() {
    let long = "x".repeat(10 << 20);
    let place = place(format!("{long}\nsecond\n{long}").as_bytes());
    let answer = replace_second_line(place.path(), "second");
    assert_eq!(answer["success"], true, "{}", answer["errors"]);
    let found = std::fs::read(place.path().join("ws/big")).unwrap();
    assert!(found == format!("{long}\nnew\n{long}").as_bytes());
}

#[test]
fn a_sparse_terabyte_is_refused_by_its_size() {
    let place = place(b"");
    let file = std::fs::File::options().write(true).open(place.path().join("ws/big")).unwrap();
    file.set_len(1 << 40).unwrap();
    let sha = "0".repeat(64);
    let document = format!(
        r#"{{"files":[{{"docPath":"ws/big","originalSha256":"{sha}","changes":[{{"operation":"insert","afterLine":0,"newLines":["x"]}}]}}]}}"#
    );
    let answer = apply(place.path(), document.as_bytes());
    assert_eq!(answer["errors"][0]["code"], "TOO_LARGE", "{answer}");
    assert_eq!(answer["errors"][0]["detail"], "FILE", "{answer}");
}

#[test]
fn a_document_over_its_limit_is_refused_without_reading_all_of_it() {
    let place = place(b"x");
    let mut document = br#"{"path":"a","content":""#.to_vec();
    document.resize((64 << 20) + (1 << 20), b'x');
    let answer = apply(place.path(), &document);
    assert_eq!(answer["errors"][0]["code"], "TOO_LARGE", "{answer}");
    assert_eq!(answer["errors"][0]["detail"], "DOCUMENT", "{answer}");
}

#[test]
fn content_of_exactly_the_limit_is_written() {
    // TUL-004-5.3.1
    let place = place(b"x");
    let content = "x".repeat(10 << 20);
    let answer = apply(place.path(), format!(r#"{{"path":"new","content":"{content}"}}"#).as_bytes());
    assert_eq!(answer["files"][0]["sizeBytes"], 10 << 20, "{}", answer["errors"]);
    assert!(std::fs::read(place.path().join("ws/new")).unwrap() == content.as_bytes());
}
