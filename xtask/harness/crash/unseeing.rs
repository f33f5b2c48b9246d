//! An agent whose appends to a file do not always see the one before, as if nothing kept two writers apart.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use aptix_client::agent::{Approve, Attended, Service, serve};
use aptix_client::policy::caller::Caller;
use aptix_client::policy::files::PolicyFiles;
use aptix_client::workspace::fs::disk::{Disk, SystemDisk};
use aptix_client::workspace::roots::workspace::Workspace;
use rustix::fs::Mode;
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

/// What the agent is told.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Unseeing {
    url: String,
}

/// Serves the directory `ws` of the directory it was started in, until it is killed.
pub(crate) fn serve_unseeing(told: &Unseeing) -> Result<()> {
    let place = std::env::current_dir()?;
    let root = place.join("ws").to_str().context("the directory has a name in UTF-8")?.parse()?;
    let local = Workspace::open(&[root], &place.join("state"), Box::new(Overlaid::default()))?;
    let policy = Arc::new(PolicyFiles::new(&place.join("config"), Caller::Server));
    let (server, workspace) = (told.url.parse()?, "w".parse()?);
    let service = Service { server, workspace, approve: Approve::Auto, attended: Attended::Never, policy };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    Ok(runtime.block_on(serve(local, service, "unseeing".parse()?, CancellationToken::new()))?)
}

/// The real disk, but every fifth append begins where the one before began.
#[derive(Default)]
struct Overlaid {
    appends: AtomicUsize,
    last: AtomicU64,
}

impl Disk for Overlaid {
    fn write_at(&self, file: BorrowedFd<'_>, bytes: &[u8], at: u64) -> Result<usize, Errno> {
        let last = self.last.swap(at, Ordering::SeqCst);
        let is_unseeing = self.appends.fetch_add(1, Ordering::SeqCst) % 5 == 4 && last != 0;
        SystemDisk.write_at(file, bytes, if is_unseeing { last } else { at })
    }

    fn create(&self, dir: BorrowedFd<'_>, name: &str, mode: Mode) -> Result<OwnedFd, Errno> {
        SystemDisk.create(dir, name, mode)
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        SystemDisk.write(file, bytes)
    }

    fn set_owner(&self, file: BorrowedFd<'_>, user: Option<u32>, group: u32) -> Result<(), Errno> {
        SystemDisk.set_owner(file, user, group)
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
        SystemDisk.set_mode(file, mode)
    }

    fn set_xattr(&self, file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        SystemDisk.set_xattr(file, name, value)
    }

    fn sync(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        SystemDisk.sync(file.as_fd())
    }

    fn exchange(&self, dir: BorrowedFd<'_>, one: &str, other: &str) -> Result<(), Errno> {
        SystemDisk.exchange(dir, one, other)
    }

    fn rename_new(&self, dir: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
        SystemDisk.rename_new(dir, from, to)
    }

    fn rename(&self, dir: BorrowedFd<'_>, from: &str, to_dir: BorrowedFd<'_>, to: &str) -> Result<(), Errno> {
        SystemDisk.rename(dir, from, to_dir, to)
    }

    fn link(&self, dir: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
        SystemDisk.link(dir, from, to)
    }

    fn unlink(&self, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        SystemDisk.unlink(dir, name)
    }

    fn make_dir(&self, dir: BorrowedFd<'_>, name: &str, mode: Mode) -> Result<(), Errno> {
        SystemDisk.make_dir(dir, name, mode)
    }

    fn remove_dir(&self, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        SystemDisk.remove_dir(dir, name)
    }

    fn open_own(&self, dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
        SystemDisk.open_own(dir, name)
    }

    fn truncate(&self, file: BorrowedFd<'_>, length: u64) -> Result<(), Errno> {
        SystemDisk.truncate(file, length)
    }

    fn sync_data(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        SystemDisk.sync_data(file)
    }
}
