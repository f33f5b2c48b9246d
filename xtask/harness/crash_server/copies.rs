//! Backups that are made while the server is killed: one that ends well has everything that was acknowledged before it began, and
//! one that is cut off leaves no file.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::calls::Calls;
use crate::check::lasting;
use crate::moment::until;
use crate::program::program;
use crate::scene::Scene;
use crate::stage::{PATIENCE, Stage};
use crate::workers::with;

/// A backup that is being made, and what it has to contain.
pub(crate) struct Copy {
    process: Child,
    file: PathBuf,
    /// The workspace and the request id of each batch that was acknowledged.
    promised: Vec<(String, String)>,
}

impl Copy {
    /// Begins a backup of a running server.
    pub(crate) fn begin(scene: &Scene) -> Result<Self> {
        let file = scene.place().join("copy.backup");
        if file.exists() {
            std::fs::remove_file(&file)?;
        }
        let promised = acknowledged(scene);
        let mut command = Command::new(program("aptix-server")?);
        command.args(["backup", "--to"]).arg(&file).arg("--data-dir").arg(&scene.stage.data);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { process, file, promised })
    }

    /// Waits until the server has begun to send it: a backup that finds no server opens the data directory itself.
    pub(crate) fn wait_for_server(&mut self) -> Result<()> {
        let begun = until(PATIENCE, Duration::from_millis(1), || {
            Ok(self.process.try_wait()?.is_some() || self.partial()?.is_some_and(|bytes| bytes > 0))
        })?;
        ensure!(begun, "a backup does not begin");
        Ok(())
    }

    /// How many bytes it has written so far, if it has begun and not ended.
    fn partial(&self) -> Result<Option<u64>> {
        let directory = self.file.parent().context("the backup is in a directory")?;
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(".copy.backup") {
                // It may have got its name just now.
                return Ok(Some(entry.metadata().map_or(0, |metadata| metadata.len())));
            }
        }
        Ok(None)
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> Result<()> {
        let ended = until(PATIENCE, Duration::from_millis(5), || Ok(self.process.try_wait()?.is_some()))?;
        ensure!(ended, "a backup does not end");
        Ok(())
    }

    /// Asks of it what was acknowledged up to now, which one that began earlier does not have.
    pub(crate) fn promise_too_much(&mut self, scene: &Scene) {
        self.promised = acknowledged(scene);
    }

    /// Ends it, and restores what it made; answers whether it made something.
    pub(crate) fn end(mut self, scene: &Scene) -> Result<bool> {
        self.wait()?;
        if !self.process.wait()?.success() {
            let left = self.file.exists() || self.partial()?.is_some();
            ensure!(!left, "a backup that failed left a file at {}", self.file.display());
            return Ok(false);
        }
        let restored = tempfile::tempdir_in(scene.place())?;
        let mut stage = scene.stage.restored(&self.file, &restored.path().join("data"))?;
        stage.start(&[])?;
        let found = scene.runtime.block_on(self.compare(scene, &stage));
        found.with_context(|| stage.tail())?;
        Ok(true)
    }

    async fn compare(&self, scene: &Scene, stage: &Stage) -> Result<()> {
        let author = Calls::open(&stage.address, &stage.secrets.author).await?;
        for (workspace, request) in &self.promised {
            let lost = || format!("a backup lacks batch {request} of {workspace}, which was acknowledged before it");
            let found = author.get(workspace, request).await.with_context(lost)?;
            let answered = with(&scene.ledger, |ledger| {
                let sent = ledger.workspaces.get(workspace).and_then(|known| known.sent.get(request));
                sent.and_then(|sent| sent.answered.clone())
            });
            let is_same = answered.is_some_and(|answered| lasting(&answered) == lasting(&found));
            ensure!(is_same, "a backup has another batch {request} of {workspace}: {found:?}");
        }
        Ok(())
    }
}

/// The workspace and the request id of each batch that is acknowledged.
fn acknowledged(scene: &Scene) -> Vec<(String, String)> {
    with(&scene.ledger, |ledger| {
        let sent = ledger.workspaces.iter().flat_map(|(workspace, known)| {
            let answered = known.sent.iter().filter(|(_, sent)| sent.answered.is_some());
            answered.map(|(request, _)| (workspace.clone(), request.clone()))
        });
        sent.collect()
    })
}

impl Drop for Copy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
