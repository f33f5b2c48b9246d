//! Packs the release: the programs, completions, manual pages, the README and the licences in one archive, with its checksum beside it.
//!
//! The same programs packed at the same commit give the same bytes, whoever packs them and when.

#![expect(clippy::disallowed_methods, reason = "writes what it builds, no user's files")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo::{PROGRAM_FEATURES, capture, cargo, root, target};
use crate::steps::{run, step};

/// What is packed, and where the archive is put.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Pack the programs in this directory instead of building them.
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// Where the archive is put; `dist` in cargo's target directory if absent.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The programs, each with its package.
const PROGRAMS: [(&str, &str); 2] = [("aptix", "aptix-client"), ("aptix-server", "aptix-server")];
/// Each shell, with the name of its completion script.
const COMPLETIONS: [(&str, &str); 3] = [("bash", "aptix.bash"), ("zsh", "_aptix"), ("fish", "aptix.fish")];
/// The files of the repository that belong to a copy of the programs.
const TEXTS: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];
/// The programs need no library of the system.
const STATIC: &str = "-C target-feature=+crt-static";
/// Without what a debugger reads, which is three quarters of a program; a panic still names its functions.
const STRIPPED: &str = "profile.release.strip = 'debuginfo'";

/// Builds the programs unless they are given, and packs them.
///
/// # Errors
///
/// When something does not build or cannot be packed.
pub(crate) fn dist(args: &Args) -> Result<()> {
    let triple = host()?;
    let binaries = match &args.binaries {
        Some(directory) => directory.clone(),
        None => build(&triple)?,
    };
    let out = match &args.out {
        Some(directory) => directory.clone(),
        None => target()?.join("dist"),
    };
    step("pack", || {
        let archive = pack(&binaries, &triple, &out)?;
        println!("    {}", archive.display());
        Ok(())
    })
}

/// The target that the compiler builds for by itself.
fn host() -> Result<String> {
    let version = capture(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// Builds the programs for this machine's target, which is named so that build scripts and macros are built without these flags; returns
/// the directory that they are in.
fn build(triple: &str) -> Result<PathBuf> {
    step("build", || {
        let mut command = cargo();
        command.env("RUSTFLAGS", STATIC);
        command.args(["build", "--locked", "--release", "--target", triple, "--config", STRIPPED]);
        command.args(["--features", PROGRAM_FEATURES]);
        command.args(PROGRAMS.iter().flat_map(|(_, package)| ["--package", package]));
        run(&mut command)
    })?;
    Ok(target()?.join(triple).join("release"))
}

/// Packs programs; returns the archive.
fn pack(binaries: &Path, triple: &str, out: &Path) -> Result<PathBuf> {
    let name = format!("aptix-{}-{triple}", env!("CARGO_PKG_VERSION"));
    let work = tempfile::tempdir().context("failed to make a directory to work in")?;
    collect(binaries, &work.path().join(&name))?;
    fs::create_dir_all(out).with_context(|| format!("failed to make {}", out.display()))?;
    let archive = out.join(format!("{name}.tar.gz"));
    let tar = work.path().join("archive.tar");
    let mut packing = Command::new("tar");
    packing.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    packing.args(["--mode=u=rwX,go=rX", &format!("--mtime=@{}", commit_time()?)]);
    packing.arg("--file").arg(&tar).arg("--directory").arg(work.path()).arg(&name);
    run(&mut packing)?;
    // Without its name and time in the header.
    let packed = Command::new("gzip").args(["--no-name", "--best", "--stdout"]).arg(&tar).output();
    let packed = packed.context("failed to start gzip")?;
    if !packed.status.success() {
        bail!("gzip failed: {}", String::from_utf8_lossy(&packed.stderr));
    }
    write(&archive, &packed.stdout)?;
    let file = archive.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let sum = capture(Command::new("sha256sum").arg("--").arg(&file).current_dir(out))?;
    write(&out.join("SHA256SUMS"), sum.as_bytes())?;
    Ok(archive)
}

/// Puts everything that the archive has into a directory.
fn collect(binaries: &Path, top: &Path) -> Result<()> {
    for (program, _) in PROGRAMS {
        let place = top.join("bin").join(program);
        copy(&binaries.join(program), &place)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755))
            .context("failed to make a program executable")?;
    }
    for text in TEXTS {
        copy(&root().join(text), &top.join(text))?;
    }
    // What runs is what is packed, so that its pages and scripts are its own.
    let aptix = top.join("bin/aptix");
    let printed = |arguments: &[&str]| capture(Command::new(&aptix).args(arguments));
    for (shell, file) in COMPLETIONS {
        write(&top.join("completions").join(file), printed(&["completions", shell])?.as_bytes())?;
    }
    for page in printed(&["man"])?.lines() {
        write(&top.join("man/man1").join(format!("{page}.1")), printed(&["man", page])?.as_bytes())?;
    }
    Ok(())
}

/// When the commit was made that is checked out, in seconds since 1970.
fn commit_time() -> Result<u64> {
    let time = capture(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()))?;
    time.trim().parse().with_context(|| format!("git gave {time:?} for the time of a commit"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("failed to read {}", from.display()))?;
    write(to, &bytes)
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).with_context(|| format!("failed to make {}", directory.display()))?;
    }
    fs::write(file, bytes).with_context(|| format!("failed to write {}", file.display()))
}
