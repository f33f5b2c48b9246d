//! After a power cut: brings files to what was written ahead for them, where the cut is what made them otherwise.
//!
//! A file is written only if it is the very one that was published, not written since, and lacks some of its blocks or
//! all of them, or the very one that was there before and untouched since. What somebody else has done since stands, if
//! it has reached the disk: a name that they had removed just before the cut looks like one that the cut has taken.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::Mode;
use rustix::io::Errno;

use super::ahead::{self, Found, Kept, NoSpace, Past, Seen, Sight};
use super::journal::{FileStep, Hex, Journal, Record};
use super::publish::{self, Ground, PublishError};
use super::recovery::{self, RecoveryError};
use super::snapshot::{self, Attributes};
use super::{Workspace, beneath, debris, disk, outbox, staging};

/// After a power cut, heals what mode `journal` had published, and makes it durable.
pub(super) fn heal(workspace: &Workspace) -> Result<(), RecoveryError> {
    for root in workspace.roots() {
        heal_from(workspace, &Journal::open(workspace.disk(), root.state())?)?;
    }
    Ok(())
}

fn heal_from(workspace: &Workspace, journal: &Journal<'_>) -> Result<(), RecoveryError> {
    let Some(mut past) = ahead::read(journal).map_err(journal.failed("read"))? else { return Ok(()) };
    let boot = workspace.disk().boot();
    if past.batches.iter().any(|batch| batch.written.record.boot != boot) {
        let found = match past.found.take() {
            Some(found) => found,
            None => find_dirs(workspace, journal, &past)?,
        };
        let dirs = found.into_iter().map(|found| ((found.root, found.dir), found.changed)).collect();
        let mut known = Known { workspace, journal, rewritten: past.rewritten, dirs };
        for batch in &past.batches {
            let record = &batch.written.record;
            let path = journal.path("ahead");
            let failed = |errno| RecoveryError::System { doing: "heal", record: path.clone(), errno };
            let Some(ground) = find_ground(workspace, record, &path)? else {
                keep(workspace, journal, batch).map_err(failed)?;
                continue;
            };
            if batch.undone {
                unpublish(&ground, batch).map_err(failed)?;
                journal.discard(record)?;
            } else {
                heal_batch(&ground, batch, &mut known).map_err(failed)?;
                keep(workspace, journal, batch).map_err(failed)?;
            }
            publish::sync_dirs(&ground, record).map_err(failed)?;
        }
        let batches: Vec<_> = past.batches.iter().map(|batch| &batch.written.record).collect();
        let lying = journal.records()?;
        // What cannot be read, or was written over, may have been the record of another batch when the power went.
        if lying.iter().any(|record| record.as_ref().is_none_or(|record| record.ahead.is_some())) {
            let known: Vec<_> = batches.iter().copied().chain(lying.iter().flatten()).collect();
            debris::sweep_all(workspace, &known).map_err(journal.failed("clear away what is lost from"))?;
        }
        journal.forget_written_ahead(&batches)?;
        ahead::settle(workspace, journal, NoSpace::LetGo)?;
    }
    Ok(())
}

/// The roots of a batch; `None` where another directory is in the place of one, in which there is nothing to heal.
fn find_ground<'w>(
    workspace: &'w Workspace,
    record: &Record,
    path: &Path,
) -> Result<Option<Ground<'w>>, RecoveryError> {
    match recovery::open_ground(workspace, record, path) {
        Err(RecoveryError::Replaced { root, .. }) => {
            tracing::warn!(root = %root.display(), "another directory has taken the place of one that a power cut found changed");
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

/// What is to be done to a name.
enum Act {
    /// It is as planned.
    Nothing,
    /// The planned bytes are put in the place of the old file, or of nothing.
    Write,
    /// The planned bytes are put in the place of these, which the power cut has left of them.
    Restore(Hex),
    /// The file goes.
    Remove,
    /// Somebody else was here.
    Leave,
}

/// Looks when the directories of batches were changed last, before healing changes any, and notes it.
fn find_dirs(workspace: &Workspace, journal: &Journal<'_>, past: &Past) -> Result<Vec<Found>, RecoveryError> {
    let mut found = BTreeMap::new();
    for Kept { written, .. } in &past.batches {
        let record = &written.record;
        let path = journal.path("ahead");
        let Some(ground) = find_ground(workspace, record, &path)? else { continue };
        let failed = |errno| RecoveryError::System { doing: "heal", record: path.clone(), errno };
        let of_files = record.files.iter().map(|file| (file.root, &file.dir));
        for (root, dir) in of_files.chain(record.dirs.iter().map(|made| (made.root, &made.parent))) {
            let Some(held) = ground.find_dir(root, dir).map_err(&failed)? else { continue };
            let changed = Seen::of(&rustix::fs::fstat(&held).map_err(&failed)?).changed;
            found.insert((root, dir), changed);
        }
    }
    let found = found.into_iter().map(|((root, dir), changed)| Found { root, dir: dir.clone(), changed });
    let found: Vec<_> = found.collect();
    ahead::note_found(workspace, journal, &found).map_err(journal.failed("write ahead in"))?;
    Ok(found)
}

/// What the tree does not show any more once healing has begun. It is noted ahead, so that healing which is cut short goes
/// on where it was.
struct Known<'a> {
    workspace: &'a Workspace,
    journal: &'a Journal<'a>,
    /// The names that healing itself has brought to what some batch made of them: no somebody else has.
    rewritten: BTreeSet<(usize, String)>,
    /// When directories had been changed last.
    dirs: BTreeMap<(usize, String), (i64, u64)>,
}

impl Known<'_> {
    fn is_rewritten(&self, root: usize, path: &str) -> bool {
        self.rewritten.contains(&(root, path.to_owned()))
    }

    fn rewrite(&mut self, root: usize, path: String) -> Result<(), Errno> {
        let name = (root, path);
        if !self.rewritten.contains(&name) {
            ahead::note_rewritten(self.workspace, self.journal, &name)?;
            self.rewritten.insert(name);
        }
        Ok(())
    }

    /// Whether nothing that was done in a directory since it was seen had reached the disk when the power was cut, and
    /// nobody has done anything in it since.
    fn is_older(&self, root: usize, dir: &str, seen: Seen) -> bool {
        self.dirs.get(&(root, dir.to_owned())).is_some_and(|changed| *changed <= seen.changed)
    }
}

fn heal_batch(ground: &Ground<'_>, batch: &Kept, known: &mut Known<'_>) -> Result<(), Errno> {
    let record = &batch.written.record;
    for (made, seen) in record.dirs.iter().zip(&batch.written.parents) {
        let Some(parent) = ground.find_dir(made.root, &made.parent)? else { continue };
        let is_lost = beneath::look_up(parent.as_fd(), &made.name)?.is_none()
            && (known.is_rewritten(made.root, &made.parent) || known.is_older(made.root, &made.parent, *seen));
        if is_lost {
            let path =
                if made.parent.is_empty() { made.name.clone() } else { format!("{}/{}", made.parent, made.name) };
            known.rewrite(made.root, path)?;
            staging::make_dir(ground, made)?;
        }
    }
    for ((file, sight), content) in record.files.iter().zip(&batch.written.sights).zip(&batch.contents) {
        let Some(dir) = ground.find_dir(file.root, &file.dir)? else { continue };
        let content = content.as_deref();
        clear_healed(ground, &dir, file, content.unwrap_or_default())?;
        let done = match (act(&dir, file, sight, content, known)?, content) {
            (Act::Nothing, _) => true,
            (Act::Write, Some(content)) => {
                known.rewrite(file.root, file.real())?;
                write(ground, &dir, file, sight, content)?
            }
            (Act::Restore(left), Some(content)) => {
                known.rewrite(file.root, file.real())?;
                write(ground, &dir, &FileStep { before: Some(left), executable: None, ..file.clone() }, sight, content)?
            }
            (Act::Remove, _) => {
                known.rewrite(file.root, file.real())?;
                let done = settled(publish::publish(ground, file, None))?;
                publish::clear(ground, file, None)?;
                done
            }
            (Act::Write | Act::Restore(_), None) | (Act::Leave, _) => false,
        };
        if !done {
            tracing::warn!(
                file = file.real(),
                "after the power cut the file is neither as before nor as planned; it is left as it is"
            );
        }
        let staged = beneath::look_up(dir.as_fd(), &file.staged)?.map(|stat| stat.st_ino);
        if staged.is_some() && [sight.staged, sight.original].iter().flatten().any(|seen| Some(seen.inode) == staged) {
            disk::unlink_if_there(ground.disk, dir.as_fd(), &file.staged)?;
        }
    }
    Ok(())
}

fn act(dir: &OwnedFd, file: &FileStep, sight: &Sight, content: Option<&[u8]>, known: &Known<'_>) -> Result<Act, Errno> {
    let held = dir.as_fd();
    let is_ours = known.is_rewritten(file.root, &file.real());
    let Some(stat) = beneath::look_up(held, &file.name)? else {
        let is_staged = || -> Result<bool, Errno> {
            let staged = beneath::look_up(held, &file.staged)?;
            Ok(staged.is_some_and(|stat| sight.staged.is_some_and(|seen| seen.inode == stat.st_ino)))
        };
        let is_new_dir = known.is_rewritten(file.root, &file.dir);
        return Ok(match (file.before, file.after) {
            (_, None) => Act::Nothing,
            (None, Some(_))
                if is_ours || is_new_dir || is_staged()? || known.is_older(file.root, &file.dir, sight.dir) =>
            {
                Act::Write
            }
            (_, Some(_)) => Act::Leave,
        });
    };
    let Some((digest, _)) = snapshot::digest(held, &file.name)? else { return Ok(Act::Leave) };
    let now = Hex(digest);
    let runs = Seen::of(&stat).mode & 0o100 != 0;
    if Some(now) == file.after && file.executable.is_none_or(|wanted| wanted == runs) {
        return Ok(Act::Nothing);
    }
    let seen_now = Seen::of(&stat);
    let is_published =
        sight.staged.is_some_and(|seen| seen.inode == seen_now.inode && seen_now.written <= seen.written);
    let is_untouched = sight.original.is_some_and(|seen| seen == seen_now);
    Ok(match file.after {
        Some(_) if is_published && is_left_of(dir, &file.name, content.unwrap_or_default())? => Act::Restore(now),
        Some(_) if is_untouched || (is_ours && Some(now) == file.before) => Act::Write,
        None if is_untouched || (is_ours && Some(now) == file.before) => Act::Remove,
        _ => Act::Leave,
    })
}

/// Bytes that a disk writes at once, at least.
const BLOCK: usize = 512;

/// Whether a file is what a power cut can leave of a content: each block as it was to be, or full of zeros, and some of the
/// last ones not there.
fn is_left_of(dir: &OwnedFd, name: &str, content: &[u8]) -> Result<bool, Errno> {
    let file = std::fs::File::from(beneath::open_file(dir.as_fd(), name)?);
    let mut found = Vec::new();
    let read = file.take(content.len() as u64 + 1).read_to_end(&mut found);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let mut blocks = found.chunks(BLOCK).zip(content.chunks(BLOCK));
    Ok(found.len() <= content.len()
        && blocks.all(|(found, planned)| planned.starts_with(found) || found.iter().all(|byte| *byte == 0)))
}

/// A file as it is written again: under a name of its own until it is whole.
fn healed(file: &FileStep) -> FileStep {
    FileStep { staged: format!("{}-healed", file.staged), ..file.clone() }
}

/// Removes what an earlier healing that was cut short has left: a part of the planned bytes, or what the power cut had
/// left. What somebody else wrote is kept.
fn clear_healed(ground: &Ground<'_>, dir: &OwnedFd, file: &FileStep, content: &[u8]) -> Result<(), Errno> {
    let step = healed(file);
    if beneath::look_up(dir.as_fd(), &step.staged)?.is_none() {
        return Ok(());
    }
    if is_left_of(dir, &step.staged, content)? {
        return disk::unlink_if_there(ground.disk, dir.as_fd(), &step.staged);
    }
    publish::clear(ground, &step, None).map(drop)
}

/// Puts the planned bytes in place, durably; tells whether nobody was in the way.
fn write(ground: &Ground<'_>, dir: &OwnedFd, file: &FileStep, sight: &Sight, content: &[u8]) -> Result<bool, Errno> {
    let step = healed(file);
    let model: Option<Attributes> = snapshot::attributes(dir.as_fd(), &file.name)?;
    let staged = ground.disk.create(dir.as_fd(), &step.staged, Mode::RUSR | Mode::WUSR)?;
    disk::write_all(ground.disk, staged.as_fd(), content)?;
    let mode = sight.staged.map_or(0o600, |seen| seen.mode & 0o7777);
    match &model {
        Some(model) => staging::dress(ground.disk, staged.as_fd(), model, mode).map(drop)?,
        None => ground.disk.set_mode(staged.as_fd(), Mode::from_raw_mode(mode))?,
    }
    ground.disk.sync(staged.as_fd())?;
    let done = settled(publish::publish(ground, &step, None))?;
    publish::clear(ground, &step, None)?;
    Ok(done)
}

/// Tells a name that somebody else has taken meanwhile from a system that fails.
fn settled<T>(outcome: Result<T, PublishError>) -> Result<bool, Errno> {
    match outcome {
        Ok(_) => Ok(true),
        Err(PublishError::System(errno)) => Err(errno),
        Err(PublishError::Changed | PublishError::Exists | PublishError::ParentGone) => Ok(false),
    }
}

/// Takes back what of a refused batch was still in place when the power was cut.
fn unpublish(ground: &Ground<'_>, batch: &Kept) -> Result<(), Errno> {
    let record = &batch.written.record;
    for (file, sight) in record.files.iter().zip(&batch.written.sights).rev() {
        let Some(dir) = ground.find_dir(file.root, &file.dir)? else { continue };
        let held = dir.as_fd();
        let inode = |name: &str| Ok::<_, Errno>(beneath::look_up(held, name)?.map(|stat| stat.st_ino));
        let (now, staged) = (inode(&file.name)?, inode(&file.staged)?);
        let original = sight.original.map(|seen| seen.inode);
        let published = sight.staged.map(|seen| seen.inode);
        if original.is_some() && staged == original {
            match now {
                None => ground.disk.rename_new(held, &file.staged, &file.name)?,
                Some(_) if now == published => ground.disk.rename(held, &file.staged, held, &file.name)?,
                Some(_) => {}
            }
        } else if original.is_none() && published.is_some() && now == published {
            ground.disk.unlink(held, &file.name)?;
        }
        if published.is_some() && inode(&file.staged)? == published {
            disk::unlink_if_there(ground.disk, held, &file.staged)?;
        }
    }
    publish::remove_dirs(ground, record)
}

/// Keeps, durably, what the server is to be told of a batch.
fn keep(workspace: &Workspace, journal: &Journal<'_>, batch: &Kept) -> Result<(), Errno> {
    let record: &Record = &batch.written.record;
    let contents = record.files.iter().zip(&batch.contents);
    let contents = contents.filter_map(|(file, content)| Some((file.after?.0, content.as_deref()?)));
    outbox::put_again(workspace, journal.state(), record, &batch.receipt, contents)
}
