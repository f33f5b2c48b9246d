//! A backup: everything that a store keeps, as it is at one instant, in one file.
//!
//! A backup is a sequence of items, in values of the domain: whatever kind of store wrote it, any kind of store can be made of it.
//! The file's bytes are described in `docs/reference/backup-format.md`.

mod check;
mod codec;
#[cfg(feature = "postgres")]
mod compare;
mod file;
mod item;
mod reader;
mod writer;

#[cfg(feature = "postgres")]
pub(in crate::store) use self::compare::{Unequal, compare};
pub use self::file::NewFile;
pub use self::item::{BackupError, VERSION};
pub(in crate::store) use self::item::{Item, StoreFacts, WorkspaceFacts};
#[cfg(feature = "postgres")]
pub(in crate::store) use self::reader::Report;
pub use self::reader::verify;
pub(in crate::store) use self::reader::{Reader, open};
pub(in crate::store) use self::writer::Writer;
pub use super::backup_summary::Summary;
