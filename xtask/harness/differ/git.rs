//! Git as the other side: it makes the diffs, and applies them in directories of its own.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};

use crate::memory::{File, Tree};

/// Trees that follow one another, as commits of one repository.
pub(crate) struct Repo {
    root: PathBuf,
}

/// What `git apply` did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Theirs {
    Applied(Tree),
    /// What it wrote to its standard error.
    Refused(String),
}

/// Git without anybody's configuration.
fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder)
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("LC_ALL", "C")
        .args(["-c", "core.autocrlf=false", "-c", "core.safecrlf=false"]);
    git
}

fn feed(command: &mut Command, input: &[u8]) -> Result<Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("stdin is a pipe")?;
    // Git may stop reading where it refuses.
    let _ = stdin.write_all(input);
    drop(stdin);
    Ok(child.wait_with_output()?)
}

impl Repo {
    /// A repository with a branch `<number>-<step>` for each tree of each history.
    #[expect(clippy::disallowed_methods, reason = "git works in a folder of its own")]
    pub(crate) fn new(root: &Path, histories: &[(u64, &[&Tree])]) -> Result<Self> {
        let repo = Self { root: root.to_owned() };
        fs::create_dir_all(root)?;
        let done = git(root).args(["init", "--quiet", "--bare", "."]).output().context("git is needed")?;
        ensure!(done.status.success(), "git init: {}", String::from_utf8_lossy(&done.stderr));
        let mut stream = Vec::new();
        for (number, trees) in histories {
            for (step, tree) in trees.iter().enumerate() {
                writeln!(stream, "commit refs/heads/{number}-{step}")?;
                writeln!(stream, "author A U Thor <author@example.com> {} +0000", 1_700_000_000 + step)?;
                writeln!(stream, "committer A U Thor <author@example.com> {} +0000", 1_700_000_000 + step)?;
                let message = format!("change {step} of {number}\n\nIt does what it says.\n");
                write!(stream, "data {}\n{message}", message.len())?;
                if step > 0 {
                    writeln!(stream, "from refs/heads/{number}-{}", step - 1)?;
                }
                stream.extend_from_slice(b"deleteall\n");
                for (path, file) in *tree {
                    let mode = if file.is_executable { "100755" } else { "100644" };
                    writeln!(stream, "M {mode} inline {}\ndata {}", quoted(path), file.bytes.len())?;
                    stream.extend_from_slice(&file.bytes);
                    stream.push(b'\n');
                }
            }
        }
        let done = feed(git(root).args(["fast-import", "--quiet", "--force"]), &stream)?;
        ensure!(done.status.success(), "git fast-import: {}", String::from_utf8_lossy(&done.stderr));
        Ok(repo)
    }

    /// What a command of git writes.
    pub(crate) fn output(&self, arguments: &[String]) -> Result<Vec<u8>> {
        let done = git(&self.root).args(arguments).output()?;
        ensure!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        Ok(done.stdout)
    }
}

/// A path as fast-import reads it.
pub(crate) fn quoted(path: &str) -> String {
    let mut text = String::from("\"");
    for byte in path.bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..0x7f => text.push(char::from(byte)),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text + "\""
}

/// Lets git apply a diff to a tree, in a folder that is not there yet.
pub(crate) fn apply(folder: &Path, tree: &Tree, diff: &[u8], flags: &[&str]) -> Result<Theirs> {
    write(folder, tree)?;
    let mut command = git(folder);
    command.args(["apply", "--whitespace=nowarn"]).args(flags).arg("-");
    let done = feed(&mut command, diff)?;
    let theirs = if done.status.success() {
        Theirs::Applied(read(folder)?)
    } else {
        Theirs::Refused(String::from_utf8_lossy(&done.stderr).into_owned())
    };
    clear(folder)?;
    Ok(theirs)
}

/// Removes a folder of the harness.
#[expect(clippy::disallowed_methods, reason = "git works in a folder of its own")]
pub(crate) fn clear(folder: &Path) -> Result<()> {
    Ok(fs::remove_dir_all(folder)?)
}

/// Puts a tree into a folder.
#[expect(clippy::disallowed_methods, reason = "git works in a folder of its own")]
pub(crate) fn write(folder: &Path, tree: &Tree) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (path, file) in tree {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &file.bytes)?;
        if file.is_executable {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// Reads the tree in a folder.
pub(crate) fn read(folder: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner)? {
            let path = entry?.path();
            let found = fs::symlink_metadata(&path)?;
            if found.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            let mut bytes = Vec::new();
            // A link is read as what it leads to: none is made by the diffs here, but a perturbed mode may ask for one.
            if found.is_symlink() {
                bytes = fs::read_link(&path)?.into_os_string().into_encoded_bytes();
            } else {
                fs::File::open(&path)?.read_to_end(&mut bytes)?;
            }
            tree.insert(name, File { bytes, is_executable: found.permissions().mode() & 0o100 != 0 });
        }
    }
    Ok(tree)
}
