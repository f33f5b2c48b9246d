//! The same history on other kinds of files: what changes stays the same, what surrounds it does not.

use crate::history::FileChange;
use crate::lines::{changes, lines};
use crate::memory::File;

/// A kind of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Variant {
    AsIs,
    CrLf,
    Mixed,
    ByteOrderMark,
    NoFinalNewline,
    Latin1,
}

impl Variant {
    pub(crate) const ALL: [Self; 6] =
        [Self::AsIs, Self::CrLf, Self::Mixed, Self::ByteOrderMark, Self::NoFinalNewline, Self::Latin1];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::AsIs => "as committed",
            Self::CrLf => "CRLF",
            Self::Mixed => "mixed line ends",
            Self::ByteOrderMark => "byte order mark",
            Self::NoFinalNewline => "no final newline",
            Self::Latin1 => "Latin-1 in untouched lines",
        }
    }

    /// The change as it would be among such files; `None` where it then is no change.
    pub(crate) fn of(self, change: &FileChange) -> Option<FileChange> {
        let turn =
            |file: &Option<File>| file.as_ref().map(|file| File { bytes: self.turn(&file.bytes), ..file.clone() });
        let (before, after) = match (self, &change.before, &change.after) {
            (Self::Latin1, Some(before), Some(after)) => {
                let (old, new) = with_latin1(&before.bytes, &after.bytes)?;
                (Some(File { bytes: old, ..before.clone() }), Some(File { bytes: new, ..after.clone() }))
            }
            (Self::Latin1, _, _) => return None,
            (_, before, after) => (turn(before), turn(after)),
        };
        (before != after).then(|| FileChange { path: change.path.clone(), before, after })
    }

    fn turn(self, bytes: &[u8]) -> Vec<u8> {
        if memchr::memchr(0, bytes).is_some() {
            return bytes.to_vec();
        }
        let ended = |is_crlf: &dyn Fn(&[u8]) -> bool| {
            let ended = lines(bytes).into_iter().map(|line| {
                let end: &[u8] = match line.end() {
                    b"" => b"",
                    _ if is_crlf(line.text()) => b"\r\n",
                    _ => b"\n",
                };
                [line.text(), end].concat()
            });
            ended.collect::<Vec<_>>().concat()
        };
        match self {
            Self::AsIs | Self::Latin1 => bytes.to_vec(),
            Self::CrLf => ended(&|_| true),
            // What a line says decides, so that a line ends alike before and after.
            Self::Mixed => ended(&|text| text.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) % 2 == 0),
            Self::ByteOrderMark if bytes.starts_with(b"\xef\xbb\xbf") => bytes.to_vec(),
            Self::ByteOrderMark => [b"\xef\xbb\xbf", bytes].concat(),
            Self::NoFinalNewline => bytes.strip_suffix(b"\n").unwrap_or(bytes).to_vec(),
        }
    }
}

/// Puts a byte that is no UTF-8 at the end of lines that stay and are far from every change.
fn with_latin1(before: &[u8], after: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    const FAR: usize = 20;
    let (old, new) = (lines(before), lines(after));
    let changes = changes(&old, &new);
    let is_far =
        |index: usize| changes.iter().all(|change| index + FAR < change.old.start || index >= change.old.end + FAR);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let (mut next, mut is_turned) = (0, false);
    let mut keep = |from: usize, to: usize, a: &mut Vec<u8>, b: &mut Vec<u8>| {
        for (index, line) in old.iter().enumerate().take(to).skip(from) {
            let is_it = is_far(index) && index % 7 == 0 && !line.end().is_empty();
            let mark: &[u8] = if is_it { b"\xe9" } else { b"" };
            is_turned |= is_it;
            for text in [&mut *a, &mut *b] {
                text.extend_from_slice(line.text());
                text.extend_from_slice(mark);
                text.extend_from_slice(line.end());
            }
        }
    };
    for change in &changes {
        keep(next, change.old.start, &mut a, &mut b);
        old[change.old.clone()].iter().for_each(|line| a.extend_from_slice(line.whole));
        new[change.new.clone()].iter().for_each(|line| b.extend_from_slice(line.whole));
        next = change.old.end;
    }
    keep(next, old.len(), &mut a, &mut b);
    is_turned.then_some((a, b))
}
