//! The tools that only read: the same answers over the Model Context Protocol and over a server.

mod past_batches;
mod read;
pub(crate) mod reader;
mod search;

pub(crate) use self::past_batches::{LISTED, elsewhere};
