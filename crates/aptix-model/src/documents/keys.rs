//! The keys of a JSON document: those that a dialect has, and those that a document has.

use core::fmt;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Different keys that are looked at.
const KEYS: usize = 100;

/// The keys that a dialect written in JSON is detected by. `files.path` is the key `path` of an object in, or in a list in,
/// `files`.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    /// Keys that no other dialect has.
    pub(super) unique: &'static [&'static str],
    /// Its other keys, down to two levels.
    pub(super) others: &'static [&'static str],
}

/// Whether each part of a key may be a misspelling of that of a known one.
pub(super) fn is_near(key: &str, known: &str) -> bool {
    let near = |(part, known): (&str, &str)| {
        part.len() <= 4 * known.len()
            && strsim::damerau_levenshtein(&part.to_lowercase(), &known.to_lowercase()) <= known.len() / 3
    };
    key.split('.').count() == known.split('.').count() && key.split('.').zip(known.split('.')).all(near)
}

/// The first keys, in quotes.
pub(super) fn shown_keys(keys: &BTreeSet<String>) -> String {
    let short = |key: &String| format!("'{}'", key.chars().take(40).collect::<String>());
    let keys = keys.iter().map(short).take(10).collect::<Vec<_>>().join(", ");
    if keys.is_empty() { "none".to_owned() } else { keys }
}

/// The first different keys of a JSON document, of two levels; lists are looked through, other values skipped over.
pub(super) struct Outline(pub(super) BTreeSet<String>);

impl<'de> Deserialize<'de> for Outline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut keys = BTreeSet::new();
        deserializer.deserialize_any(Collector { keys: &mut keys, above: None })?;
        Ok(Self(keys))
    }
}

/// Collects the keys of a value that is the document, or is under a key of it.
struct Collector<'k> {
    keys: &'k mut BTreeSet<String>,
    above: Option<&'k str>,
}

impl<'de> DeserializeSeed<'de> for Collector<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Collector<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.above {
                None => map.next_value_seed(Collector { keys: &mut *self.keys, above: Some(&key) })?,
                Some(above) => {
                    map.next_value::<IgnoredAny>()?;
                    if self.keys.len() < KEYS {
                        self.keys.insert(format!("{above}.{key}"));
                    }
                    continue;
                }
            }
            if self.keys.len() < KEYS {
                self.keys.insert(key);
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Collector { keys: &mut *self.keys, above: self.above })?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}
