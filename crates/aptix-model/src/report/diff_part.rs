//! Cuts the diff of a report down to one of its files, or to one change of that file.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::report::{ChangeReport, FileStatus, Report};

/// Unchanged lines above and below a change.
const CONTEXT: usize = 3;

/// The part of a report's diff about the file at this position: empty if the diff has none, because the file did not change,
/// is withheld, or the diff was left out.
#[must_use]
pub fn of_file(report: &Report, file: usize) -> &str {
    let is_shown = |file: &&crate::report::FileReport| {
        file.status.is_applied() && file.status != FileStatus::Unchanged && file.withheld.is_none()
    };
    let parts = files(&report.diff);
    let shown = report.files.iter().filter(is_shown).count();
    let above = report.files.iter().take(file).filter(is_shown).count();
    let is_in_it = report.files.get(file).as_ref().is_some_and(is_shown);
    // A diff with another number of files was not made from these reports.
    if is_in_it && parts.len() == shown { parts.get(above).copied().unwrap_or_default() } else { "" }
}

/// The header of a file's diff and those lines of it that a change replaced, with up to three unchanged lines around
/// them. Lines of other changes are left out, unless they follow without an unchanged line between.
#[must_use]
pub fn of_change(part: &str, change: &ChangeReport) -> String {
    let (head, hunks) = hunks(part);
    let wanted = change.start_line as usize..(change.end_line as usize).saturating_add(1);
    let runs = || hunks.iter().flat_map(|hunk| &hunk.runs);
    let shares_a_line = runs().any(|run| run.shares_a_line(&wanted));
    let is_of_it = |run: &Run| if shares_a_line { run.shares_a_line(&wanted) } else { run.touches(&wanted) };
    let cut: Vec<String> = hunks.iter().flat_map(|hunk| hunk.cut(is_of_it)).collect();
    if cut.is_empty() { String::new() } else { [head, &cut.concat()].concat() }
}

/// The files of a diff. Every line of a hunk begins with a mark, so that none of them looks like a header.
fn files(diff: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = diff.match_indices("diff --git ").map(|(at, _)| at).collect();
    starts.retain(|at| diff.get(..*at).is_some_and(|above| above.is_empty() || above.ends_with('\n')));
    let ends = starts.iter().skip(1).copied().chain([diff.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| diff.get(*start..end)).collect()
}

/// A hunk: its lines with their marks, each with the remark below it.
struct Hunk<'d> {
    lines: Vec<&'d str>,
    runs: Vec<Run>,
    /// Numbers of its first lines on the old and on the new side.
    start: (usize, usize),
}

/// Lines that follow each other and are all removed or added.
struct Run {
    /// Positions in the hunk.
    lines: Range<usize>,
    /// Numbers of the lines that it leaves in the new text; the number of the next one where it leaves none.
    new: Range<usize>,
}

impl Run {
    fn shares_a_line(&self, lines: &Range<usize>) -> bool {
        self.new.start < lines.end && lines.start < self.new.end
    }

    fn touches(&self, lines: &Range<usize>) -> bool {
        self.new.start <= lines.end && lines.start <= self.new.end
    }
}

/// The header of a file's diff, and its hunks.
fn hunks(part: &str) -> (&str, Vec<Hunk<'_>>) {
    let mut found: Vec<Hunk<'_>> = Vec::new();
    let mut head = part.len();
    let mut at = 0;
    for line in part.split_inclusive('\n') {
        if let Some(start) = starts(line) {
            head = head.min(at);
            found.push(Hunk { lines: Vec::new(), runs: Vec::new(), start });
        } else if let Some(hunk) = found.last_mut() {
            match (line.starts_with('\\'), hunk.lines.last_mut()) {
                // The remark stays with its line: both are one slice of the diff.
                (true, Some(last)) => *last = part.get(at - last.len()..at + line.len()).unwrap_or(last),
                _ => hunk.lines.push(line),
            }
        }
        at += line.len();
    }
    found.iter_mut().for_each(|hunk| hunk.runs = runs(hunk));
    (part.get(..head).unwrap_or_default(), found)
}

/// The numbers of the first lines that `@@ -1,2 +3,4 @@` states; a side without lines states the one above.
fn starts(line: &str) -> Option<(usize, usize)> {
    let (old, new) = line.strip_prefix("@@ -")?.split_once(" @@")?.0.split_once(" +")?;
    let side = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        let start: usize = start.parse().ok()?;
        // Numbers are what an agent says, however large.
        Some(if count == "0" { start.saturating_add(1) } else { start })
    };
    Some((side(old)?, side(new)?))
}

fn runs(hunk: &Hunk<'_>) -> Vec<Run> {
    let mut runs = Vec::new();
    let (mut at, mut new) = (0, hunk.start.1);
    for lines in hunk.lines.chunk_by(|one, other| is_kept(one) == is_kept(other)) {
        let left = lines.iter().filter(|line| !line.starts_with('-')).count();
        if lines.first().is_some_and(|line| !is_kept(line)) {
            runs.push(Run { lines: at..at + lines.len(), new: new..new.saturating_add(left) });
        }
        (at, new) = (at + lines.len(), new.saturating_add(left));
    }
    runs
}

fn is_kept(line: &str) -> bool {
    !line.starts_with(['-', '+'])
}

impl Hunk<'_> {
    /// The hunk without the runs that are not wanted: a hunk of its own for wanted ones with no other between them.
    fn cut(&self, is_wanted: impl Fn(&Run) -> bool) -> Vec<String> {
        let groups = self.runs.chunk_by(|one, other| is_wanted(one) == is_wanted(other));
        let mut above = 0;
        let mut cut = Vec::new();
        for group in groups {
            let (first, last) = (group.first(), group.last());
            let (Some(first), Some(last)) = (first, last) else { continue };
            let below = self.runs.iter().find(|run| run.lines.start >= last.lines.end);
            let below = below.map_or(self.lines.len(), |run| run.lines.start);
            if is_wanted(first) {
                let start = first.lines.start.saturating_sub(CONTEXT).max(above);
                cut.push(self.text(start..below.min(last.lines.end + CONTEXT)));
            }
            above = last.lines.end;
        }
        cut
    }

    /// Some of its lines, under a header that counts them.
    fn text(&self, lines: Range<usize>) -> String {
        let side = |other: char, lines: &[&str]| lines.iter().filter(|line| !line.starts_with(other)).count();
        let (above, shown) = (self.lines.get(..lines.start), self.lines.get(lines));
        let (above, shown) = (above.unwrap_or_default(), shown.unwrap_or_default());
        let (old, new) = (side('+', shown), side('-', shown));
        let number = |start: usize, above: usize, count: usize| {
            start.saturating_add(above).saturating_sub(usize::from(count == 0))
        };
        let (from, to) = (number(self.start.0, side('+', above), old), number(self.start.1, side('-', above), new));
        alloc::format!("@@ -{from},{old} +{to},{new} @@\n{}", shown.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{FileReport, Tier};

    const HEAD: &str = "diff --git a/f b/f\n--- a/f\n+++ b/f\n";
    const BODY: &str = "@@ -2,11 +2,10 @@\n 2\n-3\n+x\n+y\n 4\n 5\n-6\n-7\n 8\n 9\n 10\n-11\n+z\n 12\n";

    fn change(start_line: u32, end_line: u32) -> ChangeReport {
        ChangeReport { tier: Tier::Exact, candidates: 1, start_line, end_line }
    }

    fn check(body: &str, (start, end): (u32, u32), expected: &str) {
        let part = [HEAD, body].concat();
        let cut = of_change(&part, &change(start, end));
        let expected = if expected.is_empty() { String::new() } else { [HEAD, expected].concat() };
        assert_eq!(cut, expected, "{start}..{end}");
    }

    #[test]
    fn a_change_has_its_own_lines_alone() {
        check(BODY, (3, 4), "@@ -2,4 +2,5 @@\n 2\n-3\n+x\n+y\n 4\n 5\n");
        // One that left no line.
        check(BODY, (7, 6), "@@ -4,7 +5,5 @@\n 4\n 5\n-6\n-7\n 8\n 9\n 10\n");
        check(BODY, (10, 10), "@@ -8,5 +7,5 @@\n 8\n 9\n 10\n-11\n+z\n 12\n");
        // One of several places has all of them, and what is between.
        check(BODY, (3, 10), BODY);
        check(BODY, (40, 50), "");
        let end = "@@ -1,2 +1,2 @@\n 1\n-2\n\\ No newline at end of file\n+x\n\\ No newline at end of file\n";
        check(end, (2, 2), end);
        check("@@ -1 +0,0 @@\n-1\n", (1, 0), "@@ -1,1 +0,0 @@\n-1\n");
        check("@@ -0,0 +1 @@\n+1\n", (1, 1), "@@ -0,0 +1,1 @@\n+1\n");
    }

    fn report(files: &[(FileStatus, bool)], diff: &str) -> Report {
        let file = |&(status, is_withheld): &(FileStatus, bool)| FileReport {
            withheld: is_withheld.then_some(crate::report::Withheld::Secret),
            ..FileReport::new(String::new(), String::new(), status)
        };
        Report { diff: diff.into(), ..Report::applied(files.iter().map(file).collect()) }
    }

    #[test]
    fn a_file_has_its_own_part_alone() {
        let second = "diff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-diff --git a/h b/h\n+2\n";
        let files = [
            (FileStatus::Unchanged, false),
            (FileStatus::Modified, false),
            (FileStatus::Modified, true),
            (FileStatus::Renamed, false),
        ];
        let both = report(&files, &[HEAD, BODY, second].concat());
        let parts: Vec<_> = (0..5).map(|file| of_file(&both, file)).collect();
        assert_eq!(parts, ["", &[HEAD, BODY].concat(), "", second, ""]);
        // A diff that was left out, or is another one, is nobody's.
        assert_eq!(of_file(&report(&files, ""), 1), "");
        assert_eq!(of_file(&report(&files, second), 1), "");
    }
}
