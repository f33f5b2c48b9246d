//! What a person lets change for ever: that is its own question, which names it.

use crate::documents::create;
use crate::person::{Terminal, WHOLE};
use crate::processes::{Machine, write};

/// Allows the files of the batch for ever; answers what the terminal named.
fn allow(terminal: &mut Terminal) -> String {
    terminal.answer("ever");
    let named = terminal.until("Never ask about them again? [y/n] ");
    terminal.answer("y");
    named
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a person removes a file")]
fn an_agent_that_approves_everything_asks_about_what_is_sensitive_until_it_is_allowed() {
    let machine = Machine::new();
    let server = machine.server();
    let mut terminal = Terminal::of_agent(&machine, &server, "auto");
    std::thread::scope(|scope| {
        let applied = scope.spawn(|| machine.submit(&server, &create("AGENTS.md", "first")));
        let shown = terminal.until(WHOLE);
        assert!(shown.contains("attention: AGENTS.md: the file tells an editor"), "{shown}");
        let named = allow(&mut terminal);
        assert!(named.contains("project/AGENTS.md\r\n"), "{named}");
        terminal.until("allows it from now on.");
        assert_eq!(applied.join().unwrap().1, Some(0));
    });
    let policy = std::fs::read_to_string(machine.path("config/aptix/policy.toml")).unwrap();
    assert!(policy.contains("allow = [\"/AGENTS.md\"]"), "{policy}");
    std::fs::remove_file(machine.path("project/AGENTS.md")).unwrap();
    let (again, code) = machine.submit(&server, &create("AGENTS.md", "second"));
    assert_eq!((code, &again["state"]), (Some(0), &"APPLIED".into()), "{again}");
}

/// The policy file is a link to a place that is never written: the user can edit it there.
#[test]
fn a_linked_policy_file_is_not_written_and_the_line_to_add_is_shown() {
    let machine = Machine::new();
    write(&machine.path("a.json"), &create("AGENTS.md", ""));
    let machine = machine.with_policy("");
    let (file, real) = (machine.path("config/aptix/policy.toml"), machine.path("dotfiles/policy.toml"));
    move_and_link(&file, &real);
    let mut terminal = Terminal::running(&machine.aptix(&["apply", "--root", "project", "a.json"]));
    terminal.until(WHOLE);
    allow(&mut terminal);
    let shown = terminal.until("created AGENTS.md\r\n");
    let is_walled = !shown.contains("allows it from now on.");
    if is_walled {
        assert!(shown.contains("it is a link to ") && shown.contains("allow = [\"/AGENTS.md\"]\r\n"), "{shown}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a person keeps their files elsewhere")]
fn move_and_link(file: &std::path::Path, real: &std::path::Path) {
    std::fs::create_dir(real.parent().unwrap()).unwrap();
    std::fs::rename(file, real).unwrap();
    std::os::unix::fs::symlink(real, file).unwrap();
}
