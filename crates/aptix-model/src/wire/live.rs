//! Questions about files on disk and their answers, between the wire and the model.
//!
//! Which workspace a question is about, and where its answer has to come from, is for the server to read.

use super::field::{missing, note};
use super::v1;
use crate::failure::Failure;
use crate::lines::{LineError, LineNumber};
use crate::live::{
    Encoding, FileContent, FileInfo, FilePage, FilePart, FileSelector, GLOBS, ListFiles, Portion, READ_FILES,
    STAT_FILES, SearchFiles, SearchMatch, SearchMatches, Skipped, Terminators,
};
use crate::path::{DocPath, PathError, WorkspacePath};
use crate::question::{Located, Question, Reply, ToolCall, ToolReply};
use crate::reason::{Detail, Reason};

impl TryFrom<v1::question::Ask> for Question {
    type Error = Vec<Failure>;

    fn try_from(ask: v1::question::Ask) -> Result<Self, Vec<Failure>> {
        match ask {
            v1::question::Ask::ReadFiles(request) => request.try_into().map(Self::Read),
            v1::question::Ask::StatFiles(request) => request.try_into().map(Self::Stat),
            v1::question::Ask::ListFiles(request) => request.try_into().map(Self::List),
            v1::question::Ask::SearchFiles(request) => request.try_into().map(Self::Search),
            v1::question::Ask::Preview(edit) => edit.try_into().map(Self::Preview),
            v1::question::Ask::Prepare(v1::PrepareQuestion { edit, origin }) => {
                let edit = edit.ok_or_else(|| missing("prepare.edit", "the batch's content"))?;
                Ok(Self::Prepare(edit.try_into()?, origin.unwrap_or_default().into()))
            }
            v1::question::Ask::CallTool(v1::ToolQuestion { tool, arguments, origin }) => {
                let origin = origin.unwrap_or_default().into();
                Ok(Self::Tool(ToolCall { tool, arguments, origin }))
            }
            v1::question::Ask::ResolvePaths(v1::PathsQuestion { paths }) => Ok(Self::Paths(paths)),
        }
    }
}

impl From<Reply> for v1::answer::Answer {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Read(files) => Self::ReadFiles(v1::ReadFilesResponse {
                results: files.into_iter().map(|file| file.map(v1::FileContent::from).into()).collect(),
            }),
            Reply::Stat(files) => {
                let results = files.into_iter().map(|file| file.map(described).into());
                Self::StatFiles(v1::StatFilesResponse { results: results.collect() })
            }
            Reply::List(page) => Self::ListFiles(page.into()),
            Reply::Search(found) => Self::SearchFiles(found.into()),
            Reply::Preview(report) => Self::Preview(report.into()),
            Reply::Prepare(planned) => Self::Prepare((*planned).into()),
            Reply::Tool(ToolReply { text, structured, is_error }) => {
                Self::CallTool(v1::ToolAnswer { text, structured, is_error })
            }
            Reply::Paths(paths) => {
                let resolved = |found: Option<Located>| found.map_or_else(v1::ResolvedPath::default, Into::into);
                Self::ResolvePaths(v1::PathsAnswer { paths: paths.into_iter().map(resolved).collect() })
            }
            Reply::Failed(failure) => Self::Failure((*failure).into()),
        }
    }
}

impl From<Located> for v1::ResolvedPath {
    fn from(Located { path, doc_path }: Located) -> Self {
        Self { path, doc_path }
    }
}

/// A file without content.
fn described(info: FileInfo) -> v1::FileContent {
    v1::FileContent { file: Some(info.into()), ..v1::FileContent::default() }
}

/// Reads which file is meant from the field of this name.
///
/// # Errors
/// INVALID_REQUEST (MISSING) or INVALID_PATH, naming the field.
pub fn file_selector(field: &str, file: Option<v1::FileSelector>) -> Result<FileSelector, Failure> {
    match file.and_then(|file| file.file) {
        Some(v1::file_selector::File::DocPath(key)) => {
            let key = DocPath::new(&key).map_err(|error| bad_path(&format!("{field}.docPath"), error));
            key.map(FileSelector::DocPath)
        }
        Some(v1::file_selector::File::Path(path)) => {
            let path = WorkspacePath::new(&path).map_err(|error| bad_path(&format!("{field}.path"), error));
            path.map(FileSelector::Path)
        }
        None => Err(missing(field, "docPath or path")),
    }
}

/// Reads which part of a file is meant from the field of this name; all of it if absent.
///
/// # Errors
/// INVALID_REQUEST (MISSING) or LINE_RANGE, naming the field.
pub fn portion(field: &str, range: Option<v1::Range>) -> Result<Portion, Failure> {
    let Some(range) = range else { return Ok(Portion::Whole) };
    match range.range {
        Some(v1::range::Range::Bytes(v1::ByteSpan { offset, length })) => Ok(Portion::Bytes { offset, length }),
        Some(v1::range::Range::Lines(span)) => {
            let bad_line = |error: LineError| {
                Failure::new(Reason::LineRange, format!("{error}"))
                    .detail(error.detail())
                    .field(format!("{field}.lines"))
            };
            let first = LineNumber::new(span.start_line).map_err(bad_line)?;
            let last = span.end_line.map(LineNumber::new).transpose().map_err(bad_line)?;
            match last {
                Some(last) if last < first => {
                    Err(bad_line(LineError::Inverted { start: first.get() as i64, end: last.get() as i64 }))
                }
                last => Ok(Portion::Lines(first, last)),
            }
        }
        None => Err(missing(field, "lines or bytes")),
    }
}

impl TryFrom<v1::ReadFilesRequest> for Vec<FilePart> {
    type Error = Vec<Failure>;

    fn try_from(request: v1::ReadFilesRequest) -> Result<Self, Vec<Failure>> {
        entries(request.files, READ_FILES, |field, part| {
            let file = file_selector(&format!("{field}.file"), part.file)?;
            Ok(FilePart { file, portion: portion(&format!("{field}.range"), part.range)? })
        })
    }
}

impl TryFrom<v1::StatFilesRequest> for Vec<FileSelector> {
    type Error = Vec<Failure>;

    fn try_from(request: v1::StatFilesRequest) -> Result<Self, Vec<Failure>> {
        entries(request.files, STAT_FILES, |field, file| file_selector(field, Some(file)))
    }
}

/// Reads each entry of `files`; what is wrong with any of them is returned together.
fn entries<W, T>(
    files: Vec<W>,
    most: usize,
    read: impl Fn(&str, W) -> Result<T, Failure>,
) -> Result<Vec<T>, Vec<Failure>> {
    if files.is_empty() {
        return Err(vec![missing("files", "at least one file")]);
    }
    if files.len() > most {
        return Err(vec![too_many("files", files.len(), most)]);
    }
    let (mut entries, mut failures) = (Vec::with_capacity(files.len()), Vec::new());
    for (index, file) in files.into_iter().enumerate() {
        match read(&format!("files[{index}]"), file) {
            Ok(entry) => entries.push(entry),
            Err(failure) => note(&mut failures, failure),
        }
    }
    if failures.is_empty() { Ok(entries) } else { Err(failures) }
}

impl TryFrom<v1::ListFilesRequest> for ListFiles {
    type Error = Vec<Failure>;

    fn try_from(request: v1::ListFilesRequest) -> Result<Self, Vec<Failure>> {
        let directory = directory(&request.directory).map_err(|failure| vec![failure])?;
        let page_size = usize::try_from(request.page_size).map_err(|_| {
            let message = format!("pageSize is {}, and a page has no negative size", request.page_size);
            vec![Failure::new(Reason::InvalidRequest, message).detail(Detail::Number).field("pageSize")]
        })?;
        Ok(Self { directory, page_size, page_token: request.page_token })
    }
}

impl TryFrom<v1::SearchFilesRequest> for SearchFiles {
    type Error = Vec<Failure>;

    fn try_from(request: v1::SearchFilesRequest) -> Result<Self, Vec<Failure>> {
        let mut failures = Vec::new();
        if request.pattern.is_empty() {
            failures.push(missing("pattern", "a regular expression"));
        }
        if request.globs.len() > GLOBS {
            failures.push(too_many("globs", request.globs.len(), GLOBS));
        }
        let directory = directory(&request.directory).map_err(|failure| failures.push(failure)).ok().flatten();
        if !failures.is_empty() {
            return Err(failures);
        }
        Ok(Self {
            pattern: request.pattern,
            ignore_case: request.ignore_case,
            globs: request.globs,
            directory,
            context: request.context_lines as usize,
            max_matches: request.max_matches as usize,
        })
    }
}

fn directory(text: &str) -> Result<Option<WorkspacePath>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    WorkspacePath::new(text).map(Some).map_err(|error| bad_path("directory", error))
}

fn bad_path(field: &str, error: PathError) -> Failure {
    Failure::new(Reason::InvalidPath, format!("{error}")).detail(error.detail()).field(field)
}

fn too_many(field: &str, found: usize, most: usize) -> Failure {
    let message = format!("{field} has {found} entries, at most {most} are answered in one call");
    Failure::new(Reason::TooLarge, message).field(field).hint("split the call")
}

impl From<FileInfo> for v1::FileState {
    /// The state of a file on disk.
    fn from(info: FileInfo) -> Self {
        let text = info.text.as_ref();
        let is_text = text.is_some_and(|text| !matches!(text.encoding, Encoding::Utf16 | Encoding::Binary));
        let terminators =
            text.filter(|_| is_text).map_or(v1::Terminators::Unspecified, |text| match text.terminators {
                Terminators::None => v1::Terminators::None,
                Terminators::Lf => v1::Terminators::Lf,
                Terminators::Crlf => v1::Terminators::Crlf,
                Terminators::Mixed => v1::Terminators::Mixed,
            });
        let encoding = text.map_or(v1::Encoding::Unspecified, |text| match text.encoding {
            Encoding::Utf8 => v1::Encoding::Utf8,
            Encoding::Utf8Marked => v1::Encoding::Utf8Bom,
            Encoding::Other => v1::Encoding::Other,
            Encoding::Utf16 | Encoding::Binary => v1::Encoding::Binary,
        });
        Self {
            sha256: text.map(|text| text.sha256.into()).unwrap_or_default(),
            line_count: text.filter(|_| is_text).map(|text| text.line_count),
            path: info.path,
            doc_path: info.doc_path,
            size_bytes: info.size_bytes,
            terminators: terminators.into(),
            encoding: encoding.into(),
            is_executable: Some(info.is_executable),
            is_unsaved: info.is_unsaved,
            source: v1::Source::Active.into(),
            ..Self::default()
        }
    }
}

impl From<FileContent> for v1::FileContent {
    fn from(file: FileContent) -> Self {
        Self {
            file: Some(file.info.into()),
            content: file.content.map(Into::into),
            offset: file.offset,
            first_line: file.first_line,
        }
    }
}

impl From<Result<v1::FileContent, Failure>> for v1::FileResult {
    fn from(result: Result<v1::FileContent, Failure>) -> Self {
        let result = match result {
            Ok(file) => v1::file_result::Result::File(file),
            Err(failure) => v1::file_result::Result::Failure(failure.into()),
        };
        Self { result: Some(result) }
    }
}

impl From<FilePage> for v1::ListFilesResponse {
    fn from(page: FilePage) -> Self {
        Self {
            files: page.files.into_iter().map(Into::into).collect(),
            next_page_token: page.next_page_token,
            damaged: Vec::new(),
            skipped: page.skipped.into(),
        }
    }
}

impl From<Skipped> for Option<v1::Skipped> {
    fn from(skipped: Skipped) -> Self {
        let is_empty = skipped.is_empty();
        let Skipped { too_deep, too_large, unreadable, bad_name, paths } = skipped;
        (!is_empty).then_some(v1::Skipped { too_deep, too_large, unreadable, bad_name, paths })
    }
}

impl From<SearchMatches> for v1::SearchFilesResponse {
    fn from(found: SearchMatches) -> Self {
        let SearchMatches { matches, has_more, skipped } = found;
        Self { matches: matches.into_iter().map(Into::into).collect(), has_more, skipped: skipped.into() }
    }
}

impl From<SearchMatch> for v1::SearchMatch {
    fn from(found: SearchMatch) -> Self {
        Self {
            path: found.path,
            doc_path: found.doc_path,
            line: u32::try_from(found.line).unwrap_or(u32::MAX),
            excerpt: Some(found.excerpt.into()),
            is_unsaved: found.is_unsaved,
        }
    }
}
