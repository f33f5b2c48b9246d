//! Holds what an attempt did against what a reader of the whole answer expects.

use std::fmt;

use crate::boundary::{Said, SaidError};
use crate::case::{Case, Expected};
use crate::scan::{bare, fences, is_bare_diff};

/// How an attempt is judged; the worst comes last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Class {
    /// The tree is the expected one.
    Applied,
    /// A refusal was expected, and says what the case demands.
    Refused,
    /// The change is right, and a warning or the label is missing.
    Mute,
    /// An answer that is to be applied was refused, with a hint.
    NotApplied,
    /// A refusal without a hint, without the expected reason, or without the words.
    Unhelpful,
    /// The tree changed in another way than expected, or stayed and the answer is said to be applied.
    Wrong,
}

impl Class {
    pub(crate) const ALL: [Self; 6] =
        [Self::Applied, Self::Refused, Self::Mute, Self::NotApplied, Self::Unhelpful, Self::Wrong];

    /// Whether nothing is to be mended.
    pub(crate) const fn is_fine(self) -> bool {
        matches!(self, Self::Applied | Self::Refused)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Applied => "applied as expected",
            Self::Refused => "refused as expected, helpfully",
            Self::Mute => "applied as expected, warning or label missing",
            Self::NotApplied => "refused helpfully, expected to be applied",
            Self::Unhelpful => "refused unhelpfully",
            Self::Wrong => "APPLIED WRONGLY",
        })
    }
}

/// A class and why.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) class: Class,
    /// What differs; empty where everything is as expected.
    pub(crate) why: String,
}

impl Verdict {
    pub(crate) const fn fine(class: Class) -> Self {
        Self { class, why: String::new() }
    }

    pub(crate) fn new(class: Class, why: impl Into<String>) -> Self {
        Self { class, why: why.into() }
    }
}

/// How an answer was applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Command,
    Library,
}

/// Judges the outcome of a case. What the command prints has the words of the dialect, and the library knows the label.
pub(crate) fn judge(case: &Case, said: &Said, way: Way) -> Verdict {
    let verdict = match &case.expected {
        _ if !said.success => refused(case, said, way),
        Expected::Refused(_) => applied(case, said, "expected a refusal, and it was applied"),
        Expected::Applied(tree) => match said.after.difference(tree, &case.before) {
            Some(difference) => Verdict::new(Class::Wrong, difference),
            None => Verdict::fine(Class::Applied),
        },
    };
    if verdict.class != Class::Applied {
        return verdict;
    }
    if let Some(lines) = dropped_block(&case.answer, said) {
        return Verdict::new(Class::Wrong, format!("the block {lines} is no edit, and no warning names it"));
    }
    let code = case.warnings.iter().find(|code| said.warnings.iter().all(|(found, _)| found != *code));
    if let Some(code) = code {
        return Verdict::new(Class::Mute, format!("no warning {code} in {:?}", said.warnings));
    }
    if let Some(word) = missing_word(case, said) {
        return Verdict::new(Class::Mute, format!("no warning holds {word:?}: {:?}", said.warnings));
    }
    match way == Way::Library && case.label.is_some() && case.label != said.label {
        true => Verdict::new(Class::Mute, format!("the label is {:?}, expected {:?}", said.label, case.label)),
        false => verdict,
    }
}

/// The lines of the first fenced block of an applied answer that holds nothing like an edit and that no warning names.
/// Blocks of a thought, and blocks around other blocks, are passed over.
fn dropped_block(answer: &str, said: &Said) -> Option<String> {
    const EDITS: [&str; 9] = ["<<<<<", "*** ", "@@", "--- ", "diff ", "rename ", "{", "[", "```"];
    if is_bare_diff(answer) {
        return None;
    }
    let lines: Vec<&str> = answer.lines().collect();
    let thought = lines.iter().rposition(|line| line.trim_start().starts_with("</th")).unwrap_or_default();
    let is_named = |place: &String| said.warnings.iter().any(|(_, message)| message.contains(place.as_str()));
    let blocks = fences(&lines).into_iter().filter(|fence| thought == 0 || fence.first > thought);
    let closed = blocks.filter_map(|fence| Some((fence.first, fence.last?)));
    let idle = closed.filter(|(first, last)| {
        let mut inside = lines.get(first + 1..*last).unwrap_or_default().iter();
        !inside.any(|line| EDITS.iter().any(|edit| bare(line).starts_with(edit)))
    });
    idle.map(|(first, last)| format!("at lines {} to {}", first + 1, last + 1)).find(|place| !is_named(place))
}

/// What must not have been applied was.
pub(crate) fn applied(case: &Case, said: &Said, what: &str) -> Verdict {
    let change = said.after.difference(&case.before, &case.before);
    Verdict::new(Class::Wrong, format!("{what}:\n{}", change.unwrap_or_else(|| "no file changed\n".to_owned())))
}

fn refused(case: &Case, said: &Said, way: Way) -> Verdict {
    if let Some(fault) = faulty(case, said) {
        return fault;
    }
    let shown = shown_errors(said);
    let Expected::Refused(code) = &case.expected else { return Verdict::new(Class::NotApplied, shown) };
    if let Some(code) = code
        && said.errors.iter().all(|error| error.code != *code)
    {
        return Verdict::new(Class::Unhelpful, format!("expected {code}\n{shown}"));
    }
    match missing_word(case, said).filter(|_| way == Way::Command) {
        Some(word) => Verdict::new(Class::Unhelpful, format!("expected the words {word:?}\n{shown}")),
        None => Verdict::new(Class::Refused, shown),
    }
}

/// What is wrong with a refusal whatever it is about: it changes files, or lacks an error or a hint.
pub(crate) fn faulty(case: &Case, said: &Said) -> Option<Verdict> {
    if let Some(difference) = said.after.difference(&case.before, &case.before) {
        return Some(Verdict::new(Class::Wrong, format!("it was refused, and files changed:\n{difference}")));
    }
    let has_hint = |error: &SaidError| error.hint.as_ref().is_some_and(|hint| !hint.trim().is_empty());
    let why = match said.errors.as_slice() {
        [] => "a refusal without an error",
        errors if !errors.iter().all(has_hint) => "a refusal without a hint",
        _ => return None,
    };
    Some(Verdict::new(Class::Unhelpful, format!("{why}\n{}", shown_errors(said))))
}

fn missing_word<'a>(case: &'a Case, said: &Said) -> Option<&'a str> {
    let errors = said.errors.iter().flat_map(|error| {
        [&error.message, &error.path].into_iter().chain(&error.hint).chain(&error.nearest).map(String::as_str)
    });
    let texts: Vec<_> = errors.chain(said.warnings.iter().map(|(_, message)| message.as_str())).collect();
    case.words.iter().map(String::as_str).find(|word| !texts.iter().any(|text| text.contains(word)))
}

/// The errors of a refusal, one paragraph each.
pub(crate) fn shown_errors(said: &Said) -> String {
    let show = |error: &SaidError| {
        let hint = error.hint.as_deref().unwrap_or("(none)");
        let nearest: String =
            error.nearest.iter().map(|text| format!("    | {}\n", text.replace('\n', "\n    | "))).collect();
        format!("{}: {}: {}\n    hint: {hint}\n{nearest}", error.code, error.path, error.message)
    };
    said.errors.iter().map(show).collect()
}
