//! Strict JSON: typed from the first byte, and errors in the catalogue's words.

use core::fmt;
use core::marker::PhantomData;

use serde::de::{DeserializeOwned, Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::error::Category;

use super::bytes::{decode, too_many_lines};
use super::noted::{self, Flaw, Step};
use crate::failure::Failure;
use crate::limits::{LINES, Limits};
use crate::reason::{Detail, Reason};

/// Nesting no document needs.
const DEPTH: usize = 64;
/// Characters of a document that a message repeats at most.
const SHOWN: usize = 300;

/// Reads a whole text as one value.
pub(crate) fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    read(text).map_err(|(failure, _)| failure)
}

/// What is wrong with the type of a value in a text, and the way to it; `None` if every value has its type.
pub(super) fn misfit<T: DeserializeOwned>(text: &str) -> Option<(Failure, Vec<Step>)> {
    read::<T>(text).err()
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, (Failure, Vec<Step>)> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = noted::deserialize(&mut deserializer).map_err(|(error, notes)| {
        let path = notes.path.into_inner();
        let failure = Place::of(&path).put_on(classify(&error, notes.flaw.into_inner(), &path, text));
        (failure, if error.is_data() { path } else { Vec::new() })
    })?;
    deserializer.end().map_err(|error| (trailing(&error, text), Vec::new()))?;
    Ok(value)
}

/// The text of a JSON document that costs no more to read than any document is worth.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Failure> {
    decode(bytes).and_then(|text| check_size(text).map(|()| text))
}

/// Refuses what would cost more than any document is worth, before anything is built from it: nesting, more objects than a
/// batch has files and changes, and longer lists than a document has lines. A list in a string is checked when it is read.
fn check_size(text: &str) -> Result<(), Failure> {
    let Counted { objects, items } = count(text)?;
    let most = 1 + Limits::DEFAULT.files + Limits::DEFAULT.changes;
    if objects > most {
        let message = format!("the document has {objects} objects, a batch has at most {most}");
        return Err(Failure::new(Reason::TooLarge, message)
            .detail(Detail::Changes)
            .hint("send several smaller batches, one after the other"));
    }
    check_items(items)
}

/// Refuses more items of lists, in the documents of one text, than a document has lines.
pub(super) fn check_items(items: usize) -> Result<(), Failure> {
    if items <= LINES { Ok(()) } else { Err(too_many_lines(&format!("{items} items in its lists"))) }
}

/// How many items the lists of a text have, as far as it is JSON.
pub(super) fn items(text: &str) -> usize {
    count(text).map_or(0, |counted| counted.items)
}

/// How much there is in a text.
#[derive(Default)]
struct Counted {
    objects: usize,
    /// Items of all its lists; the last one of each does not count.
    items: usize,
}

/// Counts what is in a text; refuses nesting that no document needs.
fn count(text: &str) -> Result<Counted, Failure> {
    let (mut counted, mut in_string, mut escaped) = (Counted::default(), false, false);
    // What the place is inside of, from the inside out: a bit for each level, set for lists.
    let (mut depth, mut lists) = (0_usize, 0_u128);
    for (offset, byte) in text.bytes().enumerate() {
        if in_string {
            (in_string, escaped) = match byte {
                _ if escaped => (true, false),
                b'\\' => (true, true),
                byte => (byte != b'"', false),
            };
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' => (depth, lists) = (depth + 1, lists << 1 | 1),
            b'{' => {
                (depth, lists) = (depth + 1, lists << 1);
                counted.objects += 1;
            }
            b']' | b'}' => (depth, lists) = (depth.saturating_sub(1), lists >> 1),
            b',' if lists & 1 == 1 => counted.items += 1,
            _ => {}
        }
        if depth > DEPTH {
            let message = format!("the document nests deeper than {DEPTH} levels at byte {offset}");
            return Err(Failure::new(Reason::InvalidRequest, message).detail(Detail::Depth));
        }
    }
    Ok(counted)
}

/// The known word that an unknown one is most likely a misspelling of.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let short: String = word.chars().take(100).collect::<String>().to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&short, &known.to_lowercase());
    known.into_iter().min_by_key(|known| distance(known)).filter(|known| distance(known) <= known.len().max(3) / 2)
}

/// What to write instead of a word that is none of a few: the one that it is most likely a misspelling of, or any.
pub(crate) fn instead(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("use one of {}", known.join(", ")),
    }
}

/// An object or a field of a document.
#[derive(Clone, Default)]
pub(super) struct Place {
    field: String,
    file: Option<usize>,
    change: Option<usize>,
}

impl Place {
    /// A file patch of a document, or one of its changes.
    pub(super) fn new(field: String, file: usize, change: Option<usize>) -> Self {
        Self { field, file: Some(file), change }
    }

    /// An object that is neither a file patch nor a change; the document itself has an empty name.
    pub(super) fn named(field: String) -> Self {
        Self { field, ..Self::default() }
    }

    /// The place of a field of this object.
    pub(super) fn field(mut self, name: &str) -> Self {
        if !self.field.is_empty() {
            self.field.push('.');
        }
        self.field.extend(name.chars().take(100));
        self
    }

    fn of(path: &[Step]) -> Self {
        let mut place = Self::default();
        let mut list = "";
        for step in path {
            match step {
                Step::Item(index) => {
                    place.field.push_str(&format!("[{index}]"));
                    match list {
                        "files" => place.file = Some(*index),
                        "changes" | "replacements" => place.change = Some(*index),
                        _ => {}
                    }
                    list = "";
                }
                Step::Field(name) => {
                    place = place.field(name);
                    list = name;
                }
            }
        }
        place
    }

    /// Adds this place to a failure.
    pub(super) fn put_on(self, mut failure: Failure) -> Failure {
        failure.field = Some(self.field).filter(|field| !field.is_empty());
        failure.file_index = self.file;
        failure.change_index = self.change;
        failure
    }
}

/// Puts a parser's error into the catalogue's words.
fn classify(error: &serde_json::Error, flaw: Option<Flaw>, path: &[Step], text: &str) -> Failure {
    let message = shown(&error.to_string());
    match error.classify() {
        Category::Eof => {
            let message = format!("the document ends before it is complete: {message}");
            return Failure::new(Reason::InvalidRequest, message)
                .detail(Detail::Json)
                .hint("the document was cut short; send it whole");
        }
        Category::Syntax => return classify_syntax(error, &message, text),
        Category::Data | Category::Io => {}
    }
    let refuse = |detail, hint: &str| Failure::new(Reason::InvalidRequest, message.clone()).detail(detail).hint(hint);
    match flaw {
        Some(Flaw::TooLong) => {
            let is_files = matches!(path.last(), Some(Step::Field(name)) if name == "files");
            let detail = if is_files { Detail::Files } else { Detail::Changes };
            Failure::new(Reason::TooLarge, message).detail(detail).hint("send several smaller batches")
        }
        Some(Flaw::UnknownField { name, known }) => match nearest(&name, known.iter().copied()) {
            Some(near) => refuse(Detail::UnknownField, &format!("did you mean '{near}'?")),
            None => refuse(Detail::UnknownField, "leave the field out"),
        },
        Some(Flaw::MissingField) => refuse(Detail::Missing, "give the field a value"),
        Some(Flaw::DuplicateField) => refuse(Detail::DuplicateKey, "keep one of the two"),
        None => refuse(Detail::Type, "give the field a value of the type that is expected there"),
    }
}

/// Refuses what follows a document.
fn trailing(error: &serde_json::Error, text: &str) -> Failure {
    let failure = Failure::new(Reason::InvalidRequest, error.to_string());
    match rest_at(text, error).trim_start().bytes().next() {
        Some(b'{' | b'[') => failure.detail(Detail::MultipleBlocks).hint("send one document at a time"),
        _ => failure.detail(Detail::Trailing).hint("send the JSON object and nothing after it"),
    }
}

/// Names an error of syntax. The parser has no value for its kind, only its text.
fn classify_syntax(error: &serde_json::Error, message: &str, text: &str) -> Failure {
    let refuse = |detail: Detail| Failure::new(Reason::InvalidRequest, message.to_owned()).detail(detail);
    if message.contains("surrogate") || message.contains("unicode") || message.contains("hex escape") {
        return refuse(Detail::Unicode)
            .hint("write such a character itself, or as a whole escape such as \\ud83d\\ude00");
    }
    let word = rest_at(text, error).trim_start_matches('-');
    if message.contains("number") || word.starts_with("NaN") || word.starts_with("Infinity") {
        return refuse(Detail::Number);
    }
    if text.trim_start().starts_with("```") {
        return refuse(Detail::Json).hint("send what is between the code fences, without the fences");
    }
    refuse(Detail::Json).hint("JSON has no comments, trailing commas, single quotes or raw line breaks in strings")
}

/// A parser's message with what it repeats of the document cut short.
fn shown(message: &str) -> String {
    if message.chars().count() <= 2 * SHOWN {
        return message.to_owned();
    }
    let tail = message.chars().count() - SHOWN;
    message.chars().take(SHOWN).chain(" ... ".chars()).chain(message.chars().skip(tail)).collect()
}

/// The text from an error's line and column on.
fn rest_at<'t>(text: &'t str, error: &serde_json::Error) -> &'t str {
    let line = text.split_inclusive('\n').skip(error.line().saturating_sub(1));
    let start = line.clone().next().map_or(text.len(), |line| line.as_ptr() as usize - text.as_ptr() as usize);
    let mut offset = (start + error.column().saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    text.split_at(offset).1
}

/// A whole number; one that no integer type holds becomes the nearest that one does, so that the range check names it.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Whole(pub(crate) i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WholeVisitor;
        impl Visitor<'_> for WholeVisitor {
            type Value = Whole;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number without point or exponent")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Whole, E> {
                Ok(Whole(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
                Ok(Whole(i64::try_from(number).unwrap_or(i64::MAX)))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Whole, E> {
                if number >= 1.8e19 {
                    return Ok(Whole(i64::MAX));
                }
                if number <= -9.2e18 {
                    return Ok(Whole(i64::MIN));
                }
                Err(E::invalid_type(Unexpected::Float(number), &self))
            }
        }
        deserializer.deserialize_i64(WholeVisitor)
    }
}

/// A list that stops reading once it is longer than any batch may be.
#[derive(Serialize)]
pub(crate) struct Bounded<T, const MAX: usize>(pub(super) Vec<T>);

impl<'de, T: DeserializeOwned + Named, const MAX: usize> Deserialize<'de> for Bounded<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BoundedVisitor<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: DeserializeOwned + Named, const MAX: usize> Visitor<'de> for BoundedVisitor<T, MAX> {
            type Value = Bounded<T, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of {}", T::PLURAL)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    if items.len() == MAX {
                        let message = format!("too many {}: at most {MAX} in a batch", T::PLURAL);
                        return Err(A::Error::invalid_length(MAX + 1, &message.as_str()));
                    }
                    items.push(item);
                }
                Ok(Bounded(items))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                // Some models write a list of arguments as the text of one.
                if !text.trim_start().starts_with('[') {
                    return Err(E::invalid_type(Unexpected::Str(text), &self));
                }
                check_size(text).and_then(|()| from_str(text)).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(BoundedVisitor(PhantomData))
    }
}

/// What the items of a bounded list are called.
pub(super) trait Named {
    const PLURAL: &'static str;
}
