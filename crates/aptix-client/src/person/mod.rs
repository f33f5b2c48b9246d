//! The person at the terminal: is shown a change, and decides about it.

mod compare;
mod dialog;
mod keyboard;
mod pager;
pub(crate) mod prompt;
mod rows;
mod shown;
mod talk;

use std::io::IsTerminal;
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

pub(crate) use self::dialog::Answer;
use self::keyboard::{Keyboard, Open, Typed};
use self::prompt::say;
use self::rows::Size;
use self::talk::Talk;
use crate::apply::Hidden;
use crate::apply::path_style::PathStyle;
use crate::apply::proposal::Proposal;
use crate::policy::files::PolicyFiles;
use crate::workspace::fs::terminal::Terminal;

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
    /// the answer. Whatever is no clear yes in time is a no.
    pub(crate) async fn may_compare(&self, name: &str, hidden: &[Hidden<'_>], wait: Duration) -> bool {
        let _held = prompt::hold(self.0.size().columns);
        let mut open = self.0.open();
        let answer = tokio::time::timeout(wait, compare::may_compare(name, hidden, &mut open)).await;
        matches!(answer, Ok(Ok(true)))
    }

    /// Shows a proposal and waits for the answer, which is about the `subject` of that digest. One that does not come in
    /// time is a no.
    pub(crate) async fn decide(
        &self,
        name: &str,
        proposal: &Proposal<'_>,
        subject: Sha256Digest,
        paths: PathStyle,
        wait: Duration,
    ) -> Answer {
        let shown = shown::shown(name, proposal, subject, paths);
        let _held = prompt::hold(self.0.size().columns);
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

impl Talk for Open {
    fn size(&self) -> Size {
        Self::size(self)
    }

    fn say(&mut self, text: &str) {
        say(text);
    }

    fn forget(&mut self) {
        self.discard();
    }

    async fn ask(&mut self, question: &str) -> Option<Typed> {
        let _asked = prompt::show(question, Self::size(self).columns);
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
