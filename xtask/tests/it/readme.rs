//! The README promises nothing that does not run.

use std::fs;
use std::path::Path;

use crate::processes::{Machine, json, write};

/// The README's example document.
pub(crate) fn document() -> String {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let (_, rest) = readme.split_once("A document says").unwrap().1.split_once("```json\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_documents_first_use_applies_it_and_its_second_says_so() {
    let machine = Machine::new();
    machine.put("greeting.txt", "To whom it may concern:\nhello\n");
    write(&machine.path("edit.json"), &document());
    let arguments = ["apply", "--root", "project", "--json", "edit.json"];

    let (result, code) = json(&machine.aptix(&arguments).output().unwrap());
    assert_eq!((code, &result["success"]), (Some(0), &true.into()), "{result}");
    assert_eq!(machine.files(), [("greeting.txt".into(), "To whom it may concern:\nhello, world\n".into())]);

    let (result, code) = json(&machine.aptix(&arguments).output().unwrap());
    assert_eq!((code, &result["errors"][0]["code"]), (Some(1), &"ALREADY_APPLIED".into()), "{result}");
}
