//! `ripgrep_files` and `ripgrep_content`: lists files, the files with a line that matches, or those lines.

use std::borrow::Cow;
use std::ops::ControlFlow;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::tools::look::Search;
use aptix_model::tools::ripgrep::{FileFound, Found, LineFound};
use globset::{GlobBuilder, GlobMatcher};

use super::line_search::{Line, LineSearch, Stopped};
use super::until::Until;
use crate::policy::Policy;
use crate::policy::egress::{self, Sight};
use crate::policy::paths::Named;
use crate::workspace::read::walk::{File, Met, walk};
use crate::workspace::roots::workspace::Workspace;

/// Bytes of a file that is searched.
const FILE_BYTES: u64 = 16 << 20;
/// Most bytes of lines that are shown.
const TEXT_BYTES: usize = 256 << 10;
/// Characters of a line that are shown.
const LINE_CHARS: usize = 400;
/// Longest glob, in bytes.
const GLOB_BYTES: usize = 2048;

/// What a search shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Show {
    /// Files.
    Files,
    /// Lines.
    Lines,
}

/// Searches for what a call asks for.
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
    let mut pattern = call.pattern.as_deref().map(|pattern| LineSearch::new(pattern, call.case)).transpose()?;
    let glob = call.glob.as_deref().map(glob).transpose()?;
    let mut hunt = Hunt {
        policy,
        near: call.context as usize,
        show,
        files: Vec::new(),
        left: call.max_results,
        room: TEXT_BYTES,
        cut: None,
        costly: None,
        skipped: 0,
    };
    let unread = walk(workspace, call.path.as_ref(), &|path| egress::may_be_searched(policy, path), &mut |met| {
        if until.is_over() {
            hunt.cut = Some("time");
        } else if let Met::File(file) = met
            && glob.as_ref().is_none_or(|glob| glob.is_match(&file.path))
        {
            match hunt.find(file, pattern.as_mut(), until) {
                Some(_) if hunt.files.len() >= call.max_files as usize => hunt.cut = Some("max_files"),
                found => hunt.files.extend(found),
            }
        }
        if hunt.cut.is_some() || hunt.costly.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .map_err(|error| error.failure().field("path"))?;
    if let Some(path) = hunt.costly {
        let message = format!("the search of {path} takes more steps than a file of its size is worth");
        let hint = "repeat less in the pattern, write (?-u:\\b) for \\b, or leave the file out by path or glob";
        return Err(Failure { path: Some(path), ..Failure::new(Reason::MatchBudgetExceeded, message) }
            .field("pattern")
            .hint(hint));
    }
    Ok(Found { success: true, files: hunt.files, cut: hunt.cut, skipped: hunt.skipped + unread })
}

fn glob(text: &str) -> Result<GlobMatcher, Failure> {
    if text.len() > GLOB_BYTES {
        let message = format!("the glob has {} bytes, at most {GLOB_BYTES} are searched with", text.len());
        return Err(Failure::new(Reason::TooLarge, message).field("glob").hint("write a shorter one"));
    }
    // As in a file of ignore rules: without a slash it matches names at any depth.
    let whole = match text.strip_prefix('/') {
        Some(rest) => Cow::Borrowed(rest),
        None if text.contains('/') => Cow::Borrowed(text),
        None => Cow::Owned(format!("**/{text}")),
    };
    let built = GlobBuilder::new(&whole).literal_separator(true).backslash_escape(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| {
        Failure::new(Reason::InvalidRequest, format!("the glob cannot be understood: {error}"))
            .field("glob")
            .hint("write *.rs for names at any depth, src/**/*.rs for paths from the root down")
    })
}

/// A search that is under way.
struct Hunt<'p> {
    policy: &'p Policy,
    /// Lines above and below a match that are shown.
    near: usize,
    show: Show,
    files: Vec<FileFound>,
    /// How many more matches may be shown.
    left: u32,
    /// How many more bytes of lines may be shown.
    room: usize,
    /// The limit that ended the search.
    cut: Option<&'static str>,
    /// The file in which the search was given up.
    costly: Option<String>,
    skipped: u32,
}

impl Hunt<'_> {
    /// The matches in a file; nothing if it has none, or is not searched.
    fn find(&mut self, file: &File<'_>, pattern: Option<&mut LineSearch>, until: &Until) -> Option<FileFound> {
        let path = file.path.clone();
        let Some(pattern) = pattern else {
            return Some(FileFound { path, matches: None, lines: Vec::new() });
        };
        let Ok(Some(bytes)) = file.read(FILE_BYTES) else {
            self.skipped += 1;
            return None;
        };
        // Binary files and withheld ones are not searched.
        let sight = Sight { head: &bytes, ..Sight::of(Named { root: 0, path: &path, real: &path }) };
        if bytes.contains(&0) || egress::withheld(self.policy, sight).is_some() {
            return None;
        }
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let (mut matches, mut lines) = (0, Vec::new());
        let near = if self.show == Show::Lines { self.near } else { 0 };
        let searched = pattern.lines(text, near, until, &mut |line| match self.take(&line, &mut matches, &mut lines) {
            Ok(()) => ControlFlow::Continue(()),
            Err(cut) => {
                self.cut = Some(cut);
                ControlFlow::Break(())
            }
        });
        match searched {
            Ok(()) => {}
            Err(Stopped::Over) => self.cut = Some("time"),
            Err(Stopped::Costly) => {
                self.costly = Some(path);
                return None;
            }
        }
        (matches > 0).then_some(FileFound { path, matches: Some(matches), lines })
    }

    /// Takes a line, unless that exceeds the limit that this returns.
    fn take(&mut self, line: &Line<'_>, matches: &mut u32, lines: &mut Vec<LineFound>) -> Result<(), &'static str> {
        if self.show == Show::Lines && line.is_match {
            self.left = self.left.checked_sub(1).ok_or("max_results")?;
        }
        *matches += u32::from(line.is_match);
        if self.show == Show::Files {
            return Ok(());
        }
        let text: String = String::from_utf8_lossy(line.text).chars().take(LINE_CHARS).collect();
        self.room = self.room.checked_sub(text.len()).ok_or("size")?;
        lines.push(LineFound { line: line.number, text, is_match: line.is_match });
        Ok(())
    }
}
