//! The connection to the server, in domain types: no other module uses a protobuf message or a gRPC status.
//!
//! Every call has a deadline, every message a limit; keep-alive pings detect a dead connection.

pub(crate) mod backoff;
pub mod batch_query;
mod batches;
mod call_error;
pub mod cloud;
mod feed;
mod files;
mod link;
mod position;
pub mod question;
pub mod receipt;
pub mod route;
mod server_url;
mod token;
mod trust;

pub use self::batches::{ChangeView, Decision, Page, StateFeed};
pub use self::call_error::CallError;
pub use self::feed::{Change, Feed, FeedEvent, Incoming, Lease, LeaseSecret, Reported};
pub use self::files::CloudText;
pub use self::link::{Connection, check_token, workspaces};
pub use self::position::Position;
pub use self::server_url::ServerUrl;
pub use self::token::{Credentials, NoToken, Server, Token, TokenError};
pub use self::trust::{ClearText, ClientCertificate, Trust};
