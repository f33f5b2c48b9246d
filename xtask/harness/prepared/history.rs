//! A history: what authors, reviewers, other programs and failures do, one after the other; and a shorter one that fails alike.

use crate::random::Random;

/// Who prepares.
pub(crate) const OWNERS: usize = 10;
/// Files that are edited.
pub(crate) const FILES: usize = 2;
/// Lines that a file begins with.
pub(crate) const LINES: usize = 6;
/// Most steps are about one of so many batches that came last.
const RECENT: usize = 6;

/// Which batches a person has to approve at the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Approval {
    Never,
    Deletions,
    Always,
}

/// What is to happen to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Edit {
    /// The line at this position is replaced.
    Replace { file: usize, line: usize },
    /// A line is added at the end.
    Append { file: usize },
    /// A new file is created.
    Create,
    /// The file that another batch creates is deleted: the plan is refused if there is none.
    Delete { of: usize },
    /// A line that there is none of is replaced: the plan is refused.
    Stale { file: usize },
    /// What an applied batch did is taken back. Such a batch is not prepared.
    Revert { of: usize },
}

/// Who is killed and started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Process {
    Server,
    Agent,
}

/// One step. A batch is named by the step that stored it; steps about a batch that there is none of do nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A batch is prepared, in the place of another one or of none; `short` ones expire at once.
    Prepare {
        batch: usize,
        owner: usize,
        edit: Edit,
        short: bool,
        replaces: Option<usize>,
    },
    /// The same call comes once more.
    PrepareAgain {
        batch: usize,
    },
    /// An owner lets a batch be applied; `call` tells their calls apart.
    Apply {
        batch: usize,
        owner: usize,
        call: usize,
    },
    /// The owner lets it be applied by two calls at once.
    ApplyTwice {
        batch: usize,
    },
    /// It is let go ahead, and a process is killed at that moment.
    ApplyAndKill {
        batch: usize,
        process: Process,
    },
    /// A reviewer approves a batch.
    Approve {
        batch: usize,
        reviewer: usize,
    },
    /// Two reviewers approve it at once.
    ApproveTwice {
        batch: usize,
    },
    /// It is approved, and a process is killed at that moment.
    ApproveAndKill {
        batch: usize,
        process: Process,
    },
    /// A batch takes another one back.
    Revert {
        batch: usize,
        of: usize,
    },
    /// The same call comes once more.
    RevertAgain {
        batch: usize,
    },
    /// Two batches are to take another one back at once; the second has the next number.
    RevertTwice {
        batch: usize,
        of: usize,
    },
    /// A batch takes another one back, and a process is killed at that moment.
    RevertAndKill {
        batch: usize,
        of: usize,
        process: Process,
    },
    Cancel {
        batch: usize,
    },
    Reject {
        batch: usize,
    },
    /// Another program changes a line.
    Outside {
        file: usize,
        line: usize,
    },
    /// A process is killed and started again.
    Restart(Process),
}

/// Draws the steps of a history, and remembers which batches there are.
struct Draw<'r> {
    random: &'r mut Random,
    /// The number of the next batch.
    next: usize,
    /// Those that are prepared, with their owners.
    prepared: Vec<(usize, usize)>,
    /// Those that create files.
    creating: Vec<usize>,
    /// All.
    all: Vec<usize>,
}

/// A history of about so many prepared batches, and which of them a person has to approve.
pub(crate) fn random(random: &mut Random, batches: usize) -> (Approval, Vec<Step>) {
    let approval = [Approval::Never, Approval::Deletions, Approval::Always][random.below(3)];
    let mut draw = Draw { random, next: 0, prepared: Vec::new(), creating: Vec::new(), all: Vec::new() };
    let mut steps = Vec::new();
    while draw.prepared.len() < batches {
        steps.extend(draw.step());
    }
    (approval, steps)
}

impl Draw<'_> {
    /// One of these, most often of those that came last.
    fn one<T: Copy>(&mut self, of: impl Fn(&Self) -> &Vec<T>) -> Option<T> {
        let length = of(self).len();
        let range = if self.random.below(4) == 0 { length } else { length.min(RECENT) };
        let at = length.checked_sub(self.random.below(range.max(1)) + 1)?;
        of(self).get(at).copied()
    }

    fn step(&mut self) -> Option<Step> {
        let process = if self.random.below(2) == 0 { Process::Server } else { Process::Agent };
        let kind = self.random.below(100);
        if kind < 34 {
            return Some(self.prepare());
        }
        if kind >= 93 {
            let outside = Step::Outside { file: self.random.below(FILES), line: self.random.below(LINES) };
            return Some(if kind >= 98 { Step::Restart(process) } else { outside });
        }
        let (batch, owner) = self.one(|draw| &draw.prepared)?;
        let any = self.one(|draw| &draw.all)?;
        Some(match kind {
            34..38 => Step::PrepareAgain { batch },
            38..56 => {
                let owner = if self.random.below(6) == 0 { self.random.below(OWNERS) } else { owner };
                // At times it is a batch that was not prepared.
                let batch = if self.random.below(12) == 0 { any } else { batch };
                Step::Apply { batch, owner, call: self.random.below(2) }
            }
            56..60 => Step::ApplyTwice { batch },
            60..62 => Step::ApplyAndKill { batch, process },
            62..71 => Step::Approve { batch: any, reviewer: self.random.below(2) },
            71..74 => Step::ApproveTwice { batch: any },
            74..75 => Step::ApproveAndKill { batch: any, process },
            75..78 => Step::Cancel { batch: any },
            78..81 => Step::Reject { batch: any },
            81..89 => Step::Revert { batch: self.stored(1), of: any },
            89..90 => Step::RevertAgain { batch: any },
            90..92 => Step::RevertTwice { batch: self.stored(2), of: any },
            _ => Step::RevertAndKill { batch: self.stored(1), of: any, process },
        })
    }

    /// The number of the first of so many new batches.
    fn stored(&mut self, count: usize) -> usize {
        let number = self.next;
        self.next += count;
        self.all.extend(number..self.next);
        number
    }

    fn prepare(&mut self) -> Step {
        let other = self.one(|draw| &draw.prepared).filter(|_| self.random.below(4) == 0);
        let mine = other.filter(|_| self.random.below(4) > 0).map(|(_, owner)| owner);
        let owner = mine.unwrap_or_else(|| self.random.below(OWNERS));
        let (file, line) = (self.random.below(FILES), self.random.below(LINES));
        let created = self.one(|draw| &draw.creating);
        let batch = self.stored(1);
        let edit = match (self.random.below(11), created) {
            (0..6, _) => Edit::Replace { file, line },
            (6..8, _) => Edit::Append { file },
            (8, _) => Edit::Create,
            (9, Some(of)) => Edit::Delete { of },
            _ => Edit::Stale { file },
        };
        if edit == Edit::Create {
            self.creating.push(batch);
        }
        self.prepared.push((batch, owner));
        let (short, replaces) = (self.random.below(8) == 0, other.map(|(batch, _)| batch));
        Step::Prepare { batch, owner, edit, short, replaces }
    }
}
