//! Takes away what a commit works on, at each disk operation: a file or a directory that cannot be changed any more
//! (`chattr +i`), a file system that becomes read-only, another one that is mounted over a directory or a file.
//!
//! As long as that lasts nothing gets worse; once it is over, the next command finds one end or the other.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aptix_client::workspace::commit::displaced_writes::HELD_FOR;
use aptix_client::workspace::fs::disk::Disk;
use aptix_client::workspace::transaction::CommitOptions;
use rustix::fs::{IFlags, OFlags, ioctl_getflags, ioctl_setflags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};

use crate::disk::{Operation, Verdict, Watched};
use crate::failpoints::{check_outcome, open_in, operations, stopping};
use crate::job::{Ending, Job};
use crate::program;
use crate::sequence::{Kind, Sequence};
use crate::tree::{self, Tree, lay_out};
use crate::volume::Volume;

/// What is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Loss {
    /// Nothing may change a file, or what is in a directory.
    Immutable,
    /// A directory or a file is hidden beneath another.
    Mount,
    /// Nothing may change anything in the root. Aptix's own state is elsewhere.
    ReadOnly,
}

impl Loss {
    const ALL: [Self; 3] = [Self::Immutable, Self::Mount, Self::ReadOnly];

    /// Takes it, if that can be done at this moment.
    fn take(self, at: &Path, volume: &Path, cover: &Path) -> Result<(), Errno> {
        match self {
            Self::Immutable => set_immutable(at, IFlags::IMMUTABLE),
            Self::Mount if at.is_dir() => mount("none", at, "tmpfs", MountFlags::empty(), None),
            Self::Mount => mount_bind(cover, at),
            Self::ReadOnly => mount_remount(volume, MountFlags::RDONLY, c""),
        }
    }

    /// Gives it back.
    fn give_back(self, at: &Path, volume: &Path) -> Result<(), Errno> {
        match self {
            Self::Immutable => set_immutable(at, IFlags::empty()),
            Self::Mount => unmount(at, UnmountFlags::empty()),
            Self::ReadOnly => mount_remount(volume, MountFlags::empty(), c""),
        }
    }
}

fn set_immutable(path: &Path, flag: IFlags) -> Result<(), Errno> {
    let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let file = std::fs::File::options().read(true).custom_flags(no_link).open(path);
    let file = file.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    ioctl_setflags(&file, (ioctl_getflags(&file)? - IFlags::IMMUTABLE) | flag)
}

/// One commit and its loss.
#[derive(Clone, Debug)]
struct Case<'a> {
    sequence: &'a Sequence,
    generation: usize,
    loss: Loss,
    /// Where.
    path: String,
    /// From which operation on.
    from: usize,
    /// Whether the record of the commit is lost as well: that must show.
    is_control: bool,
}

/// What can be taken: each directory, and each file that is there before or after the batch.
fn targets(sequence: &Sequence, generation: usize) -> Vec<String> {
    let mut both: Tree = sequence.tree(generation);
    both.extend(sequence.tree(generation + 1));
    both.into_keys().collect()
}

impl Case<'_> {
    /// Whether the loss took place at all.
    fn run(&self, volume: &Volume) -> Result<bool> {
        self.attempt(volume).with_context(|| format!("{self:?}"))
    }

    fn attempt(&self, volume: &Volume) -> Result<bool> {
        let (on_volume, elsewhere) = (tempfile::tempdir_in(volume.path())?, program::place()?);
        let ws = on_volume.path().join("ws");
        let state = match self.loss {
            Loss::ReadOnly => elsewhere.path().join("state"),
            Loss::Immutable | Loss::Mount => on_volume.path().join("state"),
        };
        lay_out(&ws, &self.sequence.tree(self.generation))?;
        let cover = on_volume.path().join("cover");
        std::fs::write(&cover, "what is mounted over a file\n")?;
        let taken = Arc::new(Mutex::new(false));
        let disk = self.disk(ws.join(&self.path), volume.path(), cover.clone(), &taken);
        let outcome = match open_in(&ws, &state, disk) {
            Ok(workspace) => self.sequence.advance(&workspace, self.generation, CommitOptions::default()),
            Err(error) => Err(error.into()),
        };
        let is_taken = *taken.lock().unwrap_or_else(PoisonError::into_inner);
        if is_taken {
            let survived = self.survive(&ws, &state, &cover);
            // Also after a failure: the directory could not be removed otherwise.
            self.loss.give_back(&ws.join(&self.path), &volume.path()).context("cannot undo the loss")?;
            survived?;
        }
        if self.is_control && state.exists() {
            std::fs::remove_dir_all(&state)?;
        }
        drop(open_in(&ws, &state, stopping(usize::MAX).0).context("the workspace cannot be opened again")?);
        let (old, new) = (self.generation, self.generation + 1);
        let is_new = match self.loss {
            Loss::ReadOnly => {
                // On another mount than the state, displaced files stay where they are until their time is over.
                let later = Watched::new(|_: Operation<'_>| Verdict::Pass).later(HELD_FOR + Duration::from_hours(1));
                drop(open_in(&ws, &state, Box::new(later))?);
                self.sequence.is_new_except_dirs(&tree::read(&ws)?, old, new)?
            }
            Loss::Immutable | Loss::Mount => self.sequence.is_new(&tree::read(&ws)?, old, new)?,
        };
        tree::check_state(&state)?;
        check_outcome(is_new, &outcome)?;
        Ok(is_taken)
    }

    /// A disk on which the loss happens at an operation, or at the next one at which it can.
    fn disk(&self, at: PathBuf, volume: PathBuf, cover: PathBuf, taken: &Arc<Mutex<bool>>) -> Box<dyn Disk> {
        let (loss, from, taken) = (self.loss, self.from, Arc::clone(taken));
        let count = Mutex::new(0);
        Box::new(Watched::new(move |operation: Operation<'_>| {
            let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
            let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
            if *count >= from && !*taken {
                *taken = loss.take(&at, &volume, &cover).is_ok();
            }
            *count += 1;
            match operation {
                Operation::Sync(_) => Verdict::Skip,
                _ => Verdict::Pass,
            }
        }))
    }

    /// Opens the workspace during the loss, and checks that nothing is written to what is mounted over it.
    fn survive(&self, ws: &Path, state: &Path, cover: &Path) -> Result<()> {
        for _ in 0..2 {
            drop(open_in(ws, state, stopping(usize::MAX).0));
        }
        if self.loss == Loss::Mount {
            let found = tree::read(ws)?;
            let mut beneath = found.iter().filter(|(name, _)| name.starts_with(&format!("{}/", self.path)));
            ensure!(beneath.next().is_none(), "something was written into the file system mounted over {}", self.path);
            ensure!(
                std::fs::read(cover)? == b"what is mounted over a file\n",
                "what is mounted over a file was written"
            );
        }
        Ok(())
    }
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let volume = match Volume::make() {
        Ok(volume) => volume,
        Err(why) => return Ok(Ending::Skipped(format!("{why:#}"))),
    };
    let [edit, make, moved, remove, run, ..] = Kind::ALL;
    let sequences = [[edit, make, moved], [moved, remove, run]].map(|kinds| Sequence::new(3, &kinds));
    let (mut tries, mut hit) = (0, 0);
    let mut controls = Vec::new();
    for sequence in &sequences {
        for generation in 0..2 {
            let count = operations(sequence, generation)?;
            let targets = targets(sequence, generation);
            for loss in Loss::ALL {
                let enough = if job.long { count } else { 12 };
                for from in job.random.sample(enough, count) {
                    let enough = if job.long && loss != Loss::ReadOnly { targets.len() } else { 1 };
                    for target in job.random.sample(enough, targets.len()) {
                        let path = targets.get(target).cloned().unwrap_or_default();
                        let case = Case { sequence, generation, loss, path, from, is_control: false };
                        hit += usize::from(case.run(&volume)?);
                        tries += 1;
                        controls.push(Case { is_control: true, ..case });
                    }
                }
            }
        }
    }
    ensure!(hit * 2 > tries, "the loss took place {hit} times of {tries}");
    let caught = controls.iter().position(|control| control.run(&volume).is_err());
    let caught = caught.context("the control was not caught: without a record every tree is whole")?;
    Ok(Ending::Held(format!(
        "{hit} commits on immutable files, beneath mounts and on a read-only file system; control: caught at commit {caught} \
         without a record"
    )))
}
