//! A store with a defect: what it stores of files is kept beside the real store, which therefore does not know what files name.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use aptix_model::id::{HistoryId, WorkspaceId};
use aptix_model::path::RootedPath;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::wrapper::Wrapper;
use aptix_server::store::{Answer, CloudFile, FileUpdate, Store, Transition, Transitioned, UploadId};
use tokio::sync::watch;

/// Files by path, kept while the store is opened again.
pub(super) type Files = Arc<Mutex<BTreeMap<RootedPath, FileUpdate>>>;

pub(super) struct Forgetful {
    pub(super) inner: EmbeddedStore,
    pub(super) files: Files,
}

impl Wrapper for Forgetful {
    fn ask<T: Send + 'static>(
        &self,
        _: &'static str,
        question: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
    ) -> Answer<'_, T> {
        question(&self.inner)
    }

    fn transition(&self, mut step: Transition) -> Answer<'_, Transitioned> {
        let files = std::mem::take(&mut step.files);
        Box::pin(async {
            let done = self.inner.transition(step).await?;
            self.files.lock().unwrap().extend(files.into_iter().map(|file| (file.path.clone(), file)));
            Ok(done)
        })
    }

    fn file(&self, _: WorkspaceId, path: RootedPath) -> Answer<'_, Option<CloudFile>> {
        let files = self.files.lock().unwrap();
        let found = files.get(&path).and_then(|file| {
            let (path, doc_path) = (file.path.clone(), file.doc_path.clone());
            Some(CloudFile { path, doc_path, content: file.content?, revision: aptix_model::id::Revision(1) })
        });
        Box::pin(std::future::ready(Ok(found)))
    }

    fn history(&self) -> HistoryId {
        self.inner.history()
    }

    fn discard_upload(&self, upload: UploadId) {
        self.inner.discard_upload(upload);
    }

    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.inner.failed()
    }

    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.inner.healed()
    }

    fn reopenings(&self) -> watch::Receiver<u64> {
        self.inner.reopenings()
    }
}
