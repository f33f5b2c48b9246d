//! A history: what authors, reviewers, other programs and failures do, one after the other; and a shorter one that fails alike.

use anyhow::Result;

use crate::random::Random;

/// Who prepares.
pub(crate) const OWNERS: usize = 10;
/// Files that are edited.
pub(crate) const FILES: usize = 2;
/// Lines that a file begins with.
pub(crate) const LINES: usize = 6;

/// What is to happen to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Edit {
    /// The line at this position is replaced.
    Replace { file: usize, line: usize },
    /// A line is added at the end.
    Append { file: usize },
    /// A new file is created.
    Create,
    /// A line that there is none of is replaced: the plan is refused.
    Stale { file: usize },
}

/// Who is killed and started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Process {
    Server,
    Agent,
}

/// One step. A batch is named by the step that prepared it; steps about a batch that there is none of do nothing.
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

/// A history of about so many batches.
pub(crate) fn random(random: &mut Random, batches: usize) -> Vec<Step> {
    let (mut steps, mut prepared) = (Vec::new(), Vec::<(usize, usize)>::new());
    while prepared.len() < batches {
        let number = steps.len();
        let process = if random.below(2) == 0 { Process::Server } else { Process::Agent };
        let any = |random: &mut Random| prepared.get(random.below(prepared.len().max(1))).copied();
        let step = match (random.below(100), any(random)) {
            (0..40, other) => {
                let other = other.filter(|_| random.below(4) == 0);
                let mine = other.filter(|_| random.below(4) > 0).map(|(_, owner)| owner);
                let owner = mine.unwrap_or_else(|| random.below(OWNERS));
                let (file, line) = (random.below(FILES), random.below(LINES));
                let edit = match random.below(10) {
                    0..6 => Edit::Replace { file, line },
                    6..8 => Edit::Append { file },
                    8 => Edit::Create,
                    _ => Edit::Stale { file },
                };
                let (short, replaces) = (random.below(8) == 0, other.map(|(batch, _)| batch));
                Some(Step::Prepare { batch: number, owner, edit, short, replaces })
            }
            (40..45, Some((batch, _))) => Some(Step::PrepareAgain { batch }),
            (45..70, Some((batch, owner))) => {
                let owner = if random.below(6) == 0 { random.below(OWNERS) } else { owner };
                Some(Step::Apply { batch, owner, call: random.below(2) })
            }
            (70..76, Some((batch, _))) => Some(Step::ApplyTwice { batch }),
            (76..78, Some((batch, _))) => Some(Step::ApplyAndKill { batch, process }),
            (78..84, Some((batch, _))) => Some(Step::Cancel { batch }),
            (84..89, Some((batch, _))) => Some(Step::Reject { batch }),
            (89..98, _) => Some(Step::Outside { file: random.below(FILES), line: random.below(LINES) }),
            (98.., _) => Some(Step::Restart(process)),
            (_, None) => None,
        };
        if let Some(Step::Prepare { batch, owner, .. }) = step {
            prepared.push((batch, owner));
        }
        steps.extend(step);
    }
    steps
}

/// The shortest history found that still fails: parts are left out, half of it first, single steps last.
pub(crate) fn shrunk(
    mut steps: Vec<Step>,
    mut tries: usize,
    fails: impl Fn(&[Step]) -> Result<bool>,
) -> Result<Vec<Step>> {
    let mut size = steps.len() / 2;
    while size > 0 && tries > 0 {
        let mut at = 0;
        while at < steps.len() && tries > 0 {
            let end = (at + size).min(steps.len());
            let rest: Vec<Step> = steps.iter().take(at).chain(steps.iter().skip(end)).copied().collect();
            tries -= 1;
            if fails(&rest)? {
                steps = rest;
            } else {
                at = end;
            }
        }
        size /= 2;
    }
    Ok(steps)
}
