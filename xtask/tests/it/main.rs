//! End to end: the real server, agent and command line as processes, an orchestrator in Python, files on a real disk.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod bad_clients;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod diffs;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod failed_flush;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod person;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod restore;
#[cfg(test)]
mod screen;
#[cfg(test)]
mod serve;
#[cfg(test)]
#[path = "../../../crates/aptix-client/tests/it/skip.rs"]
mod skip;
#[cfg(test)]
mod withheld;
