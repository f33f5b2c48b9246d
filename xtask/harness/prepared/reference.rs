//! The plain reference: the files as lists of lines, and the life of each batch, written down once more and without any of
//! the program's types.

use std::collections::BTreeMap;

use crate::history::{Edit, FILES, LINES};

/// Where a batch is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Prepared,
    Applied,
    Failed,
    Rejected,
    Cancelled,
    Expired,
}

/// A batch as it was prepared.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) owner: usize,
    pub(crate) edit: Edit,
    pub(crate) short: bool,
    pub(crate) state: State,
    /// The line at its place when it was planned.
    pub(crate) seen: String,
    /// The call that had it applied.
    pub(crate) freed: Option<String>,
}

/// Everything that there is.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The lines of each file; no two are equal.
    pub(crate) files: Vec<Vec<String>>,
    pub(crate) created: BTreeMap<String, String>,
    pub(crate) batches: BTreeMap<usize, Batch>,
    written: usize,
}

/// The text that a batch writes.
pub(crate) fn text(batch: usize) -> String {
    format!("by batch {batch}.")
}

impl World {
    pub(crate) fn new() -> Self {
        let file = |file| (0..LINES).map(|line| format!("line {line} of file {file}.")).collect();
        Self { files: (0..FILES).map(file).collect(), created: BTreeMap::new(), batches: BTreeMap::new(), written: 0 }
    }

    /// What is in a file at a position; its last line, if it has fewer.
    pub(crate) fn line(&self, file: usize, line: usize) -> String {
        let lines = &self.files[file];
        lines.get(line).or_else(|| lines.last()).cloned().unwrap_or_default()
    }

    /// Another program changes a line.
    pub(crate) fn change(&mut self, file: usize, line: usize) {
        self.written += 1;
        let text = format!("written {} by another.", self.written);
        if let Some(line) = self.files[file].get_mut(line) {
            *line = text;
        }
    }

    /// The line at the place of an edit.
    pub(crate) fn seen(&self, edit: Edit) -> String {
        match edit {
            Edit::Replace { file, line } => self.line(file, line),
            Edit::Append { file } => self.line(file, usize::MAX),
            Edit::Create | Edit::Stale { .. } => String::new(),
        }
    }

    fn kind(edit: Edit) -> &'static str {
        if edit == Edit::Create { "create_file" } else { "search_patch" }
    }

    /// Why an owner may not use a batch for a new step, if they may not.
    fn unusable(&self, batch: usize, owner: usize) -> Option<&'static str> {
        let found = self.batches.get(&batch)?;
        if found.owner != owner {
            return Some("WRONG_OWNER");
        }
        match found.state {
            State::Prepared if found.short => Some("HUNK_EXPIRED"),
            State::Prepared => None,
            State::Expired => Some("HUNK_EXPIRED"),
            State::Applied => Some("ALREADY_APPLIED"),
            State::Failed | State::Rejected | State::Cancelled => Some("NOT_PREPARED"),
        }
    }

    /// A batch is prepared: its state, or why nothing is stored.
    pub(crate) fn prepare(
        &mut self,
        number: usize,
        batch: Batch,
        replaces: Option<usize>,
    ) -> Result<State, &'static str> {
        if let Some(other) = replaces {
            if let Some(why) = self.unusable(other, batch.owner) {
                return Err(why);
            }
            if self.batches.get(&other).is_some_and(|other| Self::kind(other.edit) != Self::kind(batch.edit)) {
                return Err("OTHER_KIND");
            }
        }
        let state = if matches!(batch.edit, Edit::Stale { .. }) { State::Failed } else { State::Prepared };
        if let Some(replaced) = replaces.and_then(|other| self.batches.get_mut(&other))
            && state == State::Prepared
        {
            replaced.state = State::Cancelled;
        }
        self.batches.insert(number, Batch { state, ..batch });
        Ok(state)
    }

    /// A call lets a batch be applied: how the batch ends, or why the call is refused.
    pub(crate) fn apply(&mut self, number: usize, owner: usize, call: &str) -> Result<State, &'static str> {
        let refused = self.unusable(number, owner);
        let Some(batch) = self.batches.get(&number) else { return Err("NOT_FOUND") };
        if batch.owner == owner && batch.freed.as_deref() == Some(call) {
            return Ok(batch.state);
        }
        if let Some(why) = refused {
            self.expire(number, why);
            return Err(why);
        }
        let state = if self.carry_out(number) { State::Applied } else { State::Failed };
        if let Some(batch) = self.batches.get_mut(&number) {
            (batch.state, batch.freed) = (state, Some(call.to_owned()));
        }
        Ok(state)
    }

    fn expire(&mut self, number: usize, why: &str) {
        if let Some(batch) = self.batches.get_mut(&number).filter(|_| why == "HUNK_EXPIRED") {
            batch.state = State::Expired;
        }
    }

    /// Does what was planned, if its place is as it was.
    fn carry_out(&mut self, number: usize) -> bool {
        let Some(Batch { edit, seen, .. }) = self.batches.get(&number).cloned() else { return false };
        match edit {
            Edit::Replace { file, .. } => match self.files[file].iter_mut().find(|line| **line == seen) {
                Some(line) => {
                    *line = text(number);
                    true
                }
                None => false,
            },
            Edit::Append { file } => {
                let is_last = self.files[file].last() == Some(&seen);
                if is_last {
                    self.files[file].push(text(number));
                }
                is_last
            }
            Edit::Create => self.created.insert(format!("new{number}.txt"), text(number)).is_none(),
            Edit::Stale { .. } => false,
        }
    }

    /// A batch is ended by `to`: whether it may be.
    pub(crate) fn end(&mut self, number: usize, to: State) -> Result<State, &'static str> {
        let Some(batch) = self.batches.get_mut(&number) else { return Err("NOT_FOUND") };
        if batch.state != State::Prepared && batch.state != to {
            return Err("INVALID_STATE");
        }
        batch.state = to;
        Ok(to)
    }
}
