//! An S3-compatible server for the tests that keep blobs in a bucket.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::{python, repo};

/// Its bucket.
const BUCKET: &str = "aptix-tests";

/// A server with an empty bucket; it ends with this.
pub(crate) struct BucketServer {
    child: Child,
    address: String,
}

impl BucketServer {
    /// Starts one. Where none can be had, says so; what needs one is skipped then.
    ///
    /// # Errors
    ///
    /// When one that can be had does not start, or none can be had and nothing may be skipped.
    pub(crate) fn start() -> Result<Option<Self>> {
        let python = match python::bucket() {
            Ok(python) => python,
            Err(error) => {
                ensure!(env::var_os("APTIX_SKIP_NOTHING").is_none(), "{error:#}");
                println!("    no S3-compatible server: {error:#}");
                return Ok(None);
            }
        };
        let mut command = Command::new(python);
        command.arg(repo::root().join("xtask/bucket/server.py")).arg(BUCKET);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        let output = child.stdout.take().context("the server has an output")?;
        BufReader::new(output).read_line(&mut address)?;
        let server = Self { child, address: address.trim_end().to_owned() };
        ensure!(!server.address.is_empty(), "the S3-compatible server does not start");
        Ok(Some(server))
    }
}

impl Drop for BucketServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Has a command use a server, if there is one.
pub(crate) fn with<'c>(server: Option<&BucketServer>, command: &'c mut Command) -> &'c mut Command {
    let Some(server) = server else { return command };
    command
        .env("APTIX_TEST_BUCKET", format!("s3://{BUCKET}"))
        .env("AWS_ENDPOINT_URL", &server.address)
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "tests")
        .env("AWS_SECRET_ACCESS_KEY", "tests")
}
