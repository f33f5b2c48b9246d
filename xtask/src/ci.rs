//! Everything a change must pass before it lands, cheapest first, the tests last.

use anyhow::{Result, bail, ensure};

use crate::repo::{capture, cargo, root, target};
use crate::steps::{run, step};
use crate::{breaking, codegen, python, test, tidy};

/// Runs every check and every test, and stops at the first that fails.
///
/// # Errors
///
/// Names the step that failed and the command that repeats it.
pub(crate) fn ci() -> Result<()> {
    step("format (mend: cargo fmt)", || run(cargo().args(["fmt", "--check"])))?;
    step("generated files (cargo xtask codegen --check)", codegen::check)?;
    step("house rules (cargo xtask tidy)", tidy::check)?;
    step("protocol lint (buf lint proto)", || run(python::buf()?.args(["lint", "proto"]).current_dir(root())))?;
    step("breaks of the protocol (cargo xtask freeze --check)", breaking::check)?;
    // Alone, because cargo joins the features that a workspace's crates ask for: only so is `no_std` a compile error.
    step("the engine alone", || run(cargo().args(["check", "--locked", "--package", "aptix-engine"])))?;
    step("the model alone", || {
        run(cargo().args(["check", "--locked", "--package", "aptix-model", "--no-default-features"]))
    })?;
    for features in ["", "agent", "mcp", "cli"] {
        step(&format!("the client with features \"{features}\" alone"), || client_alone(features))?;
    }
    step("the server without PostgreSQL", || {
        let clippy = ["clippy", "--locked", "--package", "aptix-server", "--all-targets", "--", "-D", "warnings"];
        run(cargo().args(clippy))
    })?;
    step("the server without buckets", || {
        run(cargo().args(["check", "--locked", "--package", "aptix-server", "--features", "postgres"]))
    })?;
    step("what the client as a library depends on", library_dependencies)?;
    step("the fuzz targets", fuzz_targets)?;
    step("dependencies (cargo deny check)", dependencies)?;
    step("lints", || {
        let clippy = ["clippy", "--locked", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
        run(cargo().args(clippy))
    })?;
    step("documentation", || {
        let doc = ["doc", "--locked", "--workspace", "--no-deps", "--all-features"];
        run(cargo().args(doc).env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    test::test()
}

fn client_alone(features: &str) -> Result<()> {
    let clippy = ["clippy", "--locked", "--package", "aptix-client", "--all-targets", "--no-default-features"];
    run(cargo().args(clippy).args(["--features", features, "--", "-D", "warnings"]))
}

/// Fails when a program that embeds the client gets the runtime, the protocols or the command line with it.
fn library_dependencies() -> Result<()> {
    let tree = ["tree", "--locked", "--package", "aptix-client", "--no-default-features", "--edges", "normal"];
    let tree = cargo().args(tree).args(["--prefix", "none", "--format", "{lib}"]).output()?;
    ensure!(tree.status.success(), "cargo tree failed: {}", String::from_utf8_lossy(&tree.stderr));
    let names = String::from_utf8(tree.stdout)?;
    ensure!(names.lines().any(|name| name == "aptix_engine"), "cargo tree does not list aptix_engine");
    match names.lines().find(|name| ["clap", "prost", "rmcp", "tokio", "tonic"].contains(name)) {
        Some(name) => bail!("without features aptix-client depends on {name}"),
        None => Ok(()),
    }
}

/// Compiles the fuzz targets, which are a workspace of their own: nothing else compiles their entry points.
fn fuzz_targets() -> Result<()> {
    let manifest = root().join("fuzz/Cargo.toml");
    let mut check = cargo();
    check.args(["check", "--manifest-path"]).arg(&manifest).arg("--target-dir").arg(target()?);
    // They are checked and not linked: with any file in its place, libFuzzer needs no C++ compiler.
    run(check.env("CUSTOM_LIBFUZZER_PATH", manifest))
}

/// Also looks up advisories and yanked versions, which `cargo xtask tidy` does not.
fn dependencies() -> Result<()> {
    if capture(cargo().args(["deny", "--version"])).is_err() {
        println!("    cargo-deny is not installed: advisories and yanked versions are not checked");
        return Ok(());
    }
    run(cargo().args(["deny", "--locked", "check"]))
}
