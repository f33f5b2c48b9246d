//! The gRPC services: each call is decoded, asks the dispatcher once, and is answered. Protobuf stops here.

pub mod admission;
mod admitted;
pub mod agent;
pub mod batch;
mod body;
mod entries;
mod event;
pub mod file;
mod inflow;
mod link;
mod outflow;
mod page;
mod part;
mod received;
mod report;
mod status;
mod submitted;
pub mod workspace;
