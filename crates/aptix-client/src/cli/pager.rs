//! What takes more than a screen, shown by the pager of the user. It is shown at the very end of a command, when nothing is left that
//! Ctrl-C could interrupt: that is for the pager.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use super::output;

/// The pager of those who chose none: it ends by itself where one screen is enough, keeps colours, and leaves what it showed.
const USUAL: (&str, &str) = ("less", "-FRX");

/// Exit codes with which a shell says that there is no such program, or that it cannot be executed.
const NOT_STARTED: [i32; 2] = [126, 127];

/// Shows what was kept for the end, if anything was, with this pager: a command of the shell, or the usual one.
pub(super) fn show_kept(chosen: Option<&str>) {
    let Some(text) = output::kept() else { return };
    let is_shown = start(chosen).is_some_and(|pager| fill(pager, text));
    if !is_shown {
        output::print(text);
    }
}

fn start(chosen: Option<&str>) -> Option<Child> {
    let mut pager = match chosen.map(str::trim) {
        Some("" | "cat") => return None,
        Some(chosen) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", chosen]);
            shell
        }
        None => {
            let mut usual = Command::new(USUAL.0);
            usual.arg(USUAL.1);
            usual
        }
    };
    pager.stdin(Stdio::piped()).spawn().ok()
}

/// Gives the pager a text and waits until it ends; answers whether it was one.
fn fill(mut pager: Child, text: &str) -> bool {
    if let Some(mut stdin) = pager.stdin.take() {
        // One that was left before the end of the text wants no more of it.
        let _ = stdin.write_all(&output::in_colours(text));
    }
    let ended = pager.wait();
    !ended.is_ok_and(|status| status.code().is_some_and(|code| NOT_STARTED.contains(&code)))
}
