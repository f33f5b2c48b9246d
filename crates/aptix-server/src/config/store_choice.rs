//! Which store the server keeps everything in.

use std::ffi::OsStr;
use std::fmt;

#[cfg(feature = "postgres")]
use crate::store::postgres::address::Address;

/// The value that selects the store in the data directory.
const EMBEDDED: &str = "embedded";

/// What the addresses of databases begin with.
const SCHEMES: [&str; 2] = ["postgres:", "postgresql:"];

/// A store. `Display` and `Debug` have no password.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum StoreChoice {
    /// The one in the data directory.
    #[default]
    Embedded,
    /// A PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(Box<Address>),
}

/// Why a value selects no store. It has no part of the value, which may have a password.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreChoiceError(String);

impl StoreChoice {
    /// Reads `embedded` or the address of a database.
    ///
    /// # Errors
    /// When it is neither, or this build has no support for databases.
    pub fn parse(text: &OsStr) -> Result<Self, StoreChoiceError> {
        match text.to_str() {
            Some(EMBEDDED) => Ok(Self::Embedded),
            Some(text) if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) => database(text),
            _ => Err(StoreChoiceError(
                "expected `embedded` or an address such as postgres://USER:PASSWORD@HOST/DATABASE, found another text"
                    .to_owned(),
            )),
        }
    }

    /// Whether it is the one in the data directory.
    #[must_use]
    pub const fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded)
    }
}

#[cfg(feature = "postgres")]
fn database(text: &str) -> Result<StoreChoice, StoreChoiceError> {
    let address = Address::parse(text).map_err(|error| StoreChoiceError(error.to_string()))?;
    Ok(StoreChoice::Postgres(Box::new(address)))
}

#[cfg(not(feature = "postgres"))]
fn database(_: &str) -> Result<StoreChoice, StoreChoiceError> {
    let why = "expected `embedded`, found the address of a PostgreSQL database: this aptix-server was built without support for \
               PostgreSQL; hint: use a released one, or build it with `--features postgres`";
    Err(StoreChoiceError(why.to_owned()))
}

impl fmt::Display for StoreChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => out.write_str(EMBEDDED),
            #[cfg(feature = "postgres")]
            Self::Postgres(address) => address.fmt(out),
        }
    }
}
