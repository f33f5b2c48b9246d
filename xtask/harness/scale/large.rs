//! The large case: how many databases and servers it takes, what one database and its servers do then, and what limits one database first.

use crate::compare::SERVERS;
use crate::costs::{AgentCosts, Costs, StoreCosts};
use crate::simulation::{GROUP, Layout, Load, Machines, Outcome, simulate};

/// The machines: processors of one with a server and of one with a database, memory of a server that streams may take, bytes a second that
/// the disk of a write-ahead log takes, and connections that a database accepts.
const SERVER_PROCESSORS: usize = 16;
const DATABASE_PROCESSORS: usize = 32;
const STREAM_MEMORY: f64 = 32.0 * GIB;
const BANDWIDTH: f64 = 1e9;
const CONNECTIONS: f64 = 500.0;

/// Connections of one server to its database at most.
const CONNECTIONS_OF_SERVER: f64 = 24.0;
/// Seconds from one look to the next, and workspaces of one question.
const POLL: f64 = 2.0;
const LOOKED_AT: f64 = 1000.0;
/// Events of the life of a batch, each of which is a hint: it is stored, and it is applied.
const HINTS: f64 = 2.0;

/// How much of a resource is used at most.
const USE: f64 = 0.6;
/// How many times as long as one batch alone 99 of 100 batches may take until they are applied.
const SLOWER: f64 = 5.0;
/// The most databases that are tried.
const MOST: usize = 4096;
/// Simulated seconds of each arrangement that is tried.
const SECONDS: f64 = 0.5;
const GIB: f64 = 1_073_741_824.0;

/// One database, and what is stored in it.
#[derive(Clone, Copy, Debug)]
struct Shard {
    servers: usize,
    agents: f64,
    /// Batches a second.
    rate: f64,
}

/// What limits one database, however many servers there are.
struct Wall {
    name: &'static str,
    /// Batches a second at which it is reached.
    rate: f64,
    moved_by: &'static str,
}

/// Prints what so many agents and batches a second take.
pub(crate) fn print(costs: &Costs, agents: u64, rate: u64) {
    let (agents, rate) = (agents as f64, rate as f64);
    println!("\n{agents} connected agents, {rate} batches a second, each submitted, sent, applied and reported:");
    println!(
        "  a server has {SERVER_PROCESSORS} processors and {:.0} GiB for streams; a database {DATABASE_PROCESSORS} processors and {:.1} GB/s \
         of write-ahead log; at most {:.0} % are used, and 99 of 100 batches take at most {SLOWER} times as \
         long as one alone",
        STREAM_MEMORY / GIB,
        BANDWIDTH / 1e9,
        USE * 100.0
    );
    match sized(costs, agents, rate) {
        Some((databases, shard, outcome)) => print_shards(costs, databases, shard, &outcome),
        None => println!("  no arrangement of at most {MOST} databases is enough"),
    }
    println!("  the first walls of one database, with {:.0} agents for each batch a second:", agents / rate);
    let mut walls = walls(costs, agents / rate);
    walls.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    for (number, Wall { name, rate, moved_by }) in walls.iter().enumerate() {
        let mark = if number < 3 { "WALL" } else { "    " };
        println!("    {mark} {rate:>9.0} batches a second: {name}; moved by {moved_by}");
    }
}

/// The fewest databases, each with the fewest servers, that do it; and what one of them does.
fn sized(costs: &Costs, agents: f64, rate: f64) -> Option<(usize, Shard, Outcome)> {
    let least = rate * database_time(costs, GROUP as f64) / (DATABASE_PROCESSORS as f64 * USE);
    let alone = alone(costs);
    let most = (CONNECTIONS / CONNECTIONS_OF_SERVER) as usize;
    let mut databases = (least.ceil() as usize).max(1);
    while databases <= MOST {
        let of = |servers| Shard { servers, agents: agents / databases as f64, rate: rate / databases as f64 };
        let mut servers = (1..=most).find(|servers| is_enough(costs, of(*servers))).unwrap_or(most + 1);
        while servers <= most {
            let outcome = simulate(&layout(costs, of(servers)));
            // More servers make smaller groups, which take more of the database.
            if outcome.database_use > USE {
                break;
            }
            let is_kept_up = outcome.rate >= of(servers).rate * 0.95 && outcome.latency(0.99) <= alone * SLOWER;
            if is_kept_up && outcome.server_use <= USE && outcome.bytes <= BANDWIDTH * USE {
                return Some((databases, of(servers), outcome));
            }
            servers += (servers / 4).max(1);
        }
        databases += (databases / 16).max(1);
    }
    None
}

/// Seconds that a batch takes at a server that has no other.
fn alone(costs: &Costs) -> f64 {
    let shard = Shard { servers: 1, agents: 1.0, rate: 1.0 };
    simulate(&Layout { load: Load::Closed(1), seconds: 20.0, ..layout(costs, shard) }).mean()
}

/// Whether so many servers have the memory and the processors for a database's share, in groups of a few.
fn is_enough(costs: &Costs, shard: Shard) -> bool {
    let servers = shard.servers as f64;
    let memory = shard.agents * costs.agents.stream_bytes / servers;
    let work = shard.rate * server_time(costs, shard, 4.0) / servers;
    let has_writers = shard.rate * 2.0 / servers <= USE * writes_of_writer(&costs.company);
    memory <= STREAM_MEMORY && work <= USE * SERVER_PROCESSORS as f64 && has_writers
}

/// Writes a second of the one writer of a server with full groups.
fn writes_of_writer(costs: &StoreCosts) -> f64 {
    let rows = GROUP as f64 * costs.database_row;
    GROUP as f64 / (costs.server_group + costs.database_group + rows + costs.flush)
}

/// Processor time of the servers of a database for each batch, in groups of this size.
fn server_time(costs: &Costs, shard: Shard, group: f64) -> f64 {
    let of_agents = with_fleet(costs, shard);
    costs.company.server_submit
        + of_agents.push
        + of_agents.report
        + 2.0 * (costs.company.server_group + costs.company.server_beside) / group
}

/// Processor time of the database for each batch, without looks, where as many servers hear of it as it was measured with.
fn database_time(costs: &Costs, group: f64) -> f64 {
    costs.company.database_row
        + costs.agents.database_report
        + 2.0 * (costs.company.database_group + SERVERS as f64 * costs.company.database_beside) / group
}

/// What agents cost with what servers cost each other: every batch is heard by every other server, and workspaces are looked at.
fn with_fleet(costs: &Costs, shard: Shard) -> AgentCosts {
    let Costs { agents, fleet, .. } = costs;
    let looks = shard.agents / LOOKED_AT / POLL;
    AgentCosts {
        push: agents.push + fleet.hear * (shard.servers - 1) as f64,
        report: agents.report + shard.agents * agents.idle / shard.rate,
        database_report: agents.database_report + looks * fleet.look / shard.rate,
        ..*agents
    }
}

fn layout(costs: &Costs, shard: Shard) -> Layout {
    Layout {
        costs: costs.company,
        agents: Some(with_fleet(costs, shard)),
        servers: shard.servers,
        machines: Machines::Apart { server: SERVER_PROCESSORS, database: DATABASE_PROCESSORS },
        load: Load::Open(shard.rate),
        bandwidth: BANDWIDTH,
        seconds: SECONDS,
        seed: 11,
    }
}

fn print_shards(costs: &Costs, databases: usize, shard: Shard, outcome: &Outcome) {
    let Shard { servers, agents, rate } = shard;
    let all = databases * servers;
    println!("  {databases} databases, each with {servers} servers: {all} servers in all");
    println!(
        "  of one database: {agents:.0} agents, {rate:.0} batches a second; {:.0} connections; {:.0} MB/s of write-ahead log, in which \
         PostgreSQL has compressed {:.0} MB/s of files; {:.0} questions a second for looks",
        servers as f64 * CONNECTIONS_OF_SERVER,
        outcome.bytes / 1e6,
        rate * costs.agents.blob_bytes / 1e6,
        agents / LOOKED_AT / POLL,
    );
    println!(
        "  of one server: {:.0} agents with {:.1} GiB, {:.0} batches a second",
        agents / servers as f64,
        agents / servers as f64 * costs.agents.stream_bytes / GIB,
        rate / servers as f64,
    );
    println!(
        "  simulated: {:.0} batches a second, {:.1} writes a group, {:.0} flushes a second; processors of a server {:.0} %, of the database \
         {:.0} %; write-ahead log {:.0} %",
        outcome.rate,
        outcome.group,
        outcome.flushes,
        outcome.server_use * 100.0,
        outcome.database_use * 100.0,
        outcome.bytes / BANDWIDTH * 100.0,
    );
    let alone = alone(costs);
    println!(
        "  from submit to applied, without networks and what the agent's own disk takes: p50 {:.1} times, p99 {:.1} times as long as one alone",
        outcome.latency(0.5) / alone,
        outcome.latency(0.99) / alone,
    );
    println!(
        "  together: {} processors of servers, {} of databases, {:.0} GiB for streams, {:.1} GB/s of write-ahead log",
        all * SERVER_PROCESSORS,
        databases * DATABASE_PROCESSORS,
        agents * databases as f64 * costs.agents.stream_bytes / GIB,
        outcome.bytes * databases as f64 / 1e9,
    );
}

/// What limits one database, with so many agents for each batch a second.
fn walls(costs: &Costs, agents_of_rate: f64) -> Vec<Wall> {
    let Costs { agents, fleet, company, .. } = costs;
    let group = GROUP as f64;
    let one = Shard { servers: 1, agents: agents_of_rate, rate: 1.0 };
    let servers = CONNECTIONS / CONNECTIONS_OF_SERVER;
    let of_server = SERVER_PROCESSORS as f64 / server_time(costs, one, group);
    let of_memory = STREAM_MEMORY / agents.stream_bytes / agents_of_rate;
    let wall = |name, rate, moved_by| Wall { name, rate, moved_by };
    vec![
        wall(
            "processors of the database, for its rows",
            DATABASE_PROCESSORS as f64 / (database_time(costs, group) + agents_of_rate / LOOKED_AT / POLL * fleet.look),
            "fewer indexes and rows of a batch, larger groups, another database",
        ),
        wall(
            "bandwidth of the write-ahead log",
            BANDWIDTH / agents.life_bytes,
            "fewer bytes of a batch, blobs in a bucket, another database",
        ),
        wall(
            "the queue of NOTIFY: a notification is committed under one lock of the database",
            fleet.hints / HINTS / fleet.notify,
            "fewer hints (only of workspaces that another server waits for), servers that send hints to each other",
        ),
        wall(
            "one task of each server hears what all others store",
            1.0 / fleet.hear.max(1e-9),
            "hints for those alone that wait for a workspace, another database",
        ),
        wall(
            "connections of servers to the database, by the processors of as many servers",
            servers * of_server,
            "a connection pooler, fewer connections of a server, larger servers",
        ),
        wall(
            "connections of servers to the database, by the memory for streams of as many servers",
            servers * of_memory,
            "the same, and less memory of a stream",
        ),
        wall(
            "looks: each server has its workspaces looked at every 2 s, one question after the other",
            servers * POLL / fleet.look * LOOKED_AT / agents_of_rate,
            "a longer interval where hints arrive, questions about changes since the last look",
        ),
        wall(
            "the one writer of a server, with full groups, on as many servers",
            servers * writes_of_writer(company) / 2.0,
            "a second writer of a server, each with workspaces of its own",
        ),
    ]
}
