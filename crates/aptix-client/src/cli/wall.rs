//! The wall around the roots of a command.

use std::path::Path;

use crate::workspace::roots::root::RootSpec;
use crate::workspace::wall::{Wall, raise_for};

/// Has the kernel forbid this thread, and those that it starts, to write elsewhere than into these roots and Aptix's own directories.
pub(super) fn raise(roots: &[RootSpec], state_home: &Path, config_home: &Path) {
    if let Wall::Absent(why) = raise_for(roots, state_home, config_home) {
        tracing::info!(%why, "the kernel gives no second wall around the roots; the checks of paths hold alone");
    }
}
