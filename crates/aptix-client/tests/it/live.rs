//! Files as they are on disk at this moment: read, described, listed, searched, under the egress rule.

mod left_out;
mod listed;
mod odd_files;
mod reads;
mod refused;
mod replied;
mod searched;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aptix_client::live::read;
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_client::policy::files::PolicyFiles;
use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::failure::Failure;
use aptix_model::live::{FileContent, FileInfo, FilePart, FileSelector, Portion};
use aptix_model::path::{DocPath, WorkspacePath};

/// Directories `ws` and, if there are to be two roots, `other`, and what a server is shown of them.
struct Scene {
    place: tempfile::TempDir,
    workspace: Workspace,
    policies: PolicyFiles,
}

impl Scene {
    fn set() -> Self {
        Self::of_roots(&["ws"])
    }

    fn of_roots(names: &[&str]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let spec = |name: &&str| {
            std::fs::create_dir(place.path().join(name)).unwrap();
            format!("{name}={}", place.path().join(name).display()).parse().unwrap()
        };
        let specs: Vec<_> = names.iter().map(spec).collect();
        let workspace = Workspace::open(&specs, &place.path().join("state"), Box::new(SystemDisk)).unwrap();
        let policies = PolicyFiles::new(&place.path().join("config"), Caller::Server);
        Self { place, workspace, policies }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.place.path().join("ws").join(path)
    }

    /// Puts a file, and the directories that it is in.
    fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        put(&self.at(path), bytes);
    }

    fn put_policy(&self, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = self.place.path().join("config/aptix/policy.toml");
        put(&file, text);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn policy(&self) -> Arc<Policy> {
        self.policies.read(&self.workspace).unwrap()
    }

    fn read(&self, parts: &[FilePart]) -> Vec<Result<FileContent, Failure>> {
        read::read(&self.workspace, &self.policy(), parts, &|| false).unwrap()
    }

    fn read_one(&self, path: &str) -> Result<FileContent, Failure> {
        self.read(&[whole(path)]).pop().unwrap()
    }

    fn stat(&self, path: &str) -> Result<FileInfo, Failure> {
        read::stat(&self.workspace, &self.policy(), &[target(path)], &|| false).unwrap().pop().unwrap()
    }
}

fn put(file: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
}

/// A target by its path, or by its key behind `key:`.
fn target(text: &str) -> FileSelector {
    match text.strip_prefix("key:") {
        Some(key) => FileSelector::DocPath(DocPath::new(key).unwrap()),
        None => FileSelector::Path(WorkspacePath::new(text).unwrap()),
    }
}

fn whole(text: &str) -> FilePart {
    FilePart { file: target(text), portion: Portion::Whole }
}

/// The reason and the finer word.
fn words(failure: &Failure) -> String {
    let detail = failure.detail.map(|detail| format!(".{}", detail.code())).unwrap_or_default();
    format!("{}{detail}", failure.reason.code())
}
