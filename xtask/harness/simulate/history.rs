//! A history: what authors, reviewers and failures do, one step after the other.

use crate::network::Direction;
use crate::random::Random;

/// Workspaces, each with an agent. In the second a person has to approve every batch.
pub(crate) const WORKSPACES: usize = 2;
/// Files of each workspace.
pub(crate) const FILES: usize = 2;
/// Nodes with a link to the servers: an agent for each workspace, then the author, then the watcher.
pub(crate) const NODES: usize = WORKSPACES + 2;
/// Servers of a history in which several share a store. Each is a node behind the others: by its link it asks the other servers.
pub(crate) const SERVERS: usize = 3;
/// How the time of day is set, by seconds: within a plan's life, beyond it, by a year, and back to the truth.
const CLOCKS: [i64; 8] = [0, 0, -2, -7_200, -31_536_000, 600, 7_200, 31_536_000];
/// Most steps are about one of so many batches that came last.
const RECENT: usize = 5;

/// What ails a server's way to the store that it shares with others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ailment {
    /// No call reaches the store.
    Cut,
    /// Every call takes its time.
    Slow,
    /// Answers are lost: what was asked was done or not.
    Unsure,
}

/// What happens to the hints that servers on one store send each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Prompt,
    /// Most are lost.
    Lost,
    /// Most come twice.
    Doubled,
    /// Most come late, and in another order.
    Late,
}

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
    /// A server is killed, and started again after so many milliseconds.
    KillServer {
        server: usize,
        down: u64,
    },
    /// A server ends in order, and is started again after so many milliseconds.
    EndServer {
        server: usize,
        down: u64,
    },
    /// A server's way to the store ails for so many milliseconds.
    Ail {
        server: usize,
        ailment: Ailment,
        millis: u64,
    },
    /// What happens to hints from now on.
    Hints {
        fate: Fate,
    },
    /// The agent of a workspace is asked for a file, through one of the servers.
    Ask {
        server: usize,
        workspace: usize,
        file: usize,
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

/// A history of so many steps, with one server or several. That of several begins with what happens to hints.
pub(crate) fn random(random: &mut Random, steps: usize, servers: usize) -> Vec<Step> {
    let mut draw = Draw { random, next: 0, batches: Vec::new(), prepared: Vec::new(), has_copy: false };
    let mut step = |number| match number {
        _ if servers == 1 => draw.of_one(),
        0 => draw.of_hints(),
        _ => draw.of_several(),
    };
    (0..steps).map(&mut step).collect()
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

    fn one<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[self.random.below(N)]
    }

    /// A step with the only server.
    fn of_one(&mut self) -> Step {
        let down = self.one([1, 300, 3_000, 40_000]);
        match self.random.below(100) {
            chance @ 0..63 => self.of_batches(chance),
            chance @ 63..76 => self.of_links(chance - 63, NODES),
            76..79 => Step::KillServer { server: 0, down },
            79..83 => Step::KillAgent { workspace: self.random.below(WORKSPACES), down },
            83..84 => {
                self.has_copy = true;
                Step::Copy
            }
            84..85 if self.has_copy => Step::Restore,
            85..91 => self.retain(),
            91..94 => Step::Clock { seconds: self.one(CLOCKS) },
            _ => Step::Pass { millis: self.one([20, 200, 2_000, 20_000]) },
        }
    }

    /// A step with several servers.
    fn of_several(&mut self) -> Step {
        let (server, workspace) = (self.random.below(SERVERS), self.random.below(WORKSPACES));
        let down = self.one([1, 300, 5_000, 40_000]);
        match self.random.below(150) {
            chance @ 0..63 => self.of_batches(chance),
            chance @ 63..76 => self.of_links(chance - 63, NODES + SERVERS),
            76..84 => Step::KillServer { server, down },
            84..88 => Step::EndServer { server, down },
            88..91 => Step::KillAgent { workspace, down },
            // A server counts as alive for 15 seconds after it was last heard of.
            91..104 => {
                let (ailment, millis) = (Ailment::Cut, self.one([5_000, 30_000, 60_000]));
                Step::Ail { server, ailment, millis }
            }
            104..111 => {
                let (ailment, millis) = (self.one([Ailment::Slow, Ailment::Unsure]), self.one([2_000, 20_000]));
                Step::Ail { server, ailment, millis }
            }
            111..119 => self.of_hints(),
            119..129 => Step::Ask { server, workspace, file: self.random.below(FILES) },
            129..134 => self.retain(),
            134..137 => Step::Clock { seconds: self.one(CLOCKS) },
            _ => Step::Pass { millis: self.one([200, 2_000, 10_000, 30_000]) },
        }
    }

    fn of_hints(&mut self) -> Step {
        Step::Hints { fate: self.one([Fate::Prompt, Fate::Lost, Fate::Doubled, Fate::Late]) }
    }

    fn retain(&mut self) -> Step {
        Step::Retain { workspace: self.random.below(WORKSPACES), events: self.one([1, 1, 3]) }
    }

    /// A step of authors and reviewers, by a number below 63.
    fn of_batches(&mut self, chance: usize) -> Step {
        let (workspace, file) = (self.random.below(WORKSPACES), self.random.below(FILES));
        let batch = Self::recent(self.random, &self.batches);
        match chance {
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
            _ => Step::StrangersReport { batch },
        }
    }

    /// A step of the network between so many nodes, by a number below 13.
    fn of_links(&mut self, chance: usize, nodes: usize) -> Step {
        let node = self.random.below(nodes);
        match chance {
            0..5 => Step::Stop { node, direction: self.one([Direction::ToServer, Direction::FromServer]) },
            5..9 => Step::Heal { node },
            _ => Step::Reset { node },
        }
    }
}
