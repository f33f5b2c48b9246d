//! The connection to the server, in domain types: outside this module nobody sees a protobuf message or a gRPC status.
//!
//! Every call has a deadline, every message a limit; a connection that says nothing is noticed by keep-alive pings.

pub(crate) mod backoff;
mod batches;
mod call_error;
mod feed;
mod files;
mod link;
pub mod receipt;
mod server_url;

pub use self::batches::{ChangeView, Page, StateFeed};
pub use self::call_error::CallError;
pub use self::feed::{Feed, FeedEvent, FeedMessage, Lease, LeaseSecret, Position};
pub use self::files::CloudText;
pub use self::link::Connection;
pub use self::server_url::ServerUrl;
