//! What one batch costs: the inputs of the model. The committed table has those of one measured run.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The costs of both stores, and how they were measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Costs {
    /// One server on an embedded store.
    pub(crate) embedded: StoreCosts,
    /// One server on a PostgreSQL database.
    pub(crate) postgres: StoreCosts,
    /// Three servers on one PostgreSQL database: with what they notify each other of.
    pub(crate) company: StoreCosts,
    /// Of agents on an embedded store, and on PostgreSQL.
    pub(crate) embedded_agents: AgentCosts,
    pub(crate) agents: AgentCosts,
    pub(crate) fleet: FleetCosts,
}

/// What writes and batches cost on one store. Times are in seconds; those of processors are processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreCosts {
    /// Processor time of an author for one call, and to be woken, which is once for all that the batches of a group wake.
    pub(crate) author_call: f64,
    pub(crate) author_group: f64,
    /// Processor time of the server for a submit, beside its part of a group.
    pub(crate) server_submit: f64,
    /// Processor time of the server for a group.
    pub(crate) server_group: f64,
    /// Processor time of the database for one batch of a group, and for a group.
    pub(crate) database_row: f64,
    pub(crate) database_group: f64,
    /// Processor time for a group that no batch of it waits for, of the servers together, and of the database for each of them: to clear up, to
    /// tell the other servers, and to hear it. Fitted, as a part of all that a group takes.
    pub(crate) server_beside: f64,
    pub(crate) database_beside: f64,
    /// From when a group is flushed until it is durable.
    pub(crate) flush: f64,
    /// What a call waits for on its way to its server: wake-ups and sockets. Fitted.
    pub(crate) call_wait: f64,
    /// Bytes of the write-ahead log, or of the journal, for a submit.
    pub(crate) submit_bytes: f64,
}

/// What a batch costs that an agent applies, and an agent that is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentCosts {
    /// Processor time of the server to send an event to one stream.
    pub(crate) push: f64,
    /// Processor time of the server for the rest of a batch's life: its report, the upload of a file, and its author's watch.
    pub(crate) report: f64,
    /// Processor time of the database for that.
    pub(crate) database_report: f64,
    /// Bytes of the write-ahead log, or of the journal, for the whole life of a batch.
    pub(crate) life_bytes: f64,
    /// Bytes of a batch's content, which are stored as a blob when it is applied, before PostgreSQL compresses them.
    pub(crate) blob_bytes: f64,
    /// Bytes of memory of a connected agent.
    pub(crate) stream_bytes: f64,
    /// Processor time of a server for one connected agent in each second.
    pub(crate) idle: f64,
}

/// What servers on one database cost each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FleetCosts {
    /// From the beginning to the end of a transaction that notifies, one after the other.
    pub(crate) notify: f64,
    /// Hints that one notification has.
    pub(crate) hints: f64,
    /// Processor time of a server for each batch that another one stored.
    pub(crate) hear: f64,
    /// Processor time of the database for one look at 1,000 workspaces.
    pub(crate) look: f64,
}

impl Costs {
    /// Reads a table.
    ///
    /// # Errors
    /// When it is not one.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text)
            .context("the table of unit costs cannot be read; hint: `cargo xtask scale --write` makes it anew")
    }
}

impl Costs {
    /// The table, as it can be read again.
    ///
    /// # Errors
    /// When a cost is no number.
    pub(crate) fn table(&self) -> Result<String> {
        let mut table = String::new();
        for (section, costs) in serde_json::to_value(self)?.as_object().into_iter().flatten() {
            table.push_str(&format!("[{section}]\n"));
            for (name, cost) in costs.as_object().into_iter().flatten() {
                table.push_str(&format!("{name} = {cost}\n"));
            }
            table.push('\n');
        }
        Self::parse(&table)?;
        Ok(table)
    }
}

impl StoreCosts {
    /// The same on processors that take so many times as long.
    pub(crate) fn slowed(self, times: f64) -> Self {
        Self {
            author_call: self.author_call * times,
            author_group: self.author_group * times,
            server_submit: self.server_submit * times,
            server_group: self.server_group * times,
            database_row: self.database_row * times,
            database_group: self.database_group * times,
            server_beside: self.server_beside * times,
            database_beside: self.database_beside * times,
            ..self
        }
    }
}
