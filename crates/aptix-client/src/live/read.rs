//! Reads and describes files as they are at this moment: each by itself, without a look at any other.

use std::ops::ControlFlow;

use aptix_engine::target::ValidTarget;
use aptix_engine::text::facts::Facts;
use aptix_engine::text::portion::{Taken, Taking};
use aptix_model::failure::Failure;
use aptix_model::limits::INLINE_BYTES;
use aptix_model::live::{FileContent, FileInfo, FilePart, FileSelector, Portion, TextFacts};
use aptix_model::path_style::PathStyle;
use aptix_model::protection::KEY_HEAD_BYTES;
use aptix_model::reason::{Detail, Reason};

use super::IsOver;
use super::active::Active;
use super::over;
use super::unresolved::{self, unresolved};
use crate::policy::Policy;
use crate::policy::disclosure::{Disclosure, Inside};
use crate::unsaved::{self, Unsaved};
use crate::workspace::read::listing::Listings;
use crate::workspace::read::open_file::OpenFile;
use crate::workspace::read::place::Place;
use crate::workspace::read::resolve::resolve_to_read;
use crate::workspace::read::snapshot::ReadError;
use crate::workspace::roots::workspace::Workspace;

/// Bytes of content that one answer holds, of all its files together.
pub const CONTENT_BYTES: usize = INLINE_BYTES;
/// Bytes of paths and messages that one answer holds.
const TEXT_BYTES: usize = 1 << 20;
/// How often a file that changes while it is read is begun again.
const TRIES: usize = 5;

/// The files of one answer, or why one is not shown.
pub type Files<T> = Vec<Result<T, Failure>>;

/// Reads files, or parts of them, each at its own moment: the text of an unsaved buffer where an editor holds one. Content that
/// does not fit beside that of the files before it is left out.
///
/// # Errors
/// The caller does not wait any more, or the agent does not say which buffers there are.
pub fn read(
    workspace: &Workspace,
    policy: &Policy,
    files: &[FilePart],
    is_over: IsOver<'_>,
) -> Result<Files<FileContent>, Failure> {
    let mut reader = Reader { unsaved: Unsaved::of(workspace)?, ..Reader::new(workspace, policy, is_over) };
    files.iter().map(|part| reader.answer(&part.file, Some(part.portion))).collect()
}

/// Describes files without their content.
///
/// # Errors
/// As [`read`].
pub fn stat(
    workspace: &Workspace,
    policy: &Policy,
    files: &[FileSelector],
    is_over: IsOver<'_>,
) -> Result<Files<FileInfo>, Failure> {
    describe(Reader { unsaved: Unsaved::of(workspace)?, ..Reader::new(workspace, policy, is_over) }, files)
}

/// As [`stat`], of the files on disk, whatever text editors hold of them.
///
/// # Errors
/// The caller does not wait any more.
pub(super) fn stat_on_disk(
    workspace: &Workspace,
    policy: &Policy,
    files: &[FileSelector],
    is_over: IsOver<'_>,
) -> Result<Files<FileInfo>, Failure> {
    describe(Reader::new(workspace, policy, is_over), files)
}

fn describe(mut reader: Reader<'_>, files: &[FileSelector]) -> Result<Files<FileInfo>, Failure> {
    let answers = files.iter().map(|file| reader.answer(file, None));
    answers.map(|answer| Ok(answer?.map(|file| file.info))).collect()
}

/// Refuses to read a file of which the caller is shown nothing, whether it exists or not; one that does not exist, or is larger
/// than is read; and an unsaved buffer that is not shown.
///
/// # Errors
/// Why the file is not shown.
pub(crate) fn check(workspace: &Workspace, policy: &Policy, file: &FileSelector) -> Result<(), Failure> {
    let mut reader = Reader { unsaved: Unsaved::of(workspace)?, ..Reader::new(workspace, policy, &|| false) };
    let active = reader.place(file).and_then(|place| reader.active(&place));
    active.map(drop).map_err(NotRead::failure)
}

/// All bytes of a file on disk.
///
/// # Errors
/// Why it is not shown, or the caller does not wait any more.
pub fn content(
    workspace: &Workspace,
    policy: &Policy,
    file: &FileSelector,
    is_over: IsOver<'_>,
) -> Result<Vec<u8>, Failure> {
    let mut reader = Reader::new(workspace, policy, is_over);
    reader.whole(file).map_err(NotRead::failure)
}

/// Why a file is not read.
enum NotRead {
    /// The caller does not wait any more: nothing is answered.
    Over,
    /// The failure of this file.
    Refused(Box<Failure>),
}

impl NotRead {
    fn failure(self) -> Failure {
        match self {
            Self::Refused(failure) => *failure,
            Self::Over => over(),
        }
    }
}

impl From<Failure> for NotRead {
    fn from(failure: Failure) -> Self {
        Self::Refused(Box::new(failure))
    }
}

impl From<ReadError> for NotRead {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Resolve(error) => unresolved::refused(&error).into(),
            error => error.failure().into(),
        }
    }
}

/// The reads of one answer.
struct Reader<'w> {
    workspace: &'w Workspace,
    policy: &'w Policy,
    disclosure: Disclosure<'w>,
    listings: Listings,
    is_over: IsOver<'w>,
    /// The buffers that stand for files.
    unsaved: Unsaved,
    /// How many more bytes of content, and of other text, the answer holds.
    content_left: usize,
    text_left: usize,
}

impl<'w> Reader<'w> {
    fn new(workspace: &'w Workspace, policy: &'w Policy, is_over: IsOver<'w>) -> Self {
        Self {
            workspace,
            policy,
            disclosure: Disclosure::new(workspace, policy),
            listings: Listings::default(),
            is_over,
            unsaved: Unsaved::default(),
            content_left: CONTENT_BYTES,
            text_left: TEXT_BYTES,
        }
    }

    /// The file, with a part of its content if one is given, or why it is not shown.
    fn answer(
        &mut self,
        file: &FileSelector,
        portion: Option<Portion>,
    ) -> Result<Result<FileContent, Failure>, Failure> {
        let name = file.as_str();
        let answer = match self.read(file, portion) {
            Ok(file) => Ok(file),
            Err(NotRead::Refused(failure)) => Err(self.named(file, *failure)),
            Err(NotRead::Over) => return Err(over()),
        };
        let text = match &answer {
            Ok(file) => file.info.path.len() + file.info.doc_path.len(),
            Err(failure) => name.len() + failure.message.len() + failure.hint.as_ref().map_or(0, String::len),
        };
        match self.text_left.checked_sub(text) {
            Some(left) => self.text_left = left,
            // Of a fixed size, and there is room for as many as may be asked for.
            None => {
                return Ok(Err(Failure::new(Reason::TooLarge, "the answer has no room for this file")
                    .detail(Detail::Files)
                    .hint("ask for this file, and for those behind it, in another call")));
            }
        }
        if let Ok(file) = &answer {
            self.content_left -= file.content.as_ref().map_or(0, Vec::len).min(self.content_left);
        }
        Ok(answer)
    }

    /// A failure about a file that was asked for, with its path and key as far as the question has them.
    fn named(&self, file: &FileSelector, failure: Failure) -> Failure {
        let style = PathStyle::among(self.workspace.roots().len());
        let root = self.workspace.roots().first().map(|root| root.name());
        let (path, doc_path) = match file {
            FileSelector::DocPath(key) => (style.of_key(key.as_str()), Some(key.to_string())),
            FileSelector::Path(path) => (path.as_str(), style.key(path.as_str(), root)),
        };
        Failure { path: Some(path.to_owned()), doc_path, ..failure }
    }

    fn read(&mut self, file: &FileSelector, portion: Option<Portion>) -> Result<FileContent, NotRead> {
        for _ in 0..TRIES {
            if (self.is_over)() {
                return Err(NotRead::Over);
            }
            let place = self.place(file)?;
            let file = self.active(&place)?;
            let (text, taken, size_bytes) = self.pass(&file, portion)?;
            if !file.is_unchanged()? {
                continue;
            }
            let info = FileInfo {
                path: place.reported.as_str().to_owned(),
                doc_path: place.doc_path,
                size_bytes,
                is_executable: file.is_executable(),
                is_unsaved: file.is_unsaved(),
                text: Some(text),
            };
            return Ok(FileContent {
                info,
                content: taken.content,
                offset: taken.offset,
                first_line: taken.first_line,
            });
        }
        let message = format!("another process wrote the file each of the {TRIES} times that it was read");
        Err(Failure::new(Reason::FileChanged, message).hint("read it again once it is no longer being written").into())
    }

    fn whole(&mut self, file: &FileSelector) -> Result<Vec<u8>, NotRead> {
        if (self.is_over)() {
            return Err(NotRead::Over);
        }
        let place = self.place(file)?;
        let limit = self.policy.limits.file_bytes;
        let file = self.open(&place)?.ok_or_else(unresolved::absent)?;
        let bytes = file.bytes(limit).map_err(ReadError::System)?;
        bytes.ok_or_else(|| too_large(limit).into())
    }

    fn place(&mut self, file: &FileSelector) -> Result<Place, NotRead> {
        let target = match file {
            FileSelector::DocPath(key) => ValidTarget::DocPath(key.clone()),
            FileSelector::Path(path) => ValidTarget::Path(path.clone()),
        };
        let place = resolve_to_read(self.workspace, &mut self.listings, &target);
        place.map_err(|error| unresolved(self.workspace, &mut self.disclosure, &target, error).into())
    }

    /// Opens the file at a place, or the unsaved buffer that stands for it, if the caller is shown both.
    fn active(&mut self, place: &Place) -> Result<Active, NotRead> {
        let file = self.open(place)?;
        let Some(buffer) = self.unsaved.beside(place, file.as_ref())? else {
            let file = file.ok_or_else(unresolved::absent)?;
            let limit = self.policy.limits.file_bytes;
            return if file.size() > limit { Err(too_large(limit).into()) } else { Ok(Active::File(file)) };
        };
        let text = buffer.text.clone().ok_or_else(unsaved::not_shown)?;
        let head = text.as_bytes().get(..KEY_HEAD_BYTES).unwrap_or(text.as_bytes());
        if let Some(why) = self.disclosure.withheld(place, Inside { names: 0, head }) {
            return Err(self.disclosure.not_read(why).into());
        }
        Ok(Active::Buffer { text, is_executable: file.is_some_and(|file| file.is_executable()) })
    }

    /// Opens the file at a place if the caller is shown it; `None` where there is none. What only its path decides is the same
    /// whether it exists or not.
    fn open(&mut self, place: &Place) -> Result<Option<OpenFile>, NotRead> {
        if let Some(why) = self.disclosure.withheld(place, Inside::default()) {
            return Err(self.disclosure.not_read(why).into());
        }
        let Some(file) = OpenFile::at(self.workspace, &mut self.listings, place)? else { return Ok(None) };
        let head = file.head(KEY_HEAD_BYTES).map_err(ReadError::System)?;
        let inside = Inside { names: file.names(), head: &head };
        match self.disclosure.withheld(place, inside) {
            Some(why) => Err(self.disclosure.not_read(why).into()),
            None => Ok(Some(file)),
        }
    }

    /// Lets all bytes of a file pass: what they are, the part that is wanted, and how many they are.
    fn pass(&self, file: &Active, portion: Option<Portion>) -> Result<(TextFacts, Taken, u64), NotRead> {
        let limit = self.policy.limits.file_bytes;
        let (mut facts, mut is_over) = (Facts::default(), false);
        let (portion, most) = match portion {
            Some(Portion::Bytes { offset, length }) => {
                let most = CONTENT_BYTES as u64;
                let length = if length == 0 { most } else { length.min(most) };
                (Portion::Bytes { offset, length }, self.content_left)
            }
            Some(portion) => (portion, self.content_left),
            None => (Portion::Whole, 0),
        };
        let mut taking = Taking::new(portion, most);
        let passed = file.pieces(&mut |piece| {
            facts.add(piece);
            taking.add(piece);
            is_over = (self.is_over)();
            if is_over || facts.bytes() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        passed?;
        if is_over {
            return Err(NotRead::Over);
        }
        let bytes = facts.bytes();
        if bytes > limit {
            return Err(too_large(limit).into());
        }
        Ok((facts.end(), taking.end(), bytes))
    }
}

fn too_large(limit: u64) -> Failure {
    Failure::new(Reason::TooLarge, format!("the file has more than {limit} bytes, which is the most that are read"))
        .detail(Detail::File)
        .hint("leave it out; a person can raise `file_bytes` of `[limits]` in the policy file")
}
