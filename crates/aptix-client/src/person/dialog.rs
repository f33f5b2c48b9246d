//! The questions a person is asked about a change, and what the answers mean.

use aptix_model::failure::{Failure, Visible};
use aptix_model::reason::Reason;

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
    /// Whether it can be allowed for ever.
    pub(super) can_be_allowed: bool,
}

/// What somebody answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Do it, and from now on do not ask about these files of the batch, by their positions.
    Yes {
        /// Positions of file patches.
        always: Vec<usize>,
    },
    /// Do not; the failures say why.
    No(Vec<Failure>),
}

/// A terminal, as far as a dialog needs one.
pub(super) trait Talk {
    /// Shows a text.
    fn say(&mut self, text: &str);
    /// Throws away what was typed before this moment: it was not meant for what is asked next.
    fn forget(&mut self);
    /// The next line; nothing if none will ever come.
    async fn line(&mut self) -> Option<String>;
}

/// Shows a change and asks until there is an answer.
pub(super) async fn hold(shown: &Shown, talk: &mut impl Talk) -> Answer {
    show(shown, talk);
    loop {
        match ask(WHOLE, talk).await.as_deref() {
            None => return gone(),
            Some("y" | "yes") => return Answer::Yes { always: Vec::new() },
            Some("n" | "no") => {
                let why = why(talk).await;
                return Answer::No(vec![refusal("batch", &why)]);
            }
            Some("f") => match file_by_file(shown, talk).await {
                Some(answer) => return answer,
                None => show(shown, talk),
            },
            Some("a") => {
                if shown.files.iter().any(|file| !file.can_be_allowed) {
                    talk.say(NOT_ALLOWED);
                }
                let allowed = shown.files.iter().filter(|file| file.can_be_allowed);
                return Answer::Yes { always: allowed.map(|file| file.index).collect() };
            }
            Some("s") => show(shown, talk),
            Some(_) => talk.say(WHOLE_HELP),
        }
    }
}

fn show(shown: &Shown, talk: &mut impl Talk) {
    talk.say(&shown.head);
    shown.files.iter().for_each(|file| talk.say(&file.text));
    talk.say(&shown.summary);
    talk.forget();
}

/// Asks about each file by itself; nothing if the whole batch is to be asked about after all.
async fn file_by_file(shown: &Shown, talk: &mut impl Talk) -> Option<Answer> {
    let (mut always, mut refused) = (Vec::new(), Vec::new());
    for file in &shown.files {
        talk.say(&file.text);
        talk.forget();
        loop {
            match ask(&format!("Is the change of {} right? [y/n/a/q/?] ", file.name), talk).await.as_deref() {
                None => return Some(gone()),
                Some("y" | "yes") => break,
                Some("n" | "no") => {
                    let why = why(talk).await;
                    refused.push(refusal("change of this file", &why).file(file.index, &file.target));
                    break;
                }
                Some("a") if file.can_be_allowed => {
                    always.push(file.index);
                    break;
                }
                Some("a") => talk.say(NOT_ALLOWED),
                Some("q") => return None,
                Some(_) => talk.say(FILE_HELP),
            }
        }
    }
    Some(if refused.is_empty() { Answer::Yes { always } } else { Answer::No(refused) })
}

async fn ask(question: &str, talk: &mut impl Talk) -> Option<String> {
    talk.say(question);
    Some(talk.line().await?.trim().to_lowercase())
}

async fn why(talk: &mut impl Talk) -> String {
    talk.say(WHY);
    talk.line().await.unwrap_or_default()
}

fn gone() -> Answer {
    let message = "a person has to agree, and the terminal was closed";
    Answer::No(vec![Failure::new(Reason::ApprovalRequired, message)])
}

fn refusal(what: &str, why: &str) -> Failure {
    let mut message = format!("a person looked at the {what} and said no");
    let why = why.trim();
    if !why.is_empty() {
        message.push_str(": ");
        message.extend(why.chars().take(REASON_CHARS));
    }
    Failure::new(Reason::Rejected, Visible(&message).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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

        async fn line(&mut self) -> Option<String> {
            self.lines.next().map(|line| (*line).to_owned())
        }
    }

    async fn answered(lines: &[&str]) -> (Answer, String) {
        let file = |index: usize, can_be_allowed| ShownFile {
            index,
            target: format!("t{index}"),
            name: format!("f{index}"),
            text: format!("diff {index}\n"),
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
        Answer::Yes { always: always.to_vec() }
    }

    #[tokio::test]
    async fn only_a_clear_yes_is_a_yes() {
        assert_eq!(answered(&["y"]).await.0, yes(&[]));
        let (answer, seen) = answered(&["", "perhaps", " YES "]).await;
        assert_eq!((answer, seen.matches("refuse it").count()), (yes(&[]), 2));
        let (Answer::No(failures), _) = answered(&["n", "wrong \u{1b}[2Jfile"]).await else { panic!("a no is a no") };
        assert_eq!((failures.len(), failures[0].reason, failures[0].file_index), (1, Reason::Rejected, None));
        assert!(failures[0].message.ends_with("said no: wrong \\u{1b}[2Jfile"), "{}", failures[0].message);
        for lines in [&[][..], &["s"], &["f"], &["f", "y", "y"]] {
            let (Answer::No(failures), _) = answered(lines).await else { panic!("no answer is a no: {lines:?}") };
            assert_eq!(failures[0].reason, Reason::ApprovalRequired);
        }
    }

    #[tokio::test]
    async fn each_file_can_be_looked_at_and_refused_by_itself() {
        assert_eq!(answered(&["f", "y", "y", "y"]).await.0, yes(&[]));
        let (answer, seen) = answered(&["f", "y", "n", "too long", "?", "n", ""]).await;
        let Answer::No(failures) = answer else { panic!("a no to one file is a no") };
        let told: Vec<_> = failures.iter().map(|failure| (failure.file_index, failure.path.as_deref())).collect();
        assert_eq!(told, [(Some(2), Some("t2")), (Some(3), Some("t3"))]);
        assert!(failures[0].message.ends_with("said no: too long"), "{}", failures[0].message);
        assert!(seen.contains("diff 2\n|Is the change of f2 right? "), "{seen}");
        assert_eq!(answered(&["f", "n", "why", "q", "y"]).await.0, yes(&[]));
    }

    #[tokio::test]
    async fn what_is_allowed_for_ever_is_what_can_be() {
        assert_eq!(answered(&["a"]).await.0, yes(&[0, 3]));
        assert_eq!(answered(&["f", "a", "a", "y", "y"]).await.0, yes(&[0]));
    }
}
