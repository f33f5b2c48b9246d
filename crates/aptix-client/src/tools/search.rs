//! `ripgrep_files` and `ripgrep_content`: lists files, the files with a line that matches, or those lines.

use std::borrow::Cow;
use std::ops::ControlFlow;

use aptix_engine::text::line_regex::Letters;
use aptix_model::failure::Failure;
use aptix_model::live::{SkipCause, Skipped};
use aptix_model::protection::KEY_HEAD_BYTES;
use aptix_model::reason::Reason;
use aptix_model::tools::look::{Case, Search};
use aptix_model::tools::ripgrep::{FileFound, Found, LineFound};
use aptix_model::tools::skipped::SkippedFiles;
use globset::{GlobBuilder, GlobMatcher};

use crate::live::IsOver;
use crate::live::line_search::{Line, LineSearch, Stopped, has_capital};
use crate::live::scope::{self, Scope, scopes_of};
use crate::live::searchable::{Searchable, costly, without_mark};
use crate::policy::Policy;
use crate::policy::caller::Caller;
use crate::policy::disclosure::{Disclosure, Inside};
use crate::unsaved::Unsaved;
use crate::workspace::read::walk::{Closed, File, Kind, Met, Visit, Way, walk};
use crate::workspace::roots::workspace::Workspace;

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
    is_over: IsOver<'_>,
) -> Result<Found, Failure> {
    let pattern = call.pattern.as_deref();
    let mut disclosure = Disclosure::new(workspace, policy);
    let scopes = scopes_of(workspace, call.path.as_ref()).map_err(|failure| failure.field("path"))?;
    if policy.caller == Caller::Server {
        scope::check(&scopes, &mut disclosure).map_err(|failure| failure.field("path"))?;
    }
    let mut hunt = Hunt {
        disclosure,
        unsaved: Unsaved::of(workspace)?,
        is_over,
        scope: None,
        pattern: pattern.map(|pattern| LineSearch::new(pattern, letters(call.case, pattern))).transpose()?,
        glob: call.glob.as_deref().map(glob).transpose()?,
        near: call.context as usize,
        show,
        files: Vec::new(),
        max_files: call.max_files as usize,
        left: call.max_results,
        room: TEXT_BYTES,
        cut: None,
        costly: None,
        skipped: Skipped::default(),
    };
    for scope in scopes {
        hunt.scope = Some(scope);
        let way = Way { root: scope.root, path: scope.path, after: None };
        walk(way, &mut hunt).map_err(|error| error.failure().field("path"))?;
        if let Some(path) = hunt.costly {
            return Err(costly(path));
        }
        if hunt.cut.is_some() {
            break;
        }
    }
    Ok(Found { success: true, files: hunt.files, cut: hunt.cut, skipped: SkippedFiles::of(hunt.skipped) })
}

/// How letters are compared: smart means that they have to agree in case if the pattern has a capital.
fn letters(case: Case, pattern: &str) -> Letters {
    match case {
        Case::Insensitive => Letters::AnyCase,
        Case::Smart if !has_capital(pattern) => Letters::AnyCase,
        Case::Smart | Case::Sensitive => Letters::Exact,
    }
}

fn glob(text: &str) -> Result<GlobMatcher, Failure> {
    if text.len() > GLOB_BYTES {
        let message = format!("the glob has {} bytes, at most {GLOB_BYTES} are searched with", text.len());
        return Err(Failure::new(Reason::TooLarge, message).field("glob").hint("write a shorter one"));
    }
    if text.starts_with('!') {
        let message = "the glob begins with \"!\", and one glob cannot take files out";
        let hint = "name the files to search in; \\! means a name that begins with !";
        return Err(Failure::new(Reason::InvalidRequest, message).field("glob").hint(hint));
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
    disclosure: Disclosure<'p>,
    unsaved: Unsaved,
    is_over: IsOver<'p>,
    /// What is gone through.
    scope: Option<Scope<'p>>,
    /// What is looked for in lines; any file matches if absent.
    pattern: Option<LineSearch>,
    glob: Option<GlobMatcher>,
    /// Lines above and below a match that are shown.
    near: usize,
    show: Show,
    files: Vec<FileFound>,
    max_files: usize,
    /// How many more matches may be shown.
    left: u32,
    /// How many more bytes of lines may be shown.
    room: usize,
    /// The limit that ended the search.
    cut: Option<&'static str>,
    /// The file in which the search was given up.
    costly: Option<String>,
    skipped: Skipped,
}

impl Visit for Hunt<'_> {
    fn may_look(&mut self, path: &str, kind: Kind) -> Result<(), Closed> {
        self.disclosure.may_be_searched(self.index(), path, kind)
    }

    fn see(&mut self, met: &Met<'_>) -> ControlFlow<()> {
        if (self.is_over)() {
            self.cut = Some("time");
        } else if let Met::File(file) = met
            && self.glob.as_ref().is_none_or(|glob| glob.is_match(&file.path))
        {
            let mut pattern = self.pattern.take();
            match self.find(file, pattern.as_mut()) {
                Some(_) if self.files.len() >= self.max_files => self.cut = Some("max_files"),
                found => self.files.extend(found),
            }
            self.pattern = pattern;
        }
        if self.cut.is_some() || self.costly.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn skip(&mut self, cause: SkipCause, path: Option<&str>) {
        let path = path.and_then(|path| self.scope.and_then(|scope| scope.nameable(path)));
        self.skipped.note(cause, path);
    }
}

impl Hunt<'_> {
    /// Which root is gone through.
    fn index(&self) -> usize {
        self.scope.map_or(0, |scope| scope.index)
    }

    /// Whether a file that is not looked into may be listed.
    fn may_list(&mut self, file: &File<'_>) -> bool {
        let opened = file.open().ok().flatten();
        let opened = opened.and_then(|opened| opened.head(KEY_HEAD_BYTES).ok().map(|head| (opened, head)));
        let Some((opened, head)) = opened else {
            self.skipped.note(SkipCause::Unreadable, None);
            return false;
        };
        let inside = Inside { names: opened.names(), head: &head };
        self.disclosure.withheld_at(self.index(), &file.path, inside).is_none()
    }

    /// The matches in a file; nothing if it has none, or is not searched.
    fn find(&mut self, file: &File<'_>, pattern: Option<&mut LineSearch>) -> Option<FileFound> {
        let path = self.scope.map_or_else(|| file.path.clone(), |scope| scope.names(&file.path).0);
        let Some(pattern) = pattern else {
            return self.may_list(file).then_some(FileFound { path, unsaved: false, matches: None, lines: Vec::new() });
        };
        let (bytes, unsaved) = match Searchable::of(file, self.index(), &mut self.disclosure, &self.unsaved) {
            Searchable::Bytes { bytes, is_unsaved } => (bytes, is_unsaved),
            Searchable::Closed => return None,
            Searchable::TooLarge => {
                self.skipped.note(SkipCause::TooLarge, Some(path));
                return None;
            }
            Searchable::Unreadable => {
                self.skipped.note(SkipCause::Unreadable, None);
                return None;
            }
        };
        let (mut matches, mut lines) = (0, Vec::new());
        let near = if self.show == Show::Lines { self.near } else { 0 };
        let is_over = self.is_over;
        let text = without_mark(&bytes);
        let searched =
            pattern.lines(text, near, is_over, &mut |line| match self.take(&line, &mut matches, &mut lines) {
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
        (matches > 0).then_some(FileFound { path, unsaved, matches: Some(matches), lines })
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
