//! A history: what authors, reviewers and failures do, one step after the other.

use crate::network::Direction;
use crate::random::Random;

/// Workspaces, each with an agent. In the second a person has to approve every batch.
pub(crate) const WORKSPACES: usize = 2;
/// Files of each workspace.
pub(crate) const FILES: usize = 2;
/// Nodes with a link to the server: an agent for each workspace, then the author, then the watcher.
pub(crate) const NODES: usize = WORKSPACES + 2;
/// How the time of day is set, by seconds: within a plan's life, beyond it, by a year, and back to the truth.
const CLOCKS: [i64; 8] = [0, 0, -2, -7_200, -31_536_000, 600, 7_200, 31_536_000];
/// Most steps are about one of so many batches that came last.
const RECENT: usize = 5;

/// One step. A batch is named by the number of the step that stores it; steps about a batch that there is none of do nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A batch that appends a line is submitted.
    Submit {
        batch: usize,
        workspace: usize,
        file: usize,
    },
    /// The same, prepared to be applied later.
    Prepare {
        batch: usize,
        workspace: usize,
        file: usize,
    },
    /// The call that stored a batch is made again, with the same request id.
    Again {
        batch: usize,
    },
    /// The owner lets a prepared batch be applied.
    Apply {
        batch: usize,
    },
    Approve {
        batch: usize,
    },
    Reject {
        batch: usize,
    },
    Cancel {
        batch: usize,
    },
    /// A batch takes another one back.
    Revert {
        batch: usize,
        of: usize,
    },
    /// A report for a batch comes from a caller that does not hold the lease.
    StrangersReport {
        batch: usize,
    },
    /// A node's bytes stop in one direction.
    Stop {
        node: usize,
        direction: Direction,
    },
    /// A node's bytes travel again.
    Heal {
        node: usize,
    },
    /// A node's connections are reset.
    Reset {
        node: usize,
    },
    /// The server is killed, and started again after so many milliseconds.
    KillServer {
        down: u64,
    },
    /// The agent of a workspace is killed, and started again after so many milliseconds.
    KillAgent {
        workspace: usize,
        down: u64,
    },
    /// The server is stopped, its directory copied, and started again.
    Copy,
    /// The server is killed, and started again with the last copy of its directory.
    Restore,
    /// Time passes, and then the server removes all events and batches that a workspace keeps no longer, but for so many events. Does
    /// nothing while a call is under way: it would store anew what was removed.
    Retain {
        workspace: usize,
        events: u64,
    },
    /// So many milliseconds pass.
    Pass {
        millis: u64,
    },
    /// The time of day is set, by seconds from the true one.
    Clock {
        seconds: i64,
    },
}

/// Draws steps, and remembers which batches there are.
struct Draw<'r> {
    random: &'r mut Random,
    next: usize,
    batches: Vec<usize>,
    prepared: Vec<usize>,
    has_copy: bool,
}

/// A history of so many steps.
pub(crate) fn random(random: &mut Random, steps: usize) -> Vec<Step> {
    let mut draw = Draw { random, next: 0, batches: Vec::new(), prepared: Vec::new(), has_copy: false };
    (0..steps).map(|_| draw.step()).collect()
}

impl Draw<'_> {
    fn recent(random: &mut Random, of: &[usize]) -> usize {
        let range = if random.below(4) == 0 { of.len() } else { of.len().min(RECENT) };
        let at = of.len().checked_sub(random.below(range.max(1)) + 1);
        at.and_then(|at| of.get(at)).copied().unwrap_or_default()
    }

    fn stored(&mut self) -> usize {
        let batch = self.next;
        self.next += 1;
        self.batches.push(batch);
        batch
    }

    fn step(&mut self) -> Step {
        let (workspace, file) = (self.random.below(WORKSPACES), self.random.below(FILES));
        let batch = Self::recent(self.random, &self.batches);
        let node = self.random.below(NODES);
        let down = [1, 300, 3_000, 40_000][self.random.below(4)];
        match self.random.below(100) {
            0..22 => Step::Submit { batch: self.stored(), workspace, file },
            22..30 => {
                let batch = self.stored();
                self.prepared.push(batch);
                Step::Prepare { batch, workspace, file }
            }
            30..34 => Step::Again { batch },
            34..42 => Step::Apply { batch: Self::recent(self.random, &self.prepared) },
            42..50 => Step::Approve { batch },
            50..52 => Step::Reject { batch },
            52..56 => Step::Cancel { batch },
            56..60 => Step::Revert { of: batch, batch: self.stored() },
            60..63 => Step::StrangersReport { batch },
            63..68 => {
                let direction = [Direction::ToServer, Direction::FromServer][self.random.below(2)];
                Step::Stop { node, direction }
            }
            68..72 => Step::Heal { node },
            72..76 => Step::Reset { node },
            76..79 => Step::KillServer { down },
            79..83 => Step::KillAgent { workspace, down },
            83..84 => {
                self.has_copy = true;
                Step::Copy
            }
            84..85 if self.has_copy => Step::Restore,
            85..91 => Step::Retain { workspace, events: [1, 1, 3][self.random.below(3)] },
            91..94 => Step::Clock { seconds: CLOCKS[self.random.below(CLOCKS.len())] },
            _ => Step::Pass { millis: [20, 200, 2_000, 20_000][self.random.below(4)] },
        }
    }
}
