//! Reads the database's journals without changing them. The database itself cuts a journal off at the first place that it
//! cannot read, so what is behind that place has to be read before it is opened.
//!
//! A journal is a row of batches: a start (how many items, a sequence number), the items, and an end with their checksum.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::keys::{self, Key};
use super::own_files;
use crate::store::StoreError;

/// How a batch ends in the file.
const TRAILER: [u8; 4] = [b'F', b'J', b'L', 3];
/// No sequence number is as large.
const LARGEST_NUMBER: u64 = 1 << 56;

/// One journal, as far as it can be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Journal {
    /// The file.
    pub(super) path: PathBuf,
    /// Where its last whole batch ends.
    pub(super) end: u64,
    /// Why it cannot be read beyond that, though there is something.
    pub(super) broken: Option<&'static str>,
}

/// All journals of a data directory, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Journals {
    pub(super) files: Vec<Journal>,
    /// The events that the very first batch stored: whether its sequence number is right cannot be seen from others.
    pub(super) first_events: Vec<Key>,
}

impl Journals {
    /// Whether all of every journal can be read.
    pub(super) fn is_whole(&self) -> bool {
        self.files.iter().all(|journal| journal.broken.is_none())
    }

    /// Whether there is something behind a broken place that can be read.
    pub(super) fn has_gap(&self) -> bool {
        self.files.split_last().is_some_and(|(_, sealed)| sealed.iter().any(|journal| journal.broken.is_some()))
    }
}

/// Reads every journal of a data directory.
///
/// # Errors
/// When the system refuses.
pub(super) fn journals(dir: &Path) -> Result<Journals, StoreError> {
    let failed = |error: std::io::Error| own_files::failed("read the journals", dir, &error);
    let mut numbered = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".jnl")).and_then(|name| name.parse::<u64>().ok());
        numbered.extend(number.map(|number| (number, dir.join(&name))));
    }
    numbered.sort();
    let mut journals = Journals::default();
    let mut last = None;
    for (_, path) in numbered {
        let journal = journal(path.clone(), &mut last, &mut journals.first_events);
        journals.files.push(journal.map_err(|error| own_files::failed("read a journal", &path, &error))?);
    }
    Ok(journals)
}

fn journal(path: PathBuf, last: &mut Option<u64>, first_events: &mut Vec<Key>) -> std::io::Result<Journal> {
    let length = own_files::used(&path)?;
    let mut bytes = Bytes { reader: BufReader::new(File::open(&path)?), left: length, at: 0 };
    let mut end = 0;
    loop {
        let batch = match batch(&mut bytes) {
            Ok(batch) => batch,
            Err(Stop::System(error)) => return Err(error),
            Err(Stop::End) => return Ok(Journal { path, end, broken: None }),
            Err(Stop::Broken(why)) => return Ok(Journal { path, end, broken: Some(why) }),
        };
        if batch.number >= LARGEST_NUMBER || last.is_some_and(|last| batch.number <= last) {
            return Ok(Journal { path, end, broken: Some("a batch is out of order") });
        }
        if last.is_none() {
            *first_events = batch.events;
        }
        *last = Some(batch.number);
        end = bytes.at;
    }
}

/// Why no further batch is read.
enum Stop {
    End,
    Broken(&'static str),
    System(std::io::Error),
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::Broken("a batch is cut off"),
            _ => Self::System(error),
        }
    }
}

struct Batch {
    number: u64,
    events: Vec<Key>,
}

fn batch(bytes: &mut Bytes) -> Result<Batch, Stop> {
    if bytes.left == 0 {
        return Err(Stop::End);
    }
    let [tag] = bytes.take()?;
    if tag != 1 {
        return Err(Stop::Broken("no batch begins where one should"));
    }
    let items = u32::from_le_bytes(bytes.take()?);
    let number = u64::from_le_bytes(bytes.take()?);
    let (mut sum, mut events) = (Xxh3::new(), Vec::new());
    for _ in 0..items {
        events.extend(item(bytes, &mut sum)?.filter(|key| key.starts_with(keys::EVENTS)));
    }
    let [tag] = bytes.take()?;
    if tag != 3 {
        return Err(Stop::Broken("a batch does not end where it should"));
    }
    let expected = u64::from_le_bytes(bytes.take()?);
    let trailer: [u8; 4] = bytes.take()?;
    if trailer != TRAILER || expected != sum.digest() {
        return Err(Stop::Broken("the checksum of a batch does not match"));
    }
    Ok(Batch { number, events })
}

/// Reads one item of a batch; answers its key, if it is a value.
fn item(bytes: &mut Bytes, sum: &mut Xxh3) -> Result<Option<Key>, Stop> {
    let [tag] = bytes.take()?;
    sum.update(&[tag]);
    match tag {
        2 => {
            // Kind, compression, table.
            let head: [u8; 10] = bytes.take()?;
            let lengths: [u8; 10] = bytes.take()?;
            sum.update(&head);
            sum.update(&lengths);
            let [k0, k1, _, _, _, _, s0, s1, s2, s3] = lengths;
            let key = bytes.block(u64::from(u16::from_le_bytes([k0, k1])))?;
            let stored = u64::from(u32::from_le_bytes([s0, s1, s2, s3]));
            sum.update(&key);
            sum.update(&bytes.block(stored)?);
            let [kind, ..] = head;
            Ok((kind == 0).then_some(key))
        }
        4 => {
            let table: [u8; 8] = bytes.take()?;
            sum.update(&table);
            Ok(None)
        }
        _ => Err(Stop::Broken("an item is of no known kind")),
    }
}

/// The used bytes of a journal.
struct Bytes {
    reader: BufReader<File>,
    left: u64,
    at: u64,
}

impl Bytes {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        // What is used may end in zeros, which the last bytes of a batch never are.
        if self.left < N as u64 {
            return Err(Stop::Broken("a batch is cut off"));
        }
        self.reader.read_exact(&mut bytes)?;
        self.advance(N as u64);
        Ok(bytes)
    }

    fn block(&mut self, length: u64) -> Result<Vec<u8>, Stop> {
        if self.left < length {
            return Err(Stop::Broken("a batch is cut off"));
        }
        let room = usize::try_from(length).map_err(|_| Stop::Broken("a batch is too long"))?;
        let mut bytes = vec![0; room];
        self.reader.read_exact(&mut bytes)?;
        self.advance(length);
        Ok(bytes)
    }

    fn advance(&mut self, count: u64) {
        self.left -= count;
        self.at += count;
    }
}
