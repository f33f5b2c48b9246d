//! The protocol's Rust code and its descriptors for reflection, from `proto/`, without `protoc`.

use std::fs;

use anyhow::{Context, Result};

use super::generated::Generated;
use super::methods;
use crate::repo;

const PROTO: &str = "proto";
const PACKAGE: &str = "aptix/v1";
const OUTPUT: &str = "crates/aptix-model/src/wire/generated";

/// Compiles `proto/aptix/v1/*.proto` to Rust and one descriptor set.
pub(super) fn generate() -> Result<Vec<Generated>> {
    let out = tempfile::tempdir().context("failed to make a temporary directory")?;
    tonic_prost_build::configure()
        .bytes(".")
        .emit_rerun_if_changed(false)
        .out_dir(out.path())
        .compile_fds(compiler()?.include_source_info(true).file_descriptor_set())
        .context("failed to generate Rust from the protocol")?;
    let code = fs::read(out.path().join("aptix.v1.rs")).context("failed to read back the generated Rust")?;
    // Reflection needs names and types; the comments would quadruple its size.
    let descriptors = compiler()?.encode_file_descriptor_set();
    Ok(vec![
        Generated { path: format!("{OUTPUT}/aptix.v1.rs"), content: code },
        Generated { path: format!("{OUTPUT}/aptix.v1.binpb"), content: descriptors },
        Generated { path: format!("{OUTPUT}/method.rs"), content: methods::code(&compiler()?)?.into_bytes() },
    ])
}

fn compiler() -> Result<protox::Compiler> {
    let include = repo::root().join(PROTO);
    let mut compiler = protox::Compiler::new([&include]).context("failed to open proto/")?;
    compiler.include_imports(true);
    for file in sources()? {
        compiler.open_file(&file).with_context(|| format!("failed to compile {file}"))?;
    }
    Ok(compiler)
}

/// The protocol's files as protobuf imports name them, in one order everywhere.
fn sources() -> Result<Vec<String>> {
    let directory = repo::root().join(PROTO).join(PACKAGE);
    let mut files = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| format!("failed to list {}", directory.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".proto") {
            files.push(format!("{PACKAGE}/{name}"));
        }
    }
    files.sort();
    Ok(files)
}
