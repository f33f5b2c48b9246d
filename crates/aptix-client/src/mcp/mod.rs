//! Tools for models: a server that speaks the Model Context Protocol over stdin and stdout.
//!
//! A call that edits is one document on the same way as `aptix apply`; nothing here has another way to a file.

mod answer;
mod author;
mod calls;
mod clock;
mod hunks;
mod line;
mod line_search;
mod prepared;
mod read;
mod search;
pub mod server;
mod transport;
mod turns;
mod until;
