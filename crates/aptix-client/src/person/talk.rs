//! A terminal as far as a dialog needs one, and the answer to one question.

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use super::keyboard::Typed;
use super::rows::Size;

/// Why a question has no answer.
pub(super) type NoAnswer = Box<Failure>;

/// A terminal, as far as a dialog needs one.
pub(super) trait Talk {
    /// Its size at this moment.
    fn size(&self) -> Size;
    /// Shows a text.
    fn say(&mut self, text: &str);
    /// Throws away what was typed before this moment: it was not meant for what is asked next.
    fn forget(&mut self);
    /// Shows a question, and waits for the next that is typed; nothing if nothing will ever be.
    async fn ask(&mut self, question: &str) -> Option<Typed>;
}

/// The answer to a question, or why there is none.
pub(super) async fn ask(question: &str, talk: &mut impl Talk) -> Result<String, NoAnswer> {
    match talk.ask(question).await {
        Some(Typed::Line(line)) => Ok(line.trim().to_lowercase()),
        Some(Typed::Nothing) => {
            talk.say("\nNo answer: the batch is refused.\n");
            let message = "a person has to agree, and the one at the terminal gave no answer";
            let failure = Failure::new(Reason::ApprovalRequired, message);
            Err(Box::new(failure.hint("send the batch again to have it asked about again")))
        }
        None => {
            let message = "a person has to agree, and the terminal was closed";
            let failure = Failure::new(Reason::ApprovalRequired, message);
            Err(Box::new(failure.hint("start the program again on a terminal, then send the batch again")))
        }
    }
}
