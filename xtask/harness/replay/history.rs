//! What changed: in the commits of a repository, or between the folders of two versions.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::memory::File;

/// One file's change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileChange {
    pub(crate) path: String,
    pub(crate) before: Option<File>,
    pub(crate) after: Option<File>,
}

/// Files that change together.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) files: Vec<FileChange>,
    /// The change as git writes it, renames included; absent between folders.
    pub(crate) patch: Option<Vec<u8>>,
    /// Entries that are no files: links, submodules.
    pub(crate) left_out: usize,
}

/// The newest non-merge commits of a repository, the newest first.
pub(crate) fn commits(repo: &Path, most: Option<usize>) -> Result<Vec<String>> {
    let mut log = git(repo);
    log.args(["rev-list", "--no-merges", "--min-parents=1"]);
    if let Some(most) = most {
        log.arg(format!("--max-count={most}"));
    }
    let listed = output(log.arg("HEAD"))?;
    Ok(String::from_utf8(listed)?.lines().map(str::to_owned).collect())
}

pub(crate) fn git(repo: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(repo).args(["-c", "core.quotePath=true", "-c", "diff.noprefix=false"]);
    command
}

pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stderr(Stdio::inherit()).output().context("git cannot be started")?;
    ensure!(output.status.success(), "{} from git", output.status);
    Ok(output.stdout)
}

/// Reads objects of a repository, one after the other, by one process.
pub(crate) struct Objects {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Objects {
    pub(crate) fn of(repo: &Path) -> Result<Self> {
        let mut child = git(repo).args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (ask, answers) = child.stdin.take().zip(child.stdout.take()).context("both ends are pipes")?;
        Ok(Self { child, ask, answers: BufReader::new(answers) })
    }

    fn read(&mut self, id: &str) -> Result<Vec<u8>> {
        writeln!(self.ask, "{id}")?;
        let mut head = String::new();
        self.answers.read_line(&mut head)?;
        let size: usize = head.split_whitespace().nth(2).with_context(|| format!("no object {id}"))?.parse()?;
        let mut bytes = vec![0; size + 1];
        self.answers.read_exact(&mut bytes)?;
        bytes.pop();
        Ok(bytes)
    }

    fn file(&mut self, mode: &str, id: &str) -> Result<Option<File>> {
        if id.bytes().all(|digit| digit == b'0') {
            return Ok(None);
        }
        Ok(Some(File { bytes: self.read(id)?, is_executable: mode == "100755" }))
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a commit did to its only parent.
pub(crate) fn step(repo: &Path, objects: &mut Objects, commit: &str) -> Result<Step> {
    let range = [format!("{commit}^"), commit.to_owned()];
    let raw = output(git(repo).args(["diff-tree", "-r", "-z", "--no-renames", "--abbrev=64"]).args(&range))?;
    let text = String::from_utf8_lossy(&raw).into_owned();
    let mut fields = text.split('\0').filter(|field| !field.is_empty());
    let (mut files, mut left_out) = (Vec::new(), 0);
    while let (Some(entry), Some(path)) = (fields.next(), fields.next()) {
        let words: Vec<&str> = entry.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old_id, new_id, _] = words.as_slice() else { bail!("git wrote {entry:?}") };
        let is_file = |mode: &str| mode == "000000" || mode.starts_with("100");
        if !is_file(old_mode) || !is_file(new_mode) || path.contains('\u{fffd}') {
            left_out += 1;
            continue;
        }
        let (before, after) = (objects.file(old_mode, old_id)?, objects.file(new_mode, new_id)?);
        files.push(FileChange { path: path.to_owned(), before, after });
    }
    let patch = output(git(repo).args(["diff", "--full-index", "-M", "--no-color", "--no-ext-diff"]).args(&range))?;
    Ok(Step { name: commit.to_owned(), files, patch: Some(patch), left_out })
}

/// The files of the newest commit, as if each came.
pub(crate) fn newest_files(repo: &Path, objects: &mut Objects) -> Result<Vec<FileChange>> {
    let listed = output(git(repo).args(["ls-tree", "-r", "-z", "--full-tree", "HEAD"]))?;
    let text = String::from_utf8_lossy(&listed).into_owned();
    let mut files = Vec::new();
    for entry in text.split('\0').filter(|entry| !entry.is_empty()) {
        let (words, path) = entry.split_once('\t').with_context(|| format!("git wrote {entry:?}"))?;
        let words: Vec<&str> = words.split(' ').collect();
        let [mode, "blob", id] = words.as_slice() else { continue };
        if mode.starts_with("100") && !path.contains('\u{fffd}') {
            files.push(FileChange { path: path.to_owned(), before: None, after: objects.file(mode, id)? });
        }
    }
    Ok(files)
}

/// What a new version of a folder is beside an old one.
pub(crate) fn between(before: &Path, after: &Path) -> Result<Step> {
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    let left_out = read(before, "", &mut old)? + read(after, "", &mut new)?;
    let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    let files = paths.into_iter().map(|path| FileChange {
        path: path.clone(),
        before: old.get(path).cloned(),
        after: new.get(path).cloned(),
    });
    let files = files.filter(|file| file.before != file.after).collect();
    Ok(Step { name: after.display().to_string(), files, patch: None, left_out })
}

fn read(folder: &Path, under: &str, files: &mut BTreeMap<String, File>) -> Result<usize> {
    let mut left_out = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(|name| format!("{under}{name}")) else { continue };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            left_out += read(&entry.path(), &format!("{name}/"), files)?;
        } else if kind.is_file() {
            let is_executable = entry.metadata()?.permissions().mode() & 0o100 != 0;
            files.insert(name, File { bytes: fs::read(entry.path())?, is_executable });
        } else {
            left_out += 1;
        }
    }
    Ok(left_out)
}
