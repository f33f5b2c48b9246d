//! The binary `aptix`.

use std::process::ExitCode;

fn main() -> ExitCode {
    aptix_client::cli::main()
}
