//! The codex-patch document: sections between `*** Begin Patch` and `*** End Patch` that add, delete, update and
//! move files. The lines of an update are placed by what is around them, never by numbers.
//!
//! Marker lines may have blanks around them; within an update only behind them, since what begins with a blank there is
//! a line of the file. Blank lines between sections mean nothing.

use super::dialect::Parsed;
use super::text_lines::{Line, cut_short, lines, malformed, quoted, too_many};
use crate::batch::{
    Batch, Chunk, ChunkLine, Content, ContextPatch, FileEdit, FilePatch, LineKind, Presence, Target, WriteFile,
};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::path::document_spelling;
use crate::reason::Detail;
use crate::report::Warning;

pub(super) const BEGIN: &str = "*** Begin Patch";
pub(super) const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";
const ENVIRONMENT: &str = "*** Environment ID:";
const CHUNK: &str = "@@";

/// Whether a text begins as a codex patch does.
pub(super) fn begins(text: &str) -> bool {
    let mut lines = lines(text).filter(|line| !is_blank(line)).map(|line| line.text);
    match lines.next() {
        Some(first) if heredoc(first).is_some() => lines.next().is_some_and(|second| second.trim() == BEGIN),
        first => first.is_some_and(|first| first.trim() == BEGIN),
    }
}

pub(super) fn parse(text: &str) -> Parsed {
    let mut lines = lines(text).peekable();
    let mut reading = Reading { lines: &mut lines, warnings: Vec::new(), indented_end: indented_end(text) };
    match reading.patch() {
        Ok(files) => Ok((Batch { files, ..Batch::default() }, reading.warnings)),
        Err(failure) => Err(cut_in_marker(text, &failure).unwrap_or(failure).into()),
    }
}

/// The line of an end marker with blanks before it that is the end of the patch and no line of a file: nothing but the
/// word of a shell command is below it, and no line of a file that the patch shows is such a marker.
fn indented_end(text: &str) -> Option<usize> {
    let mut filled = lines(text).filter(|line| !is_blank(line));
    let closing_word = filled.clone().next().and_then(|first| heredoc(first.text));
    let first = filled.nth(usize::from(closing_word.is_some()))?;
    let ends: Vec<_> = filled.filter(|line| closing_word != Some(line.text.trim())).collect();
    let (last, above) = ends.split_last()?;
    let is_end = last.text.starts_with([' ', '\t']) && last.text.trim() == END && first.text.trim() == BEGIN;
    let is_shown = |line: &Line<'_>| {
        let text = line.text.trim_start_matches(['+', '-']).trim();
        text == END || text == BEGIN
    };
    (is_end && !above.iter().any(is_shown)).then_some(last.number)
}

/// What a patch is refused for that ends in the middle of a marker, if that is where it failed.
fn cut_in_marker(text: &str, failure: &Failure) -> Option<Failure> {
    let line = lines(text).filter(|line| !is_blank(line)).last()?;
    let is_at_line = failure.field.as_deref() == Some(&format!("line {}", line.number));
    let start = line.text.trim_end();
    let is_cut = |marker: &&str| marker.len() > start.len() && marker.starts_with(start);
    let marker = [END, ADD, DELETE, UPDATE, MOVE, END_OF_FILE].into_iter().find(is_cut).filter(|_| is_at_line)?;
    let message = format!("the patch ends in the middle of a marker, such as '{marker}': {}", quoted(line.text));
    Some(cut_short(line.number, message))
}

/// The word that ends the text of a shell command such as `apply_patch <<'EOF'`.
fn heredoc(line: &str) -> Option<&str> {
    let line = line.trim();
    let word = line.strip_prefix("apply_patch").map_or(line, str::trim_start).strip_prefix("<<")?;
    let quoted = ['\'', '"'].iter().find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
    let word = quoted.unwrap_or(word);
    let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word.then_some(word)
}

fn is_blank(line: &Line<'_>) -> bool {
    line.text.trim().is_empty()
}

/// Whether a line begins another section, or ends the patch.
fn ends_section(text: &str) -> bool {
    text == END || [ADD, DELETE, UPDATE].iter().any(|marker| text.starts_with(marker))
}

/// The line of the file that a chunk's header names, as codex writes it, `@@ line`, or as diffs do, `@@ line @@`; dots
/// stand for the line numbers that such a header has there.
fn anchor_of(header: &str) -> &str {
    let anchor = header.strip_prefix(CHUNK).unwrap_or(header);
    let anchor = anchor.strip_prefix(' ').unwrap_or(anchor);
    let anchor = anchor.trim_end().strip_suffix(CHUNK).map_or(anchor, |inner| inner.strip_suffix(' ').unwrap_or(inner));
    if matches!(anchor.trim(), "..." | "\u{2026}") { "" } else { anchor }
}

/// Whether what follows `@@` has the line numbers of a unified diff.
fn has_numbers(anchor: &str) -> bool {
    let is_range = |range: &str, sign: char| {
        let digits = range.strip_prefix(sign).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
    };
    let mut words = anchor.split_whitespace();
    words.next().is_some_and(|word| is_range(word, '-')) && words.next().is_some_and(|word| is_range(word, '+'))
}

fn patch_of(path: &str, edit: FileEdit) -> FilePatch {
    FilePatch { target: Target::Path(document_spelling(path.trim())), key: None, label: None, edit }
}

/// A document on the way to its file patches.
struct Reading<'r, 'a, I: Iterator<Item = Line<'a>>> {
    lines: &'r mut core::iter::Peekable<I>,
    warnings: Vec<Warning>,
    /// The line of an end marker that has blanks before it.
    indented_end: Option<usize>,
}

impl<'a, I: Iterator<Item = Line<'a>>> Reading<'_, 'a, I> {
    fn patch(&mut self) -> Result<Vec<FilePatch>, Failure> {
        let mut first = self.next_filled(BEGIN)?;
        let closing_word = heredoc(first.text);
        if closing_word.is_some() {
            first = self.next_filled(BEGIN)?;
        }
        if first.text.trim() != BEGIN {
            return Err(unexpected(first, &format!("'{BEGIN}'")));
        }
        if let Some(line) = self.lines.next_if(|line| line.text.trim().starts_with(ENVIRONMENT)) {
            let message = format!(
                "line {}: the environment id has no effect; the caller that applies a patch chooses where",
                line.number
            );
            self.warnings.push(Warning { code: "ENVIRONMENT_ID_IGNORED".into(), message, line: None });
        }
        let mut files = Vec::new();
        loop {
            let header = self.next_filled(END)?;
            let text = header.text.trim();
            if text == END {
                break;
            }
            if files.len() == Limits::DEFAULT.files {
                return Err(too_many(header.number, Detail::Files, Limits::DEFAULT.files));
            }
            files.push(if let Some(path) = text.strip_prefix(ADD) {
                patch_of(path, self.added(header)?)
            } else if let Some(path) = text.strip_prefix(DELETE) {
                patch_of(path, FileEdit::DeleteFile)
            } else if let Some(path) = text.strip_prefix(UPDATE) {
                patch_of(path, self.update(header)?)
            } else {
                return Err(unexpected(header, &format!("'{ADD}', '{DELETE}', '{UPDATE}' or '{END}'")));
            });
        }
        if let Some(word) = closing_word {
            let line = self.next_filled(word)?;
            if line.text.trim() != word {
                return Err(unexpected(line, &format!("'{word}'")));
            }
        }
        match self.lines.find(|line| !is_blank(line)) {
            Some(line) if line.text.trim() == BEGIN => {
                Err(malformed(Some(line.number), Detail::MultipleBlocks, "a second patch begins after the first")
                    .hint(format!("put all sections between one '{BEGIN}' and one '{END}'")))
            }
            Some(line) => {
                let message = format!("text after '{END}': {}", quoted(line.text));
                Err(malformed(Some(line.number), Detail::Trailing, message).hint("send the patch and nothing after it"))
            }
            None => Ok(files),
        }
    }

    /// The next line that is not blank, where `expected` would have to come at the latest.
    fn next_filled(&mut self, expected: &str) -> Result<Line<'a>, Failure> {
        let line = self.lines.find(|line| !is_blank(line));
        line.ok_or_else(|| malformed(None, Detail::Marker, format!("the patch ends before '{expected}'")))
    }

    /// The content of an added file; every line ends with `\n`.
    fn added(&mut self, header: Line<'a>) -> Result<FileEdit, Failure> {
        let mut content = String::new();
        let mut blank = None;
        while let Some(line) = self.lines.next_if(|line| !ends_section(line.text.trim())) {
            match line.text.strip_prefix('+') {
                Some(text) if blank.is_none() => {
                    content.push_str(text);
                    content.push('\n');
                }
                None if is_blank(&line) => blank = blank.or(Some(line)),
                _ => {
                    let line = blank.unwrap_or(line);
                    let failure = unexpected(line, &format!("a line of the file added at line {}", header.number));
                    return Err(Failure { detail: Some(Detail::LinePrefix), ..failure }
                        .hint("begin every line of an added file with '+', blank ones too"));
                }
            }
        }
        Ok(FileEdit::WriteFile(WriteFile {
            content: Content::Text(content),
            presence: Presence::Absent,
            content_format: None,
        }))
    }

    fn update(&mut self, header: Line<'a>) -> Result<FileEdit, Failure> {
        let line = self.lines.next_if(|line| line.text.starts_with(MOVE));
        let move_to = line.and_then(|line| line.text.strip_prefix(MOVE)).map(|path| document_spelling(path.trim()));
        let mut chunks = Vec::new();
        let mut open: Option<Open> = None;
        let end = self.indented_end;
        let goes_on = |line: &Line<'_>| !ends_section(line.text.trim_end()) && Some(line.number) != end;
        while let Some(line) = self.lines.next_if(goes_on) {
            let text = line.text.trim_end();
            if text == CHUNK || line.text.starts_with("@@ ") {
                let anchor = anchor_of(line.text);
                if has_numbers(anchor) {
                    let message = format!("a chunk has no line numbers, found {}", quoted(line.text));
                    return Err(malformed(Some(line.number), Detail::HunkHeader, message)
                        .hint("write '@@' alone, or '@@ ' and a whole line of the file that is above the change"));
                }
                // Anchors that follow each other place one chunk.
                let mut chunk = match open.take() {
                    Some(chunk) if chunk.chunk.lines.is_empty() => chunk,
                    before => {
                        chunks.extend(before.map(Open::finish).transpose()?);
                        Open::at(line.number)
                    }
                };
                chunk.chunk.anchors.extend((!anchor.trim().is_empty()).then(|| anchor.into()));
                open = Some(chunk);
            } else if text == END_OF_FILE {
                match &mut open {
                    Some(chunk) if !chunk.chunk.lines.is_empty() => chunk.chunk.is_at_end = true,
                    _ => return Err(unexpected(line, "lines of the file above it")),
                }
            } else if line.text.is_empty() && open.as_ref().is_none_or(|chunk| chunk.chunk.is_at_end) {
                // A blank line where no chunk is open separates chunks.
            } else {
                let line = self.chunk_line(line, open.as_ref())?;
                open.get_or_insert_with(|| Open::at(header.number + 1)).chunk.lines.push(line);
            }
        }
        chunks.extend(open.map(Open::finish).transpose()?);
        if chunks.is_empty() && move_to.is_none() {
            let message = "the section has no lines, expected what is to change";
            return Err(malformed(Some(header.number), Detail::Empty, message)
                .hint("give at least one line that begins with '+' or '-', or leave the section out"));
        }
        Ok(FileEdit::ContextPatch(ContextPatch { move_to, chunks }))
    }

    fn chunk_line(&mut self, line: Line<'a>, open: Option<&Open>) -> Result<ChunkLine, Failure> {
        if open.is_some_and(|chunk| chunk.chunk.is_at_end) {
            return Err(unexpected(line, &format!("'{CHUNK}' or another section after '{END_OF_FILE}'")));
        }
        let marks = [(" ", LineKind::Context), ("-", LineKind::Removed), ("+", LineKind::Added)];
        let marked = marks.into_iter().find_map(|(mark, kind)| Some((kind, line.text.strip_prefix(mark)?)));
        let (kind, text) = match marked {
            Some(marked) => marked,
            None if line.text.is_empty() => (LineKind::Context, ""),
            None => {
                let failure = unexpected(line, "a line that begins with a blank, '-', '+' or '@@'");
                return Err(Failure { detail: Some(Detail::LinePrefix), ..failure }
                    .hint("begin lines that stay with a blank, lines that go with '-', lines that come with '+'"));
            }
        };
        Ok(ChunkLine { kind, text: text.into() })
    }
}

/// A chunk that is being read.
struct Open {
    /// The line where it begins.
    number: usize,
    chunk: Chunk,
}

impl Open {
    fn at(number: usize) -> Self {
        Self { number, chunk: Chunk { anchors: Vec::new(), lines: Vec::new(), is_at_end: false } }
    }

    fn finish(self) -> Result<Chunk, Failure> {
        if self.chunk.lines.is_empty() {
            let message = "the chunk has no lines, expected what is to change";
            return Err(malformed(Some(self.number), Detail::Empty, message)
                .hint("give at least one line that begins with '+' or '-', or leave the chunk out"));
        }
        Ok(self.chunk)
    }
}

fn unexpected(line: Line<'_>, expected: &str) -> Failure {
    let message = format!("expected {expected}, found {}", quoted(line.text));
    malformed(Some(line.number), Detail::Marker, message)
}
