//! Whether a batch may be written: asked of the person at the terminal, or decided once for all.

use std::io::IsTerminal;

use aptix_model::failure::{Failure, Visible};
use aptix_model::reason::Reason;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::keyboard::Keyboard;

/// Characters of a person's reason that reach the author.
const REASON_CHARS: usize = 2000;

/// Who decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Approve {
    /// The person at the terminal is shown the diff and asked; without a terminal, every batch is refused.
    Ask,
    /// Every batch that passes all checks is applied.
    Auto,
    /// Every batch is refused.
    Never,
}

/// What was decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It may be written.
    Yes,
    /// It must not, and the author is told why.
    No(Box<Failure>),
    /// Nothing was decided: the batch was withdrawn, the connection died, or the agent stops.
    Void,
}

/// Decides, and asks where that is needed.
#[derive(Debug)]
pub(super) struct Approval {
    approve: Approve,
    /// What a person types on; absent without a person.
    keyboard: Option<Keyboard>,
}

impl Approval {
    /// Decides in this way, with the person at the terminal if there is one and one is needed.
    pub(super) fn new(approve: Approve) -> Self {
        let person = approve == Approve::Ask && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Self { approve, keyboard: person.then(Keyboard::of_terminal) }
    }

    /// What can be said without seeing what would change.
    pub(super) fn beforehand(&self) -> Option<Failure> {
        match (self.approve, &self.keyboard) {
            (Approve::Never, _) => {
                let message = "the agent runs with --approve never and refuses every batch";
                Some(Failure::new(Reason::Rejected, message))
            }
            (Approve::Ask, None) => {
                let message = "a person has to agree, and the agent runs without a terminal on which to ask one";
                let hint = "start the agent on a terminal, or with --approve auto";
                Some(Failure::new(Reason::ApprovalRequired, message).hint(hint))
            }
            (Approve::Auto, _) | (Approve::Ask, Some(_)) => None,
        }
    }

    /// Decides about the change that `shown` describes; asks where a person decides, until the batch is withdrawn or
    /// the agent stops. Blocks: must not be called from asynchronous code.
    pub(super) fn ask(
        &self,
        shown: impl FnOnce() -> String,
        withdrawn: &CancellationToken,
        stop: &CancellationToken,
    ) -> Verdict {
        let verdict = match &self.keyboard {
            Some(keyboard) => {
                say(&shown());
                // What was typed before the whole change was shown was not meant for it.
                let mut open = keyboard.open();
                let mut terminal = say;
                tokio::runtime::Handle::current().block_on(async {
                    tokio::select! {
                        verdict = ask_person(&mut open.lines, &mut terminal) => verdict,
                        () = withdrawn.cancelled() => void(),
                        () = stop.cancelled() => void(),
                    }
                })
            }
            None => self.beforehand().map_or(Verdict::Yes, |failure| Verdict::No(Box::new(failure))),
        };
        if withdrawn.is_cancelled() { Verdict::Void } else { verdict }
    }
}

fn void() -> Verdict {
    say("\nThe question is void: the batch was withdrawn, the connection is lost, or the agent stops.\n");
    Verdict::Void
}

async fn ask_person(lines: &mut mpsc::Receiver<String>, say: &mut (dyn FnMut(&str) + Send)) -> Verdict {
    loop {
        say("Apply this batch? [y/n] ");
        let Some(answer) = lines.recv().await else {
            let message = "a person has to agree, and the terminal was closed";
            return Verdict::No(Box::new(Failure::new(Reason::ApprovalRequired, message)));
        };
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Verdict::Yes,
            "n" | "no" => break,
            _ => {}
        }
    }
    say("Why not? (one line for the author, or nothing) ");
    let why = lines.recv().await.unwrap_or_default();
    Verdict::No(Box::new(refusal(why.trim())))
}

fn refusal(why: &str) -> Failure {
    let mut message = "a person looked at the batch and said no".to_owned();
    if !why.is_empty() {
        message.push_str(": ");
        message.extend(why.chars().take(REASON_CHARS));
    }
    Failure::new(Reason::Rejected, Visible(&message).to_string())
}

fn say(text: &str) {
    use std::io::Write;
    let mut terminal = anstream::stderr().lock();
    // A terminal that is gone is noticed when the answer does not come.
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answered(typed: &[&str]) -> Verdict {
        let (sender, mut lines) = mpsc::channel(8);
        for line in typed {
            sender.send((*line).to_owned()).await.unwrap();
        }
        drop(sender);
        let mut said = String::new();
        let verdict = ask_person(&mut lines, &mut |text: &str| said.push_str(text)).await;
        assert!(said.starts_with("Apply this batch? [y/n] "), "{said}");
        verdict
    }

    #[tokio::test]
    async fn only_a_clear_yes_is_a_yes() {
        assert_eq!(answered(&["y"]).await, Verdict::Yes);
        assert_eq!(answered(&["", "perhaps", " YES "]).await, Verdict::Yes);
        let Verdict::No(failure) = answered(&["n", "wrong \u{1b}[2Jfile"]).await else { panic!("a no is a no") };
        assert_eq!(failure.reason, Reason::Rejected);
        assert!(failure.message.ends_with("said no: wrong \\u{1b}[2Jfile"), "{}", failure.message);
        let Verdict::No(failure) = answered(&[]).await else { panic!("no answer is a no") };
        assert_eq!(failure.reason, Reason::ApprovalRequired);
    }

    #[test]
    fn without_a_person_nothing_is_asked() {
        let fixed = |approve| Approval { approve, keyboard: None };
        assert_eq!(fixed(Approve::Auto).beforehand(), None);
        assert_eq!(fixed(Approve::Never).beforehand().unwrap().reason, Reason::Rejected);
        assert_eq!(fixed(Approve::Ask).beforehand().unwrap().reason, Reason::ApprovalRequired);
    }
}
