//! The questions that a person is asked about a batch, and what the answers mean.

use aptix_model::failure::{Failure, Visible};
use aptix_model::reason::Reason;

use super::keyboard::{NoAnswer, Talk, Typed, ask};
use super::pager::{self, Pages, Read};
use super::rows::Line;
use crate::apply::Hidden;
use crate::present::untrusted::Name;

/// Characters of a person's reason that reach the author.
const REASON_CHARS: usize = 2000;

const WHOLE: &str = "Apply this batch? [y/n/f/a/s/?] ";
const WHOLE_HELP: &str = "  y  apply it\n  n  refuse it; its author is told why\n  f  go through it file by file\n  \
                          a  apply it, and never ask about these files again\n  s  show it again\n\
                          The digest covers the batch, the roots, and each file before and after.\n";
const FILE_HELP: &str = "  y  this change is right\n  n  it is not: the batch is refused, and its author is told why\n  \
                         a  it is right, and never ask about this file again\n  q  back to the whole batch\n";
const ALONE_HELP: &str = "  y  this change is right\n  n  it is not: this file is refused, and the author is told why; then you are \
                          asked about the others\n  \
                          a  it is right, and never ask about this file again\n  q  back to the whole batch\n";
const WHY: &str = "Why not? (one line for the author, or nothing) ";
const NARROWER: &str = "The terminal is narrower than it was when the change was shown: here it is again.\n";
const COMPARE: &str = "Compare the batch with these files? [y/n] ";
const NOT_ALLOWED: &str = "Policy has it on a list to ask about, so it is asked about again.\n";

/// A change as a person is shown it.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// What it is called.
    pub(super) head: Vec<Line>,
    /// What becomes of each file that does not stay as it is; those that stand out come first.
    pub(super) files: Vec<ShownFile>,
    /// The files that stay as they are.
    pub(super) unchanged: Vec<Line>,
    /// The digest of what is agreed to.
    pub(super) digest: Line,
    /// What it all comes to.
    pub(super) totals: String,
    /// Whether refusing one file leaves the others.
    pub(super) is_per_file: bool,
}

/// What becomes of one file.
#[derive(Clone, Debug)]
pub(super) struct ShownFile {
    /// Position of the file patch in the batch, from 0.
    pub(super) index: usize,
    /// The path as the author wrote it.
    pub(super) target: String,
    /// What it is called in a question, which has to be short.
    pub(super) name: String,
    /// The change, and what else there is to know about it.
    pub(super) lines: Vec<Line>,
    /// The file by its name, and why it needs attention.
    pub(super) attention: Option<Line>,
    /// Whether it can be allowed for ever.
    pub(super) can_be_allowed: bool,
}

/// A person's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    /// Whether to apply the batch; if not, the failures say why.
    pub(crate) verdict: Result<(), Vec<Failure>>,
    /// The files never to ask about again, by the positions of their patches.
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

/// What a typed line means.
enum Reply {
    Yes,
    No,
    Always,
    FileByFile,
    /// Show the batch again.
    Again,
}

/// Shows pages, then asks below them until `parse` finds a reply, or else the help that it shows. Who refuses a page replies no.
async fn asked(
    pages: Pages<'_>,
    question: &str,
    talk: &mut impl Talk,
    parse: impl Fn(&str) -> Result<Reply, &'static str>,
) -> Result<Reply, NoAnswer> {
    'shown: loop {
        let Read::ToTheEnd(size) = pager::show(pages, talk).await? else { return Ok(Reply::No) };
        loop {
            match parse(&ask(question, talk).await?) {
                Ok(Reply::Yes | Reply::Always) if talk.size().columns < size.columns => {
                    // What was shown is broken into other rows now, which bear no marks of ours.
                    talk.say(NARROWER);
                    continue 'shown;
                }
                Ok(reply) => return Ok(reply),
                Err(help) => talk.say(help),
            }
        }
    }
}

/// Shows a change and asks until there is an answer.
pub(super) async fn hold(shown: &Shown, talk: &mut impl Talk) -> Answer {
    answer(shown, talk).await.unwrap_or_else(|failure| Answer::no(*failure))
}

async fn answer(shown: &Shown, talk: &mut impl Talk) -> Result<Answer, NoAnswer> {
    let files = shown.files.iter().flat_map(|file| &file.lines);
    let body: Vec<_> = shown.head.iter().chain(files).chain(&shown.unchanged).cloned().collect();
    let attention: Vec<_> = shown.files.iter().filter_map(|file| file.attention.clone()).collect();
    let end = std::slice::from_ref(&shown.digest);
    let pages = Pages { body: &body, attention: &attention, end, question: 2 };
    let question = format!("{}\n{WHOLE}", shown.totals);
    let parse = |line: &str| match line {
        "y" | "yes" => Ok(Reply::Yes),
        "n" | "no" => Ok(Reply::No),
        "f" => Ok(Reply::FileByFile),
        "a" => Ok(Reply::Always),
        "s" => Ok(Reply::Again),
        _ => Err(WHOLE_HELP),
    };
    loop {
        match asked(pages, &question, talk, parse).await? {
            Reply::Yes => return Ok(Answer::yes(Vec::new())),
            Reply::No => return Ok(Answer::no(refusal("batch", &why(talk).await))),
            Reply::Always => {
                let (allowed, others): (Vec<_>, Vec<_>) = shown.files.iter().partition(|file| file.can_be_allowed);
                if !others.is_empty() {
                    talk.say(NOT_ALLOWED);
                }
                return Ok(Answer::yes(allowed.into_iter().map(|file| file.index).collect()));
            }
            Reply::FileByFile => {
                if let Some(answer) = file_by_file(shown, talk).await? {
                    return Ok(answer);
                }
            }
            Reply::Again => {}
        }
    }
}

/// Asks about each file by itself; nothing if the whole batch is to be asked about after all. A file that is always allowed
/// stays so if others are refused.
async fn file_by_file(shown: &Shown, talk: &mut impl Talk) -> Result<Option<Answer>, NoAnswer> {
    let (mut always, mut refused) = (Vec::new(), Vec::new());
    for file in &shown.files {
        let attention: Vec<_> = file.attention.iter().cloned().collect();
        let pages = Pages { body: &file.lines, attention: &attention, end: &[], question: 1 };
        let question = format!("Is the change of {} right? [y/n/a/q/?] ", file.name);
        let parse = |line: &str| match line {
            "y" | "yes" => Ok(Reply::Yes),
            "n" | "no" => Ok(Reply::No),
            "a" if file.can_be_allowed => Ok(Reply::Always),
            "a" => Err(NOT_ALLOWED),
            "q" => Ok(Reply::Again),
            _ => Err(if shown.is_per_file { ALONE_HELP } else { FILE_HELP }),
        };
        match asked(pages, &question, talk, parse).await? {
            Reply::Yes => {}
            Reply::No => {
                refused.push(refusal("change of this file", &why(talk).await).file(file.index, &file.target));
            }
            Reply::Always => always.push(file.index),
            Reply::Again | Reply::FileByFile => return Ok(None),
        }
    }
    Ok(Some(Answer { verdict: if refused.is_empty() { Ok(()) } else { Err(refused) }, always }))
}

/// Names withheld files and asks whether a batch may be compared with them. Nothing that its author wrote is shown except
/// the paths.
pub(super) async fn may_compare(name: &str, hidden: &[Hidden<'_>], talk: &mut impl Talk) -> Result<bool, NoAnswer> {
    let head = [
        Line::ours(""),
        Line::head(format!("{name} edits withheld files")),
        Line::ours("Its author is not shown these files, nor told whether the batch fits them."),
        Line::ours("If it fits, you see the whole change before anything is written."),
    ];
    let files = hidden.iter().map(|file| Line::ours(format!("attention: {}: {}", Name(file.path), file.why.because())));
    let body: Vec<_> = head.into_iter().chain(files).collect();
    let pages = Pages { body: &body, attention: &[], end: &[], question: 2 };
    let question = format!("{} {}\n{COMPARE}", hidden.len(), if hidden.len() == 1 { "file" } else { "files" });
    let parse = |line: &str| match line {
        "y" | "yes" => Ok(Reply::Yes),
        "n" | "no" => Ok(Reply::No),
        _ => Err(""),
    };
    Ok(matches!(asked(pages, &question, talk, parse).await?, Reply::Yes))
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
    let hint = "change what the reviewer asked for before resubmitting";
    Failure::new(Reason::Rejected, Visible(&message).to_string()).hint(hint)
}

#[cfg(test)]
mod tests {
    use anstyle::Style;

    use super::super::rows::Size;
    use super::*;
    use crate::present::diff::{DiffLine, LineKind};

    const CTRL_D: &str = "\u{4}";

    /// Types these lines, one for each question.
    struct Typist<'a> {
        lines: std::slice::Iter<'a, &'a str>,
        seen: String,
        /// The sizes that the terminal has one after the other.
        sizes: &'a [Size],
    }

    impl Talk for Typist<'_> {
        fn size(&self) -> Size {
            let questions = ["Apply this", "Is the change"].map(|question| self.seen.matches(question).count());
            self.sizes.get(questions.into_iter().sum::<usize>()).copied().unwrap_or(Size::USUAL)
        }

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
        let (answer, seen) = answered_on(lines, &[], 1).await;
        assert!(
            seen.starts_with("head\n| diff 0\n| diff 2\n| diff 3\nattention: f2\ndigest\n|totals\nApply this batch? "),
            "{seen}"
        );
        (answer, seen)
    }

    async fn answered_on(lines: &[&str], sizes: &[Size], rows: usize) -> (Answer, String) {
        let file = |index: usize, can_be_allowed: bool| {
            let diff = |text: String| Line::diff(DiffLine { style: Style::new(), text, kind: LineKind::Header });
            ShownFile {
                index,
                target: format!("t{index}"),
                name: format!("f{index}"),
                lines: (0..rows).map(|_| diff(format!("diff {index}"))).collect(),
                attention: (!can_be_allowed).then(|| Line::ours(format!("attention: f{index}"))),
                can_be_allowed,
            }
        };
        let files = vec![file(0, true), file(2, false), file(3, true)];
        let (head, digest, totals) = (vec![Line::ours("head")], Line::ours("digest"), "totals".to_owned());
        let shown = Shown { head, files, unchanged: Vec::new(), digest, totals, is_per_file: false };
        let mut typist = Typist { lines: lines.iter(), seen: String::new(), sizes };
        let answer = hold(&shown, &mut typist).await;
        (answer, anstream::adapter::strip_str(&typist.seen).to_string())
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
        for (lines, end) in closed.into_iter().chain(silent) {
            let failures = answered(lines).await.0.verdict.unwrap_err();
            assert_eq!(failures[0].reason, Reason::ApprovalRequired);
            assert!(failures[0].message.ends_with(end) && failures[0].hint.is_some(), "{lines:?}: {failures:?}");
        }
        let failures = answered(&["n", CTRL_D]).await.0.verdict.unwrap_err();
        assert!(failures[0].message.ends_with("said no"), "{failures:?}");
    }

    #[tokio::test]
    async fn each_file_can_be_looked_at_and_refused_by_itself() {
        assert_eq!(answered(&["f", "y", "y", "y"]).await.0, yes(&[]));
        let (answer, seen) = answered(&["f", "y", "n", "too long", "?", "n", ""]).await;
        let failures = answer.verdict.unwrap_err();
        let refused: Vec<_> = failures.iter().map(|failure| (failure.file_index, failure.path.as_deref())).collect();
        assert_eq!(refused, [(Some(2), Some("t2")), (Some(3), Some("t3"))]);
        assert!(failures[0].message.ends_with("said no: too long"), "{}", failures[0].message);
        assert!(seen.contains("| diff 2\nattention: f2\n|Is the change of f2 right? "), "{seen}");
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

    /// Twelve rows of a file each, and ten rows on the terminal.
    #[tokio::test]
    async fn no_one_agrees_before_the_end_was_shown_or_skipped() {
        let small = [Size { rows: 10, columns: 80 }; 9];
        let (answer, seen) = answered_on(&["y", "", "", "", "", "y"], &small, 12).await;
        assert_eq!(answer, yes(&[]));
        let pages: Vec<_> = seen.split("--more-- ").collect();
        assert_eq!(pages.len(), 6, "four pages and the end, and one is asked about again: {seen}");
        assert!(pages.iter().rev().skip(1).all(|page| !page.contains("Apply this batch?")), "{seen}");
        assert!(pages.iter().all(|page| page.matches('\n').count() <= 10), "{seen}");
        let (answer, seen) = answered_on(&["", "skip", "y"], &small, 12).await;
        assert_eq!((answer, seen.contains("19 rows were not shown\n")), (yes(&[]), true), "{seen}");
        let (answer, seen) = answered_on(&["n", "long"], &small, 12).await;
        assert!(answer.verdict.unwrap_err()[0].message.ends_with("said no: long"), "{seen}");
        let failures = answered_on(&["", CTRL_D], &small, 12).await.0.verdict.unwrap_err();
        assert_eq!(failures[0].reason, Reason::ApprovalRequired);
    }

    #[tokio::test]
    async fn a_terminal_that_became_narrower_is_shown_the_batch_again() {
        let narrow = Size { columns: 40, ..Size::USUAL };
        let (answer, seen) = answered_on(&["y", "y"], &[Size::USUAL, narrow, narrow], 1).await;
        assert_eq!((answer, seen.matches("| diff 3").count()), (yes(&[]), 2), "{seen}");
        // One file of it as well, before each kind of yes.
        let sizes = [Size::USUAL, Size::USUAL, narrow, narrow, narrow, narrow, narrow];
        for agrees in ["y", "a"] {
            let (answer, seen) = answered_on(&["f", agrees, agrees, "y", "y"], &sizes, 1).await;
            assert!(answer.verdict.is_ok(), "{answer:?}");
            let shown = [0, 2, 3].map(|file| seen.matches(&format!("| diff {file}")).count());
            assert_eq!(shown, [3, 2, 2], "{seen}");
        }
    }
}
