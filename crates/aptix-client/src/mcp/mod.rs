//! Tools for models: a server that speaks the Model Context Protocol over stdin and stdout.
//!
//! A call that edits is applied as `aptix apply` applies a document; no tool reaches a file in another way.

mod asking;
mod author;
mod called;
mod calls;
mod consent;
mod form;
mod hunks;
mod line;
pub mod opening;
mod past;
mod prepared;
mod progress;
pub mod serve_error;
pub mod server;
mod transport;
mod tried;
mod turns;
mod until;
