//! `ripgrep_files` and `ripgrep_content`: which files there are, which have a line that fits, and which lines.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::ops::ControlFlow;

use aptix_model::documents::look::{Case, Search};
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Serialize;

use super::until::Until;
use crate::policy::Policy;
use crate::workspace::Workspace;
use crate::workspace::walk::{File, Met, walk};

/// Bytes of a file that is searched.
const FILE_BYTES: u64 = 16 << 20;
/// Bytes of lines that are shown at most.
const TEXT_BYTES: usize = 256 << 10;
/// Characters of a line that are shown.
const LINE_CHARS: usize = 400;
/// Bytes that a pattern or a glob has at most.
const WRITTEN_BYTES: usize = 10_000;
/// Bytes that a compiled pattern may take; the more it takes, the longer each byte of a file may.
const PATTERN_BYTES: usize = 1 << 20;
/// Bytes that are kept of a search for speed.
const CACHE_BYTES: usize = 10 << 20;

/// What a search shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Show {
    /// Files.
    Files,
    /// Lines.
    Lines,
}

/// What was found.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct Found {
    success: bool,
    files: Vec<FileFound>,
    /// Why there may be more than is told; absent when there is not.
    cut: Option<&'static str>,
    /// Files and directories that could not be looked into: too large, or closed by the system.
    skipped: u32,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct FileFound {
    path: String,
    /// How many lines fit, as far as they were looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<LineFound>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct LineFound {
    line: u64,
    text: String,
    /// Whether it fits, or stands near one that does.
    is_match: bool,
}

/// Searches as a call asks.
///
/// # Errors
/// When the pattern or the glob cannot be understood, or there is nothing at the path that may be searched.
pub(super) fn search(
    workspace: &Workspace,
    policy: &Policy,
    call: &Search,
    show: Show,
    until: &Until,
) -> Result<Found, Failure> {
    if show == Show::Lines && call.pattern.is_none() {
        return Err(Failure::new(Reason::InvalidRequest, "there is no pattern to look for")
            .detail(Detail::Missing)
            .field("pattern")
            .hint("give a pattern, or list files with ripgrep_files"));
    }
    check_length(call.pattern.as_deref(), "pattern")?;
    check_length(call.glob.as_deref(), "glob")?;
    let matcher = call.pattern.as_deref().map(|pattern| matcher(pattern, call.case)).transpose()?;
    let glob = call.glob.as_deref().map(glob).transpose()?;
    let mut hunt = Hunt {
        matcher,
        show,
        searcher: searcher(call.context),
        files: Vec::new(),
        left: call.max_results,
        room: TEXT_BYTES,
        cut: None,
        skipped: 0,
    };
    let unread = walk(workspace, policy, call.path.as_ref(), &mut |met| {
        if until.is_over() {
            hunt.cut = Some("time");
        } else if let Met::File(file) = met
            && glob.as_ref().is_none_or(|glob| glob.is_match(&file.path))
        {
            hunt.look(file, call.max_files, until);
        }
        if hunt.cut.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .map_err(|error| error.failure().field("path"))?;
    Ok(Found { success: true, files: hunt.files, cut: hunt.cut, skipped: hunt.skipped + unread })
}

fn check_length(written: Option<&str>, field: &str) -> Result<(), Failure> {
    let length = written.map_or(0, str::len);
    if length <= WRITTEN_BYTES {
        return Ok(());
    }
    let message = format!("it has {length} bytes, at most {WRITTEN_BYTES} are searched with");
    Err(Failure::new(Reason::TooLarge, message).field(field).hint("look for a shorter part of it"))
}

fn matcher(pattern: &str, case: Case) -> Result<RegexMatcher, Failure> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_smart(case == Case::Smart)
        .case_insensitive(case == Case::Insensitive)
        .multi_line(true)
        .crlf(true)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(CACHE_BYTES);
    builder.build(pattern).map_err(|error| {
        Failure::new(Reason::InvalidRequest, format!("the pattern is no regular expression: {error}"))
            .detail(Detail::Regex)
            .field("pattern")
            .hint("escape what is meant literally with \\; look-around and back-references do not exist here, and no pattern spans lines")
    })
}

fn glob(text: &str) -> Result<GlobMatcher, Failure> {
    // As in a file of ignore rules: without a slash it is about names, at any depth.
    let (anchored, everywhere);
    let whole = match text.strip_prefix('/') {
        Some(rest) => {
            anchored = rest.to_owned();
            &anchored
        }
        None if text.contains('/') => {
            anchored = text.to_owned();
            &anchored
        }
        None => {
            everywhere = format!("**/{text}");
            &everywhere
        }
    };
    let built = GlobBuilder::new(whole).literal_separator(true).backslash_escape(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| {
        Failure::new(Reason::InvalidRequest, format!("the glob cannot be understood: {error}"))
            .field("glob")
            .hint("write *.rs for names at any depth, src/**/*.rs for paths from the root down")
    })
}

fn searcher(context: u32) -> Searcher {
    let context = context as usize;
    SearcherBuilder::new()
        .line_number(true)
        .line_terminator(LineTerminator::crlf())
        .before_context(context)
        .after_context(context)
        .bom_sniffing(false)
        .binary_detection(BinaryDetection::quit(0))
        .build()
}

/// A search that is under way.
struct Hunt {
    matcher: Option<RegexMatcher>,
    show: Show,
    searcher: Searcher,
    files: Vec<FileFound>,
    /// How many more lines may be shown.
    left: u32,
    /// How many more bytes of them.
    room: usize,
    cut: Option<&'static str>,
    skipped: u32,
}

impl Hunt {
    fn look(&mut self, file: &File<'_>, most_files: u32, until: &Until) {
        let Some(found) = self.find(file, until) else { return };
        if self.files.len() >= most_files as usize {
            self.cut = Some("max_files");
            return;
        }
        self.files.push(found);
    }

    /// What there is to tell of a file.
    fn find(&mut self, file: &File<'_>, until: &Until) -> Option<FileFound> {
        let path = file.path.clone();
        let Some(matcher) = &self.matcher else { return Some(FileFound { path, matches: None, lines: Vec::new() }) };
        let bytes = match file.read(FILE_BYTES) {
            Ok(Some(bytes)) => bytes,
            Ok(None) | Err(_) => {
                self.skipped += 1;
                return None;
            }
        };
        // What no line edit works on is not told of.
        if bytes.contains(&0) {
            return None;
        }
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let (left, room) = match self.show {
            Show::Files => (u32::MAX, 0),
            Show::Lines => (self.left, self.room),
        };
        let mut taken = Taken { show: self.show, matches: 0, lines: Vec::new(), left, room, cut: None };
        if self.searcher.search_reader(matcher, Waited { text, until }, &mut taken).is_err() {
            if !until.is_over() {
                self.skipped += 1;
                return None;
            }
            self.cut = Some("time");
        }
        if self.show == Show::Lines {
            (self.left, self.room) = (taken.left, taken.room);
            self.cut = self.cut.or(taken.cut);
        }
        let found = FileFound { path, matches: Some(taken.matches), lines: taken.lines };
        Some(found).filter(|found| found.matches != Some(0))
    }
}

/// A text that is read only as long as somebody waits for what is found in it.
struct Waited<'a> {
    text: &'a [u8],
    until: &'a Until,
}

impl Read for Waited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.until.is_over() { Err(io::ErrorKind::TimedOut.into()) } else { self.text.read(buffer) }
    }
}

/// What is taken of a file.
struct Taken {
    show: Show,
    matches: u32,
    lines: Vec<LineFound>,
    left: u32,
    room: usize,
    cut: Option<&'static str>,
}

impl Taken {
    /// Takes a line; tells whether there may be more.
    fn take(&mut self, number: Option<u64>, bytes: &[u8], is_match: bool) -> bool {
        if self.show == Show::Files {
            return true;
        }
        let line = String::from_utf8_lossy(bytes);
        let text: String = line.trim_end_matches(['\n', '\r']).chars().take(LINE_CHARS).collect();
        let Some(room) = self.room.checked_sub(text.len()) else {
            self.cut = Some("size");
            return false;
        };
        self.room = room;
        self.lines.push(LineFound { line: number.unwrap_or_default(), text, is_match });
        true
    }
}

impl Sink for Taken {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let Some(left) = self.left.checked_sub(1) else {
            self.cut = Some("max_results");
            return Ok(false);
        };
        self.left = left;
        self.matches += 1;
        Ok(self.take(found.line_number(), found.bytes(), true))
    }

    fn context(&mut self, _: &Searcher, near: &SinkContext<'_>) -> Result<bool, io::Error> {
        Ok(self.take(near.line_number(), near.bytes(), false))
    }
}

impl Found {
    /// As people and models read it: a path, its lines beneath it.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            let _ = match (file.lines.is_empty(), file.matches) {
                (true, Some(matches)) => writeln!(text, "{} ({matches})", file.path),
                _ => writeln!(text, "{}", file.path),
            };
            let mut last = None;
            for line in &file.lines {
                if last.is_some_and(|last| last + 1 < line.line) {
                    text.push_str("--\n");
                }
                last = Some(line.line);
                let _ = writeln!(text, "{}{}{}", line.line, if line.is_match { ':' } else { '-' }, line.text);
            }
            if !file.lines.is_empty() {
                text.push('\n');
            }
        }
        if self.files.is_empty() {
            text.push_str("nothing found\n");
        }
        if let Some(cut) = self.cut {
            let _ = writeln!(text, "there may be more: stopped at {cut}; narrow the search or raise the limit");
        }
        if self.skipped > 0 {
            let _ = writeln!(text, "{} files or directories could not be searched", self.skipped);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// However long a file takes to search, it is read on only while somebody waits.
    #[test]
    fn a_file_is_read_only_while_somebody_waits() {
        let token = CancellationToken::new();
        let until = Until::from_now(token.clone());
        let mut text = Waited { text: b"some text", until: &until };
        let mut buffer = [0; 4];
        assert_eq!(text.read(&mut buffer).unwrap(), 4);
        token.cancel();
        assert_eq!(text.read(&mut buffer).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
