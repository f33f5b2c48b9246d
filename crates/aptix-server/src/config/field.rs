//! The places of the configuration that keys set, by the type of their values.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use super::given::Given;
use super::store_choice::StoreChoice;
use crate::caller::Share;
use crate::dispatcher::approvals::Approval;
use crate::store::bucket_address::BucketAddress;
use crate::web_origins::WebOrigins;

/// A place of the configuration.
pub(super) trait Field {
    /// Sets it, or answers `false` and leaves it as it is.
    fn set(&mut self, given: &Given) -> bool;
    /// Its value as the file writes it; `None` where it is not set.
    fn value(&self) -> Option<serde_json::Value>;
    /// Which values it can have.
    fn expected(&self) -> Cow<'static, str>;
    /// Why it cannot have a value that no message may show; `None` where messages may show it.
    fn secret_fault(&self, _: &Given) -> Option<String> {
        None
    }
}

/// A type whose values are written as text.
pub(super) trait Parsed: Sized {
    /// Which values it has.
    const EXPECTED: &'static str;
    /// Reads one.
    fn parse(text: &OsStr) -> Option<Self>;
    /// Writes one.
    fn text(&self) -> Cow<'_, str>;
}

/// A type whose values are whole numbers.
pub(super) trait Number {
    /// Sets it.
    fn put(&mut self, number: u64);
    /// Its value.
    fn number(&self) -> Option<u64>;
}

/// A place for what is written as text.
pub(super) fn plain<T: Parsed>(place: &mut T) -> Box<dyn Field + '_> {
    Box::new(Plain(place))
}

/// A place for a truth value.
pub(super) fn flag(place: &mut bool) -> Box<dyn Field + '_> {
    Box::new(Flag(place))
}

/// A place for a whole number within bounds: a count, or an `Option` of one, which is `None` until it is set.
pub(super) fn whole<T: Number>(place: &mut T, bounds: RangeInclusive<u64>) -> Box<dyn Field + '_> {
    Box::new(Whole(place, bounds))
}

/// A place for a time in whole seconds within bounds.
pub(super) fn seconds(place: &mut Duration, bounds: RangeInclusive<u64>) -> Box<dyn Field + '_> {
    whole(place, bounds)
}

/// A place for a total that is divided among callers and connections.
pub(super) fn share(place: &mut Share) -> Box<dyn Field + '_> {
    whole(place, 1..=1_000_000)
}

/// A place for a list of origins.
pub(super) fn origins(place: &mut WebOrigins) -> Box<dyn Field + '_> {
    Box::new(Origins(place))
}

/// A place for a store.
pub(super) fn store(place: &mut StoreChoice) -> Box<dyn Field + '_> {
    Box::new(StoreField(place))
}

struct StoreField<'a>(&'a mut StoreChoice);

impl Field for StoreField<'_> {
    fn set(&mut self, given: &Given) -> bool {
        let parsed = given.text().and_then(|text| StoreChoice::parse(text).ok());
        parsed.map(|parsed| *self.0 = parsed).is_some()
    }

    /// With `***` in the place of a password.
    fn value(&self) -> Option<serde_json::Value> {
        Some(self.0.to_string().into())
    }

    fn expected(&self) -> Cow<'static, str> {
        "`embedded`, or the address of a database".into()
    }

    fn secret_fault(&self, given: &Given) -> Option<String> {
        match given.text() {
            Some(text) => StoreChoice::parse(text).err().map(|error| error.to_string()),
            None => Some("expected a text, found a value of another kind".to_owned()),
        }
    }
}

struct Origins<'a>(&'a mut WebOrigins);

impl Field for Origins<'_> {
    fn set(&mut self, given: &Given) -> bool {
        let parsed = given.list().and_then(WebOrigins::parse);
        parsed.map(|parsed| *self.0 = parsed).is_some()
    }

    fn value(&self) -> Option<serde_json::Value> {
        (!self.0.is_empty()).then(|| self.0.list().into())
    }

    fn expected(&self) -> Cow<'static, str> {
        "list of origins".into()
    }
}

struct Plain<'a, T>(&'a mut T);

impl<T: Parsed> Field for Plain<'_, T> {
    fn set(&mut self, given: &Given) -> bool {
        let parsed = given.text().and_then(T::parse);
        parsed.map(|parsed| *self.0 = parsed).is_some()
    }

    fn value(&self) -> Option<serde_json::Value> {
        let text = self.0.text();
        (!text.is_empty()).then(|| text.into())
    }

    fn expected(&self) -> Cow<'static, str> {
        T::EXPECTED.into()
    }
}

struct Flag<'a>(&'a mut bool);

impl Field for Flag<'_> {
    fn set(&mut self, given: &Given) -> bool {
        given.flag().map(|flag| *self.0 = flag).is_some()
    }

    fn value(&self) -> Option<serde_json::Value> {
        Some((*self.0).into())
    }

    fn expected(&self) -> Cow<'static, str> {
        "true or false".into()
    }
}

struct Whole<'a, T>(&'a mut T, RangeInclusive<u64>);

impl<T: Number> Field for Whole<'_, T> {
    fn set(&mut self, given: &Given) -> bool {
        let number = given.whole().filter(|number| self.1.contains(number));
        number.map(|number| self.0.put(number)).is_some()
    }

    fn value(&self) -> Option<serde_json::Value> {
        self.0.number().map(Into::into)
    }

    fn expected(&self) -> Cow<'static, str> {
        format!("{} to {}", grouped(*self.1.start()), grouped(*self.1.end())).into()
    }
}

/// A number with a comma before each three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

impl Number for usize {
    fn put(&mut self, number: u64) {
        *self = Self::try_from(number).unwrap_or(Self::MAX);
    }

    fn number(&self) -> Option<u64> {
        u64::try_from(*self).ok()
    }
}

impl Number for u64 {
    fn put(&mut self, number: u64) {
        *self = number;
    }

    fn number(&self) -> Option<u64> {
        Some(*self)
    }
}

/// `None` until it is set.
impl<T: Number + Default> Number for Option<T> {
    fn put(&mut self, number: u64) {
        self.get_or_insert_default().put(number);
    }

    fn number(&self) -> Option<u64> {
        self.as_ref().and_then(T::number)
    }
}

impl Number for Duration {
    fn put(&mut self, number: u64) {
        *self = Self::from_secs(number);
    }

    fn number(&self) -> Option<u64> {
        Some(self.as_secs())
    }
}

impl Number for Share {
    fn put(&mut self, number: u64) {
        *self = Self::of(usize::try_from(number).unwrap_or(usize::MAX));
    }

    fn number(&self) -> Option<u64> {
        self.total.number()
    }
}

impl Parsed for SocketAddr {
    const EXPECTED: &'static str = "address and port";

    fn parse(text: &OsStr) -> Option<Self> {
        text.to_str()?.parse().ok()
    }

    fn text(&self) -> Cow<'_, str> {
        self.to_string().into()
    }
}

impl Parsed for BucketAddress {
    const EXPECTED: &'static str = "bucket, as in `s3://BUCKET/PREFIX`";

    fn parse(text: &OsStr) -> Option<Self> {
        Self::parse(text.to_str()?).ok()
    }

    fn text(&self) -> Cow<'_, str> {
        self.to_string().into()
    }
}

impl Parsed for PathBuf {
    const EXPECTED: &'static str = "path";

    fn parse(text: &OsStr) -> Option<Self> {
        (!text.is_empty()).then(|| text.into())
    }

    fn text(&self) -> Cow<'_, str> {
        self.to_string_lossy()
    }
}

/// `None` until it is set.
impl<T: Parsed> Parsed for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn parse(text: &OsStr) -> Option<Self> {
        T::parse(text).map(Some)
    }

    fn text(&self) -> Cow<'_, str> {
        self.as_ref().map(T::text).unwrap_or_default()
    }
}

impl Parsed for Approval {
    const EXPECTED: &'static str = "`never`, `deletions`, `sensitive` or `always`";

    fn parse(text: &OsStr) -> Option<Self> {
        Self::ALL.into_iter().find(|approval| *text == *approval.word())
    }

    fn text(&self) -> Cow<'_, str> {
        self.word().into()
    }
}

/// What is logged: a level, or pairs of target and level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogFilter(String);

impl LogFilter {
    /// Reads one.
    ///
    /// # Errors
    /// When it is none.
    pub fn new(text: &str) -> Result<Self, tracing_subscriber::filter::ParseError> {
        EnvFilter::builder().parse(text).map(|_| Self(text.to_owned()))
    }

    /// The filter.
    #[must_use]
    pub fn filter(&self) -> EnvFilter {
        EnvFilter::new(&self.0)
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl Parsed for LogFilter {
    const EXPECTED: &'static str = "a level, or `target=level` pairs";

    fn parse(text: &OsStr) -> Option<Self> {
        Self::new(text.to_str()?).ok()
    }

    fn text(&self) -> Cow<'_, str> {
        self.0.as_str().into()
    }
}

/// How the server logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Parsed for LogFormat {
    const EXPECTED: &'static str = "`text` or `json`";

    fn parse(text: &OsStr) -> Option<Self> {
        match text.to_str()? {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text => "text".into(),
            Self::Json => "json".into(),
        }
    }
}
