//! By what a root is known again.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// By what a root is known again: its canonical path, and which directory it is, whatever its path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct RootMark {
    pub(in crate::workspace) path: OsString,
    pub(in crate::workspace) device: u64,
    pub(in crate::workspace) inode: u64,
}
