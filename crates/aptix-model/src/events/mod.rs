//! The log events of batches and of the calls that carry them: the one function that writes them, for the server, the agent,
//! `aptix apply`, `aptix undo` and `aptix mcp`.
//!
//! An event names its batch by ids and says how long that took; it never holds text of a document, of a file or of a message that
//! quotes one. What authors chose (ids, paths) is escaped and cut. `docs/reference/logs.md` lists events and fields.

pub mod cause;
pub mod event;
mod line;
pub mod trace;
