//! The gRPC services: each call is decoded, asks the dispatcher once, and is answered. Protobuf stops here.

pub mod admission;
mod admitted;
pub mod agent;
mod agent_answer;
pub mod batch;
mod batch_list;
mod body;
mod entries;
mod event;
pub mod file;
mod filter;
mod inflow;
mod link;
mod live_files;
mod outflow;
mod page;
mod part;
mod prepared;
mod preview;
mod received;
mod report;
mod revert;
mod status;
mod submitted;
pub mod tool;
mod upload;
pub mod workspace;
