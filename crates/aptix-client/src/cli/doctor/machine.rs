//! Checks of the machine: its kernel, its clock, its programs.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use crate::present::utc::utc;
use crate::workspace::fs::disk::Disk;
use crate::workspace::keep::history::entries::survey;
use crate::workspace::roots::workspace::Workspace;
use crate::workspace::wall::Wall;

use super::finding::{Finding, Subject};
use super::roots::git_top;

/// Milliseconds by which the clock may be behind the newest batch: clocks of one machine are corrected by less.
const TOLERANCE: u64 = 60_000;
/// 2025-01-01, before which no version of this program existed; in milliseconds since 1970.
const FIRST_PLAUSIBLE: u64 = 1_735_689_600_000;

pub(super) fn check_landlock(wall: &Wall) -> Finding {
    let subject = Subject("landlock", None);
    match wall {
        Wall::Up { abi } => {
            subject.ok(format!("the kernel has version {abi} and keeps commands from writing outside of their roots"))
        }
        Wall::Absent(why) => subject.warning(
            format!("the kernel does not confine commands to their roots; the checks of paths alone do: {why}"),
            "run Linux 5.19 or later with `landlock` in the list of the boot parameter `lsm=`",
        ),
    }
}

/// Compares the clock with the newest batch of the roots.
pub(super) fn check_clock(disk: &dyn Disk, workspace: Option<&Workspace>) -> Finding {
    let subject = Subject("clock", None);
    let mending = "set the clock, for example with `sudo timedatectl set-ntp true`";
    let now = disk.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    // A history that cannot be read is a finding of the state.
    let roots = workspace.map(Workspace::roots).unwrap_or_default();
    let newest = roots.iter().filter_map(|root| survey(root.state()).ok()?.newest).map(|time| time.0).max();
    match newest {
        _ if now < FIRST_PLAUSIBLE => subject.warning(format!("it shows {}", utc(now)), mending),
        Some(newest) if newest > now.saturating_add(TOLERANCE) => {
            let message = format!("it shows {}, before the newest batch, which is of {}", utc(now), utc(newest));
            subject.warning(message, mending)
        }
        _ => subject.ok(format!("it shows {}", utc(now))),
    }
}

/// Looks for git, which no command of Aptix runs.
pub(super) fn check_git(workspace: Option<&Workspace>) -> Finding {
    let is_needed = workspace.is_some_and(|workspace| workspace.roots().iter().any(|root| git_top(root).is_some()));
    let found = std::env::var_os("PATH").and_then(|path| find_program("git", &path));
    match found {
        Some(program) => Subject::at("git", &program).ok("found"),
        None if is_needed => Subject("git", None).warning(
            "not found in PATH, and a root is in a git repository: Aptix reads its ignore rules by itself, and a person cannot compare or commit",
            "install git, for example with `sudo apt-get install git`",
        ),
        None => Subject("git", None).ok("not found in PATH, and no root is in a git repository"),
    }
}

fn find_program(name: &str, path: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path).map(|dir| dir.join(name)).find(is_program)
}
