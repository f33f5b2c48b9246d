//! Edits that an answer has between markers of their own, in a fence or not: they are taken out before fences are
//! looked for, since what they hold may look like one.

use super::fence::{Block, Closing};
use crate::documents::codex_patch::{BEGIN, END};

/// Takes the envelopes out of a text, and leaves blanks in their place, and in that of the lines `covered`.
pub(super) fn take_out(text: &str, covered: &[(usize, usize)]) -> (String, Vec<Block>) {
    let mut rest = String::with_capacity(text.len());
    let mut envelopes = Vec::new();
    let mut open: Option<Block> = None;
    let mut covered = covered.iter().peekable();
    // Blanks before an end marker are accepted only where no other one follows.
    let last_end = text.lines().enumerate().filter(|(_, line)| line.trim_end() == END).map(|(index, _)| index).last();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let number = index + 1;
        let words = line.trim_end();
        while covered.next_if(|(_, last)| *last < number).is_some() {}
        if covered.peek().is_some_and(|(first, _)| *first <= number) {
            blank(line, &mut rest);
            continue;
        }
        if open.is_none() && words == BEGIN {
            let block = Block::unfenced(BEGIN, String::new(), (number, number));
            open = Some(Block { closing: Closing::Missing, ..block });
        }
        let Some(block) = &mut open else {
            rest.push_str(line);
            continue;
        };
        blank(line, &mut rest);
        block.text.push_str(line);
        block.last_line = number;
        if words == END || words.trim_start() == END && last_end.is_none_or(|last| last < index) {
            block.closing = Closing::Aligned;
            envelopes.extend(open.take());
        }
    }
    envelopes.extend(open);
    (rest, envelopes)
}

/// Adds a line of as many blanks.
fn blank(line: &str, rest: &mut String) {
    let words = line.trim_end();
    rest.extend(core::iter::repeat_n(' ', words.len()));
    rest.push_str(line.split_at(words.len()).1);
}
