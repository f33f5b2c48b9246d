//! What an agent shows on a terminal unless it is asked for more.

use crate::documents::create;
use crate::person::{Terminal, WHOLE};
use crate::processes::{Machine, write};

/// Beside the questions there is a line for each batch, and nothing of the log.
#[test]
fn the_screen_of_an_agent_is_quiet() {
    let machine = Machine::new();
    let server = machine.server();
    let url = server.url();
    let agent = ["agent", "--server", &url, "--workspace", "demo", "--root", "project", "--approve", "ask"];
    let mut terminal = Terminal::running(&machine.aptix(&agent));
    let mut shown = terminal.until(&format!("serving workspace demo of {url}; Ctrl-C ends it\r\n"));
    write(&machine.path("a.json"), &create("a.txt", "x\n"));
    machine.ask(&server, "submit", &["a.json"]);
    shown += &terminal.until(WHOLE);
    terminal.answer("y");
    shown += &terminal.until(" APPLIED: created a.txt\r\n");
    machine.ask(&server, "submit", &["a.json"]);
    shown += &terminal.until(" FAILED: FILE_EXISTS: a.txt");
    assert!(!shown.contains("INFO") && !shown.contains("aptix::"), "{shown}");
}
