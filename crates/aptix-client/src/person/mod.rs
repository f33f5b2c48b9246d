//! The person at the terminal: is shown a change, and decides about it.

mod dialog;
mod keyboard;
pub(crate) mod prompt;
mod shown;

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::Duration;

use aptix_model::failure::{Failure, Visible};
use aptix_model::reason::Reason;

pub(crate) use self::dialog::Answer;
use self::dialog::Talk;
use self::keyboard::{Keyboard, Open, Typed};
use crate::apply::Hidden;
use crate::cli::diff::Paths;
use crate::policy::files::PolicyFiles;
use crate::proposal::Proposal;
use crate::workspace::terminal::Terminal;

/// Somebody who sees what is written to stderr, and types on the terminal.
#[derive(Debug)]
pub(crate) struct Person(Keyboard);

impl Person {
    /// The person of this process, if there can be one.
    pub(crate) fn present() -> Option<Self> {
        let sees = std::io::stderr().is_terminal();
        Some(Self(Keyboard::of(Terminal::open().filter(|_| sees)?)))
    }

    /// Names the files that a batch would be compared with although nothing of them is shown to its author, and waits for
    /// the answer. Whatever is no clear yes in time is a no. Nothing that the author wrote is shown but the paths.
    pub(crate) async fn may_compare(&self, name: &str, hidden: &[Hidden<'_>], wait: Duration) -> bool {
        say(&compared(name, hidden));
        let mut open = self.0.open();
        let answer = tokio::time::timeout(wait, async {
            loop {
                match open.ask("Compare the batch with these files? [y/n] ").await {
                    Some(Typed::Line(line)) => match line.trim() {
                        "y" | "yes" => return true,
                        "n" | "no" => return false,
                        _ => {}
                    },
                    Some(Typed::Nothing) | None => return false,
                }
            }
        });
        answer.await.unwrap_or(false)
    }

    /// Shows a proposal and waits for the answer. One that does not come in time is a no.
    pub(crate) async fn decide(&self, name: &str, proposal: &Proposal<'_>, paths: Paths, wait: Duration) -> Answer {
        let shown = shown::shown(name, proposal, paths);
        let mut open = self.0.open();
        let Ok(answer) = tokio::time::timeout(wait, dialog::hold(&shown, &mut open)).await else {
            say("\nToo late: the batch is refused.\n");
            let message = format!("a person has to agree, and nobody answered within {} seconds", wait.as_secs());
            let hint = "send the batch again when somebody is there";
            return Answer::no(Failure::new(Reason::ApprovalRequired, message).hint(hint));
        };
        answer
    }
}

/// What is said before a person is asked whether a batch may be compared with withheld files.
fn compared(name: &str, hidden: &[Hidden<'_>]) -> String {
    let mut text = format!(
        "\n{name} edits files that its author is not shown. Whether it fits them is not told; if it does, you see the whole \
         change before anything is written.\n"
    );
    for Hidden { path, why, .. } in hidden {
        let _ = writeln!(text, "  {}: {}", Visible(path), why.because());
    }
    text
}

impl Talk for Open {
    fn say(&mut self, text: &str) {
        say(text);
    }

    fn forget(&mut self) {
        self.discard();
    }

    async fn ask(&mut self, question: &str) -> Option<Typed> {
        let _asked = prompt::show(question);
        self.lines.recv().await
    }
}

/// Does what a person wants from now on: not to be asked about these files again.
pub(crate) fn allow_for_ever(proposal: &Proposal<'_>, policies: &PolicyFiles, files: &[usize]) {
    if files.is_empty() {
        return;
    }
    let names: Vec<_> = files.iter().flat_map(|file| proposal.names(*file)).collect();
    let file = policies.own().display();
    match policies.allow(proposal.workspace, &names) {
        Ok(()) => say(&format!("{file} allows it from now on.\n")),
        Err(error) => {
            let by_hand = policies.allowing(proposal.workspace, &names);
            say(&format!("You will be asked again: {file} cannot be added to: {error}\n{by_hand}"));
        }
    }
}

/// Shows a person a text that nothing can hide in.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    let mut terminal = anstream::stderr().lock();
    // A terminal that is gone is noticed when the answer does not come.
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}
