//! The second wall: the kernel itself keeps this process from writing anywhere but in the roots and in Aptix's own
//! directories, whatever this program gets wrong. Linux has it as Landlock.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, make_bitflags,
};

use crate::workspace::commit::recovery;
use crate::workspace::fs::disk::{self, SystemDisk};
use crate::workspace::roots::root::{Root, RootSpec};
use crate::workspace::roots::workspace::Workspace;

/// What a commit does in a root: it makes no links, devices or sockets.
const IN_DIRECTORIES: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | Refer | Truncate});
/// What an agent does besides in Aptix's own state: it listens to editors on a socket.
const IN_STATE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{MakeSock});
/// What may be opened for writing besides.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/tty"];

/// Whether there is a wall.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wall {
    /// This thread, and every thread and process that it starts from now on, can write nowhere else.
    Up {
        /// The version of Landlock that the kernel has.
        abi: i32,
    },
    /// There is none, for this reason.
    Absent(String),
}

/// Makes Aptix's own directories, which cannot be made behind the wall. Failures are reported by the command that needs one.
pub fn make_own(state_home: &Path, config_home: &Path) {
    for home in [state_home, config_home] {
        let _ = disk::private_dir(&home.join("aptix"));
    }
}

/// Raises the wall around roots and Aptix's own directories, as far as they exist; and around the roots that take part in a
/// batch which has to be brought to an end first.
#[must_use]
pub fn raise_for(specs: &[RootSpec], state_home: &Path, config_home: &Path) -> Wall {
    let state = state_home.join("aptix");
    let mut writable = match Workspace::hold(specs, &state, Box::new(SystemDisk)) {
        Ok(workspace) => {
            let roots = workspace.roots().iter().map(Root::path).map(Path::to_owned);
            roots.chain(recovery::reach(&workspace)).collect()
        }
        // Opening them for the command reports why that is not possible; until then nothing is written.
        Err(_) => Vec::new(),
    };
    writable.extend([state.clone(), config_home.join("aptix")]);
    raise_with(&writable, &[state])
}

/// Raises the wall around directories, as far as they exist.
#[must_use]
pub fn raise(writable: &[PathBuf]) -> Wall {
    raise_with(writable, &[])
}

fn raise_with(writable: &[PathBuf], state: &[PathBuf]) -> Wall {
    match restrict(writable, state) {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Wall::Up { abi: abi(status.landlock) },
        Ok(_) => Wall::Absent("the kernel does not enforce it".to_owned()),
        Err(error) => Wall::Absent(error.to_string()),
    }
}

/// The version of Landlock that the kernel has; 0 where it has none.
fn abi(landlock: LandlockStatus) -> i32 {
    match landlock {
        LandlockStatus::Available { kernel_abi: Some(abi), .. } => abi,
        LandlockStatus::Available { effective_abi, .. } => effective_abi as i32,
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    }
}

fn restrict(writable: &[PathBuf], state: &[PathBuf]) -> Result<RestrictionStatus, RulesetError> {
    // A kernel that does not know moves between directories would forbid them all: there, no wall is better.
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V2))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::Truncate)?;
    let rules = |paths: Vec<PathBuf>, access| {
        let opened = paths.into_iter().filter_map(|path| PathFd::new(path).ok());
        opened.map(move |opened| Ok::<_, RulesetError>(PathBeneath::new(opened, access)))
    };
    let devices = DEVICES.iter().map(PathBuf::from).collect();
    ruleset
        .create()?
        .add_rules(rules(writable.to_vec(), IN_DIRECTORIES))?
        .add_rules(rules(state.to_vec(), IN_STATE))?
        .add_rules(rules(devices, AccessFs::WriteFile.into()))?
        .restrict_self()
}
