//! The tools that only read: the same answers over the Model Context Protocol and over a server.

pub(crate) mod past_batches;
mod read;
pub(crate) mod reader;
mod search;
