//! The example clients in Go and C#, compiled where the machine has what that takes.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::repo::{self, capture};
use crate::steps::run;

/// What `examples/go/build.sh` needs on the search path, and the libraries of Debian's packages.
const GO: [&str; 4] = ["go", "protoc", "protoc-gen-go", "protoc-gen-go-grpc"];
const GO_LIBRARIES: [&str; 3] = [
    "/usr/share/gocode/src/google.golang.org/grpc",
    "/usr/share/gocode/src/google.golang.org/protobuf",
    // Of version 1.4 or later; the code that is generated does not work with earlier ones.
    "/usr/share/gocode/src/github.com/golang/protobuf/proto/registry.go",
];

/// Compiles the example client in Go as `target/go/tool-loop`. Where that is not possible, says what is missing; its test is
/// skipped then.
///
/// # Errors
///
/// When it does not compile.
pub(crate) fn go() -> Result<()> {
    let missing: Vec<_> = GO.into_iter().filter(|program| !is_on_path(program)).collect();
    let absent: Vec<_> = GO_LIBRARIES.into_iter().filter(|path| !Path::new(path).exists()).collect();
    if !missing.is_empty() || !absent.is_empty() {
        println!("    the example client in Go is not compiled: {} missing", [missing, absent].concat().join(", "));
        return Ok(());
    }
    run(Command::new(repo::root().join("examples/go/build.sh")).arg(repo::target()?.join("go")))
}

/// Compiles the example client in C#. Where there is no `dotnet`, says so.
///
/// # Errors
///
/// When it does not compile.
pub(crate) fn csharp() -> Result<()> {
    if capture(Command::new("dotnet").arg("--version")).is_err() {
        println!("    the example client in C# is not compiled: dotnet is missing");
        return Ok(());
    }
    let out = repo::target()?.join("csharp");
    let mut build = Command::new("dotnet");
    build.args(["build", "--nologo", "--output"]).arg(out.join("bin"));
    let intermediate = format!("--property:BaseIntermediateOutputPath={}/", out.join("obj").display());
    run(build.arg(intermediate).current_dir(repo::root().join("examples/csharp")))
}

fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
