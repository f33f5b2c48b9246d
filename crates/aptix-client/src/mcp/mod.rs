//! Tools for models: the catalogue, and a server that speaks the Model Context Protocol over stdin and stdout.
//!
//! A call that edits is one document on the same way as `aptix apply`; nothing here has another way to a file.

mod calls;
pub mod catalogue;
mod clock;
mod create_file;
mod hunks;
mod line_search;
mod read;
mod schema;
mod search;
pub mod server;
mod transport;
mod turns;
mod until;
