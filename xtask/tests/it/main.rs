//! End to end: the real server, agent and command line as processes, an orchestrator in Python, files on a real disk.

#[cfg(test)]
mod processes;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod serve;
