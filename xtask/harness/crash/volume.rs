//! A file system of its own, in a file, that can be shut down as by a power cut.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::moment::until;

/// Lets ext4 forget everything that it has not written, at once: the ioctl `EXT4_IOC_SHUTDOWN` without a flush of the log.
const SHUT_DOWN: &str = "import fcntl, os, struct, sys\n\
                         fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', 2))";

/// How long an unmounted file system may stay attached.
const RELEASED: Duration = Duration::from_secs(120);

/// A mounted ext4; unmounted when it is dropped.
pub(crate) struct Volume {
    directory: TempDir,
}

impl Volume {
    /// Makes a file system and mounts it.
    ///
    /// # Errors
    /// Returns why this machine does not permit it.
    pub(crate) fn make() -> Result<Self> {
        let volume = Self { directory: tempfile::tempdir()? };
        std::fs::File::create_new(volume.image())?.set_len(512 << 20)?;
        std::fs::create_dir(volume.path())?;
        run(Command::new("mkfs.ext4").arg("-q").arg(volume.image()))?;
        volume.mount().context("file systems cannot be mounted here; this takes root and loop devices")?;
        Ok(volume)
    }

    fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("mount")
    }

    fn mount(&self) -> Result<()> {
        run(Command::new("mount").args(["-t", "ext4", "-o", "loop"]).arg(self.image()).arg(self.path()))
    }

    /// Cuts the power.
    pub(crate) fn shut_down(&self) -> Result<()> {
        run(Command::new("python3").args(["-c", SHUT_DOWN]).arg(self.path()))
    }

    /// Starts it again after a power cut.
    pub(crate) fn mount_again(&mut self) -> Result<()> {
        unmount(&self.path())?;
        // A process with mounts of its own may hold a copy of this one for a moment, and with it what was shut down.
        let released = until(RELEASED, Duration::from_millis(1), || Ok(!is_attached(&self.image())?))?;
        ensure!(released, "another process holds the file system that was shut down");
        self.mount()
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // The directory can only go when nothing is mounted in it.
        let _ = unmount(&self.path());
    }
}

fn is_attached(image: &Path) -> Result<bool> {
    let output =
        Command::new("losetup").arg("--associated").arg(image).output().context("losetup cannot be started")?;
    Ok(!output.stdout.is_empty())
}

fn unmount(path: &Path) -> Result<()> {
    run(Command::new("umount").arg(path))
}

/// Runs a command to its end.
///
/// # Errors
/// What it says when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{name} cannot be started"))?;
    if !output.status.success() {
        bail!("{name} fails: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
