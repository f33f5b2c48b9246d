//! The server through its boundaries: the store trait, gRPC over an in-memory connection, and the program itself.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod blobs;
#[cfg(test)]
mod busy;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod delivery;
#[cfg(test)]
mod hand_made;
#[cfg(test)]
mod history;
#[cfg(test)]
mod lease;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod process;
mod reopening;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod server;
#[cfg(test)]
mod store_contract;
#[cfg(test)]
mod submit;
