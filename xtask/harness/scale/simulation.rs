//! A discrete-event simulation of authors, servers, their database and agents.
//!
//! An author calls a server. The server works on the call and queues a write; its one writer takes everything that waits into a group, which
//! costs the server and the database processor time, and is flushed, together with the groups of other servers that wait for the same
//! disk. Then the server answers the author and sends the batch to its agent, which reports: a second write, before which the database works on
//! uploads and reads. Every duration is drawn around its mean from a seed, so that a run can be repeated.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::costs::{AgentCosts, StoreCosts};
use crate::queues::{Disk, Processors};
use crate::random::Random;

/// How many writes one group takes, as in the server's stores.
pub(crate) const GROUP: usize = 256;

/// What is simulated.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) costs: StoreCosts,
    /// What the agents cost that report every batch; without them a batch ends when it is stored.
    pub(crate) agents: Option<AgentCosts>,
    pub(crate) servers: usize,
    pub(crate) machines: Machines,
    pub(crate) load: Load,
    /// Bytes a second of the log's disk.
    pub(crate) bandwidth: f64,
    /// Seconds in which batches begin, of which the first fifth is not counted.
    pub(crate) seconds: f64,
    pub(crate) seed: u64,
}

/// Which processors there are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Machines {
    /// Authors, servers and the database share these.
    One(usize),
    /// Each server has so many, and the database so many; those of authors are never waited for.
    Apart { server: usize, database: usize },
}

/// Who submits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// So many authors, each of whom submits the next batch when the last one has ended.
    Closed(usize),
    /// So many batches a second, whatever ended.
    Open(f64),
}

/// What came of it. Counts and means are of the time after the first fifth, but `begun` and `ended` are of all of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) begun: usize,
    pub(crate) ended: usize,
    /// Batches that ended in a second.
    pub(crate) rate: f64,
    /// Seconds from when each batch began until it was stored, or with agents until its author learns that it was applied; sorted.
    pub(crate) latencies: Vec<f64>,
    /// How many batches were under way, on average over time.
    pub(crate) under_way: f64,
    /// Writes of a group, on average.
    pub(crate) group: f64,
    /// The most writes of a group, and the most by which a group had more than what waited.
    pub(crate) largest: usize,
    pub(crate) excess: usize,
    /// Of each second: how much of all processors of the busiest server and of the database works, and how much of the disk.
    pub(crate) server_use: f64,
    pub(crate) database_use: f64,
    pub(crate) disk_use: f64,
    /// Flushes and bytes of a second.
    pub(crate) flushes: f64,
    pub(crate) bytes: f64,
}

impl Outcome {
    /// The latency that so large a part does not exceed.
    pub(crate) fn latency(&self, part: f64) -> f64 {
        let index = (self.latencies.len() as f64 * part) as usize;
        self.latencies.get(index.min(self.latencies.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.latencies.iter().sum::<f64>() / self.latencies.len().max(1) as f64
    }
}

/// Which of its two writes a batch is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Submit,
    Report,
}

/// Work for processors.
#[derive(Clone, Copy, Debug)]
enum Job {
    /// An author makes a call.
    Call(usize),
    /// A server takes a write, and answers it.
    Receive(usize, Write),
    Answer(usize, Write),
    /// The database does what belongs to a report and needs no group: uploads and reads.
    Aside(usize),
    /// A server prepares its group, and the database carries it out.
    Group(usize),
    Rows(usize),
    /// A server clears up after its group and tells the others, and the database hands it on to each of them.
    Tell(usize),
    Heard,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next batch of an open load.
    Arrival,
    Done(Job),
    /// A call came to its server.
    Came(usize, Write),
    Flushed,
}

/// An event in its order: the earliest is the greatest, and of two at the same time the one that was planned first.
#[derive(Debug)]
struct Planned {
    at: f64,
    number: u64,
    event: Event,
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.total_cmp(&self.at).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Planned {}

#[derive(Debug)]
struct Batch {
    author: usize,
    /// Whether its author has to be woken: the batches of a group wake theirs together, which the first of them pays for.
    wakes: bool,
    server: usize,
    began: f64,
}

#[derive(Debug, Default)]
struct Server {
    queue: VecDeque<(usize, Write)>,
    /// The group under way.
    group: Vec<(usize, Write)>,
    /// Writes that came and that were taken, counted apart from the queue.
    came: usize,
    taken: usize,
}

struct Simulation<'a> {
    layout: &'a Layout,
    random: Random,
    now: f64,
    planned: BinaryHeap<Planned>,
    numbers: u64,
    processors: Vec<Processors<Job>>,
    servers: Vec<Server>,
    disk: Disk,
    flushing: Vec<usize>,
    batches: Vec<Batch>,
    outcome: Outcome,
    groups: Vec<usize>,
    /// Batches under way, integrated over the time that is counted, and until when.
    under_way: f64,
    integrated: f64,
    counted: usize,
}

/// Simulates a layout until every batch that began has ended.
pub(crate) fn simulate(layout: &Layout) -> Outcome {
    let mut simulation = Simulation::new(layout);
    match layout.load {
        Load::Closed(authors) => (0..authors).for_each(|author| simulation.begin(author, true)),
        Load::Open(_) => simulation.plan(0.0, Event::Arrival),
    }
    let (mut before, mut worked) = (None, None);
    while let Some(Planned { at, event, .. }) = simulation.planned.pop() {
        if before.is_none() && at >= simulation.counts_from() {
            before = Some(simulation.work());
        }
        if worked.is_none() && at >= layout.seconds {
            worked = Some(simulation.work());
        }
        simulation.pass_to(at);
        simulation.handle(event);
    }
    let work = simulation.work();
    simulation.finish(&before.unwrap_or_default(), &worked.unwrap_or(work))
}

/// What was worked so far.
#[derive(Debug, Default)]
struct Work {
    processors: Vec<f64>,
    disk: f64,
    flushes: u64,
    written: f64,
}

impl<'a> Simulation<'a> {
    fn new(layout: &'a Layout) -> Self {
        let counts = match layout.machines {
            Machines::One(count) => vec![count],
            Machines::Apart { server, database } => {
                let servers = std::iter::repeat_n(server, layout.servers);
                [usize::MAX, database].into_iter().chain(servers).collect()
            }
        };
        Self {
            layout,
            random: Random::new(layout.seed),
            now: 0.0,
            planned: BinaryHeap::new(),
            numbers: 0,
            processors: counts.into_iter().map(Processors::new).collect(),
            servers: (0..layout.servers).map(|_| Server::default()).collect(),
            disk: Disk::default(),
            flushing: Vec::new(),
            batches: Vec::new(),
            outcome: Outcome::default(),
            groups: Vec::new(),
            under_way: 0.0,
            integrated: 0.0,
            counted: 0,
        }
    }

    fn counts_from(&self) -> f64 {
        self.layout.seconds / 5.0
    }

    fn plan(&mut self, after: f64, event: Event) {
        self.numbers += 1;
        self.planned.push(Planned { at: self.now + after, number: self.numbers, event });
    }

    /// Lets time pass, and integrates what is under way over the part of it that is counted.
    fn pass_to(&mut self, at: f64) {
        let (from, to) = (self.now.max(self.counts_from()), at.min(self.layout.seconds));
        if to > from {
            let open = self.outcome.begun - self.outcome.ended;
            self.under_way += open as f64 * (to - from);
            self.integrated += to - from;
        }
        self.now = at;
    }

    /// A number around 1: half of it is certain, and half is distributed exponentially.
    fn spread(&mut self) -> f64 {
        0.5 + 0.5 * self.exponential()
    }

    fn exponential(&mut self) -> f64 {
        const STEPS: usize = 1 << 30;
        -((self.random.below(STEPS) + 1) as f64 / STEPS as f64).ln()
    }

    /// Has an author, who stays with one server, submit a batch; it may have to be woken for that.
    fn begin(&mut self, author: usize, wakes: bool) {
        let batch = self.batches.len();
        self.batches.push(Batch { author, wakes, server: author % self.layout.servers, began: self.now });
        self.outcome.begun += 1;
        self.work_on(Job::Call(batch));
    }

    /// The processors of a job, and the seconds that it takes on average.
    fn cost(&self, job: Job) -> (usize, f64) {
        let costs = &self.layout.costs;
        let of_server = |server| if matches!(self.layout.machines, Machines::One(_)) { 0 } else { 2 + server };
        let of_batch = |batch: usize| of_server(self.batches.get(batch).map_or(0, |batch| batch.server));
        let agents = self.layout.agents.unwrap_or_default();
        let database = usize::from(!matches!(self.layout.machines, Machines::One(_)));
        match job {
            Job::Call(batch) => {
                let wakes = self.batches.get(batch).is_some_and(|batch| batch.wakes);
                (0, costs.author_call + if wakes { costs.author_group } else { 0.0 })
            }
            Job::Receive(batch, Write::Submit) => (of_batch(batch), costs.server_submit / 2.0),
            Job::Receive(batch, Write::Report) => (of_batch(batch), agents.report / 2.0),
            Job::Answer(batch, Write::Submit) => (of_batch(batch), costs.server_submit / 2.0 + agents.push),
            Job::Answer(batch, Write::Report) => (of_batch(batch), agents.report / 2.0),
            Job::Group(server) => (of_server(server), costs.server_group),
            Job::Tell(server) => (of_server(server), costs.server_beside),
            Job::Heard => (database, costs.database_beside),
            Job::Aside(_) => (database, (agents.database_report - costs.database_row).max(0.0)),
            Job::Rows(server) => {
                let rows = self.servers.get(server).map_or(0, |server| server.group.len()) as f64;
                (database, costs.database_group + rows * costs.database_row)
            }
        }
    }

    fn work_on(&mut self, job: Job) {
        let (on, seconds) = self.cost(job);
        let seconds = seconds * self.spread();
        let begun = self.processors.get_mut(on).and_then(|processors| match job {
            // Those who slept until they were told run before those who wait for a processor.
            Job::Tell(_) | Job::Heard => processors.take_first(job, seconds),
            _ => processors.take(job, seconds),
        });
        if let Some((job, seconds)) = begun {
            self.plan(seconds, Event::Done(job));
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival => {
                if let Load::Open(rate) = self.layout.load
                    && self.now < self.layout.seconds
                {
                    self.begin(self.batches.len(), true);
                    let after = self.exponential() / rate;
                    self.plan(after, Event::Arrival);
                }
            }
            Event::Done(job) => {
                let on = self.cost(job).0;
                if let Some((next, seconds)) = self.processors.get_mut(on).and_then(Processors::end) {
                    self.plan(seconds, Event::Done(next));
                }
                self.done(job);
            }
            Event::Came(batch, write) => self.work_on(Job::Receive(batch, write)),
            Event::Flushed => {
                self.disk.end();
                for server in std::mem::take(&mut self.flushing) {
                    let group = self.servers.get_mut(server).map(|server| std::mem::take(&mut server.group));
                    // The writer goes on before those who waited for it are woken.
                    self.group(server);
                    for (batch, write) in group.unwrap_or_default() {
                        self.work_on(Job::Answer(batch, write));
                    }
                    self.work_on(Job::Tell(server));
                }
                self.flush();
            }
        }
    }

    fn done(&mut self, job: Job) {
        match job {
            Job::Call(batch) => self.send(batch, Write::Submit),
            Job::Receive(batch, write) => {
                let Some(at) = self.batches.get(batch).map(|batch| batch.server) else { return };
                if let Some(server) = self.servers.get_mut(at) {
                    server.queue.push_back((batch, write));
                    server.came += 1;
                }
                self.group(at);
            }
            Job::Group(server) => self.work_on(Job::Rows(server)),
            Job::Tell(_) => (0..self.layout.servers).for_each(|_| self.work_on(Job::Heard)),
            Job::Heard => {}
            Job::Rows(server) => {
                let bytes = self.bytes(server);
                self.disk.take(server, bytes);
                self.flush();
            }
            Job::Answer(batch, Write::Submit) if self.layout.agents.is_some() => self.work_on(Job::Aside(batch)),
            Job::Aside(batch) => self.send(batch, Write::Report),
            Job::Answer(batch, _) => self.end(batch),
        }
    }

    fn send(&mut self, batch: usize, write: Write) {
        let wait = self.layout.costs.call_wait * self.spread();
        self.plan(wait, Event::Came(batch, write));
    }

    /// Has the writer of a server take everything that waits, unless it has a group already.
    fn group(&mut self, at: usize) {
        let Some(server) = self.servers.get_mut(at) else { return };
        if !server.group.is_empty() || server.queue.is_empty() {
            return;
        }
        let waiting = server.came - server.taken;
        server.group = server.queue.drain(..server.queue.len().min(GROUP)).collect();
        let size = server.group.len();
        for (place, (batch, _)) in server.group.iter().enumerate() {
            if let Some(batch) = self.batches.get_mut(*batch) {
                batch.wakes = place == 0;
            }
        }
        server.taken += size;
        self.outcome.largest = self.outcome.largest.max(size);
        self.outcome.excess = self.outcome.excess.max(size.saturating_sub(waiting));
        if self.now >= self.counts_from() {
            self.groups.push(size);
        }
        self.work_on(Job::Group(at));
    }

    fn bytes(&self, server: usize) -> f64 {
        let group = self.servers.get(server).map_or(&[][..], |server| &server.group);
        let submit = self.layout.costs.submit_bytes;
        let report = self.layout.agents.map_or(0.0, |agents| (agents.life_bytes - submit).max(0.0));
        group.iter().map(|(_, write)| if *write == Write::Submit { submit } else { report }).sum()
    }

    fn flush(&mut self) {
        let Some((writers, bytes)) = self.disk.begin() else { return };
        self.flushing = writers;
        let seconds = self.layout.costs.flush * self.spread() + bytes / self.layout.bandwidth;
        self.disk.worked += seconds;
        self.plan(seconds, Event::Flushed);
    }

    fn end(&mut self, batch: usize) {
        let Some(&Batch { author, wakes, began, .. }) = self.batches.get(batch) else { return };
        self.outcome.ended += 1;
        if self.now >= self.counts_from() && self.now < self.layout.seconds {
            self.counted += 1;
            self.outcome.latencies.push(self.now - began);
        }
        if matches!(self.layout.load, Load::Closed(_)) && self.now < self.layout.seconds {
            self.begin(author, wakes);
        }
    }

    fn work(&self) -> Work {
        Work {
            processors: self.processors.iter().map(|processors| processors.worked).collect(),
            disk: self.disk.worked,
            flushes: self.disk.flushes,
            written: self.disk.written,
        }
    }

    fn finish(self, before: &Work, after: &Work) -> Outcome {
        let seconds = self.layout.seconds - self.counts_from();
        let worked = |on: usize| {
            let of = |work: &Work| work.processors.get(on).copied().unwrap_or_default();
            (of(after) - of(before)) / seconds
        };
        let (server, database) = match self.layout.machines {
            Machines::One(count) => (worked(0) / count as f64, worked(0) / count as f64),
            Machines::Apart { server, database } => {
                let busiest = (2..2 + self.layout.servers).map(worked).fold(0.0, f64::max);
                (busiest / server as f64, worked(1) / database as f64)
            }
        };
        let mut outcome = self.outcome;
        outcome.latencies.sort_by(f64::total_cmp);
        outcome.rate = self.counted as f64 / seconds;
        outcome.under_way = self.under_way / self.integrated;
        outcome.group = self.groups.iter().sum::<usize>() as f64 / self.groups.len().max(1) as f64;
        outcome.server_use = server;
        outcome.database_use = database;
        outcome.disk_use = (after.disk - before.disk) / seconds;
        outcome.flushes = (after.flushes - before.flushes) as f64 / seconds;
        outcome.bytes = (after.written - before.written) / seconds;
        outcome
    }
}
