//! The plain reference: the files as lists of lines, and the life of each batch, written down once more and without any of
//! the program's types.

use std::collections::BTreeMap;

use crate::history::{Approval, Edit, FILES, LINES};
use crate::taken_back::{Change, without};

/// Where a batch is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Prepared,
    /// Let go ahead, and waiting for a person.
    Pending,
    Applied,
    Failed,
    Rejected,
    Cancelled,
    Expired,
}

/// A batch as it was stored.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// Who prepared it; `None` if it takes another one back.
    pub(crate) owner: Option<usize>,
    pub(crate) edit: Edit,
    pub(crate) short: bool,
    pub(crate) state: State,
    /// The line at its place when it was planned.
    pub(crate) seen: String,
    /// The call that had it applied.
    freed: Option<String>,
    /// Whether a person approved it.
    approved: bool,
    /// What it did.
    done: Option<Change>,
}

impl Batch {
    /// A batch that was prepared.
    pub(crate) const fn prepared(owner: usize, edit: Edit, short: bool, seen: String) -> Self {
        let (state, owner) = (State::Prepared, Some(owner));
        Self { owner, edit, short, state, seen, freed: None, approved: false, done: None }
    }
}

/// Everything that there is.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The lines of each file; no two are equal.
    pub(crate) files: Vec<Vec<String>>,
    pub(crate) created: BTreeMap<String, String>,
    pub(crate) batches: BTreeMap<usize, Batch>,
    approval: Approval,
    written: usize,
}

/// The text that a batch writes.
pub(crate) fn text(batch: usize) -> String {
    format!("by batch {batch}.")
}

/// The name of the file that a batch creates.
pub(crate) fn created(batch: usize) -> String {
    format!("new{batch}.txt")
}

impl World {
    pub(crate) fn new(approval: Approval) -> Self {
        let file = |file| (0..LINES).map(|line| format!("line {line} of file {file}.")).collect();
        let files = (0..FILES).map(file).collect();
        Self { files, created: BTreeMap::new(), batches: BTreeMap::new(), approval, written: 0 }
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
            Edit::Create | Edit::Delete { .. } | Edit::Stale { .. } | Edit::Revert { .. } => String::new(),
        }
    }

    /// What kind of edit it is: a batch takes the place of another one of its kind alone.
    const fn kind(edit: Edit) -> &'static str {
        match edit {
            Edit::Create => "create_file",
            Edit::Delete { .. } => "git_patch",
            Edit::Replace { .. } | Edit::Append { .. } | Edit::Stale { .. } => "search_patch",
            Edit::Revert { .. } => "revert",
        }
    }

    /// Whether a person has to approve such an edit.
    fn waits(&self, edit: Edit) -> bool {
        match self.approval {
            Approval::Never => false,
            Approval::Deletions => matches!(edit, Edit::Delete { .. } | Edit::Revert { .. }),
            Approval::Always => true,
        }
    }

    /// Why an owner may not use a batch for a new step, if they may not.
    fn unusable(&self, batch: usize, owner: usize) -> Option<&'static str> {
        let found = self.batches.get(&batch)?;
        let Some(its_owner) = found.owner else { return Some("NOT_PREPARED") };
        if its_owner != owner {
            return Some("WRONG_OWNER");
        }
        match found.state {
            State::Prepared if found.short => Some("HUNK_EXPIRED"),
            State::Prepared => None,
            State::Expired => Some("HUNK_EXPIRED"),
            State::Applied => Some("ALREADY_APPLIED"),
            State::Pending | State::Failed | State::Rejected | State::Cancelled => Some("NOT_PREPARED"),
        }
    }

    /// A batch is prepared: its state, or why nothing is stored.
    pub(crate) fn prepare(
        &mut self,
        number: usize,
        batch: Batch,
        (owner, replaces): (usize, Option<usize>),
    ) -> Result<State, &'static str> {
        if let Some(other) = replaces {
            if let Some(why) = self.unusable(other, owner) {
                return Err(why);
            }
            if self.batches.get(&other).is_some_and(|other| Self::kind(other.edit) != Self::kind(batch.edit)) {
                return Err("OTHER_KIND");
            }
        }
        let is_planned = match batch.edit {
            Edit::Stale { .. } => false,
            Edit::Delete { of } => self.created.contains_key(&created(of)),
            _ => true,
        };
        let state = if is_planned { State::Prepared } else { State::Failed };
        if let Some(replaced) = replaces.and_then(|other| self.batches.get_mut(&other))
            && is_planned
        {
            replaced.state = State::Cancelled;
        }
        self.batches.insert(number, Batch { state, ..batch });
        Ok(state)
    }

    /// A call lets a batch be applied: where the batch is then, or why the call is refused.
    pub(crate) fn apply(&mut self, number: usize, owner: usize, call: &str) -> Result<State, &'static str> {
        let refused = self.unusable(number, owner);
        let Some(batch) = self.batches.get_mut(&number) else { return Err("NOT_FOUND") };
        if batch.owner == Some(owner) && batch.freed.as_deref() == Some(call) {
            return Ok(batch.state);
        }
        if let Some(why) = refused {
            if why == "HUNK_EXPIRED" {
                batch.state = State::Expired;
            }
            return Err(why);
        }
        batch.freed = Some(call.to_owned());
        Ok(self.go_ahead(number))
    }

    /// A person approves a batch: where it is then, or why they may not. Approving it again changes nothing.
    pub(crate) fn approve(&mut self, number: usize) -> Result<State, &'static str> {
        let Some(batch) = self.batches.get_mut(&number) else { return Err("NOT_FOUND") };
        match batch.state {
            State::Pending => {
                batch.approved = true;
                Ok(self.carry_out(number))
            }
            State::Applied | State::Failed if batch.approved => Ok(batch.state),
            _ => Err("INVALID_STATE"),
        }
    }

    /// A batch is to take another one back: where it is then, or why nothing is stored.
    pub(crate) fn revert(&mut self, number: usize, of: usize) -> Result<State, &'static str> {
        match self.batches.get(&of).map(|batch| batch.state) {
            None => return Err("NOT_FOUND"),
            Some(State::Applied) if self.reverted_by(of).is_some() => return Err("ALREADY_APPLIED"),
            Some(State::Applied) => {}
            Some(_) => return Err("INVALID_STATE"),
        }
        let batch = Batch::prepared(0, Edit::Revert { of }, false, String::new());
        self.batches.insert(number, Batch { owner: None, ..batch });
        Ok(self.go_ahead(number))
    }

    /// A batch was stored that is to take another one back, and another one did it meanwhile.
    pub(crate) fn revert_in_vain(&mut self, number: usize, of: usize) -> State {
        let batch = Batch::prepared(0, Edit::Revert { of }, false, String::new());
        self.batches.insert(number, Batch { owner: None, state: State::Failed, ..batch });
        State::Failed
    }

    /// The batch that took another one back, unless that was taken back itself.
    pub(crate) fn reverted_by(&self, of: usize) -> Option<usize> {
        let takes_back = |(number, batch): (&usize, &Batch)| {
            let is = batch.edit == Edit::Revert { of } && batch.state == State::Applied;
            (is && self.reverted_by(*number).is_none()).then_some(*number)
        };
        self.batches.iter().find_map(takes_back)
    }

    /// Nothing but a person is in the way of a batch now.
    fn go_ahead(&mut self, number: usize) -> State {
        let Some(batch) = self.batches.get(&number) else { return State::Failed };
        if !self.waits(batch.edit) {
            return self.carry_out(number);
        }
        self.set(number, State::Pending)
    }

    fn set(&mut self, number: usize, state: State) -> State {
        if let Some(batch) = self.batches.get_mut(&number) {
            batch.state = state;
        }
        state
    }

    fn carry_out(&mut self, number: usize) -> State {
        let done = self.change_of(number);
        if let Some(change) = &done {
            change.make(&mut self.files, &mut self.created);
        }
        let state = if done.is_some() { State::Applied } else { State::Failed };
        if let Some(batch) = self.batches.get_mut(&number) {
            batch.done = done;
        }
        self.set(number, state)
    }

    /// What a batch does to the files as they are, if its place is as it was.
    fn change_of(&self, number: usize) -> Option<Change> {
        let Batch { edit, seen, .. } = self.batches.get(&number)?;
        let lines = |file: usize, edit: &dyn Fn(&mut Vec<String>)| {
            let (before, mut after) = (self.files[file].clone(), self.files[file].clone());
            edit(&mut after);
            (before != after).then_some(Change::Lines { file, before, after })
        };
        match *edit {
            Edit::Replace { file, .. } => lines(file, &|lines| {
                lines.iter_mut().filter(|line| *line == seen).for_each(|line| *line = text(number));
            }),
            Edit::Append { file } if self.files[file].last() == Some(seen) => {
                lines(file, &|lines| lines.push(text(number)))
            }
            Edit::Append { .. } | Edit::Stale { .. } => None,
            Edit::Create => Some(Change::File { name: created(number), before: None, after: Some(text(number)) }),
            Edit::Delete { of } => {
                let before = self.created.get(&created(of)).cloned()?;
                Some(Change::File { name: created(of), before: Some(before), after: None })
            }
            Edit::Revert { of } if self.reverted_by(of).is_some() => None,
            Edit::Revert { of } => without(self.batches.get(&of)?.done.as_ref()?, &self.files, &self.created),
        }
    }

    /// A batch is ended by `to`: whether it may be.
    pub(crate) fn end(&mut self, number: usize, to: State) -> Result<State, &'static str> {
        let Some(batch) = self.batches.get_mut(&number) else { return Err("NOT_FOUND") };
        if !matches!(batch.state, State::Prepared | State::Pending) && batch.state != to {
            return Err("INVALID_STATE");
        }
        batch.state = to;
        Ok(to)
    }
}
