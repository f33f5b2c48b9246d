//! What takes more than a screen is shown by the user's pager, on a terminal alone.

use std::process::Stdio;

use crate::documents::insert;
use crate::person::on_terminal;
use crate::processes::{Machine, write};

/// What a command prints on a terminal of ten rows, with this pager.
fn shown(machine: &Machine, arguments: &[&str], pager: &str) -> (String, bool) {
    let mut command = machine.aptix(arguments);
    command.env("PAGER", pager).env("NO_COLOR", "1");
    let ended = on_terminal(&command, 10, 100).stdin(Stdio::null()).output().unwrap();
    (String::from_utf8(ended.stdout).unwrap().replace("\r\n", "\n"), ended.status.success())
}

/// A machine with a history of so many batches, each of which adds a line to a file.
fn machine(batches: usize) -> Machine {
    let machine = Machine::new();
    let mut text = String::new();
    for number in 0..batches {
        machine.put("a.txt", &text);
        write(&machine.path("edit.json"), &insert(&[("a.txt", &text)], number, &format!("line {number}")));
        let applied = machine.aptix(&["apply", "--root", "project", "edit.json"]).output().unwrap();
        assert!(applied.status.success(), "{applied:?}");
        text.push_str(&format!("line {number}\n"));
    }
    machine
}

#[test]
fn a_long_list_is_shown_by_the_pager() {
    const PAGER: &str = "sed 's/^/paged: /'";
    let machine = machine(12);
    let log = ["log", "--root", "project", "-p"];
    let plain = machine.aptix(&log).env("PAGER", PAGER).output().unwrap();
    let plain = String::from_utf8(plain.stdout).unwrap();
    assert!(plain.contains("+line 11") && !plain.contains("paged"), "{plain}");

    let (paged, succeeded) = shown(&machine, &log, PAGER);
    assert!(succeeded);
    assert_eq!(paged.replace("paged: ", ""), plain);
    assert_eq!(paged.matches("paged: ").count(), plain.lines().count());

    // At once where it was asked for, where there is no such pager, and where one screen is enough; what the pager does not want is
    // no failure.
    assert_eq!(shown(&machine, &[&["--no-pager"][..], &log].concat(), PAGER), (plain.clone(), true));
    assert_eq!(shown(&machine, &log, "cat"), (plain.clone(), true));
    let (printed, succeeded) = shown(&machine, &log, "no-such-pager");
    assert!(succeeded && printed.ends_with(&plain), "{printed}");
    let (short, _) = shown(&machine, &["log", "--root", "project", "-n", "1"], PAGER);
    assert!(!short.contains("paged") && short.contains("line 11"), "{short}");
    assert_eq!(shown(&machine, &log, "head -n 1"), (format!("{}\n", plain.lines().next().unwrap()), true));
    let (json, _) = shown(&machine, &[&log[..], &["--json"]].concat(), PAGER);
    assert!(!json.contains("paged"), "{json}");
}
