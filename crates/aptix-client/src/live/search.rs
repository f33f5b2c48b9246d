//! Finds lines that match a regular expression in the files that the caller is shown.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use aptix_engine::text::line_regex::Letters;
use aptix_model::failure::{Excerpt, Failure};
use aptix_model::live::{SearchFiles, SearchMatch, SearchMatches, SkipCause};

use super::globs::Globs;
use super::line_search::{Line, LineSearch, Stopped};
use super::scope::{self, Scope, scopes};
use super::searchable::{Searchable, costly, without_mark};
use super::{IsOver, over};
use crate::policy::Policy;
use crate::policy::disclosure::Disclosure;
use crate::unsaved::Unsaved;
use crate::workspace::read::walk::{Closed, File, Kind, Met, Visit, Way, walk};
use crate::workspace::roots::workspace::Workspace;

/// SearchMatches unless the caller asks for more.
const USUAL_MATCHES: usize = 100;
/// Most matches.
const MOST_MATCHES: usize = 1_000;
/// Most lines above and below a match.
const MOST_CONTEXT: usize = 20;
/// Bytes of lines and paths that an answer holds.
const TEXT_BYTES: usize = 1 << 20;
/// Characters of a line that are shown.
const LINE_CHARS: usize = 400;

/// Searches.
///
/// # Errors
/// The pattern or a glob cannot be understood, there is no such directory or the caller is not shown it, the search takes more
/// steps than the files are worth, or the caller does not wait any more.
pub fn search(
    workspace: &Workspace,
    policy: &Policy,
    call: &SearchFiles,
    is_over: IsOver<'_>,
) -> Result<SearchMatches, Failure> {
    let letters = if call.ignore_case { Letters::AnyCase } else { Letters::Exact };
    let mut pattern = LineSearch::new(&call.pattern, letters)?;
    let globs = Globs::new(&call.globs)?;
    let unsaved = Unsaved::of(workspace)?;
    let mut disclosure = Disclosure::new(workspace, policy);
    let scopes = scopes(workspace, call.directory.as_ref(), &mut disclosure)?;
    let most = if call.max_matches == 0 { USUAL_MATCHES } else { call.max_matches.min(MOST_MATCHES) };
    let mut found =
        Found { near: call.context.min(MOST_CONTEXT), most, room: TEXT_BYTES, matches: SearchMatches::default() };
    for scope in scopes {
        let (pattern, globs, found, unsaved) = (&mut pattern, &globs, &mut found, &unsaved);
        let disclosure = &mut disclosure;
        let mut hunt = Hunt { disclosure, is_over, scope, unsaved, pattern, globs, found, failure: None };
        let way = Way { root: scope.root, path: scope.path, after: None };
        walk(way, &mut hunt).map_err(|error| scope::failure(&error))?;
        if let Some(failure) = hunt.failure {
            return Err(failure);
        }
        if found.matches.has_more {
            break;
        }
    }
    Ok(found.matches)
}

/// The search of one root.
struct Hunt<'h, 'w> {
    disclosure: &'h mut Disclosure<'w>,
    is_over: IsOver<'h>,
    scope: Scope<'h>,
    unsaved: &'h Unsaved,
    pattern: &'h mut LineSearch,
    globs: &'h Globs,
    found: &'h mut Found,
    /// Why it was given up.
    failure: Option<Failure>,
}

impl Visit for Hunt<'_, '_> {
    fn may_look(&mut self, path: &str, kind: Kind) -> Result<(), Closed> {
        self.disclosure.may_be_searched(self.scope.index, path, kind)
    }

    fn see(&mut self, met: &Met<'_>) -> ControlFlow<()> {
        if (self.is_over)() {
            self.failure = Some(over());
        } else if let Met::File(file) = met
            && self.scope.is_file(file)
        {
            self.failure = Some(scope::no_directory(&file.path));
        } else if let Met::File(file) = met
            && self.globs.select(&file.path)
        {
            self.failure = self.look_into(file).err();
        }
        let ends = self.failure.is_some() || self.found.matches.has_more;
        if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn skip(&mut self, cause: SkipCause, path: Option<&str>) {
        let path = path.and_then(|path| self.scope.nameable(path));
        self.found.matches.skipped.note(cause, path);
    }
}

impl Hunt<'_, '_> {
    fn look_into(&mut self, file: &File<'_>) -> Result<(), Failure> {
        let skipped = &mut self.found.matches.skipped;
        let Some(path) = self.scope.nameable(&file.path) else {
            skipped.note(SkipCause::BadName, None);
            return Ok(());
        };
        let (bytes, is_unsaved) = match Searchable::of(file, self.scope.index, self.disclosure, self.unsaved) {
            Searchable::Bytes { bytes, is_unsaved } => (bytes, is_unsaved),
            Searchable::Closed => return Ok(()),
            Searchable::TooLarge => {
                skipped.note(SkipCause::TooLarge, Some(path));
                return Ok(());
            }
            Searchable::Unreadable => {
                skipped.note(SkipCause::Unreadable, None);
                return Ok(());
            }
        };
        let names = self.scope.names(&file.path);
        let mut in_file = InFile { names, is_unsaved, above: VecDeque::new(), open: VecDeque::new() };
        let found = &mut *self.found;
        let near = found.near;
        let searched =
            self.pattern.lines(without_mark(&bytes), near, self.is_over, &mut |line| found.take(&mut in_file, &line));
        match searched {
            Ok(()) => {}
            Err(Stopped::Over) => return Err(over()),
            Err(Stopped::Costly) => return Err(costly(in_file.names.0)),
        }
        found.close(&mut in_file, usize::MAX);
        Ok(())
    }
}

/// What was found so far.
struct Found {
    /// Lines above and below a match.
    near: usize,
    most: usize,
    /// How many more bytes fit.
    room: usize,
    matches: SearchMatches,
}

/// The matches of a file whose lines are not all there yet.
struct InFile {
    names: (String, String),
    is_unsaved: bool,
    /// The last lines before the present one.
    above: VecDeque<(usize, String)>,
    open: VecDeque<SearchMatch>,
}

impl Found {
    /// Takes the next of the lines that match and those around them.
    fn take(&mut self, file: &mut InFile, line: &Line<'_>) -> ControlFlow<()> {
        let number = usize::try_from(line.number).unwrap_or(usize::MAX);
        let text: String = String::from_utf8_lossy(line.text).chars().take(LINE_CHARS).collect();
        self.close(file, number);
        for open in &mut file.open {
            open.excerpt.text.push('\n');
            open.excerpt.text.push_str(&text);
            open.excerpt.end_line = number;
        }
        if line.is_match {
            if self.matches.matches.len() + file.open.len() >= self.most {
                self.matches.has_more = true;
            } else {
                file.open.push_back(self.begin(file, number, &text));
            }
        }
        if self.near > 0 {
            file.above.push_back((number, text));
        }
        if file.above.len() > self.near {
            file.above.pop_front();
        }
        // The lines below those that were taken still come.
        if self.matches.has_more && file.open.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// A match in the present line, with the lines above it.
    fn begin(&self, file: &InFile, number: usize, text: &str) -> SearchMatch {
        let above = file.above.iter().filter(|(above, _)| above + self.near >= number);
        let start_line = above.clone().next().map_or(number, |(above, _)| *above);
        let lines: Vec<&str> = above.map(|(_, text)| text.as_str()).chain([text]).collect();
        let (path, doc_path) = file.names.clone();
        let excerpt = Excerpt { start_line, end_line: number, text: lines.join("\n") };
        SearchMatch { path, doc_path, line: number, excerpt, is_unsaved: file.is_unsaved }
    }

    /// Keeps the matches that have all lines above this one that belong to them.
    fn close(&mut self, file: &mut InFile, number: usize) {
        let is_whole = |matched: &SearchMatch| matched.line + self.near < number;
        while file.open.front().is_some_and(is_whole)
            && let Some(matched) = file.open.pop_front()
        {
            let bytes = matched.path.len() + matched.doc_path.len() + matched.excerpt.text.len();
            match self.room.checked_sub(bytes).filter(|_| !self.is_full()) {
                Some(left) => {
                    self.room = left;
                    self.matches.matches.push(matched);
                }
                None => (self.room, self.matches.has_more) = (0, true),
            }
        }
    }

    const fn is_full(&self) -> bool {
        self.room == 0
    }
}
