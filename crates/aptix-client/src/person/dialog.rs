//! The questions a person is asked about a change, and what the answers mean.

use aptix_model::failure::{Failure, Visible};
use aptix_model::reason::Reason;

use super::keyboard::Typed;

/// Characters of a person's reason that reach the author.
const REASON_CHARS: usize = 2000;

const WHOLE: &str = "Apply this batch? [y/n/f/a/s/?] ";
const WHOLE_HELP: &str = "  y  apply it\n  n  refuse it; its author is told why\n  f  go through it file by file\n  \
                          a  apply it, and never ask about these files again\n  s  show it again\n";
const FILE_HELP: &str = "  y  this change is right\n  n  it is not: the batch is refused, and its author is told why\n  \
                         a  it is right, and never ask about this file again\n  q  back to the whole batch\n";
const WHY: &str = "Why not? (one line for the author, or nothing) ";
const NOT_ALLOWED: &str = "Policy has it on a list to ask about, so it is asked about again.\n";

/// A change as a person is shown it.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// What it is called.
    pub(super) head: String,
    /// What becomes of each file that does not stay as it is.
    pub(super) files: Vec<ShownFile>,
    /// One line a file.
    pub(super) summary: String,
}

/// What becomes of one file.
#[derive(Clone, Debug)]
pub(super) struct ShownFile {
    /// Position of the file patch in the batch, from 0.
    pub(super) index: usize,
    /// The path as the author wrote it.
    pub(super) target: String,
    /// The path as it is shown.
    pub(super) name: String,
    /// The change.
    pub(super) text: String,
    /// What else there is to know about it: its part of the summary.
    pub(super) notes: String,
    /// Whether it can be allowed for ever.
    pub(super) can_be_allowed: bool,
}

/// What somebody answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    /// Whether to do it; if not, the failures say why.
    pub(crate) verdict: Result<(), Vec<Failure>>,
    /// From now on do not ask about these files of the batch, by the positions of their patches.
    pub(crate) always: Vec<usize>,
}

impl Answer {
    const fn yes(always: Vec<usize>) -> Self {
        Self { verdict: Ok(()), always }
    }

    pub(super) fn no(failure: Failure) -> Self {
        Self { verdict: Err(vec![failure]), always: Vec::new() }
    }
}

/// A terminal, as far as a dialog needs one.
pub(super) trait Talk {
    /// Shows a text.
    fn say(&mut self, text: &str);
    /// Throws away what was typed before this moment: it was not meant for what is asked next.
    fn forget(&mut self);
    /// Shows a question, and waits for the next that is typed; nothing if nothing will ever be.
    async fn ask(&mut self, question: &str) -> Option<Typed>;
}

/// Shows a change and asks until there is an answer.
pub(super) async fn hold(shown: &Shown, talk: &mut impl Talk) -> Answer {
    match answer(shown, talk).await {
        Ok(answer) => answer,
        Err(failure) => Answer::no(*failure),
    }
}

async fn answer(shown: &Shown, talk: &mut impl Talk) -> Result<Answer, Box<Failure>> {
    show(shown, talk);
    loop {
        match ask(WHOLE, talk).await?.as_str() {
            "y" | "yes" => return Ok(Answer::yes(Vec::new())),
            "n" | "no" => {
                let why = why(talk).await;
                return Ok(Answer::no(refusal("batch", &why)));
            }
            "f" => match file_by_file(shown, talk).await? {
                Some(answer) => return Ok(answer),
                None => show(shown, talk),
            },
            "a" => {
                if shown.files.iter().any(|file| !file.can_be_allowed) {
                    talk.say(NOT_ALLOWED);
                }
                let allowed = shown.files.iter().filter(|file| file.can_be_allowed);
                return Ok(Answer::yes(allowed.map(|file| file.index).collect()));
            }
            "s" => show(shown, talk),
            _ => talk.say(WHOLE_HELP),
        }
    }
}

fn show(shown: &Shown, talk: &mut impl Talk) {
    talk.say(&shown.head);
    shown.files.iter().for_each(|file| talk.say(&file.text));
    talk.say(&shown.summary);
    talk.forget();
}

/// Asks about each file by itself; nothing if the whole batch is to be asked about after all. A file that is allowed for
/// ever is, whatever becomes of the others.
async fn file_by_file(shown: &Shown, talk: &mut impl Talk) -> Result<Option<Answer>, Box<Failure>> {
    let (mut always, mut refused) = (Vec::new(), Vec::new());
    for file in &shown.files {
        talk.say(&file.text);
        talk.say(&file.notes);
        talk.forget();
        loop {
            match ask(&format!("Is the change of {} right? [y/n/a/q/?] ", file.name), talk).await?.as_str() {
                "y" | "yes" => break,
                "n" | "no" => {
                    let why = why(talk).await;
                    refused.push(refusal("change of this file", &why).file(file.index, &file.target));
                    break;
                }
                "a" if file.can_be_allowed => {
                    always.push(file.index);
                    break;
                }
                "a" => talk.say(NOT_ALLOWED),
                "q" => return Ok(None),
                _ => talk.say(FILE_HELP),
            }
        }
    }
    Ok(Some(Answer { verdict: if refused.is_empty() { Ok(()) } else { Err(refused) }, always }))
}

/// The answer to a question, or why there is none.
async fn ask(question: &str, talk: &mut impl Talk) -> Result<String, Box<Failure>> {
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

async fn why(talk: &mut impl Talk) -> String {
    match talk.ask(WHY).await {
        Some(Typed::Line(line)) => line,
        Some(Typed::Nothing) | None => String::new(),
    }
}

fn refusal(what: &str, why: &str) -> Failure {
    let mut message = format!("a person looked at the {what} and said no");
    let why = why.trim();
    if !why.is_empty() {
        message.push_str(": ");
        message.extend(why.chars().take(REASON_CHARS));
    }
    let hint = "do not send the same again: mend what they say, or ask them what they want";
    Failure::new(Reason::Rejected, Visible(&message).to_string()).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CTRL_D: &str = "\u{4}";

    /// Types these lines, one for each question.
    struct Typist<'a> {
        lines: std::slice::Iter<'a, &'a str>,
        seen: String,
    }

    impl Talk for Typist<'_> {
        fn say(&mut self, text: &str) {
            self.seen.push_str(text);
        }

        fn forget(&mut self) {
            self.seen.push('|');
        }

        async fn ask(&mut self, question: &str) -> Option<Typed> {
            self.say(question);
            let line = self.lines.next()?;
            Some(if *line == CTRL_D { Typed::Nothing } else { Typed::Line((*line).to_owned()) })
        }
    }

    async fn answered(lines: &[&str]) -> (Answer, String) {
        let file = |index: usize, can_be_allowed| ShownFile {
            index,
            target: format!("t{index}"),
            name: format!("f{index}"),
            text: format!("diff {index}\n"),
            notes: format!("modified {index}\n"),
            can_be_allowed,
        };
        let files = vec![file(0, true), file(2, false), file(3, true)];
        let shown = Shown { head: "head\n".to_owned(), files, summary: "summary\n".to_owned() };
        let mut typist = Typist { lines: lines.iter(), seen: String::new() };
        let answer = hold(&shown, &mut typist).await;
        assert!(
            typist.seen.starts_with("head\ndiff 0\ndiff 2\ndiff 3\nsummary\n|Apply this batch? "),
            "{}",
            typist.seen
        );
        (answer, typist.seen)
    }

    fn yes(always: &[usize]) -> Answer {
        Answer::yes(always.to_vec())
    }

    #[tokio::test]
    async fn only_a_clear_yes_is_a_yes() {
        assert_eq!(answered(&["y"]).await.0, yes(&[]));
        let (answer, seen) = answered(&["", "perhaps", " YES "]).await;
        assert_eq!((answer, seen.matches("refuse it").count()), (yes(&[]), 2));
        let failures = answered(&["n", "wrong \u{1b}[2Jfile"]).await.0.verdict.unwrap_err();
        assert_eq!((failures.len(), failures[0].reason, failures[0].file_index), (1, Reason::Rejected, None));
        assert!(failures[0].message.ends_with("said no: wrong \\u{1b}[2Jfile"), "{}", failures[0].message);
        let closed = [&[][..], &["s"], &["f"], &["f", "y", "y"]].map(|lines| (lines, "was closed"));
        let silent = [&[CTRL_D][..], &["s", CTRL_D], &["f", "a", CTRL_D]].map(|lines| (lines, "gave no answer"));
        for (lines, told) in closed.into_iter().chain(silent) {
            let failures = answered(lines).await.0.verdict.unwrap_err();
            assert_eq!(failures[0].reason, Reason::ApprovalRequired);
            assert!(failures[0].message.ends_with(told) && failures[0].hint.is_some(), "{lines:?}: {failures:?}");
        }
        let failures = answered(&["n", CTRL_D]).await.0.verdict.unwrap_err();
        assert!(failures[0].message.ends_with("said no"), "{failures:?}");
    }

    #[tokio::test]
    async fn each_file_can_be_looked_at_and_refused_by_itself() {
        assert_eq!(answered(&["f", "y", "y", "y"]).await.0, yes(&[]));
        let (answer, seen) = answered(&["f", "y", "n", "too long", "?", "n", ""]).await;
        let failures = answer.verdict.unwrap_err();
        let told: Vec<_> = failures.iter().map(|failure| (failure.file_index, failure.path.as_deref())).collect();
        assert_eq!(told, [(Some(2), Some("t2")), (Some(3), Some("t3"))]);
        assert!(failures[0].message.ends_with("said no: too long"), "{}", failures[0].message);
        assert!(seen.contains("diff 2\nmodified 2\n|Is the change of f2 right? "), "{seen}");
        assert_eq!(answered(&["f", "n", "why", "q", "y"]).await.0, yes(&[]));
    }

    #[tokio::test]
    async fn what_is_allowed_for_ever_is_what_can_be() {
        assert_eq!(answered(&["a"]).await.0, yes(&[0, 3]));
        assert_eq!(answered(&["f", "a", "a", "y", "y"]).await.0, yes(&[0]));
        let answer = answered(&["f", "a", "n", "", "a"]).await.0;
        assert_eq!(
            (answer.verdict.unwrap_err().len(), answer.always),
            (1, vec![0, 3]),
            "a no to one file is not to all"
        );
    }
}
