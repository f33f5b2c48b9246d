//! What the things of Aptix are: paths, digests, lines, ids, batches, states, reasons, reports.
//!
//! Without features this crate is `no_std` and knows no serialisation. Feature `wire` adds the
//! gRPC protocol, feature `documents` the texts LLMs write, feature `tools` the tools they call, feature `events` the log
//! events of batches. The first three turn their input into the types of this crate at the door, so that nothing behind it sees
//! a generated or a serde type.
//!
//! Modules in layers, from the ground up: each uses modules of its own row and of the rows above, and none in a circle.
//!
//! | layer | modules |
//! | --- | --- |
//! | values | `words`, `reason`, `limits`, `digest`, `id`, `lines`, `path`, `path_readings`, `path_style`, `quote`, `cursor`, `presence` |
//! | what is edited | `batch`, `preview`, `protection`, `failure`, `create_file_code` |
//! | what became of it | `hunk_counts`, `report`, `plan`, `state`, `record`, `session`, `token`, `id_block`, `batch_event` |
//! | doors | `documents`, `wire`, `events`: none knows another |
//! | served to models | `tools` |

// Generated protocol code names `Box` and `format!` and so needs the prelude of `std`.
#![cfg_attr(not(any(feature = "wire", feature = "documents", test)), no_std)]

extern crate alloc;

pub mod actor;
pub mod batch;
pub mod batch_event;
pub mod create_file_code;
pub mod cursor;
pub mod digest;
#[cfg(feature = "documents")]
pub mod documents;
#[cfg(feature = "events")]
pub mod events;
pub mod failure;
pub mod hunk_counts;
pub mod id;
pub mod id_block;
pub mod limits;
pub mod lines;
pub mod live;
pub mod path;
pub mod path_readings;
pub mod path_style;
pub mod plan;
pub mod presence;
pub mod preview;
pub mod protection;
pub mod question;
pub mod quote;
pub mod reason;
pub mod record;
pub mod report;
pub mod session;
pub mod state;
pub mod token;
#[cfg(feature = "tools")]
pub mod tools;
pub mod trace_parent;
#[cfg(feature = "wire")]
pub mod wire;
mod words;
