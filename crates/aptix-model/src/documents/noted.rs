//! A deserializer around another one that notes, as values, what is wrong and in which field. The errors stay those of
//! the other one, with its words and its line and column.

use core::cell::{Cell, RefCell};
use core::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, Expected, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

/// What is wrong with a value whose syntax is right, where it is not its type.
#[derive(Debug)]
pub(super) enum Flaw {
    UnknownField { name: String, known: &'static [&'static str] },
    MissingField,
    DuplicateField,
    TooLong,
}

/// A step from a value to one inside it.
pub(super) enum Step {
    Field(String),
    Item(usize),
}

/// What is known of an error.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) flaw: Cell<Option<Flaw>>,
    /// The way from the whole value to the wrong one.
    pub(super) path: RefCell<Vec<Step>>,
}

/// Deserializes a value. Derived structs are read from objects, never from lists of their fields' values.
pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, (D::Error, Notes)>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let notes = Notes::default();
    let value = notes.note(T::deserialize(Noting(deserializer, &notes)));
    value.map_err(|error| {
        notes.path.borrow_mut().reverse();
        (error, notes)
    })
}

impl Notes {
    /// The other deserializer's error, once its flaw is noted.
    fn note<T, E>(&self, result: Result<T, Flawed<E>>) -> Result<T, E> {
        result.map_err(|Flawed(error, flaw)| {
            self.flaw.set(flaw.or(self.flaw.take()));
            error
        })
    }

    /// Notes on the way out that an error lies in a field or item.
    fn inside(&self, step: Step) {
        self.path.borrow_mut().push(step);
    }
}

/// An error of the other deserializer and its flaw, if it was found here.
#[derive(thiserror::Error, Debug)]
#[error("{0}")]
struct Flawed<E>(E, Option<Flaw>);

impl<E> From<E> for Flawed<E> {
    fn from(error: E) -> Self {
        Self(error, None)
    }
}

impl<E: Error> Error for Flawed<E> {
    fn custom<T: fmt::Display>(message: T) -> Self {
        E::custom(message).into()
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        E::invalid_type(unexpected, expected).into()
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        E::invalid_value(unexpected, expected).into()
    }

    /// A list is too long; `expected` is the whole message.
    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self(E::custom(expected), Some(Flaw::TooLong))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self(E::unknown_field(field, known), Some(Flaw::UnknownField { name: field.to_owned(), known }))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(E::missing_field(field), Some(Flaw::MissingField))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self(E::duplicate_field(field), Some(Flaw::DuplicateField))
    }
}

/// A deserializer or visitor around another one.
struct Noting<'n, X>(X, &'n Notes);

macro_rules! deserialize {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            Ok(self.0.$method(Noting(visitor, self.1))?)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Noting<'_, D> {
    type Error = Flawed<D::Error>;

    deserialize! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option deserialize_unit deserialize_seq
        deserialize_map deserialize_identifier deserialize_ignored_any
    }

    forward_to_deserialize_any! { unit_struct tuple tuple_struct enum }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        Ok(self.0.deserialize_newtype_struct(name, Noting(visitor, self.1))?)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.deserialize_map(ObjectVisitor(visitor))
    }
}

macro_rules! visit {
    ($($method:ident($($value:ident: $type:ty)?))*) => {$(
        fn $method<E: Error>(self $(, $value: $type)?) -> Result<V::Value, E> {
            self.1.note(self.0.$method($($value)?))
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Noting<'_, V> {
    type Value = V::Value;

    visit! {
        visit_none() visit_unit() visit_bool(value: bool) visit_i64(value: i64) visit_u64(value: u64) visit_f64(value: f64)
        visit_str(value: &str) visit_borrowed_str(value: &'de str) visit_string(value: String)
    }

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.1.note(self.0.visit_some(Noting(value, self.1)))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.1.note(self.0.visit_newtype_struct(Noting(value, self.1)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        self.1.note(self.0.visit_seq(Items(list, 0, self.1)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.1.note(self.0.visit_map(Entries(map, String::new(), self.1)))
    }
}

/// Reads a value written as an object.
struct ObjectVisitor<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for ObjectVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(map)
    }
}

/// The items of a list, and how many were read.
struct Items<'n, A>(A, usize, &'n Notes);

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<'_, A> {
    type Error = Flawed<A::Error>;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Self::Error> {
        self.1 += 1;
        Ok(self.0.next_element_seed(Inside(seed, Step::Item(self.1 - 1), self.2))?)
    }
}

/// The fields of an object, and the name of the one that is read.
struct Entries<'n, A>(A, String, &'n Notes);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'_, A> {
    type Error = Flawed<A::Error>;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Self::Error> {
        let Some(key) = self.0.next_key()? else { return Ok(None) };
        self.1 = key;
        let key = seed.deserialize(StrDeserializer::new(&self.1));
        key.map(Some).inspect_err(|_: &Self::Error| self.2.inside(Step::Field(self.1.clone())))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Self::Error> {
        Ok(self.0.next_value_seed(Inside(seed, Step::Field(core::mem::take(&mut self.1)), self.2))?)
    }
}

/// The seed of an item or field.
struct Inside<'n, S>(S, Step, &'n Notes);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Inside<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let value = self.2.note(self.0.deserialize(Noting(deserializer, self.2)));
        value.inspect_err(|_| self.2.inside(self.1))
    }
}
