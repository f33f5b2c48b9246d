//! Reading cloud files: what the agent last reported of each.

use std::collections::HashMap;

use aptix_engine::text::facts::Facts;
use aptix_engine::text::portion::{Taken, Taking};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::limits::INLINE_BYTES;
use aptix_model::live::{FilePart, FileSelector, Portion, TextFacts};
use aptix_model::path::{RootedPath, WorkspacePath};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::UnixMillis;

use super::Dispatcher;
use super::path_style::PathStyle;
use super::read::Page;
use super::refusal::{Refusal, not_found};
use crate::store::damaged::DamagedFile;
use crate::store::{CloudFile, StoreError};

/// Files that are listed at once.
const PAGE: usize = 1000;

/// A cloud file, and what is known about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CloudCopy {
    /// The file.
    pub file: CloudFile,
    /// Its path as callers write it.
    pub path: String,
    /// The event that made it what it is: when, and of which batch; `None` if its record cannot be read.
    pub made: Option<(UnixMillis, BatchId)>,
    /// What its bytes are, where they were read.
    pub text: Option<TextFacts>,
}

/// A part of a cloud file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CloudPart {
    /// The file.
    pub copy: CloudCopy,
    /// The bytes; absent if they are too many for the answer.
    pub content: Option<Vec<u8>>,
    /// Where in the file they begin, in bytes.
    pub offset: u64,
    /// The number of the line in which they begin, from 1.
    pub first_line: u64,
}

/// A cloud file whose record cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DamagedCopy {
    /// The file.
    pub file: DamagedFile,
    /// Its path as callers write it.
    pub path: String,
}

/// A page of cloud files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CloudPage {
    /// The files, and those whose records cannot be read, by path.
    pub files: Vec<Result<CloudCopy, DamagedCopy>>,
    /// Whether others come after these.
    pub has_more: bool,
}

/// The reads of one call.
pub struct CloudReads<'d> {
    dispatcher: &'d Dispatcher,
    workspace: WorkspaceId,
    style: PathStyle,
    made: HashMap<Revision, Option<(UnixMillis, BatchId)>>,
    /// How many more bytes of content the answer holds.
    room: usize,
}

impl Dispatcher {
    /// Begins to read cloud files for one call.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn cloud(&self, workspace: &WorkspaceId) -> Result<CloudReads<'_>, StoreError> {
        let style = self.path_style(workspace).await?;
        let (workspace, made) = (workspace.clone(), HashMap::new());
        Ok(CloudReads { dispatcher: self, workspace, style, made, room: INLINE_BYTES })
    }
}

impl CloudReads<'_> {
    /// A part of a file. Content that does not fit beside that of the files before it is left out.
    ///
    /// # Errors
    /// When there is no such file, or several could be meant.
    pub async fn read(&mut self, part: &FilePart) -> Result<CloudPart, Refusal> {
        let mut copy = self.stat(&part.file).await?;
        let size = copy.file.content.size_bytes;
        let (portion, fits) = match part.portion {
            // A whole file that does not fit is not read at all.
            Portion::Whole => (Portion::Whole, usize::try_from(size).is_ok_and(|size| size <= self.room)),
            Portion::Bytes { offset, length } => {
                let most = INLINE_BYTES as u64;
                (Portion::Bytes { offset, length: if length == 0 { most } else { length.min(most) } }, true)
            }
            lines @ Portion::Lines(..) => (lines, true),
        };
        if !fits {
            return Ok(CloudPart { copy, content: None, offset: 0, first_line: 1 });
        }
        let (text, Taken { content, offset, first_line }) = self.pass(&copy.file, portion).await?;
        copy.text = Some(text);
        self.room -= content.as_ref().map_or(0, Vec::len).min(self.room);
        Ok(CloudPart { copy, content, offset, first_line })
    }

    /// What a file is.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn stat(&mut self, which: &FileSelector) -> Result<CloudCopy, Refusal> {
        let store = &self.dispatcher.store;
        let mut files = match which {
            FileSelector::DocPath(key) => store.files_with_key(self.workspace.clone(), key.clone()).await?,
            FileSelector::Path(path) => {
                let mut found = Vec::new();
                for path in self.style.rooted(path) {
                    if found.is_empty() {
                        found.extend(store.file(self.workspace.clone(), path).await?);
                    }
                }
                found
            }
        };
        let refused = |failure: Failure| {
            let (path, doc_path) = self.style.names(which);
            Refusal::denied(Failure { path: Some(path), doc_path: Some(doc_path), ..failure })
        };
        if files.len() > 1 {
            return Err(refused(ambiguous(which, &files)));
        }
        let missing = || refused(not_found(&self.workspace, &format!("cloud file {}", which.as_str())));
        let file = files.pop().ok_or_else(missing)?;
        Ok(self.copy(file).await?)
    }

    /// A page of files by path: below a directory, or all.
    ///
    /// # Errors
    /// When there is no such workspace, or the page before is of another history.
    pub async fn list(
        &mut self,
        directory: Option<&WorkspacePath>,
        page: Page<RootedPath>,
        limit: usize,
    ) -> Result<CloudPage, Refusal> {
        self.dispatcher.check_page(&self.workspace, page.cursor).await?;
        self.dispatcher.existing(&self.workspace).await?;
        let within = directory.map(|directory| format!("{directory}/")).unwrap_or_default();
        let (mut found, mut after) = (CloudPage::default(), page.after);
        loop {
            let files = self.dispatcher.store.files(self.workspace.clone(), after.clone(), PAGE).await?;
            let is_last = files.len() < PAGE;
            for file in files {
                let path = file.as_ref().map_or_else(|damaged| &damaged.path, |file| &file.path).clone();
                if self.style.name(&path).starts_with(&within) {
                    if found.files.len() == limit {
                        found.has_more = true;
                        return Ok(found);
                    }
                    found.files.push(match file {
                        Ok(file) => Ok(self.copy(file).await?),
                        Err(file) => Err(DamagedCopy { path: self.style.name(&file.path), file }),
                    });
                }
                after = Some(path);
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    async fn copy(&mut self, file: CloudFile) -> Result<CloudCopy, StoreError> {
        let path = self.style.name(&file.path);
        let made = match self.made.get(&file.revision) {
            Some(made) => *made,
            None => {
                let made = self.dispatcher.made(&self.workspace, file.revision).await?;
                self.made.insert(file.revision, made);
                made
            }
        };
        Ok(CloudCopy { file, path, made, text: None })
    }

    /// Lets all bytes of a file pass: what they are, and the part that is wanted of them.
    async fn pass(&self, file: &CloudFile, portion: Portion) -> Result<(TextFacts, Taken), StoreError> {
        let (mut facts, mut taking) = (Facts::default(), Taking::new(portion, self.room));
        for index in 0.. {
            if facts.bytes() >= file.content.size_bytes {
                break;
            }
            let chunk = self.dispatcher.store.blob_chunk(self.workspace.clone(), file.content.sha256, index).await?;
            let Some(chunk) = chunk else { break };
            facts.add(&chunk);
            taking.add(&chunk);
        }
        let facts = facts.end();
        if facts.sha256 == file.content.sha256 {
            Ok((facts, taking.end()))
        } else {
            let what = format!("blob {}", file.content.sha256);
            Err(StoreError::Corrupt { what, why: "its bytes have another digest".to_owned() })
        }
    }
}

impl Dispatcher {
    /// When an event was, and to which batch it happened; `None` if it cannot be read.
    async fn made(
        &self,
        workspace: &WorkspaceId,
        revision: Revision,
    ) -> Result<Option<(UnixMillis, BatchId)>, StoreError> {
        let Some(before) = revision.0.checked_sub(1) else { return Ok(None) };
        let events = match self.store.events(workspace.clone(), Revision(before), 1).await {
            // Of a file that is older than the events that are kept, it is not known any more.
            Err(StoreError::Compacted { .. }) => return Ok(None),
            events => events?,
        };
        let Some(Ok(event)) = events.into_iter().next() else { return Ok(None) };
        let batch = event.batch;
        let facts = self.facts(workspace, event).await?;
        Ok(facts.map(|facts| (facts.at, batch)))
    }
}

fn ambiguous(which: &FileSelector, files: &[CloudFile]) -> Failure {
    let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    let message = format!("{} files have the key {}: {}", paths.len(), which.as_str(), paths.join(", "));
    Failure::new(Reason::AmbiguousPath, message).detail(Detail::CaseCollision).hint("name the file by its path")
}
