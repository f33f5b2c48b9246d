//! The real disk, with a fault and a watcher.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use aptix_client::workspace::fs::disk::{Disk, SystemDisk};
use rustix::fs::{Mode as Bits, OFlags};
use rustix::io::Errno;

/// When an operation fails; operations are counted from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Never.
    None,
    /// Nothing works after this many operations; the last write before is cut short.
    StopAfter(usize),
    /// One operation fails.
    FailAt(usize, Errno),
    /// This kind of operation always fails.
    Without(&'static str, Errno),
    /// These kinds of operations always fail.
    WithoutAny(&'static [&'static str], Errno),
    /// The first exchange fails.
    FirstExchange(Errno),
    /// Another process writes a file right after it was published by an exchange.
    LateWrite,
}

/// Called just before a name gets another meaning, or something is flushed, with the kind of operation and the one or two
/// names.
pub(crate) type Watcher = Arc<dyn Fn(&str, &str, &str) + Send + Sync>;

/// The real disk, with a fault and a watcher.
#[derive(Clone)]
pub(crate) struct FaultyDisk {
    fault: Fault,
    pub(crate) count: Arc<AtomicUsize>,
    watcher: Watcher,
    lacks: Fault,
    boot: &'static str,
    pub(crate) days: Arc<AtomicU64>,
    pub(crate) seconds: Arc<AtomicU64>,
    /// Hours by which the clock is wrong.
    pub(crate) skew: Arc<AtomicI64>,
    pub(crate) syncs: Arc<AtomicUsize>,
    /// Whether there is no room for new files.
    pub(crate) full: Arc<AtomicBool>,
    /// Whether no more files can be opened.
    pub(crate) crowded: Arc<AtomicBool>,
    exchanges: Arc<AtomicUsize>,
    has_one_name: bool,
}

impl FaultyDisk {
    pub(crate) fn new(fault: Fault) -> Self {
        Self {
            fault,
            count: Arc::default(),
            exchanges: Arc::default(),
            lacks: Fault::None,
            boot: "first",
            days: Arc::default(),
            seconds: Arc::default(),
            skew: Arc::default(),
            syncs: Arc::default(),
            full: Arc::default(),
            crowded: Arc::default(),
            watcher: Arc::new(|_, _, _| {}),
            has_one_name: false,
        }
    }

    pub(crate) fn watched(fault: Fault, watcher: Watcher) -> Self {
        Self { watcher, ..Self::new(fault) }
    }

    /// The disk with one more fault: operations that it does not have at all.
    pub(crate) fn lacking(self, lacks: Fault) -> Self {
        Self { lacks, ..self }
    }

    /// The disk of a system that was started once more.
    pub(crate) fn booted(self) -> Self {
        Self { boot: "second", ..self }
    }

    /// The disk on which everything that is being written has the same name: what a protection is taken away by.
    pub(crate) fn with_one_name(self) -> Self {
        Self { has_one_name: true, ..self }
    }

    fn name<'n>(&self, name: &'n str) -> &'n str {
        if self.has_one_name && name.ends_with(".aptix-own") { "next" } else { name }
    }

    /// The disk so many days later.
    pub(crate) fn later(self, days: u64) -> Self {
        Self { days: Arc::new(AtomicU64::new(days)), ..self }
    }

    fn gate(&self, what: &str) -> Result<(), Errno> {
        let number = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if ["create", "write_at"].contains(&what) && self.full.load(Ordering::SeqCst) {
            return Err(Errno::NOSPC);
        }
        if ["create", "open_own"].contains(&what) && self.crowded.load(Ordering::SeqCst) {
            return Err(Errno::MFILE);
        }
        let met = |fault| match fault {
            Fault::StopAfter(last) if number > last => Err(Errno::IO),
            Fault::FailAt(at, errno) if number == at => Err(errno),
            Fault::Without(kind, errno) if kind == what => Err(errno),
            Fault::WithoutAny(kinds, errno) if kinds.contains(&what) => Err(errno),
            _ => Ok(()),
        };
        met(self.fault).and_then(|()| met(self.lacks))
    }
}

impl Disk for FaultyDisk {
    fn create(&self, dir: BorrowedFd<'_>, name: &str, mode: Bits) -> Result<OwnedFd, Errno> {
        self.gate("create")?;
        if self.name(name) != name {
            let _ = SystemDisk.unlink(dir, self.name(name));
        }
        SystemDisk.create(dir, self.name(name), mode)
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        let half = bytes.len().div_ceil(2);
        if let Err(errno) = self.gate("write") {
            // A real disk that fails has often written a part.
            let _ = SystemDisk.write(file, &bytes[..half]);
            return Err(errno);
        }
        SystemDisk.write(file, &bytes[..half])
    }

    fn set_owner(&self, file: BorrowedFd<'_>, user: Option<u32>, group: u32) -> Result<(), Errno> {
        self.gate(if user.is_some() { "set_owner" } else { "set_group" })?;
        SystemDisk.set_owner(file, user, group)
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: Bits) -> Result<(), Errno> {
        self.gate("set_mode")?;
        SystemDisk.set_mode(file, mode)
    }

    fn set_xattr(&self, file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        self.gate("set_xattr")?;
        SystemDisk.set_xattr(file, name, value)
    }

    fn sync(&self, _file: BorrowedFd<'_>) -> Result<(), Errno> {
        // What was written is read back, durable or not; what a power cut loses, a test takes away itself.
        self.syncs.fetch_add(1, Ordering::SeqCst);
        (self.watcher)("sync", "", "");
        self.gate("sync")
    }

    fn exchange(&self, dir: BorrowedFd<'_>, one: &str, other: &str) -> Result<(), Errno> {
        self.gate("exchange")?;
        (self.watcher)("exchange", one, other);
        let earlier = self.exchanges.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            Fault::FirstExchange(errno) if earlier == 0 => return Err(errno),
            _ => SystemDisk.exchange(dir, one, other)?,
        }
        if let (Fault::LateWrite, 0) = (self.fault, earlier) {
            let name = if one.starts_with('.') { other } else { one };
            let file = rustix::fs::openat(dir, name, OFlags::WRONLY | OFlags::TRUNC, Bits::empty())?;
            rustix::io::write(file, b"theirs\n")?;
        }
        Ok(())
    }

    fn rename_new(&self, dir: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
        self.gate("rename_new")?;
        (self.watcher)("rename_new", from, to);
        SystemDisk.rename_new(dir, from, to)
    }

    fn rename(&self, dir: BorrowedFd<'_>, from: &str, to_dir: BorrowedFd<'_>, to: &str) -> Result<(), Errno> {
        // A file that leaves the workspace may find no room, or another mount.
        let path =
            |dir: BorrowedFd<'_>| std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())).unwrap_or_default();
        let is_displaced =
            path(to_dir).ends_with("displaced") && !["displaced", "tmp"].iter().any(|end| path(dir).ends_with(end));
        self.gate(if is_displaced { "displace" } else { "rename" })?;
        (self.watcher)("rename", from, to);
        SystemDisk.rename(dir, self.name(from), to_dir, to)
    }

    fn link(&self, dir: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
        self.gate("link")?;
        (self.watcher)("link", from, to);
        SystemDisk.link(dir, from, to)
    }

    fn unlink(&self, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        self.gate("unlink")?;
        (self.watcher)("unlink", name, "");
        SystemDisk.unlink(dir, name)
    }

    fn make_dir(&self, dir: BorrowedFd<'_>, name: &str, mode: Bits) -> Result<(), Errno> {
        self.gate("make_dir")?;
        SystemDisk.make_dir(dir, name, mode)
    }

    fn remove_dir(&self, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        self.gate("remove_dir")?;
        SystemDisk.remove_dir(dir, name)
    }

    fn now(&self) -> SystemTime {
        let seconds = Duration::from_secs(self.seconds.load(Ordering::SeqCst));
        let now = SystemDisk.now() + Duration::from_hours(24 * self.days.load(Ordering::SeqCst)) + seconds;
        let skew = self.skew.load(Ordering::SeqCst);
        let hours = Duration::from_hours(skew.unsigned_abs());
        if skew < 0 { now - hours } else { now + hours }
    }

    fn uptime(&self) -> Duration {
        let seconds = Duration::from_secs(self.seconds.load(Ordering::SeqCst));
        SystemDisk.uptime() + Duration::from_hours(24 * self.days.load(Ordering::SeqCst)) + seconds
    }

    fn open_own(&self, dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
        self.gate("open_own")?;
        SystemDisk.open_own(dir, name)
    }

    fn write_at(&self, file: BorrowedFd<'_>, bytes: &[u8], at: u64) -> Result<usize, Errno> {
        let half = bytes.len().div_ceil(2);
        if let Err(errno) = self.gate("write_at") {
            let _ = SystemDisk.write_at(file, &bytes[..half], at);
            return Err(errno);
        }
        SystemDisk.write_at(file, &bytes[..half], at)
    }

    fn truncate(&self, file: BorrowedFd<'_>, length: u64) -> Result<(), Errno> {
        self.gate("truncate")?;
        SystemDisk.truncate(file, length)
    }

    fn sync_data(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        self.sync(file)
    }

    fn boot(&self) -> String {
        self.boot.to_owned()
    }
}
