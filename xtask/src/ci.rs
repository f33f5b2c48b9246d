//! Everything a change must pass before it lands, cheapest first, the tests last.

use anyhow::Result;

use crate::repo::cargo;
use crate::steps::{run, step};
use crate::{codegen, python, repo, test, tidy};

/// Runs every check and every test, and stops at the first that fails.
///
/// # Errors
///
/// Names the step that failed and the command that repeats it.
pub(crate) fn ci() -> Result<()> {
    step("format (mend: cargo fmt)", || run(cargo().args(["fmt", "--check"])))?;
    step("generated files (cargo xtask codegen --check)", codegen::check)?;
    step("house rules (cargo xtask tidy)", tidy::check)?;
    step("protocol lint (buf lint proto)", || run(python::buf()?.args(["lint", "proto"]).current_dir(repo::root())))?;
    // Alone, because cargo joins the features that a workspace's crates ask for: only so is `no_std` a compile error.
    step("the engine alone", || run(cargo().args(["check", "--locked", "--package", "aptix-engine"])))?;
    step("the model alone", || {
        run(cargo().args(["check", "--locked", "--package", "aptix-model", "--no-default-features"]))
    })?;
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
