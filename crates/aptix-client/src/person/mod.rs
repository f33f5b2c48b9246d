//! The person at the terminal, who sees a change and decides about it.

mod agreement;
pub(crate) mod answer;
mod dialog;
mod keyboard;
mod pager;
pub(crate) mod prompt;
pub(crate) mod rows;
pub(crate) mod shown;
pub(crate) mod user;

use std::io::IsTerminal;
use std::time::Duration;

use self::answer::Answer;
use self::keyboard::Keyboard;
use self::prompt::say;
use self::shown::Shown;
use crate::apply::proposal::Proposal;
use crate::policy::files::PolicyFiles;
use crate::workspace::fs::terminal::Terminal;

/// The person who reads stderr and types on the terminal.
#[derive(Debug)]
pub(crate) struct Person(Keyboard);

impl Person {
    /// The person of this process, if there can be one.
    pub(crate) fn present() -> Option<Self> {
        let sees = std::io::stderr().is_terminal();
        Some(Self(Keyboard::of(Terminal::open().filter(|_| sees)?)))
    }

    /// Names the withheld files that a batch would be compared with, and waits for the answer, however long that takes. Anything
    /// but a yes is a no.
    pub(crate) async fn may_compare(&self, shown: &Shown) -> bool {
        let _held = prompt::hold(self.0.size().columns);
        matches!(dialog::may_compare(shown, &mut self.0.open()).await, Ok(true))
    }

    /// Shows that something else would be served than was agreed to before, and waits for the answer, however long that
    /// takes. Anything but a yes is a no.
    pub(crate) async fn agrees(&self, change: &str) -> bool {
        let _held = prompt::hold(self.0.size().columns);
        agreement::agrees(change, &mut self.0.open()).await
    }

    /// Shows a change, and waits for the answer, however long that takes.
    pub(crate) async fn decide(&self, shown: &Shown) -> Answer {
        let _held = prompt::hold(self.0.size().columns);
        dialog::hold(shown, &mut self.0.open()).await
    }
}

/// Waits so long for an answer, and says so if there is none in time.
pub(crate) async fn in_time<T>(wait: Duration, answer: impl Future<Output = T>) -> Option<T> {
    let answer = tokio::time::timeout(wait, answer).await.ok();
    if answer.is_none() {
        say("\nToo late: the batch is refused.\n");
    }
    answer
}

/// Adds these files to the person's policy, so that they are not asked about again.
pub(crate) fn allow_always(proposal: &Proposal<'_>, policies: &PolicyFiles, files: &[usize]) {
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
