//! The question whether an agent may serve something else than the user agreed to before.

use super::keyboard::{Talk, Typed};

const QUESTION: &str = "Serve this from now on? [y/n] ";

/// Shows a change, and asks about it until there is a clear answer. No answer is a no.
pub(super) async fn agrees(change: &str, talk: &mut impl Talk) -> bool {
    talk.say(change);
    loop {
        let Some(Typed::Line(line)) = talk.ask(QUESTION).await else {
            talk.say("\n");
            return false;
        };
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return true,
            "n" | "no" => return false,
            _ => talk.say("Answer y or n.\n"),
        }
    }
}
