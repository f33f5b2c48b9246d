//! Answers made from those of the corpus by program: cut off, tagged otherwise, indented, doubled, with blocks missing.

use std::collections::BTreeSet;

use crate::case::{Case, Expected};
use crate::scan::{End, Fence, end, fences, is_bare_diff};

/// One answer made from a case.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    pub(crate) kind: Kind,
    /// Which of its kind: a line, a tag, a block.
    pub(crate) which: String,
    pub(crate) answer: String,
    pub(crate) rule: Rule,
}

/// How a variant is made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// Only the first lines arrived.
    CutLine,
    /// The answer was cut inside a line of a block.
    CutByte,
    /// The fences have another tag for the same language, or none.
    Tag,
    /// All line ends are CRLF.
    Crlf,
    /// The whole answer is an item of a list.
    InList,
    /// There are words above and below the answer.
    Prose,
    /// One block occurs twice.
    Doubled,
    /// One block is missing, with its fences.
    Removed,
    /// One block has fences and nothing between them.
    Emptied,
    /// The same text is declared to be a whole answer.
    AsChat,
}

impl Kind {
    pub(crate) const ALL: [Self; 10] = [
        Self::CutLine,
        Self::CutByte,
        Self::Tag,
        Self::Crlf,
        Self::InList,
        Self::Prose,
        Self::Doubled,
        Self::Removed,
        Self::Emptied,
        Self::AsChat,
    ];
}

/// What may become of a variant of an answer that is to be applied. One of an answer that is to be refused is refused,
/// unless it is a part that reads like a whole answer. A refusal is helpful and changes nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// It says the same as the whole answer and must be applied.
    Same,
    /// It produces the same tree, or is refused.
    SameOrRefused,
    /// It reads like a whole answer with fewer edits: each file is as it was, as the whole answer leaves it, or has some
    /// of the changes; these files are as they were.
    Part(BTreeSet<String>),
    /// Something that is named has no edit: it is refused.
    Refused,
}

/// All variants of a case but those that are cut inside a line.
pub(crate) fn of(case: &Case) -> Vec<Variant> {
    let mut variants = cut_at_lines(case);
    variants.extend(with_other_tags(case));
    let text = &case.answer;
    let is_applied = matches!(case.expected, Expected::Applied(_));
    let mut add = |kind, answer: String, rule| {
        variants.push(Variant { kind, which: String::new(), answer, rule });
    };
    if !text.contains('\r') {
        // It is open whether such a line takes away one byte or two.
        let rule = if text.contains("\\ No newline") { Rule::SameOrRefused } else { Rule::Same };
        // A hunk of added lines alone has no line that the file could be recognised by: they come as they are.
        let is_addition = |line: &str| line.starts_with("@@ -") && line.contains(",0 +") && !line.contains("-0,0");
        let makes_crlf = text.lines().any(is_addition);
        if !makes_crlf {
            add(Kind::Crlf, text.replace('\n', "\r\n"), rule);
        }
    }
    let is_thought = text.trim_start().starts_with(['<', '◁']);
    if !is_thought {
        let indented = text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("   {line}\n") });
        let list = format!("1. Do this:\n\n{}", indented.collect::<String>());
        add(Kind::InList, list, if is_fenced_only(text) { Rule::Same } else { Rule::SameOrRefused });
    }
    // A surplus at the end of a diff belongs to it only where nothing follows.
    let has_surplus = case.warnings.iter().any(|code| code == "HUNK_COUNTS");
    let is_bare_json = text.trim_start().starts_with(['{', '[']);
    let above = if is_thought { "" } else { "Sure, here is what I would do.\n\n" };
    let prose = format!("{above}{text}\nLet me know whether this works for you.\n");
    let rule = if is_thought || has_surplus || is_bare_json { Rule::SameOrRefused } else { Rule::Same };
    add(Kind::Prose, prose, rule);
    add(Kind::AsChat, text.clone(), if is_bare_json { Rule::SameOrRefused } else { Rule::Same });
    if is_applied {
        variants.extend(with_blocks_changed(case));
    }
    variants
}

/// The first lines of an answer, each time one more.
fn cut_at_lines(case: &Case) -> Vec<Variant> {
    let ends = case.answer.match_indices('\n').map(|(at, _)| at + 1);
    ends.filter(|at| *at < case.answer.len())
        .enumerate()
        .map(|(index, at)| cut(case, at, Kind::CutLine, format!("below line {}", index + 1)))
        .collect()
}

/// An answer cut at a byte inside a line that is in a fenced block; none where the byte is not.
pub(crate) fn cut_at_byte(case: &Case, at: usize) -> Option<Variant> {
    let text = case.answer.get(..at).filter(|text| !text.is_empty() && !text.ends_with('\n'))?;
    let lines: Vec<&str> = text.lines().collect();
    let fences = fences(&lines);
    let open = fences.last().filter(|fence| fence.last.is_none() && fence.first + 1 < lines.len())?;
    // A closing fence of which a mark is missing still shows that the text was cut.
    let opened = lines.get(open.first)?;
    let last = lines.last()?;
    (!opened.trim_start().starts_with(last.trim_start()))
        .then(|| cut(case, at, Kind::CutByte, format!("at byte {at}, in line {}", lines.len())))
}

fn cut(case: &Case, at: usize, kind: Kind, which: String) -> Variant {
    let answer = case.answer.get(..at).unwrap_or_default().to_owned();
    let rule = match end(&answer) {
        End::Inside => Rule::SameOrRefused,
        End::Complete => Rule::Part(BTreeSet::new()),
    };
    Variant { kind, which, answer, rule }
}

/// The answer with other words for the languages of its edits.
fn with_other_tags(case: &Case) -> Vec<Variant> {
    const TAGS: [(&[&str], &[&str]); 2] =
        [(&["json"], &["JSON", "jsonc", ""]), (&["diff", "patch"], &["diff", "udiff", "patch", "Diff", ""])];
    let lines: Vec<&str> = case.answer.split_inclusive('\n').collect();
    let fences = if is_bare_diff(&case.answer) { Vec::new() } else { fences(&lines) };
    let mut variants = Vec::new();
    for (from, to) in TAGS {
        let tagged: Vec<&Fence> = fences.iter().filter(|fence| from.contains(&fence.info.as_str())).collect();
        for tag in to.iter().filter(|tag| tagged.iter().any(|fence| fence.info != **tag)) {
            let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            for fence in &tagged {
                if let Some(line) = lines.get_mut(fence.first) {
                    *line = line.replace(&fence.info, tag);
                }
            }
            let which = format!("{} as {tag:?}", from.join(" or "));
            variants.push(Variant { kind: Kind::Tag, which, answer: lines.concat(), rule: Rule::Same });
        }
    }
    variants
}

/// The answer with one of its blocks doubled, missing or empty.
fn with_blocks_changed(case: &Case) -> Vec<Variant> {
    let lines: Vec<&str> = case.answer.split_inclusive('\n').collect();
    let fences = fences(&lines);
    // What is drafted in a thought is no block of the answer.
    let thought = lines.iter().rposition(|line| line.trim().starts_with("</think")).unwrap_or_default();
    let blocks = fences.iter().filter(|fence| thought == 0 || fence.first > thought);
    let closed: Vec<(usize, usize)> = blocks.filter_map(|fence| Some((fence.first, fence.last?))).collect();
    let mut variants = Vec::new();
    let mut add = |kind, which: &str, lines: &[&[&str]], rule| {
        let answer = lines.iter().map(|lines| lines.concat()).collect();
        variants.push(Variant { kind, which: which.to_owned(), answer, rule });
    };
    if closed.is_empty() {
        add(Kind::Doubled, "the whole answer", &[&lines, &["\n"], &lines], Rule::SameOrRefused);
    }
    for (first, last) in closed.iter().copied() {
        let which = format!("block at lines {} to {}", first + 1, last + 1);
        let above = named_above(&lines, first);
        let (Some(head), Some(block), Some(rest)) =
            (lines.get(..=last), lines.get(above..=last), lines.get(last + 1..))
        else {
            continue;
        };
        let gap: &[&str] = &["\n"];
        add(Kind::Doubled, &which, &[head, gap, block, rest], Rule::SameOrRefused);
        let only_here = changed_only_by(case, &lines, &closed, (above, last));
        let (Some(before), Some(inside)) = (lines.get(..first), lines.get(first..=last)) else { continue };
        add(Kind::Removed, &which, &[before, rest], Rule::Part(only_here.clone()));
        // A quotation changes nothing, with text or without.
        let is_edit = inside.iter().any(|line| line.contains("<<<<<<<") || line.starts_with("--- "));
        let is_named = is_edit && above < first && is_path_of(case, lines.get(above).copied().unwrap_or_default());
        if let [opening, _, .., closing] = inside {
            let rule = if is_named { Rule::Refused } else { Rule::Part(only_here) };
            add(Kind::Emptied, &which, &[before, &[opening], &[closing], rest], rule);
        }
    }
    variants
}

/// The line that names a block's file, if the one directly above it is not blank; else the block's own first line.
fn named_above(lines: &[&str], first: usize) -> usize {
    let above = first.checked_sub(1).filter(|above| lines.get(*above).is_some_and(|line| !line.trim().is_empty()));
    above.filter(|above| !lines.get(*above).is_some_and(|line| line.trim().starts_with("```"))).unwrap_or(first)
}

/// Whether a line is nothing but the path of a file that the case changes.
fn is_path_of(case: &Case, line: &str) -> bool {
    let name = line.trim().trim_matches(|mark| matches!(mark, '#' | '*' | '`' | ':' | ' '));
    changed(case).contains(name)
}

fn changed(case: &Case) -> BTreeSet<String> {
    match &case.expected {
        Expected::Applied(tree) => case.before.changed(tree).into_iter().map(str::to_owned).collect(),
        Expected::Refused(_) => BTreeSet::new(),
    }
}

/// The files that the case changes and that nothing outside of these lines names.
fn changed_only_by(
    case: &Case,
    lines: &[&str],
    blocks: &[(usize, usize)],
    (first, last): (usize, usize),
) -> BTreeSet<String> {
    let in_other_block =
        |index: usize| blocks.iter().any(|(from, to)| (named_above(lines, *from)..=*to).contains(&index));
    let is_elsewhere = |path: &String| {
        let mut others = lines.iter().enumerate().filter(|(index, _)| !(first..=last).contains(index));
        others.any(|(index, line)| line.contains(path.as_str()) && (in_other_block(index) || heads_edit(line, path)))
    };
    changed(case).into_iter().filter(|path| !is_elsewhere(path)).collect()
}

/// Whether a line outside of fences begins an edit of a file.
fn heads_edit(line: &str, path: &str) -> bool {
    ["*** ", "--- ", "+++ ", "diff --git ", "rename "].iter().any(|head| line.starts_with(head)) || line.trim() == path
}

/// Whether all edits of an answer are in fences, so that they can be an item of a list.
fn is_fenced_only(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let in_fence = |index: usize| {
        fences(&lines).iter().any(|fence| fence.first <= index && fence.last.is_none_or(|last| index <= last))
    };
    let is_edit = |line: &str| {
        ["<<<<<", "*** Begin", "--- ", "@@", "diff --git", "{", "[", "<"].iter().any(|mark| line.starts_with(mark))
    };
    let has_markers = text.contains("<<<<<<< SEARCH") || text.contains("*** Begin Patch");
    !has_markers && !lines.iter().enumerate().any(|(index, line)| !in_fence(index) && is_edit(line))
}
