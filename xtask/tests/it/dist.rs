//! The archive of a release: what is in it, that it is the same bytes each time, and that nothing hidden is completed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::processes::{Machine, binary, write};

/// Stands for the programs that the tests run: those have debug information, which takes minutes to pack.
fn programs(machine: &Machine) -> PathBuf {
    let directory = machine.path("programs");
    for program in ["aptix", "aptix-server"] {
        let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", binary(program).display());
        write(&directory.join(program), &script);
    }
    directory
}

/// Packs programs.
fn pack(programs: &Path, out: &Path) -> PathBuf {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["dist", "--binaries"])
        .arg(programs)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut archives = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path());
    archives.find(|path| path.to_string_lossy().ends_with(".tar.gz")).expect("an archive")
}

fn text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own files")]
fn an_archive_has_programs_completions_pages_and_licences_and_is_the_same_each_time() {
    let machine = Machine::new();
    let (one, other) = (machine.path("one"), machine.path("other"));
    let programs = programs(&machine);
    let archive = pack(&programs, &one);
    // Modes and times of the files that are packed differ from one machine to the next.
    fs::set_permissions(programs.join("aptix"), fs::Permissions::from_mode(0o700)).unwrap();
    let again = pack(&programs, &other);
    let name = archive.file_name().unwrap();
    assert!(name.to_str().unwrap().starts_with(concat!("aptix-", env!("CARGO_PKG_VERSION"), "-")), "{name:?}");
    assert!(fs::read(&archive).unwrap() == fs::read(again).unwrap(), "the same programs give the same bytes");
    text(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&one));

    text(Command::new("tar").arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(&other));
    let top = other.join(name.to_str().unwrap().strip_suffix(".tar.gz").unwrap());
    let listed =
        text(Command::new("tar").arg("--list").arg("--verbose").arg("--numeric-owner").arg("--file").arg(&archive));
    assert!(listed.lines().all(|line| line.contains(" 0/0 ")), "{listed}");
    for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        assert!(top.join(file).metadata().unwrap().len() > 0, "{file}");
    }
    for (program, output) in [("aptix", "aptix "), ("aptix-server", "aptix-server ")] {
        let path = top.join("bin").join(program);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert!(text(Command::new(path).arg("--version")).starts_with(output));
    }
    // A page for each command that help lists, and for those below it.
    let help = text(&mut machine.aptix(&["--help"]));
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let commands =
        commands.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    let expected = commands.filter(|command| *command != "help").map(|command| format!("aptix-{command}.1"));
    let more = ["aptix.1", "aptix-policy-check.1", "aptix-policy-explain.1"].map(str::to_owned);
    let expected: BTreeSet<_> = expected.chain(more).collect();
    let pages = fs::read_dir(top.join("man/man1")).unwrap().map(|entry| entry.unwrap());
    let found: BTreeSet<_> = pages.map(|page| page.file_name().into_string().unwrap()).collect();
    assert_eq!(found, expected);
    for page in found {
        let page = fs::read_to_string(top.join("man/man1").join(page)).unwrap();
        assert!(page.contains(".TH ") && page.contains(".SH SYNOPSIS"), "{page}");
        assert!(
            HIDDEN.iter().all(|hidden| !page.contains(hidden) && !page.contains(&hidden.replace('-', "\\-"))),
            "{page}"
        );
    }
    let scripts = fs::read_dir(top.join("completions")).unwrap().map(|entry| entry.unwrap());
    let scripts: BTreeSet<_> = scripts.map(|script| script.file_name().into_string().unwrap()).collect();
    assert_eq!(scripts, ["_aptix", "aptix.bash", "aptix.fish"].map(str::to_owned).into());
}

/// What help does not show.
pub(crate) const HIDDEN: [&str; 4] = ["state-home", "config-home", "log-format", "--log "];
