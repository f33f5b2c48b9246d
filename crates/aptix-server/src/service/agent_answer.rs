//! Holds an agent's answer against the question that it was asked. An agent is not trusted: an answer that does not fit is
//! passed on to nobody.

use std::collections::BTreeMap;

use aptix_engine::text::facts::Facts;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::limits::INLINE_BYTES;
use aptix_model::live::{FileInfo, FilePart, FileSelector, ListFiles, Portion, SKIPPED_PATHS, SearchFiles};
use aptix_model::path::{DocPath, WorkspacePath};
use aptix_model::question::Located;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::fit::TEXT_BYTES;
use aptix_model::tools::result::tool_result::is_object;
use aptix_model::wire::v1;

use crate::dispatcher::refusal::Refusal;

/// Bytes of the longest token of a page: it has a path in it.
const TOKEN_BYTES: usize = 8 << 10;

/// Texts that a tool answers at most.
const TOOL_TEXTS: usize = 16;

/// Why an answer does not fit its question.
type Misfit = String;

/// Refuses a call whose answer does not fit.
pub(super) fn wrong(workspace: &WorkspaceId, misfit: &str) -> Refusal {
    tracing::warn!(WorkspaceId = %workspace, misfit, "the agent's answer does not fit the question, and is not passed on");
    let failure = Failure::new(Reason::Internal, format!("the agent's answer does not fit the question: {misfit}"));
    Refusal::denied(failure.detail(Detail::WrongAnswer).hint("update aptix on the workstation, then call again"))
}

/// The files that were read.
pub(super) fn read(
    asked: &[FilePart],
    roots: &[String],
    answer: v1::ReadFilesResponse,
) -> Result<Vec<v1::FileResult>, Misfit> {
    check_count(asked.len(), answer.results.len())?;
    let mut room = INLINE_BYTES;
    for (part, result) in asked.iter().zip(&answer.results) {
        let Some(file) = file_of(result)? else { continue };
        check_described(&part.file, roots, file)?;
        check_content(part.portion, file, &mut room)?;
    }
    Ok(answer.results)
}

/// The files that were described.
pub(super) fn stat(
    asked: &[FileSelector],
    roots: &[String],
    answer: v1::StatFilesResponse,
) -> Result<Vec<v1::FileResult>, Misfit> {
    check_count(asked.len(), answer.results.len())?;
    for (which, result) in asked.iter().zip(&answer.results) {
        let Some(file) = file_of(result)? else { continue };
        check_described(which, roots, file)?;
        if file.content.is_some() {
            return Err(format!("content of {} came, which was not asked for", which.as_str()));
        }
    }
    Ok(answer.results)
}

/// The page of files.
pub(super) fn list(
    asked: &ListFiles,
    roots: &[String],
    answer: v1::ListFilesResponse,
) -> Result<v1::ListFilesResponse, Misfit> {
    if answer.files.len() > asked.page_size {
        return Err(format!("{} files came, at most {} were asked for", answer.files.len(), asked.page_size));
    }
    if answer.next_page_token.len() > TOKEN_BYTES || !answer.damaged.is_empty() {
        return Err("the page has a token that is too long, or damaged files".to_owned());
    }
    for state in &answer.files {
        check_names(roots, &state.path, &state.doc_path)?;
        check_live(state)?;
        check_below(asked.directory.as_ref(), &state.path)?;
        if !state.sha256.is_empty() || state.line_count.is_some() {
            return Err(format!("the content of {} is described, which is not read for a list", state.path));
        }
    }
    check_skipped(asked.directory.as_ref(), answer.skipped.as_ref())?;
    Ok(answer)
}

/// The lines that were found.
pub(super) fn search(
    asked: &SearchFiles,
    roots: &[String],
    answer: v1::SearchFilesResponse,
) -> Result<v1::SearchFilesResponse, Misfit> {
    if answer.matches.len() > asked.max_matches {
        return Err(format!("{} matches came, at most {} were asked for", answer.matches.len(), asked.max_matches));
    }
    for found in &answer.matches {
        check_names(roots, &found.path, &found.doc_path)?;
        check_below(asked.directory.as_ref(), &found.path)?;
        let excerpt = found.excerpt.as_ref().ok_or_else(|| format!("a match in {} has no lines", found.path))?;
        let lines = excerpt.text.split('\n').count();
        let numbered = excerpt.end_line.checked_sub(excerpt.start_line).map(|more| more as usize + 1);
        let is_around = (excerpt.start_line..=excerpt.end_line).contains(&found.line);
        if found.line == 0 || !is_around || numbered != Some(lines) || lines > 2 * asked.context + 1 {
            return Err(format!("the lines of a match in {} are not those around line {}", found.path, found.line));
        }
    }
    check_skipped(asked.directory.as_ref(), answer.skipped.as_ref())?;
    Ok(answer)
}

/// The answer of a tool.
pub(super) fn tool(answer: v1::ToolAnswer) -> Result<v1::CallToolResponse, Misfit> {
    let v1::ToolAnswer { text, structured, is_error } = answer;
    if text.is_empty() || text.len() > TOOL_TEXTS {
        return Err(format!("{} texts came, a tool answers 1 to {TOOL_TEXTS}", text.len()));
    }
    if !is_object(&structured) {
        return Err("the structured answer of a tool is no JSON object".to_owned());
    }
    Ok(v1::CallToolResponse { text, structured, is_error, ..v1::CallToolResponse::default() })
}

/// The files that absolute paths lead to; a path that leads into no root is left out.
pub(super) fn paths(
    asked: Vec<String>,
    roots: &[String],
    answer: v1::PathsAnswer,
) -> Result<BTreeMap<String, Located>, Misfit> {
    check_count(asked.len(), answer.paths.len())?;
    let mut located = BTreeMap::new();
    for (text, v1::ResolvedPath { path, doc_path }) in asked.into_iter().zip(answer.paths) {
        if !path.is_empty() || !doc_path.is_empty() {
            check_names(roots, &path, &doc_path)?;
            located.insert(text, Located { path, doc_path });
        }
    }
    Ok(located)
}

fn check_count(asked: usize, answered: usize) -> Result<(), Misfit> {
    let expected = || format!("{answered} results came, {asked} were asked for");
    if asked == answered { Ok(()) } else { Err(expected()) }
}

/// The file of a result; `None` for a failure.
fn file_of(result: &v1::FileResult) -> Result<Option<&v1::FileContent>, Misfit> {
    match &result.result {
        Some(v1::file_result::Result::File(file)) => Ok(Some(file)),
        Some(v1::file_result::Result::Failure(failure)) => {
            let words = [&failure.reason, &failure.detail, &failure.message, &failure.hint, &failure.field];
            let mut texts = words.into_iter().chain([&failure.path, &failure.doc_path]);
            if texts.any(|text| text.len() > TEXT_BYTES)
                || !failure.nearest.is_empty()
                || failure.next_action.is_some()
                || failure.current_time.is_some()
                || !failure.current_batch_id.is_empty()
            {
                return Err("a failure holds more than the failure of a read may".to_owned());
            }
            Ok(None)
        }
        None => Err("a result is neither a file nor a failure".to_owned()),
    }
}

/// That a file is the one that was asked for, and is described as one on disk is.
fn check_described(which: &FileSelector, roots: &[String], file: &v1::FileContent) -> Result<(), Misfit> {
    let state = file.file.as_ref().ok_or_else(|| format!("{} is not described", which.as_str()))?;
    let (path, doc_path) = check_names(roots, &state.path, &state.doc_path)?;
    let is_asked = match which {
        FileSelector::DocPath(key) => *key == doc_path,
        FileSelector::Path(asked) => asked.folded() == path.folded(),
    };
    if !is_asked {
        return Err(format!("{} was asked for, {} came", which.as_str(), state.path));
    }
    check_live(state)?;
    state.sha256.parse::<Sha256Digest>().map_err(|error| format!("the digest of {}: {error}", state.path))?;
    let is_binary = state.encoding() == v1::Encoding::Binary;
    if state.encoding() == v1::Encoding::Unspecified || is_binary != state.line_count.is_none() {
        return Err(format!("the text of {} is not described", state.path));
    }
    Ok(())
}

/// That a file comes from the disk, without what only a cloud copy has.
fn check_live(state: &v1::FileState) -> Result<(), Misfit> {
    let is_known =
        v1::Terminators::try_from(state.terminators).is_ok() && v1::Encoding::try_from(state.encoding).is_ok();
    let is_copy = state.revision.is_some() || state.time.is_some() || !state.batch_id.is_empty();
    if is_known && !is_copy && state.source() == v1::Source::Active {
        return Ok(());
    }
    Err(format!("{} is not described as a file on disk is", state.path))
}

/// That a path and a key are one file's, in a root that the agent named when it connected, if it named any.
fn check_names(roots: &[String], path: &str, doc_path: &str) -> Result<(WorkspacePath, DocPath), Misfit> {
    let key = DocPath::new(doc_path).map_err(|error| format!("a docPath: {error}"))?;
    if !roots.is_empty() && roots.iter().all(|root| root != key.root()) {
        return Err(format!("{key} is in no root that the agent named when it connected"));
    }
    let path = WorkspacePath::new(path).map_err(|error| format!("a path: {error}"))?;
    let folded = path.folded();
    if folded == key.rest() || folded == key.as_str() {
        return Ok((path, key));
    }
    Err(format!("{key} is not the key of {path}"))
}

fn check_below(directory: Option<&WorkspacePath>, path: &str) -> Result<(), Misfit> {
    let Some(directory) = directory else { return Ok(()) };
    let rest = path.strip_prefix(directory.as_str());
    if rest.is_some_and(|rest| rest.starts_with('/')) {
        Ok(())
    } else {
        Err(format!("{path} is not below {directory}"))
    }
}

/// That the paths of what was left out are few, and are paths below the directory.
fn check_skipped(directory: Option<&WorkspacePath>, skipped: Option<&v1::Skipped>) -> Result<(), Misfit> {
    let paths = skipped.map_or(&[][..], |skipped| &skipped.paths);
    if paths.len() > SKIPPED_PATHS {
        return Err(format!("{} paths of what was left out came, at most {SKIPPED_PATHS} are named", paths.len()));
    }
    for path in paths {
        WorkspacePath::new(path).map_err(|error| format!("a path that was left out: {error}"))?;
        if directory.is_none_or(|directory| directory.as_str() != path) {
            check_below(directory, path)?;
        }
    }
    Ok(())
}

/// That content is the part that was asked for, as far as that shows; of a whole file, that its digest and facts are right.
fn check_content(portion: Portion, file: &v1::FileContent, room: &mut usize) -> Result<(), Misfit> {
    let Some(state) = &file.file else { return Ok(()) };
    let misfit = |what: &str| Err(format!("the content of {} {what}", state.path));
    let Some(content) = &file.content else {
        let fits = portion == Portion::Whole && usize::try_from(state.size_bytes).is_ok_and(|size| size <= *room);
        return if fits { misfit("was left out, though it fits") } else { Ok(()) };
    };
    let (bytes, size) = (content.len() as u64, state.size_bytes);
    let Some(left) = room.checked_sub(content.len()) else { return misfit("is more than an answer holds") };
    *room = left;
    if file.offset.checked_add(bytes).is_none_or(|end| end > size) || file.first_line == 0 {
        return misfit("lies outside of the file");
    }
    let begins_at = |offset: u64, first_line: Option<u64>| {
        bytes == 0 || (file.offset == offset && first_line.is_none_or(|line| line == file.first_line))
    };
    let is_part = match portion {
        Portion::Whole => bytes == size && begins_at(0, Some(1)),
        Portion::Bytes { offset, length } => (length == 0 || bytes <= length) && begins_at(offset, None),
        Portion::Lines(first, last) => {
            let lines = Facts::of(content).line_count;
            let most = last.map_or(u64::MAX, |last| (last.get() - first.get() + 1) as u64);
            lines <= most && begins_at(file.offset, Some(first.get() as u64))
        }
    };
    if !is_part {
        return misfit("is not the part that was asked for");
    }
    if bytes < size {
        return Ok(());
    }
    let text = Some(Facts::of(content));
    let info = FileInfo {
        path: state.path.clone(),
        doc_path: state.doc_path.clone(),
        size_bytes: size,
        is_executable: state.is_executable.unwrap_or_default(),
        is_unsaved: state.is_unsaved,
        text,
    };
    let described = v1::FileState { sha256: state.sha256.to_lowercase(), ..state.clone() };
    let found = v1::FileState { is_executable: state.is_executable, ..info.into() };
    if found == described { Ok(()) } else { misfit("is not what its digest and lines say") }
}
