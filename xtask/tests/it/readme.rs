//! The README and the other pages show no command that does not run, and no output that does not appear.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::processes::{Running, binary, eventually, unused_address};

/// What commands begin with that need a whole clone: CI runs the first two, and tests have built the programs with every feature.
const NEED_A_CLONE: &[&str] = &["cargo xtask demo", "cargo xtask test", "cargo build --release"];

/// The port that pages name, in place of which a test takes a free one.
const PORT: &str = "7420";

/// A command of a page, and the lines that the page shows below it.
struct Step {
    command: String,
    shown: Vec<String>,
}

/// The commands of all console blocks of a page: lines that begin with `$ `, with the lines of a here-document below.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = page.lines();
    while let Some(fence) =
        lines.by_ref().find_map(|line| line.strip_suffix("console").filter(|it| it.starts_with("```")))
    {
        let mut is_here_document = false;
        while let Some(line) = lines.next().filter(|line| is_here_document || *line != fence) {
            if let Some(command) = line.strip_prefix("$ ").filter(|_| !is_here_document) {
                is_here_document = command.ends_with("<<'END'");
                steps.push(Step { command: command.to_owned(), shown: Vec::new() });
                continue;
            }
            let step = steps.last_mut().expect("a console block begins with a command");
            if is_here_document {
                let _ = write!(step.command, "\n{line}");
                is_here_document = line != "END";
            } else {
                step.shown.push(line.to_owned());
            }
        }
    }
    steps
}

/// Runs all commands of a page in one empty directory, one after the other.
fn follow(name: &str, page: &str) {
    let home = tempfile::tempdir().unwrap();
    let address = unused_address();
    let port = address.rsplit(':').next().unwrap();
    let mut servers = Vec::new();
    for (number, step) in steps(page).into_iter().enumerate() {
        let command = step.command.replace(PORT, port);
        if NEED_A_CLONE.iter().any(|beginning| command.starts_with(beginning)) {
            continue;
        }
        let output = home.path().join(format!(".output-{number}"));
        let mut shell = shell(home.path(), &command, &output);
        let read = || fs::read_to_string(&output).unwrap();
        let shown = |read: &str| missing(read, &step.shown, port);
        if command.starts_with("aptix-server --") || command.starts_with("aptix agent ") {
            servers.push(Running(shell.spawn().unwrap()));
            eventually(&format!("{name}: {command}"), || shown(&read()).is_none());
            continue;
        }
        let status = shell.status().unwrap();
        let is_refused = step.shown.iter().any(|line| line.starts_with("error: "));
        assert_eq!(status.success(), !is_refused, "{name}: {command}\n{}", read());
        if let Some(line) = shown(&read()) {
            panic!("{name}: {command}\nshows {line:?} and printed:\n{}", read());
        }
    }
}

/// A shell that finds our programs and keeps everything in one directory.
fn shell(home: &Path, command: &str, output: &Path) -> Command {
    let programs = binary("aptix").parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut shell = Command::new("bash");
    // Servers take the place of the shell, so that they end with it.
    let program =
        if command.starts_with("aptix-server ") || command.starts_with("aptix agent ") { "exec " } else { "" };
    #[expect(clippy::disallowed_methods, reason = "a test's own file")]
    let output = fs::File::create(output).unwrap();
    shell
        .args(["-c", &format!("{program}{command}")])
        .current_dir(home)
        .envs([("HOME", home.as_os_str()), ("PATH", path.as_os_str())])
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output);
    shell
}

/// The first line that a page shows and that did not appear below those above it; `...` stands for any text.
fn missing<'a>(printed: &str, shown: &'a [String], port: &str) -> Option<&'a str> {
    let mut rest = printed;
    for line in shown {
        for piece in line.replace(PORT, port).split("...").filter(|piece| !piece.is_empty()) {
            match rest.split_once(piece) {
                Some((_, below)) => rest = below,
                None => return Some(line),
            }
        }
    }
    None
}

/// The README's line patch.
pub(crate) fn document() -> String {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let mut steps = steps(&readme).into_iter();
    let step = steps.find(|step| step.command.starts_with("cat > edit.json")).expect("the README has a line patch");
    step.command.lines().skip(1).filter(|line| *line != "END").collect()
}

fn pages() -> impl Iterator<Item = PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let of = |dir: PathBuf| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let all = ["", "docs", "docs/mcp", "docs/reference"].into_iter().flat_map(move |dir| of(root.join(dir)));
    all.filter(|path| path.extension().is_some_and(|extension| extension == "md"))
}

#[test]
fn every_console_block_runs_and_prints_what_it_shows() {
    let mut followed = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        followed += steps(&page).len();
        follow(&path.file_name().unwrap().to_string_lossy(), &page);
    }
    assert!(followed > 15, "{followed} commands were found");
}
