//! The way back of a large file of which the history keeps the changed passages alone.
//!
//! In a file that is as the batch left it the passages lie where the batch left them. In any other one each passage, with the
//! lines around it, has to occur once, on whole lines and in order, and no copy may be left that was edited on one side of the
//! change: nothing is compared line by line.

use aptix_engine::digest::sha256;
use aptix_engine::text::edit::TextEdit;
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use super::merge::{self, is_glued, shown};
use crate::workspace::keep::history::passages::{Occurs, Passage, Passages};
use crate::workspace::keep::history::past_file::PastFile;

/// Why there is no way back.
pub(super) enum NoWay {
    /// What is kept does not make the file as it was.
    Damaged,
    /// Later edits are in the way at these passages.
    Edited(Vec<Edited>),
}

/// A passage that cannot be found again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Edited {
    /// The line that it began at when the batch was carried out, from 1.
    line: usize,
    /// What the batch had left there.
    left: String,
    /// Whether it occurs, and more than once.
    is_repeated: bool,
}

impl Edited {
    /// What the author of the undo gets.
    pub(super) fn failure(&self) -> Failure {
        let Self { line, left, is_repeated } = self;
        let message = match is_repeated {
            false => {
                format!("later edits changed what the batch left at line {line}, {left:?}, or lines beside it")
            }
            true => format!("what the batch left at line {line}, {left:?}, occurs more than once now"),
        };
        Failure::new(Reason::ExpectedMismatch, message)
    }
}

/// The edit of `now` that takes back what the batch did to a file, and nothing else.
pub(super) fn way_back(passages: &Passages, file: &PastFile, now: &[u8]) -> Result<TextEdit, NoWay> {
    let digest = Some(sha256(now));
    if digest == file.digest_before() {
        return Ok(TextEdit::default());
    }
    if digest != file.digest_after() {
        return around_later_edits(passages, now).map_err(NoWay::Edited);
    }
    let edit = edit_at(passages.iter().map(|passage| (passage.start, passage)));
    let is_right = edit.fits(now.len()) && Some(sha256(&edit.apply(now))) == file.digest_before();
    is_right.then_some(edit).ok_or(NoWay::Damaged)
}

/// As [`way_back`], in a file that was edited since.
fn around_later_edits(passages: &Passages, now: &[u8]) -> Result<TextEdit, Vec<Edited>> {
    let (mut places, mut edited) = (Vec::new(), Vec::new());
    let (mut end, mut line) = (0, 0);
    for passage in passages.iter() {
        line += passage.gap;
        let found = passage.find(now);
        match found {
            Occurs::Once(at) if at >= end && fits(passage, now, at) => {
                end = at + passage.after.len();
                places.push((at, passage));
            }
            _ => {
                let [above, left, _] = passage.parts().map(merge::lines);
                let left = shown(&left, "\n");
                edited.push(Edited { line: line + above.len() + 1, left, is_repeated: found == Occurs::Repeatedly });
            }
        }
        line += merge::lines(&passage.after).len();
    }
    if edited.is_empty() { Ok(edit_at(places)) } else { Err(edited) }
}

/// Whether a passage that occurs there is whole lines, before the batch as after it.
fn fits(passage: &Passage, now: &[u8], at: usize) -> bool {
    let place = at..at + passage.after.len();
    let is_open = place.end < now.len() && !passage.after.ends_with(b"\n");
    !is_open && !is_glued(now, &place, &passage.before)
}

/// The edit that takes back passages at these offsets.
fn edit_at<'p>(places: impl IntoIterator<Item = (usize, &'p Passage)>) -> TextEdit {
    let edits = places.into_iter().map(|(at, passage)| (at, merge::line_edit(&passage.after, &passage.before)));
    merge::joined(edits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::keep::history::random_texts::Random;

    /// A random batch as the history keeps it, or `None` where that would be a whole file.
    fn batch(random: &mut Random) -> Option<([Vec<u8>; 2], TextEdit, Passages)> {
        let before = random.lines(300);
        let edit = random.edit(&before);
        let after = edit.apply(&before);
        let passages = Passages::of(&before, &after, &edit)?;
        Some(([before, after], edit, passages))
    }

    #[test]
    fn an_undo_by_passages_is_an_undo_by_the_whole_file() {
        let (mut random, mut count, mut repeated) = (Random::new(11), 0, 0);
        for ([before, after], _, passages) in (0..1_500).filter_map(|_| batch(&mut random)) {
            let whole = merge::way_back(&before, &after, &after).unwrap();
            assert_eq!(whole.apply(&after), before);
            let places = edit_at(passages.iter().map(|passage| (passage.start, passage)));
            assert_eq!(places.apply(&after), before);
            match around_later_edits(&passages, &after) {
                Ok(found) => assert_eq!(found, places),
                // Near an end of the file the lines on one side may be like others.
                Err(edited) => {
                    assert!(edited.iter().all(|edited| edited.is_repeated), "{edited:?}");
                    repeated += 1;
                }
            }
            count += 1;
        }
        assert!(count > 700 && repeated < count / 20, "{count}, {repeated}");
    }

    #[test]
    fn around_later_edits_an_undo_is_exact_or_refused() {
        let mut random = Random::new(12);
        let (mut exact, mut refused, mut both) = (0, 0, 0);
        for _ in 0..3_000 {
            let Some(([before, after], edit, passages)) = batch(&mut random) else { continue };
            let later = random.edit(&after);
            let now = later.apply(&after);
            let three_way = merge::way_back(&before, &after, &now);
            let Ok(back) = around_later_edits(&passages, &now) else {
                refused += 1;
                continue;
            };
            exact += 1;
            let undone = back.apply(&now);
            if let Ok(three_way) = three_way {
                assert_eq!(undone, three_way.apply(&now), "{edit:?} {later:?}");
                both += 1;
            }
        }
        assert!(exact > 500 && refused > 200 && both > exact - exact / 20, "{exact} {refused} {both}");
    }

    #[test]
    fn a_passage_that_occurs_twice_or_not_on_whole_lines_is_refused() {
        let lines = |count: usize| (0..count).map(|line| format!("line {line}\n")).collect::<String>();
        let before = lines(200);
        let after = before.replace("line 77\n", "changed\n");
        let at = before.find("line 77").unwrap();
        let passages =
            Passages::of(before.as_bytes(), after.as_bytes(), &TextEdit::new([(at..at + 7, "changed")]).unwrap())
                .unwrap();
        let back = |now: &str| {
            let edit = around_later_edits(&passages, now.as_bytes());
            edit.map(|edit| String::from_utf8(edit.apply(now.as_bytes())).unwrap())
        };
        let refused = |left: &str, is_repeated| Err(vec![Edited { line: 78, left: left.to_owned(), is_repeated }]);
        assert_eq!(back(&after), Ok(before.clone()));
        let moved = [&after[at..], &after[..at]].concat();
        assert_eq!(back(&moved), refused("changed", false), "cut within the lines around");
        let cut = before.find("line 40\n").unwrap();
        let rotated = |text: &str| [&text[cut..], &text[..cut]].concat();
        assert_eq!(back(&rotated(&after)), Ok(rotated(&before)));
        let copied = [&after, "and\n", &after].concat();
        assert_eq!(back(&copied), refused("changed", true));
        for beside in ["line 74\n", "line 75\n", "changed\n", "line 80\n"] {
            assert_eq!(back(&after.replace(beside, "edited\n")), refused("changed", false), "{beside}");
        }
        // The line that the passage begins with is the end of a longer one now.
        assert_eq!(back(&after.replace("line 74\n", "a line 74\n")), refused("changed", false));
        assert_eq!(back(&after.replace("line 73\n", "edited\n")), Ok(before.replace("line 73\n", "edited\n")));
    }

    #[test]
    fn a_copy_of_an_end_of_the_file_is_not_taken_for_that_end() {
        let before = (0..200).map(|line| format!("line {line}\n")).collect::<String>();
        let middle = before.find("line 99\n").unwrap();
        for (changed, beside) in [("line 0\n", "line 2\n"), ("line 199\n", "line 197\n")] {
            let at = before.find(changed).unwrap();
            let after = before.replace(changed, "changed\n");
            let edit = TextEdit::new([(at..at + changed.len(), "changed\n")]).unwrap();
            let passages = Passages::of(before.as_bytes(), after.as_bytes(), &edit).unwrap();
            let passage = String::from_utf8(passages.iter().next().unwrap().after.clone()).unwrap();
            let edited = after.replace(beside, "edited\n");
            let now = [&edited[..middle], &passage, &edited[middle..]].concat();
            let refused = around_later_edits(&passages, now.as_bytes()).unwrap_err();
            assert!(refused[0].is_repeated, "{changed}");
            let longer = format!("above\n{after}below\n");
            let back = around_later_edits(&passages, longer.as_bytes()).unwrap().apply(longer.as_bytes());
            assert_eq!(String::from_utf8(back).unwrap(), format!("above\n{before}below\n"));
        }
    }

    #[test]
    fn an_end_without_a_line_feed_runs_together_with_nothing() {
        let before = (0..200).map(|line| format!("line {line}\n")).collect::<String>();
        let cases = [("", "\n"), ("\n", "")];
        for (old, new) in cases {
            let (before, after) = (format!("{before}end{old}"), format!("{before}end{new}"));
            let at = before.len() - old.len();
            let edit = TextEdit::new([(at..before.len(), new)]).unwrap();
            let passages = Passages::of(before.as_bytes(), after.as_bytes(), &edit).unwrap();
            let back = |now: &str| around_later_edits(&passages, now.as_bytes()).is_ok();
            assert!(back(&after) && back(&format!("above\n{after}")));
            assert!(!back(&format!("{after}more\n")), "{old:?} to {new:?}");
        }
    }
}
