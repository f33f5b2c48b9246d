//! Diffs applied to a tree of files, by the engine and by git.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use aptix_engine::plan::{plan, reads};
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::readings::{Entry, settle};
use aptix_engine::target::ValidTarget;
use aptix_engine::validate::validate;
use aptix_model::batch::Batch;
use aptix_model::documents::{Dialect, parse};
use aptix_model::failure::Failure;
use aptix_model::path::WorkspacePath;
use aptix_model::report::FileReport;

use crate::boundary::shown;

/// Files by their paths: what they hold, and whether they can be executed.
pub(crate) type Tree = BTreeMap<String, (Vec<u8>, bool)>;

/// A tree in words, `path=content`, with `*` before the path of a file that can be executed.
pub(crate) fn words(tree: &Tree) -> Vec<String> {
    let word = |(path, (content, is_executable)): (&String, &(Vec<u8>, bool))| {
        format!("{}{path}={}", if *is_executable { "*" } else { "" }, shown(content))
    };
    tree.iter().map(word).collect()
}

/// What the engine made of a tree.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) tree: Tree,
    pub(crate) reports: Vec<FileReport>,
    pub(crate) diff: Vec<u8>,
}

impl Changed {
    /// The codes of all warnings.
    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.reports.iter().flat_map(|report| &report.warnings).map(|warning| warning.code.as_str()).collect()
    }
}

/// A tree of plain files.
pub(crate) fn tree(files: &[(&str, &[u8])]) -> Tree {
    files.iter().map(|(path, content)| ((*path).to_owned(), (content.to_vec(), false))).collect()
}

/// Reads a diff, plans it against a tree, and makes the changes.
pub(crate) fn apply(tree: &Tree, diff: &[u8], settings: &Settings<'_>) -> Result<Changed, Vec<Failure>> {
    apply_batch(tree, &parse(diff, Some(Dialect::GitPatch))?.batch, settings)
}

/// Plans a batch against a tree, and makes the changes.
pub(crate) fn apply_batch(tree: &Tree, batch: &Batch, settings: &Settings<'_>) -> Result<Changed, Vec<Failure>> {
    let entry = |path: &str| match tree.contains_key(path) {
        true => Entry::File,
        false if tree.keys().any(|file| file.starts_with(&format!("{path}/"))) => Entry::Directory,
        false => Entry::Absent,
    };
    let batch = settle(batch, entry)?;
    let valid = validate(&batch, &settings.limits)?;
    let observe = |target: &ValidTarget| {
        let ValidTarget::Path(path) = target else { panic!("a diff names paths") };
        let found = tree.get(path.as_str());
        Observed {
            path: WorkspacePath::new(path.as_str()).unwrap(),
            doc_path: format!("repo/{}", path.folded()),
            content: found.map(|(content, _)| content.as_slice()),
            digest: None,
            is_executable: found.is_some_and(|(_, is_executable)| *is_executable),
            other: None,
        }
    };
    let snapshot = reads(&valid)
        .map(|reads| Observed { other: reads.other.map(|other| Box::new(observe(other))), ..observe(reads.target) });
    let snapshot: Vec<_> = snapshot.collect();
    let plan = plan(&valid, &snapshot, settings)?;
    let mut changed = Changed { tree: tree.clone(), reports: Vec::new(), diff: Vec::new() };
    let before: Vec<_> = plan.files.iter().map(|file| changed.tree.remove(file.path.as_str())).collect();
    for (file, before) in plan.files.iter().zip(before) {
        let content = file.content().into_owned();
        let report = file.report(&content);
        if report.written.is_some() {
            let is_executable = file.executable.unwrap_or(before.is_some_and(|(_, is_executable)| is_executable));
            let path = file.moved_to.unwrap_or(file.path).as_str().to_owned();
            assert_eq!(changed.tree.insert(path, (content, is_executable)), None, "nothing is overwritten");
        }
        changed.reports.push(report);
        changed.diff.extend(file.diff(usize::MAX).unwrap());
    }
    Ok(changed)
}

/// What `git apply` makes of a tree; none if it refuses the diff.
pub(crate) fn git_apply(tree: &Tree, diff: &[u8], flags: &[&str]) -> Option<Tree> {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), tree);
    let mut git = git(root.path());
    git.args(["-c", "core.whitespace=-trailing-space", "apply"]).args(flags).arg("-");
    let mut git = git.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("git is needed");
    git.stdin.take().unwrap().write_all(diff).unwrap();
    git.wait().unwrap().success().then(|| read(root.path()))
}

/// The id of a blob, as git makes it.
pub(crate) fn blob_id(text: &str) -> String {
    let mut git = Command::new("git");
    let git = git.args(["hash-object", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut git = git.spawn().expect("git is needed");
    git.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    String::from_utf8(git.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

/// The diff that git makes between two trees, with some flags.
pub(crate) fn git_diff(old: &Tree, new: &Tree, flags: &[&str]) -> Vec<u8> {
    let root = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let output = git(root.path()).args(args).output().expect("git is needed");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    run(&["init", "-q", "."]);
    write(root.path(), old);
    run(&["add", "-A"]);
    let before = String::from_utf8(run(&["write-tree"])).unwrap();
    for path in old.keys() {
        #[expect(clippy::disallowed_methods, reason = "a directory of the test's own")]
        std::fs::remove_file(root.path().join(path)).unwrap();
    }
    write(root.path(), new);
    run(&["add", "-A"]);
    run(&[&["diff", "--cached", "--no-ext-diff", "--no-color"], flags, &[before.trim()]].concat())
}

/// Git, as it is without anybody's configuration.
fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(root).env("GIT_CEILING_DIRECTORIES", root).env("GIT_CONFIG_NOSYSTEM", "1");
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").args(["-c", "core.autocrlf=false", "-c", "core.safecrlf=false"]);
    git
}

#[expect(clippy::disallowed_methods, reason = "a directory of the test's own")]
fn write(root: &Path, tree: &Tree) {
    use std::os::unix::fs::PermissionsExt;
    for (path, (content, is_executable)) in tree {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, content).unwrap();
        let mode = if *is_executable { 0o755 } else { 0o644 };
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn read(root: &Path) -> Tree {
    use std::os::unix::fs::PermissionsExt;
    let mut tree = Tree::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let is_executable = path.metadata().unwrap().permissions().mode() & 0o100 != 0;
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            tree.insert(name, (std::fs::read(&path).unwrap(), is_executable));
        }
    }
    tree
}
