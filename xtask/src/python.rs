//! Python environments under the target directory: one each for the example client, `buf`, the official MCP client and an S3-compatible
//! server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::repo;
use crate::steps::run;

const REQUIREMENTS: &str = "examples/python/requirements.txt";
/// What the example client and its stubs import, to see whether the system has it.
const MODULES: &str = "import google.rpc.error_details_pb2, grpc, grpc_health.v1, grpc_status, grpc_tools.protoc";
/// The official MCP client library.
const CONFORMANCE: &str = "xtask/conformance/requirements.txt";
/// The S3-compatible server of the tests.
const BUCKET: &str = "xtask/bucket/requirements.txt";
const BUF: &str = "buf-bin==1.75.0\n";

/// Prepares the example client: its environment in `target/python-venv`, its stubs in `examples/python/stubs`.
///
/// # Errors
///
/// Reports what the machine lacks.
pub(crate) fn example() -> Result<()> {
    let python = environment("python-venv", &repo::read(REQUIREMENTS)?, Some(MODULES))?;
    run(Command::new(python).arg("examples/python/generate_stubs.py").current_dir(repo::root()))
        .context("failed to generate the example client's stubs")
}

/// Installs the official MCP client library of Python in `target/mcp-venv`.
///
/// # Errors
///
/// When there is no Python, or the package cannot be installed.
pub(crate) fn conformance() -> Result<()> {
    environment("mcp-venv", &repo::read(CONFORMANCE)?, None).map(drop)
}

/// The interpreter of `target/bucket-venv`, with the S3-compatible server of the tests installed.
///
/// # Errors
///
/// When there is no Python, or the packages cannot be installed.
pub(crate) fn bucket() -> Result<PathBuf> {
    environment("bucket-venv", &repo::read(BUCKET)?, None)
}

/// The `buf` on the search path, or one from PyPI.
///
/// # Errors
///
/// When there is neither.
pub(crate) fn buf() -> Result<Command> {
    if answers(Command::new("buf").arg("--version")) {
        return Ok(Command::new("buf"));
    }
    let python = environment("buf-venv", BUF, None)
        .context("`buf`, which lints the protocol, is not on the search path and could not be installed from PyPI")?;
    Ok(Command::new(python.with_file_name("buf")))
}

/// The interpreter of an environment in the target directory that has what is required, made if need be.
///
/// Where packages cannot be installed, the system's own do, if it has `modules`.
fn environment(name: &str, requirements: &str, modules: Option<&str>) -> Result<PathBuf> {
    let directory = repo::target()?.join(name);
    let python = directory.join("bin/python");
    // Written last, so that an environment that was left half made is made again.
    let done = directory.join("installed.txt");
    if python.exists() && fs::read_to_string(&done).is_ok_and(|installed| installed == requirements) {
        return Ok(python);
    }
    if !answers(Command::new("python3").arg("--version")) {
        bail!("python3 is missing; install it with its venv module (Debian: apt-get install python3 python3-venv)");
    }
    let Err(error) = install(&directory, &python, requirements) else {
        repo::write_file(&done, requirements.as_bytes())?;
        return Ok(python);
    };
    match modules {
        Some(modules) if answers(Command::new("python3").args(["-c", modules])) => {
            println!("    PyPI did not serve {name}; using the packages that this machine has");
            let make = ["-m", "venv", "--clear", "--without-pip", "--system-site-packages"];
            run(Command::new("python3").args(make).arg(&directory))?;
            if answers(Command::new(&python).args(["-c", modules])) {
                return Ok(python);
            }
            Err(error.context("python3 is itself a virtual environment; leave it, or reach PyPI"))
        }
        _ => Err(error.context(format!(
            "failed to install {} into {}; this needs python3-venv, pip and PyPI{}",
            requirements.split_whitespace().collect::<Vec<_>>().join(" "),
            directory.display(),
            if modules.is_some() { ", or these packages installed for python3" } else { "" },
        ))),
    }
}

fn install(directory: &Path, python: &Path, requirements: &str) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(directory))?;
    let list = directory.join("requirements.txt");
    repo::write_file(&list, requirements.as_bytes())?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "2", "--timeout", "20"];
    run(Command::new(python).args(pip).arg("--requirement").arg(&list))
}

/// Whether a command can be started and succeeds.
fn answers(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
