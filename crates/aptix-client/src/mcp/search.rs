//! `ripgrep_files` and `ripgrep_content`: which files there are, which have a line that fits, and which lines.

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
/// Bytes of lines that are shown at most.
const TEXT_BYTES: usize = 256 << 10;
/// Characters of a line that are shown.
const LINE_CHARS: usize = 400;
/// Bytes that a glob has at most.
const GLOB_BYTES: usize = 2048;

/// What a search shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Show {
    /// Files.
    Files,
    /// Lines.
    Lines,
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
    let pattern = call.pattern.as_deref().map(|pattern| LineSearch::new(pattern, call.case)).transpose()?;
    let glob = call.glob.as_deref().map(glob).transpose()?;
    let mut hunt = Hunt {
        policy,
        pattern,
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
            hunt.look(file, call.max_files, until);
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

/// A search that is under way.
struct Hunt<'p> {
    policy: &'p Policy,
    pattern: Option<LineSearch>,
    /// Lines above and below a match that are shown.
    near: usize,
    show: Show,
    files: Vec<FileFound>,
    /// How many more lines may be shown.
    left: u32,
    /// How many more bytes of them.
    room: usize,
    cut: Option<&'static str>,
    /// The file in which the search was given up.
    costly: Option<String>,
    skipped: u32,
}

impl Hunt<'_> {
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
        let Some(pattern) = &mut self.pattern else {
            return Some(FileFound { path, matches: None, lines: Vec::new() });
        };
        let bytes = match file.read(FILE_BYTES) {
            Ok(Some(bytes)) => bytes,
            Ok(None) | Err(_) => {
                self.skipped += 1;
                return None;
            }
        };
        // What no line edit works on is not told of, nor what no reader is shown.
        let sight = Sight { head: &bytes, ..Sight::of(Named { root: 0, path: &path, real: &path }) };
        if bytes.contains(&0) || egress::withheld(self.policy, sight).is_some() {
            return None;
        }
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let (left, room, near) = match self.show {
            Show::Files => (u32::MAX, 0, 0),
            Show::Lines => (self.left, self.room, self.near),
        };
        let mut taken = Taken { show: self.show, matches: 0, lines: Vec::new(), left, room, cut: None };
        match pattern.lines(text, near, until, &mut |line| taken.take(&line)) {
            Ok(()) => {}
            Err(Stopped::Over) => self.cut = Some("time"),
            Err(Stopped::Costly) => {
                self.costly = Some(path);
                return None;
            }
        }
        if self.show == Show::Lines {
            (self.left, self.room) = (taken.left, taken.room);
            self.cut = self.cut.or(taken.cut);
        }
        let found = FileFound { path, matches: Some(taken.matches), lines: taken.lines };
        Some(found).filter(|found| found.matches != Some(0))
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
    /// Takes a line, unless no more are wanted.
    fn take(&mut self, line: &Line<'_>) -> ControlFlow<()> {
        if line.is_match {
            let Some(left) = self.left.checked_sub(1) else {
                self.cut = Some("max_results");
                return ControlFlow::Break(());
            };
            self.left = left;
            self.matches += 1;
        }
        if self.show == Show::Files {
            return ControlFlow::Continue(());
        }
        let text: String = String::from_utf8_lossy(line.text).chars().take(LINE_CHARS).collect();
        let Some(room) = self.room.checked_sub(text.len()) else {
            self.cut = Some("size");
            return ControlFlow::Break(());
        };
        self.room = room;
        self.lines.push(LineFound { line: line.number, text, is_match: line.is_match });
        ControlFlow::Continue(())
    }
}
