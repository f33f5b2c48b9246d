//! The questions that a person is asked about a batch, and what the answers mean.

use super::answer::{Answer, refusal};
use super::keyboard::{NoAnswer, Talk, Typed, ask};
use super::pager::{self, Pages, Read};
use super::shown::{Shown, ShownFile};

const WHOLE: &str = "Apply this batch? [y,n,q,f,s,ever,?] ";
const WHOLE_HELP: &str = "  y  apply it\n  n  refuse it; its author is told why\n  q  refuse it without a word\n  \
                          f  go through it file by file\n  s  show it again\n  ever  apply it, and never ask about these files again\n\
                          The digest covers the batch, the roots, and each file before and after.\n";
const FILE_HELP: &str = "  y  this change is right\n  n  it is not: the batch is refused, and its author is told why\n";
const ALONE_HELP: &str = "  y  this change is right\n  n  it is not: this file is refused, and the author is told why; then you are \
                          asked about the others\n";
const REST_HELP: &str = "  a  this change and all that follow are right\n  \
                         d  neither this change nor those that follow are right; the author is told why\n  \
                         q  the same without a word\n  b  back to the whole batch\n  \
                         ever  this change is right, and never ask about this file again\n";
const WHY: &str = "Why not? (one line for the author, or nothing) ";
const UNSEEN: &str = "Not all that follows was shown: here is the batch again.\n";
const NARROWER: &str = "The terminal is narrower than it was when the change was shown: here it is again.\n";
const COMPARE: &str = "Compare the batch with these files? [y/n] ";
const NOT_ALLOWED: &str = "What policy has on a list, or withholds from the author, is asked about each time.\n";
const FOR_EVER: &str = "Never ask about them again? [y/n] ";

/// What a typed line means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reply {
    Yes,
    No,
    /// No, and why is not asked.
    Quit,
    /// Yes to this file and to those after it.
    YesToRest,
    NoToRest,
    ForEver,
    FileByFile,
    /// Show the batch again.
    Again,
}

impl Reply {
    /// Whether it agrees to what was shown.
    const fn agrees(self) -> bool {
        matches!(self, Self::Yes | Self::YesToRest | Self::ForEver)
    }
}

/// Shows pages, then asks below them until `parse` finds a reply, or else the help that it shows. Who refuses a page replies no. Answers
/// the columns of the terminal, too, on which they were shown.
async fn asked(
    pages: Pages<'_>,
    question: &str,
    talk: &mut impl Talk,
    parse: impl Fn(&str) -> Option<Reply>,
    help: &[&str],
) -> Result<(Reply, usize), NoAnswer> {
    'shown: loop {
        let Read::ToTheEnd(size, unread) = pager::show(pages, talk).await? else { return Ok((Reply::No, 0)) };
        loop {
            match parse(&ask(question, talk).await?) {
                Some(reply) if reply.agrees() && talk.size().columns < size.columns => {
                    // What was shown is broken into other rows now, which bear no marks of ours.
                    talk.say(NARROWER);
                    continue 'shown;
                }
                // No terminal is as wide as one on which everything would have been shown.
                Some(reply) => return Ok((reply, if unread == 0 { size.columns } else { usize::MAX })),
                None => help.iter().for_each(|help| talk.say(help)),
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
        // There is nothing before this question and nothing after it: "all" and "the rest" are the batch.
        "y" | "yes" | "a" => Some(Reply::Yes),
        "n" | "no" | "d" => Some(Reply::No),
        "q" => Some(Reply::Quit),
        "f" => Some(Reply::FileByFile),
        "ever" => Some(Reply::ForEver),
        "s" => Some(Reply::Again),
        _ => None,
    };
    loop {
        let (reply, columns) = asked(pages, &question, talk, parse, &[WHOLE_HELP]).await?;
        match reply {
            Reply::Yes | Reply::YesToRest => return Ok(Answer::yes(Vec::new())),
            Reply::No | Reply::NoToRest => return Ok(Answer::no(refusal("batch", &why(shown, talk).await))),
            Reply::Quit => return Ok(Answer::no(refusal("batch", ""))),
            Reply::ForEver => {
                let files: Vec<_> = shown.files.iter().collect();
                if let Some(always) = for_ever(&files, talk).await? {
                    return Ok(Answer::yes(always));
                }
            }
            Reply::FileByFile => {
                if let Some(answer) = file_by_file(shown, columns, talk).await? {
                    return Ok(answer);
                }
            }
            Reply::Again => {}
        }
    }
}

/// Names what would never be asked about again, and asks whether it is to be so; the positions of the files, if it is.
async fn for_ever(files: &[&ShownFile], talk: &mut impl Talk) -> Result<Option<Vec<usize>>, NoAnswer> {
    let (allowed, others): (Vec<&ShownFile>, Vec<_>) = files.iter().partition(|file| !file.allows.is_empty());
    if !others.is_empty() {
        talk.say(NOT_ALLOWED);
    }
    if allowed.is_empty() {
        return Ok(None);
    }
    let body: Vec<_> = allowed.iter().flat_map(|file| file.allows.iter().cloned()).collect();
    let pages = Pages { body: &body, attention: &[], end: &[], question: 1 };
    let parse = |line: &str| match line {
        "y" | "yes" => Some(Reply::ForEver),
        "n" | "no" | "q" => Some(Reply::Again),
        _ => None,
    };
    let (reply, _) = asked(pages, FOR_EVER, talk, parse, &[]).await?;
    Ok((reply == Reply::ForEver).then(|| allowed.into_iter().map(|file| file.index).collect()))
}

/// Asks about each file by itself, after the whole batch was shown on a terminal of so many columns; nothing if the whole batch is to be
/// asked about after all. A file that is always allowed stays so if others are refused.
async fn file_by_file(shown: &Shown, columns: usize, talk: &mut impl Talk) -> Result<Option<Answer>, NoAnswer> {
    let (mut always, mut refused) = (Vec::new(), Vec::new());
    let help = [if shown.is_per_file { ALONE_HELP } else { FILE_HELP }, REST_HELP];
    let mut rest = shown.files.iter();
    while let Some(file) = rest.clone().next() {
        let attention: Vec<_> = file.attention.iter().cloned().collect();
        let pages = Pages { body: &file.lines, attention: &attention, end: &[], question: 1 };
        let question = format!("Is the change of {} right? [y,n,a,d,q,b,ever,?] ", file.name);
        let parse = |line: &str| match line {
            "y" | "yes" => Some(Reply::Yes),
            "n" | "no" => Some(Reply::No),
            "a" => Some(Reply::YesToRest),
            "d" => Some(Reply::NoToRest),
            "q" => Some(Reply::Quit),
            "ever" => Some(Reply::ForEver),
            "b" => Some(Reply::Again),
            _ => None,
        };
        let mut refuse = |files: &mut dyn Iterator<Item = &ShownFile>, why: &str| {
            refused.extend(files.map(|file| refusal("change of this file", why).file(file.index, &file.target)));
        };
        match asked(pages, &question, talk, parse, &help).await?.0 {
            Reply::Yes => drop(rest.next()),
            Reply::No => refuse(&mut rest.next().into_iter(), &why(shown, talk).await),
            // Those that follow were shown with the whole batch.
            Reply::YesToRest if talk.size().columns < columns => {
                talk.say(UNSEEN);
                return Ok(None);
            }
            Reply::YesToRest => break,
            Reply::NoToRest => refuse(&mut rest, &why(shown, talk).await),
            Reply::Quit => refuse(&mut rest, ""),
            Reply::ForEver => {
                if let Some(allowed) = for_ever(&[file], talk).await? {
                    always.extend(allowed);
                    rest.next();
                }
            }
            Reply::Again | Reply::FileByFile => return Ok(None),
        }
    }
    Ok(Some(Answer { verdict: if refused.is_empty() { Ok(()) } else { Err(refused) }, always, agreed: Vec::new() }))
}

/// Names the withheld files that are shown, and asks whether a batch may be compared with them.
pub(super) async fn may_compare(shown: &Shown, talk: &mut impl Talk) -> Result<bool, NoAnswer> {
    let pages = Pages { body: &shown.head, attention: &[], end: &[], question: 2 };
    let question = format!("{}\n{COMPARE}", shown.totals);
    let parse = |line: &str| match line {
        "y" | "yes" => Some(Reply::Yes),
        "n" | "no" => Some(Reply::No),
        _ => None,
    };
    Ok(asked(pages, &question, talk, parse, &[]).await?.0 == Reply::Yes)
}

/// The reason for a no, if it can reach the author.
async fn why(shown: &Shown, talk: &mut impl Talk) -> String {
    if shown.drops_reason {
        return String::new();
    }
    match talk.ask(WHY).await {
        Some(Typed::Line(line)) => line,
        Some(Typed::Nothing) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use anstyle::Style;
    use aptix_model::reason::Reason;

    use super::super::rows::{Line, Size};
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
            let questions =
                ["Apply this", "Is the change", "Never ask"].map(|question| self.seen.matches(question).count());
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
                allows: can_be_allowed.then(|| Line::ours(format!("allows p{index}"))).into_iter().collect(),
                base: None,
            }
        };
        let files = vec![file(0, true), file(2, false), file(3, true)];
        let (head, digest, totals) = (vec![Line::ours("head")], Line::ours("digest"), "totals".to_owned());
        let shown = Shown { head, files, digest, totals, ..Shown::default() };
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
        assert_eq!((answer, seen.matches("n  refuse it").count()), (yes(&[]), 2));
        let failures = answered(&["n", "wrong \u{1b}[2Jfile"]).await.0.verdict.unwrap_err();
        assert_eq!((failures.len(), failures[0].reason, failures[0].file_index), (1, Reason::Rejected, None));
        assert!(failures[0].message.ends_with("said no: wrong \\u{1b}[2Jfile"), "{}", failures[0].message);
        let closed =
            [&[][..], &["s"], &["f"], &["f", "y", "y"], &["ever"], &["f", "ever"]].map(|lines| (lines, "was closed"));
        let silent = [&[CTRL_D][..], &["s", CTRL_D], &["f", "y", CTRL_D], &["f", "n", "no", CTRL_D]]
            .map(|lines| (lines, "gave no answer"));
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
        assert_eq!(answered(&["f", "n", "why", "b", "y"]).await.0, yes(&[]));
    }

    /// The positions of the files that are refused, and the reason that is given for the last one.
    fn refused(answer: Answer) -> (Vec<usize>, String) {
        let failures = answer.verdict.unwrap_err();
        let files = failures.iter().filter_map(|failure| failure.file_index).collect();
        let message = failures.last().unwrap().message.clone();
        (files, message.split_once("said no").unwrap().1.trim_start_matches(": ").to_owned())
    }

    #[tokio::test]
    async fn one_key_answers_for_all_that_follow() {
        assert_eq!(answered(&["a"]).await.0, yes(&[]), "of the whole batch, all is the batch and not for ever");
        assert_eq!(refused(answered(&["d", "wrong"]).await.0), (vec![], "wrong".to_owned()));
        assert_eq!(refused(answered(&["q"]).await.0), (vec![], String::new()));
        let (answer, seen) = answered(&["f", "y", "a"]).await;
        assert_eq!((answer, seen.contains("Is the change of f3 right?")), (yes(&[]), false));
        assert_eq!(refused(answered(&["f", "n", "one", "a"]).await.0), (vec![0], "one".to_owned()));
        assert_eq!(refused(answered(&["f", "y", "d", "rest"]).await.0), (vec![2, 3], "rest".to_owned()));
        assert_eq!(refused(answered(&["f", "y", "q"]).await.0), (vec![2, 3], String::new()));
        let help = answered(&["f", "?", "q"]).await.1;
        assert!(
            ["  a  this change and all", "  d  neither", "  ever  this change"].iter().all(|key| help.contains(key))
        );
    }

    #[tokio::test]
    async fn what_is_allowed_for_ever_is_named_and_confirmed() {
        let (answer, seen) = answered(&["ever", "y"]).await;
        assert_eq!(answer, yes(&[0, 3]));
        assert!(seen.contains(&format!("{NOT_ALLOWED}allows p0\nallows p3\n|{FOR_EVER}")), "{seen}");
        let (answer, seen) = answered(&["ever", "perhaps", "n", "e", "y"]).await;
        assert_eq!((answer, seen.matches("Apply this batch?").count()), (yes(&[]), 3), "a no is a no to that alone");
        let (answer, seen) = answered(&["f", "ever", "y", "ever", "y", "y"]).await;
        assert_eq!((answer, seen.matches(FOR_EVER).count()), (yes(&[0]), 1), "the second file cannot be allowed");
        let answer = answered(&["f", "ever", "y", "n", "", "ever", "y"]).await.0;
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
        // What was left unread is not agreed to by a word about the rest.
        let (answer, seen) = answered_on(&["", "skip", "f", "", "a", "", "skip", "y"], &small, 12).await;
        assert_eq!((answer, seen.contains(UNSEEN)), (yes(&[]), true), "{seen}");
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
        let (answer, seen) = answered_on(&["f", "y", "y", "y", "y"], &sizes, 1).await;
        assert!(answer.verdict.is_ok(), "{answer:?}");
        let shown = [0, 2, 3].map(|file| seen.matches(&format!("| diff {file}")).count());
        assert_eq!(shown, [3, 2, 2], "{seen}");
        // All that follow were shown when it was wider.
        let (answer, seen) = answered_on(&["f", "a", "a", "y"], &sizes, 1).await;
        assert_eq!((answer, seen.matches("Apply this batch?").count()), (yes(&[]), 2), "{seen}");
        let shown = [0, 2, 3].map(|file| seen.matches(&format!("| diff {file}")).count());
        assert_eq!(shown, [4, 2, 2], "{seen}");
    }
}
