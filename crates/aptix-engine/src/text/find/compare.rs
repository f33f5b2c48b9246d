//! Whether a needle's lines occur at a place of a file, and how loosely they have to be compared for that.

use core::ops::Range;

use aptix_model::report::Tier;
use memchr::{memchr, memrchr};

use super::budget::{Budget, FindError};
use super::needle::{End, Needle};
use super::shift::{Delta, Shift, is_blank, split_indent, trim_end};
use crate::text::edit::slice;

/// Where a needle occurs: the match certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The bytes; of whole lines, with the terminator of the last one, if it has any.
    pub(crate) range: Range<usize>,
    /// How loosely it had to be compared.
    pub(crate) tier: Tier,
    /// How many places came into question at that tier.
    pub(crate) candidates: usize,
    /// How the file's indentation differs; the place then begins where a line does.
    pub(crate) shift: Shift,
    /// How many blank lines of the needle's beginning and end do not belong to it.
    pub(crate) dropped: (usize, usize),
    /// Whether the file ends where the needle has a last terminator.
    pub(crate) is_open: bool,
}

impl Place {
    /// A place that nothing sets apart from what is written but its tier.
    pub(crate) const fn plain(range: Range<usize>, tier: Tier) -> Self {
        Self { range, tier, candidates: 1, shift: Shift::None, dropped: (0, 0), is_open: false }
    }
}

/// A line of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    start: usize,
    /// Without terminator.
    text: &'a [u8],
    is_terminated: bool,
    /// Where the next line starts.
    pub(super) next: usize,
}

impl<'a> Line<'a> {
    /// The line that starts at an offset, of a file that ends at `end`.
    pub(super) fn at(bytes: &'a [u8], start: usize, end: usize) -> Self {
        let rest = slice(bytes, start..end);
        match memchr(b'\n', rest) {
            Some(feed) => {
                let text = slice(rest, 0..feed);
                let text = text.strip_suffix(b"\r").unwrap_or(text);
                Self { start, text, is_terminated: true, next: start + feed + 1 }
            }
            None => Self { start, text: rest, is_terminated: false, next: end.max(start) },
        }
    }

    fn below(self, bytes: &'a [u8], end: usize) -> Option<Self> {
        (self.is_terminated && self.next < end).then(|| Self::at(bytes, self.next, end))
    }

    fn above(self, bytes: &'a [u8], region: &Range<usize>) -> Option<Self> {
        let feed = self.start.checked_sub(1).filter(|feed| *feed >= region.start)?;
        let head = slice(bytes, region.start..feed);
        let start = memrchr(b'\n', head).map_or(region.start, |feed| region.start + feed + 1);
        Some(Self::at(bytes, start, region.end))
    }
}

/// A needle's lines, all of them or without the blank ones at its edges.
#[derive(Clone, Debug)]
pub(super) struct View<'n> {
    lines: &'n [&'n [u8]],
    /// Whether the first line may be the end of a line.
    begins_within: bool,
    end: End,
    /// The position of the longest line, which is searched for.
    anchor: usize,
    /// What the needle's lines are compared as, if nothing differs.
    tier: Tier,
    dropped: (usize, usize),
}

impl<'n> View<'n> {
    /// All lines; `None` if there are none.
    pub(super) fn whole(needle: &'n Needle<'_>) -> Option<Self> {
        let is_text = needle.bytes.is_some();
        Some(Self {
            lines: &needle.lines,
            begins_within: is_text,
            end: needle.end,
            anchor: longest(&needle.lines)?,
            // A text that is there byte by byte was found before.
            tier: if is_text { Tier::Eol } else { Tier::Exact },
            dropped: (0, 0),
        })
    }

    /// The lines without blank ones at the edges; `None` if there are none there, or no others.
    pub(super) fn without_blank_edges(needle: &'n Needle<'_>) -> Option<Self> {
        let above = needle.lines.iter().position(|line| !is_blank(line))?;
        let below = needle.lines.iter().rev().position(|line| !is_blank(line))?;
        let lines = needle.lines.get(above..needle.lines.len() - below)?;
        // What is left of a line that was not complete is complete.
        let end = if below > 0 && needle.end == End::Within { End::Line } else { needle.end };
        (above + below > 0).then_some(Self {
            lines,
            begins_within: above == 0 && needle.bytes.is_some(),
            end,
            anchor: longest(lines)?,
            tier: Tier::BlankEdges,
            dropped: (above, below),
        })
    }

    /// What every place has in the anchor's line.
    pub(super) fn anchor_text(&self) -> &'n [u8] {
        let line = self.lines.get(self.anchor).copied().unwrap_or_default();
        trim_end(split_indent(line).1)
    }
}

/// The position of the longest line.
fn longest(lines: &[&[u8]]) -> Option<usize> {
    let length = |line: &[u8]| trim_end(split_indent(line).1).len();
    lines.iter().enumerate().rev().max_by_key(|(_, line)| length(line)).map(|(position, _)| position)
}

/// Where the lines match with the anchor in the line `anchor` of the region.
pub(super) fn match_at(
    view: &View<'_>,
    bytes: &[u8],
    region: &Range<usize>,
    anchor: Line<'_>,
    budget: &mut Budget,
) -> Result<Option<Place>, FindError> {
    let mut found = Comparison { bytes, region, tier: view.tier, delta: None };
    let Some(end) = found.matches_down(view, anchor, budget)? else { return Ok(None) };
    let Some(first) = found.matches_up(view, anchor, budget)? else { return Ok(None) };
    let is_open = view.end == End::Terminated && end == region.end && !slice(bytes, 0..end).ends_with(b"\n");
    let mut range = first.start..end;
    if let (true, Some(expected)) = (view.begins_within, view.lines.first()) {
        let part = match (view.lines.len(), view.end) {
            (1, End::Within) => found.is_part(expected, first.text),
            _ => found.ends(expected, first.text).map(|start| start..0),
        };
        let Some(part) = part else { return Ok(None) };
        range.start = first.start + part.start;
        if part.end > 0 {
            range.end = first.start + part.end;
        }
    }
    let is_bare = view.lines.iter().all(|line| is_blank(line));
    if is_bare && found.tier > Tier::Eol {
        return Ok(None);
    }
    let is_lines = !view.begins_within && view.tier == Tier::Exact;
    if is_open && !is_lines {
        found.loosen(Tier::Eol);
    }
    Ok(Some(Place {
        range,
        tier: found.tier,
        candidates: 1,
        shift: found.delta.unwrap_or(Delta::Same).to_shift(),
        dropped: view.dropped,
        is_open,
    }))
}

/// How loosely lines were compared so far.
struct Comparison<'a> {
    bytes: &'a [u8],
    region: &'a Range<usize>,
    tier: Tier,
    /// How the indentation of every line that is not blank differs.
    delta: Option<Delta<'a>>,
}

impl<'a> Comparison<'a> {
    /// Compares the anchor and the lines below it: where the last one ends, if they occur there.
    fn matches_down(
        &mut self,
        view: &View<'a>,
        anchor: Line<'a>,
        budget: &mut Budget,
    ) -> Result<Option<usize>, FindError> {
        let last = view.lines.len() - 1;
        let (mut line, mut end) = (Some(anchor), 0);
        for (position, expected) in view.lines.iter().enumerate().skip(view.anchor) {
            let Some(here) = line else { return Ok(None) };
            budget.charge_line(here.text)?;
            let is_within = position == last && view.end == End::Within;
            if position == last && !is_within {
                end = if view.end == End::Terminated { here.next } else { here.start + here.text.len() };
            }
            // The first line of a text may begin within a line, and is compared once its last line is known.
            if position >= usize::from(view.begins_within) {
                let is_there = if is_within {
                    self.begins(expected, here.text).map(|length| end = here.start + length).is_some()
                } else {
                    self.is(expected, here.text)
                };
                if !is_there {
                    return Ok(None);
                }
            }
            line = here.below(self.bytes, self.region.end);
        }
        Ok(Some(end))
    }

    /// Compares the lines above the anchor: the first one, if they occur there.
    fn matches_up(
        &mut self,
        view: &View<'a>,
        anchor: Line<'a>,
        budget: &mut Budget,
    ) -> Result<Option<Line<'a>>, FindError> {
        let mut first = anchor;
        for (position, expected) in view.lines.iter().enumerate().take(view.anchor).rev() {
            let Some(here) = first.above(self.bytes, self.region) else { return Ok(None) };
            budget.charge_line(here.text)?;
            if position >= usize::from(view.begins_within) && !self.is(expected, here.text) {
                return Ok(None);
            }
            first = here;
        }
        Ok(Some(first))
    }

    fn loosen(&mut self, tier: Tier) {
        self.tier = self.tier.max(tier);
    }

    /// Whether the indentation differs as everywhere else.
    fn is_uniform(&mut self, expected: &'a [u8], found: &'a [u8]) -> bool {
        let Some(delta) = Delta::between(expected, found) else { return false };
        if delta != Delta::Same {
            self.loosen(Tier::Indent);
        }
        *self.delta.get_or_insert(delta) == delta
    }

    /// Whether contents are equal, ignoring white space at the end.
    fn is_content(&mut self, expected: &[u8], found: &[u8]) -> bool {
        if expected != found {
            self.loosen(Tier::Trailing);
        }
        trim_end(expected) == trim_end(found)
    }

    /// Whether a whole line is the expected one.
    fn is(&mut self, expected: &'a [u8], found: &'a [u8]) -> bool {
        match (is_blank(expected), is_blank(found)) {
            (true, true) => {
                if expected != found {
                    self.loosen(Tier::Trailing);
                }
                true
            }
            (false, false) => {
                let (expected_indent, expected) = split_indent(expected);
                let (found_indent, found) = split_indent(found);
                self.is_content(expected, found) && self.is_uniform(expected_indent, found_indent)
            }
            _ => false,
        }
    }

    /// How much of a line the expected beginning of it takes up.
    fn begins(&mut self, expected: &'a [u8], found: &'a [u8]) -> Option<usize> {
        if is_blank(expected) {
            if found.starts_with(expected) && self.delta.is_none_or(|delta| delta == Delta::Same) {
                return Some(expected.len());
            }
            return self.is(expected, found).then_some(found.len());
        }
        let (expected_indent, content) = split_indent(expected);
        let (found_indent, found_content) = split_indent(found);
        if !self.is_uniform(expected_indent, found_indent) {
            None
        } else if found_content.starts_with(content) {
            Some(found_indent.len() + content.len())
        } else {
            self.is_content(content, found_content).then_some(found.len())
        }
    }

    /// Where in a line the expected end of it begins.
    fn ends(&mut self, expected: &'a [u8], found: &'a [u8]) -> Option<usize> {
        // The end of a line that is blank has no indentation, but is the end of the line above.
        if is_blank(expected) || self.delta.is_none_or(|delta| delta == Delta::Same) {
            if found.ends_with(expected) {
                return Some(found.len() - expected.len());
            }
            let (short, found_short) = (trim_end(expected), trim_end(found));
            if found_short.ends_with(short) {
                self.loosen(Tier::Trailing);
                return Some(found_short.len() - short.len());
            }
        }
        self.is(expected, found).then_some(0)
    }

    /// Which part of a line matches the expected part of it. That they differ in their bytes is known.
    fn is_part(&mut self, expected: &'a [u8], found: &'a [u8]) -> Option<Range<usize>> {
        let (short, found_short) = (trim_end(expected), trim_end(found));
        if short.len() < expected.len() && found_short.ends_with(short) {
            self.loosen(Tier::Trailing);
            return Some(found_short.len() - short.len()..found.len());
        }
        self.begins(expected, found).map(|end| 0..end)
    }
}
