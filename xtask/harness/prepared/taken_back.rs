//! What a batch did to the files, and how it is taken back without what came later.

use std::collections::BTreeMap;

/// What a batch did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// One line of a file was changed, added or removed.
    Lines { file: usize, before: Vec<String>, after: Vec<String> },
    /// A file was created or deleted.
    File { name: String, before: Option<String>, after: Option<String> },
}

impl Change {
    /// Does it.
    pub(crate) fn make(&self, files: &mut [Vec<String>], created: &mut BTreeMap<String, String>) {
        match self {
            Self::Lines { file, after, .. } => files[*file].clone_from(after),
            Self::File { name, after: Some(text), .. } => _ = created.insert(name.clone(), text.clone()),
            Self::File { name, after: None, .. } => _ = created.remove(name),
        }
    }
}

/// What takes a change back; `None` if later edits are in the way, or nothing of it is left.
pub(crate) fn without(done: &Change, files: &[Vec<String>], created: &BTreeMap<String, String>) -> Option<Change> {
    match done {
        Change::File { name, before, after } => (created.get(name) == after.as_ref()).then(|| Change::File {
            name: name.clone(),
            before: after.clone(),
            after: before.clone(),
        }),
        Change::Lines { file, before, after } => {
            let now = &files[*file];
            let taken_back = lines_without(before, after, now)?;
            (taken_back != *now).then(|| Change::Lines { file: *file, before: now.clone(), after: taken_back })
        }
    }
}

/// No two lines are equal and none moves, so a line that is in two versions is the same one.
fn lines_without(before: &[String], after: &[String], now: &[String]) -> Option<Vec<String>> {
    let at = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let came = after.get(at).filter(|line| !before.contains(line));
    let went = before.get(at).filter(|line| !after.contains(line));
    let mut lines = now.to_vec();
    let place = match came {
        // The line that came has to be there still.
        Some(came) => {
            let place = now.iter().position(|line| line == came)?;
            lines.remove(place);
            place
        }
        None => gap(after, at, now)?,
    };
    lines.splice(place..place, went.cloned());
    Some(lines)
}

/// Where the lines of `after` before this position end in `now`; `None` if that is in the midst of later edits.
fn gap(after: &[String], at: usize, now: &[String]) -> Option<usize> {
    let found = |line: &String| now.iter().position(|other| other == line);
    let (above, below) = after.split_at(at);
    // The lines above and below that are there still, and how many are between.
    let (lost_above, lost_below) = (
        above.iter().rev().take_while(|line| found(line).is_none()).count(),
        below.iter().take_while(|line| found(line).is_none()).count(),
    );
    let start = above.iter().rev().find_map(found).map_or(0, |place| place + 1);
    let end = below.iter().find_map(found).unwrap_or(now.len());
    match (lost_above, lost_below) {
        (0, 0) => (start == end).then_some(start),
        (0, _) => Some(start),
        (_, 0) => Some(end),
        (_, _) => None,
    }
}
