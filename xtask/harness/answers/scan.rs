//! Reads an answer line by line, independently of the parsers under test: which lines belong to fenced blocks, and
//! whether a text that ends here ends inside an edit.

/// A fenced block, by the indices of its lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fence {
    /// The opening fence.
    pub(crate) first: usize,
    /// The closing fence, if there is one.
    pub(crate) last: Option<usize>,
    /// The text after the opening fence.
    pub(crate) info: String,
}

/// A line without the marks of quotes and lists before it.
pub(crate) fn bare(line: &str) -> &str {
    line.trim_start_matches(['>', ' ', '\t'])
}

/// The run of a fence's marks and the text after it.
fn marks(line: &str) -> Option<(char, usize, &str)> {
    let line = bare(line.trim_end());
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    let is_fence = length >= 3 && (mark == '~' || !rest.contains('`'));
    is_fence.then_some((mark, length, rest.trim()))
}

/// Every fenced block that is in no other.
pub(crate) fn fences(lines: &[&str]) -> Vec<Fence> {
    let mut fences: Vec<Fence> = Vec::new();
    let mut open: Option<(char, usize)> = None;
    for (index, line) in lines.iter().enumerate() {
        match (open, marks(line)) {
            (None, Some((mark, length, info))) => {
                open = Some((mark, length));
                fences.push(Fence { first: index, last: None, info: info.to_owned() });
            }
            (Some((mark, length)), Some((found, found_length, ""))) if mark == found && found_length >= length => {
                open = None;
                if let Some(fence) = fences.last_mut() {
                    fence.last = Some(index);
                }
            }
            _ => {}
        }
    }
    fences
}

/// Whether an answer is a diff from its first line on. What looks like a fence in it is a line of a file.
pub(crate) fn is_bare_diff(answer: &str) -> bool {
    ["--- ", "diff "].iter().any(|head| answer.starts_with(head))
}

/// Where a reader of a text that ends here is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Inside an edit, a fence, a thought or a comment: the text is visibly cut off.
    Inside,
    /// Behind complete edits, or where there was none: the text may be a whole answer.
    Complete,
}

/// Whether a text ends inside something that has to be closed.
pub(crate) fn end(text: &str) -> End {
    let lines: Vec<&str> = text.lines().collect();
    let fences = fences(&lines);
    let is_open = fences.last().is_some_and(|fence| fence.last.is_none());
    if is_open || has_open_tag(text) || bare(text).starts_with(['{', '[']) {
        return End::Inside;
    }
    let in_fence = |index: &usize| {
        fences.iter().any(|fence| fence.first <= *index && fence.last.is_none_or(|last| *index <= last))
    };
    let outside = lines.iter().enumerate().filter(|(index, _)| !in_fence(index));
    let outside: Vec<&str> = outside.map(|(_, line)| *line).collect();
    match is_inside_edit(&outside) {
        true => End::Inside,
        false => End::Complete,
    }
}

fn has_open_tag(text: &str) -> bool {
    const TAGS: [(&str, &str); 12] = [
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("<thought>", "</thought>"),
        ("<reasoning>", "</reasoning>"),
        ("◁think▷", "◁/think▷"),
        ("<tool_call>", "</tool_call>"),
        ("<source>", "</source>"),
        ("<code>", "</code>"),
        ("<pre>", "</pre>"),
        ("<codeblock>", "</codeblock>"),
        ("<sourcecode>", "</sourcecode>"),
        ("<!--", "-->"),
    ];
    TAGS.into_iter().any(|(open, close)| text.rfind(open).is_some_and(|at| !text[at..].contains(close)))
}

/// What is open at a line outside of fences.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Prose,
    /// Between SEARCH and REPLACE.
    Block,
    /// Between `*** Begin Patch` and `*** End Patch`.
    Envelope,
    /// In the header of a file of a diff; whether the header alone is a whole change.
    Header(bool),
    /// In the header of a renamed file of which git says that it also changed.
    Changed,
    /// In a hunk, with so many old and new lines to come.
    Hunk(usize, usize),
}

fn is_inside_edit(lines: &[&str]) -> bool {
    let mut state = State::Prose;
    for line in lines {
        let line = line.trim_end_matches('\r');
        state = match state {
            State::Block if line.starts_with(">>>>>") => State::Prose,
            State::Envelope if line.trim() == "*** End Patch" => State::Prose,
            State::Block | State::Envelope => state,
            State::Hunk(old, new) if old + new > 0 => match line.bytes().next() {
                Some(b'-') => State::Hunk(old.saturating_sub(1), new),
                Some(b'+') => State::Hunk(old, new.saturating_sub(1)),
                Some(b'\\') => state,
                _ => State::Hunk(old.saturating_sub(1), new.saturating_sub(1)),
            },
            State::Prose | State::Header(_) | State::Changed | State::Hunk(..) => outside(line, state),
        };
    }
    match state {
        State::Block | State::Envelope | State::Header(false) | State::Changed => true,
        State::Hunk(old, new) => old + new > 0,
        State::Prose | State::Header(true) => false,
    }
}

/// The state below a line that is in no block, envelope or unfinished hunk.
fn outside(line: &str, state: State) -> State {
    if line.starts_with("<<<<<") {
        return State::Block;
    }
    if line.trim() == "*** Begin Patch" {
        return State::Envelope;
    }
    if let Some(counts) = hunk(line) {
        return counts;
    }
    let begins = ["diff --git ", "--- ", "+++ ", "Index: "].iter().any(|header| line.starts_with(header));
    if begins {
        return State::Header(false);
    }
    match state {
        State::Header(_) if line.starts_with("similarity index") && !line.contains("100%") => State::Changed,
        // These need no hunk.
        State::Header(_) if WHOLE.iter().any(|whole| line.starts_with(whole)) => State::Header(true),
        // The id of what the file holds, which is nothing if there is no hunk.
        State::Header(true) if line.starts_with("index 0000000..") && !line.contains("..e69de29") => {
            State::Header(false)
        }
        State::Header(_) | State::Changed | State::Block | State::Envelope => state,
        State::Hunk(..) | State::Prose => State::Prose,
    }
}

/// How lines of a header begin below which no hunk has to come. A new file without one is empty.
const WHOLE: [&str; 4] = ["rename to ", "copy to ", "new mode ", "new file mode "];

/// The counts of a hunk's header.
fn hunk(line: &str) -> Option<State> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |range: &str| range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
    Some(State::Hunk(count(old)?, count(new)?))
}
