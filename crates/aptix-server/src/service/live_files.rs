//! Files as callers of `FileService` get them: from the agent while one serves that reads, else from the cloud copy.

use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::live::{FileInfo, FilePart, FileSelector, ListFiles, SearchFiles, SkipCause, Skipped};
use aptix_model::presence::QuestionKind;
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::fit::ROOM;
use aptix_model::wire::question::{Answer, Ask};
use aptix_model::wire::{v1, v1::answer, v1::question};
use prost::Message;
use tokio::time::Instant;

use super::agent_answer::{self, wrong};
use super::page;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::files::{CloudCopy, CloudPart, DamagedCopy};
use crate::dispatcher::refusal::{Refusal, is_of_one_file};
use crate::ticket::Asker;

/// Matches of a search that does not say how many, and at most.
const USUAL_MATCHES: u32 = 100;
const MOST_MATCHES: u32 = 1000;

/// Most lines around a match.
const MOST_CONTEXT: u32 = 20;

/// What the tokens of lists from the disk begin with.
const LIVE_TOKEN: &str = "disk:";

/// Reads the files of one workspace for one call.
pub(super) struct LiveFiles<'s> {
    pub(super) dispatcher: &'s Dispatcher,
    pub(super) asker: Asker,
    pub(super) workspace: WorkspaceId,
    /// Where the answer has to come from, if the caller says.
    pub(super) source: Option<v1::Source>,
    /// How long the agent's answer is waited for.
    pub(super) patience: Duration,
}

/// Reads where an answer has to come from.
pub(super) fn source(value: i32) -> Result<Option<v1::Source>, Failure> {
    match v1::Source::try_from(value) {
        Ok(v1::Source::Unspecified) => Ok(None),
        Ok(source) => Ok(Some(source)),
        Err(_) => {
            let message = format!("source has the value {value}, which this version does not know");
            Err(Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownEnum).field("source"))
        }
    }
}

impl LiveFiles<'_> {
    /// Files, or parts of them, each by itself; the request is that of the parts.
    pub(super) async fn read(
        &self,
        parts: Vec<FilePart>,
        request: v1::ReadFilesRequest,
    ) -> Result<Vec<v1::FileResult>, Refusal> {
        if self.is_live(QuestionKind::Read).await? {
            return match self.ask(question::Ask::ReadFiles(request)).await? {
                answer::Answer::ReadFiles(answer) => {
                    self.checked(|roots| agent_answer::read(&parts, roots, answer)).await
                }
                _ => Err(self.other_kind()),
            };
        }
        let mut cloud = self.dispatcher.cloud(&self.workspace).await?;
        let mut results = Vec::with_capacity(parts.len());
        for part in &parts {
            results.push(cloud_result(cloud.read(part).await.map(content_message))?);
        }
        Ok(results)
    }

    /// What files are.
    pub(super) async fn stat(
        &self,
        files: Vec<FileSelector>,
        request: v1::StatFilesRequest,
    ) -> Result<Vec<v1::FileResult>, Refusal> {
        if self.is_live(QuestionKind::Stat).await? {
            return match self.ask(question::Ask::StatFiles(request)).await? {
                answer::Answer::StatFiles(answer) => {
                    self.checked(|roots| agent_answer::stat(&files, roots, answer)).await
                }
                _ => Err(self.other_kind()),
            };
        }
        let mut cloud = self.dispatcher.cloud(&self.workspace).await?;
        let mut results = Vec::with_capacity(files.len());
        for which in &files {
            let described = cloud.stat(which).await;
            let described =
                described.map(|copy| v1::FileContent { file: Some(state_message(copy)), ..Default::default() });
            results.push(cloud_result(described)?);
        }
        Ok(results)
    }

    /// A page of files. Its token says where the next one comes from.
    pub(super) async fn list(
        &self,
        asked: ListFiles,
        request: v1::ListFilesRequest,
    ) -> Result<v1::ListFilesResponse, Refusal> {
        let size = page::size(request.page_size)?;
        let is_live = match (self.source, request.page_token.as_str()) {
            (None, token) if !token.is_empty() => token.starts_with(LIVE_TOKEN),
            _ => self.is_live(QuestionKind::List).await?,
        };
        if is_live {
            let page_size = i32::try_from(size).unwrap_or(i32::MAX);
            let asked = ListFiles { page_size: size, ..asked };
            return match self.ask(question::Ask::ListFiles(v1::ListFilesRequest { page_size, ..request })).await? {
                answer::Answer::ListFiles(answer) => {
                    self.checked(|roots| agent_answer::list(&asked, roots, answer)).await
                }
                _ => Err(self.other_kind()),
            };
        }
        let page = page::file(&request.page_token)?;
        let cursor = self.dispatcher.cursor_at(&self.workspace, None).await?;
        let mut cloud = self.dispatcher.cloud(&self.workspace).await?;
        let found = cloud.list(asked.directory.as_ref(), page, size).await?;
        let (mut answer, mut room, mut last) = (v1::ListFilesResponse::default(), ROOM, None);
        let (mut has_more, mut skipped) = (found.has_more, Skipped::default());
        for file in found.files {
            let path = file.as_ref().map_or_else(|damaged| &damaged.file.path, |copy| &copy.file.path).clone();
            let damaged = |DamagedCopy { file, path }| v1::DamagedFile { path, message: file.why };
            let entry = file.map(state_message).map_err(damaged);
            let bytes = entry.as_ref().map_or_else(Message::encoded_len, Message::encoded_len) + 8;
            let Some(left) = room.checked_sub(bytes) else {
                has_more = true;
                break;
            };
            (room, last) = (left, Some(path));
            match entry {
                Ok(file) => answer.files.push(file),
                Err(damaged) => {
                    skipped.note(SkipCause::Unreadable, Some(damaged.path.clone()));
                    answer.damaged.push(damaged);
                }
            }
        }
        answer.skipped = skipped.into();
        let last = last.filter(|_| has_more);
        answer.next_page_token = last.map(|path| page::after_file(&path, cursor)).unwrap_or_default();
        Ok(answer)
    }

    /// Lines that match; only an agent finds them.
    pub(super) async fn search(
        &self,
        asked: SearchFiles,
        mut request: v1::SearchFilesRequest,
    ) -> Result<v1::SearchFilesResponse, Refusal> {
        request.max_matches =
            if request.max_matches == 0 { USUAL_MATCHES } else { request.max_matches.min(MOST_MATCHES) };
        request.context_lines = request.context_lines.min(MOST_CONTEXT);
        let (max_matches, context) = (request.max_matches as usize, request.context_lines as usize);
        let asked = SearchFiles { max_matches, context, ..asked };
        match self.ask(question::Ask::SearchFiles(request)).await? {
            answer::Answer::SearchFiles(answer) => {
                self.checked(|roots| agent_answer::search(&asked, roots, answer)).await
            }
            _ => Err(self.other_kind()),
        }
    }

    /// Whether the agent is asked: where the caller demands it, and where it can answer unless the caller demands the copy.
    async fn is_live(&self, kind: QuestionKind) -> Result<bool, Refusal> {
        if let Some(source) = self.source {
            return Ok(source == v1::Source::Active);
        }
        let serving = self.dispatcher.serving(&self.workspace).await?;
        Ok(serving.is_some_and(|serving| serving.presence.answers(kind)))
    }

    async fn ask(&self, ask: question::Ask) -> Result<answer::Answer, Refusal> {
        let deadline = Instant::now() + self.patience;
        let Answer(answer) = self.dispatcher.ask(&self.workspace, &self.asker, Ask(ask), deadline).await?;
        Ok(answer)
    }

    /// The result of `check` on an answer, by the roots that the agent named. One that came last, and whose agent is gone, is held
    /// to none.
    async fn checked<T>(&self, check: impl FnOnce(&[String]) -> Result<T, String>) -> Result<T, Refusal> {
        let serving = self.dispatcher.serving(&self.workspace).await?;
        let roots = serving.as_ref().map_or(&[][..], |serving| &serving.presence.roots);
        check(roots).map_err(|misfit| wrong(&self.workspace, &misfit))
    }

    fn other_kind(&self) -> Refusal {
        wrong(&self.workspace, "it is of another kind")
    }
}

/// A file's own result: that it is missing or ambiguous fails no other.
fn cloud_result(found: Result<v1::FileContent, Refusal>) -> Result<v1::FileResult, Refusal> {
    match found {
        Ok(file) => Ok(Ok(file).into()),
        Err(Refusal::Denied(failure)) if is_of_one_file(&failure) => Ok(Err(*failure).into()),
        Err(refusal) => Err(refusal),
    }
}

fn content_message(part: CloudPart) -> v1::FileContent {
    let CloudPart { copy, content, offset, first_line } = part;
    v1::FileContent { file: Some(state_message(copy)), content: content.map(Into::into), offset, first_line }
}

fn state_message(copy: CloudCopy) -> v1::FileState {
    let CloudCopy { file, path, made, text } = copy;
    let (doc_path, size_bytes) = (file.doc_path.to_string(), file.content.size_bytes);
    let state =
        v1::FileState::from(FileInfo { path, doc_path, size_bytes, is_executable: false, is_unsaved: false, text });
    v1::FileState {
        sha256: file.content.sha256.into(),
        is_executable: None,
        source: v1::Source::Cloud.into(),
        revision: Some(file.revision.0),
        time: made.map(|(at, _)| at.into()),
        batch_id: made.map(|(_, batch)| batch.to_string()).unwrap_or_default(),
        ..state
    }
}
