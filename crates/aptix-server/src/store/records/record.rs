//! How records are written: a version byte, a checksum, then fields in a fixed order. A record that does not read
//! back exactly is damaged; it is never taken for other data.

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch::BlobRef;
use aptix_model::batch_event::{EventFacts, EventKind};
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, HistoryId, Revision, Uuid};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::UnixMillis;
use aptix_model::state::BatchState;
use fjall::Slice;
use sha2::{Digest, Sha256};

use crate::store::{CloudFile, Lease, StoreError, UploadId};

/// Records of an event and of a workspace's counters have digests and a lease's secret since this version.
const CHAINED: u8 = 2;
/// Since this version the record of an event says what happened, and that of a workspace's counters how many batches are open.
const WITH_FACTS: u8 = 3;
/// Since this version the record of an event names the event before of the same batch.
const LINKED: u8 = 6;
/// The format of a store whose history's record has none.
pub(in crate::store) const UNNAMED: u64 = 1;
/// Since this version the record of the history's name has the format: a server that knows no formats refuses it.
const WITH_FORMAT: u8 = 2;
/// The version of every other record.
pub(in crate::store) const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 8;

/// The state of the store after a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::store) struct Head {
    /// How many commits there were; 0 for none.
    pub(in crate::store) number: u64,
    /// Digest of the newest and all before it.
    pub(in crate::store) digest: Option<Sha256Digest>,
}

/// The name of the store's history, and the format of its records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) struct History {
    pub(in crate::store) id: HistoryId,
    pub(in crate::store) format: u64,
}

/// What a workspace counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::store) struct Counters {
    pub(in crate::store) newest: Revision,
    /// Digest of the newest commit and all before it.
    pub(in crate::store) digest: Option<Sha256Digest>,
    pub(in crate::store) lease: Lease,
    /// How many batches have not ended; `None` where that has to be counted, as in a record of an earlier version.
    pub(in crate::store) open: Option<u64>,
}

/// The content of an event's record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::store) struct Happened {
    pub(in crate::store) batch: BatchId,
    pub(in crate::store) digest: Option<Sha256Digest>,
    /// `None` in a record of an earlier version.
    pub(in crate::store) facts: Option<EventFacts>,
    /// The event before of the same batch; `None` for its first, and in a record of an earlier version.
    pub(in crate::store) previous: Option<Revision>,
}

/// A blob's bytes: which upload they came by, and how many they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) struct Marker {
    pub(in crate::store) upload: UploadId,
    pub(in crate::store) size_bytes: u64,
}

pub(in crate::store) fn encode_counters(counters: Counters) -> Slice {
    let record = Writer::with_version(if counters.open.is_some() { WITH_FACTS } else { CHAINED })
        .number(counters.newest.0)
        .number(counters.lease.epoch)
        .optional(counters.digest.as_ref().map(|digest| digest.as_bytes().as_slice()))
        .optional(counters.lease.secret.as_ref().map(|digest| digest.as_bytes().as_slice()));
    match counters.open {
        Some(open) => record.number(open).finish(),
        None => record.finish(),
    }
}

pub(in crate::store) fn decode_counters(record: &[u8]) -> Result<Counters, StoreError> {
    let what = "a workspace's counters";
    let numbers = |fields: &mut Fields<'_>| Some((Revision(fields.number()?), fields.number()?));
    if record.first() == Some(&VERSION) {
        let (newest, epoch) = read(what, record, numbers)?;
        return Ok(Counters { newest, digest: None, lease: Lease { epoch, secret: None }, open: None });
    }
    let counts_open = record.first() == Some(&WITH_FACTS);
    read_version(if counts_open { WITH_FACTS } else { CHAINED }, what, record, |fields| {
        let (newest, epoch) = numbers(fields)?;
        let (digest, secret) = (fields.optional_digest()?, fields.optional_digest()?);
        let open = if counts_open { Some(fields.number()?) } else { None };
        Some(Counters { newest, digest, lease: Lease { epoch, secret }, open })
    })
}

pub(in crate::store) fn encode_event(event: &Happened) -> Slice {
    let digest = event.digest.as_ref().map(|digest| digest.as_bytes().as_slice());
    let version = if event.facts.is_some() { LINKED } else { CHAINED };
    let record = Writer::with_version(version).bytes(event.batch.0.as_bytes()).optional(digest);
    let previous = event.previous.unwrap_or_default();
    match &event.facts {
        Some(facts) => record.bytes(&encode_facts(facts)).number(previous.0).finish(),
        None => record.finish(),
    }
}

pub(in crate::store) fn decode_event(record: &[u8]) -> Result<Happened, StoreError> {
    let chained = |fields: &mut Fields<'_>| Some((BatchId(fields.id()?), fields.optional_digest()?));
    match record.first() {
        Some(&VERSION) => Ok(Happened { batch: decode_id(record)?, digest: None, facts: None, previous: None }),
        Some(&CHAINED) => {
            let (batch, digest) = read_version(CHAINED, "an event", record, chained)?;
            Ok(Happened { batch, digest, facts: None, previous: None })
        }
        version => {
            let is_linked = version != Some(&WITH_FACTS);
            read_version(if is_linked { LINKED } else { WITH_FACTS }, "an event", record, |fields| {
                let (batch, digest) = chained(fields)?;
                let facts = Some(decode_facts(fields.bytes()?)?);
                let previous = if is_linked { Some(Revision(fields.number()?)) } else { None };
                Some(Happened { batch, digest, facts, previous: previous.filter(|previous| previous.0 > 0) })
            })
        }
    }
}

/// What an event records beside its batch; without a checksum of its own.
pub(in crate::store) fn encode_facts(facts: &EventFacts) -> Vec<u8> {
    let facts_without_reason = Writer::new()
        .bytes(facts.kind.word().as_bytes())
        .bytes(facts.state.word().as_bytes())
        .number(facts.at.0)
        .bytes(facts.actor.kind.word().as_bytes())
        .optional(facts.actor.name.as_deref().map(str::as_bytes));
    // Earlier versions wrote none, and the digest of their commits is over these bytes.
    match &facts.reason {
        Some(reason) => facts_without_reason.bytes(reason.as_bytes()).fields,
        None => facts_without_reason.fields,
    }
}

fn decode_facts(bytes: &[u8]) -> Option<EventFacts> {
    let mut fields = Fields(bytes);
    let kind = EventKind::from_word(fields.text()?)?;
    let state = BatchState::from_word(fields.text()?)?;
    let at = UnixMillis(fields.number()?);
    let actor = Actor { kind: ActorKind::from_word(fields.text()?)?, name: fields.optional_text()? };
    let reason = if fields.0.is_empty() { None } else { Some(fields.text()?.to_owned()) };
    fields.0.is_empty().then_some(EventFacts { kind, state, at, actor, reason })
}

pub(in crate::store) fn encode_head(head: Head) -> Slice {
    let digest = head.digest.as_ref().map(|digest| digest.as_bytes().as_slice());
    Writer::new().number(head.number).optional(digest).finish()
}

pub(in crate::store) fn decode_head(record: &[u8]) -> Result<Head, StoreError> {
    read("the newest commit", record, |fields| {
        Some(Head { number: fields.number()?, digest: fields.optional_digest()? })
    })
}

pub(in crate::store) fn encode_history(history: History) -> Slice {
    Writer::with_version(WITH_FORMAT).number(history.format).bytes(history.id.0.as_bytes()).finish()
}

pub(in crate::store) fn decode_history(record: &[u8]) -> Result<History, StoreError> {
    let what = "the history's name";
    if record.first() == Some(&VERSION) {
        return read(what, record, |fields| Some(History { id: HistoryId(fields.id()?), format: UNNAMED }));
    }
    read_version(WITH_FORMAT, what, record, |fields| {
        let format = fields.number()?;
        Some(History { id: HistoryId(fields.id()?), format })
    })
}

pub(in crate::store) fn encode_id(id: Uuid) -> Slice {
    Writer::new().bytes(id.as_bytes()).finish()
}

pub(in crate::store) fn decode_id(record: &[u8]) -> Result<BatchId, StoreError> {
    read("an index entry", record, |fields| fields.id().map(BatchId))
}

pub(in crate::store) fn encode_texts(texts: &[String]) -> Slice {
    let record = Writer::new().number(texts.len() as u64);
    texts.iter().fold(record, |record, text| record.bytes(text.as_bytes())).finish()
}

pub(in crate::store) fn decode_texts(record: &[u8]) -> Result<Vec<String>, StoreError> {
    read("the names of roots", record, |fields| {
        let count = fields.number()?;
        (0..count).map(|_| fields.text().map(ToOwned::to_owned)).collect()
    })
}

pub(in crate::store) fn encode_marker(marker: Marker) -> Slice {
    Writer::new().bytes(marker.upload.0.as_bytes()).number(marker.size_bytes).finish()
}

pub(in crate::store) fn decode_marker(record: &[u8]) -> Result<Marker, StoreError> {
    read("a blob", record, |fields| Some(Marker { upload: UploadId(fields.id()?), size_bytes: fields.number()? }))
}

pub(in crate::store) fn encode_file(file: &CloudFile) -> Slice {
    Writer::new()
        .bytes(file.path.as_str().as_bytes())
        .bytes(file.doc_path.as_str().as_bytes())
        .bytes(file.content.sha256.as_bytes())
        .number(file.content.size_bytes)
        .number(file.revision.0)
        .finish()
}

pub(in crate::store) fn decode_file(record: &[u8]) -> Result<CloudFile, StoreError> {
    read("a cloud file", record, |fields| {
        Some(CloudFile {
            path: RootedPath::new(fields.text()?).ok()?,
            doc_path: DocPath::new(fields.text()?).ok()?,
            content: BlobRef {
                sha256: Sha256Digest::from_bytes(fields.bytes()?.try_into().ok()?),
                size_bytes: fields.number()?,
            },
            revision: Revision(fields.number()?),
        })
    })
}

pub(in crate::store) fn encode_paths(paths: &[RootedPath]) -> Slice {
    let record = Writer::new().number(paths.len() as u64);
    paths.iter().fold(record, |record, path| record.bytes(path.as_str().as_bytes())).finish()
}

pub(in crate::store) fn decode_paths(record: &[u8]) -> Result<Vec<RootedPath>, StoreError> {
    read("the paths with a key", record, |fields| {
        let count = fields.number()?;
        (0..count).map(|_| RootedPath::new(fields.text()?).ok()).collect()
    })
}

/// Reads an entry of format 1.
pub(in crate::store) fn decode_former_path(record: &[u8]) -> Result<RootedPath, StoreError> {
    read("a cloud file's key", record, |fields| RootedPath::new(fields.text()?).ok())
}

fn checksum(fields: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let digest: [u8; 32] = Sha256::digest(fields).into();
    let mut checksum = [0; CHECKSUM_BYTES];
    checksum.copy_from_slice(&digest[..CHECKSUM_BYTES]);
    checksum
}

/// Reads a record with `parse`, which must take every field and nothing else.
pub(in crate::store) fn read<T>(
    what: &str,
    record: &[u8],
    parse: impl FnOnce(&mut Fields<'_>) -> Option<T>,
) -> Result<T, StoreError> {
    read_version(VERSION, what, record, parse)
}

pub(in crate::store) fn read_version<T>(
    expected: u8,
    what: &str,
    record: &[u8],
    parse: impl FnOnce(&mut Fields<'_>) -> Option<T>,
) -> Result<T, StoreError> {
    let corrupt = |why: String| StoreError::Corrupt { what: what.to_owned(), why };
    let Some((version, rest)) = record.split_first() else { return Err(corrupt("it is empty".to_owned())) };
    if *version != expected {
        return Err(corrupt(format!("it has version {version}, this server writes version {expected}")));
    }
    let Some((sum, fields)) = rest.split_first_chunk::<CHECKSUM_BYTES>() else {
        return Err(corrupt("it is cut short".to_owned()));
    };
    if *sum != checksum(fields) {
        return Err(corrupt("its checksum does not match".to_owned()));
    }
    let mut fields = Fields(fields);
    let value = parse(&mut fields).ok_or_else(|| corrupt("a field is missing or malformed".to_owned()))?;
    if !fields.0.is_empty() {
        return Err(corrupt(format!("{} bytes follow its last field", fields.0.len())));
    }
    Ok(value)
}

pub(in crate::store) struct Writer {
    version: u8,
    fields: Vec<u8>,
}

impl Writer {
    pub(in crate::store) fn new() -> Self {
        Self::with_version(VERSION)
    }

    pub(in crate::store) fn with_version(version: u8) -> Self {
        Self { version, fields: Vec::new() }
    }

    pub(in crate::store) fn number(mut self, number: u64) -> Self {
        self.fields.extend_from_slice(&number.to_be_bytes());
        self
    }

    pub(in crate::store) fn bytes(self, bytes: &[u8]) -> Self {
        let mut writer = self.number(bytes.len() as u64);
        writer.fields.extend_from_slice(bytes);
        writer
    }

    pub(in crate::store) fn optional(mut self, bytes: Option<&[u8]>) -> Self {
        self.fields.push(u8::from(bytes.is_some()));
        match bytes {
            Some(bytes) => self.bytes(bytes),
            None => self,
        }
    }

    /// The fields alone, without version and checksum.
    pub(in crate::store) fn into_fields(self) -> Vec<u8> {
        self.fields
    }

    pub(in crate::store) fn finish(self) -> Slice {
        let sum = checksum(&self.fields);
        [[self.version].as_slice(), sum.as_slice(), &self.fields].concat().into()
    }
}

pub(in crate::store) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields in these bytes, which have neither version nor checksum.
    pub(in crate::store) const fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether nothing follows.
    pub(in crate::store) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::store) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*number))
    }

    pub(in crate::store) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(in crate::store) fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }

    pub(in crate::store) fn optional(&mut self) -> Option<Option<&'a [u8]>> {
        let (present, rest) = self.0.split_first()?;
        self.0 = rest;
        match present {
            0 => Some(None),
            1 => Some(Some(self.bytes()?)),
            _ => None,
        }
    }

    pub(in crate::store) fn optional_text(&mut self) -> Option<Option<String>> {
        match self.optional()? {
            Some(bytes) => Some(Some(str::from_utf8(bytes).ok()?.to_owned())),
            None => Some(None),
        }
    }

    pub(in crate::store) fn optional_digest(&mut self) -> Option<Option<Sha256Digest>> {
        match self.optional()? {
            Some(bytes) => Some(Some(Sha256Digest::from_bytes(bytes.try_into().ok()?))),
            None => Some(None),
        }
    }

    pub(in crate::store) fn digest(&mut self) -> Option<Sha256Digest> {
        Some(Sha256Digest::from_bytes(self.bytes()?.try_into().ok()?))
    }

    pub(in crate::store) fn id(&mut self) -> Option<Uuid> {
        Uuid::from_slice(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let lease = Lease { epoch: 3, secret: Some(Sha256Digest::EMPTY) };
        let counters = Counters { newest: Revision(7), digest: Some(Sha256Digest::EMPTY), lease, open: Some(2) };
        let record = encode_counters(counters);
        assert_eq!(decode_counters(&record), Ok(counters));
        for bit in 0..record.len() * 8 {
            let mut damaged = record.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(decode_counters(&damaged), Err(StoreError::Corrupt { .. })), "bit {bit}");
        }
        for length in 0..record.len() {
            assert!(matches!(decode_counters(&record[..length]), Err(StoreError::Corrupt { .. })), "{length} bytes");
        }
    }

    #[test]
    fn records_of_the_version_before_are_read() {
        let counters = Writer::new().number(7).number(3).finish();
        let lease = Lease { epoch: 3, secret: None };
        let expected = Counters { newest: Revision(7), digest: None, lease, open: None };
        assert_eq!(decode_counters(&counters), Ok(expected));
        let chained = Counters { digest: Some(Sha256Digest::EMPTY), ..expected };
        assert_eq!(decode_counters(&encode_counters(chained)), Ok(chained));
        let event = Happened { batch: BatchId(Uuid::from_u128(5)), digest: None, facts: None, previous: None };
        assert_eq!(decode_event(&encode_id(event.batch.0)), Ok(event.clone()));
        let chained = Happened { digest: Some(Sha256Digest::EMPTY), ..event };
        assert_eq!(decode_event(&encode_event(&chained)), Ok(chained));
    }

    #[test]
    fn a_record_of_another_kind_is_not_taken() {
        let marker = encode_marker(Marker { upload: UploadId(Uuid::nil()), size_bytes: 1 });
        assert!(matches!(decode_counters(&marker), Err(StoreError::Corrupt { .. })));
    }
}
